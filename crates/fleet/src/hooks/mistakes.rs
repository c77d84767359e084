//! Checks a configuration of hooks without calling any.

use std::collections::BTreeMap;

use ambient::unusable_program;

use super::call::Hooks;
use super::config::{HookConfig, HooksConfig, HooksError, Moment};
use super::power::PowerConfig;

impl HooksConfig {
    /// Mistakes in the configuration, and programs that can't be started. The state file isn't opened.
    pub fn mistakes(&self) -> Vec<HooksError> {
        let mut found: Vec<HooksError> = self.machines().err().into_iter().collect();
        found.extend(self.networks().err());
        found.extend(mistakes(&self.hooks, &self.pass_environment));
        found
    }
}

impl PowerConfig {
    /// The same for hooks that switch machines.
    pub fn mistakes(&self) -> Vec<HooksError> {
        mistakes(&self.by_moment(), &self.pass_environment)
    }
}

fn mistakes(hooks: &BTreeMap<Moment, HookConfig>, pass_environment: &[String]) -> Vec<HooksError> {
    let mut found: Vec<HooksError> =
        Hooks::new(&BTreeMap::new(), pass_environment).err().into_iter().collect();
    for (moment, hook) in hooks {
        found.extend(Hooks::new(&BTreeMap::from([(*moment, hook.clone())]), &[]).err());
    }
    found.extend(unusable_programs(hooks));
    found
}

/// Programs of hooks that can't be started.
pub fn unusable_programs(hooks: &BTreeMap<Moment, HookConfig>) -> Vec<HooksError> {
    let programs = hooks.iter().filter_map(|(moment, hook)| Some((*moment, hook.exec.as_ref()?.first()?)));
    let unusable = programs.filter_map(|(moment, program)| {
        let reason = unusable_program(program)?;
        Some(HooksError::Program { moment, program: program.clone(), reason })
    });
    unusable.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_cannot_be_started_are_mistakes() {
        let text = r#"
            state_file = "unused"
            hosts = []
            pass_environment = ["ALLOT_HOST"]
            hooks.on_hold.exec = ["./no-such-program"]
            hooks.on_release.exec = ["/etc/passwd", "x"]
            hooks.on_fence.exec = ["no-such-program"]
            hooks.on_unfence.exec = ["sh", "-c", "true"]
            hooks.check.exec = ["/bin/sh"]
            hooks.on_start.webhook = "ftp://host"
        "#;
        let config: HooksConfig = toml::from_str(text).expect("a configuration");
        let found: Vec<String> = config.mistakes().iter().map(ToString::to_string).collect();
        let expected = [
            "pass_environment: \"ALLOT_HOST\"",
            "hooks.on_start: ftp://host/: ",
            "hooks.on_fence: no-such-program: not found in PATH",
            "hooks.on_hold: ./no-such-program: no such file",
            "hooks.on_release: /etc/passwd: not executable",
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(expected.iter().all(|part| found.iter().any(|text| text.starts_with(part))), "{found:?}");
    }
}
