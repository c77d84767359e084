//! Usage: what leases hold and what runs in them over time, for sums and bills (USE, CLS-12).
//!
//! A [`Span`] records that an owner held something of a given size from one time to another. Spans follow
//! from changes to leases and instances ([`Account`]) and are written together with them. Sums over spans
//! ([`Totals`]) are exact: they are products of integers and microseconds, converted to hours only for
//! display.
//!
//! Rules:
//! - A lease holds its hosts, its capacity on shared hosts and its addresses from the moment it is ACTIVE
//!   until its end. An open span ends at the lease's currently planned end, so nothing has to be done when
//!   that time comes: usage follows the schedule, however late a service notices. A lease that hasn't started
//!   holds nothing.
//! - A change counts from the moment it is made. Usage before it stays unchanged, so a bill for the past is
//!   final.
//! - A host counts with the size it had when the lease got it.
//! - An instance uses its host from the moment it is known to run until its destruction is requested. For an
//!   instance in a lease, this counts within the lease. Once its lease has left it behind, nothing is
//!   counted. Guests of leases that weren't started through the service are [counted](KnownGuests) as they
//!   are observed.

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

/// Stands for the lease type in usage of instances that can be preempted for leases.
pub const PREEMPTIBLE: &str = "preemptible";

/// A held resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Held {
    /// The lease itself.
    Lease,
    /// A whole host.
    Host,
    /// Capacity for instances on a host.
    Room,
    /// A floating IP.
    Address(FloatingIpId),
    /// An instance, which uses its host.
    Instance(GuestId),
}

/// Kinds of held resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Lease,
    /// Whole hosts.
    Host,
    /// Capacity for instances.
    Room,
    /// Floating IPs.
    Address,
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

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl Held {
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

/// Size of a held resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size {
    /// Number of leases, hosts, slots, addresses or instances.
    pub count: u64,
    /// Total CPUs, virtual or dedicated.
    pub cores: u64,
    /// Total memory, in MiB.
    pub memory_mib: u64,
    /// Total disk, in GiB.
    pub disk_gib: u64,
}

impl Size {
    /// Upper bound of every amount. It is more than any host has, and small enough that products with times
    /// don't overflow.
    const MOST: u64 = 1 << 48;

    /// One item that uses nothing of a host.
    pub const ONE: Self = Self { count: 1, cores: 0, memory_mib: 0, disk_gib: 0 };

    /// Total size of `count` items.
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

    /// Size of a reservation's allocation: the number of its hosts, slots or addresses, with the same CPUs,
    /// memory and disk as its spans. `hosts` returns `None` for a removed host, which counts as one host
    /// without resources.
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

/// A record that an owner held a resource from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The held resource.
    pub held: Held,
    /// Its host. `None` for resources that aren't on a particular host.
    pub host: Option<HostId>,
    /// Free pool of the host. For a lease, the free pool of most of its hosts.
    pub pool: Option<String>,
    /// Flavor identifier, for capacity of a flavor, for instances in it, and for leases that hold only such
    /// capacity.
    pub flavor: Option<String>,
    pub size: Size,
    /// Lease that holds it. `None` for an instance outside leases.
    pub lease: Option<LeaseId>,
    /// Reservation that holds it, if any.
    pub reservation: Option<ReservationId>,
    pub owner: Owner,
    /// Name of the lease type; [`PREEMPTIBLE`] for a preemptible instance.
    pub lease_type: Option<String>,
    /// Whether the holding begins with this span. `false` if the span only continues an earlier one on
    /// another host or with another size.
    pub begins: bool,
    /// Period of the holding, in microsecond precision. For an open span, the end is the currently planned
    /// one.
    pub window: Window,
    /// Whether the span can still change.
    pub open: bool,
}

impl Span {
    /// Identifies an open span. No two open spans have the same key.
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

/// A new end for an open span, or its closing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanChange {
    /// The span's [`Span::key`].
    pub key: String,
    /// New end. A closed span ends no later than planned.
    pub end: Timestamp,
    /// Whether the span is closed.
    pub closes: bool,
}

impl SpanChange {
    /// New end of a span with this window; never before its start.
    pub fn end_of(&self, window: Window) -> Timestamp {
        let end = if self.closes { self.end.min(window.end()) } else { self.end };
        end.max(window.start())
    }
}

/// Entries to record with a change. `changed` applies first, then `opened`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Changes to open spans.
    pub changed: Vec<SpanChange>,
    /// New spans. Spans that aren't open are recorded unchanged.
    pub opened: Vec<Span>,
    pub events: Vec<Event>,
}

impl Entries {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.opened.is_empty() && self.events.is_empty()
    }
}
