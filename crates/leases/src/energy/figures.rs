//! What hosts draw, and whether they may be switched, as their capabilities say.

use std::num::NonZeroU64;

use crate::host::{Host, MFLOPS};

/// The capability that says what a host draws when it is on and nothing runs there, in watts.
pub const IDLE_WATTS: &str = "power_idle_watts";
/// The same when all its CPUs are busy.
pub const BUSY_WATTS: &str = "power_busy_watts";
/// The same when it is off: its management controller still runs.
pub const OFF_WATTS: &str = "power_off_watts";
/// The capability that keeps a host on: `never`.
pub const SAVING: &str = "power_saving";
/// The value of [`SAVING`] that keeps a host on.
pub const NEVER: &str = "never";

/// More is no figure of a machine.
const MOST_WATTS: u32 = 1_000_000;
/// The same in MFLOPS: an exaFLOPS.
const MOST_MFLOPS: f64 = 1e12;
/// Picowatts of a milliwatt.
const PICOWATTS: u64 = 1_000_000_000;

/// What a host draws, in milliwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// When it is on and nothing runs there; none if nobody has said.
    pub idle_milliwatts: Option<u32>,
    /// When all its CPUs are busy; none if nobody has said.
    pub busy_milliwatts: Option<u32>,
    /// When it is off; nothing if nobody has said.
    pub off_milliwatts: u32,
}

/// What a host draws at work for what it does: less is better. Hosts whose computing power is known come first, and those
/// last of which nobody has said what they draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draw {
    /// Picowatts for each MFLOPS.
    PerMflops(u64),
    /// Milliwatts for each virtual CPU.
    PerCore(u64),
    /// Nobody has said.
    Unknown,
}

impl Figures {
    /// Those of a host, from its capabilities and those of its pool. What is no number of watts counts as not said.
    pub fn of(host: &Host) -> Self {
        let milliwatts = |name: &str| {
            let watts: f64 = host.capabilities.get(name)?.trim().parse().ok()?;
            let known = watts.is_finite() && (0.0..=f64::from(MOST_WATTS)).contains(&watts);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
            known.then(|| (watts * 1000.0).round() as u32)
        };
        Self {
            idle_milliwatts: milliwatts(IDLE_WATTS),
            busy_milliwatts: milliwatts(BUSY_WATTS),
            off_milliwatts: milliwatts(OFF_WATTS).unwrap_or(0),
        }
    }

    /// What it saves to have the host off instead of idle, in milliwatts.
    pub fn saved_milliwatts(&self) -> u32 {
        self.idle_milliwatts.unwrap_or(0).saturating_sub(self.off_milliwatts)
    }

    /// What the host draws for each MFLOPS when it works, or for each virtual CPU if its computing power is not known.
    pub fn draw(&self, host: &Host) -> Draw {
        let Some(milliwatts) = self.busy_milliwatts.or(self.idle_milliwatts).map(u64::from) else {
            return Draw::Unknown;
        };
        match mflops(host) {
            Some(mflops) => Draw::PerMflops(milliwatts * PICOWATTS / mflops),
            None if host.vcpus > 0 => Draw::PerCore(milliwatts / u64::from(host.vcpus)),
            None => Draw::Unknown,
        }
    }
}

/// The computing power of the host. What is no number of MFLOPS counts as not said.
fn mflops(host: &Host) -> Option<NonZeroU64> {
    let mflops: f64 = host.capabilities.get(MFLOPS)?.trim().parse().ok()?;
    let known = (0.0..=MOST_MFLOPS).contains(&mflops);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    known.then(|| mflops.round() as u64).and_then(NonZeroU64::new)
}

/// Whether the operator lets the host be switched off.
pub fn may_be_off(host: &Host) -> bool {
    host.capabilities.get(SAVING).is_none_or(|saving| saving.trim() != NEVER)
}
