//! Hosts that the fleet is to have back since they were removed, and those that it is to hand over again.
//!
//! A call to the fleet that was given up may be carried out minutes later: a host that was removed and added again is
//! then given back although nobody wants that. So the loop goes by what is on record and what is seen, not by which
//! call came last.

use std::collections::BTreeMap;

use fleet::{FleetError, Machine, Outcome};
use leases::host::Health;
use leases::ids::HostId;

use super::Execution;

impl Execution<'_> {
    /// Hosts that were removed and that the fleet is still to have back.
    pub(super) fn left_hosts(self) -> Vec<HostId> {
        let (state, mut progress) = (self.service.state(), self.service.progress());
        // What was added again is ours again.
        progress.left.retain(|host| !state.hosts.contains_key(host));
        progress.left.iter().copied().collect()
    }

    /// Hosts on record that were in the service's hands since it started and are not any more: at most as many as there
    /// are steps at once, each in its turn.
    ///
    /// One that does not work is left alone: somebody may have taken it out to repair it. So is one that was never seen
    /// to be taken on: the store may be a backup from before it was given back, and an operator is to decide
    /// ([`crate::drift::Repairs::repair`]).
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

    /// Has the fleet hand a host to us again, for as long as a step may take.
    pub(super) async fn adopt_again(self, host: HostId) -> Result<Outcome, FleetError> {
        let limit = self.service.now() + self.service.decider.step_time();
        let answer = self.service.until(limit, self.service.parts.fleet.adopt(host)).await;
        // Somebody, at this service or another, may have removed it meanwhile.
        if let Err(error) = self.service.update().await {
            tracing::debug!(%error, "store not read after a host was taken on again");
        }
        answer
    }

    /// Notes whether a host was taken on again. If not, the loop tries again.
    pub(super) fn note_adopted(self, host: HostId, answer: Result<Outcome, FleetError>) {
        let on_record = self.service.state().hosts.contains_key(&host);
        let mut progress = self.service.progress();
        match answer {
            // Whatever came of it: the fleet has it back once it has answered.
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
