//! Instances that are started through the service, for fleets without a cloud (CLS-08).
//!
//! An instance is the stored request; the [guest](crate::plan::Guest) with the same identifier is its
//! observation on a host. [`crate::admission`] chooses the host. [`crate::plan`] has the guest started and
//! destroyed, and notices when it ends by itself.

use jiff::{SignedDuration, Timestamp};

use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
use crate::lease::{Lease, Reservation};
use crate::plan::{GuestOwner, GuestSize};
use crate::preemption::{Class, EndState};
use crate::project::Owner;
use crate::status::LeaseStatus;
use crate::window::later;

const SECONDS_PER_MINUTE: i64 = 60;

/// An instance started through the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Also the identifier of its guest.
    pub id: GuestId,
    /// Name given by the owner.
    pub name: String,
    pub owner: Owner,
    pub kind: InstanceKind,
    /// Resources it uses on its host.
    pub size: GuestSize,
    /// Host chosen at the start, or the last one it was moved to.
    pub host: HostId,
    pub status: InstanceStatus,
    /// Start of its running time, if known.
    pub launched_at: Option<Timestamp>,
    /// Planned preemption, if the instance is preemptible and either a lease of its host is known or its
    /// lifetime is over.
    pub departure: Option<Departure>,
    /// Guarantees in case of preemption; `None` if the instance has no class.
    pub class: Option<Class>,
    /// Lease that lets the instance run on one of its hosts. `None` if it runs on a host of the free pool.
    pub backfills: Option<LeaseId>,
    /// Whether a successor is started after preemption, as soon as there is capacity.
    pub requeue: bool,
    /// Stopped instance whose kept guest this one resumes. Cleared once it runs.
    pub resumes: Option<GuestId>,
    /// Reason why it could not be started: a text for its owner and one for administrators
    /// ([`crate::reason`]).
    pub reason: Option<String>,
}

/// Planned preemption of an instance (PRE-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time of the preemption notice.
    pub asked_at: Timestamp,
    /// Deadline for leaving, such as the start of the lease.
    pub gone_by: Timestamp,
    pub cause: Cause,
    /// Host that the instance is moved to before the notice, if another gap is available.
    pub moves_to: Option<HostId>,
}

/// Cause of a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A lease that starts at `gone_by`.
    Lease,
    /// An instance of the same project that starts at `gone_by` (PRE-10).
    OwnProject,
    /// The lease that holds the host needs it itself, or no longer lets other instances use it (PRE-11).
    Holder,
    /// The instance has reached its maximum running time.
    Lifetime,
}

impl Departure {
    /// Preemption for a lease that starts at `start`.
    pub fn for_lease(asked_at: Timestamp, start: Timestamp) -> Self {
        Self { asked_at, gone_by: start, cause: Cause::Lease, moves_to: None }
    }

    /// Immediate preemption with this notice period.
    pub fn at_once(cause: Cause, now: Timestamp, notice: SignedDuration) -> Self {
        Self { asked_at: now, gone_by: later(now, notice), cause, moves_to: None }
    }

    /// The departure as told to the instance's owner: `gone_by` is the end of the notice period, after which
    /// a remaining instance is deleted.
    #[must_use]
    pub fn for_owner(self, notice: SignedDuration) -> Self {
        Self { gone_by: later(self.asked_at, notice), ..self }
    }

    /// The departure to record at `now`. A notice is never dated in the past, and a departure that is already
    /// due stays as it was recorded.
    #[must_use]
    pub fn noted(self, known: Option<&Self>, now: Timestamp) -> Self {
        let same_lease = |known: &&Self| (known.gone_by, known.cause) == (self.gone_by, self.cause);
        let stays = |known: &&Self| known.is_at(&self) || (self.asked_at <= now && same_lease(known));
        known.filter(stays).copied().unwrap_or(Self { asked_at: self.asked_at.max(now), ..self })
    }

    /// Whether it is for a lease that will start. Only such departures are withdrawn, if the lease is deleted
    /// or delayed.
    pub fn is_for_start(&self) -> bool {
        self.cause == Cause::Lease
    }

    /// Whether both are the same to the instance's owner. Destinations don't matter.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.asked_at, self.gone_by, self.cause) == (other.asked_at, other.gone_by, other.cause)
    }
}

/// Capacity that an instance can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// Capacity that a reservation of a lease holds.
    Reserved { lease: LeaseId, reservation: ReservationId },
    /// Hosts of the free pool that aren't reserved.
    Regular,
    /// Hosts of the free pool until the host's next lease, for which the instance is preempted (PRE-04). Also
    /// hosts that a lease lends for the time being.
    Preemptible,
}

impl InstanceKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved { .. } => "reserved",
            Self::Regular => "regular",
            Self::Preemptible => "preemptible",
        }
    }

    pub fn guest_owner(self) -> GuestOwner {
        match self {
            Self::Reserved { lease, .. } => GuestOwner::Lease(lease),
            Self::Regular => GuestOwner::Other,
            Self::Preemptible => GuestOwner::Preemptible,
        }
    }

    /// The lease that the instance is part of, if any.
    pub fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Reserved { lease, .. } => Some(lease),
            Self::Regular | Self::Preemptible => None,
        }
    }
}

/// Status of an instance. The names are Nova's, except for `QUEUED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// Being started.
    Building,
    /// Running, as far as is known.
    Active,
    /// Being destroyed, at the owner's request or because its lease ended.
    Deleting,
    /// Could not be started.
    Error,
    /// Successor of a preempted instance, started as soon as there is capacity. Its `host` is its
    /// predecessor's.
    Queued,
    /// Preempted, or ended by itself. Everything except its place on the host is kept.
    Shelved,
}

impl InstanceStatus {
    const NAMES: [(Self, &'static str); 6] = [
        (Self::Building, "BUILD"),
        (Self::Active, "ACTIVE"),
        (Self::Deleting, "DELETING"),
        (Self::Error, "ERROR"),
        (Self::Queued, "QUEUED"),
        (Self::Shelved, "SHELVED_OFFLOADED"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }
}

impl Instance {
    /// An instance that will be started on `host`. Optional fields are empty.
    pub fn new(
        id: GuestId,
        name: String,
        owner: Owner,
        kind: InstanceKind,
        size: GuestSize,
        host: HostId,
    ) -> Self {
        Self {
            id,
            name,
            owner,
            kind,
            size,
            host,
            status: InstanceStatus::Building,
            launched_at: None,
            departure: None,
            class: None,
            backfills: None,
            requeue: false,
            resumes: None,
            reason: None,
        }
    }

    /// Whether it needs its capacity on the host, now or soon.
    pub fn needs_place(&self) -> bool {
        !matches!(self.status, InstanceStatus::Error | InstanceStatus::Queued | InstanceStatus::Shelved)
    }

    /// Whether it is running or will be, and isn't being destroyed.
    pub fn is_to_run(&self) -> bool {
        matches!(self.status, InstanceStatus::Building | InstanceStatus::Active)
    }

    /// Work done by `at`, which is lost if the instance is destroyed then, in minutes times vCPUs.
    pub fn work_by(&self, at: Timestamp) -> u64 {
        let ran = self.launched_at.map_or(0, |since| at.duration_since(since).as_secs());
        let minutes = u64::try_from(ran / SECONDS_PER_MINUTE).unwrap_or(0);
        minutes.saturating_mul(self.size.vcpus.into())
    }

    /// Whether it is preempted regardless of leases that will start.
    pub fn leaves_anyway(&self) -> bool {
        self.departure.is_some_and(|departure| !departure.is_for_start())
    }

    /// Whether it goes regardless of leases that will start: it is being destroyed, or [leaves
    /// anyway](Self::leaves_anyway). It needs its capacity until it has gone.
    pub fn goes_anyway(&self) -> bool {
        self.status == InstanceStatus::Deleting || self.leaves_anyway()
    }

    /// Destination of a planned move to another host.
    pub fn moves_to(&self) -> Option<HostId> {
        self.departure.and_then(|departure| departure.moves_to).filter(|to| *to != self.host)
    }

    /// Whether its preemption notice has been sent or is due.
    pub fn is_departing(&self, now: Timestamp) -> bool {
        self.kind == InstanceKind::Preemptible
            && self.departure.is_some_and(|departure| departure.asked_at <= now)
    }

    /// Whether an instance whose guest is gone counts as preempted: it was active, wasn't being destroyed,
    /// and its notice was due.
    pub fn gone_as_preempted(&self, now: Timestamp) -> bool {
        self.status == InstanceStatus::Active && self.is_departing(now)
    }

    /// Whether its guest is kept after it leaves the host, until the instance is destroyed.
    pub fn is_kept(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.end_state() == EndState::Stop)
    }

    /// Successor to start after preemption. It has its own identifier, because no identifier is ever started
    /// twice. If the guest is kept, the successor resumes it.
    #[must_use]
    pub fn successor(&self, id: GuestId) -> Self {
        let ran = matches!(self.status, InstanceStatus::Active | InstanceStatus::Shelved);
        let resumes = if ran { Some(self.id).filter(|_| self.is_kept()) } else { self.resumes };
        let (launched_at, departure, backfills) = (None, None, None);
        Self { id, launched_at, departure, backfills, resumes, ..self.becoming(InstanceStatus::Queued) }
    }

    /// The instance after preemption with its guest kept.
    #[must_use]
    pub fn shelved(&self) -> Self {
        let (launched_at, departure, backfills) = (None, None, None);
        Self { launched_at, departure, backfills, ..self.becoming(InstanceStatus::Shelved) }
    }

    /// The instance as running. `now` is its launch time unless an earlier one is known.
    #[must_use]
    pub fn running(&self, now: Timestamp) -> Self {
        let launched_at = self.launched_at.or(Some(now));
        Self { launched_at, resumes: None, ..self.becoming(InstanceStatus::Active) }
    }

    /// Copy with another status and no `reason`.
    #[must_use]
    pub fn becoming(&self, status: InstanceStatus) -> Self {
        Self { status, reason: None, ..self.clone() }
    }
}

/// Lease requested for a new instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseHint {
    /// The lease itself; uses its first reservation of hosts or instances.
    Lease(LeaseId),
    /// A reservation of the lease.
    Reservation(ReservationId),
}

/// The reservation selected by the hint, if the lease is active and the reservation has hosts or capacity on
/// them.
pub fn reservation_for(lease: &Lease, hint: LeaseHint) -> Option<&Reservation> {
    let hosts = |reservation: &&Reservation| !reservation.allocation.hosts().is_empty();
    lease
        .reservations
        .iter()
        .filter(hosts)
        .find(|reservation| {
            matches!(hint, LeaseHint::Lease(_)) || hint == LeaseHint::Reservation(reservation.id)
        })
        .filter(|_| lease.status == LeaseStatus::Active)
}
