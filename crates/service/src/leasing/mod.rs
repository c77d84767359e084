//! Making, changing and deleting leases.

mod create;
mod delete;
mod enforcing;
mod update;

use jiff::Timestamp;
use leases::admission::Admission;

use crate::Service;
use crate::state::State;

impl Service {
    /// What admission decides on. Dates have no seconds (spec §1.8), so the present is the current minute.
    fn admission<'a>(&'a self, state: &'a State, now: Timestamp) -> Admission<'a> {
        Admission {
            calendar: &state.calendar,
            inventory: &state.inventory,
            rules: &self.settings.rules,
            now: minute(now),
        }
    }
}

/// The beginning of the minute.
fn minute(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(now)
}
