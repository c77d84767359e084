//! Leases in answers (API-lease).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{FloatingIpId, HostId, ReservationId};
use leases::lease as domain;
use leases::plan::Prepared;
use leases::reason::{for_operator, for_owner};
use leases::terms::{Affinity, BeforeEndAction, ReservationTerms, SlotsTerms};
use leases::text::as_written;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::LeaseRecord;
use utoipa::ToSchema;

use super::date::{created_at, date, rfc_3339};
use super::end_action::end_action_name;
use super::hints::SchedulerHints;
use super::plan::PlanSummary;
use super::usage::{Cost, LeaseUsage};

/// A lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Identifier of the lease, a UUID.
    pub id: String,
    /// Name of the lease.
    pub name: String,
    /// User who created the lease.
    pub user_id: String,
    /// Project that owns the lease.
    pub project_id: String,
    /// Start: UTC with microseconds, `2030-01-02T10:00:00.000000`.
    pub start_date: String,
    /// End, in the format of `start_date`.
    pub end_date: String,
    /// Type: SCHEDULE, IMMEDIATE or BEST-EFFORT. Not in Blazar.
    pub lease_type: String,
    /// Status, as named by the lease types: INACTIVE, IN-PROGRESS, ACTIVE, TIMEDOUT, TERMINATED or FAILURE.
    /// Not in Blazar.
    pub lease_state: String,
    /// Latest start: RFC 3339, UTC. Null for scheduled leases. Not in Blazar.
    #[schema(format = "date-time")]
    pub timeout_date: Option<String>,
    /// Summary of the plan that moves other projects' instances out of the lease's way; absent if no instance
    /// is moved. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// Always null, since the service doesn't use trusts.
    pub trust_id: Option<String>,
    /// Status: PENDING, STARTING, ACTIVE, TERMINATING, TERMINATED, DELETING or ERROR.
    pub status: String,
    /// Reason the lease is blocked, failed or was ended early; null otherwise. Callers who can see hosts get
    /// more details. Not in Blazar.
    pub status_reason: Option<String>,
    /// Whether resources of the lease are missing because they failed and no replacement was found.
    pub degraded: bool,
    /// Action on the lease's guests at its end: delete, keep, snapshot or migrate. Not in Blazar.
    pub end_action: String,
    /// Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
    /// Blazar.
    #[serde(default)]
    pub backfill: bool,
    /// Placement of hosts, and distribution of instances. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<SchedulerHints>,
    /// Time of creation: UTC to the second, `2030-01-02 10:00:00`.
    pub created_at: String,
    /// Time of the last change, in the format of `created_at`.
    pub updated_at: Option<String>,
    /// Reserved resources.
    pub reservations: Vec<Reservation>,
    /// Scheduled events.
    pub events: Vec<Event>,
    /// Identifier of the series that the lease belongs to; absent if it doesn't recur. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_id: Option<String>,
    /// Usage of the lease; only in answers to requests with `?detail=true`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<LeaseUsage>,
    /// Cost from start to end with the lease's current dates; only in answers with usage and to dry runs
    /// (`dry_run`), and only if the operator has set prices. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A reservation of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reservation {
    /// Identifier of the reservation, a UUID.
    pub id: String,
    /// Identifier of the lease.
    pub lease_id: String,
    /// Same value as `id`. In Blazar, identifier of a row in another table.
    pub resource_id: String,
    /// Status: pending, active, deleted or error.
    pub status: String,
    /// Whether a resource failed and no replacement was found.
    pub missing_resources: bool,
    /// Whether a resource was replaced while the lease was active.
    pub resources_changed: bool,
    /// Time of creation: UTC to the second, `2030-01-02 10:00:00`.
    pub created_at: String,
    /// Time of the last change, in the format of `created_at`.
    pub updated_at: Option<String>,
    /// Names of the allocated hosts, whole or in part. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Allocated addresses. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floating_ips: Vec<String>,
    /// Fields that depend on the type.
    #[serde(flatten)]
    pub resource: Resource,
}

/// Reserved resource.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resource_type")]
pub enum Resource {
    /// Whole hosts.
    #[serde(rename = "physical:host")]
    Hosts {
        /// Requirements on hosts: a JSON expression in a string.
        hypervisor_properties: Option<String>,
        /// More requirements on hosts, in the format of `hypervisor_properties`.
        resource_properties: Option<String>,
        /// Action before the end: default (the operator's setting), snapshot, or empty for no action.
        before_end: String,
        /// Minimum number of hosts.
        min: u32,
        /// Maximum number of hosts.
        max: u32,
        /// Number of the host aggregate; null until it is created. Absent if the fleet has no aggregates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<u32>)]
        aggregate_id: Option<Option<u32>>,
        /// Flavors for servers on the hosts. Absent unless the hosts accept only servers with these flavors.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flavor_ids: Vec<String>,
        /// Region of the hosts. This field and all below aren't in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
        /// Availability zone of the hosts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        availability_zone: Option<String>,
        /// Minimum number of virtual CPUs of each host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpus: Option<u32>,
        /// Minimum memory of each host, in MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_mib: Option<u32>,
        /// Minimum disk of each host, in GiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_gib: Option<u32>,
        /// Whether all hosts must have the same CPUs and hypervisor.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        homogeneous: bool,
        /// Properties whose values must be equal on all hosts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alike: Vec<String>,
        /// Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property,
        /// such as `rack`. The lease has the additional hosts that this requires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
        /// Requirements on hosts, as Nova's extra specs: `capabilities:cpu_info:arch` with the value
        /// `x86_64`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// Properties of the image that guests will run, by Glance's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        image_properties: BTreeMap<String, String>,
    },
    /// Capacity for instances of a size.
    #[serde(rename = "virtual:instance")]
    Instances(Instances),
    /// Capacity for instances of a flavor.
    #[serde(rename = "flavor:instance")]
    Flavor(Instances),
    /// Floating IPs.
    #[serde(rename = "virtual:floatingip")]
    FloatingIps {
        /// Identifier of the network.
        network_id: String,
        /// Number of addresses, including `required_floatingips`.
        amount: u32,
        /// Specific addresses that the request named.
        required_floatingips: Vec<String>,
    },
}

/// Capacity for instances.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Instances {
    /// Number of virtual CPUs of each instance.
    pub vcpus: u64,
    /// Memory of each instance, in MiB.
    pub memory_mb: u64,
    /// Disk of each instance, in GiB.
    pub disk_gb: u64,
    /// Ephemeral disk of each instance, in GiB, if the request had one. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_gb: Option<u32>,
    /// Number of instances.
    pub amount: u32,
    /// True means all instances on one host, false means each on a different host, null means any host.
    pub affinity: Option<bool>,
    /// Requirements on hosts: a JSON expression in a string. For a flavor reservation, the flavor as JSON.
    pub resource_properties: Option<String>,
    /// Extra specs of the instances' flavor, if the request had any. Not in Blazar.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
    /// `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<String>,
    /// Flavor to start instances with: the identifier of the reservation.
    pub flavor_id: String,
    /// Number of the host aggregate; null until it is created, and if the fleet has no aggregates.
    pub aggregate_id: Option<u32>,
    /// Server group to start instances in, if `affinity` isn't null; null until it is created.
    pub server_group_id: Option<String>,
}

/// An event of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Identifier of the event, a UUID.
    pub id: String,
    /// Identifier of the lease.
    pub lease_id: String,
    /// Type: `start_lease`, `before_end_lease` or `end_lease`, or `timeout` for a lease with a latest start.
    pub event_type: String,
    /// Due time: UTC with microseconds.
    pub time: String,
    /// Status: UNDONE, `IN_PROGRESS`, DONE or ERROR.
    pub status: String,
    /// Time of creation: UTC to the second, `2030-01-02 10:00:00`.
    pub created_at: String,
    /// Time of the lease's last change, in the format of `created_at`.
    pub updated_at: Option<String>,
}

impl From<&LeaseRecord> for Lease {
    fn from(record: &LeaseRecord) -> Self {
        let lease = &record.lease;
        Self {
            id: lease.id.to_string(),
            name: lease.name.clone(),
            user_id: lease.owner.user.0.clone(),
            project_id: lease.owner.project.0.clone(),
            start_date: date(lease.window.start()),
            end_date: date(lease.window.end()),
            lease_type: lease.lease_type.name().to_owned(),
            lease_state: lease.state().name().to_owned(),
            timeout_date: lease.lease_type.deadline().map(rfc_3339),
            plan: lease.hunt.as_ref().map(PlanSummary::from),
            trust_id: None,
            status: lease.status.name().to_owned(),
            status_reason: lease.reason.as_deref().map(|reason| for_owner(reason).to_owned()),
            degraded: lease.degraded(),
            end_action: end_action_name(lease.end_action).to_owned(),
            backfill: lease.backfill,
            scheduler_hints: SchedulerHints::of(&lease.hints),
            created_at: created_at(record.created_at),
            updated_at: Some(created_at(last_changed(record))),
            reservations: lease.reservations.iter().map(|r| reservation(record, r)).collect(),
            events: lease.events().iter().map(|event| event_of(record, event)).collect(),
            series_id: lease.series.map(|series| series.to_string()),
            usage: None,
            cost: None,
        }
    }
}

/// Looks up the resources of a lease by identifier, for answers.
pub trait Names {
    /// The name of a host.
    fn host(&self, id: HostId) -> Option<String>;
    /// An address.
    fn floating_ip(&self, id: FloatingIpId) -> Option<String>;
    /// Prepared objects of a reservation. `None` if the fleet prepares nothing for reservations.
    fn prepared(&self, id: ReservationId) -> Option<Prepared>;
}

impl Lease {
    /// Adds the names of the lease's hosts, its addresses and the objects made for its reservations. Its
    /// owner may know all of them.
    #[must_use]
    pub fn with_resources(mut self, record: &LeaseRecord, names: &impl Names) -> Self {
        for (shown, reservation) in self.reservations.iter_mut().zip(&record.lease.reservations) {
            let allocation = &reservation.allocation;
            shown.hosts = allocation.hosts().into_iter().filter_map(|id| names.host(id)).collect();
            if let domain::Allocation::FloatingIps(ips) = allocation {
                shown.floating_ips = ips.iter().filter_map(|id| names.floating_ip(*id)).collect();
            }
            let prepared = names.prepared(reservation.id);
            match &mut shown.resource {
                Resource::Hosts { aggregate_id, flavor_ids, .. } => {
                    *flavor_ids =
                        prepared.as_ref().map(|prepared| prepared.flavors.clone()).unwrap_or_default();
                    *aggregate_id = prepared.map(|prepared| prepared.aggregate);
                }
                Resource::Instances(shown) | Resource::Flavor(shown) => match prepared {
                    Some(prepared) => {
                        (shown.aggregate_id, shown.server_group_id) =
                            (prepared.aggregate, prepared.server_group);
                    }
                    None => {
                        shown.server_group_id = shown.affinity.map(|_| reservation.id.to_string());
                    }
                },
                Resource::FloatingIps { .. } => {}
            }
        }
        self
    }

    /// Replaces the status reason with the operator's, for clients that may see hosts.
    #[must_use]
    pub fn for_operator(mut self, record: &LeaseRecord) -> Self {
        self.status_reason = record.lease.reason.as_deref().map(|reason| for_operator(reason).to_owned());
        self
    }
}

fn reservation(record: &LeaseRecord, reservation: &domain::Reservation) -> Reservation {
    Reservation {
        id: reservation.id.to_string(),
        lease_id: record.lease.id.to_string(),
        resource_id: reservation.id.to_string(),
        status: reservation.status.name().to_owned(),
        missing_resources: reservation.missing_resources,
        resources_changed: reservation.resources_changed,
        created_at: created_at(record.created_at),
        updated_at: Some(created_at(last_changed(record))),
        hosts: Vec::new(),
        floating_ips: Vec::new(),
        resource: resource(record, reservation),
    }
}

fn owned_text(text: Option<&Arc<str>>) -> Option<String> {
    text.map(ToString::to_string)
}

fn resource(record: &LeaseRecord, reservation: &domain::Reservation) -> Resource {
    let wording = record.wording.get(&reservation.id).cloned().unwrap_or_default();
    let instances = |slots: SlotsTerms<'_>| Instances {
        vcpus: slots.size.vcpus,
        memory_mb: slots.size.memory_mib,
        disk_gb: slots.size.disk_gib,
        ephemeral_gb: None,
        amount: slots.amount,
        affinity: match slots.affinity {
            Affinity::Any => None,
            Affinity::OneHost => Some(true),
            Affinity::DistinctHosts => Some(false),
        },
        resource_properties: owned_text(wording.resource_properties.as_ref()),
        extra_specs: BTreeMap::new(),
        survives: slots.survives.map(ToString::to_string),
        flavor_id: reservation.id.to_string(),
        aggregate_id: None,
        server_group_id: None,
    };
    match &reservation.terms {
        ReservationTerms::Hosts(terms) => Resource::Hosts {
            hypervisor_properties: owned_text(wording.hypervisor_properties.as_ref()),
            resource_properties: owned_text(wording.resource_properties.as_ref()),
            before_end: match terms.before_end {
                BeforeEndAction::Default => "default",
                BeforeEndAction::None => "",
                BeforeEndAction::Snapshot => "snapshot",
            }
            .to_owned(),
            min: terms.min(),
            max: terms.max(),
            aggregate_id: None,
            flavor_ids: Vec::new(),
            region: terms.properties.region.clone(),
            availability_zone: terms.properties.availability_zone.clone(),
            vcpus: terms.properties.vcpus,
            memory_mib: terms.properties.memory_mib,
            disk_gib: terms.properties.disk_gib,
            homogeneous: terms.properties.homogeneous,
            alike: terms.properties.alike.iter().map(|name| as_written(name)).collect(),
            survives: terms.properties.survives.as_ref().map(ToString::to_string),
            extra_specs: owned(terms.properties.extra_specs.iter()),
            image_properties: owned(terms.properties.image.iter()),
        },
        // As requested, regardless of the resources that this uses on hosts.
        ReservationTerms::Instances(terms) => Resource::Instances(Instances {
            vcpus: terms.size.vcpus().into(),
            memory_mb: terms.size.memory_mib().into(),
            disk_gb: terms.size.disk_gib().into(),
            ephemeral_gb: Some(terms.ephemeral_gib()).filter(|size| *size > 0),
            extra_specs: terms.extra_specs(),
            ..instances(terms.slots())
        }),
        ReservationTerms::Flavor(terms) => Resource::Flavor(instances(terms.slots())),
        ReservationTerms::FloatingIps(terms) => Resource::FloatingIps {
            network_id: terms.network.0.clone(),
            amount: terms.amount(),
            required_floatingips: terms.required().iter().map(ToString::to_string).collect(),
        },
    }
}

/// The requested properties of a reservation as a JSON object, without identifiers that a cloud assigned.
pub fn reservation_properties(record: &LeaseRecord, reservation: &domain::Reservation) -> Value {
    // Unreachable: the names of all fields are text.
    let mut properties = serde_json::to_value(resource(record, reservation)).unwrap_or_default();
    if let Some(fields) = properties.as_object_mut() {
        fields.retain(|name, _| !["flavor_id", "aggregate_id", "server_group_id"].contains(&name.as_str()));
    }
    properties
}

fn owned<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    texts.map(|(key, value)| (as_written(key), value.to_owned())).collect()
}

fn event_of(record: &LeaseRecord, event: &domain::Event) -> Event {
    // The identifier of an event is derived from its lease's, since a lease has one event of each kind.
    let kind = 1 + event.kind as u128;
    Event {
        id: leases::ids::LeaseId(record.lease.id.0 ^ (kind << 64)).to_string(),
        lease_id: record.lease.id.to_string(),
        event_type: event.kind.name().to_owned(),
        time: date(event.at),
        status: event.status.name().to_owned(),
        created_at: created_at(record.created_at),
        updated_at: record.updated_at.map(created_at),
    }
}

/// Time of the last change. Its creation counts as one, as in Blazar, which writes a new lease twice. For the
/// lease's events it doesn't count.
fn last_changed(record: &LeaseRecord) -> Timestamp {
    record.updated_at.unwrap_or(record.created_at)
}
