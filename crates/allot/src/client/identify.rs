//! Looks up identifiers by name, identifier, or prefix.

use std::fmt::Write as _;

use cluster::nearest;
use serde_json::Value;

use super::table::{is_identifier, short_length};
use super::wire::{is_uuid, plain, read};
use super::{ClientError, Session};

/// Minimum length of an identifier prefix, in characters.
const LEAST_PREFIX: usize = 4;

/// Maximum number of matches listed in an error.
const MOST_LISTED: usize = 5;

/// A list to look up names and identifiers in. The service only returns entries that the caller is allowed to
/// see.
pub(crate) struct Listed {
    pub noun: &'static str,
    pub path: &'static str,
    /// Name of the list in the answer.
    pub key: &'static str,
    /// JSON pointer to an entry's identifier.
    pub id: &'static str,
    /// JSON pointer to an entry's name, or empty if entries have no name.
    pub name: &'static str,
    /// JSON pointers to fields that tell entries of the same name apart.
    pub details: &'static [&'static str],
    /// Hint if no entry matches.
    pub hint: &'static str,
}

/// An entry of a list, with the fields for errors and prompts.
struct Entry {
    id: String,
    name: String,
    details: Vec<String>,
}

impl Listed {
    /// Finds the identifier of an entry by name, identifier or prefix. A full identifier isn't looked up.
    pub(crate) async fn find(&self, given: &str, session: &Session<'_>) -> Result<String, ClientError> {
        if is_uuid(given) {
            return Ok(given.to_owned());
        }
        let entries: Vec<Value> = read(&session.connection.get(self.path, &[]).await?, self.key)?;
        self.one_of(&entries, given, &|date| session.brief(date))
    }

    /// Like [`Self::find`], and describes the entry for a prompt. Without a prompt, the description is what
    /// the user gave.
    pub(crate) async fn find_described(
        &self,
        given: &str,
        session: &Session<'_>,
    ) -> Result<(String, String), ClientError> {
        if !session.may_ask {
            return Ok((self.find(given, session).await?, given.to_owned()));
        }
        let entries: Vec<Value> = read(&session.connection.get(self.path, &[]).await?, self.key)?;
        let is_listed = || entries.iter().any(|entry| text(entry, self.id) == given);
        if is_uuid(given) && !is_listed() {
            return Ok((given.to_owned(), given.to_owned()));
        }
        let id = self.one_of(&entries, given, &|date| session.brief(date))?;
        let entry = entries.iter().find(|entry| text(entry, self.id) == id && !self.name.is_empty());
        let name = entry.map(|entry| text(entry, self.name)).unwrap_or_default();
        let described = if is_identifier(&id) && !name.is_empty() {
            format!("{name} ({})", &id[..short_length([id.as_str()].into_iter())])
        } else if name.is_empty() {
            id.clone()
        } else {
            name
        };
        Ok((id, described))
    }

    /// Error for a name or identifier that doesn't exist.
    pub(crate) fn unknown(&self, given: &str) -> String {
        format!("there is no {} {given:?}", self.noun)
    }

    /// Whether an error says that no entry has this name or identifier.
    pub(crate) fn is_unknown(&self, given: &str, error: &ClientError) -> bool {
        matches!(error, ClientError::Refused { message, .. } if message.starts_with(&self.unknown(given)))
    }

    /// Exact names and identifiers take precedence over prefixes. `brief` formats dates.
    pub(crate) fn one_of(
        &self,
        entries: &[Value],
        given: &str,
        brief: &dyn Fn(&str) -> String,
    ) -> Result<String, ClientError> {
        let entries = entries.iter().map(|entry| Entry {
            id: text(entry, self.id),
            name: if self.name.is_empty() { String::new() } else { text(entry, self.name) },
            details: self.details.iter().map(|pointer| text(entry, pointer)).collect(),
        });
        let mut entries: Vec<Entry> = entries.filter(|entry| !entry.id.is_empty()).collect();
        // Leases of a series share its identifier.
        entries.sort_by(|a, b| (&a.id, &a.name).cmp(&(&b.id, &b.name)));
        entries.dedup_by(|a, b| a.id == b.id);
        let is_exact = |entry: &&Entry| entry.id == given || (!self.name.is_empty() && entry.name == given);
        let mut found: Vec<&Entry> = entries.iter().filter(is_exact).collect();
        let by_name = !found.is_empty();
        if !by_name && is_prefix(given) {
            let prefix = given.to_ascii_lowercase();
            found = entries.iter().filter(|entry| entry.id.starts_with(&prefix)).collect();
        }
        let noun = self.noun;
        let (message, hint) = match found.as_slice() {
            [only] => return Ok(only.id.clone()),
            [] => {
                // Hosts have numbers, which can't be abbreviated.
                let have_beginnings = entries.iter().all(|entry| is_identifier(&entry.id));
                let hint = if have_beginnings && is_short_prefix(given) {
                    format!("write at least four characters of an ID; {}", self.hint)
                } else {
                    let meant = nearest(
                        given,
                        entries.iter().map(|entry| entry.name.as_str()).filter(|name| !name.is_empty()),
                    );
                    let meant = meant.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
                    format!("{meant}{}", self.hint)
                };
                (self.unknown(given), hint)
            }
            several => {
                let length = short_length(several.iter().map(|entry| entry.id.as_str()));
                let listed =
                    several.iter().take(MOST_LISTED).map(|entry| entry.listed(length, by_name, brief));
                let mut listed = listed.collect::<Vec<_>>().join(", ");
                if several.len() > MOST_LISTED {
                    let _ = write!(listed, ", and {} more", several.len() - MOST_LISTED);
                }
                let advice = if by_name { "use an ID" } else { "use more of the ID" };
                (format!("{noun} {given:?} is ambiguous"), format!("{advice}: {listed}"))
            }
        };
        Err(ClientError::Refused { status: 404, message, hint: Some(hint) })
    }
}

impl Entry {
    /// Shows `length` characters of the identifier and the details, and the name unless the user gave it.
    fn listed(&self, length: usize, by_name: bool, brief: &dyn Fn(&str) -> String) -> String {
        let id = if is_identifier(&self.id) { &self.id[..length] } else { self.id.as_str() };
        let details = self.details.iter().map(|detail| brief(detail)).filter(|detail| !detail.is_empty());
        let told = [id.to_owned()].into_iter().chain(details).collect::<Vec<_>>().join(" ");
        if by_name || self.name.is_empty() { told } else { format!("{} ({told})", self.name) }
    }
}

/// Text at a JSON pointer, or empty if the entry has none.
fn text(entry: &Value, pointer: &str) -> String {
    entry.pointer(pointer).map(plain).unwrap_or_default()
}

/// Whether the text can be an identifier prefix.
pub(crate) fn is_prefix(text: &str) -> bool {
    text.len() >= LEAST_PREFIX && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-')
}

/// Whether the text would be an identifier prefix if it were longer.
fn is_short_prefix(text: &str) -> bool {
    (1..LEAST_PREFIX).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::lease::LEASES;

    fn one_of(listed: &Listed, entries: &[Value], given: &str) -> Result<String, ClientError> {
        listed.one_of(entries, given, &|date| date.replace("2030-01-02T09:00:00.000000", "Wed 09:00"))
    }

    #[test]
    fn names_come_before_beginnings_of_identifiers() {
        let start = "2030-01-02T09:00:00.000000";
        let lease =
            |id: &str, name: &str| json!({"id": id, "name": name, "status": "PENDING", "start_date": start});
        let leases = [
            lease("ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "web"),
            lease("ecdc1111-d38d-4032-a9e3-3a8dbcc06753", "twice"),
            lease("cafe1111-d38d-4032-a9e3-3a8dbcc06753", "twice"),
            lease("0c7be2d4-d38d-4032-a9e3-3a8dbcc06753", "cafe"),
        ];
        let find = |given: &str| one_of(&LEASES, &leases, given);
        let id = |at: usize| leases[at]["id"].as_str().expect("a text").to_owned();
        for (given, at) in [("web", 0), ("ecdcc", 0), ("ECDC1111-", 1), ("cafe", 3), ("cafe1", 2)] {
            assert_eq!(find(given).ok(), Some(id(at)), "{given}");
        }
        let more = "write at least four characters of an ID; `allot lease list` shows all";
        for (given, said, hint) in [
            (
                "ecdc",
                "lease \"ecdc\" is ambiguous",
                "use more of the ID: twice (ecdc1111 PENDING Wed 09:00), web (ecdcc9ea PENDING Wed 09:00)",
            ),
            (
                "twice",
                "lease \"twice\" is ambiguous",
                "use an ID: cafe1111 PENDING Wed 09:00, ecdc1111 PENDING Wed 09:00",
            ),
            ("ecd", "there is no lease \"ecd\"", more),
            ("wep", "there is no lease \"wep\"", "did you mean \"web\"? `allot lease list` shows all"),
            ("xyz", "there is no lease \"xyz\"", LEASES.hint),
            ("0c7be2d5", "there is no lease \"0c7be2d5\"", LEASES.hint),
        ] {
            let error = find(given).expect_err(given);
            assert_eq!((error.to_string().as_str(), error.hint()), (said, Some(hint)));
        }
        let hosts = [json!({"id": "7", "name": "r1-h01"})];
        let none = one_of(&LEASES, &hosts, "ab").expect_err("no such host");
        assert_eq!(none.hint(), Some(LEASES.hint), "a number has no beginning");
    }

    #[test]
    fn identifiers_in_an_error_are_long_enough_to_use() {
        let lease =
            |end: char| json!({"id": format!("ecdcc9ea-d38d-4032-a9e3-3a8dbcc0675{end}"), "name": "web"});
        let leases: Vec<Value> = "0123456".chars().map(lease).collect();
        let error = one_of(&LEASES, &leases, "web").expect_err("ambiguous");
        let hint = error.hint().expect("a hint");
        assert!(
            hint.contains("ecdcc9ea-d38d-4032-a9e3-3a8dbcc06754") && hint.ends_with(", and 2 more"),
            "{hint}"
        );
    }

    #[test]
    fn a_series_is_found_by_the_name_of_its_leases() {
        let listed = Listed { noun: "series", id: "/series_id", details: &[], ..LEASES };
        let lease = |series: Option<&str>| json!({"id": "x", "name": "course", "series_id": series});
        let leases = [lease(Some("0c7be2d4")), lease(None), lease(Some("0c7be2d4"))];
        assert_eq!(one_of(&listed, &leases, "course").ok().as_deref(), Some("0c7be2d4"));
        assert_eq!(one_of(&listed, &leases, "0c7b").ok().as_deref(), Some("0c7be2d4"));
    }
}
