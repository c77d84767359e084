//! Values that columns hold in another form.

use std::borrow::Cow;

pub(crate) use store::encoding::column::{capacity, instant, maybe_instant, number, us, window};
use uuid::Uuid;

/// Stands before `0` for a zero, which PostgreSQL's text cannot have, and before `1` for itself.
const ESCAPE: char = '\u{1a}';

/// Text as a column has it. What people write has no control characters, so it is as it was nearly always.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', ESCAPE]) {
        Cow::Owned(text.replace(ESCAPE, "\u{1a}1").replace('\0', "\u{1a}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same for columns that may be empty.
pub(crate) fn maybe_text(some: Option<&str>) -> Option<Cow<'_, str>> {
    some.map(text)
}

/// Text that a column has.
pub(crate) fn plain(column: String) -> String {
    if column.contains(ESCAPE) {
        column.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
    } else {
        column
    }
}

/// A UUID.
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
