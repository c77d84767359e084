//! Records, as stores keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::free_pool::FreePool;
use leases::host::{FloatingIp, Host};
use leases::ids::{LeaseId, ReservationId};
use leases::instance::Instance;
use leases::lease::Lease;
use leases::preemption::ProjectPattern;
use leases::project::{ProjectId, UserId};
use leases::terms::FlavorSize;
use leases::usage::{Event, Occurrence};
use leases::window::Window;

/// An instance and its history of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRecord {
    pub instance: Instance,
    pub version: Version,
    /// Time of the request for it.
    pub created_at: Timestamp,
    /// `None` if it never changed.
    pub updated_at: Option<Timestamp>,
}

/// A free pool. The default pool has no record until it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePoolRecord {
    pub pool: FreePool,
    pub version: Version,
    pub created_at: Timestamp,
    /// `None` if it never changed.
    pub updated_at: Option<Timestamp>,
}

/// Version of a record: counts its changes, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Version of a new record.
    pub const FIRST: Self = Self(1);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Text of a request as the client wrote it; responses repeat it (API-lease). Copies share the text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wording {
    pub hypervisor_properties: Option<Arc<str>>,
    /// `resource_properties`. For a flavor reservation, the flavor at that time, as JSON.
    pub resource_properties: Option<Arc<str>>,
}

/// A lease and the text of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    pub lease: Lease,
    /// Wording of the reservations. A missing entry and an empty one mean the same.
    pub wording: BTreeMap<ReservationId, Wording>,
    pub version: Version,
    pub created_at: Timestamp,
    /// `None` if it never changed.
    pub updated_at: Option<Timestamp>,
}

impl LeaseRecord {
    /// The record of a new lease.
    pub fn new(lease: Lease, wording: BTreeMap<ReservationId, Wording>, created_at: Timestamp) -> Self {
        Self { lease, wording, version: Version::FIRST, created_at, updated_at: None }
    }

    /// The next version of the record, with this lease and the same wording.
    #[must_use]
    pub fn becomes(&self, lease: Lease, at: Timestamp) -> Self {
        Self { lease, version: self.version.next(), updated_at: Some(at), ..self.clone() }
    }
}

/// A host that can be leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    pub host: Host,
    pub version: Version,
    pub created_at: Timestamp,
    /// `None` if it never changed.
    pub updated_at: Option<Timestamp>,
}

/// A floating IP that can be leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpRecord {
    pub floating_ip: FloatingIp,
    pub subnet: String,
    pub created_at: Timestamp,
}

/// A flavor, with Nova's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorRecord {
    pub id: String,
    pub name: String,
    pub size: FlavorSize,
    pub swap_mib: u32,
    /// Whether every project can use it.
    pub public: bool,
    pub extra_specs: BTreeMap<String, String>,
    pub created_at: Timestamp,
}

/// The visibility of a property of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyRecord {
    /// A UUID.
    pub id: u128,
    pub name: String,
    /// Whether lists omit the property unless all properties are requested.
    pub private: bool,
    pub created_at: Timestamp,
    /// `None` if it never changed.
    pub updated_at: Option<Timestamp>,
}

/// Projects whose instances are preemptible unless a request says otherwise (PRE-03a).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptibleProjectRecord {
    /// Each pattern has one record.
    pub pattern: ProjectPattern,
    pub created_at: Timestamp,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    pub at: Timestamp,
    pub user: UserId,
    pub project: ProjectId,
    /// Identifier of the request (`req-...`).
    pub request_id: String,
    /// For example `lease.create` or `host.update`.
    pub action: String,
    /// Identifier of the object that was changed.
    pub object: String,
    /// Whether the record expires by age only, like records of administrators, of failed logins and of the
    /// service itself. Other records expire by size as well.
    pub protected: bool,
}

/// Selects audit records. Fields that are `None` match every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub user: Option<UserId>,
    pub project: Option<ProjectId>,
    pub request_id: Option<String>,
    pub action: Option<String>,
    pub object: Option<String>,
}

impl AuditFilter {
    /// Whether the record matches.
    pub fn lets_through(&self, record: &AuditRecord) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
        self.user.as_ref().is_none_or(|user| *user == record.user)
            && self.project.as_ref().is_none_or(|project| *project == record.project)
            && is(&self.request_id, &record.request_id)
            && is(&self.action, &record.action)
            && is(&self.object, &record.object)
    }
}

/// Selects usage events. Fields that are `None` match every event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    pub period: Option<Window>,
    pub project: Option<ProjectId>,
    /// Matches events of the lease itself and of instances in it.
    pub lease: Option<LeaseId>,
    pub what: Option<Occurrence>,
}

impl UsageFilter {
    /// Whether the event matches.
    pub fn lets_through(&self, event: &Event) -> bool {
        self.period.is_none_or(|period| period.contains(event.at))
            && self.project.as_ref().is_none_or(|project| *project == event.owner.project)
            && self.lease.is_none_or(|lease| event.lease == Some(lease))
            && self.what.is_none_or(|what| event.what == what)
    }
}

/// A notification that gets its number when it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// The lease that it is about; `None` if it is about a host.
    pub lease: Option<LeaseId>,
    /// The lease's project. The name is empty if there is no project.
    pub project: ProjectId,
    /// Blazar's name, such as `lease.create` or `lease.event.start_lease` (API-notifications), or one of
    /// ours.
    pub event_type: String,
    /// JSON.
    pub payload: String,
}

/// A notification with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Later commits have higher numbers.
    pub number: u64,
    pub at: Timestamp,
    pub content: NewNotification,
}

/// A served request, so that a repetition gets the same response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Project that the key belongs to.
    pub project: ProjectId,
    pub key: String,
    /// Hash of the request, because a key belongs to one request only.
    pub fingerprint: String,
    /// The lease that the request created.
    pub lease: LeaseId,
    pub at: Timestamp,
}

impl IdempotencyRecord {
    /// Period in which a key belongs to its request.
    pub const VALID_FOR: SignedDuration = SignedDuration::from_hours(24);

    /// Whether a request with this key is a repetition at `now`.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) < Self::VALID_FOR
    }
}
