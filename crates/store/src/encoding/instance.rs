//! Instances as JSON documents.

use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::GuestSize;
use leases::preemption::{Class, ClassError, EndState};
use leases::project::{Owner, ProjectId, UserId};
use serde::{Deserialize, Serialize};

use super::lease::instant;
use super::{Unreadable, from_hex, from_json, hex, json, named};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
struct Document {
    name: String,
    project: String,
    user: String,
    /// Lease and reservation in the format of [`hex`], if the instance is part of a lease.
    reserved: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    preemptible: bool,
    vcpus: u32,
    memory_mib: u32,
    disk_gib: u32,
    host: u64,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    launched_us: Option<i64>,
    /// Times at which a preempted instance is asked to leave and is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    departure_us: Option<(i64, i64)>,
    /// The instance leaves for another instance of its project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    for_own: bool,
    /// The instance leaves for the lease that let it run on its host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    for_holder: bool,
    /// The instance leaves because its lifetime is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    for_lifetime: bool,
    /// Host that the instance moves to before it would have to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moves_to: Option<u64>,
    /// Name, notice in microseconds, and end state of the preemption class, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<(String, i64, String)>,
    /// Lease that lets the instance run on its host, in the format of [`hex`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backfills: Option<String>,
    /// Stopped instance whose guest this one resumes, in the format of [`hex`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumes: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    requeue: bool,
    reason: Option<String>,
}

/// An instance as JSON, without its identifier.
pub fn instance_json(instance: &Instance) -> String {
    let reserved = match instance.kind {
        InstanceKind::Reserved { lease, reservation } => Some((hex(lease.0), hex(reservation.0))),
        InstanceKind::Regular | InstanceKind::Preemptible => None,
    };
    let cause = instance.departure.map(|departure| departure.cause);
    json(&Document {
        name: instance.name.clone(),
        project: instance.owner.project.0.clone(),
        user: instance.owner.user.0.clone(),
        reserved,
        preemptible: instance.kind == InstanceKind::Preemptible,
        vcpus: instance.size.vcpus,
        memory_mib: instance.size.memory_mib,
        disk_gib: instance.size.disk_gib,
        host: instance.host.0,
        status: instance.status.name().to_owned(),
        launched_us: instance.launched_at.map(Timestamp::as_microsecond),
        departure_us: instance
            .departure
            .map(|departure| (departure.asked_at.as_microsecond(), departure.gone_by.as_microsecond())),
        for_own: cause == Some(Cause::OwnProject),
        for_holder: cause == Some(Cause::Holder),
        for_lifetime: cause == Some(Cause::Lifetime),
        moves_to: instance.departure.and_then(|departure| departure.moves_to).map(|host| host.0),
        class: instance.class.as_ref().map(class_parts),
        backfills: instance.backfills.map(|lease| hex(lease.0)),
        requeue: instance.requeue,
        resumes: instance.resumes.map(|id| hex(id.0)),
        reason: instance.reason.clone(),
    })
}

pub fn instance_from_json(id: GuestId, text: &str) -> Result<Instance, Unreadable> {
    let document: Document = from_json("instance", text)?;
    let kind = match &document.reserved {
        Some((lease, reservation)) => InstanceKind::Reserved {
            lease: LeaseId(from_hex(lease)?),
            reservation: ReservationId(from_hex(reservation)?),
        },
        None if document.preemptible => InstanceKind::Preemptible,
        None => InstanceKind::Regular,
    };
    let Document { vcpus, memory_mib, disk_gib, .. } = document;
    let moves_to = document.moves_to.map(HostId);
    let cause = match (document.for_own, document.for_holder, document.for_lifetime) {
        (true, ..) => Cause::OwnProject,
        (_, true, _) => Cause::Holder,
        (.., true) => Cause::Lifetime,
        _ => Cause::Lease,
    };
    let departure = |(asked, gone)| {
        let (asked_at, gone_by) = (instant(asked)?, instant(gone)?);
        Ok::<_, Unreadable>(Departure { asked_at, gone_by, cause, moves_to })
    };
    Ok(Instance {
        id,
        kind,
        size: GuestSize { vcpus, memory_mib, disk_gib },
        host: HostId(document.host),
        status: named("instance status", &document.status, InstanceStatus::from_name)?,
        owner: Owner { project: ProjectId(document.project), user: UserId(document.user) },
        name: document.name,
        launched_at: document.launched_us.map(instant).transpose()?,
        departure: document.departure_us.map(departure).transpose()?,
        class: document.class.map(class_of).transpose()?,
        backfills: document.backfills.as_deref().map(from_hex).transpose()?.map(LeaseId),
        requeue: document.requeue,
        resumes: document.resumes.as_deref().map(from_hex).transpose()?.map(GuestId),
        reason: document.reason,
    })
}

fn class_parts(class: &Class) -> (String, i64, String) {
    let notice_us = i64::try_from(class.notice().as_micros()).unwrap_or(i64::MAX);
    (class.name().to_owned(), notice_us, class.end_state().name().to_owned())
}

fn class_of((name, notice_us, end_state): (String, i64, String)) -> Result<Class, Unreadable> {
    let wrong = |error: ClassError| Unreadable::new("class", &name, error.to_string());
    let end_state = named("end state", &end_state, EndState::from_name)?;
    Class::new(&name, SignedDuration::from_micros(notice_us), end_state).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_of_a_departure_is_read_as_it_was_written() {
        for cause in [Cause::Lease, Cause::OwnProject, Cause::Holder, Cause::Lifetime] {
            let owner = Owner { project: ProjectId("web".to_owned()), user: UserId("ann".to_owned()) };
            let size = GuestSize { vcpus: 1, memory_mib: 512, disk_gib: 10 };
            let kind = InstanceKind::Preemptible;
            let new = Instance::new(GuestId(1), "job".to_owned(), owner, kind, size, HostId(1));
            let departure = Departure::at_once(cause, Timestamp::UNIX_EPOCH, SignedDuration::from_mins(1));
            let instance = Instance { departure: Some(departure), ..new };
            let read = instance_from_json(instance.id, &instance_json(&instance));
            assert_eq!(read.ok(), Some(instance));
        }
    }
}
