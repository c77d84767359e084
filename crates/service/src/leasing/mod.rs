//! Making, changing and deleting leases.

mod create;
mod delete;
mod enforcing;
mod immediate;
mod update;

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::admission::Admission;
use leases::ids::HostId;

use crate::Service;
use crate::state::State;

impl Service {
    /// What admission decides on. Dates have no seconds (spec §1.8), so the present is the current minute.
    pub(crate) fn admission<'a>(
        &'a self,
        state: &'a State,
        occupied: Option<&'a BTreeSet<HostId>>,
        now: Timestamp,
    ) -> Admission<'a> {
        Admission {
            calendar: &state.calendar,
            inventory: &state.inventory,
            rules: &self.settings.rules,
            occupied,
            now: minute(now),
        }
    }
}

/// The beginning of the minute.
fn minute(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(now)
}
