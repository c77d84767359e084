//! Looking at the fleet: at all of it now and then, and at what was touched at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet::{Difference, FleetError, Machine};
use jiff::{SignedDuration, Timestamp};
use leases::host::{Health, Host};
use leases::ids::HostId;
use leases::plan::{Observed, ObservedHost};
use store::{Commit, HostRecord, StoreError, Write};

use super::Execution;
use super::backoff::backoff;
use super::draft::Draft;
use super::look::Look;
use super::pause::Pause;
use crate::decider::Decider;
use crate::drift::Repairs;
use crate::energy::recorded_health;
use crate::entries::{Effect, Entry};
use crate::hosts::refreshed;
use crate::state::State;
use crate::writing::Writer;

/// Not more often than this a fleet is asked again that does not answer.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
/// But at least so often.
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// What was seen.
#[derive(Clone, Debug)]
pub struct Looked {
    look: Look,
    answer: Result<Seen, FleetError>,
}

impl Looked {
    pub(super) fn failed(look: Look, error: FleetError) -> Self {
        Self { look, answer: Err(error) }
    }
}

#[derive(Clone, Debug)]
struct Seen {
    /// None if not all of them were asked for.
    machines: Option<BTreeMap<HostId, Machine>>,
    observed: Observed,
    /// Differences from what is stored, if all machines were asked for.
    differences: Vec<Difference>,
}

impl Execution<'_> {
    /// The looks that are due: at the whole fleet now and then, and at once at what was touched. Each host is in
    /// one look of the second kind at a time, so that one that is slow to be seen hides no other.
    pub(super) fn looks(self, now: Timestamp) -> Vec<Look> {
        let state = self.service.state();
        let mut progress = self.service.progress();
        let step_time = self.service.decider.settings.step_time;
        progress.give_up_looks(now, step_time);
        progress.look_at_steps_elsewhere(now);
        let time = (now, now + step_time);
        let due = !progress.looked_at_all.is_some_and(|pause| pause.lasts(now));
        let mut looks = Vec::new();
        let all_hosts = || state.inventory.hosts().map(|host| host.id).collect();
        if due && !progress.looks_at_all() {
            looks.push(progress.begin_look(true, all_hosts(), time));
        }
        looks.extend(progress.begin_look_for_decisions(all_hosts, time));
        if progress.sees() && progress.anything_to_look_at() {
            let hosts = progress.hosts_to_look_at();
            looks.push(progress.begin_look(false, hosts, time));
        }
        if progress.sees() {
            looks.extend(progress.begin_look_at_heard(time));
        }
        looks
    }

    /// Looks, for as long as there is patience.
    pub(super) async fn look(self, look: Look) -> Looked {
        let answer = self.service.until(look.until, self.see(&look)).await;
        Looked { look, answer }
    }

    async fn see(self, look: &Look) -> Result<Seen, FleetError> {
        let (fleet, addresses) = (&self.service.parts.fleet, self.service.addresses());
        if !look.all {
            let observed = fleet.observe(&look.hosts, &addresses).await?;
            return Ok(Seen { machines: None, observed, differences: Vec::new() });
        }
        // Whose the fleet is, is asked first: where questions take long, it would never be known if it came last.
        let (machines, observed) = if self.service.knows_whose() {
            Repairs::of(self.service).expect().await;
            fleet.survey(&look.hosts, &addresses).await?
        } else {
            let machines = fleet.machines().await?;
            Box::pin(self.service.look_whose(&machines)).await?;
            if self.service.knows_whose() {
                Repairs::of(self.service).expect().await;
            }
            (machines, fleet.observe(&look.hosts, &addresses).await?)
        };
        Ok(Seen {
            machines: Some(machines.into_iter().map(|machine| (machine.id, machine)).collect()),
            observed,
            differences: fleet.differences().await,
        })
    }

    /// Notes what was seen. A fleet that does not answer is no error: plans go on with what was seen last, but
    /// conclude nothing from what is not there.
    pub(super) fn note_look(self, looked: Looked) {
        let now = self.service.now();
        let state = self.service.state();
        let mut progress = self.service.progress();
        let Looked { look, answer } = looked;
        if look.all || look.for_decisions {
            progress.sight.note(&look, answer.is_ok(), now);
            self.service.looked.send_modify(|count| *count += 1);
        }
        match answer {
            Ok(Seen { machines, mut observed, differences }) => {
                state.instances.mark_preemptible(&mut observed);
                if progress.saw(&look, observed, |host| state.hosts.contains_key(&host), now) {
                    // Somebody may wait for what a reservation needs.
                    self.service.changes.send_modify(|count| *count += 1);
                }
                if machines.is_some() {
                    progress.note_differences(differences);
                    progress.machines = machines;
                    progress.blind = 0;
                    progress.seen_at = Some(now);
                    progress.round_took = now.duration_since(look.began).max(SignedDuration::ZERO);
                    progress.looked_at_all =
                        Some(Pause::of(now, self.service.decider.settings.observe_interval));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "fleet observation failed");
                progress.saw_nothing(look.number);
                // The rounds say when a fleet that doesn't answer is asked again.
                if look.for_decisions {
                    return;
                }
                let pause = Pause::of(now, backoff(FIRST_RETRY, LONGEST_RETRY, progress.blind));
                progress.looked_at_all = Some(pause);
                progress.blind = progress.blind.saturating_add(1);
            }
        }
    }

    /// Enters what was seen of these machines at once.
    pub(crate) async fn record_machines(
        self,
        writer: &Writer<'_>,
        machines: BTreeMap<HostId, Machine>,
    ) -> Result<(), StoreError> {
        let now = self.service.now();
        let mut draft = Draft::new(self.service.snapshot(), now);
        draft.machines = Some(Arc::new(machines));
        self.service.decider.record_hosts(&mut draft);
        self.commit_decision(writer, &mut draft.decided(), now).await.map(drop)
    }
}

impl Decider {
    /// Enters what was seen of hosts into their records: health, and the sizes of machines (W30).
    pub(super) fn record_hosts(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let entry = |host: Host| {
            let before = Arc::clone(state.hosts.get(&host.id)?);
            let record = HostRecord {
                host,
                version: before.version.next(),
                created_at: before.created_at,
                updated_at: Some(now),
            };
            let health = (before.host.health != record.host.health).then_some(record.host.health);
            let write = Write::Host { record: Box::new(record), expected: Some(before.version) };
            Some(Entry::new(
                Commit { writes: vec![write], ..Commit::new(now) },
                Effect::HostSeen { before, health },
            ))
        };
        let changed = self.changed_hosts(&state, draft.machines.as_deref(), now);
        let entries = changed.into_iter().filter_map(entry).collect();
        drop(state);
        draft.record(self.progress().unrecorded.clone());
        draft.enter(self, entries);
    }

    /// Hosts that were seen since they were last recorded, and are not as they are on record. What was seen
    /// before that is not compared again: somebody else may have recorded what is newer.
    fn changed_hosts(
        &self,
        state: &State,
        machines: Option<&BTreeMap<HostId, Machine>>,
        now: Timestamp,
    ) -> Vec<Host> {
        let mut progress = self.progress();
        if self.out_of_sight(progress.seen_at, now) {
            progress.lose_sight();
        }
        let mut changed: BTreeMap<HostId, Host> = match machines {
            Some(machines) => refreshed(state, machines).into_iter().map(|host| (host.id, host)).collect(),
            None => BTreeMap::new(),
        };
        // As they are on record: what their pools say of them is no part of it.
        for host in progress.unrecorded.iter().filter_map(|id| Some(&state.hosts.get(id)?.host)) {
            let now = changed.get(&host.id).unwrap_or(host);
            let health = health(&progress.observed, host.id);
            if now.health != health {
                let now = Host { health, ..now.clone() };
                changed.insert(host.id, now);
            }
        }
        for (id, host) in &mut changed {
            if let Some(record) = state.hosts.get(id) {
                host.health = recorded_health(&record.host, host.health);
            }
        }
        changed.retain(|id, host| state.hosts.get(id).is_none_or(|record| record.host != *host));
        changed.into_values().collect()
    }

    /// Whether the fleet answers, and was seen lately.
    pub(crate) fn sees_well(&self, now: Timestamp) -> bool {
        let progress = self.progress();
        progress.sees() && !self.out_of_sight(progress.seen_at, now)
    }

    /// Whether nothing was heard of the fleet for so long that nobody knows how its hosts are.
    pub(crate) fn out_of_sight(&self, seen_at: Option<Timestamp>, now: Timestamp) -> bool {
        seen_at.is_some_and(|seen| now.duration_since(seen) > self.settings.unknown_after)
    }
}

/// A host that the fleet does not know has failed for whoever leases it.
fn health(observed: &Observed, host: HostId) -> Health {
    observed.hosts.get(&host).map_or(Health::Failed, |seen: &ObservedHost| seen.health)
}
