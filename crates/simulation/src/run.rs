//! One simulation: a seed, some days of leases and faults, and then a calm phase without faults.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use fleet::Outcome;
use fleet::simulated::{Faults, Happening, Layout, SimulatedFleet, Timing};
use jiff::{SignedDuration, Timestamp};
use leases::free_pool::FreePool;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::lease::Lease;
use leases::plan::Action;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use service::{Done, LeaseFilter, NewFloatingIp, Settings, Task};
use store::{LeaseRecord, Snapshot};

use self::ways::{Ways, allow_preemptible};
use crate::checker::{Checker, check_calm, check_ratios};
use crate::pools::PoolWatch;
use crate::power::{PowerWatch, check_dark, drawing, saving};
use crate::schedule::{Schedule, check_usage};
use crate::verdict::Verdict;
use crate::world::{Happened, Setup, World, operator};

mod pools;
mod requests;
mod ways;

/// Beginning of all simulations: noon (UTC) of some day.
const BEGIN_SECOND: i64 = 1_893_499_200;

/// Maximum number of events in one second. With more, the service is going in circles.
const MOST_AT_ONCE: u32 = 10_000;
/// One run in this many decides each cycle again, as a whole and pass by pass, and compares the results.
const REHEARSED: u64 = 20;

/// Counters of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Leases created.
    pub made: u64,
    /// Requests refused.
    pub refused: u64,
    /// Requests whose outcome the client never learned.
    pub uncertain: u64,
    /// Steps carried out, failed ones included.
    pub steps: u64,
    pub failed_steps: u64,
    /// Crashes of a service's process.
    pub crashes: u64,
    pub host_failures: u64,
    /// Leases that became active.
    pub started: u64,
    /// Moves of guests that succeeded.
    pub moved: u64,
    /// Instances started through the service.
    pub instances: u64,
    /// Leases forgotten after they ended.
    pub forgotten: u64,
    /// Preemptible instances that ran on hosts of leases.
    pub backfilled: u64,
    /// Backfilled instances that had to leave for the lease itself.
    pub cleared: u64,
    /// Offers accepted.
    pub accepted: u64,
    /// Waiting requests that became leases.
    pub served: u64,
    /// Hosts powered on.
    pub woken: u64,
    /// Successful changes of free pools, of their hosts and of overcommit ratios.
    pub pool_changes: u64,
    /// Cycles whose decision was repeated, as a whole and pass by pass, with the same result.
    pub rehearsed: u64,
    /// Hash of the notification types, the numbers of steps and commits, and the final time. Repeating a run
    /// gives the same digest.
    pub digest: u64,
}

/// A violated invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    /// Whether several services shared the store.
    pub several: bool,
    /// Simulated time of the violation.
    pub at: Timestamp,
    /// The violation, in a sentence.
    pub what: String,
    /// The last events, oldest first.
    pub trail: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trail {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "seed {}, {}: {}", self.seed, self.at, self.what)?;
        write!(f, "again: cargo run -p simulation -- --seeds {}..{}", self.seed, self.seed + 1)?;
        if self.several { write!(f, " --several") } else { Ok(()) }
    }
}

/// Runs the simulation of that seed, with one service or with several that share a store.
pub fn simulate(seed: u64, several: bool) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure {
        seed,
        several,
        at: Timestamp::UNIX_EPOCH,
        what: format!("there is no runtime: {error}"),
        trail: Vec::new(),
    })?;
    // No cooperative yielding: there are no other tasks that could run.
    runtime.block_on(tokio::task::unconstrained(async {
        let mut simulation = Simulation::begin(seed, several).await?;
        let outcome = simulation.run().await;
        outcome.map_err(|what| Failure {
            seed,
            several,
            at: simulation.world.now(),
            what,
            trail: simulation.trail.iter().cloned().collect(),
        })
    }))
}

struct Simulation {
    rng: SmallRng,
    ways: Ways,
    world: World,
    checker: Checker,
    checked_commits: u64,
    /// Resources that leases had over time. `None` if the services' clocks differ.
    schedule: Option<Schedule>,
    /// Contents of the store at the last check.
    contents: Snapshot,
    report: Report,
    trail: VecDeque<String>,
    /// Number of the service that gets the current request.
    asked: usize,
    /// Lease that the next request is about, if it's about a certain one.
    target: Option<LeaseId>,
    /// Instance whose owner changes their mind and deletes it while it is being started.
    regretted: Option<GuestId>,
    /// Waiting requests at the last check.
    waiting: BTreeSet<LeaseId>,
    /// Offer that will be accepted by the next request, and the project it was made to.
    offered: Option<(LeaseRecord, &'static str)>,
    /// Checks of power saving, if it's on.
    power: Option<PowerWatch>,
    /// Checks of free pools, if there are several.
    pools: Option<PoolWatch>,
    /// Faults have stopped, or must not include crashes now.
    calm: bool,
}

/// Whether the fleet has to prepare each reservation as a whole, as in a cloud.
fn prepares(seed: u64) -> bool {
    seed % 3 == 1
}

/// Time for which leases that are over are kept. In some runs it's so short that they are forgotten before
/// the run ends.
fn forgetting(seed: u64) -> Option<SignedDuration> {
    if seed % 7 == 4 { Some(SignedDuration::from_hours(1)) } else { Settings::default().keep_leases }
}

impl Simulation {
    async fn begin(seed: u64, several: bool) -> Result<Self, Failure> {
        let begins = Timestamp::from_second(BEGIN_SECOND).unwrap_or(Timestamp::UNIX_EPOCH);
        let failure = |what: String| Failure { seed, several, at: begins, what, trail: Vec::new() };
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut ways = Ways::draw(&mut rng, several);
        let saves_power = saving(seed);
        ways.settings.energy = saves_power.unwrap_or_default();
        allow_preemptible(seed, &mut ways);
        ways.settings.keep_leases = forgetting(seed);
        let (layout, settings) = (ways.layout.clone(), ways.settings.clone());
        let setup = Setup { seed, begins, layout: layout.clone(), settings, enforcer: None };
        let world = World::shared(setup, &ways.clocks, |fleet| {
            let fleet = ways.prepare(fleet);
            if prepares(seed) { fleet.preparing() } else { fleet }
        })
        .await;
        let mut world = world.map_err(|error| failure(error.to_string()))?;
        if seed.is_multiple_of(REHEARSED) {
            world = world.rehearsing();
        }
        world.take_on(&layout).await.map_err(|error| failure(error.to_string()))?;
        if ways.settings.energy.repack_watt_hours.is_some() {
            for host in world.service.hosts().all() {
                let operator = operator();
                let noted = world.service.hosts().update(&operator, host.host.id, drawing(host.host.id));
                world.wait_for(noted).await.map_err(|error| failure(error.to_string()))?;
            }
        }
        let network = Layout::public_network().id;
        for last in 200..204 {
            let new = NewFloatingIp { network: network.clone(), address: [203, 0, 113, last].into() };
            let operator = operator();
            let added = world.wait_for(world.service.floating_ips().add(&operator, new)).await;
            added.map_err(|error| failure(error.to_string()))?;
        }
        if !ways.news {
            world.without_news();
        }
        let (late, immediate) = (ways.fleet_faults.late > 0.0, ways.timing == Timing::IMMEDIATE);
        let skew = if several { ways.settings.longest_clock_skew } else { SignedDuration::ZERO };
        // Calls that one service has under way come late for another service, hence `late || several` below.
        let agreed = ways.clocks.iter().all(SignedDuration::is_zero);
        let schedule = agreed.then(Schedule::default);
        let checker = Checker::new(ways.settings.cleaning_time, late || several, immediate, several, skew);
        let checker = checker.forgetting(ways.settings.keep_leases);
        let punctual = ways.only_slow && !several;
        let (observe_interval, grace) = (ways.settings.observe_interval, ways.settings.plan_rules.grace);
        let checker = if punctual { checker.punctual(observe_interval, grace) } else { checker };
        Ok(Self {
            rng,
            ways,
            world,
            checker,
            checked_commits: 0,
            schedule,
            contents: Snapshot::default(),
            report: Report::default(),
            trail: VecDeque::new(),
            asked: 0,
            target: None,
            regretted: None,
            waiting: BTreeSet::new(),
            offered: None,
            power: saves_power.map(|power| PowerWatch::new(power.rules.boots_at_once as usize)),
            pools: PoolWatch::of(seed),
            calm: false,
        })
    }

    async fn run(&mut self) -> Result<Report, String> {
        self.world.fleet.set_faults(self.ways.fleet_faults);
        for replica in 0..self.world.replicas() {
            self.world.store_of(replica).set_faults(self.ways.store_faults);
        }
        let end = self.world.now() + SignedDuration::from_hours(24 * self.ways.days);
        let mut request_at = self.next_request();
        let mut mishap_at = self.after(self.ways.mishap_every);
        let mut chore_at = self.pools.as_mut().map(|pools| pools.next(self.world.now()));
        while self.world.now() < end {
            let until = request_at.min(mishap_at).min(chore_at.unwrap_or(end)).min(end);
            self.go_on_until(until).await?;
            if self.world.now() >= request_at {
                self.request().await?;
                request_at = self.next_request();
            }
            if self.world.now() >= mishap_at {
                self.mishap().await?;
                mishap_at = self.after(self.ways.mishap_every);
            }
            if chore_at.is_some_and(|at| at <= self.world.now()) {
                self.tend_pools().await;
                chore_at = self.pools.as_mut().map(|pools| pools.next(self.world.now()));
            }
            self.check().await?;
        }
        self.calm_down().await?;
        self.take_away().await?;
        (self.report.backfilled, self.report.cleared) = self.checker.backfilled();
        self.report.forgotten = self.checker.forgotten();
        self.report.rehearsed = self.world.rehearsed();
        self.report.digest = self.digest().await;
        Ok(self.report.clone())
    }

    /// Time of the next request: at random, or just when a lease starts or ends, and then about that lease.
    fn next_request(&mut self) -> Timestamp {
        let (now, some_time) = (self.world.now(), self.after(self.ways.request_every));
        self.target = None;
        if self.offered.is_some() {
            return now + SignedDuration::from_secs(self.rng.random_range(0..50));
        }
        if self.regretted.is_some() {
            return now + SignedDuration::from_secs(self.rng.random_range(0..20));
        }
        if !self.rng.random_bool(0.3) {
            return some_time;
        }
        let turns = |record: &std::sync::Arc<LeaseRecord>| {
            let (id, window) = (record.lease.id, record.lease.window);
            [(window.start(), id), (window.end(), id)]
        };
        let leases = self.world.service.leases().all(&LeaseFilter::default());
        let coming = leases.iter().flat_map(turns).filter(|(at, _)| now < *at && *at < some_time).min();
        let Some((at, id)) = coming else { return some_time };
        self.target = Some(id);
        at + SignedDuration::from_secs(self.rng.random_range(0..90))
    }

    /// A random time from now; the average delay is `hours`.
    fn after(&mut self, hours: f64) -> Timestamp {
        let seconds = self.rng.random_range(0.0..2.0) * hours * 3600.0;
        self.world.now() + SignedDuration::from_secs(seconds as i64 + 1)
    }

    /// Runs until then. The process can die after any event.
    async fn go_on_until(&mut self, until: Timestamp) -> Result<(), String> {
        let (mut since, mut at_once) = (self.world.now(), 0);
        while let Some(happened) = self.world.next(until).await {
            at_once += 1;
            if self.world.now().duration_since(since) >= SignedDuration::from_secs(1) {
                (since, at_once) = (self.world.now(), 0);
            }
            if at_once > MOST_AT_ONCE {
                return Err(format!("time does not get on: {happened:?}"));
            }
            // Claims are judged against the current contents of the store, so these are read first.
            self.check().await?;
            self.happened(&happened)?;
            if !matches!(happened, Happened::Waited) && !self.calm && self.rng.random_bool(self.ways.crash) {
                self.crash(SignedDuration::ZERO).await?;
            }
        }
        Ok(())
    }

    fn happened(&mut self, happened: &Happened) -> Result<(), String> {
        match happened {
            Happened::Noted(Done::Step(performed)) => {
                self.note(format!("{}: {:?}", performed.step.claim.action, performed.answer));
                self.report.steps += 1;
                self.report.failed_steps += u64::from(performed.answer.is_err());
                let moved = matches!(performed.step.claim.action, Action::MoveGuest(..))
                    && performed.answer == Ok(Outcome::Done);
                self.report.moved += u64::from(moved);
                let woken = matches!(performed.step.claim.action, Action::PowerOn(_))
                    && performed.answer == Ok(Outcome::Done);
                self.report.woken += u64::from(woken);
            }
            Happened::Cycled(tasks) => {
                for task in tasks {
                    if let Task::Step(step) = task {
                        self.note(format!("claimed: {} ({})", step.claim.action, step.claim.fence));
                        self.checker.claimed(step, &self.world.fleet, self.world.now())?;
                    }
                }
            }
            Happened::Differed(difference) => return Err(difference.clone()),
            Happened::Repeated(action) => return Err(format!("two services are at a step: {action}")),
            Happened::Noted(Done::Look(_) | Done::Abandoned(..) | Done::Adopted(..) | Done::Passed(_))
            | Happened::Waited => {}
        }
        Ok(())
    }

    fn note(&mut self, what: impl fmt::Display) {
        if self.trail.len() == 60 {
            self.trail.pop_front();
        }
        self.trail.push_back(format!("{} {what}", self.world.now()));
    }

    async fn check(&mut self) -> Result<(), String> {
        let commits = self.world.commits();
        if commits != self.checked_commits {
            self.checked_commits = commits;
            self.contents = self.world.store.contents().await;
            self.follow_proposals()?;
            if let Some(schedule) = &mut self.schedule {
                schedule.follow(&self.contents);
            }
            let now = self.world.now();
            if let Some(pools) = &mut self.pools {
                pools.check(&self.contents, now)?;
            }
            let punctual = self.ways.only_slow && self.world.replicas() == 1;
            if let Some(power) = &mut self.power {
                power.check(&self.contents, punctual, now)?;
            }
            return self.checker.check(&self.contents, &self.world.fleet, now);
        }
        if self.power.is_some() {
            check_dark(&self.contents, &self.world.fleet)?;
        }
        self.checker.check_machines(&self.contents, &self.world.fleet, self.world.now())
    }

    /// A random service.
    fn any(&mut self) -> usize {
        let services = self.world.replicas();
        if services == 1 { 0 } else { self.rng.random_range(0..services) }
    }

    /// Kills a process and starts it again after the outage.
    async fn crash(&mut self, outage: SignedDuration) -> Result<(), String> {
        let replica = self.any();
        self.note(format!("service {replica} crashes; back after {outage:?}"));
        self.report.crashes += 1;
        self.checker.crashed();
        self.world.clock.advance(outage);
        // A start can fail as well, so it's repeated.
        for _ in 0..100 {
            if self.world.restart_one(replica).await.is_ok() {
                return Ok(());
            }
        }
        Err("the service does not start any more".to_owned())
    }

    /// A fault that is worse than a lost message.
    async fn mishap(&mut self) -> Result<(), String> {
        let hosts: Vec<HostId> = self.world.service.hosts().all().iter().map(|host| host.host.id).collect();
        let Some(host) = hosts.choose(&mut self.rng).copied() else { return Ok(()) };
        let outage = SignedDuration::from_mins(self.rng.random_range(1..24 * 60));
        let back = self.world.now() + outage;
        let what = self.rng.random_range(0..10);
        self.checker.disturbed(back);
        if let Some(power) = &mut self.power {
            // Outages of a service, the store or the whole fleet (6 to 8) affect all hosts.
            power.disturbed((!(6..=8).contains(&what)).then_some(host), back);
        }
        match what {
            // The service notices this fault only when it powers the host on.
            0..=4 if self.power.is_some() && outage.as_mins() % 2 == 0 => {
                self.note(format!("host {host} would not boot for {outage:?}"));
                self.world.fleet.break_boots(host);
                self.world.fleet.schedule(back, Happening::HostRecovers(host));
            }
            0..=4 => {
                self.note(format!("host {host} fails for {outage:?}"));
                self.report.host_failures += 1;
                self.world.fleet.fail(host);
                self.world.fleet.schedule(back, Happening::HostRecovers(host));
            }
            5 => {
                self.world.fleet.happen(Happening::HostFallsSilent(host));
                self.world.fleet.schedule(back, Happening::HostRecovers(host));
            }
            6 if !self.ways.only_slow => self.crash(outage / 6).await?,
            6 | 7 => {
                // Either the store itself fails, or a single service's connection to it.
                let cut_off = if self.rng.random_bool(0.5) { None } else { Some(self.any()) };
                self.note(format!("the store is down for {:?}, for {cut_off:?}", outage / 6));
                self.set_down(cut_off, true);
                let until = self.world.now() + outage / 6;
                self.go_on_until_without_crash(until).await?;
                self.set_down(cut_off, false);
            }
            8 => {
                self.note(format!("the fleet is silent for {:?}", outage / 6));
                self.world.fleet.set_faults(Faults { unanswered: 1.0, ..self.ways.fleet_faults });
                let until = self.world.now() + outage / 6;
                self.go_on_until(until).await?;
                self.world.fleet.set_faults(self.ways.fleet_faults);
            }
            _ => {
                self.note(format!("host {host} is taken out of service"));
                let operator = operator();
                self.asked = self.any();
                let removed = self.service().hosts().remove(&operator, host);
                let removed = self.world.wait_for(removed).await;
                if removed.is_ok() {
                    let selector = service::HostSelector::Id(host);
                    let added =
                        self.service().hosts().add(&operator, selector, Vec::new(), FreePool::DEFAULT);
                    let _ = self.world.wait_for(added).await;
                }
                self.world.touched_one(self.asked);
            }
        }
        Ok(())
    }

    /// Takes the store down or up, for one service or, for `None`, for all.
    fn set_down(&self, which: Option<usize>, down: bool) {
        for replica in 0..self.world.replicas() {
            if which.is_none_or(|which| which == replica) {
                self.world.store_of(replica).set_down(down);
            }
        }
    }

    /// A process that can't read its store doesn't start, so it must not die while the store is down.
    async fn go_on_until_without_crash(&mut self, until: Timestamp) -> Result<(), String> {
        let calm = std::mem::replace(&mut self.calm, true);
        let gone_on = self.go_on_until(until).await;
        self.calm = calm;
        gone_on
    }

    /// Stops all faults, runs until all windows have passed, and checks that all leases are over and all
    /// hosts are free.
    async fn calm_down(&mut self) -> Result<(), String> {
        self.calm = true;
        self.note("calm");
        self.world.fleet.set_faults(Faults::NONE);
        for replica in 0..self.world.replicas() {
            self.world.store_of(replica).set_faults(0.0);
        }
        let hosts = self.world.store.contents().await.hosts;
        for record in hosts {
            self.world.fleet.recover(record.host.id);
        }
        self.world.touched();
        // Long enough to retry all failed steps.
        self.go_on_until(self.world.now() + SignedDuration::from_mins(30)).await?;
        self.until_calm(check_ratios).await?;
        let leases = self.world.store.contents().await.leases;
        let now = self.world.now();
        // The start of a best-effort lease can still be postponed until its deadline.
        let end = |lease: &Lease| {
            let latest = lease.lease_type.deadline().map(|deadline| deadline + lease.window.length());
            lease.window.end().max(latest.unwrap_or(Timestamp::MIN))
        };
        let last = leases.iter().map(|record| end(&record.lease)).max().unwrap_or(now).max(now);
        // Outages last at most 24 hours, so all hosts have recovered by then.
        self.go_on_until(last.max(now + SignedDuration::from_hours(24)) + SignedDuration::from_hours(2))
            .await?;
        // With power saving, a host may just be returning to the free pool.
        self.until_calm(check_calm).await?;
        let contents = self.world.store.contents().await;
        self.checker.check_instances(&contents)?;
        let (usage, events) = self.world.store.contents_usage().await;
        check_usage(&contents, &usage, &events)?;
        if let Some(schedule) = &self.schedule {
            schedule.check(&usage, self.world.now())?;
            if let Some(pools) = &self.pools {
                pools.check_usage(&usage, self.world.now())?;
            }
        }
        Ok(())
    }

    /// Runs for up to five minutes until the check succeeds, since a step may be under way.
    async fn until_calm(&mut self, check: fn(&Snapshot, &SimulatedFleet) -> Verdict) -> Result<(), String> {
        for _ in 0..10 {
            if check(&self.world.store.contents().await, &self.world.fleet).is_ok() {
                return Ok(());
            }
            self.go_on_until(self.world.now() + SignedDuration::from_secs(30)).await?;
        }
        check(&self.world.store.contents().await, &self.world.fleet)
    }

    /// Deletes all leases, and checks that their records disappear.
    async fn take_away(&mut self) -> Result<(), String> {
        for record in self.world.service.leases().all(&LeaseFilter::default()) {
            self.delete(&record).await;
        }
        self.go_on_until(self.world.now() + SignedDuration::from_hours(1)).await?;
        match self.world.store.contents().await.leases.first() {
            Some(record) => Err(format!("lease {} was deleted and is still there", record.lease.id)),
            None => Ok(()),
        }
    }

    async fn digest(&mut self) -> u64 {
        let types = self.world.store.contents_notifications().await;
        self.report.started = types.iter().filter(|told| *told == "lease.event.start_lease").count() as u64;
        let mut hasher = DefaultHasher::new();
        types.hash(&mut hasher);
        (self.report.steps, self.world.now().as_nanosecond(), self.world.commits()).hash(&mut hasher);
        hasher.finish()
    }
}
