//! Conversion between values and columns.

use std::borrow::Cow;

pub(crate) use store::encoding::column::{capacity, instant, maybe_instant, number, us, window};
use uuid::Uuid;

/// Precedes `0` to encode a NUL, which PostgreSQL's text can't contain, and `1` to encode itself.
const ESCAPE: char = '\u{1a}';

/// Encodes text for a column. Usually returns it unchanged, because text rarely contains control characters.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', ESCAPE]) {
        Cow::Owned(text.replace(ESCAPE, "\u{1a}1").replace('\0', "\u{1a}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// [`text`] for nullable columns.
pub(crate) fn maybe_text(some: Option<&str>) -> Option<Cow<'_, str>> {
    some.map(text)
}

/// Decodes text from a column.
pub(crate) fn plain(column: String) -> String {
    if column.contains(ESCAPE) {
        column.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
    } else {
        column
    }
}

pub(crate) fn uuid(id: u128) -> Uuid {
    Uuid::from_u128(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written_whatever_characters_it_has() {
        for original in
            ["", "plain", "\0", "\u{1a}", "\u{1a}0\0\u{1a}1", "\0\0\u{1a}\u{1a}0", "\u{1a}\u{1a}00"]
        {
            let column = text(original).into_owned();
            assert!(!column.contains('\0'));
            assert_eq!(plain(column), original);
        }
    }
}
