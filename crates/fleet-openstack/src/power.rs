//! Switching hosts. Nova cannot do so: hooks do, and Nova's compute service says which hosts are off.

use fleet::hooks::PowerHooks;
use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::HostId;
use leases::plan::Place;

use crate::closure::Closure;
use crate::pools::{self, Pool};
use crate::{Look, OpenStackFleet};

type Answer = Result<Outcome, FleetError>;

/// Refuses a host that is off. Nova takes it for up for a moment after.
pub(crate) fn refuse_dark(look: &Look) -> Result<(), FleetError> {
    if pools::closure(&look.service) == Some(Closure::Off) {
        return Err(FleetError::Unavailable(format!("host {} is switched off", look.host())));
    }
    Ok(())
}

impl OpenStackFleet {
    /// The same, whose hosts these hooks switch.
    #[must_use]
    pub fn with_power(self, hooks: PowerHooks) -> Self {
        Self { power: Some(hooks), ..self }
    }

    pub(crate) async fn switch_off(&self, host: HostId, key: &OperationKey) -> Answer {
        let hooks = self.power_hooks()?;
        let look = self.look_at(host).await?;
        let off = pools::closure(&look.service) == Some(Closure::Off);
        if off || !matches!(look.place, Some(Place::Fenced { .. })) {
            return Ok(Outcome::Done);
        }
        let slots =
            look.aggregates().iter().filter_map(Pool::of).any(|pool| pool.slots(look.host()).is_some());
        if slots || !self.others(&look, |_| false).await?.is_empty() {
            return Err(FleetError::Refused(format!("host {} is in use", look.host())));
        }
        hooks.switch(host, &look.names.hypervisor, false, key).await?;
        self.close(&look, Closure::Off).await
    }

    pub(crate) async fn switch_on(&self, host: HostId, key: &OperationKey) -> Answer {
        let hooks = self.power_hooks()?;
        let look = self.look_at(host).await?;
        hooks.switch(host, &look.names.hypervisor, true, key).await?;
        match pools::closure(&look.service) {
            Some(Closure::Off) => self.close(&look, Closure::Changing).await,
            _ => Ok(Outcome::Done),
        }
    }

    fn power_hooks(&self) -> Result<&PowerHooks, FleetError> {
        self.power.as_ref().ok_or_else(|| FleetError::Refused("Nova cannot switch hosts".to_owned()))
    }
}
