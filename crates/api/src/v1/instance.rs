//! Instances that are started through the service (CLS-08). Not in Blazar, which leaves them to Nova.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::ids::GuestId;
use leases::instance::{InstanceKind, LeaseHint};
use leases::plan::GuestSize;
use leases::preemption::{Mark, Marked, PROPERTY};
use leases::project::ProjectId;
use leases::reason::{for_operator, for_owner};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::InstanceRecord;
use utoipa::ToSchema;

use super::date::rfc_3339_seconds;
use super::error::RequestError;
use super::fields::{Fields, boolean, count, list, read_name, strict_text, text, word};
use super::hints::read_instances;
use super::id::{instance_id, lease_id, reservation_id};
use super::limits::NAME;

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// Identifier of the instance, a UUID.
    pub id: String,
    /// Name of the instance.
    pub name: String,
    /// Project that owns the instance.
    pub project_id: String,
    /// User who created the instance.
    pub user_id: String,
    /// Status: `BUILD`, `ACTIVE`, `DELETING` or `ERROR`; `QUEUED` if it starts as soon as there is capacity;
    /// `SHELVED_OFFLOADED` if it was preempted and is kept.
    pub status: String,
    /// Reason the instance couldn't be started, or that its host has failed; null otherwise. Callers who can
    /// see hosts get more details.
    pub status_reason: Option<String>,
    /// Kind: `reserved` in a lease, `regular`, or `preemptible`, which is preempted for the next lease of its
    /// host.
    pub kind: String,
    /// Time until which a preemptible instance can stay on its host, unless the host fails or a lease is
    /// created that starts sooner: UTC to the second. Null if no lease of its host is known and its lifetime
    /// isn't limited, and for instances that aren't preemptible. The current time if it `backfills`.
    #[schema(format = "date-time")]
    pub safe_until: Option<String>,
    /// Time by which a running preemptible instance is deleted because of its maximum lifetime: UTC to the
    /// second. Null if its lifetime isn't limited, and for instances that aren't preemptible.
    #[schema(format = "date-time")]
    pub deadline: Option<String>,
    /// Whether the instance is on a host of a lease that doesn't use it. It leaves as soon as the lease does.
    pub backfills: bool,
    /// Preemption of a preemptible instance, for a lease of its host or at the end of its lifetime, whichever
    /// comes first. Null if no lease of its host is known and its lifetime isn't limited.
    pub departure: Option<Departure>,
    /// Class of a preemptible instance; null if it isn't in a class.
    pub preemptible_class: Option<String>,
    /// Seconds between the preemption notice and deletion; null if the instance isn't in a class.
    pub notice_seconds: Option<i64>,
    /// Action at preemption: `delete`, or `stop`, which keeps the instance. Null if it isn't in a class.
    pub end_state: Option<String>,
    /// Identifier of the kept instance that this one resumes; null once it runs, and if it doesn't resume an
    /// instance.
    pub resumes: Option<String>,
    /// Time since which the instance runs: UTC to the second. Null until it runs.
    #[schema(format = "date-time")]
    pub launched_at: Option<String>,
    /// Whether the instance gets a successor after preemption.
    pub requeue: bool,
    /// Identifier of the lease that the instance is part of; null if it isn't part of a lease, or no longer.
    pub lease_id: Option<String>,
    /// Identifier of the reservation in that lease.
    pub reservation_id: Option<String>,
    /// Name of the host; null while the instance isn't on a host. Outside of leases, null for callers who
    /// can't see hosts.
    pub host: Option<String>,
    /// Number of virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in GiB.
    pub disk_gb: u32,
    /// Time of the request: UTC to the second.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// Time of the last change: UTC to the second.
    #[schema(format = "date-time")]
    pub updated_at: Option<String>,
}

/// Preemption of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Departure {
    /// Time of the preemption notice, which asks the instance to shut down: UTC to the second.
    #[schema(format = "date-time")]
    pub asked_at: String,
    /// Time at which the instance is deleted, if it is still on the host: UTC to the second.
    #[schema(format = "date-time")]
    pub gone_by: String,
    /// Whether the instance will be moved to another host before that, so that it doesn't have to leave.
    pub moves: bool,
}

impl Instance {
    /// Replaces the status reason with the operator's, for clients that may see hosts.
    #[must_use]
    pub fn for_operator(mut self, record: &InstanceRecord) -> Self {
        let reason = record.instance.reason.as_deref();
        self.status_reason = reason.map(|reason| for_operator(reason).to_owned());
        self
    }

    /// Sets the time at which the instance has used up its maximum run time.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Timestamp>) -> Self {
        Self { deadline: deadline.map(rfc_3339_seconds), ..self }
    }

    /// The instance on a host with that name. `departure`: the time at which it must leave the host, as
    /// announced to its owner.
    pub fn of(
        record: &InstanceRecord,
        departure: Option<leases::instance::Departure>,
        host: Option<String>,
        safe_until: Option<Timestamp>,
    ) -> Self {
        let instance = &record.instance;
        let (lease_id, reservation_id) = match instance.kind {
            InstanceKind::Reserved { lease, reservation } => {
                (Some(lease.to_string()), Some(reservation.to_string()))
            }
            InstanceKind::Regular | InstanceKind::Preemptible => (None, None),
        };
        Self {
            id: instance.id.to_string(),
            name: instance.name.clone(),
            project_id: instance.owner.project.0.clone(),
            user_id: instance.owner.user.0.clone(),
            status: instance.status.name().to_owned(),
            status_reason: instance.reason.as_deref().map(|reason| for_owner(reason).to_owned()),
            kind: instance.kind.name().to_owned(),
            safe_until: safe_until.map(rfc_3339_seconds),
            deadline: None,
            backfills: instance.backfills.is_some(),
            departure: departure.map(|departure| Departure {
                asked_at: rfc_3339_seconds(departure.asked_at),
                gone_by: rfc_3339_seconds(departure.gone_by),
                moves: departure.moves_to.is_some_and(|to| to != instance.host),
            }),
            preemptible_class: instance.class.as_ref().map(|class| class.name().to_owned()),
            notice_seconds: instance.class.as_ref().map(|class| class.notice().as_secs()),
            end_state: instance.class.as_ref().map(|class| class.end_state().name().to_owned()),
            resumes: instance.resumes.map(|id| id.to_string()),
            launched_at: instance.launched_at.map(rfc_3339_seconds),
            requeue: instance.requeue,
            lease_id,
            reservation_id,
            host,
            vcpus: instance.size.vcpus,
            memory_mb: instance.size.memory_mib,
            disk_gb: instance.size.disk_gib,
            created_at: rfc_3339_seconds(record.created_at),
            updated_at: record.updated_at.map(rfc_3339_seconds),
        }
    }
}

/// Hosts that can accept an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostsAnswer {
    /// Kind of the instance: `reserved`, `regular` or `preemptible`.
    pub kind: String,
    /// Answer for each host, in the order of the request.
    pub hosts: Vec<HostAnswer>,
}

/// Whether a host can accept an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostAnswer {
    /// Name of the host.
    pub host: String,
    /// Whether the host can accept the instance.
    pub allowed: bool,
    /// Time until which the instance can stay: UTC to the second; null if no known lease limits it.
    #[schema(format = "date-time")]
    pub until: Option<String>,
    /// Reason the host can't accept the instance; null if it can.
    pub reason: Option<String>,
}

impl HostAnswer {
    /// The answer for a host. `verdict` has the time until which the host may be used, if it is limited, or
    /// the reason why it must not.
    pub fn new<E: ToString>(host: String, verdict: Result<Option<Timestamp>, E>) -> Self {
        match verdict {
            Ok(until) => Self { host, allowed: true, until: until.map(rfc_3339_seconds), reason: None },
            Err(why) => Self { host, allowed: false, until: None, reason: Some(why.to_string()) },
        }
    }
}

/// An instance to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRequest {
    /// Its name.
    pub name: String,
    /// What decides where it may run.
    pub placing: PlacingRequest,
    /// Whether a new instance takes its place after it was preempted.
    pub requeue: bool,
}

/// The parts of a request that decide where an instance may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacingRequest {
    /// Its size, if the request has one.
    pub size: Option<GuestSize>,
    /// The lease that it will be part of. `None` outside of leases.
    pub hint: Option<LeaseHint>,
    /// Marks that say whether it is preemptible.
    pub marked: Marked,
    /// The class that it will have, if the request names one.
    pub class: Option<String>,
    /// Instances with which it must share a host.
    pub same_host: BTreeSet<GuestId>,
    /// Instances with which it must not share a host.
    pub different_host: BTreeSet<GuestId>,
}

/// A question about the hosts where an instance may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsQuestionRequest {
    /// Names of the hosts in question. `None` if the request doesn't limit them.
    pub hosts: Option<Vec<String>>,
    /// Project that the question is asked for, if the request names it.
    pub project: Option<ProjectId>,
    /// The instance to place, if it exists already.
    pub instance: Option<GuestId>,
    /// What decides where it may run.
    pub placing: PlacingRequest,
}

impl InstanceRequest {
    /// Reads the body of `POST /instances`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        fields.require(&["name"])?;
        let name = read_name("name", &strict_text("name", fields.required("name")?)?, NAME)?;
        let placing = PlacingRequest::read(&mut fields)?;
        let requeue = fields.given("requeue").map(|value| boolean("requeue", value)).transpose()?;
        fields.finish()?;
        Ok(Self { name, placing, requeue: requeue.unwrap_or(false) })
    }
}

impl HostsQuestionRequest {
    /// Reads the body of `POST /instances/filter`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        let names = |value| -> Result<Vec<String>, RequestError> {
            let name = |value: &Value| value.as_str().map(str::to_owned);
            let names = list("hosts", Some(value))?.iter().map(name).collect::<Option<_>>();
            names.ok_or_else(|| RequestError::malformed("hosts", "a list of names"))
        };
        let hosts = fields.given("hosts").map(names).transpose()?;
        let project = fields.given("project_id").map(|value| text("project_id", value).map(ProjectId));
        let project = project.transpose()?;
        let instance = fields.given("instance_id").map(|value| {
            let wrong = || RequestError::malformed("instance_id", "the identifier of an instance");
            value.as_str().and_then(instance_id).ok_or_else(wrong)
        });
        let instance = instance.transpose()?;
        let placing = PlacingRequest::read(&mut fields)?;
        fields.finish()?;
        Ok(Self { hosts, project, instance, placing })
    }
}

impl PlacingRequest {
    fn read(fields: &mut Fields<'_>) -> Result<Self, RequestError> {
        let size = size(fields)?;
        let hints = fields.given("scheduler_hints").map(hints).transpose()?.unwrap_or_default();
        let InstanceHints { lease: hint, preemptible, class, same_host, different_host } = hints;
        let mut marks = Vec::from_iter(preemptible.map(|says| (Mark::Hint, says)));
        // A request that names a class means a preemptible instance.
        marks.extend(class.as_ref().filter(|_| preemptible != Some(true)).map(|_| (Mark::Hint, true)));
        marks.extend(mark(Mark::Flavor, "flavor_properties", fields.given("flavor_properties"))?);
        marks.extend(mark(Mark::Image, "image_properties", fields.given("image_properties"))?);
        for volume in list("volume_properties", fields.given("volume_properties"))? {
            marks.extend(mark(Mark::Volume, "volume_properties", Some(volume))?);
        }
        Ok(Self { size, hint, marked: Marked(marks), class, same_host, different_host })
    }
}

/// The mark among properties, if it is there. Other properties aren't meant for this service.
fn mark(
    mark: Mark,
    name: &'static str,
    properties: Option<&Value>,
) -> Result<Option<(Mark, bool)>, RequestError> {
    let Some(properties) = properties else { return Ok(None) };
    let wrong = |expected| RequestError::malformed(name, expected);
    let properties = properties.as_object().ok_or_else(|| wrong("an object of properties"))?;
    if properties.values().any(|value| value.is_array() || value.is_object()) {
        return Err(wrong("an object of texts"));
    }
    let Some(value) = properties.get(PROPERTY) else { return Ok(None) };
    word(value).map(|says| Some((mark, says))).ok_or_else(|| wrong("true or false for blazar:preemptible"))
}

/// The size, or `None` if no part of it is given. Half a size is a mistake.
fn size(fields: &mut Fields<'_>) -> Result<Option<GuestSize>, RequestError> {
    let (vcpus, memory, disk) = (fields.given("vcpus"), fields.given("memory_mb"), fields.given("disk_gb"));
    if vcpus.or(memory).or(disk).is_none() {
        return Ok(None);
    }
    let missing = |name: &str| RequestError::Missing(name.to_owned());
    Ok(Some(GuestSize {
        vcpus: count("vcpus", vcpus.ok_or_else(|| missing("vcpus"))?, 1)?,
        memory_mib: count("memory_mb", memory.ok_or_else(|| missing("memory_mb"))?, 1)?,
        disk_gib: disk.map_or(Ok(0), |disk| count("disk_gb", disk, 0))?,
    }))
}

/// Scheduler hints for an instance.
#[derive(Default)]
struct InstanceHints {
    lease: Option<LeaseHint>,
    preemptible: Option<bool>,
    class: Option<String>,
    same_host: BTreeSet<GuestId>,
    different_host: BTreeSet<GuestId>,
}

fn hints(value: &Value) -> Result<InstanceHints, RequestError> {
    let wrong = |name| RequestError::malformed(name, "the identifier of a lease or a reservation");
    let mut hints = Fields::nested("scheduler_hints", value)?;
    let lease = hints
        .given("lease")
        .map(|id| id.as_str().and_then(lease_id).ok_or_else(|| wrong("scheduler_hints.lease")));
    let reservation = hints
        .given("reservation")
        .map(|id| id.as_str().and_then(reservation_id).ok_or_else(|| wrong("scheduler_hints.reservation")));
    let mut instances = |field, name| {
        Ok::<_, RequestError>(
            hints.given(field).map(|value| read_instances(name, value)).transpose()?.unwrap_or_default(),
        )
    };
    let same_host = instances("same_host", "scheduler_hints.same_host")?;
    let different_host = instances("different_host", "scheduler_hints.different_host")?;
    let preemptible =
        hints.given("preemptible").map(|value| boolean("scheduler_hints.preemptible", value)).transpose()?;
    let class = hints.given("preemptible_class");
    let class = class.map(|value| text("scheduler_hints.preemptible_class", value)).transpose()?;
    hints.finish()?;
    let lease = match (lease.transpose()?, reservation.transpose()?) {
        (Some(_), Some(_)) => {
            return Err(RequestError::malformed("scheduler_hints", "either a lease or a reservation"));
        }
        (lease, reservation) => lease.map(LeaseHint::Lease).or(reservation.map(LeaseHint::Reservation)),
    };
    if lease.is_some() && (preemptible == Some(true) || class.is_some()) {
        return Err(RequestError::malformed("scheduler_hints.preemptible", "false in a lease"));
    }
    Ok(InstanceHints { lease, preemptible, class, same_host, different_host })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";

    #[test]
    fn a_request_names_a_size_and_a_lease_or_neither() {
        let read = |body: Value| InstanceRequest::read(&body);
        let request = read(json!({"name": "web", "vcpus": 2, "memory_mb": "2048",
            "scheduler_hints": {"lease": ID}}))
        .expect("complete");
        assert_eq!(request.placing.size, Some(GuestSize { vcpus: 2, memory_mib: 2048, disk_gib: 0 }));
        assert!(matches!(request.placing.hint, Some(LeaseHint::Lease(id)) if id.to_string() == ID));
        let request = read(json!({"name": "web", "scheduler_hints": {"reservation": ID}})).expect("complete");
        assert!(
            request.placing.size.is_none() && matches!(request.placing.hint, Some(LeaseHint::Reservation(_)))
        );
        assert_eq!(read(json!({"name": "web", "scheduler_hints": {}})).expect("complete").placing.hint, None);
    }

    #[test]
    fn pre_03_c_d_properties_of_flavors_images_and_volumes_say_whether_it_is_preemptible() {
        let request = InstanceRequest::read(&json!({
            "name": "batch",
            "flavor_properties": {"hw:cpu_policy": "shared", "blazar:preemptible": "True"},
            "image_properties": {"os_distro": "debian"},
            "volume_properties": [{}, {"blazar:preemptible": false}],
        }));
        let marked = request.expect("complete").placing.marked;
        assert_eq!(marked, Marked(vec![(Mark::Flavor, true), (Mark::Volume, false)]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, wrong) in [
            (json!({}), "Missing parameter name"),
            (json!({"name": ""}), "Malformed parameter name"),
            (json!({"name": "w", "vcpus": 1}), "Missing parameter memory_mb"),
            (json!({"name": "w", "vcpus": 0, "memory_mb": 1}), "vcpus must be >= 1"),
            (json!({"name": "w", "host": "node1"}), "Unknown parameter host"),
            (
                json!({"name": "w", "scheduler_hints": {"same_host": ["x"]}}),
                "Malformed parameter scheduler_hints.same_host",
            ),
            (json!({"name": "w", "scheduler_hints": []}), "Malformed parameter scheduler_hints"),
            (
                json!({"name": "w", "scheduler_hints": {"lease": "x"}}),
                "Malformed parameter scheduler_hints.lease",
            ),
            (json!({"name": "w", "flavor_properties": []}), "Malformed parameter flavor_properties"),
            (
                json!({"name": "w", "volume_properties": [{"blazar:preemptible": "perhaps"}]}),
                "Malformed parameter volume_properties",
            ),
            (
                json!({"name": "w", "scheduler_hints": {"group": ID}}),
                "Unknown parameter scheduler_hints.group",
            ),
            (
                json!({"name": "w", "scheduler_hints": {"lease": ID, "reservation": ID}}),
                "Malformed parameter scheduler_hints",
            ),
        ] {
            let error = InstanceRequest::read(&body).expect_err("wrong");
            assert_eq!(error.to_string(), wrong, "{body}");
        }
    }
}
