//! Last observed state of the machines. The planner starts from it and from no memory of its own, so a crash
//! at any point costs nothing (W4).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::host::Health;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use crate::lease_pool::record::{Ratio, Ratios};
use crate::project::ProjectId;
use crate::resources::Resources;
use crate::terms::{Affinity, ReservationTerms};

/// Last observed state of the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Hosts in the fleet. An absent host is gone, together with its guests. A host that hasn't reported for
    /// a long time stays here as last seen, with [`Health::Unknown`].
    pub hosts: BTreeMap<HostId, ObservedHost>,
    /// Floating IPs that a reservation's project can use.
    pub floating_ips: BTreeMap<FloatingIpId, ReservationId>,
    /// Resources that the fleet has made for reservations as a whole. A reservation is listed as soon as any
    /// part exists. Empty on fleets that [make nothing](crate::plan::World::prepares).
    pub reservations: BTreeMap<ReservationId, Prepared>,
}

/// A cloud's resources for a reservation as a whole, apart from hosts: an aggregate, a flavor if the
/// reservation is of instances, and a server group if they have an affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Whether it is marked as made by this service. Without the mark, it might belong to another project, or
    /// the service crashed just before marking it.
    pub marked: bool,
    /// The recipe it was made for, once it is complete.
    pub complete: Option<Recipe>,
    /// Number of the aggregate.
    pub aggregate: Option<u32>,
    /// Identifier of the server group.
    pub server_group: Option<String>,
    /// Identifiers of flavors for servers on whole hosts, where such servers need their own flavors.
    pub flavors: Vec<String>,
}

/// Properties of a reservation that determine the resources made for it as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Maximum size of each instance. Zero for reservations of whole hosts.
    pub size: GuestSize,
    /// Spread of instances over hosts.
    pub affinity: Affinity,
}

impl Recipe {
    /// Recipe for a reservation with these terms. `None` for floating IPs, which need nothing.
    pub fn of(terms: &ReservationTerms) -> Option<Self> {
        match terms {
            ReservationTerms::Hosts(_) => Some(Self::default()),
            ReservationTerms::FloatingIps(_) => None,
            // Extra specs can make an instance use other resources than its size says.
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

/// State of a host at the last observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHost {
    /// State of the host's handover.
    pub place: Place,
    pub health: Health,
    /// Guests in any state.
    pub guests: Vec<Guest>,
    /// Whether the fleet reports guests. If not, a host without guests might still be in use.
    pub reports_guests: bool,
    /// Slots granted to reservations of instances.
    pub slots: BTreeMap<ReservationId, u32>,
    /// Whether the host has power. A booting host has power, but doesn't work yet.
    pub powered: Powered,
    /// Allocation ratios set for the reservation that holds the host. `None` on fleets that don't support
    /// them.
    pub overcommit: Option<Overcommit>,
}

/// Allocation ratios that the service has set on a host. `None` for a ratio that is as the cloud's operator
/// set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overcommit {
    pub cpu: Option<Told>,
    pub ram: Option<Told>,
}

impl Overcommit {
    /// Whether exactly the `wanted` ratios are in effect.
    pub fn is(&self, wanted: Ratios) -> bool {
        let told =
            |told: Option<Told>, wanted: Option<Ratio>| told.map(|told| told.ratio) == wanted.map(Some);
        told(self.cpu, wanted.cpu) && told(self.ram, wanted.ram)
    }
}

/// An allocation ratio set by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Ratio in effect. `None` while it is being set, when either the old or the new one might be in effect.
    pub ratio: Option<Ratio>,
    /// The operator's ratio, restored later.
    pub before: Ratio,
}

/// Power state of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Powered {
    /// On, or unknown.
    #[default]
    On,
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

    /// Whether the host is in the free pool, without guests or granted slots.
    pub fn is_vacant(&self) -> bool {
        self.place == Place::FreePool && self.guests.is_empty() && self.slots.is_empty()
    }

    /// Resources used by all guests.
    pub fn used(&self) -> Resources {
        self.used_by(|_| true)
    }

    /// Resources used by guests that match the predicate.
    pub fn used_by(&self, which: impl Fn(&Guest) -> bool) -> Resources {
        let mut used = Resources::default();
        let guests = self.guests.iter().filter(|guest| which(guest));
        guests.for_each(|guest| used.add(1, &guest.size.resources()));
        used
    }
}

/// State of a host's handover. It determines which guests can start there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Open to preemptible guests, and to guests of reservations that have slots there.
    FreePool,
    /// Closed to everyone. The host is being drained or is about to be handed over.
    Fenced {
        /// `Some` if, since fencing, the host was found to be empty except for guests of this reservation's
        /// lease.
        verified_for: Option<ReservationId>,
    },
    /// Open to the project of this reservation.
    Held(ReservationId),
    /// Possibly still open to the project of this reservation: taking the host back was begun and hasn't
    /// succeeded. It must succeed before the host is handed over again, even to this reservation.
    Releasing(ReservationId),
}

impl Place {
    /// Reservation that holds the host, or might still hold it because taking it back isn't complete.
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
    pub id: GuestId,
    pub owner: GuestOwner,
    /// Time of the request to shut down, if there was one.
    pub stopping_since: Option<Timestamp>,
    /// Whether the guest has shut down, which ends its grace time.
    pub has_shut_down: bool,
    /// The guest's project, if known.
    pub project: Option<ProjectId>,
    /// Resources the guest uses on its host. Zero if unknown.
    pub size: GuestSize,
    /// Launch time, if the fleet reports it.
    pub launched_at: Option<Timestamp>,
    /// Target of a migration in progress.
    pub moving_to: Option<HostId>,
    /// Progress of the migration, in percent. `None` if the guest isn't moving or the fleet doesn't report
    /// it.
    pub copied_percent: Option<u8>,
    /// Cost and conditions of moving the guest. `None` if it can't be moved or the fleet doesn't know how.
    pub mobility: Option<Mobility>,
}

impl Guest {
    /// A running guest about which nothing else is known.
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

/// Resources that a guest uses on its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestSize {
    pub vcpus: u32,
    /// In MiB.
    pub memory_mib: u32,
    /// In GiB.
    pub disk_gib: u32,
}

impl GuestSize {
    /// The size as an amount of resources.
    pub fn resources(self) -> Resources {
        Resources {
            vcpus: self.vcpus.into(),
            memory_mib: self.memory_mib.into(),
            disk_gib: self.disk_gib.into(),
            ..Resources::default()
        }
    }
}

/// Cost and conditions of moving a guest to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// Disk to copy, in GiB; 0 for storage that both hosts reach.
    pub copied_disk_gib: u32,
    /// Expected downtime, in milliseconds.
    pub downtime_ms: u32,
    /// Weight of the downtime: 1 is usual, 0 means that downtime doesn't matter.
    pub priority: u32,
    /// Traits that the target must have, by their names in Placement.
    pub requires: BTreeSet<String>,
    /// Anti-affinity groups: no two guests of a group can be on the same host.
    pub apart: BTreeSet<String>,
}

impl Default for Mobility {
    /// Storage that both hosts reach, 300 ms of downtime, no conditions.
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

/// Owner of a guest, as far as the planner is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOwner {
    /// Can be preempted for leases, after its grace time.
    Preemptible,
    /// Belongs to the lease in which it was started.
    Lease(LeaseId),
    /// Belongs to another project. It is never stopped. It can only be moved, for a lease that
    /// [hunts](crate::hunt).
    Other,
}
