//! What was last seen of the machines. The planner starts from this and from nothing it remembers, which is
//! why a crash at any point costs nothing (W4).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::host::Health;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease_pool::record::{Ratio, Ratios};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::{Affinity, ReservationTerms};

/// Everything that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Hosts of the fleet. One that is absent is gone, and what was on it as well. One that nothing was heard
    /// of for long stays here as it was seen last, with [`Health::Unknown`].
    pub hosts: BTreeMap<HostId, ObservedHost>,
    /// Floating IPs that a reservation's project can use.
    pub floating_ips: BTreeMap<FloatingIpId, ReservationId>,
    /// What was made for reservations as a whole, of all of which anything is there; nothing on fleets that
    /// [make nothing](crate::plan::World::prepares).
    pub reservations: BTreeMap<ReservationId, Prepared>,
}

/// What a cloud has for a reservation as a whole, beside the hosts: an aggregate, for instances a flavor, and a server
/// group if they have an affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// It is marked as made by this service. Without a mark it may be somebody else's, or the service has crashed just
    /// before marking it.
    pub marked: bool,
    /// For what it was made, once all of it is there.
    pub complete: Option<Recipe>,
    /// The number of the aggregate.
    pub aggregate: Option<u32>,
    /// The identifier of the server group.
    pub server_group: Option<String>,
    /// The identifiers of flavors for servers on whole hosts, where these need flavors of their own.
    pub flavors: Vec<String>,
}

/// Of a reservation, what decides what is made for it as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// What each instance may use; nothing if it is of whole hosts.
    pub size: GuestSize,
    /// How instances are spread.
    pub affinity: Affinity,
}

impl Recipe {
    /// For what is asked for; none for addresses, which need nothing.
    pub fn of(terms: &ReservationTerms) -> Option<Self> {
        match terms {
            ReservationTerms::Hosts(_) => Some(Self::default()),
            ReservationTerms::FloatingIps(_) => None,
            // Extra specs may have an instance use other resources than its size says.
            ReservationTerms::Instances(terms) => {
                let size = GuestSize {
                    vcpus: terms.size.vcpus(),
                    memory_mib: terms.size.memory_mib(),
                    disk_gib: terms.size.disk_gib(),
                };
                Some(Self { size, affinity: terms.affinity })
            }
            ReservationTerms::Flavor(terms) => {
                let slots = terms.slots();
                let narrow = |amount: u64| u32::try_from(amount).unwrap_or(u32::MAX);
                let size = GuestSize {
                    vcpus: narrow(slots.size.vcpus),
                    memory_mib: narrow(slots.size.memory_mib),
                    disk_gib: narrow(slots.size.disk_gib),
                };
                Some(Self { size, affinity: slots.affinity })
            }
        }
    }
}

/// A host as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHost {
    /// Where it is.
    pub place: Place,
    /// Whether it works.
    pub health: Health,
    /// What runs there, in any state.
    pub guests: Vec<Guest>,
    /// Whether the fleet says what runs there. If not, a host without guests may be in use.
    pub reports_guests: bool,
    /// Slots that were granted to reservations of instances.
    pub slots: BTreeMap<ReservationId, u32>,
    /// Whether it has power. One that is booting has, and does not work yet.
    pub powered: Powered,
    /// What its cloud was told of how much more servers may have than there is, for the reservation that holds the host;
    /// none on fleets that cannot be told.
    pub overcommit: Option<Overcommit>,
}

/// What a cloud was told of how far a host is over-committed; nothing of what is as the cloud's operator has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overcommit {
    /// Of its CPUs.
    pub cpu: Option<Told>,
    /// Of its memory.
    pub ram: Option<Told>,
}

impl Overcommit {
    /// Whether the cloud was told just these.
    pub fn is(&self, wanted: Ratios) -> bool {
        let told =
            |told: Option<Told>, wanted: Option<Ratio>| told.map(|told| told.ratio) == wanted.map(Some);
        told(self.cpu, wanted.cpu) && told(self.ram, wanted.ram)
    }
}

/// A ratio that a cloud was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The ratio; none while it is being told and may be either.
    pub ratio: Option<Ratio>,
    /// What it was before, and will be again.
    pub before: Ratio,
}

/// Whether a host has power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Powered {
    /// It has; or nobody can tell.
    #[default]
    On,
    /// It is off.
    Off,
}

impl ObservedHost {
    /// A healthy, empty host in the free pool.
    pub fn free() -> Self {
        Self {
            place: Place::FreePool,
            health: Health::Up,
            guests: Vec::new(),
            reports_guests: true,
            slots: BTreeMap::new(),
            powered: Powered::On,
            overcommit: None,
        }
    }

    /// Whether it is in the free pool with nothing on it.
    pub fn is_vacant(&self) -> bool {
        self.place == Place::FreePool && self.guests.is_empty() && self.slots.is_empty()
    }

    /// What guests use of it.
    pub fn used(&self) -> Resources {
        self.used_by(|_| true)
    }

    /// What some guests use of it.
    pub fn used_by(&self, which: impl Fn(&Guest) -> bool) -> Resources {
        let mut used = Resources::default();
        let guests = self.guests.iter().filter(|guest| which(guest));
        guests.for_each(|guest| used.add(1, &guest.size.resources()));
        used
    }
}

/// Where a host is, that is, who may start guests there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Preemptible guests, and guests of reservations that have slots there.
    FreePool,
    /// Nobody. It is being emptied, or about to be handed over.
    Fenced {
        /// Since it was fenced it was found to be empty but for guests of that reservation's lease.
        verified_for: Option<ReservationId>,
    },
    /// The project of that reservation.
    Held(ReservationId),
    /// Perhaps still the project of that reservation: taking the host back was begun and has not succeeded. It has
    /// to, before anybody gets the host, that reservation included.
    Releasing(ReservationId),
}

impl Place {
    /// The reservation that holds the host, perhaps: taking it back may have been begun.
    pub fn holder(self) -> Option<ReservationId> {
        match self {
            Self::Held(holder) | Self::Releasing(holder) => Some(holder),
            Self::FreePool | Self::Fenced { .. } => None,
        }
    }
}

/// A guest on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its identifier.
    pub id: GuestId,
    /// Whose it is.
    pub owner: GuestOwner,
    /// Since when it is asked to shut down, if it is.
    pub stopping_since: Option<Timestamp>,
    /// It has shut down, so its grace time is over.
    pub has_shut_down: bool,
    /// The project that it belongs to, if that is known.
    pub project: Option<ProjectId>,
    /// What it uses of its host; nothing if that is not known.
    pub size: GuestSize,
    /// Since when it runs, if the fleet says so.
    pub launched_at: Option<Timestamp>,
    /// The host that it is moving to, if it is.
    pub moving_to: Option<HostId>,
    /// How much of it is there already, percent; none if it does not move, or nobody says.
    pub copied_percent: Option<u8>,
    /// What it takes to move it to another host; none if it may not be moved, or nobody knows how.
    pub mobility: Option<Mobility>,
}

impl Guest {
    /// A guest that runs, and of which nothing more is known.
    pub fn new(id: GuestId, owner: GuestOwner) -> Self {
        let size = GuestSize::default();
        Self {
            id,
            owner,
            stopping_since: None,
            has_shut_down: false,
            project: None,
            size,
            launched_at: None,
            moving_to: None,
            copied_percent: None,
            mobility: None,
        }
    }
}

/// What a guest uses of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestSize {
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Disk, GiB.
    pub disk_gib: u32,
}

impl GuestSize {
    /// The same as amounts of resources.
    pub fn resources(self) -> Resources {
        Resources {
            vcpus: self.vcpus.into(),
            memory_mib: self.memory_mib.into(),
            disk_gib: self.disk_gib.into(),
            ..Resources::default()
        }
    }
}

/// What it takes to move a guest to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// Disk to copy, GiB; 0 for storage that both hosts reach.
    pub copied_disk_gib: u32,
    /// How long it is expected to stand still, milliseconds.
    pub downtime_ms: u32,
    /// By how much its downtime counts; 1 is usual, 0 means that nobody minds.
    pub priority: u32,
    /// Traits that its host must have, by Placement's names.
    pub requires: BTreeSet<String>,
    /// Groups of guests of which no two may be on one host.
    pub apart: BTreeSet<String>,
}

impl Default for Mobility {
    /// Storage that both hosts reach, a third of a second, no conditions.
    fn default() -> Self {
        Self {
            copied_disk_gib: 0,
            downtime_ms: 300,
            priority: 1,
            requires: BTreeSet::new(),
            apart: BTreeSet::new(),
        }
    }
}

/// Whose a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOwner {
    /// Nobody's who could complain: it is preempted for leases, after its grace time.
    Preemptible,
    /// The lease's in which it was started.
    Lease(LeaseId),
    /// Somebody's else. It is never stopped; it is moved at most, for a lease that [hunts](crate::hunt).
    Other,
}
