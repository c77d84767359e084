//! Observation of the fleet: all hosts at intervals, and hosts with recent steps immediately.

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

/// Delay before a fleet that doesn't answer is asked again. It doubles with each failure.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(1);
/// Maximum delay.
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Result of a look.
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
    /// `None` if the look wasn't at all machines.
    machines: Option<BTreeMap<HostId, Machine>>,
    observed: Observed,
    /// Differences from the store; empty if the look wasn't at all machines.
    differences: Vec<Difference>,
}

impl Execution<'_> {
    /// Looks that are due: at the whole fleet at intervals, and immediately at hosts with recent steps. Looks
    /// of the second kind don't overlap in hosts, so that a host that is slow to observe doesn't delay the
    /// rest.
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

    /// Observes the fleet within the look's time limit.
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
        // First find out which store the fleet belongs to. If it came last, the time limit of a slow fleet
        // might always end before it.
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

    /// Notes the result of a look. A fleet that doesn't answer is not an error: plans use the last
    /// observation, but don't conclude anything from missing hosts or guests.
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
                    // A request might be waiting for the preparation of its reservation.
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
                // Looks at the whole fleet determine when a fleet that doesn't answer is asked again.
                if look.for_decisions {
                    return;
                }
                let pause = Pause::of(now, backoff(FIRST_RETRY, LONGEST_RETRY, progress.blind));
                progress.looked_at_all = Some(pause);
                progress.blind = progress.blind.saturating_add(1);
            }
        }
    }

    /// Records observed machines immediately.
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
    /// Updates host records from observations: health and sizes of machines (W30).
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

    /// Hosts that were observed since they were last recorded and differ from their record. Earlier
    /// observations are not compared again, because another service might have recorded newer ones.
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
        // Hosts as recorded, without properties from their pools.
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

    /// Whether the fleet answers and was observed recently.
    pub(crate) fn sees_well(&self, now: Timestamp) -> bool {
        let progress = self.progress();
        progress.sees() && !self.out_of_sight(progress.seen_at, now)
    }

    /// Whether the last observation of the fleet is older than `unknown_after`, so the state of its hosts is
    /// unknown.
    pub(crate) fn out_of_sight(&self, seen_at: Option<Timestamp>, now: Timestamp) -> bool {
        seen_at.is_some_and(|seen| now.duration_since(seen) > self.settings.unknown_after)
    }
}

/// Health of a host. For its lease, a host that the fleet doesn't know has failed.
fn health(observed: &Observed, host: HostId) -> Health {
    observed.hosts.get(&host).map_or(Health::Failed, |seen: &ObservedHost| seen.health)
}
