//! Unit of cost for all work of requests. 100,000 units are about one millisecond of processor time.
//! [`leases::work::Budget`] counts decisions in the same unit.
//!
//! Fair queuing compares sums of these costs, so work without a cost is free. The use of the store and of the
//! write lock costs its time, or its rows and bytes if they cost more; rows and bytes also count where time is
//! simulated.

use std::time::Duration;

use store::WriteSize;

/// Flat cost of a request, and of each place it takes, because even cheap requests cause delays.
pub const FLAT: u64 = 1000;

/// Cost of each record, host, instance or address that a commit writes: a tenth of a millisecond, including
/// the check for capacity.
pub(crate) const ROW_WRITTEN: u64 = 10_000;
/// Writing a byte takes about 40 ns, as measured with large texts.
const BYTE_WRITTEN: u64 = 4;
const PER_MICROSECOND: u64 = 100;
/// Parsing and checking a byte of a body takes about 10 ns.
const BYTE_OF_BODY: u64 = 1;
/// Serializing, compressing and sending a byte of a response takes about 10 ns.
const BYTE_OF_ANSWER: u64 = 1;
/// Reading, decoding and holding one row.
const ROW_READ: u64 = 500;

pub fn of_body(bytes: u64) -> u64 {
    bytes.saturating_mul(BYTE_OF_BODY)
}

/// `bytes` is the size of the response before compression.
pub fn of_answer(bytes: u64) -> u64 {
    bytes.saturating_mul(BYTE_OF_ANSWER)
}

pub(crate) fn of_time(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX).saturating_mul(PER_MICROSECOND)
}

pub(crate) fn of_rows_read(rows: usize) -> u64 {
    ROW_READ.saturating_mul(rows as u64)
}

pub(crate) fn of_write(size: WriteSize) -> u64 {
    let rows = ROW_WRITTEN.saturating_mul(size.rows);
    rows.saturating_add(BYTE_WRITTEN.saturating_mul(size.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_costs_as_much_as_the_work_done_in_it() {
        assert_eq!(of_time(Duration::from_millis(1)), 100_000);
        assert_eq!(of_time(Duration::MAX), u64::MAX, "no overflow");
    }
}
