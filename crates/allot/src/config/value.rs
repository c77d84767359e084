//! Kinds of values, and how each is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::SignedDuration;
use leases::filters::{CustomFilter, Filter};
use leases::hints::Hint;
use leases::lease::EndAction;
use leases::preemption::{Class, ClassError, EndState, Mark, UnknownMark};
use leases::requirement::Requirement;
use leases::terms::BeforeEndAction;
use leases::usage::{Decimal, NotDecimal};
use openstack::Interface;
use serde_json::{Deserializer, Value as Json};
use server::ShortageStatus;
use store_postgres::{AddressError, Servers};

use super::setting::Setting;

/// A kind of value.
pub(super) trait Value: Sized {
    /// Reads it; otherwise says how it is to be written.
    fn parse(text: &str) -> Result<Self, String>;
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("name a file".to_owned()) } else { Ok(Self::from(text)) }
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write true or false".to_owned())
    }
}

impl Value for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write an IP address and a port, as 127.0.0.1:1234 or [::1]:1234".to_owned())
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Value for $number {
            fn parse(text: &str) -> Result<Self, String> {
                // TOML allows them for legibility.
                text.replace('_', "").parse().map_err(|_| format!("write a number from 0 to {}", <$number>::MAX))
            }
        }
    )+};
}
numbers!(u32, u64, usize);

impl Value for ShortageStatus {
    fn parse(text: &str) -> Result<Self, String> {
        let status = text.parse::<u16>().ok().and_then(|status| Self::try_from(status).ok());
        status.ok_or_else(|| "write 400, 409 or 500".to_owned())
    }
}

/// Nothing is written for none.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }
}

impl Value for Decimal {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: NotDecimal| error.to_string())
    }
}

/// Separated by commas.
impl Value for Vec<String> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub SignedDuration);

impl Span {
    /// The same as the standard library has it. Spans are never negative.
    pub(crate) fn unsigned(self) -> std::time::Duration {
        self.0.unsigned_abs()
    }

    /// In full seconds, as far as the type goes.
    pub(crate) fn seconds(self) -> u32 {
        u32::try_from(self.0.as_secs()).unwrap_or(u32::MAX)
    }
}

impl Value for Span {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write a duration, as 30s, 5m, 2h, 7d or 1d12h".to_owned();
        crate::duration::parse(text).map(Self).ok_or_else(wrong)
    }
}

/// How long something is kept; none means forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept(pub Option<SignedDuration>);

impl Value for Kept {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "forever" || text == "0" {
            return Ok(Self(None));
        }
        let wrong = || "write a duration, as 30d or 12h, or forever".to_owned();
        let kept = crate::duration::parse(text).ok_or_else(wrong)?;
        Ok(Self(Some(kept).filter(SignedDuration::is_positive)))
    }
}

/// Where things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseChoice {
    /// An `SQLite` file.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, on one server or several.
    Postgres(Servers),
    /// Nowhere: all is gone when the service stops.
    Memory,
}

impl Value for DatabaseChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite://") {
            _ if text == "memory" => Ok(Self::Memory),
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ if text.starts_with("postgres") => {
                text.parse().map(Self::Postgres).map_err(|error: AddressError| error.to_string())
            }
            _ => Err("write sqlite://FILE, postgres://USER@HOST/DATABASE, or memory".to_owned()),
        }
    }
}

/// The same text without the passwords in its addresses: what stands between a colon and the last `@` before the
/// path. For errors, which are logged.
pub(super) fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let user = after[..end].rfind('@').map_or("", |at| &after[..at]);
        shown.push_str(user.split_once(':').map_or(user, |(name, _)| name));
        rest = &after[user.len()..];
    }
    shown.push_str(rest);
    match shown.find("password=") {
        Some(at) => format!("{}password=...", &shown[..at]),
        None => shown,
    }
}

/// The same for administrators, who may see settings and no secrets: of addresses the scheme, the host and the port,
/// since the path of a web hook is often a secret; of databases their names as well.
pub(super) fn without_secrets(setting: &Setting, text: &str) -> String {
    match setting.value_name {
        "DATABASE" => match DatabaseChoice::parse(text) {
            Ok(DatabaseChoice::Postgres(servers)) => servers.to_string(),
            Ok(DatabaseChoice::Sqlite(_) | DatabaseChoice::Memory) => text.to_owned(),
            Err(_) => "...".to_owned(),
        },
        "NAME=SOURCE,..." => text.split(',').map(without_login).collect::<Vec<_>>().join(","),
        "URL" if !text.is_empty() => origin(text),
        _ if text.contains("://") => origin(text),
        _ => text.to_owned(),
    }
}

/// A cluster that is asked about; without its place if that may have a password in it.
fn without_login(cluster: &str) -> String {
    match cluster.split_once(':') {
        Some((kind, place)) if place.contains('@') => format!("{kind}:..."),
        _ => cluster.to_owned(),
    }
}

/// The scheme, the host and the port of an address.
fn origin(address: &str) -> String {
    let Ok(url) = reqwest::Url::parse(address) else { return "...".to_owned() };
    let Some(host) = url.host_str() else { return "...".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let more = if url.path().len() > 1 || url.query().is_some() { "/..." } else { "" };
    format!("{}://{host}{port}{more}", url.scheme())
}

/// What runs the machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FleetChoice {
    /// Nothing: machines are simulated.
    Simulated,
    /// Programs and web hooks, by a file.
    Hooks(PathBuf),
    /// The compute hosts of a cloud.
    OpenStack,
}

impl Value for FleetChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("hooks:") {
            _ if text == "simulated" => Ok(Self::Simulated),
            _ if text == "openstack" => Ok(Self::OpenStack),
            Some(path) if !path.is_empty() => Ok(Self::Hooks(PathBuf::from(path))),
            _ => Err("write simulated, openstack, or hooks:FILE".to_owned()),
        }
    }
}

/// What keeps others off the hosts of a lease in a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceChoice {
    /// `BlazarFilter` of blazar-nova.
    BlazarFilter,
    /// That of `contrib/nova`.
    AllotFilter,
    /// Nova's own isolation of tenants.
    Tenant,
    /// Nova's isolated aggregates.
    Traits,
}

impl Value for FenceChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "blazar-filter" => Ok(Self::BlazarFilter),
            "allot-filter" => Ok(Self::AllotFilter),
            "tenant" => Ok(Self::Tenant),
            "traits" => Ok(Self::Traits),
            _ => Err("write blazar-filter, allot-filter, tenant or traits".to_owned()),
        }
    }
}

/// Which addresses of a cloud's services are used.
impl Value for Interface {
    fn parse(text: &str) -> Result<Self, String> {
        let all = [Self::Public, Self::Internal, Self::Admin];
        let found = all.into_iter().find(|interface| interface.name() == text);
        found.ok_or_else(|| "write public, internal or admin".to_owned())
    }
}

/// How long things take on simulated machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingChoice {
    /// As long as on real ones.
    Lifelike,
    /// No time at all.
    Immediate,
}

impl Value for TimingChoice {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "lifelike" => Ok(Self::Lifelike),
            "immediate" => Ok(Self::Immediate),
            _ => Err("write lifelike or immediate".to_owned()),
        }
    }
}

/// A way to tell who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthChoice {
    /// Everybody is the administrator.
    None,
    /// Tokens of that file.
    Tokens(PathBuf),
    /// Names and passwords of that file, with each request.
    Basic(PathBuf),
    /// Names and passwords of that file, which the service itself exchanges for tokens.
    LocalKeystone(PathBuf),
    /// Tokens of a cloud's Keystone.
    Keystone,
}

impl Value for Vec<AuthChoice> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|method| auth(method.trim())).collect()
    }
}

fn auth(text: &str) -> Result<AuthChoice, String> {
    let wrong = || "write none, or one or more of keystone, tokens:FILE, basic:FILE and local-keystone:FILE, separated by commas";
    match text {
        "none" => return Ok(AuthChoice::None),
        "keystone" => return Ok(AuthChoice::Keystone),
        _ => {}
    }
    let (method, path) = text.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or_else(wrong)?;
    match method {
        "tokens" => Ok(AuthChoice::Tokens(path.into())),
        "basic" => Ok(AuthChoice::Basic(path.into())),
        "local-keystone" => Ok(AuthChoice::LocalKeystone(path.into())),
        // Until November 2026 that was its name.
        "keystone" => Err(format!(
            "keystone is the Keystone of a cloud, and has no file; for users of a file write local-keystone:{path}"
        )),
        _ => Err(wrong().to_owned()),
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs, an object a line.
    Json,
}

impl Value for LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("write text or json".to_owned()),
        }
    }
}

impl Value for BeforeEndAction {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "nothing" => Ok(Self::None),
            "snapshot" => Ok(Self::Snapshot),
            _ => Err("write nothing or snapshot".to_owned()),
        }
    }
}

impl Value for EndAction {
    fn parse(text: &str) -> Result<Self, String> {
        let known = api::v1::end_action_from_name(text);
        known.ok_or_else(|| "write delete, keep, snapshot or migrate".to_owned())
    }
}

/// What hosts are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties(pub Requirement);

impl Value for Properties {
    fn parse(text: &str) -> Result<Self, String> {
        let read = api::v1::read_requirement(&Json::String(text.to_owned()));
        let wrong = |error: api::v1::RequestError| error.hint().unwrap_or_else(|| error.to_string());
        read.map(Self).map_err(wrong)
    }
}

impl Value for BTreeSet<Hint> {
    fn parse(text: &str) -> Result<Self, String> {
        let hint = |name: &String| {
            let all = Hint::ALL.map(Hint::name).join(", ");
            Hint::from_name(name).ok_or_else(|| format!("there is no hint {name}; there are {all}"))
        };
        <Vec<String>>::parse(text)?.iter().map(hint).collect()
    }
}

impl Value for BTreeSet<Mark> {
    fn parse(text: &str) -> Result<Self, String> {
        let mark = |name: &String| name.parse().map_err(|error: UnknownMark| error.to_string());
        <Vec<String>>::parse(text)?.iter().map(mark).collect()
    }
}

impl Value for Vec<Class> {
    fn parse(text: &str) -> Result<Self, String> {
        let mut classes: Self = Vec::new();
        for class in <Vec<String>>::parse(text)? {
            let wrong = "write NAME=DURATION or NAME=DURATION:stop, as batch=10m:stop,spot=30s";
            let (name, rest) = class.split_once('=').ok_or(wrong)?;
            let (notice, end_state) = rest.split_once(':').unwrap_or((rest, EndState::Delete.name()));
            let end_state = EndState::from_name(end_state.trim()).ok_or(wrong)?;
            let class = Class::new(name.trim(), Span::parse(notice.trim())?.0, end_state);
            let class = class.map_err(|error: ClassError| error.to_string())?;
            if classes.iter().any(|known| known.name() == class.name()) {
                return Err(format!("the class {} is there twice", class.name()));
            }
            classes.push(class);
        }
        Ok(classes)
    }
}

/// Ganeti clusters by name, each with the option of the commands that says where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clusters(pub BTreeMap<String, String>);

impl Value for Clusters {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            "write NAME=file:PATH, NAME=rapi:ADDRESS or NAME=luxi:SOCKET, as prod=rapi:gnt.example.org";
        let mut clusters = BTreeMap::new();
        for cluster in <Vec<String>>::parse(text)? {
            let (name, source) = cluster.split_once('=').ok_or(wrong)?;
            let (kind, place) =
                source.trim().split_once(':').filter(|(_, place)| !place.is_empty()).ok_or(wrong)?;
            let option = match kind {
                "file" => "--text-data",
                "rapi" => "--master",
                "luxi" => "--luxi",
                _ => return Err(wrong.to_owned()),
            };
            if kind != "rapi" && !place.starts_with('/') {
                return Err(format!("{name}: write the whole path, which begins with /"));
            }
            let name = name.trim();
            if name.is_empty() || clusters.insert(name.to_owned(), format!("{option}={place}")).is_some() {
                return Err(format!("a cluster needs a name of its own, and {name:?} is none"));
            }
        }
        Ok(Self(clusters))
    }
}

impl Value for BTreeSet<Filter> {
    fn parse(text: &str) -> Result<Self, String> {
        let names = <Vec<String>>::parse(text)?;
        let filter = |name: &String| {
            let all = Filter::ALL.iter().map(|filter| filter.name()).collect::<Vec<_>>().join(", ");
            Filter::from_name(name).ok_or_else(|| format!("there is no filter {name}; there are {all}"))
        };
        names.iter().map(filter).collect()
    }
}

/// Separated by commas, which expressions have as well: where one ends is seen by reading it.
impl Value for Vec<CustomFilter> {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write NAME=EXPRESSION, as LiveHosts=[\"==\", \"$stage\", \"live\"]".to_owned();
        let mut filters = Self::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, expression) = rest.split_once('=').ok_or_else(wrong)?;
            let mut documents = Deserializer::from_str(expression).into_iter::<Json>();
            let document = documents.next().and_then(Result::ok).ok_or_else(wrong)?;
            rest = expression[documents.byte_offset()..].trim_start();
            if !rest.is_empty() {
                rest = rest.strip_prefix(',').ok_or_else(wrong)?.trim_start();
            }
            let name = name.trim();
            let taken = filters.iter().any(|filter| *filter.name == *name);
            if name.is_empty() || taken || Filter::from_name(name).is_some() {
                return Err(format!("a filter needs a name of its own, and {name:?} is none"));
            }
            let requirement = api::v1::read_requirement(&document)
                .map_err(|error| format!("{name}: {}", error.hint().unwrap_or_else(|| error.to_string())))?;
            filters.push(CustomFilter { name: name.into(), requirement });
        }
        Ok(filters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cls_07_filters_are_chosen_by_name_and_written_as_expressions() {
        let chosen = <BTreeSet<Filter>>::parse("RamFilter, AggregateCoreFilter").expect("names");
        assert_eq!(chosen, [Filter::Core, Filter::Ram].into());
        let error = <BTreeSet<Filter>>::parse("RamFilter,RetryFilter").expect_err("no filter of ours");
        assert!(error.starts_with("there is no filter RetryFilter; there are AllHostsFilter, "), "{error}");
        let text = r#"Live=["==", "$stage", "live"], Big = ["and", [">=", "$vcpus", 32]]"#;
        let written = <Vec<CustomFilter>>::parse(text).expect("filters");
        assert_eq!(written.iter().map(|filter| &*filter.name).collect::<Vec<_>>(), ["Live", "Big"]);
        assert_eq!(<Vec<CustomFilter>>::parse(""), Ok(Vec::new()));
        for wrong in
            ["Live", "Live=", "Live=[", "=[]", r#"A=["==", "$a", "1"] B=[]"#, "A=[],A=[]", "RamFilter=[]"]
        {
            assert!(<Vec<CustomFilter>>::parse(wrong).is_err(), "{wrong}");
        }
        let error = <Vec<CustomFilter>>::parse(r#"A=["like", "$a", "1"]"#).expect_err("no operator");
        assert!(error.starts_with("A: 'like' is no operator"), "{error}");
    }

    #[test]
    fn clusters_have_a_name_and_a_place_each() {
        let clusters = Clusters::parse("a=file:/var/lib/a.data, b=rapi:gnt.example.org:5080").expect("two").0;
        let options: Vec<&str> = clusters.values().map(String::as_str).collect();
        assert_eq!(options, ["--text-data=/var/lib/a.data", "--master=gnt.example.org:5080"]);
        assert_eq!(Clusters::parse(""), Ok(Clusters::default()));
        for wrong in ["a", "a=", "a=file:", "a=file:b", "=file:/a", "a=ssh:/b", "a=file:/a,a=file:/b"] {
            assert!(Clusters::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cls_07_all_filters_are_applied_by_default() {
        let setting = super::super::TABLE.iter().find(|setting| setting.key == "filters.enabled");
        let default = setting.map(|setting| setting.default).unwrap_or_default();
        assert_eq!(<BTreeSet<Filter>>::parse(default), Ok(Filter::ALL.iter().copied().collect()));
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        for (text, shown) in [
            ("postgres://u:secret@h1,h2/db", "postgres://u@h1,h2/db"),
            ("postgres://u:se:c@ret@h:x/db,postgres://v:secret@h", "postgres://u@h:x/db,postgres://v@h"),
            ("postgres://h/db?user=u&password=secret", "postgres://h/db?user=u&password=..."),
            ("sqlite://a:b@c", "sqlite://a@c"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn a_database_is_a_file_a_server_or_memory() {
        assert_eq!(DatabaseChoice::parse("memory"), Ok(DatabaseChoice::Memory));
        assert_eq!(DatabaseChoice::parse("sqlite://a"), Ok(DatabaseChoice::Sqlite("a".into())));
        let servers = DatabaseChoice::parse("postgres://u:secret@h1,h2/db").expect("an address");
        assert!(!format!("{servers:?}").contains("secret"));
        for wrong in ["", "sqlite://", "mysql://h/db", "postgres://h", "postgres://u:secret@h:x/db"] {
            let reason = DatabaseChoice::parse(wrong).expect_err(wrong);
            assert!(!reason.contains("secret"), "{reason}");
        }
    }

    #[test]
    fn what_is_kept_for_no_time_is_kept_forever() {
        for forever in ["", "forever", "0", "0s", "0d"] {
            assert_eq!(Kept::parse(forever), Ok(Kept(None)), "{forever}");
        }
        assert_eq!(Kept::parse("90d"), Ok(Kept(Some(SignedDuration::from_hours(90 * 24)))));
        for wrong in ["never", "90", "-1d", "always"] {
            assert!(Kept::parse(wrong).is_err(), "{wrong}");
        }
    }
}
