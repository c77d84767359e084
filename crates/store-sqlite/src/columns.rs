//! Conversion of columns to values.

use store::StoreError;
pub(crate) use store::encoding::column::{capacity, instant, maybe_instant, number, us, window};

pub(crate) fn uuid(bytes: &[u8]) -> Result<u128, StoreError> {
    let bytes = <[u8; 16]>::try_from(bytes);
    bytes.map(u128::from_be_bytes).map_err(|_| StoreError::Corrupt("a UUID is not 16 bytes long".to_owned()))
}
