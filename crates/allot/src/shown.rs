//! Escapes text from services and clusters before it's printed. All such text that a command prints passes
//! through here.
//!
//! Other users choose the names, and the service itself may be untrusted. A terminal interprets control
//! characters in them: colors, titles, the clipboard, lines that imitate real ones. So text is escaped when a
//! response is read, before the layout. JSON for programs is escaped when it's written, and stays valid.

use std::fmt::Write as _;
use std::io;

use htools::io::Io;
use leases::text::{Escaped, escaped, is_control};
use serde_json::{Map, Value};

/// Escapes all text in a response, including the names of fields.
pub(crate) fn answer(document: Value) -> Value {
    match document {
        Value::String(text) => Value::String(if text.contains(is_control) { escaped(&text) } else { text }),
        Value::Array(items) => items.into_iter().map(answer).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| (escaped(&name), answer(value));
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Escapes a message, but keeps its line breaks, which the command wrote itself.
pub(crate) fn message(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Escapes CSV. Each line keeps its line ending.
pub(crate) fn table(text: &str) -> String {
    let line = |line: &str| match line.strip_suffix('\r') {
        Some(line) => escaped(line) + "\r",
        None => escaped(line),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Escapes control characters in JSON. To a program it's the same document.
pub(crate) fn json(text: &str) -> String {
    if !text.contains(|c| is_control(c) && c != '\n') {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) && c != '\n' {
            // Writing to a string can't fail. All these characters have four digits.
            let _ = write!(written, "\\u{:04x}", u32::from(c));
        } else {
            written.push(c);
        }
    }
    written
}

/// Writer that escapes text about a cluster. Only line breaks and tabs are layout.
pub(crate) struct Escaping<'o>(pub &'o mut dyn io::Write);

impl io::Write for Escaping<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(text);
        let layout = |c: char| matches!(c, '\n' | '\t');
        for piece in shown.split_inclusive(layout) {
            let end = piece.chars().next_back().filter(|c| layout(*c)).map_or(0, char::len_utf8);
            let (piece, end) = piece.split_at(piece.len() - end);
            write!(self.0, "{}{end}", Escaped(piece))?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs a program of Ganeti's. `terminals` tells whether standard output and standard error are terminals: only
/// these get escaped text, because scripts need it unchanged.
pub(crate) fn on_terminals(
    terminals: (bool, bool),
    io: &mut Io<'_>,
    run: impl FnOnce(&mut Io<'_>) -> u8,
) -> u8 {
    let mut shown_out;
    let mut shown_err;
    let out: &mut dyn io::Write = if terminals.0 {
        shown_out = Escaping(&mut *io.out);
        &mut shown_out
    } else {
        &mut *io.out
    };
    let err: &mut dyn io::Write = if terminals.1 {
        shown_err = Escaping(&mut *io.err);
        &mut shown_err
    } else {
        &mut *io.err
    };
    run(&mut Io { stdin: &mut *io.stdin, out, err })
}

/// Columns that a text takes on a terminal: those of its longest line.
pub(crate) fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Breaks a text between words into lines of at most `most` columns.
pub(crate) fn broken(text: &str, most: usize) -> String {
    let (mut broken, mut taken) = (String::new(), 0);
    for word in text.split(' ') {
        if taken > 0 {
            let fits = taken + 1 + width(word) <= most;
            broken.push(if fits { ' ' } else { '\n' });
            taken = if fits { taken + 1 } else { 0 };
        }
        broken.push_str(word);
        taken += width(word);
    }
    broken
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn texts_and_names_of_fields_are_escaped_at_any_depth() {
        let answer = value!({"a\u{1b}": [{"b": "x\ny\u{202e}"}, 1, null], "c": "plain"});
        assert_eq!(
            super::answer(answer),
            value!({"a\\u{1b}": [{"b": "x\\u{a}y\\u{202e}"}, 1, null], "c": "plain"})
        );
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
    fn what_is_printed_of_a_cluster_is_escaped_and_its_layout_stays() {
        let mut out = Vec::new();
        io::Write::write_all(&mut Escaping(&mut out), "a\tb\u{1b}[31m\nc\u{202e}d\n".as_bytes())
            .expect("written");
        assert_eq!(String::from_utf8(out).expect("text"), "a\tb\\u{1b}[31m\nc\\u{202e}d\n");
    }

    #[test]
    fn programs_of_ganeti_are_escaped_on_terminals_only() {
        let name = "a\u{1b}[2J\n";
        let ran = |terminals| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut io = Io { stdin: &mut io::empty(), out: &mut out, err: &mut err };
            let status = on_terminals(terminals, &mut io, |io| {
                write!(io.out, "{name}").and_then(|()| write!(io.err, "{name}")).map_or(1, |()| 7)
            });
            assert_eq!(status, 7);
            [out, err].map(|text| String::from_utf8(text).expect("text"))
        };
        let escaped = "a\\u{1b}[2J\n";
        assert_eq!(ran((false, false)), [name, name]);
        assert_eq!(ran((true, false)), [escaped, name]);
        assert_eq!(ran((false, true)), [name, escaped]);
    }

    #[test]
    fn lines_of_tables_and_messages_stay() {
        assert_eq!(table("a,b\r\nc\rd,\u{1b}\r\n"), "a,b\r\nc\\u{d}d,\\u{1b}\r\n");
        assert_eq!(message("a\nb\u{7}"), "a\nb\\u{7}");
    }
}
