//! Hooks that switch hosts, for fleets without power control of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use leases::ids::HostId;
use serde::Deserialize;

use super::call::{Hooks, RunningHook, Subject};
use super::config::{HookConfig, HooksError, Moment};
use crate::{FleetError, HookedCall, OperationKey};

/// Hooks that switch hosts. Deserialized from TOML or JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// Names of the service's environment variables to pass to programs.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    pub hooks: PowerHooksConfig,
}

/// The two required hooks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerHooksConfig {
    /// Returns once the machine has power, which can be before it has booted.
    pub on_power_on: HookConfig,
    /// Returns once the machine is off.
    pub on_power_off: HookConfig,
}

impl PowerConfig {
    pub fn by_moment(&self) -> BTreeMap<Moment, HookConfig> {
        let PowerHooksConfig { on_power_on, on_power_off } = &self.hooks;
        [(Moment::OnPowerOn, on_power_on.clone()), (Moment::OnPowerOff, on_power_off.clone())].into()
    }
}

/// Switches hosts by calling hooks. Each hook must accept being called for work that is already done.
#[derive(Debug)]
pub struct PowerHooks(Hooks);

impl PowerHooks {
    pub fn new(config: &PowerConfig) -> Result<Self, HooksError> {
        Hooks::new(&config.by_moment(), &config.pass_environment).map(Self)
    }

    /// Hooks that were called and haven't returned.
    pub fn running_hooks(&self) -> Vec<RunningHook> {
        self.0.running_hooks()
    }

    /// Maximum duration of the hook of a call: zero unless it switches a host.
    pub fn time_for(&self, call: HookedCall) -> Duration {
        self.0.time_for(call)
    }

    pub async fn switch(
        &self,
        host: HostId,
        name: &str,
        on: bool,
        key: &OperationKey,
    ) -> Result<(), FleetError> {
        let moment = if on { Moment::OnPowerOn } else { Moment::OnPowerOff };
        let subject = Subject { host: Some(host.0), host_name: Some(name.to_owned()), ..Subject::default() };
        self.0.call(moment, &subject.under(key)).await.map(drop)
    }
}
