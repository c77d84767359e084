//! The clock, watched; and whether the fleet belongs to the store. While either is wrong nothing is changed.

use ambient::{Reading, Trust};
use jiff::SignedDuration;
use store::{ClockMark, StoreError};

/// How often what the clock shows is written down.
const MARK_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// The clock, watched.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    trust: Trust,
    boot: String,
    /// What is wrong with it, if it is known.
    wrong: Option<String>,
    /// Up to when it is written down, in steady time.
    marked: Option<SignedDuration>,
}

impl Watch {
    /// Of a clock of which so much is known, in a run of the machine of that name.
    pub fn new(trust: Trust, boot: String) -> Self {
        Self { trust, boot, wrong: None, marked: None }
    }

    /// An error if the clock is wrong now.
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

    /// What is wrong with it, if it is known.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// An operator says that the clock is right.
    pub fn accept(&mut self, now: Reading) {
        self.trust.accept(now);
        (self.wrong, self.marked) = (None, None);
    }

    /// What is to be written down now.
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
    /// It was not looked at yet.
    #[default]
    Unknown,
    /// It does.
    Belongs,
    /// It does not, as far as can be seen: why.
    Foreign(String),
}
