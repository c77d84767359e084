//! Unit of cost for all work of requests. 100,000 units are about one millisecond of one processor.
//! [`leases::work::Budget`] counts decisions in the same unit.
//!
//! Fair queuing compares sums of these costs, so work without a cost is free. The cost of a commit is in
//! `writing`.

use std::time::Duration;

/// Flat cost of a request, and of each place it takes. Even cheap requests delay others.
pub const FLAT: u64 = 1000;

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

/// Cost of a read of the store: its time or its rows, whichever costs more. In simulated time, only rows
/// count.
pub(crate) fn of_read(took: Duration, rows: usize) -> u64 {
    of_time(took).max(ROW_READ.saturating_mul(rows as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_costs_its_time_in_the_unit_of_decisions_or_its_rows() {
        assert_eq!(of_read(Duration::from_millis(1), 0), 100_000);
        assert_eq!(of_read(Duration::ZERO, 0), 0);
        assert!(of_read(Duration::ZERO, 1000) > of_read(Duration::ZERO, 1));
        assert_eq!(of_read(Duration::MAX, 0), u64::MAX, "no overflow");
    }
}
