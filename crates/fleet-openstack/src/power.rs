//! Switching hosts on and off. Nova can't do that, so hooks do, and Nova's compute services record which
//! hosts must be off.
//!
//! The reason for disabling a compute service is written before its host is switched off. As long as Nova
//! considers the service up, it waits a minute for it on every change of this kind. So no change is made
//! after the host was switched off: it counts as off once Nova reports its service as down.

use fleet::hooks::PowerHooks;
use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::HostId;
use leases::plan::Place;

use crate::OpenStackFleet;
use crate::closure::Closure;
use crate::pools;
use crate::sight::is_off;

type Answer = Result<Outcome, FleetError>;

impl OpenStackFleet {
    /// Sets the hooks that switch hosts.
    #[must_use]
    pub fn with_power(self, hooks: PowerHooks) -> Self {
        Self { power: Some(hooks), ..self }
    }

    pub(crate) async fn switch_off(&self, host: HostId, key: &OperationKey) -> Answer {
        let hooks = self.power_hooks()?;
        let look = self.look_at(host).await?;
        if is_off(&look.service) || !matches!(look.place, Some(Place::Fenced { .. })) {
            self.memory().switched_off.remove(&host);
            return Ok(Outcome::Done);
        }
        if look.has_slots() || !self.others(&look, |_| false).await?.is_empty() {
            return Err(FleetError::Refused(format!("host {} is in use", look.host())));
        }
        if pools::closure(&look.service) != Some(Closure::Saving) {
            self.close(&look, Closure::Saving).await?;
            // The host might have been in the free pool since it was last off or being switched off.
            self.memory().switched_off.remove(&host);
        }
        if !self.memory().switched_off.contains(&host) {
            hooks.switch(host, &look.names.hypervisor, false, key).await?;
            self.memory().switched_off.insert(host);
        }
        Ok(Outcome::Pending)
    }

    pub(crate) async fn switch_on(&self, host: HostId, key: &OperationKey) -> Answer {
        let hooks = self.power_hooks()?;
        let look = self.look_at(host).await?;
        self.memory().switched_off.remove(&host);
        hooks.switch(host, &look.names.hypervisor, true, key).await?;
        match pools::closure(&look.service) {
            Some(Closure::Saving) => self.close(&look, Closure::Changing).await,
            _ => Ok(Outcome::Done),
        }
    }

    fn power_hooks(&self) -> Result<&PowerHooks, FleetError> {
        self.power.as_ref().ok_or_else(|| FleetError::Refused("Nova cannot switch hosts".to_owned()))
    }
}
