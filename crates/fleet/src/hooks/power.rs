//! Hooks that switch machines, for fleets that cannot do so by themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use leases::ids::HostId;
use serde::Deserialize;

use super::call::{Hooks, RunningHook, Subject};
use super::config::{HookConfig, HooksError, Moment};
use crate::{FleetError, HookedCall, OperationKey};

/// What is called when a machine is to be switched. Read by serde, so from TOML or JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// Names of environment variables of the service that programs get.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// The two hooks.
    pub hooks: PowerHooksConfig,
}

/// The two hooks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerHooksConfig {
    /// Returns when the machine has power; it may still boot then.
    pub on_power_on: HookConfig,
    /// Returns when the machine is off.
    pub on_power_off: HookConfig,
}

impl PowerConfig {
    /// The hooks by the moments that they are called at.
    pub fn by_moment(&self) -> BTreeMap<Moment, HookConfig> {
        let PowerHooksConfig { on_power_on, on_power_off } = &self.hooks;
        [(Moment::OnPowerOn, on_power_on.clone()), (Moment::OnPowerOff, on_power_off.clone())].into()
    }
}

/// Hooks that switch machines. Each must stand being called for what is done already.
#[derive(Debug)]
pub struct PowerHooks(Hooks);

impl PowerHooks {
    /// The hooks of that configuration.
    pub fn new(config: &PowerConfig) -> Result<Self, HooksError> {
        Hooks::new(&config.by_moment(), &config.pass_environment).map(Self)
    }

    /// Those that were called and have not answered.
    pub fn running_hooks(&self) -> Vec<RunningHook> {
        self.0.running_hooks()
    }

    /// Maximum duration of the hook of a call: zero unless it switches a host.
    pub fn time_for(&self, call: HookedCall) -> Duration {
        self.0.time_for(call)
    }

    /// Switches a host on, or off.
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
