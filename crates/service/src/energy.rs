//! Saving power (EN): hosts that nobody needs are switched off, and on again in time.
//!
//! What is decided is written into the record of the host, and only then done to the machine, by steps like all
//! others. So of several services that share a store one switches a host, and after a crash the next one goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, RepackRules};
use leases::energy::{
    self, Alarm, EnergyPlan, Figures, Ground, Metered, PoolReport, PowerRules, PowerState, Sleep, Slept,
    Switch, readiness, settle,
};
use leases::host::{Health, Host};
use leases::ids::{FreePoolId, HostId};
use leases::lease::Lease;
use leases::plan::{Action, Step};
use leases::window::{Window, next_minute};
use leases::work::Budget;
use store::{Commit, HostRecord, LeaseRecord, StoreError, Write};

use crate::deciding::beside_requests;
use crate::execution::memos::Planned;
use crate::leasing::create::{enter_reallocated, reallocated};
use crate::notices::boot_failed;
use crate::places::Kind;
use crate::service::Service;
use crate::settings::{EnergyMode, EnergySettings};
use crate::state::State;
use crate::types::{HostPower, ServiceError};
use crate::writing::Writer;

/// After a change it is not planned again before that: changes come in swarms.
const PLAN_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// But at least so often: guests come and go without being told.
const PLAN_AT_LEAST_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Leases are looked at so often that could be given hosts that draw less.
const REPACK_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Milliwatt-seconds of a watt-hour.
const MILLIWATT_SECONDS: u128 = 3_600_000;
/// Hosts that boot or shut down are looked at so often.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// A host whose power becomes another.
struct Change {
    before: Arc<HostRecord>,
    after: Host,
    slept: Option<Sleep>,
    alarm: Option<Alarm>,
}

impl Service {
    /// How power is saved.
    pub fn energy(&self) -> &EnergySettings {
        &self.settings.energy
    }

    /// The rules that hosts are switched by: unless power is saved, all are on.
    fn power_rules(&self) -> PowerRules {
        let EnergySettings { mode, rules, .. } = self.settings.energy;
        if mode == EnergyMode::On { rules } else { rules.all_on() }
    }

    /// Hosts that are not on, and when each could be had; none if no power is saved and all are on. Dates have no
    /// seconds (API-create), so it is the beginning of a minute.
    pub(crate) fn waking(&self, state: &State, now: Timestamp) -> Option<BTreeMap<HostId, Timestamp>> {
        let rules = &self.settings.energy.rules;
        let saves = self.settings.energy.mode == EnergyMode::On || !state.asleep.is_empty();
        let ready = saves.then(|| readiness(&state.inventory, &state.calendar, rules, now))?;
        Some(ready.into_iter().map(|(host, ready)| (host, next_minute(ready))).collect())
    }

    /// What may be off when, by the rules that there are, whether power is saved or not.
    pub async fn energy_plan(&self, horizon: Option<SignedDuration>) -> Result<EnergyPlan, ServiceError> {
        let rules = self.settings.energy.rules;
        let rules = PowerRules { horizon: horizon.unwrap_or(rules.horizon), ..rules };
        self.consider(|_| Ok(self.plan_energy(&self.snapshot(), &rules, self.now()))).await
    }

    fn plan_energy(&self, state: &State, rules: &PowerRules, now: Timestamp) -> EnergyPlan {
        let observed = self.expected(state);
        let mut kept = state.occupied(&observed);
        kept.extend(self.progress().in_flight.keys().flat_map(|action| action.hosts()));
        // What is being done for its power does not keep a host.
        kept.retain(|host| !state.asleep.contains(host));
        energy::plan(&Ground {
            // A host that is offered is to be on when the offer is accepted.
            calendar: &state.calendar_with_offers(None, now),
            inventory: &state.inventory,
            observed: &observed,
            kept: &kept,
            rules,
            now,
        })
    }

    /// The power of all hosts, by identifier.
    pub fn host_powers(&self) -> Vec<HostPower> {
        let (state, rules) = (self.snapshot(), &self.settings.energy.rules);
        let power = |host: &Host| HostPower {
            boot_time: host.power.boot_time(rules),
            figures: Figures::of(host),
            may_be_off: energy::may_be_off(host),
            host: host.clone(),
        };
        state.inventory.hosts().map(power).collect()
    }

    /// What was saved and used in that time, by free pool.
    pub async fn energy_report(
        &self,
        period: Window,
    ) -> Result<BTreeMap<FreePoolId, PoolReport>, ServiceError> {
        let _place = self.place(Kind::Read).await?;
        let mut sleeps = self.parts.store.sleeps(&period).await?;
        let held = self.parts.store.held_hosts(&period).await?;
        let (state, now) = (self.snapshot(), self.now());
        let asleep = state.asleep.iter().filter_map(|id| state.inventory.host(*id));
        sleeps.extend(asleep.filter_map(|host| {
            let (from, until) = match host.power.state {
                PowerState::Off { since } => (since, now),
                PowerState::Booting { since, off_since } => (off_since?, since),
                _ => return None,
            };
            let slept = Slept { from, until, boot: None, failed: false };
            Some(Sleep { over: false, ..slept_by(host, slept) })
        }));
        let metered = |record: &Arc<HostRecord>| {
            let host = state.inventory.host(record.host.id)?;
            let (pool, figures) = (host.pool, Figures::of(host));
            Some(Metered { host: host.id, pool, since: record.created_at, figures })
        };
        let hosts: Vec<Metered> = state.hosts.values().filter_map(metered).collect();
        // What leases will hold is none of it.
        Ok(beside_requests(|| energy::report(&sleeps, &hosts, &held, period.before(now))))
    }

    /// What becomes of hosts that are being switched, or go on or off by themselves. Says whether anything did.
    pub(crate) async fn settle_power(&self, writer: &Writer<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let rules = self.settings.energy.rules;
        let changes: Vec<Change> = {
            let state = self.snapshot();
            let progress = self.progress();
            let change = |record: &Arc<HostRecord>| {
                let host = &record.host;
                // What was seen may be older than what somebody else has decided since.
                if progress.waits_for_a_look(Action::PowerOn(host.id)) {
                    return None;
                }
                let seen = progress.observed.hosts.get(&host.id);
                let settled = settle(&host.power, seen, &rules, now)?;
                let described = state.inventory.host(host.id)?;
                let slept = settled.slept.map(|slept| slept_by(described, slept));
                let health = match settled.power.state {
                    // Leases are to have others in its place.
                    PowerState::Failed { .. } => Health::Failed,
                    PowerState::On => seen.map_or(host.health, |seen| seen.health),
                    _ => host.health,
                };
                let after = Host { power: settled.power, health, ..host.clone() };
                Some(Change { before: record.clone(), after, slept, alarm: settled.alarm })
            };
            state.hosts.values().filter_map(change).collect()
        };
        self.commit_power(writer, &changes, now).await
    }

    /// Decides which hosts are to be switched. Says whether any are, and when to decide again.
    pub(crate) async fn switch_hosts(
        &self,
        writer: &Writer<'_>,
        now: Timestamp,
    ) -> Result<(bool, Option<Timestamp>), StoreError> {
        let switches = self.parts.fleet.switches_hosts();
        let idle = self.settings.energy.mode != EnergyMode::On && self.state().asleep.is_empty();
        if idle || !switches {
            return Ok((false, None));
        }
        if let Some(next) = self.planned_until(now) {
            return Ok((false, Some(next)));
        }
        let changes: Vec<Change> = {
            let state = self.snapshot();
            let plan = beside_requests(|| self.plan_energy(&state, &self.power_rules(), now));
            // Of hosts that are not seen nobody knows whether they are in use, nor whether they do as spare ones.
            let sees = self.sees_well(now);
            self.progress().power_planned =
                Some(Planned { at: now, revision: state.revision, next_at: plan.wake_at });
            let change = |(id, switch): (HostId, Switch)| {
                let before = state.hosts.get(&id)?.clone();
                let power = match switch {
                    Switch::On if sees || plan.promised.contains(&id) => before.host.power.switched_on(now),
                    Switch::Off if sees => before.host.power.switched_off(now),
                    Switch::On | Switch::Off => return None,
                };
                let after = Host { power, ..before.host.clone() };
                Some(Change { before, after, slept: None, alarm: None })
            };
            plan.switches.iter().copied().filter_map(change).collect()
        };
        let changed = self.commit_power(writer, &changes, now).await?;
        Ok((changed, self.planned_until(now)))
    }

    /// Gives a lease that has not started hosts that draw less, if there is one for which it is worth it. Says whether
    /// there was.
    pub(crate) async fn repack(&self, now: Timestamp) -> Result<bool, StoreError> {
        let find = |budget: &Budget| {
            let state = self.snapshot();
            let moved = self.repacked(&state, now, budget)?;
            Some(reallocated(&state, vec![moved], now))
        };
        let holds = |state: &State, moved: &Vec<(Arc<LeaseRecord>, LeaseRecord)>| {
            let decisions: Vec<_> = moved.iter().map(|(before, after)| (Some(&**before), after)).collect();
            self.still_hold(state, &decisions, now)
        };
        let Some((writer, moved)) = self.decided_by_pass(find, holds).await? else { return Ok(false) };
        let commit_of = |moved: &[(Arc<LeaseRecord>, LeaseRecord)]| {
            let mut commit = Commit::new(now);
            enter_reallocated(&mut commit, moved.to_vec());
            commit
        };
        let tell = |(_, after): &(Arc<LeaseRecord>, LeaseRecord)| {
            tracing::info!(lease = %after.lease.id, "lease repacked");
        };
        writer.commit_all_or_each(&moved, commit_of, tell).await
    }

    /// From how many watt-hours on a lease is worth to be given other hosts, if any is to be looked for now.
    pub(crate) fn repack_due(&self, now: Timestamp) -> Option<u32> {
        let EnergySettings { mode, repack_watt_hours, .. } = self.settings.energy;
        let watt_hours = repack_watt_hours.filter(|_| mode == EnergyMode::On)?;
        let looked_at = self.progress().repacked.map(|(at, _)| at);
        // Later than that it can only be because the clock was set back.
        let lately = looked_at.is_some_and(|at| at <= now && now < at + REPACK_EVERY);
        (!lately).then_some(watt_hours)
    }

    fn repacked(&self, state: &State, now: Timestamp, budget: &Budget) -> Option<Lease> {
        let watt_hours = self.repack_due(now)?;
        let after = self.progress().repacked.and_then(|(_, after)| after);
        let hosts = self.known_hosts(state, now);
        let occupied = state.occupied(&self.observed());
        // Guests beside leases may stay forever.
        let admission = self.admission(state, None, &hosts, now, budget);
        let admission = Admission { avoided: Some(&occupied), ..admission };
        let settled = now.checked_add(self.settings.replan_notice).unwrap_or(Timestamp::MAX);
        let rules =
            RepackRules { settled, least_milliwatt_seconds: u128::from(watt_hours) * MILLIWATT_SECONDS };
        let pending = state.leases.pending().map(|record| &record.lease);
        let found = admission.repack(pending, after, &rules);
        self.progress().repacked = Some((now, found.looked_at));
        found.repacked.map(|(lease, _)| lease)
    }

    /// Has hosts that boot or shut down looked at now and then, as long as there are any. Says whether any are.
    pub(crate) fn watch_power(&self, now: Timestamp) -> bool {
        let state = self.state();
        let mut progress = self.progress();
        // Later than that it can only be because the clock was set back.
        if progress.watch_power_at.is_some_and(|at| at > now && at <= now + LOOK_EVERY) {
            return false;
        }
        let moves = |host: &&Host| {
            matches!(host.power.state, PowerState::Booting { .. } | PowerState::ShuttingDown { .. })
        };
        let asleep = state.asleep.iter().filter_map(|id| state.inventory.host(*id));
        let moving: Vec<HostId> = asleep.filter(moves).map(|host| host.id).collect();
        progress.watch_power_at = (!moving.is_empty()).then_some(now + LOOK_EVERY);
        for host in &moving {
            progress.look_at(*host, None);
        }
        !moving.is_empty()
    }

    /// Until when what was decided last still holds; none if it is to be decided again.
    fn planned_until(&self, now: Timestamp) -> Option<Timestamp> {
        let planned = self.progress().power_planned?;
        let known = planned.revision == self.state().revision;
        let after = if known { PLAN_AT_LEAST_EVERY } else { PLAN_AGAIN_AFTER };
        let next = planned.next_at.unwrap_or(Timestamp::MAX).min(planned.at + after);
        // Later than that it can only be because the clock was set back.
        (now < next && planned.at <= now).then_some(next)
    }

    async fn commit_power(
        &self,
        writer: &Writer<'_>,
        changes: &[Change],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let commit_of = |changes: &[Change]| {
            let mut commit = Commit::new(now);
            for Change { before, after, slept, alarm } in changes {
                let record = HostRecord {
                    host: after.clone(),
                    version: before.version.next(),
                    created_at: before.created_at,
                    updated_at: Some(now),
                };
                let expected = Some(before.version);
                commit.writes.push(Write::Host { record: Box::new(record), expected });
                commit.slept.extend(slept.clone());
                if *alarm == Some(Alarm::BootFailed) {
                    commit.notifications.push(boot_failed(after));
                }
            }
            commit
        };
        writer.commit_all_or_each(changes, commit_of, |change| self.tell_power(change)).await
    }

    fn tell_power(&self, change: &Change) {
        let (host, name) = (change.after.id, &change.after.name);
        let (from, to) = (change.before.host.power.state.name(), change.after.power.state.name());
        tracing::info!(%host, name, from, to, "host power changed");
        match change.alarm {
            Some(alarm @ Alarm::BootFailed) => {
                self.progress().boots_failed += 1;
                tracing::error!(%host, name, %alarm, "host failed");
            }
            Some(alarm) => tracing::warn!(%host, name, %alarm, "host power unexpected"),
            None => {}
        }
    }

    /// What is to be done to machines for their power, and until when it is waited for them at most.
    pub(crate) fn power_steps(&self, now: Timestamp) -> (Vec<Step>, Option<Timestamp>) {
        let state = self.state();
        let progress = self.progress();
        let backoff = self.settings.plan_rules.backoff;
        let rules = &self.settings.energy.rules;
        let (mut steps, mut wake_at) = (Vec::new(), None);
        for host in state.asleep.iter().filter_map(|id| state.inventory.host(*id)) {
            let until = match host.power.state {
                PowerState::Booting { since, .. } => Some(host.power.boots_until(since, rules)),
                PowerState::ShuttingDown { since } => Some(since + rules.longest_shutdown),
                _ => None,
            };
            wake_at = wake_at.into_iter().chain(until).min();
            let seen = progress.observed.hosts.get(&host.id);
            let Some(action) = energy::step(host.id, &host.power, seen) else { continue };
            let failures = state.history.failures.get(&action);
            let not_before = failures.map_or(now, |failures| backoff.next_attempt(failures).max(now));
            steps.push(Step { action, lease: None, not_before });
        }
        (steps, wake_at)
    }
}

/// The health of a host as it is to be recorded: one that is off, or boots, is not ill; one that does not come up is.
pub(crate) fn recorded_health(host: &Host, seen: Health) -> Health {
    match host.power.state {
        _ if host.power.excuses_silence() => host.health,
        PowerState::Failed { .. } if seen != Health::Up => Health::Failed,
        _ => seen,
    }
}

fn slept_by(host: &Host, slept: Slept) -> Sleep {
    let figures = Figures::of(host);
    Sleep {
        host: host.id,
        pool: host.pool,
        window: Window::new(slept.from, slept.until.max(slept.from)).unwrap_or(Window::ALWAYS),
        saved_milliwatts: figures.saved_milliwatts(),
        off_milliwatts: figures.off_milliwatts,
        over: true,
        boot: slept.boot,
        failed: slept.failed,
    }
}
