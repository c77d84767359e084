//! Power saving (EN): switches idle hosts off, and on again in time.
//!
//! A switch is first written to the host's record and then carried out by a step like any other. So only one
//! of several services that share a store switches a host, and after a crash the next service continues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::RepackRules;
use leases::energy::{
    self, Alarm, EnergyPlan, Figures, Ground, Metered, PoolReport, PowerRules, PowerState, Sleep, Slept,
    Switch, readiness, settle,
};
use leases::host::{Health, Host};
use leases::ids::{FreePoolId, HostId};
use leases::lease::Lease;
use leases::plan::{Action, Powered, Step};
use leases::window::{Window, next_minute};
use leases::work::Budget;
use store::{Commit, HostRecord, LeaseRecord, Revision, StoreError, Write};

use crate::decider::Decider;
use crate::deciding::beside_requests;
use crate::entries::{Effect, Entries, Entry};
use crate::execution::draft::Draft;
use crate::execution::memos::Planned;
use crate::execution::pause::Pause;
use crate::leasing::moving::{enter_reallocated, reallocated};
use crate::notices::boot_failed;
use crate::service::Service;
use crate::settings::{EnergyMode, EnergySettings};
use crate::state::State;
use crate::types::{HostPower, ServiceError};

/// Minimum pause before planning again after a change. Changes come in bursts.
const PLAN_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// Maximum time between plans. Guests come and go without notice.
const PLAN_AT_LEAST_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Interval of looking for leases that could get hosts with a lower power draw.
const REPACK_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Milliwatt-seconds per watt-hour.
const MILLIWATT_SECONDS: u128 = 3_600_000;
/// Interval of observing hosts that boot or shut down.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// A change of a host's power state.
struct Change {
    before: Arc<HostRecord>,
    after: Host,
    slept: Option<Sleep>,
    alarm: Option<Alarm>,
}

/// Access to power saving: settings, plan and report.
#[derive(Clone, Copy, Debug)]
pub struct PowerSaving<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> PowerSaving<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    pub fn settings(self) -> &'a EnergySettings {
        &self.service.decider.settings.energy
    }

    /// Times in which hosts can be off by the current rules. Works even if power saving is disabled.
    pub async fn plan(self, horizon: Option<SignedDuration>) -> Result<EnergyPlan, ServiceError> {
        let rules = self.service.decider.settings.energy.rules;
        let rules = PowerRules { horizon: horizon.unwrap_or(rules.horizon), ..rules };
        self.service
            .consider(|_| {
                Ok(self.service.decider.plan_energy(&self.service.snapshot(), &rules, self.service.now()))
            })
            .await
    }

    /// Power of hosts, sorted by identifier: at most `limit` hosts after `after`.
    pub fn hosts_after(self, after: Option<HostId>, limit: usize) -> Vec<HostPower> {
        let records = self.service.hosts().after(after, limit);
        let (state, rules) = (self.service.snapshot(), &self.service.decider.settings.energy.rules);
        let power = |host: &Host| HostPower {
            boot_time: host.power.boot_time(rules),
            figures: Figures::of(host),
            may_be_off: energy::may_be_off(host),
            host: host.clone(),
        };
        records.iter().filter_map(|record| state.inventory.host(record.host.id)).map(power).collect()
    }

    /// Energy saved and used in the period, by free pool.
    pub async fn report(self, period: Window) -> Result<BTreeMap<FreePoolId, PoolReport>, ServiceError> {
        let store = &self.service.parts.store;
        let mut sleeps = self.service.store_read(store.sleeps(&period)).await?;
        let held = self.service.store_read(store.held_hosts(&period)).await?;
        let (state, now) = (self.service.snapshot(), self.service.now());
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
        // Excludes future holdings of leases.
        Ok(beside_requests(|| energy::report(&sleeps, &hosts, &held, period.before(now))))
    }

    /// Gives one pending lease other hosts with a lower power draw, if that saves enough. Returns whether it
    /// found one.
    pub(crate) async fn repack(self, now: Timestamp) -> Result<bool, StoreError> {
        let find = |budget: &Budget| {
            let state = self.service.snapshot();
            let moved = self.service.decider.repacked(&state, now, budget)?;
            Some(reallocated(&state, vec![moved], now))
        };
        let holds = |state: &State, moved: &Vec<(Arc<LeaseRecord>, LeaseRecord)>| {
            let decisions: Vec<_> = moved.iter().map(|(before, after)| (Some(&**before), after)).collect();
            self.service.decider.still_hold(state, &decisions, now)
        };
        let Some((writer, moved)) = self.service.decided_by_pass(find, holds).await? else {
            return Ok(false);
        };
        let entry = |(before, after): (Arc<LeaseRecord>, LeaseRecord)| {
            let id = after.lease.id;
            let mut commit = Commit::new(now);
            enter_reallocated(&mut commit, vec![(before, after)]);
            Entry::new(commit, Effect::LeaseRepacked(id))
        };
        let entries = Entries::of(moved.into_iter().map(entry).collect());
        Ok(writer.commit_entries(entries, now).await?.any)
    }

    /// Schedules an observation of hosts that boot or shut down, every [`LOOK_EVERY`]. Returns whether it
    /// scheduled one.
    pub(crate) fn watch(self, now: Timestamp) -> bool {
        let state = self.service.state();
        let mut progress = self.service.progress();
        if progress.memos.power_watched.is_some_and(|pause| pause.lasts(now)) {
            return false;
        }
        let moves = |host: &&Host| {
            matches!(host.power.state, PowerState::Booting { .. } | PowerState::ShuttingDown { .. })
        };
        let asleep = state.asleep.iter().filter_map(|id| state.inventory.host(*id));
        let moving: Vec<HostId> = asleep.filter(moves).map(|host| host.id).collect();
        progress.memos.power_watched = (!moving.is_empty()).then(|| Pause::of(now, LOOK_EVERY));
        for host in &moving {
            progress.look_at(*host, None);
        }
        !moving.is_empty()
    }
}

impl Decider {
    /// Rules for switching hosts. If power saving is disabled, all hosts are on.
    fn power_rules(&self) -> PowerRules {
        let EnergySettings { mode, rules, .. } = self.settings.energy;
        if mode == EnergyMode::On { rules } else { rules.all_on() }
    }

    /// Earliest availability of hosts that are not on, assuming they are woken. `None` if power saving is
    /// disabled and all hosts are on. Rounded up to the minute because dates have no seconds (API-create).
    pub(crate) fn waking(&self, state: &State, now: Timestamp) -> Option<BTreeMap<HostId, Timestamp>> {
        let rules = &self.settings.energy.rules;
        let saves = self.settings.energy.mode == EnergyMode::On || !state.asleep.is_empty();
        let ready = saves.then(|| readiness(&state.inventory, &state.calendar, rules, now))?;
        Some(ready.into_iter().map(|(host, ready)| (host, next_minute(ready))).collect())
    }

    fn plan_energy(&self, state: &State, rules: &PowerRules, now: Timestamp) -> EnergyPlan {
        let observed = self.expected(state);
        let mut kept = self.occupied(state, &observed, now);
        kept.extend(self.progress().in_flight.keys().flat_map(|action| action.hosts()));
        // A step that switches a host isn't a reason to keep the host on.
        kept.retain(|host| !state.asleep.contains(host));
        energy::plan(&Ground {
            // An offered host must be on when the offer is accepted.
            calendar: &state.calendar_with_offers(|_| true, now),
            inventory: &state.inventory,
            observed: &observed,
            kept: &kept,
            rules,
            now,
        })
    }

    /// Updates the power state of hosts that are being switched, or that went on or off by themselves.
    pub(crate) fn settle_power(&self, draft: &mut Draft) {
        let now = draft.now;
        let rules = self.settings.energy.rules;
        let changes: Vec<Change> = {
            let state = draft.state();
            let progress = self.progress();
            let seen_off = progress.observed.hosts.iter().filter(|(_, seen)| seen.powered == Powered::Off);
            let concerned: BTreeSet<HostId> =
                state.asleep.iter().copied().chain(seen_off.map(|(id, _)| *id)).collect();
            let change = |id: HostId| {
                let record = state.hosts.get(&id)?;
                let host = &record.host;
                // The observation might be older than another service's decision.
                if progress.waits_for_a_look(Action::PowerOn(host.id)) {
                    return None;
                }
                let seen = progress.observed.hosts.get(&host.id);
                let settled = settle(&host.power, seen, &rules, now)?;
                let described = state.inventory.host(host.id)?;
                let slept = settled.slept.map(|slept| slept_by(described, slept));
                let health = match settled.power.state {
                    // Leases should get other hosts instead.
                    PowerState::Failed { .. } => Health::Failed,
                    PowerState::On => seen.map_or(host.health, |seen| seen.health),
                    _ => host.health,
                };
                let after = Host { power: settled.power, health, ..host.clone() };
                Some(Change { before: record.clone(), after, slept, alarm: settled.alarm })
            };
            concerned.into_iter().filter_map(change).collect()
        };
        self.enter_power(draft, changes);
    }

    /// Decides which hosts to switch.
    pub(crate) fn switch_hosts(&self, draft: &mut Draft) {
        let (now, known) = (draft.now, draft.state().revision);
        let switches = self.abilities.switches_hosts;
        let idle = self.settings.energy.mode != EnergyMode::On && draft.state().asleep.is_empty();
        if idle || !switches {
            return;
        }
        if let Some(next) = self.planned_until(known, now) {
            draft.wake_at([next]);
            return;
        }
        let changes: Vec<Change> = {
            let state = draft.state();
            let plan = self.plan_energy(&state, &self.power_rules(), now);
            // Without a recent observation, it is unknown whether hosts are in use or work as spares.
            let sees = self.sees_well(now);
            self.progress().memos.power_planned =
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
        draft.wake_at(self.planned_until(known, now));
        self.enter_power(draft, changes);
    }

    /// Minimum saving in watt-hours that justifies other hosts for a lease. `None` if repacking is disabled
    /// or not due.
    pub(crate) fn repack_due(&self, now: Timestamp) -> Option<u32> {
        let EnergySettings { mode, repack_watt_hours, .. } = self.settings.energy;
        let watt_hours = repack_watt_hours.filter(|_| mode == EnergyMode::On)?;
        let lately = self.progress().memos.repacked.is_some_and(|(pause, _)| pause.lasts(now));
        (!lately).then_some(watt_hours)
    }

    fn repacked(&self, state: &State, now: Timestamp, budget: &Budget) -> Option<Lease> {
        let watt_hours = self.repack_due(now)?;
        let after = self.progress().memos.repacked.and_then(|(_, after)| after);
        let facts = self.host_facts(state, now);
        let admission = self.admission(state, &facts, now, budget);
        let settled = self.settings.settled_until(now);
        let rules =
            RepackRules { settled, least_milliwatt_seconds: u128::from(watt_hours) * MILLIWATT_SECONDS };
        let pending = state.leases.pending().map(|record| &record.lease);
        let found = admission.repack(pending, after, &rules);
        self.progress().memos.repacked = Some((Pause::of(now, REPACK_EVERY), found.looked_at));
        found.repacked.map(|(lease, _)| lease)
    }

    /// Time until which the last plan holds; `None` if a new plan is due.
    fn planned_until(&self, known: Revision, now: Timestamp) -> Option<Timestamp> {
        let planned = self.progress().memos.power_planned?;
        let known = planned.revision == known;
        let after = if known { PLAN_AT_LEAST_EVERY } else { PLAN_AGAIN_AFTER };
        let next = planned.next_at.unwrap_or(Timestamp::MAX).min(planned.at + after);
        Pause::until(planned.at, next).rest(now)
    }

    fn enter_power(&self, draft: &mut Draft, changes: Vec<Change>) {
        let now = draft.now;
        let entry = |change: Change| {
            let Change { before, after, slept, alarm } = change;
            let record = HostRecord {
                host: after.clone(),
                version: before.version.next(),
                created_at: before.created_at,
                updated_at: Some(now),
            };
            let commit = Commit {
                writes: vec![Write::Host { record: Box::new(record), expected: Some(before.version) }],
                slept: slept.into_iter().collect(),
                notifications: alarm
                    .filter(|alarm| *alarm == Alarm::BootFailed)
                    .map(|_| boot_failed(&after))
                    .into_iter()
                    .collect(),
                ..Commit::new(now)
            };
            Entry::new(commit, Effect::HostPower { before, after: Box::new(after), alarm })
        };
        draft.enter(self, changes.into_iter().map(entry).collect());
    }

    /// Adds steps that switch machines. Wakes the loop when a failed step is due again and when a boot or
    /// shutdown reaches its maximum duration.
    pub(crate) fn power_steps(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let mut progress = self.progress();
        progress.memos.switched_on.retain(|host, _| state.asleep.contains(host));
        let backoff = self.settings.plan_rules.backoff;
        let rules = &self.settings.energy.rules;
        let (mut steps, mut wake_at): (Vec<Step>, Option<Timestamp>) = (Vec::new(), None);
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
            let retry = failures.map(|failures| backoff.next_attempt(failures));
            let last =
                progress.memos.switched_on.get(&host.id).filter(|_| action == Action::PowerOn(host.id));
            let again = last.map(|last| energy::next_switch_on(&host.power, *last));
            let not_before = [retry, again].into_iter().flatten().fold(now, Timestamp::max);
            steps.push(Step { action, lease: None, not_before });
        }
        drop(progress);
        let later = steps.iter().map(|step| step.not_before).filter(|at| *at > now);
        draft.wake_at(wake_at.into_iter().chain(later));
        draft.take_steps(steps);
    }
}

/// Health to record for a host. A host that is off or booting keeps its recorded health. A host that doesn't
/// finish booting has failed.
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
