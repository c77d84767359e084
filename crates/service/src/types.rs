//! What calls take and return.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use leases::admission::{Changes, NoHost, Refusal, Unfit};
use leases::energy::Figures;
use leases::host::{Host, NetworkId};
use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId, SeriesId};
use leases::instance::{InstanceKind, LeaseHint};
use leases::lease::EndAction;
use leases::lease_pool::Ratio;
use leases::maintenance::MaintenanceWish;
use leases::occupants::Interval;
use leases::plan::GuestSize;
use leases::preemption::{Marked, NotPreemptible};
use leases::project::{Owner, ProjectId, UserId};
use leases::quota::{OverQuota, OverUsage};
use leases::status::LeaseStatus;
use leases::terms::Terms;
use leases::text::Quoted;
use leases::usage::{Decimal, Totals};
use leases::window::Window;
use store::{FloatingIpRecord, HostRecord, LeaseRecord, Sizes, StoreError, TooLarge, Wording};
use thiserror::Error;

/// On whose behalf something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: UserId,
    /// The project.
    pub project: ProjectId,
    /// The request, `req-...`.
    pub request_id: String,
    /// Whether the user is an administrator when the request is made.
    pub administrator: bool,
}

impl Caller {
    /// Whose what they ask for is.
    pub fn owner(&self) -> Owner {
        Owner { project: self.project.clone(), user: self.user.clone() }
    }
}

/// A lease that is asked for.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// When it was asked for: the present, to the terms and to whoever decides on them, however long that takes.
    pub asked_at: Timestamp,
    /// Its name.
    pub name: String,
    /// What is asked for.
    pub terms: Terms,
    /// The words, one per reservation.
    pub wording: Vec<Wording>,
    /// What becomes of guests at the end; if absent, what the pools of its hosts say.
    pub end_action: Option<EndAction>,
    /// Whether it waits for its turn if it cannot be had.
    pub waits: bool,
}

/// A change of a host; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostUpdate {
    /// Capabilities to set, and without a value to take away.
    pub capabilities: Vec<(String, Option<String>)>,
    /// Whether new leases may have it.
    pub reservable: Option<bool>,
}

impl From<Vec<(String, Option<String>)>> for HostUpdate {
    /// A change of capabilities alone.
    fn from(capabilities: Vec<(String, Option<String>)>) -> Self {
        Self { capabilities, reservable: None }
    }
}

/// A change of a lease pool; what is absent stays, and none takes back what was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePoolChange {
    /// Another name.
    pub name: Option<Option<String>>,
    /// How far CPUs are over-committed.
    pub cpu_ratio: Option<Option<Ratio>>,
    /// The same of memory.
    pub ram_ratio: Option<Option<Ratio>>,
}

/// A free pool that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFreePool {
    /// Its name.
    pub name: String,
    /// What its hosts are like.
    pub extra_specs: BTreeMap<String, String>,
    /// What becomes of guests at the end of leases that do not say.
    pub end_action: Option<EndAction>,
}

/// A change of a free pool; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePoolChange {
    /// Another name.
    pub name: Option<String>,
    /// What its hosts are like from now on, all of it.
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// What becomes of guests at the end of leases that are made from now on and do not say.
    pub end_action: Option<Option<EndAction>>,
}

/// A change that is asked for.
#[derive(Clone, Debug)]
pub struct LeaseChanges {
    /// When it was asked for: the present, to the changes and to whoever decides on them.
    pub asked_at: Timestamp,
    /// What is to be different.
    pub changes: Changes,
    /// New words; of a reservation's fields that are none, the old ones stay.
    pub wording: BTreeMap<ReservationId, Wording>,
}

/// A key that makes repeating a request harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// A hash of the request.
    pub fingerprint: String,
}

/// A lease that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// The lease.
    pub lease: Arc<LeaseRecord>,
    /// It was made by an earlier request with the same key.
    pub repeated: bool,
}

/// Which leases.
#[derive(Clone, Debug, Default)]
pub struct LeaseFilter {
    /// Of that project.
    pub project: Option<ProjectId>,
    /// With that name.
    pub name: Option<String>,
    /// In that status.
    pub status: Option<LeaseStatus>,
    /// That recur together.
    pub series: Option<SeriesId>,
    /// That have something at some instant from then on.
    pub ends_after: Option<Timestamp>,
    /// That have something at some instant before then.
    pub starts_before: Option<Timestamp>,
    /// That have lease pools.
    pub with_pools: bool,
}

/// Which machine is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSelector {
    /// That of this name.
    Name(String),
    /// That of this identifier.
    Id(HostId),
}

/// Which allocations.
#[derive(Clone, Debug, Default)]
pub struct AllocationFilter {
    /// Of that host only.
    pub host: Option<HostId>,
    /// For that lease only, whenever it is.
    pub lease: Option<LeaseId>,
    /// For that reservation only, whenever it is.
    pub reservation: Option<ReservationId>,
}

/// What is reserved of a host.
#[derive(Clone, Debug)]
pub struct HostAllocation {
    /// The host.
    pub host: HostId,
    /// The leases and their reservations that have something of it, by start.
    pub reservations: Vec<(Arc<LeaseRecord>, ReservationId)>,
}

/// A property of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Whether it is hidden.
    pub private: bool,
    /// The values that hosts have.
    pub values: Vec<String>,
}

impl Property {
    /// Whether its values are projects, which members of other projects need not know.
    pub fn names_projects(&self) -> bool {
        self.name == leases::host::TENANTS
    }
}

/// An address that is to be leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFloatingIp {
    /// Its network.
    pub network: NetworkId,
    /// The address.
    pub address: IpAddr,
}

/// An instance that is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstance {
    /// Its name.
    pub name: String,
    /// What decides where it may run.
    pub placing: Placing,
    /// Whether another one is started in its place once it was preempted; of one that is preemptible.
    pub requeue: bool,
}

/// What decides where an instance may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// What it needs of its host; that of the reservation if not given.
    pub size: Option<GuestSize>,
    /// The lease that it is to be part of; of none if not given.
    pub hint: Option<LeaseHint>,
    /// Whether it is preemptible; if nothing says so, as the operator has it for the project.
    pub marked: Marked,
    /// The class that it is to be of, if it is preemptible; none if not given.
    pub class: Option<String>,
    /// Instances that it is to be with, or apart from.
    pub others: OtherInstances,
}

/// A question which hosts may have an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    /// Whose instance it is to be.
    pub project: ProjectId,
    /// The instance, if it is there already.
    pub instance: Option<GuestId>,
    /// What it is to be like. Without a size, not even that of a reservation, it is not asked for room.
    pub placing: Placing,
    /// The names of the hosts in question, those of others included that are none of the service's; all of the
    /// service's if not given.
    pub hosts: Option<Vec<String>>,
}

/// Which hosts may have an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAnswer {
    /// What kind of instance it would be.
    pub kind: InstanceKind,
    /// The hosts in question, in that order, each with until when it may have the instance if a lease is known that
    /// bounds that, or why it may not.
    pub hosts: Vec<(String, Result<Option<Timestamp>, HostRefusal>)>,
}

/// Why a host may not have an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostRefusal {
    /// It is none of the service's, and only regular instances may run there.
    #[error("it is not managed here")]
    NotManaged,
    /// Only instances of leases and preemptible ones may run in the free pool.
    #[error("the free pool is closed to regular instances")]
    Closed,
    /// The instance is being moved elsewhere.
    #[error("the instance is moved to another host")]
    MovedElsewhere,
    /// It is, and may not.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// Instances of the same project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherInstances {
    /// On their hosts it is to run.
    pub same_host: BTreeSet<GuestId>,
    /// On their hosts it is not to run.
    pub different_host: BTreeSet<GuestId>,
}

/// Maintenance that is to be booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMaintenance {
    /// Of these hosts, by name or identifier.
    pub hosts: Vec<String>,
    /// And of all those in that free pool.
    pub free_pool: Option<String>,
    /// When, and for how long.
    pub wish: MaintenanceWish,
}

/// Maintenance of a host.
#[derive(Clone, Debug)]
pub struct PlannedMaintenance {
    /// The host.
    pub host: Arc<HostRecord>,
    /// From when to when; none if there is no time for it.
    pub window: Option<Window>,
    /// The lease that keeps others away, if it is booked.
    pub lease: Option<LeaseId>,
}

/// What a lease comes to (CLS-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseUsage {
    /// From its start to its end, as things stand; of one that has not started, what is foreseen.
    pub whole: Totals,
    /// What of that is past.
    pub so_far: Totals,
    /// What all of it costs; none if nothing has a price.
    pub cost: Option<Decimal>,
}

/// Who was seen on the hosts of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Intervals with their numbers, oldest first.
    pub intervals: Vec<(u64, Interval)>,
    /// Until when all that was seen is recorded. Open intervals lasted at least until then.
    pub seen_until: Option<Timestamp>,
}

/// Figures for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Leases by status.
    pub leases: BTreeMap<LeaseStatus, u64>,
    /// Hosts that may be leased.
    pub hosts: u64,
    /// Hosts that have failed.
    pub failed_hosts: u64,
    /// Hosts that are off.
    pub off_hosts: u64,
    /// How often a host was switched on and did not come up in time, since the start.
    pub boots_failed: u64,
    /// Leases that have less than they were promised.
    pub degraded_leases: u64,
    /// 1 if no lease can start or end, since the fleet does not answer or refuses the service.
    pub degraded: u64,
    /// Steps that are being carried out.
    pub running_steps: u64,
    /// Steps that failed and have not succeeded since.
    pub failing_steps: u64,
    /// Steps that were carried out since the start.
    pub steps_done: u64,
    /// Steps that failed since the start.
    pub steps_failed: u64,
    /// Cycles of the loop since the start.
    pub cycles: u64,
    /// How late, in milliseconds, the last lease became ACTIVE after its start.
    pub last_start_delay_ms: u64,
    /// Preemptible instances that run, or are being started.
    pub preemptible_instances: u64,
    /// Those of them that will be preempted for a known lease.
    pub departing_instances: u64,
    /// Preemptible instances that were preempted since the start.
    pub preempted: u64,
    /// Clients that wait for the write lock.
    pub waiting_writers: u64,
    /// Clients that wait to have something decided without it.
    pub waiting_decisions: u64,
    /// Decisions that were given up since the start because they cost more than they may.
    pub decisions_too_costly: u64,
    /// Decisions that were given up since the start because their client had gone.
    pub decisions_canceled: u64,
    /// Instances of any kind.
    pub instances: u64,
    /// Addresses that may be leased.
    pub floating_ips: u64,
    /// How large the store was when it was last tidied.
    pub sizes: Sizes,
    /// Notifications, since the service started, that were removed because their project had too many, before every
    /// listener had received them.
    pub notifications_lost: u64,
}

/// What preemptible instances came to (PRE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptibleUsage {
    /// Instances that began to run.
    pub begun: u64,
    /// Instances that were preempted for leases.
    pub preempted: u64,
    /// How long instances ran, all together, microseconds.
    pub ran_us: u128,
    /// How long those had run that were preempted, since they were started: microseconds.
    pub lost_us: u128,
    /// CPUs times how long they were used, microseconds.
    pub cores_us: u128,
    /// CPUs of all hosts that there are times the period, microseconds.
    pub capacity_cores_us: u128,
}

/// The power of a host.
#[derive(Clone, Debug)]
pub struct HostPower {
    /// The host, with what its pool says of it.
    pub host: Host,
    /// How long it is expected to boot.
    pub boot_time: SignedDuration,
    /// What it draws.
    pub figures: Figures,
    /// Whether the operator lets it be switched off.
    pub may_be_off: bool,
}

/// What the external service says (API-enforcement).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnforcerVerdict {
    /// Go on.
    Allow,
    /// No, and why.
    Deny(String),
}

/// A lease with what it was given, in full: an external service is told hosts and addresses with all their
/// fields (API-enforcement).
#[derive(Clone, Debug)]
pub struct GrantedLease {
    /// The lease.
    pub lease: Arc<LeaseRecord>,
    /// The hosts of its allocations, by identifier.
    pub hosts: Vec<Arc<HostRecord>>,
    /// The addresses of its allocations, by identifier.
    pub floating_ips: Vec<Arc<FloatingIpRecord>>,
}

/// An external service that may refuse leases (API-enforcement). It is asked without any lock being held, and what it
/// says counts for what it was asked about: hosts are not exchanged after that.
#[async_trait]
pub trait Enforcer: fmt::Debug + Send + Sync {
    /// About a new lease and what it would be given.
    async fn check_create(&self, caller: &Caller, lease: &GrantedLease) -> EnforcerVerdict;
    /// About a change: what the lease is, and what it would be.
    async fn check_update(&self, caller: &Caller, now: &GrantedLease, then: &GrantedLease)
    -> EnforcerVerdict;
    /// The lease has ended, or was deleted before its end. The answer does not matter.
    async fn on_end(&self, lease: &GrantedLease);
}

/// Why a call has no effect.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(NotFound),
    /// It is against the rules of leasing, or there is not enough.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no host for an instance.
    #[error(transparent)]
    NoHost(#[from] NoHost),
    /// An instance cannot be preemptible.
    #[error(transparent)]
    NotPreemptible(#[from] NotPreemptible),
    /// The project would have more instances than it may.
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    /// The project has used what it may for now.
    #[error(transparent)]
    OverUsage(#[from] OverUsage),
    /// The external service says no.
    #[error("{0}")]
    Denied(String),
    /// Something is in the way that may go away: a host in use, a name that exists.
    #[error("{0}")]
    Conflict(String),
    /// A value that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// It would write too much at once.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A lease that was to start at once has not, and is none; with what it waited for, if that is known.
    #[error("The lease could not start at once{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NotStarted(Option<String>),
    /// A key was used for another request.
    #[error("the idempotency key {} was used for another request", Quoted(.0))]
    KeyReused(String),
    /// The store does not work; whether the change was made is not known.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client has gone before anything was committed for it.
    #[error("the client has gone")]
    Gone,
    /// The fleet does not answer.
    #[error("the fleet does not answer: {0}")]
    Fleet(String),
}

/// What there is none of. Texts are Blazar's (API-routes).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotFound {
    /// A lease.
    #[error("Object with {{'lease_id': '{0}'}} not found")]
    Lease(LeaseId),
    /// An offer.
    #[error("Offer {0} not found: it was accepted, withdrawn, or does not hold any more")]
    Offer(LeaseId),
    /// A request that waits.
    #[error("Waitlist entry {0} not found: it was served, withdrawn, or its time is over")]
    Waiting(LeaseId),
    /// A reservation.
    #[error("Object with {{'reservation_id': '{0}'}} not found")]
    Reservation(ReservationId),
    /// An instance.
    #[error("Instance {0} not found")]
    Instance(GuestId),
    /// A host that may be leased.
    #[error("Object with {{'host_id': '{0}'}} not found")]
    Host(HostId),
    /// A free pool.
    #[error("Free pool {} not found", Quoted(.0))]
    FreePool(String),
    /// A lease pool.
    #[error("Lease pool {0} not found")]
    LeasePool(ReservationId),
    /// A machine of the fleet.
    #[error("Host '{}' not found!", Quoted(.0))]
    Machine(String),
    /// A floating IP.
    #[error("Floating IP {0} not found.")]
    FloatingIp(FloatingIpId),
    /// A subnet for an address.
    #[error("Valid subnet for the floating IP {address} is not found. The network has {known}")]
    Subnet {
        /// The address.
        address: IpAddr,
        /// The network's subnets, with the addresses that are free.
        known: String,
    },
    /// A flavor.
    #[error("Flavor {} not found", Quoted(.0))]
    Flavor(String),
    /// A pattern of projects whose instances are preemptible.
    #[error("No projects are listed as {}", Quoted(.0))]
    PreemptibleProject(String),
    /// A property.
    #[error("Resource property {} not found", Quoted(.0))]
    Property(String),
}

/// Why a service does not start.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two leases in the store have the same host at the same time.
    #[error("the store holds leases that contradict each other: {0}")]
    Contradiction(String),
}
