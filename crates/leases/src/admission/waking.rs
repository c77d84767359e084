//! Hosts that are switched off: who may have them, and which hosts are had first where power is saved.

use super::Search;
use crate::energy::{Draw, Figures};
use crate::ids::HostId;

/// Which of two hosts is had first where power is saved; less is sooner. Where it is not, all are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thrift {
    /// It cannot be there in time.
    late: bool,
    /// What it draws for what it does.
    draws: Draw,
    /// It has to be woken.
    asleep: bool,
}

impl Search<'_> {
    /// Whether the host is off and cannot be there when the window begins. The lease's own host can: it is woken in
    /// time for it.
    pub(super) fn late(&self, host: HostId) -> bool {
        let start = self.window.start();
        let own = || {
            let mut bookings = self.admission.calendar.bookings(host);
            bookings.any(|(window, booking)| Some(booking.lease) == self.own && window.start() <= start)
        };
        self.admission.facts.ready_at(host).is_some_and(|ready| ready > start) && !own()
    }

    /// Whether the host can be promised for the window, as far as its power goes. Who has lost a host rather waits for
    /// another one than does without.
    pub(super) fn can_be_on(&self, host: HostId) -> bool {
        self.patient || !self.late(host)
    }

    /// How soon the host is had.
    pub(super) fn thrift(&self, host: HostId) -> Thrift {
        let known = self.admission.facts.waking.as_ref().and_then(|_| self.admission.inventory.host(host));
        let draws = known.map_or(Draw::PerCore(0), |host| Figures::of(host).draw(host));
        Thrift { late: self.late(host), draws, asleep: self.admission.facts.ready_at(host).is_some() }
    }
}
