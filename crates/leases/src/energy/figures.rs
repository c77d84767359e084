//! Power draw of hosts, and permission to switch them off, from their capabilities.

use std::num::NonZeroU64;

use crate::host::{Host, MFLOPS};

/// Capability with the draw of an idle host, in watts.
pub const IDLE_WATTS: &str = "power_idle_watts";
/// Capability with the draw of a host whose CPUs are all busy, in watts.
pub const BUSY_WATTS: &str = "power_busy_watts";
/// Capability with the draw of a host that is off, in watts: its management controller still runs.
pub const OFF_WATTS: &str = "power_off_watts";
/// Capability that keeps a host on if its value is [`NEVER`].
pub const SAVING: &str = "power_saving";
pub const NEVER: &str = "never";

/// Plausibility limit for a machine. Larger values count as unknown.
const MOST_WATTS: u32 = 1_000_000;
/// Plausibility limit for a machine's computing power: an exaFLOPS.
const MOST_MFLOPS: f64 = 1e12;
/// Picowatts per milliwatt.
const PICOWATTS: u64 = 1_000_000_000;

/// Power draw of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Draw when on with nothing running; `None` if unknown.
    pub idle_milliwatts: Option<u32>,
    /// Draw with all CPUs busy; `None` if unknown.
    pub busy_milliwatts: Option<u32>,
    /// Draw when off; 0 if unknown.
    pub off_milliwatts: u32,
}

/// Draw per unit of computing power; less is better. Hosts with known computing power sort first, hosts with
/// unknown draw last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draw {
    /// Picowatts per MFLOPS.
    PerMflops(u64),
    /// Milliwatts per virtual CPU.
    PerCore(u64),
    Unknown,
}

impl Figures {
    /// Reads the capabilities of the host and its pool. Values that aren't numbers of watts, or exceed
    /// `MOST_WATTS`, count as unknown.
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

    /// Milliwatts saved while the host is off instead of idle.
    pub fn saved_milliwatts(&self) -> u32 {
        self.idle_milliwatts.unwrap_or(0).saturating_sub(self.off_milliwatts)
    }

    /// Busy draw (or idle draw if that is unknown) per MFLOPS, or per virtual CPU if the host's computing
    /// power is unknown.
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

/// Computing power of the host. Values that aren't numbers of MFLOPS within [`MOST_MFLOPS`] count as unknown.
fn mflops(host: &Host) -> Option<NonZeroU64> {
    let mflops: f64 = host.capabilities.get(MFLOPS)?.trim().parse().ok()?;
    let known = (0.0..=MOST_MFLOPS).contains(&mflops);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    known.then(|| mflops.round() as u64).and_then(NonZeroU64::new)
}

/// Whether the operator allows the host to be switched off.
pub fn may_be_off(host: &Host) -> bool {
    host.capabilities.get(SAVING).is_none_or(|saving| saving.trim() != NEVER)
}
