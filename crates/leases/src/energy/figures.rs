//! What hosts draw, and whether they may be switched, as their capabilities say.

use crate::host::Host;

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

/// How much a host draws for each virtual CPU: less is better, and what is not known comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WattsPerCore(pub u64);

impl WattsPerCore {
    /// Nobody has said.
    pub const UNKNOWN: Self = Self(u64::MAX);
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

    /// What the host draws for each virtual CPU when it works.
    pub fn per_core(&self, host: &Host) -> WattsPerCore {
        match self.busy_milliwatts.or(self.idle_milliwatts) {
            Some(milliwatts) if host.vcpus > 0 => WattsPerCore(u64::from(milliwatts) / u64::from(host.vcpus)),
            _ => WattsPerCore::UNKNOWN,
        }
    }
}

/// Whether the operator lets the host be switched off.
pub fn may_be_off(host: &Host) -> bool {
    host.capabilities.get(SAVING).is_none_or(|saving| saving.trim() != NEVER)
}
