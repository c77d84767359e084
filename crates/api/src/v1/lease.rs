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
    /// Its identifier, a UUID.
    pub id: String,
    pub name: String,
    /// Who asked for it.
    pub user_id: String,
    /// The project it belongs to.
    pub project_id: String,
    /// From when: UTC with microseconds, `2030-01-02T10:00:00.000000`.
    pub start_date: String,
    /// Until when.
    pub end_date: String,
    /// SCHEDULE, IMMEDIATE or BEST-EFFORT. Not in Blazar.
    pub lease_type: String,
    /// The status in the words of the types: INACTIVE, IN-PROGRESS, ACTIVE, TIMEDOUT, TERMINATED or FAILURE. Not in
    /// Blazar.
    pub lease_state: String,
    /// Latest start, if it must start in time: RFC 3339, UTC. Not in Blazar.
    #[schema(format = "date-time")]
    pub timeout_date: Option<String>,
    /// Whose instances are moved out of its way; absent if nobody's are. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// Always null: there are no trusts.
    pub trust_id: Option<String>,
    /// PENDING, STARTING, ACTIVE, TERMINATING, TERMINATED, DELETING or ERROR.
    pub status: String,
    /// Why it does not get on, if it does not; who may see hosts reads of them as well. Not in Blazar.
    pub status_reason: Option<String>,
    /// Whether it has less than it was promised.
    pub degraded: bool,
    /// What becomes of guests at the end: delete, keep, snapshot or migrate. Not in Blazar.
    pub end_action: String,
    /// Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar.
    #[serde(default)]
    pub backfill: bool,
    /// Where its hosts are to be, and how its instances are spread. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<SchedulerHints>,
    /// When it was made: UTC to the second, `2030-01-02 10:00:00`.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: Option<String>,
    /// What is reserved.
    pub reservations: Vec<Reservation>,
    /// What happens when.
    pub events: Vec<Event>,
    /// The leases that it recurs with. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series_id: Option<String>,
    /// Its usage; only where it is asked for with `?detail=true`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<LeaseUsage>,
    /// What it costs from its start to its end, as things stand; only where its usage is asked for or nothing is made or
    /// changed (`dry_run`), and only where something has a price. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A reservation of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reservation {
    /// Its identifier, a UUID.
    pub id: String,
    /// The lease it belongs to.
    pub lease_id: String,
    /// The same as `id`; Blazar has a row of another table here.
    pub resource_id: String,
    /// pending, active, deleted or error.
    pub status: String,
    /// Something failed and there was no replacement.
    pub missing_resources: bool,
    /// Something was exchanged while the lease was active.
    pub resources_changed: bool,
    /// When it was made.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: Option<String>,
    /// The names of its hosts, whole or in part. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Its addresses. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floating_ips: Vec<String>,
    /// What depends on the type.
    #[serde(flatten)]
    pub resource: Resource,
}

/// What is reserved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resource_type")]
pub enum Resource {
    /// Whole hosts.
    #[serde(rename = "physical:host")]
    Hosts {
        /// What hosts must be like.
        hypervisor_properties: Option<String>,
        /// What hosts must be like.
        resource_properties: Option<String>,
        /// What is done before the end: default, snapshot or nothing.
        before_end: String,
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
        /// The number of the host aggregate, null until there is one; not given where the fleet is no cloud that has
        /// aggregates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<u32>)]
        aggregate_id: Option<Option<u32>>,
        /// The flavors to start servers with on the hosts, where these let in no others; not given elsewhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flavor_ids: Vec<String>,
        /// The region that hosts are to be in. This and what follows is not in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
        /// The availability zone that they are to be in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        availability_zone: Option<String>,
        /// Virtual CPUs of each, at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpus: Option<u32>,
        /// Memory of each, at least, MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_mib: Option<u32>,
        /// Disk of each, at least, GiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_gib: Option<u32>,
        /// Whether all of them must have the same CPUs and hypervisor.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        homogeneous: bool,
        /// Properties that must have equal values on all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alike: Vec<String>,
        /// What may fail without the lease having fewer hosts than it asks for: `host`, or a property that says where
        /// hosts are, as `rack`. It has so many more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
        /// What they must be like in Nova's words: `capabilities:cpu_info:arch` and `x86_64`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// Properties of the image that guests are to run, by Glance's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        image_properties: BTreeMap<String, String>,
    },
    /// Room for instances of a size.
    #[serde(rename = "virtual:instance")]
    Instances(Instances),
    /// Room for instances of a flavor.
    #[serde(rename = "flavor:instance")]
    Flavor(Instances),
    /// Addresses.
    #[serde(rename = "virtual:floatingip")]
    FloatingIps {
        /// The network.
        network_id: String,
        /// How many.
        amount: u32,
        /// These among them.
        required_floatingips: Vec<String>,
    },
}

/// Room for instances.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Instances {
    /// Virtual CPUs of each.
    pub vcpus: u64,
    /// Memory of each, MiB.
    pub memory_mb: u64,
    /// Disk of each, GiB.
    pub disk_gb: u64,
    /// Second disk of each, GiB, where it was asked for beside a size. Not in Blazar, as `extra_specs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_gb: Option<u32>,
    /// How many.
    pub amount: u32,
    /// true: on one host; false: on distinct hosts; null: anywhere.
    pub affinity: Option<bool>,
    /// What hosts must be like; of a flavor reservation, the flavor as JSON.
    pub resource_properties: Option<String>,
    /// Extra specs of their flavor, where they were asked for beside a size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// What may fail without there being room for fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<String>,
    /// The flavor to start instances with: the identifier of the reservation.
    pub flavor_id: String,
    /// The number of the host aggregate; null until there is one, and where the fleet is no cloud that has aggregates.
    pub aggregate_id: Option<u32>,
    /// The server group to start instances in, if there is an affinity; null until there is one.
    pub server_group_id: Option<String>,
}

/// An event of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its identifier, a UUID.
    pub id: String,
    /// The lease it belongs to.
    pub lease_id: String,
    /// `start_lease`, `before_end_lease`, `end_lease`, or `timeout` of a lease that must start in time.
    pub event_type: String,
    /// When it is due.
    pub time: String,
    /// UNDONE, `IN_PROGRESS`, DONE or ERROR.
    pub status: String,
    /// When it was made.
    pub created_at: String,
    /// When it was last changed.
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
    fn host(&self, id: HostId) -> Option<String>;
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
