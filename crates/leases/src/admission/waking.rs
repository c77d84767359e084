//! Hosts that are switched off: whether they can be ready in time, and their rank if power is saved.

use jiff::Timestamp;

use super::{Admission, Search};
use crate::energy::{Draw, Figures};
use crate::ids::HostId;

/// Rank of a host if power is saved; less is better. Otherwise all hosts rank equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thrift {
    /// The host can't be ready in time.
    late: bool,
    /// Power draw relative to performance.
    draws: Draw,
    /// The host has to be woken.
    asleep: bool,
}

impl Admission<'_> {
    /// First start of leases that can be allocated the host, as far as its power is concerned.
    pub(super) fn on_from(&self, host: HostId) -> Timestamp {
        self.facts.ready_at(host).unwrap_or(Timestamp::MIN)
    }
}

impl Search<'_> {
    /// Whether the host is off and can't be ready when the window begins. A host that the lease has already
    /// booked can: it is woken in time.
    pub(super) fn late(&self, host: HostId) -> bool {
        let start = self.window.start();
        let own = || {
            let mut bookings = self.admission.calendar.bookings(host);
            bookings.any(|(window, booking)| Some(booking.lease) == self.own && window.start() <= start)
        };
        self.admission.on_from(host) > start && !own()
    }

    /// Whether the host can be promised for the window, as far as its power is concerned. A lease that has
    /// lost a host would rather wait for another one than do without.
    pub(super) fn can_be_on(&self, host: HostId) -> bool {
        self.patient || !self.late(host)
    }

    pub(super) fn thrift(&self, host: HostId) -> Thrift {
        let known = self.admission.facts.waking.as_ref().and_then(|_| self.admission.inventory.host(host));
        let draws = known.map_or(Draw::PerCore(0), |host| Figures::of(host).draw(host));
        Thrift { late: self.late(host), draws, asleep: self.admission.facts.ready_at(host).is_some() }
    }
}
