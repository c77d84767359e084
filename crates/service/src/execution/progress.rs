//! Memory of the loop: observations of the fleet, steps in progress, and counters. It is never stored, and
//! losing it is harmless.

mod looks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{Difference, Machine};
use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::hunt::Move;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::instance::{Instance, InstanceStatus};
use leases::lease::Lease;
use leases::plan::{Action, Guest, Observed};
use leases::project::ProjectId;
use leases::window::Window;
use store::{Claim, Finished, InstanceRecord, Revision, Version};

use super::backoff::{FIRST_RETRY, LONGEST_RETRY, backoff};
use super::claimed::{Elsewhere, Term};
use super::dirty_set::{DirtySet, is_of_addresses};
use super::heard::Heard;
use super::look::Look;
use super::memos::{Counting, Memos, Tidying};
use super::pause::Pause;
use super::sight::Sight;
use crate::clock_watch::{Belonging, Watch};
use crate::held_offers::HeldOffers;
use crate::types::Statistics;

/// A claimed step that was not given up.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub claim: Claim,
    pub lease: Option<LeaseId>,
    /// Time limit of the step.
    pub until: Timestamp,
    /// Validity of the claim.
    pub term: Term,
    /// Set when the fleet reported the step as pending: the time of the next poll.
    pub ask_again_at: Option<Timestamp>,
}

/// A look in progress.
#[derive(Clone, Debug)]
struct LookUnderWay {
    look: Look,
    /// Objects that required the look.
    dirty: DirtySet,
    /// It was begun because of a notification.
    heard: bool,
}

/// Memory of the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Latest observation. Decisions share it.
    pub observed: Arc<Observed>,
    /// All machines as last observed, until host records are updated from them.
    pub machines: Option<BTreeMap<HostId, Machine>>,
    /// Differences between fleet and store, as of the last observation of the whole fleet.
    pub differences: BTreeMap<ReservationId, Difference>,
    /// End of the last observation of the whole fleet.
    pub seen_at: Option<Timestamp>,
    /// Duration of that observation.
    pub round_took: SignedDuration,
    /// Pause until the next look at the whole fleet.
    pub looked_at_all: Option<Pause>,
    /// Age of the latest observation of hosts, for decisions.
    pub sight: Sight,
    /// Number of failed looks since the last successful one.
    pub blind: u32,
    /// Number of failed cycles since the last successful one, not counting those before the retry time.
    pub stuck: u32,
    /// Pause after a failed cycle.
    pub failed: Option<Pause>,
    /// Watch of the system clock; `None` if it isn't watched yet.
    pub clock: Option<Watch>,
    pub belonging: Belonging,
    /// Usage accounting of existing leases and instances has not been started since the service started.
    pub uncounted: bool,
    /// Objects to observe again.
    dirty: DirtySet,
    /// Hosts named in notifications.
    pub heard: Heard,
    /// Looks in progress, by number.
    looks: BTreeMap<u64, LookUnderWay>,
    /// Number of looks begun so far.
    looks_begun: u64,
    /// Number of the last look that saw each host, and of the last look that saw addresses and reservations.
    seen_by: BTreeMap<HostId, u64>,
    rest_seen_by: u64,
    /// Hosts with an observation that is newer than the last recorded one.
    pub unrecorded: BTreeSet<HostId>,
    /// Leases that another service has changed since this one's last observation. This service then doesn't
    /// change why they are blocked, because two services with different observations would overwrite each
    /// other forever.
    pub told: BTreeSet<LeaseId>,
    /// Instances that another service has changed since this one's last observation.
    pub told_of_instances: BTreeSet<GuestId>,
    /// Number of offers held for each project.
    pub offers_held: HeldOffers,
    /// Number of the last successful look at the whole fleet.
    saw_all: u64,
    /// Instances without an observed guest: the version of the record when that was noticed, and the number
    /// of looks begun by then.
    missing: BTreeMap<GuestId, (Version, u64)>,
    /// Destinations of instances that had to move or were observed to move, and the number of looks begun at
    /// that time. A move that has begun continues even if the decision is withdrawn.
    bound_for: BTreeMap<GuestId, (HostId, u64)>,
    /// The last observation of the fleet is so old that the state of hosts is unknown.
    lost_sight: bool,
    /// Removed hosts that the fleet has not taken back yet.
    pub left: BTreeSet<HostId>,
    /// Hosts that were taken on, or observed as taken on, since the service started, and not removed since
    /// then.
    pub taken_on: BTreeSet<HostId>,
    /// Last host to be taken on again. The next turn starts after it.
    pub taken_on_again: Option<HostId>,
    /// Steps of the last plan, due now or later; `None` before the first plan. A failed step that isn't among
    /// them is no longer wanted.
    pub wanted: Option<BTreeSet<Action>>,
    pub in_flight: BTreeMap<Action, InFlight>,
    /// Steps that other services have claimed.
    pub elsewhere: Elsewhere,
    /// The store's response to a claim was lost, so it might have granted claims.
    pub unheard_claims: bool,
    /// Results of steps that are not recorded yet.
    pub outcomes: Vec<Finished>,
    /// Last time that the clock was found to agree with the store's.
    pub clocks_compared_at: Option<Timestamp>,
    /// Difference by which the clock is ahead of the store's, at the last comparison. `None` if the store has
    /// no clock.
    pub clock_ahead: Option<SignedDuration>,
    /// Memory of passes.
    pub memos: Memos,
    /// A pass of this cycle continues in the next one.
    pub unfinished: bool,
    /// A pass over waiting requests and leases is in progress outside of cycles.
    pub pass_under_way: bool,
    /// Guests in the way of a lease: preemptible guests not started through the service, and instances that
    /// leave in any case. The value is the start of that lease.
    pub others_leaving: BTreeMap<GuestId, Timestamp>,
    /// Resumed guests that this service did not start, with the projects to notify.
    pub resumed: BTreeMap<GuestId, ProjectId>,
    /// Another service has committed changes that no cycle has seen yet.
    pub others_committed: bool,
    pub tidying: Tidying,
    /// Count of guests that were started outside the service, if this service does the counting.
    pub counting: Option<Counting>,
    /// Whether there are more guests to count.
    pub guests_left: bool,
    /// Hosts observed since occupants were last recorded, with start and end of the last look at them.
    pub sighted: BTreeMap<HostId, Window>,
    /// Whether there is more to record about hosts that were not observed for long.
    pub occupants_left: bool,
    /// Number of changes to drafts, for unique revisions.
    drafts: u64,
    pub steps_done: u64,
    pub steps_failed: u64,
    pub cycles: u64,
    pub boots_failed: u64,
    pub last_start_delay_ms: u64,
    pub preempted: u64,
}

impl Progress {
    /// Whether other services may use the store. If so, its clock coordinates them.
    pub fn shares_clock(&self) -> bool {
        self.clock_ahead.is_some()
    }

    /// Whether the fleet was observed and answered the last look. A fleet that doesn't answer isn't asked
    /// about details.
    pub fn sees(&self) -> bool {
        self.seen_at.is_some() && self.blind == 0
    }

    /// A revision that differs from the store's and from those of other drafts, because facts remembered
    /// about a draft hold only for that draft.
    pub fn revision_of_draft(&mut self, base: Revision) -> Revision {
        self.drafts += 1;
        Revision { mark: u128::MAX - u128::from(self.drafts), ..base }
    }

    /// Notes a failed cycle and returns the time of the retry. Ending tasks can trigger further failing
    /// cycles before that time. These don't extend the delay; otherwise an outage of a second would become
    /// half a minute.
    pub fn retry_at(&mut self, now: Timestamp) -> Timestamp {
        if let Some(at) = self.failed.and_then(|pause| pause.rest(now)) {
            return at;
        }
        let pause = Pause::of(now, backoff(FIRST_RETRY, LONGEST_RETRY, self.stuck));
        self.stuck = self.stuck.saturating_add(1);
        self.failed = Some(pause);
        pause.end()
    }

    /// Whether the observation of a lease is complete: no step for it is in progress, and the effects of its
    /// steps were observed.
    pub fn settled(&self, lease: LeaseId) -> bool {
        self.sees()
            && !self.in_flight.values().any(|step| step.lease == Some(lease))
            && !self.to_see().any(|dirty| dirty.concerns(lease))
    }

    /// Whether the observation of an instance's guest is complete on its host.
    pub fn settled_instance(&self, instance: &Instance) -> bool {
        self.sees()
            && !self.in_flight.keys().any(|action| action.instance() == Some(instance.id))
            && !self.to_see().any(|dirty| dirty.hosts.contains_key(&instance.host))
    }

    /// Guests last observed on hosts that must be observed again. They might be elsewhere by now.
    pub fn seen_on_touched_hosts(&self) -> BTreeSet<GuestId> {
        let dirty = self.to_see().flat_map(|dirty| dirty.hosts.keys());
        let seen = dirty.filter_map(|host| self.observed.hosts.get(host));
        seen.flat_map(|host| host.guests.iter().map(|guest| guest.id)).collect()
    }

    /// Instances whose guests are certain to be gone. While a guest moves, one look can miss it at its old
    /// host and another at its new host. So it is gone only if a look at the whole fleet that began after it
    /// was first missed doesn't find it either. A look also proves nothing if it began before the current
    /// version of the record, because another service might have seen the guest since. `ours` says which
    /// hosts exist.
    ///
    /// An instance that was asked to leave and isn't being moved doesn't wait that long. Its place is given
    /// to a lease as soon as it has left its host. So another look at its host, and at the destination of a
    /// planned move, begins immediately and is enough.
    pub fn gone<'a>(
        &mut self,
        instances: impl Iterator<Item = &'a InstanceRecord>,
        ours: impl Fn(HostId) -> bool,
        now: Timestamp,
    ) -> BTreeSet<GuestId> {
        let mut unseen: BTreeMap<GuestId, &InstanceRecord> =
            instances.map(|record| (record.instance.id, record)).collect();
        self.bound_for.retain(|id, _| unseen.contains_key(id));
        for (id, record) in &unseen {
            let to = record.instance.moves_to();
            self.bound_for.extend(to.map(|to| (*id, (to, self.looks_begun))));
        }
        let observed = Arc::clone(&self.observed);
        if !unseen.is_empty() {
            for (host, seen) in &observed.hosts {
                for guest in &seen.guests {
                    if unseen.remove(&guest.id).is_some() {
                        self.follow_move(*host, guest);
                    }
                }
            }
        }
        let mut gone = BTreeSet::new();
        let mut missing = BTreeMap::new();
        for InstanceRecord { instance, version, .. } in unseen.into_values() {
            let known = self.missing.get(&instance.id).filter(|(of, _)| of == version);
            let since = known.map_or(self.looks_begun, |(_, since)| *since);
            missing.insert(instance.id, (*version, since));
            let host = observed.hosts.get(&instance.host);
            let works = host.is_some_and(|host| host.health == Health::Up);
            let leaves = works && instance.status == InstanceStatus::Active && self.leaves(instance, now);
            let to = self.bound_for.get(&instance.id).map(|(to, _)| *to).filter(|to| ours(*to));
            let looked_at = |host: HostId| self.seen_by.get(&host).is_some_and(|seen| since < *seen);
            let left = leaves && looked_at(instance.host) && to.is_none_or(looked_at);
            if left || (since < self.saw_all && works) || !ours(instance.host) {
                gone.insert(instance.id);
            } else if leaves {
                for host in [Some(instance.host), to].into_iter().flatten() {
                    self.look_once(host);
                }
            }
        }
        self.missing = missing;
        gone
    }

    /// Updates the destination of a guest observed on `host`, or removes it if the guest isn't moving.
    fn follow_move(&mut self, host: HostId, guest: &Guest) {
        if let Some(to) = guest.moving_to {
            self.bound_for.insert(guest.id, (to, self.looks_begun));
        } else if let Some((_, at)) = self.bound_for.get(&guest.id)
            && self.seen_by.get(&host).is_some_and(|seen| at < seen)
        {
            self.bound_for.remove(&guest.id);
        }
    }

    /// Whether the instance was asked to leave its host and isn't being moved.
    fn leaves(&self, instance: &Instance, now: Timestamp) -> bool {
        let moves =
            |action: &Action| matches!(action, Action::MoveGuest(_, guest, _) if *guest == instance.id);
        instance.is_departing(now) && !self.in_flight.keys().any(moves)
    }

    /// Requests a look at the host. Until then, nothing is concluded about the lease.
    pub fn look_at(&mut self, host: HostId, lease: Option<LeaseId>) {
        self.dirty.hosts.entry(host).or_default().extend(lease);
    }

    /// Requests a look at the host unless one is already requested.
    pub fn look_once(&mut self, host: HostId) {
        if !self.to_see().any(|dirty| dirty.hosts.contains_key(&host)) {
            self.look_at(host, None);
        }
    }

    /// Requests a look at everything that the action might have changed.
    pub fn look_at_effect(&mut self, action: Action, lease: Option<LeaseId>) {
        if is_of_addresses(action) {
            self.dirty.addresses.get_or_insert_default().extend(lease);
        }
        if let Action::Prepare(reservation) | Action::Finish(reservation) = action {
            self.dirty.reservations.entry(reservation).or_default().extend(lease);
        }
        for host in action.hosts() {
            self.look_at(host, lease);
        }
    }

    /// Requests a look at the hosts of an ended lease before they are taken back. Its project might have
    /// started guests there since the last observation.
    pub fn look_at_end(&mut self, lease: &Lease) {
        for host in lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()) {
            self.look_at(host, Some(lease.id));
        }
    }

    /// Whether a host of the lease still waits for a look.
    pub fn looks_at_end(&self, lease: &Lease) -> bool {
        let mut hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        hosts.any(|host| self.to_see().any(|dirty| dirty.hosts.contains_key(&host)))
    }

    /// Whether the action concerns something that must be observed first.
    pub fn waits_for_a_look(&self, action: Action) -> bool {
        self.to_see().any(|dirty| dirty.has(action))
    }

    /// Whether this service began the move and hasn't observed its destination since.
    pub fn is_moving(&self, mov: &Move) -> bool {
        let action = mov.action();
        self.in_flight.contains_key(&action) || self.to_see().any(|dirty| dirty.hosts.contains_key(&mov.to))
    }

    fn to_see(&self) -> impl Iterator<Item = &DirtySet> {
        self.looks.values().map(|under_way| &under_way.dirty).chain([&self.dirty])
    }

    /// Whether anything waits for a look that has not begun.
    pub fn anything_to_look_at(&self) -> bool {
        self.dirty.addresses.is_some()
            || !self.dirty.reservations.is_empty()
            || !self.hosts_to_look_at().is_empty()
    }

    /// Hosts that wait for a look that has not begun.
    pub fn hosts_to_look_at(&self) -> BTreeSet<HostId> {
        let begun = |host: &HostId| self.looks.values().any(|look| look.dirty.hosts.contains_key(host));
        self.dirty.hosts.keys().copied().filter(|host| !begun(host)).collect()
    }

    /// Notes that the host was taken on.
    pub fn take_on(&mut self, host: HostId) {
        self.taken_on.insert(host);
        self.look_at(host, None);
    }

    /// Whether the host was observed and isn't in the service's hands.
    pub fn is_out(&self, host: HostId) -> bool {
        self.seen_by.contains_key(&host) && !self.observed.hosts.contains_key(&host)
    }

    /// Notes that the host was removed and must be returned to the fleet.
    pub fn leave(&mut self, host: HostId) {
        self.taken_on.remove(&host);
        Arc::make_mut(&mut self.observed).hosts.remove(&host);
        self.seen_by.remove(&host);
        self.sighted.remove(&host);
        self.dirty.hosts.remove(&host);
        self.left.insert(host);
    }

    /// Whether the step is still wanted, as far as is known.
    pub fn is_wanted(&self, action: Action) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&action))
            || self.in_flight.contains_key(&action)
    }

    /// Number of steps for which a request to the fleet is in progress.
    pub fn running(&self) -> usize {
        self.in_flight.values().filter(|step| step.ask_again_at.is_none()).count()
    }

    /// The statistics that are known here.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            running_steps: self.in_flight.len() as u64,
            steps_done: self.steps_done,
            steps_failed: self.steps_failed,
            cycles: self.cycles,
            boots_failed: self.boots_failed,
            last_start_delay_ms: self.last_start_delay_ms,
            preempted: self.preempted,
            sizes: self.tidying.sizes.clone(),
            notifications_lost: self.tidying.notifications_lost,
            ..Statistics::default()
        }
    }
}

#[cfg(test)]
mod tests;
