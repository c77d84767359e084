//! Storage of long text, once for all columns that contain it.
//!
//! A column stores text of at most [`MOST_INLINE`] bytes itself. Longer text is a row of a separate table, and columns
//! refer to it by its SHA-256. So a status change of a lease writes little however much text the lease has, and the
//! leases of a series share their text. The store also records which texts each lease refers to, and deletes a text
//! with its last reference.
//!
//! | column | text stored inline | reference |
//! | --- | --- | --- |
//! | text | unchanged; prefixed with `text:` if it starts with `text:` or `sha256:` | `sha256:HEX` |
//! | JSON | an object | a string, `"sha256:HEX"` |
//!
//! The JSON of terms contains requirements that clients write as text. Where the column with this text is a reference, the
//! JSON contains the same reference, and the requirement is parsed from the text.
//!
//! Earlier versions stored all text inline. Such text can still be read, and long text moves to the table the next time
//! its lease is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use leases::hints::Hints;
use leases::ids::LeaseId;
use leases::lease::Reservation;
use leases::requirement::Requirement;
use leases::terms::ReservationTerms;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::requirement::requirement_from_text;
use super::terms::{Field, read_terms, terms_document};
use super::{Unreadable, extras, requirement_from_json, requirement_json};
use crate::LeaseRecord;

/// Maximum bytes of text that a column stores inline.
pub const MOST_INLINE: usize = 256;

/// Prefix of a reference.
const REFERENCE: &str = "sha256:";

/// Prefix of inline text that would otherwise look like a reference or like prefixed text.
const LITERAL: &str = "text:";

/// The SHA-256 of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextHash(pub [u8; 32]);

impl TextHash {
    fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Reads the 32 bytes of a hash column.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        let bytes = <[u8; 32]>::try_from(bytes);
        bytes.map(Self).map_err(|_| Unreadable::new("hash", "of a text", "it is not 32 bytes long"))
    }

    fn from_hex(digits: &str) -> Option<Self> {
        let digits = <[u8; 64]>::try_from(digits.as_bytes()).ok()?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Long text of a lease, collected while its rows are built.
#[derive(Debug, Default)]
pub struct LongText(BTreeMap<TextHash, String>);

/// Text columns of a reservation, as they are stored.
#[derive(Debug)]
pub struct ReservationText<'a> {
    /// The terms as JSON, or a reference to them.
    pub terms: String,
    /// [`crate::Wording::hypervisor_properties`].
    pub hypervisor_properties: Option<Cow<'a, str>>,
    /// [`crate::Wording::resource_properties`].
    pub resource_properties: Option<Cow<'a, str>>,
}

impl LongText {
    /// The column value for a text: inline, or a reference if it is long.
    pub(super) fn column<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if text.len() > MOST_INLINE {
            Cow::Owned(self.reference(text.to_owned()))
        } else if [REFERENCE, LITERAL].iter().any(|start| text.starts_with(start)) {
            Cow::Owned(format!("{LITERAL}{text}"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// The column value for a JSON object. A reference is a JSON string, so it can't be confused with an object.
    pub(super) fn document(&mut self, json: String) -> String {
        if json.len() > MOST_INLINE { format!("\"{}\"", self.reference(json)) } else { json }
    }

    /// Collects a text of any length and returns the reference to it.
    pub(super) fn reference(&mut self, text: String) -> String {
        let hash = TextHash::of(&text);
        self.0.insert(hash, text);
        format!("{REFERENCE}{hash}")
    }

    /// The collected texts, without duplicates.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// The text columns of a reservation. Long text is collected.
    pub fn reservation<'a>(
        &mut self,
        record: &'a LeaseRecord,
        reservation: &Reservation,
    ) -> ReservationText<'a> {
        let words = record.wording.get(&reservation.id);
        let [hypervisor, resource] = [
            words.and_then(|words| words.hypervisor_properties.as_deref()),
            words.and_then(|words| words.resource_properties.as_deref()),
        ];
        let terms = terms_document(&reservation.terms, |field, requirement| {
            let text = match field {
                Field::HypervisorProperties => hypervisor,
                Field::ResourceProperties => resource,
            };
            // A client may also have written it in a way that only the API understands.
            let is_written = |text: &&str| requirement_from_text(text).as_ref() == Ok(requirement);
            match text.filter(|text| text.len() > MOST_INLINE).filter(is_written) {
                Some(text) => Value::String(self.reference(text.to_owned())),
                None => requirement_json(requirement),
            }
        });
        let terms = self.document(terms);
        let [hypervisor_properties, resource_properties] =
            [hypervisor, resource].map(|text| text.map(|text| self.column(text)));
        ReservationText { terms, hypervisor_properties, resource_properties }
    }
}

/// Changes of stored text and of references to it in a commit.
#[derive(Debug, Default)]
pub struct TextChanges {
    /// Texts of new references. They may already be stored for other leases.
    pub texts: BTreeMap<TextHash, String>,
    /// New references.
    pub added: Vec<(LeaseId, TextHash)>,
    /// References to delete.
    pub removed: Vec<(LeaseId, TextHash)>,
}

impl TextChanges {
    /// Adds the changes for `lease`, which now has the long text `now` and had references to `before`.
    pub fn enter(&mut self, lease: LeaseId, now: LongText, before: &BTreeSet<TextHash>) {
        let gone = before.iter().filter(|hash| !now.0.contains_key(hash));
        self.removed.extend(gone.map(|hash| (lease, *hash)));
        for (hash, text) in now.0 {
            if !before.contains(&hash) {
                self.added.push((lease, hash));
                self.texts.insert(hash, text);
            }
        }
    }

    /// Whether no reference changes, as in a commit that only changes statuses.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// Stored text by hash. Columns with the same reference share one copy in memory.
#[derive(Debug, Default)]
pub struct StoredText {
    texts: HashMap<TextHash, Arc<str>>,
    terms: HashMap<TextHash, ReservationTerms>,
    requirements: HashMap<TextHash, Requirement>,
    hints: HashMap<TextHash, Arc<Hints>>,
}

impl StoredText {
    /// Adds a row of the table of texts.
    pub fn insert(&mut self, hash: &[u8], text: String) -> Result<(), Unreadable> {
        self.texts.insert(TextHash::from_bytes(hash)?, text.into());
        Ok(())
    }

    /// The text of a column, which is inline or a reference.
    pub fn text<'c>(&'c self, column: &'c str) -> Result<&'c str, Unreadable> {
        match column.strip_prefix(LITERAL) {
            Some(text) => Ok(text),
            None => Ok(self.referred(column)?.map_or(column, |(_, text)| text)),
        }
    }

    /// Like [`Self::text`], for text that outlives this value.
    pub fn shared_text(&self, column: &str) -> Result<Arc<str>, Unreadable> {
        match column.strip_prefix(LITERAL) {
            Some(text) => Ok(text.into()),
            None => Ok(self.referred(column)?.map_or_else(|| column.into(), |(_, text)| Arc::clone(text))),
        }
    }

    /// The JSON object of a column, which is inline or a reference.
    pub fn document<'c>(&'c self, column: &'c str) -> Result<&'c str, Unreadable> {
        Ok(self.referred_by_json(column)?.map_or(column, |(_, text)| text))
    }

    /// The terms of a reservation, from their column. Equal references are parsed once.
    pub fn terms(&mut self, column: &str) -> Result<ReservationTerms, Unreadable> {
        let Some((hash, text)) = self.referred_by_json(column)? else { return self.read_terms(column) };
        if let Some(terms) = self.terms.get(&hash) {
            return Ok(terms.clone());
        }
        let text = Arc::clone(text);
        let terms = self.read_terms(&text)?;
        self.terms.insert(hash, terms.clone());
        Ok(terms)
    }

    fn read_terms(&mut self, json: &str) -> Result<ReservationTerms, Unreadable> {
        read_terms(json, |value| match value {
            Value::String(reference) => self.requirement(reference),
            _ => requirement_from_json(value),
        })
    }

    /// The requirement in the text that a reference refers to. Equal references are parsed once and share the requirement.
    fn requirement(&mut self, reference: &str) -> Result<Requirement, Unreadable> {
        let (hash, text) = self.referred(reference)?.ok_or_else(|| dangling(reference))?;
        if let Some(requirement) = self.requirements.get(&hash) {
            return Ok(requirement.clone());
        }
        let requirement = requirement_from_text(text)?;
        self.requirements.insert(hash, requirement.clone());
        Ok(requirement)
    }

    /// The hints that a reference refers to. Equal references are parsed once.
    pub(super) fn hints(&mut self, reference: &str) -> Result<Arc<Hints>, Unreadable> {
        let (hash, text) = self.referred(reference)?.ok_or_else(|| dangling(reference))?;
        if let Some(hints) = self.hints.get(&hash) {
            return Ok(Arc::clone(hints));
        }
        let hints = Arc::new(extras::hints_from_json(text)?);
        self.hints.insert(hash, Arc::clone(&hints));
        Ok(hints)
    }

    fn referred_by_json(&self, column: &str) -> Result<Option<(TextHash, &Arc<str>)>, Unreadable> {
        let string = column.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        string.map_or(Ok(None), |string| self.referred(string))
    }

    /// The hash and the text that a column refers to; `None` if the column isn't a reference.
    fn referred(&self, column: &str) -> Result<Option<(TextHash, &Arc<str>)>, Unreadable> {
        let Some(digits) = column.strip_prefix(REFERENCE) else { return Ok(None) };
        let wrong = |why| Unreadable::new("reference", column, why);
        let hash = TextHash::from_hex(digits).ok_or_else(|| wrong("it has no 64 hexadecimal digits"))?;
        let text = self.texts.get(&hash).ok_or_else(|| wrong("the text is not stored"))?;
        Ok(Some((hash, text)))
    }
}

fn dangling(reference: &str) -> Unreadable {
    Unreadable::new("reference", reference, "it refers to no text")
}

#[cfg(test)]
mod tests {
    use leases::terms::HostsTerms;

    use super::*;
    use crate::Wording;
    use crate::conformance::sample;

    fn stored(long: &LongText) -> StoredText {
        let mut stored = StoredText::default();
        for (hash, text) in &long.0 {
            stored.insert(&hash.0, text.clone()).expect("a hash");
        }
        stored
    }

    #[test]
    fn a_column_is_read_as_it_was_written() {
        let hash = TextHash::of("");
        let like_references = [
            format!("sha256:{hash}"),
            format!("text:sha256:{hash}"),
            "sha256:".to_owned(),
            "text:".to_owned(),
            "text:text:".to_owned(),
        ];
        let lengths = [0, 1, MOST_INLINE, MOST_INLINE + 1, 70_000].map(|length| "x".repeat(length));
        let long = like_references.iter().map(|text| format!("{text}{}", "\0ö".repeat(200)));
        for text in like_references.iter().cloned().chain(lengths).chain(long) {
            let mut texts = LongText::default();
            let column = texts.column(&text).into_owned();
            assert_eq!(texts.0.len(), usize::from(text.len() > MOST_INLINE));
            assert!(column.len() <= MOST_INLINE + LITERAL.len(), "{column}");
            let stored = stored(&texts);
            assert_eq!(stored.text(&column).as_deref(), Ok(text.as_str()));
            assert_eq!(stored.shared_text(&column).as_deref(), Ok(text.as_str()));
        }
    }

    #[test]
    fn a_document_of_257_bytes_is_stored_beside_its_column() {
        let document = |length: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8));
        let mut texts = LongText::default();
        assert_eq!(texts.document(document(256)), document(256));
        assert!(texts.0.is_empty());
        let column = texts.document(document(257));
        assert_eq!(column.len(), "\"sha256:\"".len() + 64);
        assert_eq!(stored(&texts).document(&column), Ok(document(257).as_str()));
    }

    /// Terms with this expression, which a client wrote as `text`. Returns the terms, their stored form, and
    /// the long text.
    fn stored_terms(expression: &str, text: &str) -> (ReservationTerms, String, LongText) {
        let mut record = sample::lease(1, sample::window(0, 60), vec![sample::hosts(&[])]);
        let reservation = &mut record.lease.reservations[0];
        let mut terms = HostsTerms::new(1, 1).expect("a range");
        terms.resource = requirement_from_text(expression).expect("an expression");
        reservation.terms = ReservationTerms::Hosts(terms);
        let wording = Wording { resource_properties: Some(text.into()), ..Wording::default() };
        record.wording = BTreeMap::from([(reservation.id, wording)]);
        let mut long = LongText::default();
        let column = long.reservation(&record, &record.lease.reservations[0]).terms;
        (record.lease.reservations[0].terms.clone(), column, long)
    }

    #[test]
    fn a_long_expression_is_stored_once() {
        let text = format!("[\"==\",  \"$rack\", \"{}\"]", "x".repeat(300));
        let (terms, column, long) = stored_terms(&text, &text);
        assert_eq!(long.texts().collect::<Vec<_>>(), [text]);
        assert_eq!(stored(&long).terms(&column), Ok(terms));
    }

    #[test]
    fn an_expression_that_differs_from_its_text_is_stored_beside_it() {
        let value = "x".repeat(300);
        let expression = format!("[\"==\", \"$rack\", \"{value}\"]");
        for text in [format!("rack == {value}"), format!("[\"==\", \"$rack\", \"{value}y\"]")] {
            let (terms, column, long) = stored_terms(&expression, &text);
            assert_eq!(long.texts().count(), 2);
            assert_eq!(stored(&long).terms(&column), Ok(terms));
        }
    }

    #[test]
    fn a_reference_to_nothing_is_an_error() {
        let stored = StoredText::default();
        for column in [
            "sha256:",
            "sha256:00",
            &format!("sha256:{}", "+0".repeat(32)),
            &format!("sha256:{}", "0".repeat(64)),
        ] {
            assert!(stored.text(column).is_err(), "{column}");
            assert!(stored.document(&format!("\"{column}\"")).is_err(), "{column}");
        }
    }

    #[test]
    fn terms_that_refer_to_nothing_are_an_error() {
        let (_, column, long) = stored_terms("[\"==\", \"$rack\", \"r1\"]", "");
        assert!(long.0.is_empty());
        let column = column.replace("[\"==\",\"$rack\",\"r1\"]", "\"r1\"");
        assert!(StoredText::default().terms(&column).is_err(), "{column}");
    }

    #[test]
    fn only_what_changes_is_written() {
        let of = |texts: &[&str]| {
            let mut long = LongText::default();
            for text in texts {
                long.reference((*text).to_owned());
            }
            long
        };
        let [a, b, c] = ["a", "b", "c"].map(TextHash::of);
        let mut changes = TextChanges::default();
        changes.enter(LeaseId(1), of(&["a", "b"]), &[a, b].into());
        assert!(changes.is_empty());
        changes.enter(LeaseId(2), of(&["a", "c"]), &[a, b].into());
        assert_eq!((changes.added, changes.removed), (vec![(LeaseId(2), c)], vec![(LeaseId(2), b)]));
        assert_eq!(changes.texts, BTreeMap::from([(c, "c".to_owned())]));
    }
}
