//! One unit for everything that requests cost: 100,000 units are about a millisecond of one processor, which is what
//! [`leases::work::Budget`] counts decisions in.
//!
//! Fair queuing compares clients by the sum of these, so a cost that is missing here is free. What a commit costs is
//! said in `writing`, in the same unit.

use std::time::Duration;

/// Flat price of a request and of each place that it takes: even cheap requests keep others waiting.
pub const FLAT: u64 = 1000;

const PER_MICROSECOND: u64 = 100;
/// Parsing and checking a byte of a body takes about 10 ns.
const BYTE_OF_BODY: u64 = 1;
/// Serializing, compressing and sending a byte of an answer takes about 10 ns.
const BYTE_OF_ANSWER: u64 = 1;
/// A row that is read, decoded and held.
const ROW_READ: u64 = 500;

/// Cost of so many bytes of a body that a client sends.
pub fn of_body(bytes: u64) -> u64 {
    bytes.saturating_mul(BYTE_OF_BODY)
}

/// Cost of so many bytes of an answer, before compression.
pub fn of_answer(bytes: u64) -> u64 {
    bytes.saturating_mul(BYTE_OF_ANSWER)
}

/// Cost of a read of the store. In simulated time only the rows count.
pub(crate) fn of_read(took: Duration, rows: usize) -> u64 {
    let time = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).saturating_mul(PER_MICROSECOND);
    time.max(ROW_READ.saturating_mul(rows as u64))
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
