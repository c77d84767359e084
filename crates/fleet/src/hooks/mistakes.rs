//! Checks a configuration of hooks without calling any hook.

use std::collections::BTreeMap;

use ambient::unusable_program;

use super::call::{can_be_passed_on, kind, value_of};
use super::config::{HookConfig, HooksConfig, HooksError, Moment};
use super::ledger::Ledger;
use super::power::PowerConfig;
use crate::state_file::StateLog;

impl HooksConfig {
    /// Errors in the configuration, and missing programs, secrets and variables. The state file is only read.
    pub fn mistakes(&self) -> Vec<HooksError> {
        let mut found = self.repeated_hosts();
        found.extend(self.wrong_subnets());
        found.extend(StateLog::new(&self.state_file).read::<Ledger>().err().map(HooksError::State));
        found.extend(mistakes(&self.hooks, &self.pass_environment));
        found
    }

    /// Programs, secrets and environment variables that hooks need and that are missing now.
    pub fn missing(&self) -> Vec<HooksError> {
        missing(&self.hooks, &self.pass_environment)
    }
}

impl PowerConfig {
    /// Errors in the configuration, and missing programs, secrets and variables.
    pub fn mistakes(&self) -> Vec<HooksError> {
        mistakes(&self.by_moment(), &self.pass_environment)
    }

    /// Programs, secrets and environment variables that hooks need and that are missing now.
    pub fn missing(&self) -> Vec<HooksError> {
        missing(&self.by_moment(), &self.pass_environment)
    }
}

fn mistakes(hooks: &BTreeMap<Moment, HookConfig>, pass_environment: &[String]) -> Vec<HooksError> {
    // Fails only if a provider was installed before, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let variables = pass_environment.iter().filter(|name| !can_be_passed_on(name));
    let mut found: Vec<HooksError> = variables.cloned().map(HooksError::Variable).collect();
    for (moment, hook) in hooks {
        found.extend(kind(*moment, hook).err());
        found.extend(hook.time_limit(*moment).err());
    }
    found.extend(missing(hooks, pass_environment));
    found
}

fn missing(hooks: &BTreeMap<Moment, HookConfig>, pass_environment: &[String]) -> Vec<HooksError> {
    let unset = |name: &&String| can_be_passed_on(name) && std::env::var_os(name).is_none();
    let mut found: Vec<HooksError> =
        pass_environment.iter().filter(unset).cloned().map(HooksError::Unset).collect();
    for (moment, hook) in hooks {
        let moment = *moment;
        let program = hook.exec.as_ref().and_then(|exec| exec.first());
        found.extend(program.and_then(|program| {
            let reason = unusable_program(program)?;
            Some(HooksError::Program { moment, program: program.clone(), reason })
        }));
        found.extend(hook.secret_header.as_ref().and_then(|secret| {
            let reason = value_of(secret).err()?.to_string();
            Some(HooksError::Secret { moment, path: secret.file.clone(), reason })
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_or_missing_is_a_mistake() {
        let text = r#"
            state_file = "/dev/null"
            hosts = [
                { id = 1, name = "a", vcpus = 1, memory_mib = 1 },
                { id = 2, name = "a", vcpus = 1, memory_mib = 1 },
                { id = 1, name = "b", vcpus = 1, memory_mib = 1 },
            ]
            pass_environment = ["ALLOT_HOST", "CARGO_PKG_NAME", "NO_SUCH_VARIABLE_HERE"]
            hooks.on_hold.exec = ["./no-such-program"]
            hooks.on_release = { exec = ["/etc/passwd", "x"], time_limit_seconds = 0 }
            hooks.on_fence.exec = ["no-such-program"]
            hooks.on_unfence.exec = ["sh", "-c", "true"]
            hooks.check.exec = ["/bin/sh"]
            hooks.on_start.webhook = "ftp://host"
            hooks.on_stop = { webhook = "http://host/", secret_header = { name = "X", file = "/no/secret" } }
            hooks.on_delete = { webhook = "http://host/", secret_header = { name = "a b", file = "/dev/null" } }
            [[networks]]
            id = "n"
            subnets = [{ id = "s", cidr = "10.0.0.0/8" }, { id = "t", cidr = "10.0.0.0" }]
        "#;
        let config: HooksConfig = toml::from_str(text).expect("a configuration");
        let found: Vec<(String, String)> =
            config.mistakes().iter().map(|error| (error.path().join("/"), error.to_string())).collect();
        let expected = [
            ("hosts/1", "hosts: a occurs twice"),
            ("hosts/2", "hosts: id 1 occurs twice"),
            ("networks/0/subnets/1/cidr", "networks: subnet t: "),
            ("state_file", "state_file: /dev/null is not a regular file"),
            ("pass_environment", "pass_environment: \"ALLOT_HOST\""),
            ("pass_environment", "pass_environment: NO_SUCH_VARIABLE_HERE is not set"),
            ("hooks/on_start/webhook", "hooks.on_start: ftp://host/: "),
            ("hooks/on_delete/webhook", "hooks.on_delete: secret_header: \"a b\" is not"),
            ("hooks/on_fence/exec", "hooks.on_fence: no-such-program: not found in PATH"),
            ("hooks/on_hold/exec", "hooks.on_hold: ./no-such-program: no such file"),
            ("hooks/on_release/exec", "hooks.on_release: /etc/passwd: not executable"),
            ("hooks/on_release/time_limit_seconds", "hooks.on_release: time_limit_seconds must be"),
            ("hooks/on_stop/secret_header", "hooks.on_stop: secret_header: /no/secret: "),
        ];
        for (path, text) in expected {
            let named = |(at, error): &(String, String)| *at == path && error.starts_with(text);
            assert!(found.iter().any(named), "{path}: {text}: {found:?}");
        }
        assert_eq!(found.len(), expected.len(), "{found:?}");
    }
}
