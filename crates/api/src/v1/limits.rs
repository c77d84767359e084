//! Size limits for the parts of any request.
//!
//! [`Limits::check`] goes through a whole body, so a field that is added later is limited as well. Readers of
//! bodies check what depends on the meaning of a field: dates, counts, and names that are shorter than other
//! values.

use jiff::{SignedDuration, Timestamp};
use leases::text::is_control;
use serde_json::Value;

use super::error::RequestError;
pub use super::fields::LARGEST;
use super::fields::integer;

/// Longest name of a lease, in characters, as in Blazar's database.
pub const LEASE_NAME: usize = 80;

/// Longest name of a capability of a host, in characters, as in Blazar's database.
pub const CAPABILITY_NAME: usize = 64;

/// Longest name of everything else, in characters, as in Nova.
pub const NAME: usize = 255;

/// Size limits for the parts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an expression on properties of hosts, as JSON, characters.
    pub expression_length: usize,
    /// Maximum length of any other text and of a field's name, characters.
    pub value_length: usize,
    /// Maximum number of entries in a list, and of fields in an object.
    pub entries: usize,
    /// Maximum number of hosts in a question about hosts or in a request for maintenance.
    pub hosts: usize,
    /// Maximum number of reservations in a lease.
    pub reservations: usize,
    /// Maximum number of leases in a series.
    pub series: u32,
    /// Maximum number of hosts, instances or addresses in a reservation.
    pub amount: u32,
    /// Maximum time from now to a date.
    pub dates_ahead: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            expression_length: 16_384,
            value_length: 255,
            entries: 500,
            hosts: 10_000,
            reservations: 50,
            series: 200,
            amount: 1_000_000,
            dates_ahead: SignedDuration::from_hours(24 * 36_525),
        }
    }
}

/// The kind of a text, which has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An expression as JSON in a string, or another long text.
    Expression,
    /// Any other text.
    Value,
}

/// Maximum total size of the expressions in a body, in multiples of the maximum of one. This is twice the
/// text that a lease may have, so that leases from before that limit can be sent back.
const EXPRESSIONS: usize = 8;

/// Fields of reservations that are expressions.
const OF_RESERVATIONS: [&str; 2] = ["hypervisor_properties", "resource_properties"];

/// Position of a value in a body.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Body,
    Field(&'a Place<'a>, &'a str),
    Entry(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// The path in errors: `reservations[0].resource_properties`.
    fn path(&self) -> String {
        match self {
            Self::Body => String::new(),
            Self::Field(Self::Body, name) => (*name).to_owned(),
            Self::Field(above, name) => format!("{}.{name}", above.path()),
            Self::Entry(above, number) => format!("{}[{number}]", above.path()),
        }
    }

    /// Whether it is one of these fields of a reservation.
    fn of_reservation(&self, names: &[&str]) -> bool {
        matches!(self, Self::Field(Self::Entry(Self::Field(Self::Body, "reservations"), _), name)
            if names.contains(name))
    }

    fn is_expression(&self) -> bool {
        self.of_reservation(&OF_RESERVATIONS)
            || matches!(self, Self::Field(Self::Field(Self::Body, "scheduler_hints"), "query"))
    }

    fn kind(&self) -> Kind {
        match self {
            // It contains names and numbers of hosts.
            Self::Field(Self::Body, "status_reason") => Kind::Expression,
            _ => Kind::Value,
        }
    }
}

impl Limits {
    /// Checks that no part of the body is too large, and that no text in it has characters that can't be
    /// shown. The error names the first part that fails.
    pub fn check(&self, body: &Value) -> Result<(), RequestError> {
        // Parsing an expression takes fifty times as long as measuring it.
        let (size, most) =
            (self.size_of_expressions(body), EXPRESSIONS.saturating_mul(self.expression_length));
        if size > most {
            let (parameter, setting) = ("reservations".to_owned(), Some("limits.expression_length"));
            return Err(RequestError::TooLong { parameter, size, most, setting });
        }
        self.check_value(body, Place::Body)
    }

    /// Total size of the expressions of all reservations, bytes. Expressions that are too long by themselves
    /// don't count, since an error names them. Expressions that aren't text don't count either: they are
    /// small, since their depth and entries are limited.
    fn size_of_expressions(&self, body: &Value) -> usize {
        let reservations = body["reservations"].as_array().into_iter().flatten();
        let expressions = reservations.flat_map(|one| OF_RESERVATIONS.map(|name| one[name].as_str()));
        expressions.flatten().map(str::len).filter(|length| *length <= self.expression_length).sum()
    }

    /// Checks the length of a query parameter.
    pub fn check_length_of(&self, name: &str, text: &str) -> Result<(), RequestError> {
        [name, text].iter().try_for_each(|text| self.check_length(text, Kind::Value, || name.to_owned()))
    }

    /// The latest allowed date.
    pub(super) fn latest(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.dates_ahead).unwrap_or(Timestamp::MAX)
    }

    fn check_value(&self, value: &Value, place: Place<'_>) -> Result<(), RequestError> {
        if place.is_expression() {
            return self.check_expression(value, place);
        }
        match value {
            Value::String(text) => {
                self.check_length(text, place.kind(), || place.path())?;
                check_characters(text, Kind::Value, || place.path())?;
            }
            Value::Array(items) => {
                let (most, setting) = match place {
                    Place::Field(Place::Body, "hosts") => (self.hosts, "limits.hosts"),
                    // Answers list them, and a client may send the lease back.
                    _ if place.of_reservation(&["hosts", "floating_ips"]) => (self.hosts, "limits.hosts"),
                    Place::Field(Place::Body, "reservations") => (self.reservations, "limits.reservations"),
                    _ => (self.entries, "limits.entries"),
                };
                check_entries(items.len(), most, setting, place)?;
                for (number, item) in items.iter().enumerate() {
                    self.check_value(item, Place::Entry(&place, number))?;
                }
            }
            Value::Object(fields) => {
                check_entries(fields.len(), self.entries, "limits.entries", place)?;
                for (name, field) in fields {
                    let place = Place::Field(&place, name);
                    self.check_length(name, Kind::Value, || place.path())?;
                    check_characters(name, Kind::Value, || place.path())?;
                    self.check_value(field, place)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if place.of_reservation(&["amount", "min", "max"])
            && integer(value).is_some_and(|number| number > i64::from(self.amount))
        {
            let shown = integer(value).unwrap_or_default().to_string();
            let (most, setting) = (self.amount.into(), "limits.amount");
            return Err(RequestError::TooLarge { parameter: place.path(), value: shown, most, setting });
        }
        Ok(())
    }

    fn check_expression(&self, value: &Value, place: Place<'_>) -> Result<(), RequestError> {
        // Nova's clients also write a single hint as a list.
        let value = match value.as_array().map(Vec::as_slice) {
            Some([Value::String(_)]) => &value[0],
            _ => value,
        };
        let Value::String(text) = value else {
            self.check_length(&value.to_string(), Kind::Expression, || place.path())?;
            return check_texts(value, place);
        };
        self.check_length(text, Kind::Expression, || place.path())?;
        check_characters(text, Kind::Expression, || place.path())?;
        // Text that isn't JSON is rejected by its reader.
        serde_json::from_str(text).map_or(Ok(()), |decoded| check_texts(&decoded, place))
    }

    fn check_length(
        &self,
        text: &str,
        kind: Kind,
        parameter: impl Fn() -> String,
    ) -> Result<(), RequestError> {
        let (most, setting) = match kind {
            Kind::Expression => (self.expression_length, "limits.expression_length"),
            Kind::Value => (self.value_length, "limits.value_length"),
        };
        // No text has more characters than bytes.
        let size = if text.len() > most { text.chars().count() } else { 0 };
        if size > most {
            return Err(RequestError::TooLong { parameter: parameter(), size, most, setting: Some(setting) });
        }
        Ok(())
    }
}

fn check_entries(
    size: usize,
    most: usize,
    setting: &'static str,
    place: Place<'_>,
) -> Result<(), RequestError> {
    if size <= most {
        return Ok(());
    }
    let parameter = if matches!(place, Place::Body) { "body".to_owned() } else { place.path() };
    Err(RequestError::TooMany { parameter, size, most, setting })
}

/// Rejects characters that change how the text around them is shown. Expressions may have line breaks and
/// tabs between their parts.
fn check_characters(text: &str, kind: Kind, parameter: impl Fn() -> String) -> Result<(), RequestError> {
    let blank = |c: char| kind == Kind::Expression && matches!(c, '\t' | '\n' | '\r');
    match text.chars().find(|c| is_control(*c) && !blank(*c)) {
        Some(found) => Err(RequestError::ControlCharacter { parameter: parameter(), found }),
        None => Ok(()),
    }
}

/// Checks all texts of an expression.
fn check_texts(value: &Value, place: Place<'_>) -> Result<(), RequestError> {
    match value {
        Value::String(text) => check_characters(text, Kind::Value, || place.path()),
        Value::Array(items) => items.iter().try_for_each(|item| check_texts(item, place)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            check_characters(name, Kind::Value, || place.path())?;
            check_texts(field, place)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(body: &Value) -> String {
        let error = Limits::default().check(body).expect_err("too large");
        assert_eq!(error.status(), 400);
        error.to_string()
    }

    #[test]
    fn every_text_is_limited_wherever_it_is() {
        let long = "é".repeat(256);
        for (body, place) in [
            (json!({"name": long}), "name"),
            (json!({"reservations": [{}, {"x": {"y": [1, long]}}]}), "reservations[1].x.y[1]"),
            (json!({"rack": long}), "rack"),
            (json!({"resource_properties": long}), "resource_properties"),
            (json!({"volume_properties": [{"a": long}]}), "volume_properties[0].a"),
        ] {
            let wanted = format!("Malformed parameter {place}: it has 256 characters and may have 255");
            assert_eq!(refused(&body), wanted);
        }
        assert_eq!(Limits::default().check(&json!({"name": "é".repeat(255)})), Ok(()));
        assert!(refused(&json!({"a".repeat(256): 1})).starts_with("Malformed parameter aaaa"));
    }

    #[test]
    fn an_expression_may_be_longer_as_text_and_as_json() {
        let of = |length: usize| format!("[\"==\",\"$a\",\"{}\"]", "x".repeat(length - 14));
        for length in [16_384, 16_385] {
            let text = of(length);
            let decoded: Value = serde_json::from_str(&text).expect("JSON");
            for value in [json!(text), decoded, json!([text])] {
                for body in [
                    json!({"reservations": [{"hypervisor_properties": value}]}),
                    json!({"reservations": [{"resource_properties": value}]}),
                    json!({"scheduler_hints": {"query": value}}),
                ] {
                    let verdict = Limits::default().check(&body);
                    assert_eq!(verdict.is_ok(), length == 16_384, "{verdict:?}");
                }
            }
        }
    }

    #[test]
    fn lists_objects_and_amounts_are_limited() {
        let many = |count| json!(vec![0; count]);
        let fields: serde_json::Map<_, _> = (0..501).map(|n| (n.to_string(), json!(n))).collect();
        for (body, wanted) in [
            (json!({"events": many(501)}), "Malformed parameter events: it has 501 entries and may have 500"),
            (
                json!({"hosts": many(10_001)}),
                "Malformed parameter hosts: it has 10001 entries and may have 10000",
            ),
            (
                json!({"reservations": many(51)}),
                "Malformed parameter reservations: it has 51 entries and may have 50",
            ),
            (json!(fields), "Malformed parameter body: it has 501 entries and may have 500"),
            (
                json!({"reservations": [{"amount": "1000001"}]}),
                "Malformed parameter reservations[0].amount: it is 1000001 and may be 1000000",
            ),
            (
                json!({"reservations": [{"max": 4_294_967_295_u32}]}),
                "Malformed parameter reservations[0].max: it is 4294967295 and may be 1000000",
            ),
        ] {
            assert_eq!(refused(&body), wanted);
        }
        assert_eq!(Limits::default().check(&json!({"hosts": many(10_000), "max": 2_000_000})), Ok(()));
    }

    #[test]
    fn characters_that_cannot_be_shown_are_refused_in_every_text_and_name() {
        for c in [
            '\0', '\u{1b}', '\u{7f}', '\u{9b}', '\n', '\u{2028}', '\u{202e}', '\u{2067}', '\u{61c}',
            '\u{200f}',
        ] {
            let text = format!("x{c}y");
            let wanted = |place: &str| {
                let code = u32::from(c);
                format!("Malformed parameter {place}: it has the control character U+{code:04X}")
            };
            assert_eq!(refused(&json!({"name": text})), wanted("name"));
            assert!(
                refused(&json!({(text.clone()): 1}))
                    .ends_with(&wanted("")[wanted("").find(':').expect("one")..])
            );
            let expression = json!(["==", "$rack", text]);
            for value in [json!(expression.to_string()), expression] {
                let place = "reservations[0].hypervisor_properties";
                let body = json!({"reservations": [{"hypervisor_properties": value}]});
                assert_eq!(refused(&body), wanted(place));
            }
        }
        let lines = json!({"reservations": [{"resource_properties": "[\"==\",\r\n\t\"$a\", \"b\"]"}]});
        assert_eq!(Limits::default().check(&lines), Ok(()));
        assert_eq!(Limits::default().check(&json!({"name": "Größe 漢字 🙂 \u{200d}"})), Ok(()));
    }
}
