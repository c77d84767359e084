//! Power of simulated machines. Switching takes effect at once; a boot takes time and can fail.

use jiff::Timestamp;
use leases::host::Health;
use leases::ids::HostId;
use leases::plan::Powered;

use super::state::{Event, Host, Rules, State};
use super::timing::later;
use crate::site::Site;
use crate::{FleetError, Outcome};

impl Host {
    /// A machine that is off or is booting counts as failed.
    pub(super) fn health(&self) -> Health {
        if self.supply.dark() { Health::Failed } else { self.health }
    }

    pub(super) fn powered(&self) -> Powered {
        if self.supply.off_since.is_some() { Powered::Off } else { Powered::On }
    }
}

impl State {
    /// Ends the boot that is due at this time.
    pub(super) fn boot(&mut self, id: HostId, at: Timestamp) {
        let Some(host) = self.hosts.get_mut(id) else { return };
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
