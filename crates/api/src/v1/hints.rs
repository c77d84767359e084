//! Scheduler hints of leases and of instances in them (CLS-11). Not in Blazar.

use std::collections::BTreeSet;

use leases::hints::{GroupPolicy, Hint, HintRules, Hints, Location, MAX_NAMED, OtherLeases};
use leases::ids::{GuestId, LeaseId};
use leases::requirement::Requirement;
use leases::text::as_written;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::encoding::requirement_json;
use utoipa::ToSchema;

use super::error::RequestError;
use super::fields::Fields;
use super::id::{instance_id, lease_id};
use super::requirement::read_expression;

/// Scheduler hints of a lease. They can't be changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerHints {
    /// Requirement on each host, as JSON in a string: `[">=", "$vcpus", "16"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Names of hosts. The lease gets hosts from this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// Identifiers of leases of the project. The lease gets hosts that these leases have when it is created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_host: Vec<String>,
    /// Identifiers of leases of the project. The lease doesn't get hosts of these leases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub different_host: Vec<String>,
    /// Whether hosts of a reservation share a location: `same` or `different`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Distribution of instances over hosts: `affinity`, `anti-affinity`, `soft-affinity` or
    /// `soft-anti-affinity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl SchedulerHints {
    /// Hints for an answer. `None` if the lease has no hints.
    pub fn of(hints: &Hints) -> Option<Self> {
        let leases = |others: &Option<OtherLeases>| {
            others.iter().flat_map(|others| &others.leases).map(ToString::to_string).collect()
        };
        (!hints.is_empty()).then(|| Self {
            query: (hints.query != Requirement::NONE)
                .then(|| requirement_json(&hints.query.renamed(&as_written)).to_string()),
            host: hints.hosts.iter().cloned().collect(),
            same_host: leases(&hints.same_host),
            different_host: leases(&hints.different_host),
            location: hints.location.map(|location| location.name().to_owned()),
            group: hints.group.map(|group| group.name().to_owned()),
        })
    }
}

/// An available hint.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OfferedHint {
    /// Name of the hint.
    pub name: String,
    /// Effect of the hint.
    pub description: String,
    /// `hosts` if the hint selects hosts of the lease; `instances` if instances inherit it.
    pub applies_to: String,
    /// Types of reservations that support the hint.
    pub resource_types: Vec<String>,
    /// Type of the value: `expression`, `hosts`, `leases` or `choice`. `hosts` and `leases` can have several
    /// values.
    pub domain: String,
    /// All possible values; null if they can't be listed, or the caller can't see them.
    pub values: Option<Vec<String>>,
    /// Hints that can't be combined with this one. All other hints can.
    pub not_with: Vec<String>,
}

/// Available hints, and limits on how strict they can be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OfferedHints {
    /// Available hints.
    pub hints: Vec<OfferedHint>,
    /// Minimum number of hosts that must match the hints of a lease, whether they are free or not.
    pub least_hosts: u32,
    /// Whether `host` can name a single host.
    pub single_host: bool,
    /// Property with the location of a host.
    pub location_property: String,
}

impl OfferedHints {
    /// Hints that these rules allow. `hosts` has the names of hosts that can be used, if the caller may know
    /// them.
    pub fn of(rules: &HintRules, hosts: Option<&[String]>) -> Self {
        let names = |hints: &[Hint]| hints.iter().map(|hint| hint.name().to_owned()).collect();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let offered = |hint: &Hint| {
            let (domain, values, description) = match hint {
                Hint::Query => ("expression", None, "each host matches it, as it would in JsonFilter"),
                Hint::Host => ("hosts", hosts.map(<[_]>::to_vec), "hosts are among these"),
                Hint::SameHost => ("leases", None, "hosts are among those of these leases"),
                Hint::DifferentHost => ("leases", None, "hosts are none of those of these leases"),
                Hint::Location => (
                    "choice",
                    Some(Location::names().map(str::to_owned).collect()),
                    "hosts of a reservation are in one place, or each in another",
                ),
                Hint::Group => (
                    "choice",
                    Some(GroupPolicy::names().map(str::to_owned).collect()),
                    "instances in the lease are on one host, or each on another; soft: if possible",
                ),
            };
            OfferedHint {
                name: hint.name().to_owned(),
                description: description.to_owned(),
                applies_to: if *hint == Hint::Group { "instances" } else { "hosts" }.to_owned(),
                resource_types: if hint.needs_whole_hosts() {
                    texts(&["physical:host"])
                } else {
                    texts(&["physical:host", "virtual:instance", "flavor:instance"])
                },
                domain: domain.to_owned(),
                values,
                not_with: names(hint.excludes()),
            }
        };
        Self {
            hints: rules.enabled.iter().map(offered).collect(),
            least_hosts: rules.least_hosts,
            single_host: rules.single_host,
            location_property: rules.location.clone(),
        }
    }
}

/// Reads the hints of a new lease. The hosts of the leases that they name aren't known here.
pub(crate) fn read_hints(value: &Value) -> Result<Hints, RequestError> {
    const LEASES: &str = "identifiers of leases";
    let mut fields = Fields::nested("scheduler_hints", value)?;
    let query = fields.given("query").map(|value| read_expression(single(value))).transpose()?;
    let hosts = fields.given("host").map(|value| several("scheduler_hints.host", value, "names of hosts"));
    let mut leases = |field: &'static str, name: &'static str| {
        let Some(value) = fields.given(field) else { return Ok::<_, RequestError>(None) };
        let read = |text: &String| lease_id(text).ok_or_else(|| RequestError::malformed(name, LEASES));
        let ids: BTreeSet<LeaseId> =
            several(name, value, LEASES)?.iter().map(read).collect::<Result<_, _>>()?;
        Ok((!ids.is_empty()).then(|| OtherLeases { leases: ids, ..OtherLeases::default() }))
    };
    let same_host = leases("same_host", "scheduler_hints.same_host")?;
    let different_host = leases("different_host", "scheduler_hints.different_host")?;
    let location = fields.given("location").map(|value| {
        let known = single(value).as_str().and_then(Location::from_name);
        known.ok_or_else(|| RequestError::malformed("scheduler_hints.location", "same or different"))
    });
    let group = fields.given("group").map(|value| {
        let expected = "affinity, anti-affinity, soft-affinity or soft-anti-affinity";
        let known = single(value).as_str().and_then(GroupPolicy::from_name);
        known.ok_or_else(|| RequestError::malformed("scheduler_hints.group", expected))
    });
    let hints = Hints {
        query: query.map(|query| query.requirement).unwrap_or_default(),
        hosts: hosts.transpose()?.unwrap_or_default().into_iter().collect(),
        same_host,
        different_host,
        location: location.transpose()?,
        group: group.transpose()?,
    };
    fields.finish()?;
    Ok(hints)
}

/// Reads the instances that an instance must share a host with, or must not.
pub(crate) fn read_instances(name: &'static str, value: &Value) -> Result<BTreeSet<GuestId>, RequestError> {
    const EXPECTED: &str = "identifiers of instances";
    let read = |text: &String| instance_id(text).ok_or_else(|| RequestError::malformed(name, EXPECTED));
    several(name, value, EXPECTED)?.iter().map(read).collect()
}

/// The value. Nova's clients also write a single value as a list.
fn single(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        // An expression begins with its operator, so a list of one entry isn't an expression.
        Some([one]) => one,
        _ => value,
    }
}

/// A list of texts, or a single text.
fn several(name: &'static str, value: &Value, expected: &'static str) -> Result<Vec<String>, RequestError> {
    let wrong = || RequestError::malformed(name, expected);
    let one = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match value {
        Value::Array(values) if values.len() > MAX_NAMED => {
            Err(RequestError::malformed(name, "at most 500 entries long"))
        }
        Value::Array(values) => values.iter().map(|value| one(value).ok_or_else(wrong)).collect(),
        value => one(value).map(|text| vec![text]).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";

    #[test]
    fn cls_11_a_hints_are_read_and_shown_as_they_are() {
        let body = json!({
            "query": r#"["==","$rack","r1"]"#, "host": ["node1", "node2"], "different_host": [ID],
            "location": "same", "group": "soft-anti-affinity",
        });
        let hints = read_hints(&body).expect("well formed");
        assert_eq!(hints.given().count(), 5);
        let shown = SchedulerHints::of(&hints).expect("some");
        assert_eq!(serde_json::to_value(&shown).expect("JSON"), body);
        let short =
            json!({"host": "node1", "same_host": ID, "location": ["same"], "query": ["==", "$a", "b"]});
        assert_eq!(read_hints(&short).expect("well formed").given().count(), 4);
        assert_eq!(SchedulerHints::of(&read_hints(&json!({"query": "[]"})).expect("none")), None);
    }

    #[test]
    fn cls_11_b_an_unknown_hint_or_value_is_refused_by_its_name() {
        for (hints, wrong) in [
            (json!({"same_hosts": ID}), "Unknown parameter scheduler_hints.same_hosts"),
            (json!({"location": "near"}), "Malformed parameter scheduler_hints.location"),
            (json!({"group": 1}), "Malformed parameter scheduler_hints.group"),
            (json!({"host": ["a", 1]}), "Malformed parameter scheduler_hints.host"),
            (json!({"host": ""}), "Malformed parameter scheduler_hints.host"),
            (json!({"same_host": "x"}), "Malformed parameter scheduler_hints.same_host"),
            (json!({"host": vec!["a"; 501]}), "Malformed parameter scheduler_hints.host"),
            (json!({"query": "junk"}), "Malformed requirements junk"),
            (json!([]), "Malformed parameter scheduler_hints"),
        ] {
            let error = read_hints(&hints).expect_err("wrong");
            assert_eq!((error.status(), error.to_string()), (400, wrong.to_owned()));
        }
    }
}
