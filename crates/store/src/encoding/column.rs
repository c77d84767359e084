//! Times, windows and numbers as columns of SQL databases.

use jiff::Timestamp;
use leases::window::Window;

use super::lease;
use crate::StoreError;

/// Largest stored amount of a resource: half of the largest sum.
const LARGEST_AMOUNT: i64 = (1 << 62) - 1;

/// Microseconds since the Unix epoch.
pub fn us(instant: Timestamp) -> i64 {
    instant.as_microsecond()
}

/// The instant that is `us` microseconds after the Unix epoch.
pub fn instant(us: i64) -> Result<Timestamp, StoreError> {
    Ok(lease::instant(us)?)
}

/// Like [`instant`], for nullable columns.
pub fn maybe_instant(us: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    us.map(instant).transpose()
}

pub fn window(starts_us: i64, ends_us: i64) -> Result<Window, StoreError> {
    Window::new(instant(starts_us)?, instant(ends_us)?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Converts a number. Fails if it is out of the range of `T`.
pub fn number<T: TryFrom<i64>>(number: i64) -> Result<T, StoreError> {
    T::try_from(number).map_err(|_| StoreError::Corrupt(format!("{number} is out of range")))
}

/// A host's capacity of a resource, capped at the largest stored amount.
pub fn capacity(amount: u64) -> i64 {
    i64::try_from(amount).map_or(LARGEST_AMOUNT, |amount| amount.min(LARGEST_AMOUNT))
}

/// Amount of a resource that slots use. If it's too much for any host, it is stored as one more than the
/// largest capacity, so it doesn't fit.
pub fn used(amount: u64) -> i64 {
    i64::try_from(amount).map_or(LARGEST_AMOUNT + 1, |amount| amount.min(LARGEST_AMOUNT + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written_from_the_first_to_the_last() {
        for at in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            assert_eq!(instant(us(at)).expect("a time").as_microsecond(), us(at));
        }
        assert!(instant(i64::MAX).is_err());
    }

    #[test]
    fn what_slots_use_at_most_fits_no_host() {
        assert!(used(u64::MAX) > capacity(u64::MAX));
        assert_eq!((used(7), capacity(7)), (7, 7));
    }
}
