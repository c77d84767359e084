//! JSON values in Python's notation, in which Blazar's messages show the values that were sent.

use std::fmt::Write;

use serde_json::Value;

/// The value as text in a message: a string as it is, anything else in Python's notation.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => notation(other),
    }
}

/// The value in Python's notation: `['==', '$gpu', True]`.
pub(crate) fn notation(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => quote(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (name, field)) in fields.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                quote(out, name);
                out.push_str(": ");
                write(out, field);
            }
            out.push('}');
        }
    }
}

/// Python prefers single quotes, unless the text contains a single quote and no double quote.
fn quote(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_look_as_python_prints_them() {
        let value = json!(["or", ["==", "$a", "it's"], {"b": [1, 2.5, true, null]}]);
        assert_eq!(notation(&value), r#"['or', ['==', '$a', "it's"], {'b': [1, 2.5, True, None]}]"#);
        assert_eq!(shown(&json!("junk")), "junk");
        assert_eq!(notation(&json!("a\"'\n\u{1}")), r#"'a"\'\n\x01'"#);
    }
}
