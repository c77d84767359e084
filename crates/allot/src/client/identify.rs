//! Looks up identifiers by name, identifier, or prefix.

use std::fmt::Write as _;

use serde_json::Value;

use super::wire::{is_uuid, plain, read};
use super::{ClientError, Session};

/// Characters of the beginning of an identifier, at least.
const LEAST_PREFIX: usize = 4;

/// Matches that an error lists, at most.
const MOST_LEASES: usize = 5;

/// A list to look up names and identifiers in. The service shows the entries that the caller may see.
pub(crate) struct Listed {
    pub noun: &'static str,
    pub path: &'static str,
    /// Name of the list in the answer.
    pub key: &'static str,
    /// JSON pointer to an entry's identifier.
    pub id: &'static str,
    /// JSON pointer to an entry's name. Empty: it has none.
    pub name: &'static str,
    /// Hint if no entry matches.
    pub hint: &'static str,
}

impl Listed {
    /// Finds the identifier of an entry by its name, identifier or prefix. A full identifier isn't looked up.
    pub(crate) async fn find(&self, given: &str, session: &Session<'_>) -> Result<String, ClientError> {
        if is_uuid(given) {
            return Ok(given.to_owned());
        }
        let entries: Vec<Value> = read(&session.connection.get(self.path, &[]).await?, self.key)?;
        self.one_of(&entries, given)
    }

    /// Exact names and identifiers come before beginnings of identifiers.
    pub(crate) fn one_of(&self, entries: &[Value], given: &str) -> Result<String, ClientError> {
        let text = |entry: &Value, pointer: &str| entry.pointer(pointer).map(plain).unwrap_or_default();
        let entries = entries.iter().map(|entry| (text(entry, self.id), text(entry, self.name)));
        let mut entries: Vec<(String, String)> = entries.filter(|(id, _)| !id.is_empty()).collect();
        // Leases of a series have the same one.
        entries.sort();
        entries.dedup_by(|a, b| a.0 == b.0);
        let exact = |(id, name): &&(String, String)| id == given || (!self.name.is_empty() && name == given);
        let mut found: Vec<_> = entries.iter().filter(exact).collect();
        if found.is_empty() && is_prefix(given) {
            let prefix = given.to_ascii_lowercase();
            found = entries.iter().filter(|(id, _)| id.starts_with(&prefix)).collect();
        }
        let noun = self.noun;
        let (message, hint) = match found.as_slice() {
            [(id, _)] => return Ok(id.clone()),
            [] => (format!("there is no {noun} {given:?}"), self.hint.to_owned()),
            several => {
                let named = several.iter().take(MOST_LEASES).map(|(id, name)| match self.name {
                    "" => id.clone(),
                    _ => format!("{name} ({id})"),
                });
                let mut named = named.collect::<Vec<_>>().join(", ");
                if several.len() > MOST_LEASES {
                    let _ = write!(named, ", and {} more", several.len() - MOST_LEASES);
                }
                (format!("{noun} {given:?} is ambiguous"), format!("use more of the identifier: {named}"))
            }
        };
        Err(ClientError::Refused { status: 404, message, hint: Some(hint) })
    }
}

/// Whether it can be the beginning of an identifier.
pub(crate) fn is_prefix(text: &str) -> bool {
    text.len() >= LEAST_PREFIX && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::lease::LEASES;

    #[test]
    fn names_come_before_beginnings_of_identifiers() {
        let lease = |id: &str, name: &str| json!({"id": id, "name": name});
        let leases = [
            lease("ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "web"),
            lease("ecdc1111-d38d-4032-a9e3-3a8dbcc06753", "twice"),
            lease("cafe1111-d38d-4032-a9e3-3a8dbcc06753", "twice"),
            lease("0c7be2d4-d38d-4032-a9e3-3a8dbcc06753", "cafe"),
        ];
        let find = |given: &str| LEASES.one_of(&leases, given);
        let id = |at: usize| leases[at]["id"].as_str().expect("a text").to_owned();
        for (given, at) in [("web", 0), ("ecdcc", 0), ("ECDC1111-", 1), ("cafe", 3), ("cafe1", 2)] {
            assert_eq!(find(given).ok(), Some(id(at)), "{given}");
        }
        for (given, said) in [
            ("ecdc", "lease \"ecdc\" is ambiguous"),
            ("twice", "lease \"twice\" is ambiguous"),
            ("ecd", "there is no lease \"ecd\""),
            ("0c7be2d5", "there is no lease \"0c7be2d5\""),
        ] {
            let error = find(given).expect_err(given);
            assert_eq!(error.to_string(), said);
            let several = error.hint().is_some_and(|hint| hint.contains(&id(1)) && hint.contains("twice ("));
            assert_eq!(several, said.ends_with("ambiguous"), "{given}");
        }
    }

    #[test]
    fn a_series_is_found_by_the_name_of_its_leases() {
        let listed = Listed { noun: "series", id: "/series_id", ..LEASES };
        let lease = |series: Option<&str>| json!({"id": "x", "name": "course", "series_id": series});
        let leases = [lease(Some("0c7be2d4")), lease(None), lease(Some("0c7be2d4"))];
        assert_eq!(listed.one_of(&leases, "course").ok().as_deref(), Some("0c7be2d4"));
        assert_eq!(listed.one_of(&leases, "0c7b").ok().as_deref(), Some("0c7be2d4"));
    }
}
