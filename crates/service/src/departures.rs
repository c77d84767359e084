//! Preemption times of instances: recorded as soon as a lease of the host is known, and announced to owners
//! (PRE).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Elsewhere, Need};
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::{Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::{Guest, GuestOwner, Observed, ObservedHost};
use leases::preemption::Class;
use leases::project::ProjectId;
use store::{Commit, InstanceRecord, Write};

use crate::decider::Decider;
use crate::entries::{Effect, Entry};
use crate::execution::draft::Draft;
use crate::execution::memos::{Announced, StartedElsewhere};
use crate::instances::change;
use crate::notices;
use crate::state::State;
use crate::writing::truncate_to_stored_precision;

impl Decider {
    /// Preemption time of an instance of this class for a lease of its host that starts at `start`.
    fn departure_for(&self, class: Option<&Class>, start: Timestamp) -> Departure {
        let rules = &self.settings.plan_rules;
        Departure::for_lease(rules.asks_at(start, rules.notice(class)), start)
    }

    /// Preemption time of a new instance; `None` if it isn't preemptible or no lease needs its place.
    pub(crate) fn departure_of_new(
        &self,
        state: &State,
        new: &Instance,
        now: Timestamp,
    ) -> Option<Departure> {
        let host = state.inventory.host(new.host).filter(|_| new.kind == InstanceKind::Preemptible)?;
        let all = state.instances.iter().map(|record| &record.instance).filter(|other| stays(other));
        let there = all.filter(|other| other.host == new.host).chain([new]);
        let facts = self.host_facts(state, now);
        let admission = self.admission_at(state, &facts, now);
        let observed = self.observed();
        let seen = observed.hosts.get(&host.id);
        let others = seen.and_then(|seen| self.started_elsewhere(state, (host.id, seen), now));
        let elsewhere = self.elsewhere(others.as_ref(), now);
        let leaving = admission.preempted_for_leases(host, there, elsewhere, needs_in(state, host.id, seen));
        let departure = leaving.get(&new.id).map(|start| self.departure_for(new.class.as_ref(), *start));
        departure.map(|departure| departure.noted(None, truncate_to_stored_precision(now)))
    }

    /// Preemption time of a guest that was not started through the service; `None` if no lease needs its
    /// place.
    pub(crate) fn departure_of_foreign(
        &self,
        state: &State,
        (host, seen): (HostId, &ObservedHost),
        guest: GuestId,
        now: Timestamp,
    ) -> Option<Departure> {
        let host = state.inventory.host(host)?;
        let guests = foreign_preemptibles(state, seen);
        let all = state.instances.iter().map(|record| &record.instance);
        let there =
            all.filter(|instance| instance.host == host.id && (stays(instance) || is_destroyed(instance)));
        let facts = self.host_facts(state, now);
        let admission = self.admission_at(state, &facts, now);
        let elsewhere = Elsewhere { guests: &guests, until: Timestamp::MAX };
        let needs = needs_in(state, host.id, Some(seen));
        let for_room = admission.preempted_for_leases(host, there, elsewhere, &needs).remove(&guest);
        // All preemptible guests leave before a lease of the whole host.
        let whole = state.calendar.bookings(host.id);
        let whole = whole.filter(|(window, booking)| booking.used.is_none() && now < window.end());
        let for_host = whole.filter_map(|(_, booking)| Some(needs(booking.lease)?.start)).min();
        let start = for_room.into_iter().chain(for_host).min()?;
        Some(self.departure_for(None, start))
    }

    /// Notifies owners of preemptible instances of new, changed and withdrawn preemption times.
    pub(crate) fn announce(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let observed = self.observed();
        let elsewhere = observed
            .hosts
            .iter()
            .filter_map(|(host, seen)| Some((*host, self.started_elsewhere(&state, (*host, seen), now)?)));
        let known = Announced { revision: state.revision, elsewhere: elsewhere.collect() };
        if self.progress().memos.announced.as_ref() == Some(&known) {
            return;
        }
        let (changes, others_leaving) = self.departures(&state, (&observed, &known.elsewhere), now);
        drop(state);
        let changes = {
            let mut progress = self.progress();
            progress.others_leaving = others_leaving;
            progress.memos.announced = changes.is_empty().then_some(known);
            // Two services with different observations would overwrite each other's times forever. If another
            // service changed the instance, observe its host again first.
            let contradicts =
                |(before, _): &Changed| progress.told_of_instances.contains(&before.instance.id);
            let (later, changes): (Vec<Changed>, Vec<Changed>) = changes.into_iter().partition(contradicts);
            for (before, _) in &later {
                progress.look_once(before.instance.host);
            }
            changes
        };
        let entry = |(before, write): Changed| {
            let rules = &self.settings.plan_rules;
            let notifications = notices::of_instance(&before, &write, rules, None, now).into_iter().collect();
            let commit = Commit { writes: vec![write], notifications, ..Commit::new(now) };
            Entry::new(commit, Effect::PreemptionTime(before.instance.id))
        };
        draft.enter(self, changes.into_iter().map(entry).collect());
    }

    /// Notifies the projects of guests that were asked to leave needlessly and were not started through the
    /// service. Owners of the service's own instances are notified when the departure is withdrawn.
    pub(crate) fn tell_resumed(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let resumed = {
            let mut progress = self.progress();
            progress.resumed.retain(|guest, _| state.instances.get(*guest).is_none());
            progress.resumed.clone()
        };
        let entry = |(guest, project): (&GuestId, &ProjectId)| {
            let notifications = vec![notices::guest_resumed(*guest, project)];
            Entry::new(Commit { notifications, ..Commit::new(now) }, Effect::GuestResumed(*guest))
        };
        drop(state);
        draft.enter(self, resumed.iter().map(entry).collect());
    }

    /// Preemptible guests on the host that were not started through the service. `None` if the host has no
    /// such guests, or if no lease has slots there now or soon.
    fn started_elsewhere(
        &self,
        state: &State,
        (host, seen): (HostId, &ObservedHost),
        now: Timestamp,
    ) -> Option<StartedElsewhere> {
        let guests = foreign_preemptibles(state, seen);
        if guests.is_empty() {
            return None;
        }
        let (needs, until) = (needs_in(state, host, Some(seen)), self.settings.plan_rules.horizon(now));
        let booked = state.calendar.bookings(host).filter(|(window, booking)| {
            let near = || needs(booking.lease).is_some_and(|need| need.start <= until);
            booking.used.is_some() && now < window.end() && near()
        });
        let leases: BTreeSet<LeaseId> = booked.map(|(_, booking)| booking.lease).collect();
        (!leases.is_empty()).then_some(StartedElsewhere { guests, leases })
    }

    fn elsewhere<'g>(&self, there: Option<&'g StartedElsewhere>, now: Timestamp) -> Elsewhere<'g> {
        let until = self.settings.plan_rules.horizon(now);
        there.map_or(Elsewhere::NOBODY, |there| Elsewhere { guests: &there.guests, until })
    }

    /// Returns instances with an outdated recorded preemption time. Also returns starts of leases that need
    /// the place of guests not started through the service, or of instances that leave in any case.
    fn departures(
        &self,
        state: &State,
        (observed, elsewhere): (&Observed, &BTreeMap<HostId, StartedElsewhere>),
        now: Timestamp,
    ) -> (Vec<Changed>, BTreeMap<GuestId, Timestamp>) {
        let mut by_host: BTreeMap<HostId, Vec<&Arc<InstanceRecord>>> = BTreeMap::new();
        let there = |instance: &Instance| stays(instance) || is_destroyed(instance);
        for record in state.instances.iter().filter(|record| there(&record.instance)) {
            by_host.entry(record.instance.host).or_default().push(record);
        }
        let preemptible = |record: &Arc<InstanceRecord>| record.instance.kind == InstanceKind::Preemptible;
        by_host.retain(|host, there| {
            let goes = |record: &Arc<InstanceRecord>| record.instance.goes_anyway();
            there.iter().any(|record| preemptible(record) || goes(record)) || elsewhere.contains_key(host)
        });
        for host in elsewhere.keys() {
            by_host.entry(*host).or_default();
        }
        let facts = self.host_facts(state, now);
        let admission = self.admission_at(state, &facts, now);
        let (mut changes, mut others_leaving) = (Vec::new(), BTreeMap::new());
        for (host, there) in by_host {
            let Some(host) = state.inventory.host(host) else { continue };
            let others = elsewhere.get(&host.id);
            let instances = there.iter().map(|record| &record.instance);
            let needs = needs_in(state, host.id, observed.hosts.get(&host.id));
            let leaving = admission.preempted_for_leases(host, instances, self.elsewhere(others, now), needs);
            let others = others.iter().flat_map(|there| &there.guests);
            others_leaving.extend(others.filter_map(|guest| Some((guest.id, *leaving.get(&guest.id)?))));
            let going = there.iter().map(|record| &record.instance).filter(|instance| instance.goes_anyway());
            others_leaving.extend(going.filter_map(|going| Some((going.id, *leaving.get(&going.id)?))));
            let open = |record: &&Arc<InstanceRecord>| preemptible(record) && !record.instance.goes_anyway();
            for record in there.into_iter().filter(open) {
                let known = record.instance.departure;
                let start = leaving.get(&record.instance.id);
                let departure = start.map(|start| self.departure_for(record.instance.class.as_ref(), *start));
                let departure =
                    departure.map(|new| new.noted(known.as_ref(), truncate_to_stored_precision(now)));
                let after = Instance { departure, ..record.instance.clone() };
                if after != record.instance {
                    changes.push((Arc::clone(record), change(record, after, now)));
                }
            }
        }
        (changes, others_leaving)
    }
}

/// Preemptible guests on a host that were not started through the service.
fn foreign_preemptibles(state: &State, seen: &ObservedHost) -> Vec<Guest> {
    let foreign =
        |guest: &&Guest| guest.owner == GuestOwner::Preemptible && state.instances.get(guest.id).is_none();
    seen.guests.iter().filter(foreign).cloned().collect()
}

/// Needs of leases on a host, given its observation, if there is one.
fn needs_in<'a>(
    state: &'a State,
    host: HostId,
    seen: Option<&'a ObservedHost>,
) -> impl Fn(LeaseId) -> Option<Need> + 'a {
    move |id| state.leases.get(id).map(|record| Need::of(&record.lease, host, seen))
}

/// Whether it runs, or is about to, outside all leases.
fn stays(instance: &Instance) -> bool {
    instance.kind.lease().is_none()
        && matches!(instance.status, InstanceStatus::Building | InstanceStatus::Active)
}

/// Whether it is outside all leases and being destroyed. It keeps its place until it is gone.
fn is_destroyed(instance: &Instance) -> bool {
    instance.kind.lease().is_none() && instance.status == InstanceStatus::Deleting
}

/// An instance before the change, and the write.
type Changed = (Arc<InstanceRecord>, Write);
