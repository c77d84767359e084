//! Settings of ours from a `blazar.conf`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use leases::text::{counted, escaped, quoted};
use server::RateLimit;
use service::Settings;
use thiserror::Error;
use toml::Value;

use super::ini::{self, Given, SyntaxError};
use super::options::{self, Becomes, DURATION, EXTERNAL, Kind, Known, Use};
use crate::config::TABLE;
use crate::nearest::nearest;

/// Why there are no settings. Nothing that is secret is quoted.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Refused {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("line {line}, {option}: {reason}")]
    Value { line: usize, option: String, reason: String },
}

/// A setting of ours.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    value: Value,
    /// Where it is from.
    origin: String,
}

/// An option that has become no setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    line: usize,
    option: String,
    what: String,
}

/// What becomes of a file.
#[derive(Debug, Default)]
pub(super) struct Translation {
    settings: BTreeMap<&'static str, Setting>,
    notes: Vec<Note>,
    /// Options that Blazar does not know.
    pub(super) unknown: Vec<Note>,
}

/// The settings that a service has which is to do what a Blazar with that file did.
///
/// # Errors
///
/// If it is no such file, or an option that becomes a setting has a value that it cannot have.
pub(super) fn translate(text: &str) -> Result<Translation, Refused> {
    let given = ini::parse(text)?;
    let file = File::of(&given);
    let mut translation = Translation::default();
    for given in file.0.values() {
        match options::find(&given.section, &given.name) {
            Some(known) => translation.take(&file, given, known)?,
            None => translation.unknown.push(unknown(given)),
        }
    }
    translation.combine(&file)?;
    translation.notes.sort_by_key(|note| note.line);
    translation.unknown.sort_by_key(|note| note.line);
    Ok(translation)
}

/// The options of a file. As Blazar does, it takes the last of several of the same name.
struct File<'a>(BTreeMap<(&'a str, &'a str), &'a Given>);

impl<'a> File<'a> {
    fn of(given: &'a [Given]) -> Self {
        Self(given.iter().map(|given| ((given.section.as_str(), given.name.as_str()), given)).collect())
    }

    /// None if it is not there, or nothing.
    fn given(&self, section: &str, name: &str) -> Option<&'a Given> {
        self.0.get(&(section, name)).copied().filter(|given| !given.value.is_empty())
    }

    fn get(&self, section: &str, name: &str) -> Result<Option<String>, Refused> {
        self.given(section, name).map(plain).transpose()
    }

    /// Whether notifications are published on a message bus.
    fn publishes(&self) -> Result<bool, Refused> {
        let drivers = list(&self.get("oslo_messaging_notifications", "driver")?.unwrap_or_default());
        Ok(drivers.iter().any(|driver| ["messaging", "messagingv2"].contains(&driver.as_str())))
    }

    /// Whether Nova's notifications are heard.
    fn hears(&self) -> Result<bool, Refused> {
        Ok(self.get("physical:host", "enable_notification_monitor")?.is_some_and(|text| same(&text, "true")))
    }

    /// Why what is only for that is not taken over.
    fn not_used_for(&self, used: Use) -> Result<Option<&'static str>, Refused> {
        let (publishes, hears) = (self.publishes()?, self.hears()?);
        Ok(match used {
            Use::Publishes => (!publishes).then_some(NOT_PUBLISHED),
            Use::Hears => (!hears).then_some(NOT_HEARD),
            Use::Either => (!publishes && !hears).then_some(NOT_PUBLISHED),
        })
    }

    fn filters(&self) -> Result<Vec<String>, Refused> {
        Ok(list(&self.get("enforcement", "enabled_filters")?.unwrap_or_default()))
    }
}

/// The value as it is meant: a doubled dollar sign is one, and a single one refers to another option.
fn plain(given: &Given) -> Result<String, Refused> {
    let parts: Vec<&str> = given.value.split("$$").collect();
    if parts.iter().any(|part| part.contains('$')) {
        return Err(wrong(given, "it refers to another option with $: write the value itself"));
    }
    Ok(parts.join("$"))
}

fn wrong(given: &Given, reason: impl Into<String>) -> Refused {
    Refused::Value { line: given.line, option: option(&given.section, &given.name), reason: reason.into() }
}

/// How an option is called: the file may have anything in it, and a comment of TOML may not.
fn option(section: &str, name: &str) -> String {
    escaped(&format!("[{section}]{name}"))
}

/// Where a setting comes from.
fn origin(given: &Given) -> String {
    format!("{}, line {}", option(&given.section, &given.name), given.line)
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(|item| item.trim().trim_matches(['"', '\'']));
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn note(given: &Given, what: impl Into<String>) -> Note {
    Note { line: given.line, option: option(&given.section, &given.name), what: escaped(&what.into()) }
}

fn unknown(given: &Given) -> Note {
    let of_section = options::OPTIONS.iter().filter(|known| known.section == given.section);
    let meant = nearest(&given.name, of_section.map(|known| known.name).filter(|name| *name != "*"));
    let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    note(given, format!("no option of Blazar's{meant}"))
}

fn not_enabled(filter: &str) -> String {
    format!("not taken over: {filter} is not in enabled_filters")
}

/// What is said of what only says how notifications are published.
const NOT_PUBLISHED: &str = "not taken over: [oslo_messaging_notifications]driver publishes no notifications";

/// What of Nova's notifications is heard.
const NOVA_TOPICS: &str = "message_bus.nova_topics";

/// What is said of what only says what of Nova's notifications is heard.
const NOT_HEARD: &str = "not taken over: enable_notification_monitor is off";

/// The value of that setting. None if it is as if the option were not there.
fn value_of(given: &Given, key: &str, kind: Kind) -> Result<Option<Value>, Refused> {
    let Some(value) = converted(given, kind)? else { return Ok(None) };
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let setting = TABLE.iter().find(|setting| setting.key == key);
    let checked = setting.map_or(Ok(()), |setting| setting.check(&text));
    checked.map(|()| Some(value)).map_err(|reason| wrong(given, format!("as {key} it will not do: {reason}")))
}

fn converted(given: &Given, kind: Kind) -> Result<Option<Value>, Refused> {
    let text = plain(given)?;
    let number =
        || text.parse::<i64>().map_err(|_| wrong(given, format!("{} is no whole number", quoted(&text))));
    let some = |text: String| Some(Value::String(text));
    Ok(match kind {
        _ if text.is_empty() => None,
        Kind::Text => some(text),
        Kind::Number => Some(Value::Integer(number()?)),
        Kind::Minutes if number()? < 0 => return Err(wrong(given, "it is less than nothing")),
        Kind::Minutes => some(format!("{}m", number()?)),
        Kind::Seconds if number()? < 0 => None,
        Kind::Seconds => some(format!("{}s", number()?)),
        Kind::Switch => {
            let switch = truth(&text).ok_or_else(|| wrong(given, "write true or false"))?;
            Some(Value::Boolean(switch))
        }
        Kind::List => Some(Value::Array(list(&text).into_iter().map(Value::String).collect())),
        Kind::Interface => {
            let name = text.strip_suffix("URL").unwrap_or(&text);
            if !["public", "internal", "admin"].contains(&name) {
                return Err(wrong(given, "write public, internal or admin"));
            }
            some(name.to_owned())
        }
        Kind::BeforeEnd if text == "snapshot" => some(text),
        Kind::BeforeEnd => return Err(wrong(given, "write snapshot, or nothing")),
    })
}

/// What a switch is set to, as Blazar's libraries read it.
fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "on" | "yes" | "t" | "y" => Some(true),
        "false" | "0" | "off" | "no" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// The same value, however it is written.
fn same(one: &str, other: &str) -> bool {
    one == other || (truth(one).is_some() && truth(one) == truth(other))
}

impl Translation {
    fn set(&mut self, key: &'static str, value: Value, origin: impl Into<String>) {
        self.settings.insert(key, Setting { value, origin: origin.into() });
    }

    fn text(&mut self, key: &'static str, value: impl Into<String>, origin: impl Into<String>) {
        self.set(key, Value::String(value.into()), origin);
    }

    fn take(&mut self, file: &File<'_>, given: &Given, known: &Known) -> Result<(), Refused> {
        match known.becomes {
            Becomes::Setting(key, kind) => self.take_unless(None, given, key, kind)?,
            Becomes::Filter(key, kind, filter) => {
                let enabled = file.filters()?.iter().any(|enabled| enabled == filter);
                self.take_unless((!enabled).then(|| not_enabled(filter)), given, key, kind)?;
            }
            Becomes::Bus(used, key, kind) => {
                self.take_unless(file.not_used_for(used)?.map(str::to_owned), given, key, kind)?;
            }
            Becomes::Secret(key, path) => {
                // It is not read: it may refer to other options, and is nobody's business here.
                if !given.value.is_empty() {
                    self.text(key, path, format!("put {} into this file", origin(given)));
                }
            }
            Becomes::Fixed(value) if !same(given.value.trim(), value) => {
                self.notes.push(note(given, format!("not taken over: {}", options::said(known))));
            }
            Becomes::Nothing => self.notes.push(note(given, known.why)),
            Becomes::Fixed(_) | Becomes::Part(_) => {}
        }
        Ok(())
    }

    /// Takes over the value, if there is one and no reason not to.
    fn take_unless(
        &mut self,
        reason: Option<String>,
        given: &Given,
        key: &'static str,
        kind: Kind,
    ) -> Result<(), Refused> {
        match (value_of(given, key, kind)?, reason) {
            (Some(_), Some(reason)) => self.notes.push(note(given, reason)),
            (Some(value), None) => self.set(key, value, origin(given)),
            (None, _) => {}
        }
        Ok(())
    }

    /// What several options are together, and what Blazar does without being told and ours does not.
    fn combine(&mut self, file: &File<'_>) -> Result<(), Refused> {
        self.text("fleet", "openstack", "Blazar leases hosts of Nova");
        self.text("auth", "keystone", "[DEFAULT]auth_strategy");
        self.listen(file)?;
        self.identity(file)?;
        self.filters(file)?;
        self.message_bus(file)?;
        let is_on =
            |name| Ok::<_, Refused>(file.get("DEFAULT", name)?.is_some_and(|text| same(&text, "true")));
        if is_on("debug")? {
            self.text("log.level", "debug", "[DEFAULT]debug");
        }
        if is_on("use_json")? {
            self.text("log.format", "json", "[DEFAULT]use_json");
        }
        if self.settings.contains_key("leases.grace") {
            self.set("preemptible.enabled", Value::Boolean(true), "[preemptible]graceful_shutdown_time");
        }
        Ok(())
    }

    fn listen(&mut self, file: &File<'_>) -> Result<(), Refused> {
        let port = match file.given("DEFAULT", "port") {
            None => 1234,
            Some(given) => plain(given)?.parse::<u16>().map_err(|_| wrong(given, "it is no port"))?,
        };
        let mut address = IpAddr::from([0, 0, 0, 0]);
        if let Some(given) = file.given("DEFAULT", "host") {
            match plain(given)?.trim_matches(['[', ']']).parse() {
                Ok(ip) => address = ip,
                Err(_) => {
                    self.notes.push(note(given, "not taken over: a name; `listen` takes an IP address"));
                }
            }
        }
        let listen = std::net::SocketAddr::new(address, port).to_string();
        self.text("listen", listen, "[DEFAULT]host and port");
        Ok(())
    }

    /// Keystone's address and the service's users.
    fn identity(&mut self, file: &File<'_>) -> Result<(), Refused> {
        let part = |name: &str, otherwise: &str| -> Result<String, Refused> {
            Ok(file.get("DEFAULT", name)?.unwrap_or_else(|| otherwise.to_owned()))
        };
        let host = part("os_auth_host", "127.0.0.1")?;
        let host = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host };
        let prefix = part("os_auth_prefix", "")?;
        let prefix = Some(prefix.trim_matches('/')).filter(|prefix| !prefix.is_empty());
        let prefix = prefix.map(|prefix| format!("/{prefix}")).unwrap_or_default();
        let (scheme, port) = (part("os_auth_protocol", "http")?, part("os_auth_port", "5000")?);
        self.text(
            "openstack.auth_url",
            format!("{scheme}://{host}:{port}{prefix}/v3"),
            "[DEFAULT]os_auth_...",
        );
        for (key, name, standard) in [
            ("openstack.username", "os_admin_username", "admin"),
            ("openstack.project", "os_admin_project_name", "admin"),
            ("openstack.secret_file", "os_admin_password", options::OF_NOVA),
        ] {
            if !self.settings.contains_key(key) {
                self.text(key, standard, format!("[DEFAULT]{name}, by Blazar's default"));
            }
        }
        // Where tokens are not validated as a user of its own, it is the same user at the same Keystone.
        for (key, other) in
            [("keystone.auth_url", "openstack.auth_url"), ("keystone.ca_file", "openstack.ca_file")]
        {
            self.copy(key, other);
        }
        if !self.settings.contains_key("keystone.username") {
            for (key, other) in [
                ("keystone.username", "openstack.username"),
                ("keystone.secret_file", "openstack.secret_file"),
                ("keystone.project", "openstack.project"),
                ("keystone.user_domain", "openstack.user_domain"),
                ("keystone.project_domain", "openstack.project_domain"),
            ] {
                self.settings.remove(key);
                self.copy(key, other);
            }
        } else if !self.settings.contains_key("keystone.secret_file") {
            self.text(
                "keystone.secret_file",
                options::OF_KEYSTONE,
                "[keystone_authtoken]password is not there",
            );
        }
        if !self.settings.contains_key("keystone.cache_time")
            && let Some(given) = file.given("keystone_authtoken", "token_cache_time")
        {
            self.text(
                "keystone.cache_time",
                "0s",
                format!("[keystone_authtoken]token_cache_time, line {}", given.line),
            );
        }
        Ok(())
    }

    /// Has a setting be as another one, if it is not there.
    fn copy(&mut self, key: &'static str, other: &'static str) {
        if let Some(setting) = self.settings.get(other).filter(|_| !self.settings.contains_key(key)) {
            let setting = setting.clone();
            self.settings.insert(key, setting);
        }
    }

    /// Where notifications are published and heard, if they are.
    fn message_bus(&mut self, file: &File<'_>) -> Result<(), Refused> {
        let sections = ["oslo_messaging_notifications", "DEFAULT"];
        let mut given = sections.into_iter().filter_map(|section| file.given(section, "transport_url"));
        if let Some(reason) = file.not_used_for(Use::Either)? {
            self.notes.extend(given.map(|given| note(given, reason)));
        } else if let Some(given) = given.next() {
            // It has a password in it, and is not read.
            let origin = origin(given);
            self.text("message_bus.url_file", options::OF_BUS, format!("put {origin} into this file"));
            if !file.publishes()? {
                let none = Value::Array(Vec::new());
                self.set("message_bus.topics", none, "[oslo_messaging_notifications]driver publishes none");
            }
            if file.hears()? && !self.settings.contains_key(NOVA_TOPICS) {
                let topics = Value::Array(vec!["versioned_notifications".into()]);
                self.set(NOVA_TOPICS, topics, "[physical:host]enable_notification_monitor");
            }
        }
        Ok(())
    }

    /// Filters that Blazar ran, and what is only for those that it did not.
    fn filters(&mut self, file: &File<'_>) -> Result<(), Refused> {
        let enabled = file.filters()?;
        if let Some(given) = file.given("enforcement", "external_service_token")
            && !enabled.iter().any(|name| name == EXTERNAL)
            && self.settings.remove("enforcement.token_file").is_some()
        {
            self.notes.push(note(given, not_enabled(EXTERNAL)));
        }
        let Some(given) = file.given("enforcement", "enabled_filters") else { return Ok(()) };
        let others: Vec<&str> =
            enabled.iter().map(String::as_str).filter(|name| ![DURATION, EXTERNAL].contains(name)).collect();
        if !others.is_empty() {
            let why = format!("not taken over: {}; an external service can refuse leases", others.join(", "));
            self.notes.push(note(given, why));
        }
        Ok(())
    }

    /// As a file of settings, with a comment at each that says where it is from, and at the end what has no counterpart.
    pub(super) fn toml(&self) -> String {
        let mut text = format!(
            "# Settings of allot serve, from a blazar.conf. Limits that Blazar lacks keep their defaults: {} requests per\n\
             # second of a user (limits.requests_per_second) and {} leases of a project that are not over (quota.leases),\n\
             # ten times as many with the role admin or service.\n",
            RateLimit::USUAL,
            Settings::USUAL_LEASES,
        );
        let mut section = "";
        for setting in TABLE {
            let Some(Setting { value, origin }) = self.settings.get(setting.key) else { continue };
            let (of, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
            if of != section {
                section = of;
                let _ = writeln!(text, "\n[{section}]");
            }
            let _ = writeln!(text, "# {origin}\n{name} = {value}");
        }
        let mut list = |heading: &str, notes: &[Note]| {
            if !notes.is_empty() {
                let _ = writeln!(text, "\n# {heading}");
            }
            for Note { line, option, what } in notes {
                let _ = writeln!(text, "# line {line}, {option}: {what}");
            }
        };
        list("Without a counterpart:", &self.notes);
        list("Unknown:", &self.unknown);
        text
    }

    /// How many settings there are, how many options have no counterpart, and how many are unknown.
    pub(super) fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| counted(number as u64, one, many);
        format!(
            "{}, {} without a counterpart, {} unknown",
            count(self.settings.len(), "setting", "settings"),
            count(self.notes.len(), "option", "options"),
            self.unknown.len()
        )
    }
}

impl Note {
    /// For whoever reads standard error.
    pub(super) fn told(&self) -> String {
        format!("line {}, {}: {}", self.line, self.option, self.what)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::config::{Configuration, merge};
    use crate::import::options::OPTIONS;

    fn settings(text: &str) -> BTreeMap<&'static str, String> {
        let translation = translate(text).expect("a blazar.conf");
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        translation.settings.iter().map(|(key, setting)| (*key, shown(&setting.value))).collect()
    }

    /// The service starts with what is printed.
    fn configuration(text: &str) -> Configuration {
        let printed = translate(text).expect("a blazar.conf").toml();
        let values = merge(&BTreeMap::new(), &|_| None, Path::new("allot.toml"), &printed);
        Configuration::of(&values).expect("a configuration")
    }

    const CONF: &str = "\
[DEFAULT]
host = 10.0.0.5
port = 1235
cleaning_time = 10
os_auth_protocol = https
os_auth_host = keystone.example.org
os_admin_username = blazar
os_admin_password = top$ecret
os_admin_project_name = service
os_region_name = RegionOne
transport_url = rabbit://user:hidden@bus
[manager]
plugins = physical.host.plugin,
    virtual.instance.plugin
minutes_before_end_lease = 0
[enforcement]
enabled_filters = MaxLeaseDurationFilter, OurFilter
max_lease_duration = 86400
max_lease_duration_exempt_project_ids = a,b
external_service_base_endpoint = https://quota.example.org/
external_service_token = quiet
[nova]
endpoint_type = internalURL
aggregate_freepool_name = free
[physical:host]
before_end = snapshot
blazar_az_prefix = lease_
enable_polling_monitor = True
healing_intervall = 5
[preemptible]
graceful_shutdown_time = 90
[keystone_authtoken]
username = blazar-api
password = more of it
memcached_servers = 10.0.0.9:11211
";

    #[test]
    fn what_a_blazar_is_told_becomes_settings_of_ours() {
        let settings = settings(CONF);
        let wanted = [
            ("listen", "10.0.0.5:1235"),
            ("fleet", "openstack"),
            ("auth", "keystone"),
            ("region", "RegionOne"),
            ("leases.cleaning_time", "10m"),
            ("leases.before_end_lead", "0m"),
            ("leases.before_end_action", "snapshot"),
            ("leases.max_duration", "86400s"),
            ("leases.exempt_projects", "[\"a\", \"b\"]"),
            ("leases.grace", "90s"),
            ("preemptible.enabled", "true"),
            ("openstack.auth_url", "https://keystone.example.org:5000/v3"),
            ("openstack.username", "blazar"),
            ("openstack.project", "service"),
            ("openstack.secret_file", "/etc/allot/nova.password"),
            ("openstack.interface", "internal"),
            ("openstack.free_pool", "free"),
            ("keystone.auth_url", "https://keystone.example.org:5000/v3"),
            ("keystone.username", "blazar-api"),
            ("keystone.secret_file", "/etc/allot/keystone.password"),
        ];
        assert_eq!(settings, wanted.map(|(key, value)| (key, value.to_owned())).into());
        assert_eq!(configuration(CONF).openstack.driver.free_pool, "free");
    }

    #[test]
    fn what_has_no_counterpart_or_is_unknown_is_named_with_its_line_and_no_secret_is_shown() {
        let translation = translate(CONF).expect("a blazar.conf");
        let printed = translation.toml();
        for wanted in [
            "# line 11, [DEFAULT]transport_url: not taken over: [oslo_messaging_notifications]driver publishes no",
            "# line 17, [enforcement]enabled_filters: not taken over: OurFilter",
            "# line 20, [enforcement]external_service_base_endpoint: not taken over: ExternalServiceFilter is not",
            "# line 21, [enforcement]external_service_token: not taken over: ExternalServiceFilter is not",
            "# line 27, [physical:host]blazar_az_prefix: not taken over: always as with `blazar_`",
            "# line 29, [physical:host]healing_intervall: no option of Blazar's; did you mean healing_interval?",
            "# put [DEFAULT]os_admin_password, line 8 into this file\nsecret_file = ",
        ] {
            assert!(printed.contains(wanted), "{wanted}:\n{printed}");
        }
        assert!(!printed.contains("enable_polling_monitor"), "it is as it always is");
        for secret in ["top$ecret", "hidden", "more of it", "quiet"] {
            assert!(!printed.contains(secret), "{printed}");
        }
        assert_eq!(translation.summary(), "20 settings, 7 options without a counterpart, 1 unknown");
    }

    #[test]
    fn notifications_go_on_being_published_where_blazar_publishes_them() {
        let text = "[DEFAULT]\ntransport_url = rabbit://user:hidden@bus\ncontrol_exchange = blazar\n\
                    [oslo_messaging_notifications]\ndriver = messagingv2\ntopics = notifications,billing\n\
                    [oslo_messaging_rabbit]\nssl = True\nrabbit_quorum_queue = 1\n";
        let translation = translate(text).expect("a blazar.conf");
        let printed = translation.toml();
        assert!(
            printed.contains("# put [DEFAULT]transport_url, line 2 into this file\nurl_file = "),
            "{printed}"
        );
        assert!(!printed.contains("hidden"), "{printed}");
        let read = configuration(text);
        assert_eq!(read.message_bus_url_file.as_deref(), Some(Path::new("/etc/allot/message-bus.url")));
        let bus = &read.message_bus;
        assert_eq!((bus.exchange.as_str(), bus.topics.len()), ("blazar", 2));
        assert!(bus.tls && bus.quorum_queues && !bus.durable_queues);
        let silent = text.replace("driver = messagingv2", "driver = noop");
        let translation = translate(&silent).expect("a blazar.conf");
        assert!(!translation.toml().contains("url_file"), "{}", translation.toml());
        assert_eq!(translation.notes.len(), 5, "{}", translation.toml());
    }

    #[test]
    fn notifications_of_nova_go_on_being_heard_where_blazar_hears_them() {
        let text = "[DEFAULT]\ntransport_url = rabbit://user:hidden@bus\n[oslo_messaging_notifications]\ntopics = a\n\
                    [oslo_messaging_rabbit]\nssl = True\n[physical:host]\nenable_notification_monitor = True\n\
                    notification_topics = notifications,versioned\n";
        let read = configuration(text);
        assert!(read.message_bus_url_file.is_some() && read.message_bus.tls);
        assert_eq!(read.message_bus.topics, [""; 0], "nothing was published");
        assert_eq!(read.message_bus.nova_topics, ["notifications", "versioned"]);
        let read = configuration(text.split_once("notification_topics").expect("it is there").0);
        assert_eq!(read.message_bus.nova_topics, ["versioned_notifications"]);
        let translation =
            translate(&text.replace("monitor = True", "monitor = False")).expect("a blazar.conf");
        assert!(!translation.toml().contains("message_bus"), "{}", translation.toml());
        assert!(translation.notes.iter().any(|note| note.what.contains("is off")), "{}", translation.toml());
    }

    #[test]
    fn an_empty_file_is_blazars_defaults_where_they_are_not_ours() {
        let settings = settings("");
        for (key, value) in [
            ("listen", "0.0.0.0:1234"),
            ("openstack.username", "admin"),
            ("keystone.username", "admin"),
            ("keystone.project", "admin"),
            ("keystone.secret_file", "/etc/allot/nova.password"),
            ("openstack.auth_url", "http://127.0.0.1:5000/v3"),
        ] {
            assert_eq!(settings.get(key).map(String::as_str), Some(value), "{key}");
        }
        configuration("");
    }

    #[test]
    fn limits_that_blazar_lacks_keep_their_defaults_and_are_named() {
        let text = "[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 86400\n";
        let printed = translate(text).expect("a blazar.conf").toml();
        for named in ["20 requests", "limits.requests_per_second", "1000 leases", "quota.leases"] {
            assert!(printed.contains(named), "{named}: {printed}");
        }
        let configuration = configuration(text);
        assert_eq!(configuration.server.limits.rate, RateLimit::default());
        assert_eq!(configuration.service.rules.enforcement.quota, leases::quota::LeaseQuota::default());
    }

    #[test]
    fn nothing_in_a_file_gets_out_of_a_comment() {
        let text = "[enforcement]\nenabled_filters = Ours\n  auth = \"none\"\n[a\tb]\nc\u{7}d = 1\n";
        assert_eq!(configuration(text).auth.len(), 1);
        let printed = translate(text).expect("a blazar.conf").toml();
        assert!(printed.lines().all(|line| line != "auth = \"none\""), "{printed}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (text, wanted) in [
            ("[DEFAULT]\ncleaning_time = soon", "line 2, [DEFAULT]cleaning_time: soon is no whole number"),
            ("[DEFAULT]\ncleaning_time = -1", "line 2, [DEFAULT]cleaning_time: it is less than nothing"),
            ("[DEFAULT]\nport = 99999", "line 2, [DEFAULT]port: it is no port"),
            ("[DEFAULT]\nos_region_name = ${where}", "line 2, [DEFAULT]os_region_name: it refers to another"),
            ("[nova]\nendpoint_type = any", "line 2, [nova]endpoint_type: write public, internal or admin"),
            (
                "[DEFAULT]\ncleaning_time = 9999999999999",
                "as leases.cleaning_time it will not do: write a dur",
            ),
            ("[DEFAULT]\nhost", "line 2: an option is written as name = value"),
        ] {
            let refused = translate(text).expect_err(text).to_string();
            assert!(refused.contains(wanted), "{text}: {refused}");
        }
    }

    #[test]
    fn options_that_become_settings_become_ones_that_there_are() {
        for known in OPTIONS {
            let (Becomes::Setting(key, _)
            | Becomes::Filter(key, ..)
            | Becomes::Bus(_, key, _)
            | Becomes::Secret(key, _)
            | Becomes::Part(key)) = known.becomes
            else {
                assert!(!known.why.is_empty(), "nothing is said of {}", known.name);
                continue;
            };
            assert!(TABLE.iter().any(|setting| setting.key == key), "{key}");
        }
    }
}
