//! Readers of objects in requests. Every field is read by name. Fields that aren't read are rejected, except
//! those of reservations, which are ignored.

use std::collections::BTreeSet;

use leases::text::{escaped, is_control, quoted_list};
use serde_json::{Map, Value};

use super::error::RequestError;

/// Largest whole number in a request, unless a smaller limit applies: the maximum of a signed 32-bit integer.
pub const LARGEST: u32 = i32::MAX as u32;

/// An object that is being read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// Path of the object, with a dot at the end. Empty for the whole body.
    path: String,
    object: &'a Map<String, Value>,
    known: Vec<&'static str>,
    ignored: &'static [&'static str],
}

impl<'a> Fields<'a> {
    /// Reads the whole body.
    pub fn body(value: &'a Value) -> Result<Self, RequestError> {
        let object = value.as_object().ok_or_else(|| RequestError::malformed("body", "a JSON object"))?;
        Ok(Self { path: String::new(), object, known: Vec::new(), ignored: &[] })
    }

    /// Reads an entry of a list.
    pub fn entry(list: &str, position: usize, value: &'a Value) -> Result<Self, RequestError> {
        let path = format!("{list}[{position}]");
        match value.as_object() {
            Some(object) => Ok(Self { path: path + ".", object, known: Vec::new(), ignored: &[] }),
            None => Err(RequestError::malformed(path, "an object")),
        }
    }

    /// Reads a field that is an object.
    pub fn nested(name: &'static str, value: &'a Value) -> Result<Self, RequestError> {
        match value.as_object() {
            Some(object) => Ok(Self { path: format!("{name}."), object, known: Vec::new(), ignored: &[] }),
            None => Err(RequestError::malformed(name, "an object")),
        }
    }

    /// The field, if it is present. Null counts as present.
    pub fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.object.get(name)
    }

    /// An optional field. `None` if it is absent or null.
    pub fn given(&mut self, name: &'static str) -> Option<&'a Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// An optional field in which "" is the same as null: typed clients send it for fields that weren't set.
    pub fn filled(&mut self, name: &'static str) -> Option<&'a Value> {
        self.given(name).filter(|value| value.as_str() != Some(""))
    }

    /// A required field. Null counts as present.
    pub fn required(&mut self, name: &'static str) -> Result<&'a Value, RequestError> {
        self.get(name).ok_or_else(|| RequestError::Missing(name.to_owned()))
    }

    /// Requires all of these fields. The error names every missing one.
    pub fn require(&self, names: &[&'static str]) -> Result<(), RequestError> {
        let missing: Vec<_> = names.iter().copied().filter(|name| !self.object.contains_key(*name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(RequestError::Missing(missing.join(","))) }
    }

    /// Ignores read-only fields, which a client sends back as it read them.
    pub fn ignore(&mut self, names: &'static [&'static str]) {
        self.ignored = names;
    }

    fn unread(&self) -> impl Iterator<Item = &'a String> {
        let read = move |name: &str| self.known.contains(&name) || self.ignored.contains(&name);
        self.object.keys().filter(move |name| !read(name))
    }

    /// Whether there are fields that weren't read.
    pub fn has_more(&self) -> bool {
        self.unread().next().is_some()
    }

    /// Whether a field that was read is present, other than these.
    pub fn has_any_but(&self, names: &[&str]) -> bool {
        self.known.iter().any(|name| !names.contains(name) && self.object.contains_key(*name))
    }

    /// Rejects fields that weren't read.
    pub fn finish(self) -> Result<(), RequestError> {
        let unread = self.unread().next();
        match unread {
            Some(name) => {
                Err(RequestError::Unknown { parameter: format!("{}{name}", self.path), known: self.known })
            }
            None => Ok(()),
        }
    }

    /// Returns the fields that weren't read. Rejects `read_only` ones among them.
    pub fn unknown(self, read_only: &[&str]) -> Result<Option<UnknownFields>, RequestError> {
        let names: Vec<String> = self.unread().cloned().collect();
        if let Some(name) = names.iter().find(|name| read_only.contains(&name.as_str())) {
            return Err(RequestError::ReadOnly(format!("{}{name}", self.path)));
        }
        Ok((!names.is_empty()).then_some(UnknownFields { names, known: self.known }))
    }
}

/// Fields of a reservation that weren't read. They are ignored, as in Blazar, whose clients send fields that
/// only their own version of it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFields {
    /// Their names; at least one.
    pub names: Vec<String>,
    /// The fields that such a reservation can have.
    pub known: Vec<&'static str>,
}

/// Names of ignored fields for a log line: without duplicates and control characters, and shortened if the
/// list is long. `None` if no field was ignored.
pub fn ignored_names(ignored: &[UnknownFields]) -> Option<String> {
    let names: BTreeSet<&str> =
        ignored.iter().flat_map(|unknown| unknown.names.iter().map(String::as_str)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| escaped(&quoted_list(&names, ", ")))
}

/// A whole number. Text is accepted too, since some clients send it (API-create).
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A whole number from `least` to [`LARGEST`].
pub(crate) fn count(name: &'static str, value: &Value, least: u32) -> Result<u32, RequestError> {
    let wrong = || RequestError::malformed(name, "a whole number up to 2147483647");
    let count = integer(value).ok_or_else(wrong)?;
    if count < i64::from(least) {
        return Err(RequestError::TooSmall { parameter: name, least });
    }
    match u32::try_from(count) {
        Ok(count) if count <= LARGEST => Ok(count),
        _ => Err(wrong()),
    }
}

/// An `amount`, which has an error message of its own.
pub(crate) fn amount(value: &Value, least: u32) -> Result<u32, RequestError> {
    integer(value).ok_or(RequestError::NoInteger("amount"))?;
    count("amount", value, least)
}

/// Text. A number becomes its digits, as in Blazar.
pub(crate) fn text(name: &'static str, value: &Value) -> Result<String, RequestError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(RequestError::malformed(name, "text")),
    }
}

/// Text. Unlike in [`text`], numbers are rejected.
pub(crate) fn strict_text(name: &'static str, value: &Value) -> Result<String, RequestError> {
    value.as_str().map(str::to_owned).ok_or_else(|| RequestError::malformed(name, "text"))
}

/// A name. It must not be blank, may have at most `most` characters, and no character that changes how the
/// text around it is shown.
pub(crate) fn read_name(parameter: &'static str, name: &str, most: usize) -> Result<String, RequestError> {
    if name.trim().is_empty() {
        return Err(RequestError::malformed(parameter, "a name, which is not blank"));
    }
    let size = name.chars().count();
    if size > most {
        return Err(RequestError::TooLong { parameter: parameter.to_owned(), size, most, setting: None });
    }
    match name.chars().find(|c| is_control(*c)) {
        Some(found) => Err(RequestError::ControlCharacter { parameter: parameter.to_owned(), found }),
        None => Ok(name.to_owned()),
    }
}

/// A boolean. Python's words for it are accepted too.
pub(crate) fn boolean(name: &'static str, value: &Value) -> Result<bool, RequestError> {
    word(value).ok_or_else(|| RequestError::malformed(name, "true or false"))
}

/// A boolean, or the word for it.
pub(crate) fn word(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// A list. Absent and null are empty.
pub(crate) fn list<'a>(name: &'static str, value: Option<&'a Value>) -> Result<&'a [Value], RequestError> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(RequestError::malformed(name, "a list")),
    }
}

#[cfg(test)]
mod tests {
    use leases::text::MOST_QUOTED;

    use super::*;

    #[test]
    fn ignored_fields_are_named_once_in_a_line_of_bounded_length() {
        let unknown = |names: &[&str]| UnknownFields {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            known: Vec::new(),
        };
        assert_eq!(ignored_names(&[]), None);
        let twice = [unknown(&["swap_mb", "a"]), unknown(&["swap_mb"])];
        assert_eq!(ignored_names(&twice).as_deref(), Some("a, swap_mb"));
        assert_eq!(ignored_names(&[unknown(&["a\u{1b}[2J\n"])]).as_deref(), Some("a\\u{1b}[2J\\u{a}"));
        let many: Vec<String> = (0..500).map(|number| format!("{number}{}", "x".repeat(250))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let line = ignored_names(&[unknown(&many)]).expect("a line");
        assert!(line.ends_with("(500 in all)") && line.len() < 2 * MOST_QUOTED, "{line}");
    }
}
