//! Quoting of text from clients, files and other services in errors and log lines: its maximum length, the characters that
//! are never printed, their replacements, and the lines of mistakes.

use std::fmt::{self, Write};

/// Maximum number of characters of a client's text quoted in an error.
pub const MOST_QUOTED: usize = 200;

/// Text as quoted in an error. Up to [`MOST_QUOTED`] characters are shown in full. Of longer text, the
/// beginning and the length are shown.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'t>(pub &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MOST_QUOTED) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}... ({} characters)", &self.0[..end], self.0.chars().count()),
        }
    }
}

/// Follows the name of a property that the author of the request can't see ([`crate::unseen`]). Clients can't send it,
/// because control characters are rejected.
pub(crate) const MARK: char = '\u{1}';

/// The text as its author wrote it, without marks.
pub fn as_written(text: &str) -> String {
    text.replace(MARK, "")
}

/// The text as quoted in an error or a log line.
pub fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}

/// Quotes a list of texts with a separator. The whole list is limited in length like a single text.
pub fn quoted_list<T: AsRef<str>>(texts: &[T], between: &str) -> String {
    let mut all = String::new();
    let mut shown = 0;
    for (number, text) in texts.iter().enumerate() {
        let before = if number == 0 { "" } else { between };
        let length = before.chars().count() + text.as_ref().chars().count();
        if number > 0 && shown + length > MOST_QUOTED {
            // Writing to a string can't fail.
            let _ = write!(all, "{between}... ({} in all)", texts.len());
            return all;
        }
        shown += length;
        all.push_str(before);
        all.push_str(&quoted(text.as_ref()));
    }
    all
}

/// Whether a character changes how surrounding text is displayed, or isn't displayed at all: control
/// characters (C0, DEL, C1), line and paragraph separators, and characters that change the writing direction.
/// Terminals interpret some of them.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with control characters ([`is_control`]) written as `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_control(*c)) {
            f.write_str(&rest[..at])?;
            write!(f, "\\u{{{:x}}}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Escapes control characters ([`is_control`]) as `\u{1b}`.
pub fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

/// The line that a byte is in, from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}

/// These in lines of their own.
pub fn lines(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A number with its noun: `1 host`, `2 hosts`.
pub fn counted(number: impl Into<u64>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_has_200_characters_and_says_how_long_the_text_is() {
        assert_eq!(quoted(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(quoted(&"é".repeat(201)), format!("{}... (201 characters)", "é".repeat(200)));
        assert_eq!(quoted(""), "");
    }

    #[test]
    fn a_list_is_quoted_as_one() {
        assert_eq!(quoted_list(&["a", "b"], ", "), "a, b");
        let many = vec!["0123456789"; 10_000];
        let shown = quoted_list(&many, ",");
        assert!(
            shown.starts_with("0123456789,0123456789,") && shown.ends_with(",... (10000 in all)"),
            "{shown}"
        );
        assert!(shown.chars().count() < MOST_QUOTED + 25);
        assert!(quoted_list(&["x".repeat(1 << 20)], ",").len() < MOST_QUOTED + 30);
    }

    #[test]
    fn characters_that_a_terminal_obeys_are_written_as_numbers() {
        let hostile =
            "a\u{1b}]0;x\u{7}\r\n\t\u{0}\u{7f}\u{9b}\u{85}\u{2028}\u{2029}\u{202e}\u{2066}\u{200f}\u{61c}é";
        let shown = escaped(hostile);
        assert!(!shown.chars().any(is_control), "{shown}");
        assert!(
            shown.starts_with("a\\u{1b}]0;x\\u{7}\\u{d}\\u{a}\\u{9}\\u{0}") && shown.ends_with('é'),
            "{shown}"
        );
        assert_eq!(escaped("plain – ünïcode 漢字 🙂"), "plain – ünïcode 漢字 🙂");
    }
}
