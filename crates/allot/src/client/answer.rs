//! Answers of the service as a person may read them. All of them pass here, and errors as well.
//!
//! Names are chosen by other users, and the service itself may be somebody else's. A terminal obeys what is in them:
//! colors, titles, the clipboard, lines that look like others. So text is escaped when an answer is read, before
//! anything is laid out; documents for programs are escaped when they are written, as JSON.

use std::fmt::Write;

use leases::text::{escaped, is_control};
use serde_json::{Map, Value};

/// An answer, with every text in it as it may be shown.
pub(super) fn shown(answer: Value) -> Value {
    match answer {
        Value::String(text) => Value::String(if text.contains(is_control) { escaped(&text) } else { text }),
        Value::Array(items) => items.into_iter().map(shown).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| (escaped(&name), shown(value));
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// A message, of which the lines are the command's own.
pub(super) fn message(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// A table of values separated by commas; its lines end as they did.
pub(super) fn table(text: &str) -> String {
    let line = |line: &str| match line.strip_suffix('\r') {
        Some(line) => escaped(line) + "\r",
        None => escaped(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// JSON with nothing in its strings that a terminal obeys; the same JSON to a program.
pub(super) fn json(text: &str) -> String {
    if !text.contains(|c| is_control(c) && c != '\n') {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) && c != '\n' {
            // Writing to a string does not fail. All of these characters have four digits.
            let _ = write!(written, "\\u{:04x}", u32::from(c));
        } else {
            written.push(c);
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn texts_and_names_of_fields_are_escaped_at_any_depth() {
        let answer = value!({"a\u{1b}": [{"b": "x\ny\u{202e}"}, 1, null], "c": "plain"});
        assert_eq!(shown(answer), value!({"a\\u{1b}": [{"b": "x\\u{a}y\\u{202e}"}, 1, null], "c": "plain"}));
    }

    #[test]
    fn json_stays_the_same_to_a_program() {
        let document = value!({"a\u{202e}": ["\u{1b}[31m", "\u{9b}\u{7f}\u{2028}\n", "é"]});
        for text in [document.to_string(), serde_json::to_string_pretty(&document).expect("JSON")] {
            let written = json(&text);
            assert!(!written.contains(|c| is_control(c) && c != '\n'), "{written}");
            assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), document);
        }
    }

    #[test]
    fn lines_of_tables_and_messages_stay() {
        assert_eq!(table("a,b\r\nc\rd,\u{1b}\r\n"), "a,b\r\nc\\u{d}d,\\u{1b}\r\n");
        assert_eq!(message("a\nb\u{7}"), "a\nb\\u{7}");
    }
}
