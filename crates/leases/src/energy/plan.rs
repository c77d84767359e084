//! Plans which hosts can be off and when, and which to switch now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::slack::Slack;
use super::staging::{Boot, Staged, next_use};
use super::{Draw, Figures, PowerRules, PowerState, may_be_off};
use crate::calendar::Calendar;
use crate::host::{Health, Host, Inventory};
use crate::ids::{FreePoolId, HostId};
use crate::plan::{Observed, Place};
use crate::window::{Window, earlier, later};

/// Inputs of [`plan`].
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub calendar: &'a Calendar,
    pub inventory: &'a Inventory,
    pub observed: &'a Observed,
    /// Hosts that must not be switched off now, for example because a guest is about to arrive.
    pub kept: &'a BTreeSet<HostId>,
    pub rules: &'a PowerRules,
    pub now: Timestamp,
}

/// Rests of hosts, and switches that are due now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnergyPlan {
    pub pools: BTreeMap<FreePoolId, PoolPlan>,
    /// Hosts to switch now.
    pub switches: Vec<(HostId, Switch)>,
    /// Subset of `switches`: hosts switched on because a lease has booked them.
    pub promised: BTreeSet<HostId>,
    /// Time of the next switch if nothing changes.
    pub wake_at: Option<Timestamp>,
}

/// Direction of a power switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// Plan for one free pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolPlan {
    /// Total number of hosts in the pool.
    pub hosts: usize,
    /// Number of hosts that must be on, as a step function of time.
    pub needed: Vec<Need>,
    /// Times when hosts can be off.
    pub rests: Vec<Rest>,
    /// Energy saved compared with leaving the hosts idle, in milliwatt-seconds.
    pub saved_milliwatt_seconds: u128,
}

impl PoolPlan {
    /// Maximum number of hosts that must be on at the same time.
    pub fn most_needed(&self) -> usize {
        self.needed.iter().map(|need| need.hosts).max().unwrap_or(0)
    }
}

/// A step in the number of hosts that must be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Start of the step. It lasts until the next one.
    pub from: Timestamp,
    /// Leased hosts, hosts with guests, and spare hosts.
    pub hosts: usize,
}

/// A period during which a host can be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    pub host: HostId,
    pub from: Timestamp,
    /// Time to switch the host on again; `None` if that is beyond the horizon.
    pub until: Option<Timestamp>,
}

/// A host with the gaps between its leases.
struct Candidate<'a> {
    host: &'a Host,
    figures: Figures,
    /// Start of each gap, and start of the lease that ends it (`None` if no lease follows).
    gaps: Vec<(Timestamp, Option<Timestamp>)>,
    /// Counts as a free host during its gaps.
    in_play: bool,
    /// Can be switched off right now.
    ready: bool,
    /// Is off or shutting down.
    asleep: bool,
}

/// A rest that later steps of the planning can shorten or drop.
struct Draft {
    rest: Rest,
    /// Deadline for the host to be up again.
    by: Option<Timestamp>,
    /// The host is off already, so no switch is needed.
    asleep: bool,
    pool: FreePoolId,
}

/// Computes rests for all pools and the switches that are due at `ground.now`.
pub fn plan(ground: &Ground<'_>) -> EnergyPlan {
    let mut pools: BTreeMap<FreePoolId, Vec<Candidate<'_>>> = BTreeMap::new();
    for host in ground.inventory.hosts() {
        pools.entry(host.pool).or_default().push(ground.candidate(host));
    }
    let mut plan = EnergyPlan::default();
    let mut drafts = Vec::new();
    for (pool, candidates) in &pools {
        let needed = ground.needed(candidates);
        plan.pools.insert(*pool, PoolPlan { hosts: candidates.len(), needed, ..PoolPlan::default() });
        ground.rests(*pool, candidates, &mut drafts);
    }
    let asleep: Vec<&Host> = pools.values().flatten().filter(|c| c.asleep).map(|c| c.host).collect();
    ground.leave_out_hasty(&asleep, &mut drafts);
    let staged = ground.staged(&asleep, &drafts);
    for draft in &mut drafts {
        // Only leases move the time to switch on forward. A host that no lease waits for can be late without
        // harm.
        let promised = staged.from.get(&draft.rest.host).filter(|_| draft.rest.from == ground.now);
        draft.rest.until = draft.rest.until.into_iter().chain(promised.copied()).min();
    }
    ground.switch(&asleep, &drafts, &staged, &mut plan);
    for draft in drafts {
        let Some(pool) = plan.pools.get_mut(&draft.pool) else { continue };
        pool.saved_milliwatt_seconds += ground.saved(&draft.rest);
        pool.rests.push(draft.rest);
    }
    for pool in plan.pools.values_mut() {
        pool.rests.sort_by_key(|rest| (rest.from, rest.host));
    }
    plan
}

impl<'a> Ground<'a> {
    fn horizon(&self) -> Window {
        Window::starting(self.now, self.rules.horizon)
    }

    fn candidate(&self, host: &'a Host) -> Candidate<'a> {
        let state = host.power.state;
        let asleep = matches!(state, PowerState::Off { .. } | PowerState::ShuttingDown { .. });
        let on = state == PowerState::On;
        let gaps = self.gaps(host.id);
        let busy = gaps.first().is_none_or(|(from, _)| *from > self.now);
        let seen = self.observed.hosts.get(&host.id);
        let empty = seen.is_some_and(|seen| seen.guests.is_empty() && seen.slots.is_empty());
        // Fenced hosts are on their way to or from the free pool.
        let given_back = |place| matches!(place, Place::FreePool | Place::Fenced { .. });
        let given_back = seen.is_some_and(|seen| given_back(seen.place));
        // Guests of a running lease leave at its end; other guests can stay forever.
        let vacant = busy || asleep || (given_back && empty && !self.kept.contains(&host.id));
        let works = host.health == Health::Up && seen.is_some_and(|seen| asleep || seen.health == Health::Up);
        let settled = matches!(state, PowerState::On) || asleep;
        let in_play = host.reservable && works && vacant && settled;
        let free = seen.is_some_and(|seen| seen.place == Place::FreePool);
        Candidate {
            host,
            figures: Figures::of(host),
            gaps,
            in_play,
            ready: on && free && empty && !self.kept.contains(&host.id),
            asleep,
        }
    }

    /// Times without a lease on the host. Cleaning time after a lease isn't part of a gap.
    fn gaps(&self, host: HostId) -> Vec<(Timestamp, Option<Timestamp>)> {
        let mut gaps = Vec::new();
        let mut free_from = self.now;
        for (window, _) in self.calendar.bookings(host) {
            if window.start() > free_from {
                gaps.push((free_from, Some(window.start())));
            }
            free_from = free_from.max(later(window.end(), self.calendar.cleaning_time()));
        }
        gaps.push((free_from, None));
        let end = self.horizon().end();
        gaps.retain(|(from, _)| *from < end);
        gaps
    }

    /// Part of a gap within the horizon.
    fn clipped(&self, (from, until): (Timestamp, Option<Timestamp>)) -> Window {
        let gap = Window::new(from, until.unwrap_or(Timestamp::MAX)).unwrap_or(self.horizon());
        gap.since(self.now).before(self.horizon().end())
    }

    /// Number of hosts that must be on over time: leased hosts, hosts with guests, and spare hosts.
    fn needed(&self, candidates: &[Candidate<'_>]) -> Vec<Need> {
        let mut changes: BTreeMap<Timestamp, i64> = BTreeMap::from([(self.now, 0)]);
        for candidate in candidates.iter().filter(|candidate| candidate.in_play) {
            for gap in &candidate.gaps {
                let gap = self.clipped(*gap);
                *changes.entry(gap.start()).or_default() += 1;
                *changes.entry(gap.end()).or_default() -= 1;
            }
        }
        changes.remove(&self.horizon().end());
        let mut free = 0_i64;
        let mut needed: Vec<Need> = Vec::new();
        for (from, change) in changes {
            free += change;
            let not_needed = usize::try_from(free - i64::from(self.rules.spare_hosts)).unwrap_or(0);
            let hosts = candidates.len() - not_needed.min(candidates.len());
            if needed.last().is_none_or(|last| last.hosts != hosts) {
                needed.push(Need { from, hosts });
            }
        }
        needed
    }

    /// Drafts rests for the hosts of a pool. Hosts that are off stay off if possible; then come those with
    /// the highest draw per unit of computing power.
    fn rests(&self, pool: FreePoolId, candidates: &[Candidate<'_>], drafts: &mut Vec<Draft>) {
        let in_play = || candidates.iter().filter(|candidate| candidate.in_play);
        let free = in_play().flat_map(|candidate| candidate.gaps.iter().map(|gap| self.clipped(*gap)));
        let mut slack = Slack::new(free, self.rules.spare_hosts, self.horizon());
        let mut order: Vec<&Candidate<'_>> = in_play().filter(|c| may_be_off(c.host)).collect();
        let draws = |candidate: &Candidate<'_>| match candidate.figures.draw(candidate.host) {
            Draw::Unknown => Draw::PerCore(0),
            known => known,
        };
        order.sort_by_key(|c| (!c.asleep, Reverse(draws(c)), Reverse(c.host.id)));
        for candidate in order {
            let mut rested: Vec<Timestamp> = candidate.host.power.switched_off_at.clone();
            for &gap in &candidate.gaps {
                for piece in slack.pieces(&self.clipped(gap)) {
                    let by = if piece.end() < self.clipped(gap).end() { Some(piece.end()) } else { gap.1 };
                    let begun = candidate.asleep && piece.start() == self.now;
                    let until = by.map(|by| self.latest_boot(candidate.host, by));
                    if !begun && !self.may_begin(candidate, &piece, until, &rested) {
                        continue;
                    }
                    rested.push(piece.start());
                    slack.take(&piece);
                    let rest = Rest { host: candidate.host.id, from: piece.start(), until };
                    drafts.push(Draft { rest, by, asleep: begun, pool });
                }
            }
        }
    }

    /// Latest time to switch the host on so it is up at `by`, if its boot doesn't have to wait for another.
    fn latest_boot(&self, host: &Host, by: Timestamp) -> Timestamp {
        earlier(by, host.power.boot_time(self.rules).saturating_add(self.rules.margin))
    }

    /// Whether a rest is long enough, can start, and stays within the daily limit.
    fn may_begin(
        &self,
        candidate: &Candidate<'_>,
        piece: &Window,
        until: Option<Timestamp>,
        rested: &[Timestamp],
    ) -> bool {
        let from = piece.start();
        let long = until.is_none_or(|until| until.duration_since(from) >= self.rules.shortest_rest);
        let day = SignedDuration::from_hours(24);
        let lately = rested.iter().filter(|at| from.duration_since(**at) < day).count();
        let now = from > self.now || candidate.ready;
        long && now && lately < self.rules.rests_a_day as usize
    }

    /// Drops rests that would begin now if too many hosts would be off at once to wake them in time. Assumes
    /// the worst case: all hosts that are off must be up, batch after batch, by the deadline of the rest in
    /// question.
    fn leave_out_hasty(&self, asleep: &[&Host], drafts: &mut Vec<Draft>) {
        let begins = |draft: &Draft| draft.rest.from == self.now && !draft.asleep && draft.by.is_some();
        let mut hasty: Vec<(Timestamp, HostId)> = drafts
            .iter()
            .filter(|draft| begins(draft))
            .filter_map(|draft| Some((draft.by?, draft.rest.host)))
            .collect();
        hasty.sort_unstable();
        let known = self.inventory.hosts().map(|host| host.power.boot_time(self.rules));
        let longest = known.max().unwrap_or(self.rules.shortest_boot);
        let mut off = asleep.len() + self.booting();
        let mut left_out = BTreeSet::new();
        for (by, host) in hasty {
            let turns = i32::try_from((off + 1).div_ceil(self.rules.boots_at_once())).unwrap_or(i32::MAX);
            let booting = longest.checked_mul(turns).unwrap_or(SignedDuration::MAX);
            let all = booting.saturating_add(self.rules.shortest_rest).saturating_add(self.rules.margin);
            if by.duration_since(self.now) >= all {
                off += 1;
            } else {
                left_out.insert(host);
            }
        }
        drafts.retain(|draft| !(begins(draft) && left_out.contains(&draft.rest.host)));
    }

    fn booting(&self) -> usize {
        let booting = |host: &&Host| matches!(host.power.state, PowerState::Booting { .. });
        self.inventory.hosts().filter(booting).count()
    }

    /// Latest switch-on times for leases, for hosts that are off or whose rest begins now.
    fn staged(&self, asleep: &[&Host], drafts: &[Draft]) -> Staged {
        let begins = drafts.iter().filter(|draft| draft.rest.from == self.now && !draft.asleep);
        let begins = begins.filter_map(|draft| self.inventory.host(draft.rest.host));
        let boot = |host: &Host| {
            let start = next_use(self.calendar, host.id, self.now)?;
            let by = earlier(start, self.rules.margin);
            Some(Boot { by, host: host.id, takes: host.power.boot_time(self.rules) })
        };
        let boots = asleep.iter().copied().chain(begins).filter_map(boot).collect();
        Staged::new(boots, self.rules.boots_at_once())
    }

    /// Fills in the switches that are due now and the time of the next one.
    fn switch(&self, asleep: &[&Host], drafts: &[Draft], staged: &Staged, plan: &mut EnergyPlan) {
        let now = self.now;
        let mut times: Vec<Timestamp> = drafts.iter().map(|draft| draft.rest.from).collect();
        times.extend(drafts.iter().filter_map(|draft| draft.rest.until));
        times.extend(staged.from.values());
        plan.wake_at = times.into_iter().filter(|at| *at > now).min();
        let resting: BTreeMap<HostId, &Draft> = drafts
            .iter()
            .filter(|draft| draft.rest.from == now)
            .map(|draft| (draft.rest.host, draft))
            .collect();
        let due = |host: &Host| staged.from.get(&host.id).is_some_and(|from| *from <= now);
        let mut urgent: Vec<&Host> = asleep.iter().copied().filter(|host| due(host)).collect();
        urgent.sort_by_key(|host| (staged.from[&host.id], host.id));
        let mut booting = self.booting();
        for host in urgent {
            if booting < self.rules.boots_at_once() {
                booting += 1;
                plan.switches.push((host.id, Switch::On));
                plan.promised.insert(host.id);
            }
        }
        let unwanted = |host: &Host| match resting.get(&host.id) {
            Some(draft) => draft.rest.until.is_some_and(|until| until <= now),
            None => true,
        };
        for host in asleep.iter().filter(|host| !due(host) && unwanted(host)) {
            let until = later(now, host.power.boot_time(self.rules));
            if booting < staged.free_until(until) {
                booting += 1;
                plan.switches.push((host.id, Switch::On));
            }
        }
        let off = resting.values().filter(|draft| !draft.asleep);
        plan.switches.extend(off.map(|draft| (draft.rest.host, Switch::Off)));
    }

    fn saved(&self, rest: &Rest) -> u128 {
        let end = self.horizon().end();
        let until = rest.until.unwrap_or(end).min(end);
        let seconds = u128::try_from(until.duration_since(rest.from).as_secs()).unwrap_or(0);
        let saved = self.inventory.host(rest.host).map_or(0, |host| Figures::of(host).saved_milliwatts());
        u128::from(saved) * seconds
    }
}
