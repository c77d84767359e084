//! Values that columns hold in another form.

use jiff::Timestamp;
use leases::window::Window;
use store::StoreError;

/// The largest amount of a resource that is kept: half of what a sum may come to.
const LARGEST_AMOUNT: i64 = (1 << 62) - 1;

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

/// A UUID of these bytes.
pub(crate) fn uuid(bytes: &[u8]) -> Result<u128, StoreError> {
    let bytes = <[u8; 16]>::try_from(bytes);
    bytes.map(u128::from_be_bytes).map_err(|_| StoreError::Corrupt("a UUID is not 16 bytes long".to_owned()))
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
