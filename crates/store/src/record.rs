//! What is kept, record by record.

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

/// An instance, with what is known of it beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRecord {
    /// The instance.
    pub instance: Instance,
    /// Counts its changes.
    pub version: Version,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it last changed, if it has.
    pub updated_at: Option<Timestamp>,
}

/// A free pool as it is kept. That of hosts for which no other is named has no record until somebody changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePoolRecord {
    /// The pool.
    pub pool: FreePool,
    /// Its version.
    pub version: Version,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed, if ever.
    pub updated_at: Option<Timestamp>,
}

/// Counts the changes of a record, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Of a record that is new.
    pub const FIRST: Self = Self(1);

    /// After one more change.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Text of a request as the client wrote it; responses repeat it (API-lease). Copies share the text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wording {
    /// `hypervisor_properties`.
    pub hypervisor_properties: Option<Arc<str>>,
    /// `resource_properties`; of a flavor reservation, the flavor as it was, as JSON.
    pub resource_properties: Option<Arc<str>>,
}

/// A lease as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The lease.
    pub lease: Lease,
    /// The words of its reservations; of one without words, none or an empty entry, which is the same.
    pub wording: BTreeMap<ReservationId, Wording>,
    /// Its version.
    pub version: Version,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed, if ever.
    pub updated_at: Option<Timestamp>,
}

impl LeaseRecord {
    /// The record of a lease that is made at that instant.
    pub fn new(lease: Lease, wording: BTreeMap<ReservationId, Wording>, created_at: Timestamp) -> Self {
        Self { lease, wording, version: Version::FIRST, created_at, updated_at: None }
    }

    /// The record once the lease has become this one at that instant, with the same words.
    #[must_use]
    pub fn becomes(&self, lease: Lease, at: Timestamp) -> Self {
        Self { lease, version: self.version.next(), updated_at: Some(at), ..self.clone() }
    }
}

/// A host as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// The host.
    pub host: Host,
    /// Its version.
    pub version: Version,
    /// When it was entered.
    pub created_at: Timestamp,
    /// When it was last changed, if ever.
    pub updated_at: Option<Timestamp>,
}

/// A floating IP as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpRecord {
    /// The address.
    pub floating_ip: FloatingIp,
    /// The subnet that it lies in.
    pub subnet: String,
    /// When it was entered.
    pub created_at: Timestamp,
}

/// A flavor as it is kept, with Nova's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorRecord {
    /// Its identifier.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its sizes.
    pub size: FlavorSize,
    /// Swap, MiB.
    pub swap_mib: u32,
    /// Whether every project may use it.
    pub public: bool,
    /// Extra specs.
    pub extra_specs: BTreeMap<String, String>,
    /// When it was entered.
    pub created_at: Timestamp,
}

/// The visibility of a property of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyRecord {
    /// Its identifier, a UUID.
    pub id: u128,
    /// Its name.
    pub name: String,
    /// Whether it is left out of lists unless all are asked for.
    pub private: bool,
    /// When it was entered.
    pub created_at: Timestamp,
    /// When it was last changed, if ever.
    pub updated_at: Option<Timestamp>,
}

/// Projects whose instances are preemptible unless a request says otherwise (PRE-03a).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptibleProjectRecord {
    /// Which; there is one record of a pattern.
    pub pattern: ProjectPattern,
    /// When it was entered.
    pub created_at: Timestamp,
}

/// Who did what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub user: UserId,
    /// For which project.
    pub project: ProjectId,
    /// In which request, by its identifier (`req-...`).
    pub request_id: String,
    /// What was done: `lease.create`, `host.update`.
    pub action: String,
    /// To what, by its identifier.
    pub object: String,
    /// Whether the record expires by age only, like those of administrators, of failed logins and of the service
    /// itself. Other records expire by size as well.
    pub protected: bool,
}

/// Which audit records: those of which all that is given is so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Done by that user.
    pub user: Option<UserId>,
    /// For that project.
    pub project: Option<ProjectId>,
    /// In that request.
    pub request_id: Option<String>,
    /// That was done.
    pub action: Option<String>,
    /// To what has that identifier.
    pub object: Option<String>,
}

impl AuditFilter {
    /// Whether it is such a record.
    pub fn lets_through(&self, record: &AuditRecord) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|wanted| wanted == text);
        self.user.as_ref().is_none_or(|user| *user == record.user)
            && self.project.as_ref().is_none_or(|project| *project == record.project)
            && is(&self.request_id, &record.request_id)
            && is(&self.action, &record.action)
            && is(&self.object, &record.object)
    }
}

/// Which events of usage: those of which all that is given is so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// In that time.
    pub period: Option<Window>,
    /// Of that project.
    pub project: Option<ProjectId>,
    /// Of that lease, or of instances in it.
    pub lease: Option<LeaseId>,
    /// Of that kind.
    pub what: Option<Occurrence>,
}

impl UsageFilter {
    /// Whether it is such an event.
    pub fn lets_through(&self, event: &Event) -> bool {
        self.period.is_none_or(|period| period.contains(event.at))
            && self.project.as_ref().is_none_or(|project| *project == event.owner.project)
            && self.lease.is_none_or(|lease| event.lease == Some(lease))
            && self.what.is_none_or(|what| event.what == what)
    }
}

/// A notification that is to be numbered by the commit it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// The lease it is about; none of what is about a host.
    pub lease: Option<LeaseId>,
    /// The lease's project; an empty name of what is nobody's.
    pub project: ProjectId,
    /// Blazar's name: `lease.create`, `lease.event.start_lease` (API-notifications), or one of ours.
    pub event_type: String,
    /// The payload, JSON.
    pub payload: String,
}

/// A notification as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its number: later commits have higher ones.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What it says.
    pub content: NewNotification,
}

/// A request that was served, so that its repetition is answered alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Whose key it is.
    pub project: ProjectId,
    /// The key.
    pub key: String,
    /// A hash of the request: the key of one request is not that of another.
    pub fingerprint: String,
    /// The lease that was made.
    pub lease: LeaseId,
    /// When.
    pub at: Timestamp,
}

impl IdempotencyRecord {
    /// How long a key stands for the request that it came with.
    pub const VALID_FOR: SignedDuration = SignedDuration::from_hours(24);

    /// Whether a request with that key is a repetition at that time.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) < Self::VALID_FOR
    }
}
