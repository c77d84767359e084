//! How far things are: what was seen of the fleet, and which steps are under way. All of it is in memory only,
//! and all of it can be lost.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::lease::Lease;
use leases::plan::{Action, Observed};
use store::{Claim, Finished};

use crate::Statistics;

/// A step that was claimed and not given up.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub claim: Claim,
    pub lease: Option<LeaseId>,
    /// When the claim ends.
    pub until: Timestamp,
    /// The fleet is at it; when to ask it again.
    pub ask_again_at: Option<Timestamp>,
}

/// How far things are.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// What was last seen.
    pub observed: Observed,
    /// When the whole fleet was last seen, if it was.
    pub seen_at: Option<Timestamp>,
    /// When to look at the whole fleet again.
    pub look_at_all_at: Option<Timestamp>,
    /// How often looking failed since it last succeeded.
    pub blind: u32,
    /// How often a cycle failed since one last succeeded.
    pub stuck: u32,
    /// Hosts to look at before anything is concluded from what is not there.
    to_look_at: BTreeSet<HostId>,
    /// The same of addresses, which are seen together.
    pub look_at_addresses: bool,
    /// Hosts that were removed and that the fleet still has in the free pool.
    left: BTreeSet<HostId>,
    pub in_flight: BTreeMap<Action, InFlight>,
    /// What became of steps, still to be recorded.
    pub outcomes: Vec<Finished>,
    /// When old records were last cleared away.
    pub tidied_at: Option<Timestamp>,
    pub steps_done: u64,
    pub steps_failed: u64,
    pub cycles: u64,
    pub last_start_delay_ms: u64,
}

impl Progress {
    /// Whether what was seen is all there is to see of a lease: nothing of its is being done, or was done and
    /// not looked at.
    pub fn settled(&self, lease: LeaseId) -> bool {
        self.up_to_date() && !self.in_flight.values().any(|step| step.lease == Some(lease))
    }

    /// Whether what was seen is what is there, as far as we know.
    pub fn up_to_date(&self) -> bool {
        self.seen_at.is_some() && self.blind == 0 && self.to_look_at.is_empty() && !self.look_at_addresses
    }

    /// The host is to be looked at.
    pub fn look_at(&mut self, host: HostId) {
        self.to_look_at.insert(host);
    }

    /// What is to be looked at: nothing if it is empty and addresses are not wanted.
    pub fn to_look_at(&self) -> (BTreeSet<HostId>, bool) {
        (self.to_look_at.clone(), self.look_at_addresses)
    }

    /// Those were looked at. Whatever was done to them since then is noted later.
    pub fn looked_at(&mut self, hosts: &BTreeSet<HostId>) {
        self.to_look_at.retain(|host| !hosts.contains(host));
        self.look_at_addresses = false;
    }

    /// What the action may have changed is to be looked at.
    pub fn look_at_effect(&mut self, action: Action) {
        match host_of(action) {
            Some(host) => self.look_at(host),
            None => self.look_at_addresses = true,
        }
    }

    /// The hosts of a lease that has ended are to be looked at before they are taken back: its project may
    /// have started guests there since.
    pub fn look_at_end(&mut self, lease: &Lease) {
        let hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        self.to_look_at.extend(hosts);
    }

    /// Whether the action is about a host that is to be looked at first.
    pub fn waits_for_a_look(&self, action: Action) -> bool {
        host_of(action).is_some_and(|host| self.to_look_at.contains(&host))
    }

    /// The host was removed; the fleet may have it back.
    pub fn leave(&mut self, host: HostId) {
        self.observed.hosts.remove(&host);
        self.to_look_at.remove(&host);
        self.left.insert(host);
    }

    /// Hosts that the fleet does not have back yet.
    pub fn left(&self) -> Vec<HostId> {
        self.left.iter().copied().collect()
    }

    /// The fleet has it back.
    pub fn has_left(&mut self, host: HostId) {
        self.left.remove(&host);
    }

    /// How many steps the fleet is being asked to carry out at this moment.
    pub fn running(&self) -> usize {
        self.in_flight.values().filter(|step| step.ask_again_at.is_none()).count()
    }

    /// The figures that are known here.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            running_steps: self.in_flight.len() as u64,
            steps_done: self.steps_done,
            steps_failed: self.steps_failed,
            cycles: self.cycles,
            last_start_delay_ms: self.last_start_delay_ms,
            ..Statistics::default()
        }
    }
}

/// The host that the action is about, if it is about one.
fn host_of(action: Action) -> Option<HostId> {
    match action {
        Action::Fence(host)
        | Action::StopGuest(host, _)
        | Action::DeleteGuest(host, _)
        | Action::Verify(host, _)
        | Action::Hold(host, _)
        | Action::Release(host, _)
        | Action::Unfence(host)
        | Action::Grant(host, _, _)
        | Action::Withdraw(host, _)
        | Action::Snapshot(host, _) => Some(host),
        Action::Assign(..) | Action::Unassign(..) => None,
    }
}
