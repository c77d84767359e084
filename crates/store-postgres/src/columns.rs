//! Values that columns hold in another form.

use std::borrow::Cow;

use jiff::Timestamp;
use leases::window::Window;
use store::StoreError;
use uuid::Uuid;

/// The largest amount of a resource that is kept: half of what a sum may come to.
const LARGEST_AMOUNT: i64 = (1 << 62) - 1;

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

/// An instant, in microseconds.
pub(crate) fn us(instant: Timestamp) -> i64 {
    instant.as_microsecond()
}

/// An instant of that many microseconds.
pub(crate) fn instant(us: i64) -> Result<Timestamp, StoreError> {
    // In two parts, since the last second there is has no microseconds for the other constructor.
    let (second, us) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let nanos = i32::try_from(us * 1000).unwrap_or(0);
    Timestamp::new(second, nanos).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The same, if there is one.
pub(crate) fn maybe_instant(us: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    us.map(instant).transpose()
}

/// A window of these bounds.
pub(crate) fn window(starts_us: i64, ends_us: i64) -> Result<Window, StoreError> {
    Window::new(instant(starts_us)?, instant(ends_us)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A UUID.
pub(crate) fn uuid(id: u128) -> Uuid {
    Uuid::from_u128(id)
}

/// A number that fits another type.
pub(crate) fn number<T: TryFrom<i64>>(number: i64) -> Result<T, StoreError> {
    T::try_from(number).map_err(|_| StoreError::Corrupt(format!("{number} is out of range")))
}

/// What a host has of a resource.
pub(crate) fn capacity(amount: u64) -> i64 {
    i64::try_from(amount).map_or(LARGEST_AMOUNT, |amount| amount.min(LARGEST_AMOUNT))
}

/// What slots use of a resource: of what is too much for any host, enough not to fit.
pub(crate) fn used(amount: u64) -> i64 {
    i64::try_from(amount).map_or(LARGEST_AMOUNT + 1, |amount| amount.min(LARGEST_AMOUNT + 1))
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
