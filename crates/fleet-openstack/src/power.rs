//! Switching hosts. Nova cannot do so: hooks do, and Nova's compute services say which hosts are to be off.
//!
//! Why a compute service is disabled is written before its host is switched off. While Nova takes the service for up it waits a
//! minute for it at each change of the kind, so afterwards nothing is written: the host is off when Nova says that its service
//! is down.

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
    /// The same, whose hosts these hooks switch.
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
            // Once it was off, or was to be, it may have been in the free pool since.
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
