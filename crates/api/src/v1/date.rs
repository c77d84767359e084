//! Dates, of which there are three forms: of a lease, of a record, and of a request.

use jiff::Timestamp;

/// The instant as leases and events show it: always microseconds, no zone, UTC (spec §1.7).
pub fn date(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}

/// The instant as records show when they were made: to the second (spec §1.7, §2.7).
pub fn created_at(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
