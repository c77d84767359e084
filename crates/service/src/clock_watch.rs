//! Checks of the system clock, and of whether the fleet belongs to the store. While either check fails, no
//! changes are made.

use ambient::{Reading, Trust};
use jiff::SignedDuration;
use store::{ClockMark, StoreError};

/// Interval at which the clock's time is stored.
const MARK_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// Judges the system clock against steady time.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    trust: Trust,
    boot: String,
    /// Message about a wrong clock; `None` if no fault is known.
    wrong: Option<String>,
    /// Last stored mark, in steady time.
    marked: Option<SignedDuration>,
}

impl Watch {
    /// `boot` identifies this boot of the machine.
    pub fn new(trust: Trust, boot: String) -> Self {
        Self { trust, boot, wrong: None, marked: None }
    }

    /// Fails while the clock is wrong.
    pub fn judge(&mut self, now: Reading) -> Result<(), StoreError> {
        match self.trust.judge(now) {
            Ok(()) => {
                if self.wrong.take().is_some() {
                    tracing::info!("clock right again");
                }
                Ok(())
            }
            Err(wrong) => {
                let why = format!(
                    "{wrong}; nothing starts, ends or is changed before it is right, or an operator says that it is \
                     (`allot doctor --accept clock`)"
                );
                if self.wrong.is_none() {
                    tracing::error!(%why, "clock wrong");
                }
                self.wrong = Some(why.clone());
                Err(StoreError::Suspended(why))
            }
        }
    }

    /// Message about a wrong clock; `None` if no fault is known.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// Trusts the clock because an operator confirmed it.
    pub fn accept(&mut self, now: Reading) {
        self.trust.accept(now);
        (self.wrong, self.marked) = (None, None);
    }

    /// Mark to store now, if one is due.
    pub fn due_mark(&mut self) -> Option<ClockMark> {
        let followed = self.trust.followed()?;
        if self.marked.is_some_and(|marked| followed.steady.saturating_sub(marked) < MARK_EVERY) {
            return None;
        }
        self.marked = Some(followed.steady);
        Some(ClockMark { at: followed.wall, steady: followed.steady, boot: self.boot.clone() })
    }
}

/// Whether the fleet belongs to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// Not checked yet.
    #[default]
    Unknown,
    Belongs,
    /// It seems to belong to another store. Has the reason.
    Foreign(String),
}
