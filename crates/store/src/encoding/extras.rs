//! Rare fields of leases in one JSON document: scheduler hints, the action before the start, marks of
//! housekeeping, and whether preemptible instances may use idle hosts.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::hints::{GroupPolicy, Hints, Location, OtherLeases};
use leases::housekeeping::Marks;
use leases::ids::{HostId, LeaseId};
use leases::lease::{BeforeStart, Lease};
use leases::status::EventStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lease::instant;
use super::{
    LongText, MOST_INLINE, StoredText, Unreadable, from_hex, from_json, hex, json, named,
    requirement_from_json, requirement_json,
};

/// Contents of the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    pub hints: Arc<Hints>,
    pub before_start: Option<BeforeStart>,
    /// Actions that housekeeping has already taken.
    pub marks: Marks,
    /// Whether preemptible instances may run on hosts that the lease doesn't use.
    pub backfill: bool,
}

/// A new field needs a default, because older documents are still read.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Document {
    #[serde(skip_serializing_if = "is_default")]
    hints: HintsColumn,
    #[serde(skip_serializing_if = "is_default")]
    before_start: Option<BeforeStartDocument>,
    #[serde(skip_serializing_if = "is_default")]
    marks: MarksDocument,
    #[serde(skip_serializing_if = "is_default")]
    backfill: bool,
}

/// Hints, or a reference to them if they are long. The rest of the document changes with the status, so it isn't part
/// of the text that is stored by hash.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum HintsColumn {
    Reference(String),
    Document(HintsDocument),
}

impl Default for HintsColumn {
    fn default() -> Self {
        Self::Document(HintsDocument::default())
    }
}

#[derive(PartialEq, Serialize, Deserialize)]
struct BeforeStartDocument {
    ahead_s: i64,
    status: String,
}

/// Instants in microseconds.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct MarksDocument {
    #[serde(skip_serializing_if = "is_default")]
    used: bool,
    #[serde(skip_serializing_if = "is_default")]
    unused_warned_us: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    reclaimed_us: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    start_reminded_us: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    end_reminded_us: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    swaps: u32,
    #[serde(skip_serializing_if = "is_default")]
    repacked_us: Option<i64>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct HintsDocument {
    #[serde(skip_serializing_if = "is_default")]
    query: Value,
    #[serde(skip_serializing_if = "is_default")]
    hosts: BTreeSet<String>,
    #[serde(skip_serializing_if = "is_default")]
    same_host: Option<OthersDocument>,
    #[serde(skip_serializing_if = "is_default")]
    different_host: Option<OthersDocument>,
    #[serde(skip_serializing_if = "is_default")]
    location: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    group: Option<String>,
}

/// Leases in the format of [`hex`], and hosts.
#[derive(PartialEq, Serialize, Deserialize)]
struct OthersDocument {
    leases: BTreeSet<String>,
    hosts: BTreeSet<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The document of a lease; `None` if all fields have their default. Long hints are added to `long`, and the document
/// refers to them.
pub fn extras_json(lease: &Lease, long: &mut LongText) -> Option<String> {
    let before_start = lease.before_start.map(|BeforeStart { ahead, status }| BeforeStartDocument {
        ahead_s: ahead.as_secs(),
        status: status.name().to_owned(),
    });
    let hints = hints_document(&lease.hints);
    let text = json(&hints);
    let hints = if text.len() > MOST_INLINE {
        HintsColumn::Reference(long.reference(text))
    } else {
        HintsColumn::Document(hints)
    };
    let marks = marks_document(&lease.marks);
    let document = Document { hints, before_start, marks, backfill: lease.backfill };
    (!is_default(&document)).then(|| json(&document))
}

/// Parses the document. Without one, every field has its default.
pub fn extras_from_json(text: Option<&str>, stored: &mut StoredText) -> Result<Extras, Unreadable> {
    let Some(text) = text else { return Ok(Extras::default()) };
    let Document { hints, before_start, marks, backfill } = from_json("lease", text)?;
    let before_start = before_start.map(|document| {
        let status = named("event status", &document.status, EventStatus::from_name)?;
        Ok::<_, Unreadable>(BeforeStart { ahead: SignedDuration::from_secs(document.ahead_s), status })
    });
    let before_start = before_start.transpose()?;
    let hints = match hints {
        HintsColumn::Reference(reference) => stored.hints(&reference)?,
        HintsColumn::Document(document) => Arc::new(hints_of(document)?),
    };
    Ok(Extras { hints, before_start, marks: marks_of(&marks)?, backfill })
}

/// Hints as in the document of a lease. Empty without hints.
pub fn hints_json(hints: &Hints) -> String {
    let document = hints_document(hints);
    if is_default(&document) { String::new() } else { json(&document) }
}

pub(super) fn hints_from_json(text: &str) -> Result<Hints, Unreadable> {
    hints_of(from_json("hints", text)?)
}

fn marks_document(marks: &Marks) -> MarksDocument {
    let us = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
    MarksDocument {
        used: marks.used,
        unused_warned_us: us(marks.unused_warned_at),
        reclaimed_us: us(marks.reclaimed_at),
        start_reminded_us: us(marks.start_reminded),
        end_reminded_us: us(marks.end_reminded),
        swaps: marks.swaps,
        repacked_us: us(marks.repacked_at),
    }
}

fn marks_of(document: &MarksDocument) -> Result<Marks, Unreadable> {
    let at = |us: Option<i64>| us.map(instant).transpose();
    Ok(Marks {
        used: document.used,
        unused_warned_at: at(document.unused_warned_us)?,
        reclaimed_at: at(document.reclaimed_us)?,
        start_reminded: at(document.start_reminded_us)?,
        end_reminded: at(document.end_reminded_us)?,
        swaps: document.swaps,
        repacked_at: at(document.repacked_us)?,
    })
}

fn hints_document(hints: &Hints) -> HintsDocument {
    let others = |others: &Option<OtherLeases>| {
        others.as_ref().map(|others| OthersDocument {
            leases: others.leases.iter().map(|lease| hex(lease.0)).collect(),
            hosts: others.hosts.iter().map(|host| host.0).collect(),
        })
    };
    HintsDocument {
        query: requirement_json(&hints.query),
        hosts: hints.hosts.clone(),
        same_host: others(&hints.same_host),
        different_host: others(&hints.different_host),
        location: hints.location.map(|location| location.name().to_owned()),
        group: hints.group.map(|group| group.name().to_owned()),
    }
}

fn hints_of(document: HintsDocument) -> Result<Hints, Unreadable> {
    let others = |others: Option<OthersDocument>| {
        let read = |others: OthersDocument| {
            let leases = others.leases.iter().map(|lease| from_hex(lease).map(LeaseId));
            Ok::<_, Unreadable>(OtherLeases {
                leases: leases.collect::<Result<_, _>>()?,
                hosts: others.hosts.into_iter().map(HostId).collect(),
            })
        };
        others.map(read).transpose()
    };
    Ok(Hints {
        query: requirement_from_json(&document.query)?,
        hosts: document.hosts,
        same_host: others(document.same_host)?,
        different_host: others(document.different_host)?,
        location: document.location.map(|name| named("location", &name, Location::from_name)).transpose()?,
        group: document.group.map(|name| named("group", &name, GroupPolicy::from_name)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cls_11_a_a_lease_of_before_has_no_hints() {
        let mut stored = StoredText::default();
        for text in [None, Some("{}"), Some(r#"{"hints":{}}"#)] {
            assert_eq!(extras_from_json(text, &mut stored), Ok(Extras::default()), "{text:?}");
        }
        assert!(extras_from_json(Some(r#"{"hints":{"group":"nearby"}}"#), &mut stored).is_err());
    }
}
