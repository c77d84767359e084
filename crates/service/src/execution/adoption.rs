//! Returns removed hosts to the fleet, and takes hosts on again that the fleet has lost to a late call.
//!
//! The fleet might carry out a call minutes after it timed out. A host that was removed and added again is
//! then given back by mistake. So the loop compares records with observations, and doesn't rely on the order
//! of its calls.

use std::collections::BTreeMap;

use fleet::{FleetError, HookedCall, Machine, Outcome};
use leases::host::Health;
use leases::ids::HostId;

use super::Execution;

impl Execution<'_> {
    /// Removed hosts that the fleet has not taken back yet.
    pub(super) fn left_hosts(self) -> Vec<HostId> {
        let (state, mut progress) = (self.service.state(), self.service.progress());
        // Hosts that were added again stay.
        progress.left.retain(|host| !state.hosts.contains_key(host));
        progress.left.iter().copied().collect()
    }

    /// Hosts on record that the service had since it started and has no longer. Returns at most
    /// `steps_at_once` hosts, in rotation.
    ///
    /// Skips hosts that don't work, because an operator might have taken them out for repair. Also skips
    /// hosts that were never observed as taken on: the store might be a backup from before the host was given
    /// back, so an operator must decide ([`crate::drift::Repairs::repair`]).
    pub(super) fn lost_hosts(self, machines: &BTreeMap<HostId, Machine>) -> Vec<HostId> {
        let (state, mut progress) = (self.service.state(), self.service.progress());
        let works = |host: &HostId| machines.get(host).is_some_and(|machine| machine.health == Health::Up);
        let lost = |host: &&HostId| progress.is_out(**host) && state.hosts.contains_key(*host) && works(host);
        let last = progress.taken_on_again;
        let (after, before): (Vec<&HostId>, _) =
            progress.taken_on.iter().partition(|host| Some(**host) > last);
        let turns = after.into_iter().chain(before);
        let lost: Vec<HostId> =
            turns.filter(lost).take(self.service.decider.settings.steps_at_once).copied().collect();
        progress.taken_on_again = lost.last().copied();
        lost
    }

    /// Asks the fleet to hand over a host again, with the time limit of a step.
    pub(super) async fn adopt_again(self, host: HostId) -> Result<Outcome, FleetError> {
        let limit = self.service.now() + self.service.time_for(HookedCall::Adopt);
        let answer = self.service.until(limit, self.service.parts.fleet.adopt(host)).await;
        // The host might have been removed in the meantime, by this service or another.
        if let Err(error) = self.service.update().await {
            tracing::debug!(%error, "store not read after a host was taken on again");
        }
        answer
    }

    /// Records the result of taking a host on again. After a failure, the loop tries again.
    pub(super) fn note_adopted(self, host: HostId, answer: Result<Outcome, FleetError>) {
        let on_record = self.service.state().hosts.contains_key(&host);
        let mut progress = self.service.progress();
        match answer {
            // The host was removed. Now that the fleet has answered, with any result, it gets the host back.
            _ if !on_record => progress.leave(host),
            Ok(Outcome::Done) => {
                tracing::warn!(%host, "host had left the free pool, taken on again");
                progress.look_at(host, None);
            }
            Ok(Outcome::Pending) => {}
            Err(error) => {
                tracing::warn!(%host, %error, "host has left the free pool, not taken on again, retrying");
            }
        }
    }
}
