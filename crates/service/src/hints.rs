//! Scheduler hints (CLS-11): resolves the hosts, leases and instances that they name.

use std::collections::BTreeSet;

use leases::hints::{Hints, InstanceHints, OtherLeases};
use leases::ids::{GuestId, HostId};
use leases::project::ProjectId;
use leases::text::Quoted;

use crate::leasing::Leases;
use crate::state::State;
use crate::types::{OtherInstances, ServiceError};

impl Leases<'_> {
    /// Hints of a project's new lease, with the hosts of leases that they name. Fails if a named host or
    /// lease doesn't exist.
    pub fn resolve_hints(self, project: &ProjectId, hints: Hints) -> Result<Hints, ServiceError> {
        let state = self.service.state();
        let known: BTreeSet<&str> = state.inventory.hosts().map(|host| host.name.as_str()).collect();
        if let Some(name) = hints.hosts.iter().find(|name| !known.contains(name.as_str())) {
            return Err(ServiceError::Invalid(format!(
                "The hint host names {}, which there is not",
                Quoted(name)
            )));
        }
        let resolve = |name, others: Option<OtherLeases>| {
            others.map(|others| hosts_of(&state, project, name, others)).transpose()
        };
        let same_host = resolve("same_host", hints.same_host)?;
        let different_host = resolve("different_host", hints.different_host)?;
        Ok(Hints { same_host, different_host, ..hints })
    }
}

/// Adds the hosts of the leases. Leases of other projects count as missing, so that their existence isn't
/// revealed.
fn hosts_of(
    state: &State,
    project: &ProjectId,
    name: &str,
    others: OtherLeases,
) -> Result<OtherLeases, ServiceError> {
    let mut hosts = BTreeSet::new();
    for id in &others.leases {
        let record = state.leases.get(*id).filter(|record| record.lease.owner.project == *project);
        let missing =
            || ServiceError::Invalid(format!("The hint {name} names lease {id}, which there is not"));
        let lease = &record.ok_or_else(missing)?.lease;
        hosts.extend(lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()));
    }
    Ok(OtherLeases { hosts, ..others })
}

/// Allowed and excluded hosts of an instance, from the instances that it must be with or apart from.
/// Instances of other projects count as missing, so that their existence isn't revealed.
pub(crate) fn places(
    state: &State,
    project: &ProjectId,
    others: &OtherInstances,
) -> Result<InstanceHints, ServiceError> {
    let hosts = |name: &str, ids: &BTreeSet<GuestId>| -> Result<BTreeSet<HostId>, ServiceError> {
        let host = |id: &GuestId| {
            let record = state.instances.get(*id).filter(|record| record.instance.owner.project == *project);
            record.map(|record| record.instance.host).ok_or_else(|| {
                ServiceError::Invalid(format!("The hint {name} names instance {id}, which there is not"))
            })
        };
        ids.iter().map(host).collect()
    };
    let on = hosts("same_host", &others.same_host)?;
    Ok(InstanceHints {
        on: (!on.is_empty()).then_some(on),
        not_on: hosts("different_host", &others.different_host)?,
    })
}
