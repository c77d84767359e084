//! JSON values that keep the order of keys and the text of numbers, for writing requests.
//!
//! `serde_json` can keep the order too, but only with a feature. Cargo would enable it for the whole
//! workspace, although the product's own reader has to work without it.

use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number, as written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// An object; keys can repeat.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    pub fn number(value: impl fmt::Display) -> Self {
        Self::Number(value.to_string())
    }

    /// A list of strings.
    pub fn texts<S: AsRef<str>>(values: &[S]) -> Self {
        Self::List(values.iter().map(|v| Self::text(v.as_ref())).collect())
    }

    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Adds a member to an object. Does nothing to any other value.
    pub fn set(&mut self, key: &str, value: Self) {
        if let Self::Object(members) = self {
            members.push((key.to_owned(), value));
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => f.write_str(value),
            Self::Text(value) => quote(f, value),
            Self::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (i, (key, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    quote(f, key)?;
                    write!(f, ": {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_of_keys() {
        let mut value = Json::object([("b", Json::number(1)), ("a", Json::texts(&["x\"\n"]))]);
        value.set("0", Json::Null);
        assert_eq!(value.to_string(), r#"{"b": 1, "a": ["x\"\u000a"], "0": null}"#);
    }
}
