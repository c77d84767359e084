//! Keys of records as text: a word and the record's identifier, separated by a slash.

use std::collections::BTreeSet;

use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};

use super::action::uuid;
use super::{Unreadable, action_from_key, action_key};
use crate::{DocumentKind, RecordKey};

/// Word for plain records. The kind follows it, so services that don't know the kind can leave the record
/// alone.
const DOCUMENT: &str = "document";

/// Kinds of plain records with a word of their own, because services from before documents were introduced
/// know them by it.
const WORDS: [&str; 3] = ["flavor", "property", "preemptible-project"];

/// The key as text. A record always has the same key.
pub fn record_key_text(key: &RecordKey) -> String {
    match key {
        RecordKey::Lease(id) => format!("lease/{id}"),
        RecordKey::Host(id) => format!("host/{id}"),
        RecordKey::FloatingIp(id) => format!("floating-ip/{id}"),
        RecordKey::Document(key) => document_text(key.kind.name(), &key.id),
        RecordKey::Instance(id) => format!("instance/{id}"),
        RecordKey::FreePool(id) => format!("free-pool/{id}"),
        RecordKey::Step(action) => format!("step/{}", action_key(*action)),
    }
}

fn document_text(kind: &str, id: &str) -> String {
    if WORDS.contains(&kind) { format!("{kind}/{id}") } else { format!("{DOCUMENT}/{kind}/{id}") }
}

pub fn record_key_from_text(text: &str) -> Result<RecordKey, Unreadable> {
    read(text)?.ok_or_else(|| unreadable(text))
}

/// Parses keys, and skips plain records of kinds that this version doesn't know.
pub fn record_keys<T: AsRef<str>>(
    texts: impl IntoIterator<Item = T>,
) -> Result<BTreeSet<RecordKey>, Unreadable> {
    texts.into_iter().filter_map(|text| read(text.as_ref()).transpose()).collect()
}

fn unreadable(text: &str) -> Unreadable {
    Unreadable::new("record", text, "it is not the key of a record")
}

/// Parses a key. `None` for a plain record of an unknown kind.
fn read(text: &str) -> Result<Option<RecordKey>, Unreadable> {
    let unreadable = || unreadable(text);
    let (word, name) = text.split_once('/').ok_or_else(unreadable)?;
    Ok(Some(match word {
        "lease" => RecordKey::Lease(LeaseId(uuid(name).ok_or_else(unreadable)?)),
        "host" => RecordKey::Host(HostId(name.parse().map_err(|_| unreadable())?)),
        "floating-ip" => RecordKey::FloatingIp(FloatingIpId(uuid(name).ok_or_else(unreadable)?)),
        "instance" => RecordKey::Instance(GuestId(uuid(name).ok_or_else(unreadable)?)),
        "free-pool" => RecordKey::FreePool(FreePoolId(uuid(name).ok_or_else(unreadable)?)),
        "step" => RecordKey::Step(action_from_key(name)?),
        DOCUMENT => {
            let (kind, id) = name.split_once('/').ok_or_else(unreadable)?;
            return Ok(DocumentKind::from_name(kind).map(|kind| RecordKey::Document(kind.key(id))));
        }
        word if WORDS.contains(&word) => {
            RecordKey::Document(DocumentKind::from_name(word).ok_or_else(unreadable)?.key(name))
        }
        _ => return Err(unreadable()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_before_know_the_kinds_that_they_know_and_others_are_skipped() {
        let known = ["flavor/a/b", "host/7", "property/", "preemptible-project/*"];
        let texts = known.map(str::to_owned).into_iter().chain([document_text("quota", "a/b")]);
        assert_eq!(document_text("quota", "a/b"), "document/quota/a/b");
        let keys = record_keys(texts).expect("all can be read");
        let again: BTreeSet<String> = keys.iter().map(record_key_text).collect();
        assert_eq!(again, known.map(str::to_owned).into());
        assert!(record_keys(["flavor/a", "quota/a"]).is_err(), "it may be a kind that matters");
        assert!(record_keys(["document/quota"]).is_err());
    }
}
