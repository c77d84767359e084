//! Asks the external enforcement service (API-enforcement), without holding a lock and with a timeout.

use std::sync::Arc;

use leases::lease::{Allocation, Lease};
use store::LeaseRecord;

use super::Leases;
use crate::state::State;
use crate::types::{Caller, Enforcer, EnforcerVerdict, GrantedLease, ServiceError};

/// Error if the external service doesn't answer in time. The words are Blazar's.
const NO_ANSWER: &str = "External service enforcement filter denied the request.";

/// Question for the external service.
pub(super) enum Question {
    /// Create this lease?
    Create(GrantedLease),
    /// Change the first lease into the second?
    Update(GrantedLease, GrantedLease),
}

impl Leases<'_> {
    /// Asks the external service. Anything but an approval is an error.
    pub(super) async fn ask(
        self,
        enforcer: &dyn Enforcer,
        caller: &Caller,
        question: &Question,
    ) -> Result<(), ServiceError> {
        let verdict = async {
            match question {
                Question::Create(lease) => enforcer.check_create(caller, lease).await,
                Question::Update(now, then) => enforcer.check_update(caller, now, then).await,
            }
        };
        match tokio::time::timeout(self.service.decider.settings.enforcer_timeout, verdict).await {
            Ok(EnforcerVerdict::Allow) => Ok(()),
            Ok(EnforcerVerdict::Deny(why)) => Err(ServiceError::Denied(why)),
            Err(_) => Err(ServiceError::Denied(NO_ANSWER.to_owned())),
        }
    }

    /// Notifies the external service that a lease has ended: once, without a retry.
    pub(crate) fn tell_end(self, record: &Arc<LeaseRecord>) {
        let Some(enforcer) = self.service.parts.enforcer.clone() else { return };
        let granted = granted(&self.service.state(), record.clone());
        let limit = self.service.decider.settings.enforcer_timeout;
        tokio::spawn(async move {
            if tokio::time::timeout(limit, enforcer.on_end(&granted)).await.is_err() {
                let lease = granted.lease.lease.id;
                tracing::warn!(%lease, "external service timed out at lease end");
            }
        });
    }
}

/// The lease with the records of its hosts and addresses.
pub(super) fn granted(state: &State, lease: Arc<LeaseRecord>) -> GrantedLease {
    let hosts = hosts_of(&lease.lease).filter_map(|id| state.hosts.get(&id).cloned()).collect();
    let ips = lease.lease.reservations.iter().flat_map(|reservation| match &reservation.allocation {
        Allocation::FloatingIps(ips) => ips.iter().copied().collect(),
        Allocation::Hosts(_) | Allocation::Slots(_) => Vec::new(),
    });
    let floating_ips = ips.filter_map(|id| state.floating_ips.get(&id).cloned()).collect();
    GrantedLease { lease, hosts, floating_ips }
}

fn hosts_of(lease: &Lease) -> impl Iterator<Item = leases::ids::HostId> {
    let hosts: std::collections::BTreeSet<_> =
        lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()).collect();
    hosts.into_iter()
}
