//! Translates a `blazar.conf` into settings of ours.

mod database;
mod file;
mod login;
mod translation;

use std::net::IpAddr;

use cluster::nearest;
use leases::text::quoted;
use toml::Value;

use self::file::File;
pub(super) use self::translation::Translation;
use self::translation::{Note, note, option, origin, wrong};
use super::ini::{self, Given};
use super::options::{self, Becomes, DURATION, EXTERNAL, Kind, Known, Use};
use crate::config::{TABLE, without_passwords};

/// Translates a file into the settings of a service that behaves like a Blazar with that file. Each option is
/// taken over, has no counterpart, or is unusual. A bad option doesn't stop the translation.
pub(super) fn translate(text: &str) -> Translation {
    let (given, misplaced) = ini::parse(text);
    let (file, renamed) = File::new(given);
    let mut translation =
        Translation { renamed: renamed.taken, unusual: renamed.ignored, ..Translation::default() };
    for line in misplaced {
        let what = line.reason.to_owned();
        translation.unusual.push(Note { line: line.line, option: "no option".to_owned(), what });
    }
    for given in file.options() {
        match options::find(&given.section, &given.name) {
            Some(known) => translation.take(&file, given, &known),
            None => translation.unusual.push(unknown(given)),
        }
    }
    translation.combine(&file);
    let Translation { renamed, notes, unusual, unresolved, .. } = &mut translation;
    for notes in [renamed, notes, unusual, unresolved] {
        notes.sort_by_key(|note| note.line);
    }
    translation
}

impl File {
    /// Whether Blazar publishes notifications on a message bus.
    fn publishes(&self) -> bool {
        let drivers = list(&self.get("oslo_messaging_notifications", "driver").unwrap_or_default());
        drivers.iter().any(|driver| ["messaging", "messagingv2"].contains(&driver.as_str()))
    }

    /// Whether Blazar listens to Nova's notifications.
    fn hears(&self) -> bool {
        self.is_on("physical:host", "enable_notification_monitor")
    }

    fn is_on(&self, section: &str, name: &str) -> bool {
        self.get(section, name).is_some_and(|text| same(&text, "true"))
    }

    /// Reason not to take over an option that only matters if Blazar uses the message bus for this.
    fn not_used_for(&self, used: Use) -> Option<&'static str> {
        match used {
            Use::Publishes => (!self.publishes()).then_some(NOT_PUBLISHED),
            Use::Hears => (!self.hears()).then_some(NOT_HEARD),
            Use::Either => (!self.publishes() && !self.hears()).then_some(NOT_PUBLISHED),
        }
    }

    fn filters(&self) -> Vec<String> {
        list(&self.get("enforcement", "enabled_filters").unwrap_or_default())
    }
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(|item| item.trim().trim_matches(['"', '\'']));
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn unknown(given: &Given) -> Note {
    let meant = meant(given).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    note(given, format!("no option of Blazar's{meant}"))
}

/// The known option that is most similar to a misspelled one, or has its name in another section.
fn meant(given: &Given) -> Option<String> {
    let spelled = given.name.to_lowercase().replace('-', "_");
    let in_section = |section: &str| {
        let of_section = options::all().filter(|known| known.section == section && known.name != "*");
        nearest(&spelled, of_section.map(|known| known.name))
    };
    if let Some(name) = in_section(&given.section) {
        return Some(name.to_owned());
    }
    let section = nearest(&given.section, options::all().map(|known| known.section));
    let similar = section.and_then(|section| Some((section, in_section(section)?)));
    let elsewhere = || options::all().find(|known| known.name == spelled);
    let (section, name) = similar.or_else(|| elsewhere().map(|known| (known.section, known.name)))?;
    Some(option(section, name))
}

fn not_enabled(filter: &str) -> String {
    format!("not taken over: {filter} is not in enabled_filters")
}

/// Note on options that only matter for publishing notifications.
const NOT_PUBLISHED: &str = "not taken over: [oslo_messaging_notifications]driver publishes no notifications";

/// Setting with the topics of Nova's notifications.
const NOVA_TOPICS: &str = "message_bus.nova_topics";

/// Note on options that only matter for listening to Nova's notifications.
const NOT_HEARD: &str = "not taken over: enable_notification_monitor is off";

/// The value, checked against the setting `key`. `None` if the option could as well be missing.
fn value_of(file: &File, given: &Given, key: &str, kind: Kind) -> Result<Option<Value>, Note> {
    let Some(value) = converted(file, given, kind)? else { return Ok(None) };
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    if without_passwords(&text) != text {
        return Err(wrong(given, format!("it has a password, which isn't printed: set {key} yourself")));
    }
    let setting = TABLE.iter().find(|setting| setting.key == key);
    let checked = setting.map_or(Ok(()), |setting| setting.check(&text));
    checked.map(|()| Some(value)).map_err(|reason| wrong(given, format!("invalid as {key}: {reason}")))
}

fn converted(file: &File, given: &Given, kind: Kind) -> Result<Option<Value>, Note> {
    let text = file.plain(given)?;
    let number =
        || text.parse::<i64>().map_err(|_| wrong(given, format!("{} isn't a whole number", quoted(&text))));
    let some = |text: String| Some(Value::String(text));
    Ok(match kind {
        _ if text.is_empty() => None,
        Kind::Text => some(text),
        Kind::Number => Some(Value::Integer(number()?)),
        Kind::Minutes if number()? < 0 => return Err(wrong(given, "it is negative")),
        Kind::Minutes => some(format!("{}m", number()?)),
        Kind::Seconds if number()? == -1 => None,
        Kind::Seconds if number()? < 0 => return Err(wrong(given, "it is negative")),
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
        Kind::BeforeEnd if text == "email" => {
            return Err(wrong(given, "no mail is sent; a program that notifications.exec names can send it"));
        }
        Kind::BeforeEnd => return Err(wrong(given, "write snapshot, or nothing")),
    })
}

/// Parses a boolean as Blazar's libraries do.
fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "on" | "yes" | "t" | "y" => Some(true),
        "false" | "0" | "off" | "no" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Whether two values are equal, or the same boolean in different spellings.
fn same(one: &str, other: &str) -> bool {
    one == other || (truth(one).is_some() && truth(one) == truth(other))
}

impl Translation {
    fn take(&mut self, file: &File, given: &Given, known: &Known) {
        if let Err(note) = self.try_taking(file, given, known) {
            let limits = match known.becomes {
                // Without exemptions the limits are stricter.
                Becomes::Filter(key, ..) => key != "leases.exempt_projects",
                Becomes::Setting(key, _) => key == "policy_file",
                _ => false,
            };
            let list = if limits { &mut self.unresolved } else { &mut self.unusual };
            list.push(note);
        }
    }

    fn try_taking(&mut self, file: &File, given: &Given, known: &Known) -> Result<(), Note> {
        match known.becomes {
            Becomes::Setting(key, kind) => self.take_unless(None, file, given, key, kind)?,
            Becomes::Filter(key, kind, filter) => {
                let enabled = file.filters().iter().any(|enabled| enabled == filter);
                self.take_unless((!enabled).then(|| not_enabled(filter)), file, given, key, kind)?;
            }
            Becomes::Bus(used, key, kind) => {
                self.take_unless(file.not_used_for(used).map(str::to_owned), file, given, key, kind)?;
            }
            Becomes::Secret(key, path) => {
                // The secret isn't read: it can refer to other options, and must not be printed.
                if !given.value.is_empty() {
                    self.text(key, path, format!("put {} into this file", origin(given)));
                }
            }
            Becomes::Fixed(value) => {
                if !same(file.plain(given)?.trim(), value) {
                    self.notes.push(note(given, format!("not taken over: {}", options::said(known))));
                }
            }
            Becomes::Plugins => {
                let others = list(&file.plain(given)?);
                let others: Vec<&str> = others
                    .iter()
                    .map(String::as_str)
                    .filter(|name| !options::PLUGINS.contains(name))
                    .collect();
                let what = match others.as_slice() {
                    [] => known.why.to_owned(),
                    others => format!("not taken over: {}; {}", others.join(", "), known.why),
                };
                self.notes.push(note(given, what));
            }
            Becomes::Nothing => self.notes.push(note(given, known.why)),
            // Secrets aren't read, and the filters are checked in `filters`.
            Becomes::Part(_) if options::is_secret(known.name) || known.name == "enabled_filters" => {}
            Becomes::Part(_) => _ = file.plain(given)?,
        }
        Ok(())
    }

    /// Takes over the value, unless it's empty or there's a reason not to.
    fn take_unless(
        &mut self,
        reason: Option<String>,
        file: &File,
        given: &Given,
        key: &'static str,
        kind: Kind,
    ) -> Result<(), Note> {
        match (value_of(file, given, key, kind), reason) {
            (Ok(None), _) => {}
            (_, Some(reason)) => self.notes.push(note(given, reason)),
            (value, None) => {
                if let Some(value) = value? {
                    self.set(key, value, origin(given));
                }
            }
        }
        Ok(())
    }

    /// Adds settings that depend on several options, and Blazar's defaults where ours differ.
    fn combine(&mut self, file: &File) {
        self.text("fleet", "openstack", "Blazar leases hosts of Nova");
        self.text("auth", "keystone", "[DEFAULT]auth_strategy");
        self.listen(file);
        self.identity(file);
        self.database(file);
        self.filters(file);
        self.message_bus(file);
        if file.is_on("DEFAULT", "debug") {
            self.text("log.level", "debug", "[DEFAULT]debug");
        }
        if file.is_on("DEFAULT", "use_json") {
            self.text("log.format", "json", "[DEFAULT]use_json");
        }
        if self.settings.contains_key("leases.grace") {
            self.set("preemptible.enabled", Value::Boolean(true), "[preemptible]graceful_shutdown_time");
        }
    }

    fn listen(&mut self, file: &File) {
        let mut port = 1234;
        if let Some(text) = file.get("DEFAULT", "port") {
            match text.parse() {
                Ok(number) => port = number,
                Err(_) => self
                    .unusual
                    .extend(file.given("DEFAULT", "port").map(|given| wrong(given, "it isn't a port"))),
            }
        }
        let mut address = IpAddr::from([0, 0, 0, 0]);
        if let (Some(text), Some(given)) = (file.get("DEFAULT", "host"), file.given("DEFAULT", "host")) {
            match text.trim_matches(['[', ']']).parse() {
                Ok(ip) => address = ip,
                Err(_) => {
                    self.notes.push(note(given, "not taken over: a name; `listen` takes an IP address"));
                }
            }
        }
        let listen = std::net::SocketAddr::new(address, port).to_string();
        self.text("listen", listen, "[DEFAULT]host and port");
    }

    /// The message bus, if Blazar publishes notifications or listens to Nova's.
    fn message_bus(&mut self, file: &File) {
        let sections = ["oslo_messaging_notifications", "DEFAULT"];
        let mut given = sections.into_iter().filter_map(|section| file.given(section, "transport_url"));
        if let Some(reason) = file.not_used_for(Use::Either) {
            self.notes.extend(given.map(|given| note(given, reason)));
        } else if let Some(given) = given.next() {
            // The URL isn't read, because it contains a password.
            let origin = origin(given);
            self.text("message_bus.url_file", options::OF_BUS, format!("put {origin} into this file"));
            if !file.publishes() {
                let none = Value::Array(Vec::new());
                self.set("message_bus.topics", none, "[oslo_messaging_notifications]driver publishes none");
            }
            if file.hears() && !self.settings.contains_key(NOVA_TOPICS) {
                let topics = Value::Array(vec!["versioned_notifications".into()]);
                self.set(NOVA_TOPICS, topics, "[physical:host]enable_notification_monitor");
            }
        }
    }

    /// Filters that Blazar ran. Drops the token of the external service if that filter wasn't enabled.
    fn filters(&mut self, file: &File) {
        let enabled = file.filters();
        if let Some(given) = file.given("enforcement", "external_service_token")
            && !enabled.iter().any(|name| name == EXTERNAL)
            && self.settings.remove("enforcement.token_file").is_some()
        {
            self.notes.push(note(given, not_enabled(EXTERNAL)));
        }
        let Some(given) = file.given("enforcement", "enabled_filters") else { return };
        if let Err(note) = file.plain(given) {
            self.unresolved.push(note);
        }
        let others: Vec<&str> =
            enabled.iter().map(String::as_str).filter(|name| ![DURATION, EXTERNAL].contains(name)).collect();
        if !others.is_empty() {
            self.unresolved
                .push(wrong(given, format!("{}; an external service can refuse leases", others.join(", "))));
        }
        let asks = enabled.iter().any(|name| name == EXTERNAL);
        if asks && !self.settings.keys().any(|key| key.starts_with("enforcement.") && key.ends_with("url")) {
            self.unresolved.push(wrong(given, format!("{EXTERNAL}; no URL of the service is imported")));
        }
    }
}

#[cfg(test)]
mod tests;
