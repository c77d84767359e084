//! Configuration of `allot serve`, from flags, the environment, a file and defaults, in this order of
//! precedence.
//!
//! All settings are in one [`table`](table::TABLE). Each has a place in the [`Configuration`], which contains
//! the settings of the service's parts as these define them, with their defaults. Parsing, help and the
//! tables in `docs/reference/configuration.md` are derived from the table. A value from any source is text for
//! the same parser, and an error names the place where the value was written.

mod choice;
mod configuration;
pub(crate) mod document;
mod error;
mod file;
mod notation;
mod rules;
mod secrets;
mod setting;
mod table;
mod value;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api::v1::SettingOf;
use clap::{Arg, ArgMatches, Command};

use error::Origin;
use file::FileValue;
use value::Value;

pub(crate) use choice::{AuthChoice, DatabaseChoice, FenceChoice, FleetChoice, LogFormat, TimingChoice};
pub(crate) use configuration::{CloudLogin, Configuration, Energy, Tls};
pub(crate) use error::{ConfigError, Mistake};
pub(crate) use file::UNRESOLVED;
pub(crate) use secrets::without_passwords;
pub(crate) use setting::Setting;
pub(crate) use table::TABLE;
pub(crate) use values::Values;

impl Values {
    /// Keys of the settings that differ in `new`.
    pub(crate) fn changed(&self, new: &Self) -> Vec<&'static str> {
        let defaults = Configuration::default();
        let text =
            |values: &Self, setting: &Setting| values.given.get(setting.key).map(|(text, _)| text.clone());
        let text =
            |values, setting: &Setting| text(values, setting).unwrap_or_else(|| setting.text(&defaults));
        let changed = TABLE.iter().filter(|setting| text(self, setting) != text(new, setting));
        changed.map(|setting| setting.key).collect()
    }

    /// All settings with their values, without secrets.
    fn shown(&self) -> Vec<SettingOf> {
        let defaults = Configuration::default();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let shown = |setting: &Setting| {
            let default = setting.text(&defaults);
            let given = self.given.get(setting.key);
            SettingOf {
                key: setting.key.to_owned(),
                heading: setting.heading().to_owned(),
                value: some(&secrets::without_secrets(setting, given.map_or(&default, |(text, _)| text))),
                default: some(&default),
                source: given.map_or("default", |(_, origin)| origin.kind()).to_owned(),
                description: setting.help.trim().to_owned(),
            }
        };
        TABLE.iter().map(shown).collect()
    }
}

/// Parses a database in the notation of the setting `database`.
pub(crate) fn database(text: &str) -> Result<DatabaseChoice, String> {
    DatabaseChoice::parse(text)
}

/// Adds a flag for every setting, and one for the configuration file, to a command.
pub(crate) fn flags(command: Command) -> Command {
    flags_where(command, |_| true)
}

/// Like [`flags`], for some settings only.
pub(crate) fn flags_of(command: Command, keys: &[&str]) -> Command {
    flags_where(command, |setting| keys.contains(&setting.key))
}

fn flags_where(mut command: Command, wanted: impl Fn(&Setting) -> bool) -> Command {
    let file = Arg::new("config").long("config").value_name("FILE");
    command = command.arg(file.help("Read settings from this file (TOML) [env: ALLOT_CONFIG]"));
    let defaults = Configuration::default();
    for setting in TABLE.iter().filter(|setting| wanted(setting)) {
        let default = match &*setting.text(&defaults) {
            "" => String::new(),
            default => format!(" [default: {default}]"),
        };
        let help = format!("{}{default} [env: {}]", setting.help.trim(), setting.variable());
        let flag = Arg::new(setting.key).long(setting.flag()).value_name(setting.value_name).help(help);
        command = command.arg(flag.help_heading(setting.heading()));
    }
    command
}

/// Loads the configuration from the command line, the environment, the file and defaults.
pub(crate) fn load(
    matches: &ArgMatches,
    environment: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> Result<Configuration, ConfigError> {
    Configuration::of(&values(matches, environment))
}

/// Like [`load`], but returns values as text. A file that can't be read is a mistake among others.
pub(crate) fn values(
    matches: &ArgMatches,
    environment: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> Values {
    let given: BTreeMap<&'static str, String> = TABLE
        .iter()
        .filter_map(|setting| {
            // A command can have flags for only some of the settings.
            let given = matches.try_get_one::<String>(setting.key).ok()??;
            Some((setting.key, given.clone()))
        })
        .collect();
    let path = match matches.get_one::<String>("config") {
        Some(path) => Some(PathBuf::from(path)),
        None => environment("ALLOT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from),
    };
    let text = path.as_ref().map_or_else(|| Ok(String::new()), std::fs::read_to_string);
    let path = path.unwrap_or_default();
    let mut values = merge(&given, environment, &path, text.as_deref().unwrap_or_default());
    let unreadable = text.err().map(|error| Mistake::Unreadable { path, error: error.to_string() });
    values.mistakes.extend(unreadable);
    values
}

impl Configuration {
    /// Configuration for a command that sets values by key instead of flags. Other settings have their
    /// defaults.
    pub(crate) fn given<'a>(
        settings: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Result<Self, ConfigError> {
        let settings: BTreeMap<&str, String> = settings.into_iter().collect();
        let flag = |setting: &Setting| Some((setting.key, settings.get(setting.key)?.clone()));
        let flags = TABLE.iter().filter_map(flag).collect();
        Self::of(&merge(&flags, &|_| None, Path::new(""), ""))
    }

    /// Parses the values. The error contains all mistakes.
    pub(crate) fn of(values: &Values) -> Result<Self, ConfigError> {
        let (configuration, mistakes) = Self::read(values);
        if mistakes.is_empty() { Ok(configuration) } else { Err(ConfigError::Mistakes(mistakes)) }
    }

    /// Returns the configuration, with defaults in place of invalid values, and all mistakes.
    pub(crate) fn read(values: &Values) -> (Self, Vec<Mistake>) {
        let mut configuration = Self::default();
        let mut mistakes = values.mistakes.clone();
        for setting in TABLE {
            let Some((text, origin)) = values.given.get(setting.key) else { continue };
            if let Err(reason) = (setting.read)(&mut configuration, text) {
                let value = match setting.value_name {
                    // Paths of web hooks are often secret.
                    "URL" => secrets::without_secrets(setting, text),
                    _ => secrets::without_passwords(text),
                };
                mistakes.push(Mistake::Value { key: setting.key, origin: origin.clone(), value, reason });
            }
        }
        configuration.server.settings = values.shown();
        (configuration, mistakes)
    }
}

/// Merges all sources. Flags take precedence over the environment, and the environment over the file.
pub(crate) fn merge(
    flags: &BTreeMap<&'static str, String>,
    environment: &dyn Fn(&str) -> Option<std::ffi::OsString>,
    path: &Path,
    text: &str,
) -> Values {
    let (of_file, mistakes) = file::read(path, text);
    let mut values = Values { mistakes, ..Values::default() };
    for FileValue { key, text, line } in of_file {
        let origin = Origin::File { path: path.to_owned(), line, key: key.to_owned() };
        values.given.insert(key, (text, origin));
    }
    for setting in TABLE {
        let variable = setting.variable();
        match environment(&variable).map(std::ffi::OsString::into_string) {
            Some(Ok(text)) => _ = values.given.insert(setting.key, (text, Origin::Variable(variable))),
            Some(Err(_)) => values.mistakes.push(Mistake::NotText { key: setting.key, variable }),
            None => {}
        }
        if let Some(text) = flags.get(setting.key) {
            values.given.insert(setting.key, (text.clone(), Origin::Flag(setting.flag())));
        }
    }
    values
}

/// Returns environment variables that look like settings but aren't. They are probably misspelled, so a limit
/// that they should set has no effect.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    /// Variables of the client's commands and the chores, and the one for the configuration file.
    const OTHERS: [&str; 14] = [
        "ALLOT_CONFIG",
        "ALLOT_URL",
        "ALLOT_TOKEN",
        "ALLOT_USER",
        "ALLOT_PASSWORD",
        "ALLOT_PROJECT",
        "ALLOT_NO_INPUT",
        "ALLOT_CA_FILE",
        "ALLOT_CLIENT_CERTIFICATE",
        "ALLOT_SHARED",
        "ALLOT_SQLITE_URL",
        "ALLOT_POSTGRES_URL",
        "ALLOT_BLESS",
        "ALLOT_OURS",
    ];
    let known = |name: &String| {
        OTHERS.contains(&name.as_str()) || TABLE.iter().any(|setting| setting.variable() == *name)
    };
    names.filter(|name| name.starts_with("ALLOT_") && !known(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use leases::project::ProjectId;

    use super::*;

    fn merged(
        flags: &[(&'static str, &str)],
        variables: &[(&str, &str)],
        file: &str,
    ) -> Result<Configuration, String> {
        let flags = flags.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        let variables: BTreeMap<String, OsString> =
            variables.iter().map(|(name, text)| ((*name).to_owned(), OsString::from(text))).collect();
        let environment = |name: &str| variables.get(name).cloned();
        let values = merge(&flags, &environment, Path::new("allot.toml"), file);
        Configuration::of(&values).map_err(|error| error.to_string())
    }

    fn port(flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str) -> u16 {
        merged(flags, variables, file).expect("a configuration").server.listen.port()
    }

    #[test]
    fn flags_go_before_the_environment_before_the_file_before_defaults() {
        let (flag, variable) = ([("listen", "127.0.0.1:1")], [("ALLOT_LISTEN", "127.0.0.1:2")]);
        let file = "listen = \"127.0.0.1:3\"";
        assert_eq!(port(&flag, &variable, file), 1);
        assert_eq!(port(&[], &variable, file), 2);
        assert_eq!(port(&[], &[], file), 3);
        assert_eq!(port(&[], &[], ""), 1234);
    }

    #[test]
    fn a_service_listens_on_loopback_by_default() {
        assert!(merged(&[], &[], "").expect("a configuration").server.listen.ip().is_loopback());
    }

    #[test]
    fn errors_name_the_place_where_the_value_was_written() {
        let cases: [(&str, &str); 7] = [
            ("\n[log]\nformat = \"xml\"\n", "allot.toml, line 3, log.format: invalid value \"xml\""),
            ("listn = 1", "allot.toml, line 1: there is no setting listn; did you mean listen?"),
            ("unresolved = []", "allot.toml, line 1, unresolved: `allot import blazar-conf` wrote this"),
            ("[leases]\n\ngrace_time = 1", "allot.toml, line 3: there is no setting leases.grace_time"),
            ("listen = \n", "allot.toml, line 1: "),
            ("[listen]\nport = 1", "allot.toml, line 1, listen: this is a value, not a section"),
            ("log = 3", "allot.toml, line 1, log: this is a section, not a value"),
        ];
        for (file, wanted) in cases {
            let error = merged(&[], &[], file).expect_err(file);
            assert!(error.starts_with(wanted), "{file}: {error}");
        }
        let error = merged(&[("listen", "here")], &[], "").expect_err("no address");
        assert!(error.starts_with("--listen: invalid value \"here\""), "{error}");
        let error = merged(&[], &[("ALLOT_LOG_FORMAT", "xml")], "").expect_err("no format");
        assert!(error.starts_with("environment variable ALLOT_LOG_FORMAT"), "{error}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let file = "listn = 1\n[log]\nformat = \"xml\"\n[leases]\ngrace = \"soon\"\n[log.level]\nx = 1\n";
        let error = merged(&[], &[("ALLOT_LIMITS_PAGE", "many")], file).expect_err("five mistakes");
        let lines: Vec<&str> = error.lines().collect();
        let places = ["line 1", "line 6, log.level", "line 3, log.format", "ALLOT_LIMITS_PAGE"];
        assert!(places.iter().all(|place| lines.iter().any(|line| line.contains(place))), "{error}");
    }

    #[test]
    fn a_mistake_leaves_its_setting_unknown_and_no_other() {
        let read = |file: &str| {
            let values = merge(&BTreeMap::new(), &|_| None, Path::new("allot.toml"), file);
            Configuration::read(&values)
        };
        let affected = |file: &str, name: &str| read(file).1.iter().any(|mistake| mistake.affects(name));
        for (file, affects, spares) in [
            ("[log]\nlevel = \"loud\"", "log.level", "log.format"),
            ("[tls]\nkey = { a = 1 }", "tls", "listen"),
            ("tls = 1", "tls.key", "log.level"),
            ("databse = \"memory\"", "database", "auth"),
        ] {
            assert!(affected(file, affects) && !affected(file, spares), "{file}");
        }
        assert!(affected("listen = ", "database"), "nothing is known of a file with wrong syntax");
        let (configuration, mistakes) = read("listen = \"here\"\n[limits]\npage = 7\n");
        assert_eq!((configuration.server.limits.page, mistakes.len()), (7, 1));
    }

    #[test]
    fn values_that_nothing_would_work_with_are_refused_with_what_is_allowed() {
        let cases = [
            ("log.level", "loud", "write error, warn, info"),
            ("notifications.timeout", "0s", "write a duration from 1s to 1m"),
            ("notifications.timeout", "5m", "write a duration from 1s to 1m"),
            ("limits.body_bytes", "0", "write a number of at least 1024"),
            ("limits.step_time", "0s", "write a duration of at least 1s"),
            ("leases.max_duration", "0s", "write a duration of at least 1s"),
            ("limits.steps_at_once", "0", "write a number of at least 1"),
            ("public_url", "allot.example.org", "write an address that begins with http:// or https://"),
            ("openstack.free_pool", "", "write a name"),
        ];
        for (key, value, wanted) in cases {
            let error = merged(&[(key, value)], &[], "").expect_err(key);
            assert!(error.starts_with("--") && error.contains(wanted), "{key}: {error}");
        }
        let secret = merged(&[("notifications.url", "htps://h/hunter2")], &[], "").expect_err("no address");
        assert!(!secret.contains("hunter2") && secret.contains("htps://h/..."), "{secret}");
    }

    #[test]
    fn numbers_and_switches_need_no_quotation_marks() {
        let file =
            "[simulated]\nracks = 3\nbackground_load = true\n[leases]\nexempt_projects = [\"a\", \"b\"]";
        let configuration = merged(&[], &[], file).expect("a configuration");
        assert_eq!(configuration.simulated.racks, 3);
        assert!(configuration.simulated.background_load);
        let exempt = configuration.service.rules.enforcement.exempt_projects;
        assert_eq!(exempt, ["a", "b"].map(|project| ProjectId(project.to_owned())).into());
    }

    #[test]
    fn values_by_name_can_be_a_table_in_the_file() {
        let file = "[leases.max_duration]\ndefault = \"14d\"\n\"pool:gpu large\" = \"7d\"\n\
                    [usage.price_host_hour]\n\"project:web\" = 0.25\n";
        let read = merged(&[], &[], file).expect("a configuration").service;
        let flag = [("leases.max_duration", "14d,pool:gpu large=7d")];
        let variable = [("ALLOT_USAGE_PRICE_HOST_HOUR", "project:web=0.25")];
        let same = merged(&flag, &variable, "").expect("the same").service;
        assert_eq!(read.rules.enforcement.max_lease_duration, same.rules.enforcement.max_lease_duration);
        assert_eq!(read.prices, same.prices);
        for (file, place) in [
            ("\n[leases.max_duration.pool]\ngpu = \"7d\"\n", "line 2, leases.max_duration.pool"),
            ("\n[leases.max_duration]\n\"pool:a,b\" = \"7d\"\n", "line 3, leases.max_duration.pool:a,b"),
        ] {
            let error = merged(&[], &[], file).expect_err(file);
            assert!(error.starts_with(&format!("allot.toml, {place}: write text or a number")), "{error}");
        }
        let wrong = "[usage.price_host_hour]\n\"pool:a\" = \"dear\"\n\"pool:b\" = 1\n\"host:c\" = 2\n";
        let error = merged(&[], &[], wrong).expect_err("two wrong prices");
        for mistake in [
            "allot.toml, line 2, usage.price_host_hour.pool:a: invalid value \"dear\": ",
            "allot.toml, line 4, usage.price_host_hour.host:c: invalid value \"2\": expected project:ID",
        ] {
            assert!(error.lines().any(|line| line.starts_with(mistake)), "{error}");
        }
        assert_eq!(error.lines().count(), 2, "{error}");
    }

    #[test]
    fn settings_are_shown_with_where_they_were_found_and_without_secrets() {
        let file = "database = \"postgres://allot:hunter2@db1,db2/allot?password=hunter2\"\n\
                    [notifications]\nurl = \"https://hooks.example.org:8443/services/hunter2?key=hunter2@x\"\n\
                    [placement]\nclusters = \"a=rapi:ann:hunter2@gnt:5080, b=file:/var/lib/b.data\"";
        let variables = [("ALLOT_ENFORCEMENT_URL", "http://ann:hunter2@policy/hunter2")];
        let shown = merged(&[("limits.page", "50")], &variables, file).expect("a configuration");
        let shown = shown.server.settings;
        assert_eq!(shown.len(), TABLE.len());
        let of = |key: &str| {
            let found = shown.iter().find(|setting| setting.key == key).expect(key);
            (found.value.as_deref(), &*found.source)
        };
        assert_eq!(of("limits.page"), (Some("50"), "flag"));
        assert_eq!(of("enforcement.url"), (Some("http://policy/..."), "environment"));
        assert_eq!(of("notifications.url"), (Some("https://hooks.example.org:8443/..."), "file"));
        assert_eq!(of("placement.clusters"), (Some("a=rapi:..., b=file:/var/lib/b.data"), "file"));
        assert_eq!(of("leases.max_duration"), (None, "default"));
        assert_eq!(of("database"), (Some("postgres://db1:5432,db2:5432/allot"), "file"));
        assert!(!format!("{shown:?}").contains("hunter2"), "{shown:?}");
    }

    #[test]
    fn no_setting_that_may_be_an_address_is_shown_with_what_is_secret_of_it() {
        let secret = "https://ann:hunter2@host.example.org/hunter2?x=hunter2#hunter2";
        for setting in TABLE {
            let shown = secrets::without_secrets(setting, secret);
            assert!(!shown.contains("hunter2"), "{}: {shown}", setting.key);
        }
    }

    #[test]
    fn misspelt_variables_are_noticed() {
        let names = ["ALLOT_LISTEN", "ALLOT_LISTN", "ALLOT_URL", "HOME"].map(str::to_owned);
        assert_eq!(unknown_variables(names.into_iter()), ["ALLOT_LISTN"]);
    }

    #[test]
    fn names_of_settings_are_unique_in_every_form() {
        for form in [Setting::flag, Setting::variable] {
            let names: std::collections::BTreeSet<String> = TABLE.iter().map(form).collect();
            assert_eq!(names.len(), TABLE.len());
        }
    }
}
