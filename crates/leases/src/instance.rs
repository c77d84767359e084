//! Instances that are started through the service, for fleets without a cloud (CLS-08).
//!
//! An instance is what was asked for and is kept in the store; the [guest](crate::plan::Guest) of the same identifier
//! is what is seen of it on a host. [`crate::admission`] chooses the host, [`crate::plan`] has the guest started and
//! destroyed there, and notices when it has ended by itself.

use jiff::{SignedDuration, Timestamp};

use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
use crate::lease::{Lease, Reservation};
use crate::plan::{GuestOwner, GuestSize};
use crate::preemption::{Class, EndState};
use crate::project::Owner;
use crate::status::LeaseStatus;
use crate::window::later;

const SECONDS_PER_MINUTE: i64 = 60;

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its identifier, which its guest has as well.
    pub id: GuestId,
    /// What its owner calls it.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Where it may run.
    pub kind: InstanceKind,
    /// What it uses of its host.
    pub size: GuestSize,
    /// The host that was chosen, or to which it was moved since.
    pub host: HostId,
    /// How far it is.
    pub status: InstanceStatus,
    /// Since when it runs, as far as is known.
    pub launched_at: Option<Timestamp>,
    /// When it is preempted, if it is preemptible and a lease of its host is known, or its lifetime is over.
    pub departure: Option<Departure>,
    /// What its owner can count on when it is preempted, if it is of a class.
    pub class: Option<Class>,
    /// The lease that lets it run on a host of its own, of one that is not on a host of the free pool.
    pub backfills: Option<LeaseId>,
    /// Whether another one is started in its place, as soon as there is room, once it was preempted.
    pub requeue: bool,
    /// The one that was stopped and kept whose guest this one goes on with, until it runs.
    pub resumes: Option<GuestId>,
    /// Why it could not be started: one text for its owner and one for administrators ([`crate::reason`]).
    pub reason: Option<String>,
}

/// When a preemptible instance is preempted (PRE-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it is asked to shut down.
    pub asked_at: Timestamp,
    /// When the lease starts, by which it is gone.
    pub gone_by: Timestamp,
    /// For whom.
    pub cause: Cause,
    /// The host that it is moved to before it would be asked, if there is another gap for it.
    pub moves_to: Option<HostId>,
}

/// For whom an instance is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// For a lease that starts then.
    Lease,
    /// For an instance of its own project, which is started then (PRE-10).
    OwnProject,
    /// For the lease whose host it is on: that needs it itself, or does not let others on it any more (PRE-11).
    Holder,
    /// For nobody: it has run for as long as it may.
    Lifetime,
}

impl Departure {
    /// Before a lease that starts then.
    pub fn for_lease(asked_at: Timestamp, start: Timestamp) -> Self {
        Self { asked_at, gone_by: start, cause: Cause::Lease, moves_to: None }
    }

    /// At once, for that reason.
    pub fn at_once(cause: Cause, now: Timestamp, notice: SignedDuration) -> Self {
        Self { asked_at: now, gone_by: later(now, notice), cause, moves_to: None }
    }

    /// The same as its owner is told, who has that long to shut down: an instance that is still there then is deleted.
    #[must_use]
    pub fn for_owner(self, notice: SignedDuration) -> Self {
        Self { gone_by: later(self.asked_at, notice), ..self }
    }

    /// The departure to note at that time. Nobody is asked in the past, and one that is due already stays as it was noted.
    #[must_use]
    pub fn noted(self, known: Option<&Self>, now: Timestamp) -> Self {
        let same_lease = |known: &&Self| (known.gone_by, known.cause) == (self.gone_by, self.cause);
        let stays = |known: &&Self| known.is_at(&self) || (self.asked_at <= now && same_lease(known));
        known.filter(stays).copied().unwrap_or(Self { asked_at: self.asked_at.max(now), ..self })
    }

    /// Whether it is for a lease that is to start: if that is deleted, or put off, it is withdrawn. Others never are.
    pub fn is_for_start(&self) -> bool {
        self.cause == Cause::Lease
    }

    /// Whether it is the same to its owner, wherever it is moved.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.asked_at, self.gone_by, self.cause) == (other.asked_at, other.gone_by, other.cause)
    }
}

/// Where an instance may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// In a lease: on what a reservation holds.
    Reserved {
        /// The lease.
        lease: LeaseId,
        /// The reservation.
        reservation: ReservationId,
    },
    /// On hosts of the free pool that nobody has reserved.
    Regular,
    /// On hosts of the free pool until the next lease of the host, for which it is preempted (PRE-04); and on hosts
    /// that a lease lets it use meanwhile.
    Preemptible,
}

impl InstanceKind {
    /// Its name: `reserved`, `regular` or `preemptible`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved { .. } => "reserved",
            Self::Regular => "regular",
            Self::Preemptible => "preemptible",
        }
    }

    /// Whose its guest is.
    pub fn guest_owner(self) -> GuestOwner {
        match self {
            Self::Reserved { lease, .. } => GuestOwner::Lease(lease),
            Self::Regular => GuestOwner::Other,
            Self::Preemptible => GuestOwner::Preemptible,
        }
    }

    /// The lease that it is part of, if of one.
    pub fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Reserved { lease, .. } => Some(lease),
            Self::Regular | Self::Preemptible => None,
        }
    }
}

/// How far an instance is. The names are Nova's, but for `QUEUED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// It is being started.
    Building,
    /// It runs, as far as is known.
    Active,
    /// It is being destroyed, because its owner, or the end of its lease, wants it so.
    Deleting,
    /// It could not be started.
    Error,
    /// It takes the place of one that was preempted, and is started as soon as there is room. Its host is that of the
    /// other.
    Queued,
    /// It was preempted, or has ended by itself, and what it had is kept, apart from its host.
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

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }
}

impl Instance {
    /// One that is to be started on that host, with nothing else to say of it.
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

    /// Whether it needs its place: it runs there, or is about to.
    pub fn needs_place(&self) -> bool {
        !matches!(self.status, InstanceStatus::Error | InstanceStatus::Queued | InstanceStatus::Shelved)
    }

    /// Whether it runs or is about to, and nobody has it destroyed.
    pub fn is_to_run(&self) -> bool {
        matches!(self.status, InstanceStatus::Building | InstanceStatus::Active)
    }

    /// What it has done by then, and what is lost if it is destroyed then, in minutes times vCPUs.
    pub fn work_by(&self, at: Timestamp) -> u64 {
        let ran = self.launched_at.map_or(0, |since| at.duration_since(since).as_secs());
        let minutes = u64::try_from(ran / SECONDS_PER_MINUTE).unwrap_or(0);
        minutes.saturating_mul(self.size.vcpus.into())
    }

    /// Whether it is preempted whatever becomes of leases that are to start.
    pub fn leaves_anyway(&self) -> bool {
        self.departure.is_some_and(|departure| !departure.is_for_start())
    }

    /// Whether it goes whatever becomes of leases that are to start, and has its place until it has gone: it is being
    /// destroyed, or [leaves anyway](Self::leaves_anyway).
    pub fn goes_anyway(&self) -> bool {
        self.status == InstanceStatus::Deleting || self.leaves_anyway()
    }

    /// The host that it is to be moved to, if another one.
    pub fn moves_to(&self) -> Option<HostId> {
        self.departure.and_then(|departure| departure.moves_to).filter(|to| *to != self.host)
    }

    /// Whether it is being preempted for a lease, or should be: the time to ask it to leave has come.
    pub fn is_departing(&self, now: Timestamp) -> bool {
        self.kind == InstanceKind::Preemptible
            && self.departure.is_some_and(|departure| departure.asked_at <= now)
    }

    /// Whether it was preempted, if it is gone now: it ran, and nobody has had it destroyed.
    pub fn gone_as_preempted(&self, now: Timestamp) -> bool {
        self.status == InstanceStatus::Active && self.is_departing(now)
    }

    /// Whether what its guest had is kept when it is not on its host any more, until it is destroyed.
    pub fn is_kept(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.end_state() == EndState::Stop)
    }

    /// The one that takes its place once it was preempted. Nothing is ever started twice under one identifier; if the
    /// guest is kept, that one goes on with it.
    #[must_use]
    pub fn successor(&self, id: GuestId) -> Self {
        let ran = matches!(self.status, InstanceStatus::Active | InstanceStatus::Shelved);
        let resumes = if ran { Some(self.id).filter(|_| self.is_kept()) } else { self.resumes };
        let (launched_at, departure, backfills) = (None, None, None);
        Self { id, launched_at, departure, backfills, resumes, ..self.becoming(InstanceStatus::Queued) }
    }

    /// The same, after it was preempted and its guest is kept.
    #[must_use]
    pub fn shelved(&self) -> Self {
        let (launched_at, departure, backfills) = (None, None, None);
        Self { launched_at, departure, backfills, ..self.becoming(InstanceStatus::Shelved) }
    }

    /// The same, which runs since then if it was not known to before.
    #[must_use]
    pub fn running(&self, now: Timestamp) -> Self {
        let launched_at = self.launched_at.or(Some(now));
        Self { launched_at, resumes: None, ..self.becoming(InstanceStatus::Active) }
    }

    /// The same in another status, with nothing to explain.
    #[must_use]
    pub fn becoming(&self, status: InstanceStatus) -> Self {
        Self { status, reason: None, ..self.clone() }
    }
}

/// Which lease an instance is to be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseHint {
    /// That lease, in its first reservation of hosts or of room on them.
    Lease(LeaseId),
    /// The lease of that reservation.
    Reservation(ReservationId),
}

/// The reservation of an active lease that the hint means, if it has hosts or room on them.
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
