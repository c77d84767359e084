//! How far things are: what was seen of the fleet, and which steps are under way. All of it is in memory only,
//! and all of it can be lost.

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
use super::heard::Heard;
use super::look::Look;
use super::memos::{Counting, Memos, Tidying};
use super::pause::Pause;
use super::sight::Sight;
use super::touched::{Touched, is_of_addresses};
use crate::clock_watch::{Belonging, Watch};
use crate::held_offers::HeldOffers;
use crate::types::Statistics;

/// A step that was claimed and not given up.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    pub claim: Claim,
    pub lease: Option<LeaseId>,
    /// When the time of the step is up.
    pub until: Timestamp,
    /// How long the claim holds.
    pub term: Term,
    /// The fleet is at it; when to ask it again.
    pub ask_again_at: Option<Timestamp>,
}

/// A look at the fleet that is under way.
#[derive(Clone, Debug)]
struct LookUnderWay {
    look: Look,
    /// What it was begun for.
    touched: Touched,
    /// It was begun for what was heard.
    heard: bool,
}

/// How far things are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// What was last seen. Decisions share it.
    pub observed: Arc<Observed>,
    /// All machines, as they were last seen, until they are entered into the records of hosts.
    pub machines: Option<BTreeMap<HostId, Machine>>,
    /// Differences between the fleet and the store when all of the fleet was last seen.
    pub differences: BTreeMap<ReservationId, Difference>,
    /// When the whole fleet was last seen, if it was.
    pub seen_at: Option<Timestamp>,
    /// How long that look took.
    pub round_took: SignedDuration,
    /// Until the whole fleet is looked at again.
    pub looked_at_all: Option<Pause>,
    /// How old the observation of hosts is, for decisions.
    pub sight: Sight,
    /// How often looking failed since it last succeeded.
    pub blind: u32,
    /// How often a cycle failed since one last succeeded, not counting those before their time.
    pub stuck: u32,
    /// After one that failed, until it is tried again.
    pub failed: Option<Pause>,
    /// The clock, once it is watched.
    pub clock: Option<Watch>,
    /// Whether the fleet belongs to the store.
    pub belonging: Belonging,
    /// What is held was not counted for usage when the service started.
    pub uncounted: bool,
    /// What is to be looked at.
    touched: Touched,
    /// Hosts on which something has happened, by what was heard.
    pub heard: Heard,
    /// Looks that are under way, by number.
    looks: BTreeMap<u64, LookUnderWay>,
    /// How many looks were begun.
    looks_begun: u64,
    /// The number of the look that saw each host last, and of that which saw addresses and reservations.
    seen_by: BTreeMap<HostId, u64>,
    rest_seen_by: u64,
    /// Hosts that were seen since what was seen of them was last recorded.
    pub unrecorded: BTreeSet<HostId>,
    /// Leases of which somebody else has said something since we last saw anything of the fleet. Why they do not
    /// get on is for them to say: two who see different things would contradict each other forever.
    pub told: BTreeSet<LeaseId>,
    /// The same of instances.
    pub told_of_instances: BTreeSet<GuestId>,
    /// How many offers were held for each project.
    pub offers_held: HeldOffers,
    /// The number of the last look at the whole fleet that saw it.
    saw_all: u64,
    /// Guests of instances that are not seen: since which version of the record that is so, and how many looks had
    /// begun when it was noticed.
    missing: BTreeMap<GuestId, (Version, u64)>,
    /// Where guests of instances were to be moved, or were seen on their way to, and how many looks had begun when that
    /// was last so: one that is begun goes on, whatever becomes of the decision.
    bound_for: BTreeMap<GuestId, (HostId, u64)>,
    /// Nobody knows how hosts are: the fleet was not seen for long.
    lost_sight: bool,
    /// Hosts that were removed and that the fleet is still to have back.
    pub left: BTreeSet<HostId>,
    /// Hosts that were taken on, or seen to be, since the service started, and were not removed since.
    pub taken_on: BTreeSet<HostId>,
    /// The last host that was to be taken on again.
    pub taken_on_again: Option<HostId>,
    /// What the last plan has done, now or as soon as it can be; none before there is a plan. What failed and is not
    /// among it nobody wants any more.
    pub wanted: Option<BTreeSet<Action>>,
    pub in_flight: BTreeMap<Action, InFlight>,
    /// Steps that others have claimed.
    pub elsewhere: Elsewhere,
    /// The store did not answer when steps were claimed, and may have granted claims.
    pub unheard_claims: bool,
    /// What became of steps, still to be recorded.
    pub outcomes: Vec<Finished>,
    /// When the clock was last found to agree with the store's.
    pub clocks_compared_at: Option<Timestamp>,
    /// How far the clock is ahead of the store's, as it was when they were last compared. `None` if the store has none.
    pub clock_ahead: Option<SignedDuration>,
    /// What passes remember.
    pub memos: Memos,
    /// A pass of this cycle goes on in the next one.
    pub unfinished: bool,
    /// Whether it is gone over what waits, beside the cycles.
    pub pass_under_way: bool,
    /// Of preemptible guests that others have started, and of instances that go anyway, those whose place a lease
    /// needs, and when it starts.
    pub others_leaving: BTreeMap<GuestId, Timestamp>,
    /// Resumed guests that this service did not start, with the projects to notify.
    pub resumed: BTreeMap<GuestId, ProjectId>,
    /// Others have committed something that no cycle has seen yet.
    pub others_committed: bool,
    pub tidying: Tidying,
    /// Guests of leases that others have started, if this service counts them.
    pub counting: Option<Counting>,
    /// Whether there are more of them to count.
    pub guests_left: bool,
    /// Hosts that were seen since occupants were last recorded, with the beginning and the end of the last look at them.
    pub sighted: BTreeMap<HostId, Window>,
    /// Whether there is more to record of hosts that no look has seen for long.
    pub occupants_left: bool,
    /// How many drafts were changed.
    drafts: u64,
    pub steps_done: u64,
    pub steps_failed: u64,
    pub cycles: u64,
    pub boots_failed: u64,
    pub last_start_delay_ms: u64,
    pub preempted: u64,
}

impl Progress {
    /// Whether other services may use the store: they go by its clock as well.
    pub fn shares_clock(&self) -> bool {
        self.clock_ahead.is_some()
    }

    /// Whether the fleet was seen, and answered when it was last asked. One that does not answer is not asked
    /// for every detail.
    pub fn sees(&self) -> bool {
        self.seen_at.is_some() && self.blind == 0
    }

    /// A revision that neither the store nor another draft has: what is remembered of a draft is true of it alone.
    pub fn revision_of_draft(&mut self, base: Revision) -> Revision {
        self.drafts += 1;
        Revision { mark: u128::MAX - u128::from(self.drafts), ..base }
    }

    /// A cycle failed: when to try again. Tasks that end have cycles fail as well before that, and they are no
    /// reason to wait longer: of an outage of a second, that would make half a minute.
    pub fn retry_at(&mut self, now: Timestamp) -> Timestamp {
        if let Some(at) = self.failed.and_then(|pause| pause.rest(now)) {
            return at;
        }
        let pause = Pause::of(now, backoff(FIRST_RETRY, LONGEST_RETRY, self.stuck));
        self.stuck = self.stuck.saturating_add(1);
        self.failed = Some(pause);
        pause.end()
    }

    /// Whether what was seen is all there is to see of a lease: nothing of its is being done, or was done and
    /// not looked at.
    pub fn settled(&self, lease: LeaseId) -> bool {
        self.sees()
            && !self.in_flight.values().any(|step| step.lease == Some(lease))
            && !self.to_see().any(|touched| touched.concerns(lease))
    }

    /// Whether what was seen is all there is to see of an instance's guest where it is to be.
    pub fn settled_instance(&self, instance: &Instance) -> bool {
        self.sees()
            && !self.in_flight.keys().any(|action| action.instance() == Some(instance.id))
            && !self.to_see().any(|touched| touched.hosts.contains_key(&instance.host))
    }

    /// Guests that were last seen on hosts that are to be looked at: they may be elsewhere by now.
    pub fn seen_on_touched_hosts(&self) -> BTreeSet<GuestId> {
        let touched = self.to_see().flat_map(|touched| touched.hosts.keys());
        let seen = touched.filter_map(|host| self.observed.hosts.get(host));
        seen.flat_map(|host| host.guests.iter().map(|guest| guest.id)).collect()
    }

    /// Instances whose guests are certain to be nowhere. A guest that is moved may be missed where it was by one look,
    /// and where it is by another; so one is missing only if a look at the whole fleet that was begun after it had been
    /// missed has not seen it either. Nor does a look say anything that was begun before the record became what it is:
    /// another service may have seen the guest since. `ours` says which hosts there are.
    ///
    /// One that was asked to leave, and is not being moved, is not waited for so long: its place is given to a lease as
    /// soon as it is not on its host any more, so another look at that host, and at the one that it was to be moved to, is
    /// begun at once, and is enough.
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

    /// Notes where a guest that is seen on that host is on its way to, or that it is not.
    fn follow_move(&mut self, host: HostId, guest: &Guest) {
        if let Some(to) = guest.moving_to {
            self.bound_for.insert(guest.id, (to, self.looks_begun));
        } else if let Some((_, at)) = self.bound_for.get(&guest.id)
            && self.seen_by.get(&host).is_some_and(|seen| at < seen)
        {
            self.bound_for.remove(&guest.id);
        }
    }

    /// Whether the instance was asked to leave its host, and nobody is moving it at the moment.
    fn leaves(&self, instance: &Instance, now: Timestamp) -> bool {
        let moves =
            |action: &Action| matches!(action, Action::MoveGuest(_, guest, _) if *guest == instance.id);
        instance.is_departing(now) && !self.in_flight.keys().any(moves)
    }

    /// The host is to be looked at; before that nothing is concluded for the lease.
    pub fn look_at(&mut self, host: HostId, lease: Option<LeaseId>) {
        self.touched.hosts.entry(host).or_default().extend(lease);
    }

    /// The host is to be looked at, unless it is already.
    pub fn look_once(&mut self, host: HostId) {
        if !self.to_see().any(|touched| touched.hosts.contains_key(&host)) {
            self.look_at(host, None);
        }
    }

    /// What the action may have changed is to be looked at.
    pub fn look_at_effect(&mut self, action: Action, lease: Option<LeaseId>) {
        if is_of_addresses(action) {
            self.touched.addresses.get_or_insert_default().extend(lease);
        }
        if let Action::Prepare(reservation) | Action::Finish(reservation) = action {
            self.touched.reservations.entry(reservation).or_default().extend(lease);
        }
        for host in action.hosts() {
            self.look_at(host, lease);
        }
    }

    /// The hosts of a lease that has ended are to be looked at before they are taken back: its project may
    /// have started guests there since.
    pub fn look_at_end(&mut self, lease: &Lease) {
        for host in lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()) {
            self.look_at(host, Some(lease.id));
        }
    }

    /// Whether a host of a lease is still to be looked at.
    pub fn looks_at_end(&self, lease: &Lease) -> bool {
        let mut hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        hosts.any(|host| self.to_see().any(|touched| touched.hosts.contains_key(&host)))
    }

    /// Whether the action is about something that is to be looked at first.
    pub fn waits_for_a_look(&self, action: Action) -> bool {
        self.to_see().any(|touched| touched.has(action))
    }

    /// Whether the move was begun here, and its destination was not looked at since.
    pub fn is_moving(&self, mov: &Move) -> bool {
        let action = mov.action();
        self.in_flight.contains_key(&action)
            || self.to_see().any(|touched| touched.hosts.contains_key(&mov.to))
    }

    fn to_see(&self) -> impl Iterator<Item = &Touched> {
        self.looks.values().map(|under_way| &under_way.touched).chain([&self.touched])
    }

    /// Whether anything waits for a look that is not under way.
    pub fn anything_to_look_at(&self) -> bool {
        self.touched.addresses.is_some()
            || !self.touched.reservations.is_empty()
            || !self.hosts_to_look_at().is_empty()
    }

    /// Hosts that wait for a look, but for those that a look is begun for already.
    pub fn hosts_to_look_at(&self) -> BTreeSet<HostId> {
        let begun = |host: &HostId| self.looks.values().any(|look| look.touched.hosts.contains_key(host));
        self.touched.hosts.keys().copied().filter(|host| !begun(host)).collect()
    }

    /// The host was taken on.
    pub fn take_on(&mut self, host: HostId) {
        self.taken_on.insert(host);
        self.look_at(host, None);
    }

    /// Whether the host was looked at, and is not in the service's hands.
    pub fn is_out(&self, host: HostId) -> bool {
        self.seen_by.contains_key(&host) && !self.observed.hosts.contains_key(&host)
    }

    /// The host was removed; the fleet is to have it back.
    pub fn leave(&mut self, host: HostId) {
        self.taken_on.remove(&host);
        Arc::make_mut(&mut self.observed).hosts.remove(&host);
        self.seen_by.remove(&host);
        self.sighted.remove(&host);
        self.touched.hosts.remove(&host);
        self.left.insert(host);
    }

    /// Whether the step is to be done still, as far as is known.
    pub fn is_wanted(&self, action: Action) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&action))
            || self.in_flight.contains_key(&action)
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
