//! The power of simulated machines: switching them takes effect at once, booting takes time, and may fail.

use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::HostId;
use leases::plan::Powered;
use serde::{Deserialize, Serialize};

use super::state::{Event, Host, Rules, State};
use super::timing::later;
use crate::site::Site;
use crate::{FleetError, Outcome};

/// The power of a machine, and what it has saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Supply {
    /// Since when it is off, if it is.
    off_since: Option<Timestamp>,
    /// When it has booted, if it is booting; never if it will not.
    boots_until: Option<Timestamp>,
    /// It will not boot any more until somebody repairs it.
    broken: bool,
    /// How long it was off until it was switched on last, milliseconds.
    off_ms: i64,
}

impl Supply {
    fn dark(&self) -> bool {
        self.off_since.is_some() || self.boots_until.is_some()
    }

    /// From now on it boots as it should; so it does now, if it was trying.
    pub(super) fn repair(&mut self) {
        if self.boots_until == Some(Timestamp::MAX) {
            self.boots_until = None;
        }
        self.broken = false;
    }

    /// It does not boot any more.
    pub(super) fn break_boots(&mut self) {
        self.broken = true;
    }

    /// How long it was off all together, until then.
    pub(super) fn off_for(&self, now: Timestamp) -> SignedDuration {
        let now_off = self.off_since.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        SignedDuration::from_millis(self.off_ms).saturating_add(now_off)
    }
}

impl Host {
    /// Whether it works: a machine that is off, or has not booted yet, does not.
    pub(super) fn health(&self) -> Health {
        if self.supply.dark() { Health::Failed } else { self.health }
    }

    pub(super) fn powered(&self) -> Powered {
        if self.supply.off_since.is_some() { Powered::Off } else { Powered::On }
    }
}

impl State {
    /// A machine that has been booting until then works.
    pub(super) fn boot(&mut self, id: HostId, at: Timestamp) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        if host.supply.boots_until == Some(at) {
            host.supply.boots_until = None;
        }
    }

    pub(super) fn power_on(
        &mut self,
        rules: &Rules,
        id: HostId,
        now: Timestamp,
    ) -> Result<Outcome, FleetError> {
        let takes = rules.timing.power_on.draw(&mut self.draw());
        let supply = &mut self.known(id)?.supply;
        let Some(since) = supply.off_since.take() else { return Ok(Outcome::Done) };
        let off_ms = i64::try_from(now.duration_since(since).as_millis()).unwrap_or(i64::MAX);
        supply.off_ms = supply.off_ms.saturating_add(off_ms);
        if supply.broken {
            supply.boots_until = Some(Timestamp::MAX);
        } else if !takes.is_zero() {
            let boots_until = later(now, takes);
            supply.boots_until = Some(boots_until);
            self.schedule(boots_until, Event::Boots { host: id });
        }
        Ok(Outcome::Done)
    }

    pub(super) fn power_off(&mut self, id: HostId, now: Timestamp) -> Result<Outcome, FleetError> {
        let host = self.known(id)?;
        if !matches!(host.site, Site::Fenced { .. }) || host.supply.off_since.is_some() {
            return Ok(Outcome::Done);
        }
        if host.crowd() > 0 || !host.slots.is_empty() {
            return Err(FleetError::Refused(format!("host {id} is in use")));
        }
        host.supply.boots_until = None;
        host.supply.off_since = Some(now);
        Ok(Outcome::Done)
    }
}
