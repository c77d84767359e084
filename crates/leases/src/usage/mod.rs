//! Usage: what leases hold and what runs in them, over time, to be summed and billed (USE, CLS-12).
//!
//! A [`Span`] says that something of a size was held by somebody from an instant to an instant. Spans follow from the
//! changes of leases and instances ([`Account`]), and are written together with them. Sums over spans
//! ([`Totals`]) are exact: products of whole numbers and microseconds, which become hours only where they are
//! shown.
//!
//! What counts:
//! - A lease holds its hosts, the room on them and its addresses from the moment it is ACTIVE until its end. A span
//!   that is open ends with the lease as it is planned now, so that nothing is to be done at the end: what is counted
//!   is what was scheduled, however late a service notices. A lease that has not started holds nothing.
//! - A change counts from the moment it is made. What was counted for the time before stays as it is, so that a bill
//!   of the past is final.
//! - A host counts as large as it was when the lease got it.
//! - An instance uses its host from the moment it is known to run until its destruction is wanted. One of a lease
//!   does so within the lease; of one that is left behind by its lease, nothing is counted. Guests of leases that others
//!   have started are [counted](KnownGuests) as they are seen.

mod account;
mod event;
mod guests;
mod ledger;
mod price;
#[cfg(test)]
mod tests;
mod totals;

use jiff::Timestamp;

pub use self::account::{Account, foreseen, holds};
pub use self::event::{Event, Occurrence};
pub use self::guests::{Counted, KnownGuests, SeenGuest, Sighting};
pub use self::ledger::{Ledger, held_hosts};
pub use self::price::{Charge, Decimal, Item, NotDecimal, Prices};
pub use self::totals::{Amounts, By, Group, Instances, Query, Sum, Totals, by_group, sums};
use crate::host::Host;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease::{Allocation, Reservation};
use crate::project::Owner;
use crate::resources::Resources;
use crate::window::Window;

/// What stands in the place of the type of the lease for instances that are preempted for leases.
pub const PREEMPTIBLE: &str = "preemptible";

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Held {
    /// The lease itself: that there is one.
    Lease,
    /// A whole host.
    Host,
    /// Room for instances on a host.
    Room,
    /// An address.
    Address(FloatingIpId),
    /// An instance, by which its host is used.
    Instance(GuestId),
}

/// The kinds of what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Leases.
    Lease,
    /// Whole hosts.
    Host,
    /// Room for instances.
    Room,
    /// Addresses.
    Address,
    /// Instances.
    Instance,
}

impl Kind {
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Lease, "lease"),
        (Self::Host, "host"),
        (Self::Room, "room"),
        (Self::Address, "address"),
        (Self::Instance, "instance"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl Held {
    /// Its kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::Lease => Kind::Lease,
            Self::Host => Kind::Host,
            Self::Room => Kind::Room,
            Self::Address(_) => Kind::Address,
            Self::Instance(_) => Kind::Instance,
        }
    }
}

/// How much it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size {
    /// How many: leases, hosts, slots, addresses, instances.
    pub count: u64,
    /// CPUs of all of them, virtual or dedicated.
    pub cores: u64,
    /// Memory of all of them, MiB.
    pub memory_mib: u64,
    /// Disk of all of them, GiB.
    pub disk_gib: u64,
}

impl Size {
    /// The most of anything that counts: more than any host has, and little enough that products with times fit.
    const MOST: u64 = 1 << 48;

    /// One that takes nothing of a host.
    pub const ONE: Self = Self { count: 1, cores: 0, memory_mib: 0, disk_gib: 0 };

    /// So many of that size.
    pub fn of(count: u64, each: &Resources) -> Self {
        let dedicated =
            each.other.iter().find(|(class, _)| class.0 == "PCPU").map_or(0, |(_, amount)| *amount);
        let all = |amount: u64| amount.saturating_mul(count).min(Self::MOST);
        Self {
            count: count.min(Self::MOST),
            cores: all(each.vcpus.saturating_add(dedicated)),
            memory_mib: all(each.memory_mib),
            disk_gib: all(each.disk_gib),
        }
    }

    /// What a reservation was given: the number of its hosts, slots or addresses, with the same CPUs, memory and disk that
    /// its spans have. `hosts` returns `None` for a removed host, which only counts as one.
    pub fn of_reservation<'h>(reservation: &Reservation, hosts: impl Fn(HostId) -> Option<&'h Host>) -> Self {
        match &reservation.allocation {
            Allocation::Hosts(ids) => {
                let sizes =
                    ids.iter().map(|id| hosts(*id).map_or(Self::ONE, |host| Self::of(1, &host.capacity())));
                sizes.fold(Self::default(), Self::plus)
            }
            Allocation::Slots(_) => {
                let each = reservation.terms.slots().map(|slots| slots.size).unwrap_or_default();
                Self::of(reservation.allocation.amount(), &each)
            }
            Allocation::FloatingIps(ips) => Self { count: ips.len() as u64, ..Self::default() },
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            cores: self.cores.saturating_add(other.cores),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
            disk_gib: self.disk_gib.saturating_add(other.disk_gib),
        }
    }
}

/// Something was held by somebody from an instant to an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What.
    pub held: Held,
    /// Where it is; none of what is nowhere in particular.
    pub host: Option<HostId>,
    /// The free pool that the host comes from; of a lease, that most of its hosts come from.
    pub pool: Option<String>,
    /// The identifier of the flavor of room, of instances in it, and of leases that have nothing but such room.
    pub flavor: Option<String>,
    /// How much it is.
    pub size: Size,
    /// The lease that holds it; none of an instance beside all leases.
    pub lease: Option<LeaseId>,
    /// The reservation, of what is in one.
    pub reservation: Option<ReservationId>,
    /// Whose it is.
    pub owner: Owner,
    /// The type of the lease, by its name; [`PREEMPTIBLE`] of such an instance.
    pub lease_type: Option<String>,
    /// Whether it begins here: not with what only goes on elsewhere or in another size.
    pub begins: bool,
    /// From when to when: of an open one, until when it will be as things stand. To the microsecond.
    pub window: Window,
    /// Whether it may still change.
    pub open: bool,
}

impl Span {
    /// What it is known by while it is open: no two open ones have the same.
    pub fn key(&self) -> String {
        let (kind, host) = (self.held.kind().name(), self.host.map_or(0, |host| host.0));
        match (self.held, self.lease, self.reservation) {
            (Held::Instance(id), _, _) => format!("{kind}/{id}"),
            (Held::Address(id), _, Some(reservation)) => format!("{kind}/{reservation}/{id}"),
            (Held::Host | Held::Room, _, Some(reservation)) => format!("{kind}/{reservation}/{host}"),
            (_, Some(lease), _) => format!("{kind}/{lease}"),
            _ => format!("{kind}/{host}"),
        }
    }
}

/// An open span ends at another time than was planned, or is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanChange {
    /// Which: [`Span::key`].
    pub key: String,
    /// When it ends. What is over ends no later than it would have.
    pub end: Timestamp,
    /// Whether it is over.
    pub closes: bool,
}

impl SpanChange {
    /// When a span in that window ends after this; never before its start.
    pub fn end_of(&self, window: Window) -> Timestamp {
        let end = if self.closes { self.end.min(window.end()) } else { self.end };
        end.max(window.start())
    }
}

/// What is to be written down with a change. First spans change, then others are opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Open spans that change.
    pub changed: Vec<SpanChange>,
    /// New spans. Those that are not open are taken as they are.
    pub opened: Vec<Span>,
    /// What happened.
    pub events: Vec<Event>,
}

impl Entries {
    /// Whether nothing is to be written down.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.opened.is_empty() && self.events.is_empty()
    }
}
