//! Arguments and results of calls.

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

/// User and project that make a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: UserId,
    pub project: ProjectId,
    /// Request ID, `req-...`.
    pub request_id: String,
    /// Whether the user is an administrator at the time of the request.
    pub administrator: bool,
}

impl Caller {
    /// Owner of leases and instances that the caller creates.
    pub fn owner(&self) -> Owner {
        Owner { project: self.project.clone(), user: self.user.clone() }
    }
}

/// Request for a lease.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// Time of the request. Terms and decisions take it as the present, however long they take.
    pub asked_at: Timestamp,
    pub name: String,
    pub terms: Terms,
    /// Wording of the request, one per reservation.
    pub wording: Vec<Wording>,
    /// Action for guests at the end. `None` means the action of the hosts' pools.
    pub end_action: Option<EndAction>,
    /// Whether it joins the waitlist if capacity is short.
    pub waits: bool,
}

/// Change of a host. Absent fields don't change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostUpdate {
    /// Capabilities to set, or to remove if the value is `None`.
    pub capabilities: Vec<(String, Option<String>)>,
    /// Whether the host is open for new leases.
    pub reservable: Option<bool>,
}

impl From<Vec<(String, Option<String>)>> for HostUpdate {
    /// Changes only capabilities.
    fn from(capabilities: Vec<(String, Option<String>)>) -> Self {
        Self { capabilities, reservable: None }
    }
}

/// Change of a lease pool. `None` doesn't change a field, and `Some(None)` removes its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePoolChange {
    pub name: Option<Option<String>>,
    /// Overcommit ratio of CPUs.
    pub cpu_ratio: Option<Option<Ratio>>,
    /// Overcommit ratio of memory.
    pub ram_ratio: Option<Option<Ratio>>,
}

/// Request for a free pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFreePool {
    pub name: String,
    /// Properties of its hosts.
    pub extra_specs: BTreeMap<String, String>,
    /// Action for guests at the end of leases that don't specify one.
    pub end_action: Option<EndAction>,
}

/// Change of a free pool. Absent fields don't change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePoolChange {
    pub name: Option<String>,
    /// Properties of its hosts. They replace all existing ones.
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// Action for guests at the end of leases that don't specify one. It applies to leases created after the
    /// change.
    pub end_action: Option<Option<EndAction>>,
}

/// Request to change a lease.
#[derive(Clone, Debug)]
pub struct LeaseChanges {
    /// Time of the request. The changes and decisions take it as the present.
    pub asked_at: Timestamp,
    pub changes: Changes,
    /// New wording. Fields of a reservation that are `None` keep their old wording.
    pub wording: BTreeMap<ReservationId, Wording>,
}

/// Key that makes a request safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// Hash of the request.
    pub fingerprint: String,
}

/// A created lease.
#[derive(Clone, Debug)]
pub struct Created {
    pub lease: Arc<LeaseRecord>,
    /// Whether an earlier request with the same key created it.
    pub repeated: bool,
}

/// Filter for leases. All given fields must match.
#[derive(Clone, Debug, Default)]
pub struct LeaseFilter {
    pub project: Option<ProjectId>,
    pub name: Option<String>,
    pub status: Option<LeaseStatus>,
    pub series: Option<SeriesId>,
    /// Only leases that end after this instant.
    pub ends_after: Option<Timestamp>,
    /// Only leases that start before this instant.
    pub starts_before: Option<Timestamp>,
    /// Only leases that have lease pools.
    pub with_pools: bool,
}

/// Selects a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSelector {
    Name(String),
    Id(HostId),
}

/// Filter for allocations.
#[derive(Clone, Debug, Default)]
pub struct AllocationFilter {
    pub host: Option<HostId>,
    /// Only allocations of this lease, including past ones.
    pub lease: Option<LeaseId>,
    /// Only allocations of this reservation, including past ones.
    pub reservation: Option<ReservationId>,
}

/// Reservations of a host.
#[derive(Clone, Debug)]
pub struct HostAllocation {
    pub host: HostId,
    /// Leases with the reservations that include the host, by start.
    pub reservations: Vec<(Arc<LeaseRecord>, ReservationId)>,
}

/// A property of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    pub name: String,
    /// Whether the property is hidden.
    pub private: bool,
    /// Values on hosts.
    pub values: Vec<String>,
}

impl Property {
    /// Whether its values are projects. Members of other projects don't need to see these.
    pub fn names_projects(&self) -> bool {
        self.name == leases::host::TENANTS
    }
}

/// A floating IP to offer for leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFloatingIp {
    pub network: NetworkId,
    pub address: IpAddr,
}

/// Request to start an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstance {
    pub name: String,
    pub placing: Placing,
    /// Whether another instance is started in its place after it was preempted. Only for preemptible
    /// instances.
    pub requeue: bool,
}

/// Requirements that decide where an instance can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// Capacity that it needs. `None` means the size of the reservation.
    pub size: Option<GuestSize>,
    /// The lease that it belongs to. `None` means no lease.
    pub hint: Option<LeaseHint>,
    /// Whether it is preemptible. Without a mark, the operator's setting for the project applies.
    pub marked: Marked,
    /// Class of a preemptible instance. `None` means no class.
    pub class: Option<String>,
    /// Instances that it must share a host with, or be kept apart from.
    pub others: OtherInstances,
}

/// Asks which hosts can have an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    /// Owner of the instance.
    pub project: ProjectId,
    /// The instance, if it already exists.
    pub instance: Option<GuestId>,
    /// Requirements of the instance. Without a size, neither here nor from a reservation, capacity isn't
    /// checked.
    pub placing: Placing,
    /// Names of candidate hosts, including hosts that the service doesn't manage. `None` means all hosts of
    /// the service.
    pub hosts: Option<Vec<String>>,
}

/// Hosts that can have an instance, and reasons why the rest can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAnswer {
    /// Kind that the instance would have.
    pub kind: InstanceKind,
    /// The candidates in the order of the question. Each has the time until which it can have the instance,
    /// if a known lease limits that, or the reason why it can't have it.
    pub hosts: Vec<(String, Result<Option<Timestamp>, HostRefusal>)>,
}

/// Reason why a host can't have an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostRefusal {
    /// The service doesn't manage the host, and only regular instances can run there.
    #[error("it is not managed here")]
    NotManaged,
    /// Only instances of leases and preemptible ones can run in the free pool.
    #[error("the free pool is closed to regular instances")]
    Closed,
    /// The instance is being moved to another host.
    #[error("the instance is moved to another host")]
    MovedElsewhere,
    /// The service manages the host, but it doesn't fit.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// Instances of the same project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherInstances {
    /// It must run on one of their hosts.
    pub same_host: BTreeSet<GuestId>,
    /// It must not run on their hosts.
    pub different_host: BTreeSet<GuestId>,
}

/// Request for maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMaintenance {
    /// Names or identifiers of hosts.
    pub hosts: Vec<String>,
    /// A free pool whose hosts are included.
    pub free_pool: Option<String>,
    /// Time and duration.
    pub wish: MaintenanceWish,
}

/// Maintenance of a host.
#[derive(Clone, Debug)]
pub struct PlannedMaintenance {
    pub host: Arc<HostRecord>,
    /// Window of the maintenance. `None` if no time is available.
    pub window: Option<Window>,
    /// The lease that reserves the host, if the maintenance is booked.
    pub lease: Option<LeaseId>,
}

/// Usage of a lease (CLS-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseUsage {
    /// From its start to its end, as planned now. A forecast if the lease hasn't started.
    pub whole: Totals,
    /// The part of `whole` that is past.
    pub so_far: Totals,
    /// Total cost. `None` if nothing has a price.
    pub cost: Option<Decimal>,
}

/// Instances seen on the hosts of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Intervals with their numbers, oldest first.
    pub intervals: Vec<(u64, Interval)>,
    /// End of the complete record. Open intervals lasted at least until then.
    pub seen_until: Option<Timestamp>,
}

/// Values for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub leases: BTreeMap<LeaseStatus, u64>,
    /// Hosts that can be leased.
    pub hosts: u64,
    pub failed_hosts: u64,
    pub off_hosts: u64,
    /// Number of times since the service started that a host was switched on and didn't finish booting in
    /// time.
    pub boots_failed: u64,
    /// Leases that have less than they were promised.
    pub degraded_leases: u64,
    /// 1 if no lease can start or end because the fleet doesn't answer or rejects the service, otherwise 0.
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
    /// Delay of the last lease's start in milliseconds: from its start time until it was ACTIVE.
    pub last_start_delay_ms: u64,
    /// Preemptible instances that are running or being started.
    pub preemptible_instances: u64,
    /// Those among them that will be preempted for a known lease.
    pub departing_instances: u64,
    /// Preemptible instances that were preempted since the start.
    pub preempted: u64,
    /// Clients that wait for the write lock.
    pub waiting_writers: u64,
    /// Clients that wait for a decision without the write lock.
    pub waiting_decisions: u64,
    /// Decisions given up since the start because they exceeded their budget.
    pub decisions_too_costly: u64,
    /// Decisions given up since the start because their client disconnected.
    pub decisions_canceled: u64,
    /// Instances of all kinds.
    pub instances: u64,
    /// Addresses that can be leased.
    pub floating_ips: u64,
    /// Size of the store when it was last tidied.
    pub sizes: Sizes,
    /// Notifications since the start of the service that were removed before every listener had received
    /// them, because their project had too many.
    pub notifications_lost: u64,
}

/// Usage of preemptible instances (PRE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptibleUsage {
    /// Instances that started to run.
    pub begun: u64,
    /// Instances preempted for leases.
    pub preempted: u64,
    /// Total running time of instances, in microseconds.
    pub ran_us: u128,
    /// Total running time of preempted instances since their start, in microseconds.
    pub lost_us: u128,
    /// CPUs multiplied by their time in use, in microseconds.
    pub cores_us: u128,
    /// CPUs of all existing hosts multiplied by the period, in microseconds.
    pub capacity_cores_us: u128,
}

/// Power state and power settings of a host.
#[derive(Clone, Debug)]
pub struct HostPower {
    /// The host as described by its pool.
    pub host: Host,
    /// Expected boot time.
    pub boot_time: SignedDuration,
    /// Power that it draws.
    pub figures: Figures,
    /// Whether the operator allows switching it off.
    pub may_be_off: bool,
}

/// Answer of the external service (API-enforcement).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnforcerVerdict {
    Allow,
    /// The reason.
    Deny(String),
}

/// A lease with the full records of its hosts and addresses, which an external service gets with all their
/// fields (API-enforcement).
#[derive(Clone, Debug)]
pub struct GrantedLease {
    pub lease: Arc<LeaseRecord>,
    /// Hosts of its allocations, by identifier.
    pub hosts: Vec<Arc<HostRecord>>,
    /// Addresses of its allocations, by identifier.
    pub floating_ips: Vec<Arc<FloatingIpRecord>>,
}

/// An external service that can reject leases (API-enforcement). It is asked without a lock held. Its answer
/// applies only to the lease that it was asked about, so hosts aren't exchanged after that.
#[async_trait]
pub trait Enforcer: fmt::Debug + Send + Sync {
    /// Checks a new lease and its proposed allocations.
    async fn check_create(&self, caller: &Caller, lease: &GrantedLease) -> EnforcerVerdict;
    /// Checks a change, given the lease before and after it.
    async fn check_update(&self, caller: &Caller, now: &GrantedLease, then: &GrantedLease)
    -> EnforcerVerdict;
    /// Reports that the lease has ended, or was deleted before its end. The answer is ignored.
    async fn on_end(&self, lease: &GrantedLease);
}

/// Reason why a call had no effect.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The object doesn't exist.
    #[error("{0}")]
    NotFound(NotFound),
    /// The request violates a rule of leasing, or capacity is short.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No host can accept the instance.
    #[error(transparent)]
    NoHost(#[from] NoHost),
    /// The instance can't be preemptible.
    #[error(transparent)]
    NotPreemptible(#[from] NotPreemptible),
    /// The project would exceed its quota of instances.
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    /// The project has reached its usage limit for now.
    #[error(transparent)]
    OverUsage(#[from] OverUsage),
    /// The external service rejected the request.
    #[error("{0}")]
    Denied(String),
    /// A conflict that can go away: a host in use, an existing name.
    #[error("{0}")]
    Conflict(String),
    /// Invalid value.
    #[error("{0}")]
    Invalid(String),
    /// The request would write too much at once.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A lease that should start immediately couldn't start, and was removed. Contains the reason why it had
    /// to wait, if known.
    #[error("The lease could not start at once{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NotStarted(Option<String>),
    /// The key was used for a different request.
    #[error("the idempotency key {} was used for another request", Quoted(.0))]
    KeyReused(String),
    /// The store doesn't work. It isn't known whether the change was made.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client disconnected before anything was committed for it.
    #[error("the client has gone")]
    Gone,
    /// The fleet doesn't answer.
    #[error("the fleet does not answer: {0}")]
    Fleet(String),
}

/// Object that doesn't exist. The texts are Blazar's (API-routes).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotFound {
    #[error("Object with {{'lease_id': '{0}'}} not found")]
    Lease(LeaseId),
    #[error("Offer {0} not found: it was accepted, withdrawn, or does not hold any more")]
    Offer(LeaseId),
    /// A waiting request.
    #[error("Waitlist entry {0} not found: it was served, withdrawn, or its time is over")]
    Waiting(LeaseId),
    #[error("Object with {{'reservation_id': '{0}'}} not found")]
    Reservation(ReservationId),
    #[error("Instance {0} not found")]
    Instance(GuestId),
    /// A host that can be leased.
    #[error("Object with {{'host_id': '{0}'}} not found")]
    Host(HostId),
    #[error("Free pool {} not found", Quoted(.0))]
    FreePool(String),
    #[error("Lease pool {0} not found")]
    LeasePool(ReservationId),
    /// A machine of the fleet.
    #[error("Host '{}' not found!", Quoted(.0))]
    Machine(String),
    #[error("Floating IP {0} not found.")]
    FloatingIp(FloatingIpId),
    /// A subnet for an address.
    #[error("Valid subnet for the floating IP {address} is not found. The network has {known}")]
    Subnet {
        address: IpAddr,
        /// The network's subnets, with their free addresses.
        known: String,
    },
    #[error("Flavor {} not found", Quoted(.0))]
    Flavor(String),
    /// A pattern of projects with preemptible instances.
    #[error("No projects are listed as {}", Quoted(.0))]
    PreemptibleProject(String),
    #[error("Resource property {} not found", Quoted(.0))]
    Property(String),
}

/// Reason why a service doesn't start.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The store doesn't work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two leases in the store have the same host at the same time.
    #[error("the store holds leases that contradict each other: {0}")]
    Contradiction(String),
}
