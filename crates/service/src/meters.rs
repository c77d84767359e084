//! Notifications for metering: one per reservation, with its amounts.
//!
//! | event | when |
//! | --- | --- |
//! | `blazar.reservation.physical_host`, `.virtual_instance`, `.flavor_instance`, `.virtual_floatingip` | the lease started; the name depends on the type of the reservation |
//! | `blazar.reservation.create`, `.update`, `.delete` | the lease was created, changed, deleted; it lost a host or got another one |
//! | `blazar.reservation.end` | the lease ended |
//! | `blazar.reservation.exists` | every half hour, while the lease is active |
//! | `blazar.reservation.in_use` | every half hour, while an instance runs in the reservation |
//!
//! The names in the first row and the fields are from Rackspace's Blazar Reservation Splitter. The last two
//! events follow Nectar's Warre.

use api::v1::{Instances, Lease, Reservation, Resource};
use leases::project::ProjectId;
use leases::usage::Size;
use serde_json::{Value, json};
use store::NewNotification;

use crate::payload;

const PREFIX: &str = "blazar.reservation.";

/// Whether a notification is for metering. A listener that only follows leases doesn't need these.
pub fn is_for_meters(notification: &NewNotification) -> bool {
    notification.event_type.starts_with(PREFIX)
}

/// An event of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Create,
    Start,
    Update,
    End,
    Delete,
    Exists,
    /// Carries the size of the instances that run in the reservation.
    InUse(Size),
}

impl Event {
    fn name(self, resource: &Resource) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Start => match resource {
                Resource::Hosts { .. } => "physical_host",
                Resource::Instances(_) => "virtual_instance",
                Resource::Flavor(_) => "flavor_instance",
                Resource::FloatingIps { .. } => "virtual_floatingip",
            },
            Self::Update => "update",
            Self::End => "end",
            Self::Delete => "delete",
            Self::Exists => "exists",
            Self::InUse(_) => "in_use",
        }
    }
}

/// Builds the notification of a reservation's event. `reserved` is the reservation's size, or after its end
/// its former size.
pub(crate) fn notification(
    event: Event,
    lease: &Lease,
    reservation: &Reservation,
    reserved: Size,
) -> NewNotification {
    let resource = &reservation.resource;
    let mut payload = json!({
        "lease_id": lease.id,
        "lease_name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": lease.trust_id,
        "start_date": lease.start_date,
        "end_date": lease.end_date,
        "lease_status": lease.status,
        "degraded": lease.degraded,
        "reservation_id": reservation.id,
        "resource_id": reservation.resource_id,
        "reservation_status": reservation.status,
        "missing_resources": reservation.missing_resources,
        "resources_changed": reservation.resources_changed,
        "created_at": reservation.created_at,
        "updated_at": reservation.updated_at,
        "reserved": amounts(resource, reserved),
    });
    for (name, value) in requested(resource) {
        payload[name] = value;
    }
    if let Event::InUse(used) = event {
        payload["used"] = amounts_of_instances(used);
    }
    NewNotification {
        // The payload describes a reservation, not the lease.
        lease: None,
        project: ProjectId(lease.project_id.clone()),
        event_type: format!("{PREFIX}{}", event.name(resource)),
        payload: payload::write(&payload, &format!("/v1/leases/{}", lease.id)),
    }
}

/// Fields of a request for this type of reservation.
fn requested(resource: &Resource) -> Vec<(&'static str, Value)> {
    match resource {
        Resource::Hosts { hypervisor_properties, resource_properties, before_end, min, max, .. } => vec![
            ("resource_type", "physical:host".into()),
            ("hypervisor_properties", hypervisor_properties.clone().into()),
            ("resource_properties", resource_properties.clone().into()),
            ("before_end", before_end.clone().into()),
            ("min", (*min).into()),
            ("max", (*max).into()),
        ],
        Resource::Instances(instances) => requested_instances("virtual:instance", instances),
        Resource::Flavor(instances) => requested_instances("flavor:instance", instances),
        Resource::FloatingIps { network_id, amount, .. } => vec![
            ("resource_type", "virtual:floatingip".into()),
            ("network_id", network_id.clone().into()),
            ("amount", (*amount).into()),
        ],
    }
}

fn requested_instances(resource_type: &str, instances: &Instances) -> Vec<(&'static str, Value)> {
    vec![
        ("resource_type", resource_type.into()),
        ("vcpus", instances.vcpus.into()),
        ("memory_mb", instances.memory_mb.into()),
        ("disk_gb", instances.disk_gb.into()),
        ("amount", instances.amount.into()),
        ("affinity", instances.affinity.into()),
        ("resource_properties", instances.resource_properties.clone().into()),
        ("flavor_id", instances.flavor_id.clone().into()),
    ]
}

/// Always contains all fields: if one is missing, Ceilometer makes a sample without a volume.
fn amounts(resource: &Resource, size: Size) -> Value {
    let count = |is_type: bool| if is_type { size.count } else { 0 };
    json!({
        "hosts": count(matches!(resource, Resource::Hosts { .. })),
        "instances": count(matches!(resource, Resource::Instances(_) | Resource::Flavor(_))),
        "addresses": count(matches!(resource, Resource::FloatingIps { .. })),
        "vcpus": size.cores,
        "memory_mb": size.memory_mib,
        "disk_gb": size.disk_gib,
    })
}

fn amounts_of_instances(size: Size) -> Value {
    json!({
        "instances": size.count,
        "vcpus": size.cores,
        "memory_mb": size.memory_mib,
        "disk_gb": size.disk_gib,
    })
}
