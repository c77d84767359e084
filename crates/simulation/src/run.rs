//! One simulation: a seed, some weeks of leases, everything that can go wrong, and then calm.

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

/// When simulations begin: noon of some day.
const BEGIN_SECOND: i64 = 1_893_499_200;

/// If more than that happens in a second, the service goes round in circles.
const MOST_AT_ONCE: u32 = 10_000;
/// In one of so many runs each cycle is decided again, and pass by pass, and the results are compared.
const REHEARSED: u64 = 20;

/// What a simulation came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Leases that were made.
    pub made: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests whose outcome the caller was not told.
    pub uncertain: u64,
    /// Steps that were carried out.
    pub steps: u64,
    /// Steps that failed.
    pub failed_steps: u64,
    /// How often the process died.
    pub crashes: u64,
    /// How often a host failed.
    pub host_failures: u64,
    /// Leases that were active.
    pub started: u64,
    /// Guests that were moved out of a lease's way.
    pub moved: u64,
    /// Instances that were started through the service.
    pub instances: u64,
    /// Leases that were forgotten after they had ended.
    pub forgotten: u64,
    /// Of these, preemptible ones that ran on hosts of leases.
    pub backfilled: u64,
    /// And those of them that had to leave for the lease itself.
    pub cleared: u64,
    /// Offers that were accepted.
    pub accepted: u64,
    /// Requests that waited and were served.
    pub served: u64,
    /// How often a host was switched on.
    pub woken: u64,
    /// Free pools that were made, changed or removed, and hosts that went from one to another.
    pub pool_changes: u64,
    /// Cycles whose decision was made again, and pass by pass, with the same result.
    pub rehearsed: u64,
    /// Of everything that listeners were told: the same run has the same.
    pub digest: u64,
}

/// Something that must hold did not.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In which simulation.
    pub seed: u64,
    /// Of several services, not of one.
    pub several: bool,
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: String,
    /// What happened last, oldest first.
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

/// Runs the simulation of that seed: of one service, or of several that share a store.
pub fn simulate(seed: u64, several: bool) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure {
        seed,
        several,
        at: Timestamp::UNIX_EPOCH,
        what: format!("there is no runtime: {error}"),
        trail: Vec::new(),
    })?;
    // Nothing is interrupted for the sake of others: there are no others.
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
    /// What leases had, if all services agree on the time.
    schedule: Option<Schedule>,
    /// What was in the store then.
    contents: Snapshot,
    report: Report,
    trail: VecDeque<String>,
    /// The service that is being asked for something.
    asked: usize,
    /// The lease that the next request is about, if it is about a certain one.
    target: Option<LeaseId>,
    /// The instance whose owner has thought better of it, and deletes it while it is being started.
    regretted: Option<GuestId>,
    /// Requests that waited at the last look.
    waiting: BTreeSet<LeaseId>,
    /// What was offered, to whom, and what somebody is about to accept.
    offered: Option<(LeaseRecord, &'static str)>,
    /// Where power is saved.
    power: Option<PowerWatch>,
    /// Where there are several free pools.
    pools: Option<PoolWatch>,
    /// Nothing goes wrong any more.
    calm: bool,
}

/// Whether reservations need something as a whole there.
fn prepares(seed: u64) -> bool {
    seed % 3 == 1
}

/// How long leases are kept that are over: in some runs so shortly that they go before the end.
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
        // What one service has under way comes late for the others.
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

    /// When somebody asks for something next: some time later, or just when a lease starts or ends, about
    /// that lease.
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

    /// Some time later, so many hours on average.
    fn after(&mut self, hours: f64) -> Timestamp {
        let seconds = self.rng.random_range(0.0..2.0) * hours * 3600.0;
        self.world.now() + SignedDuration::from_secs(seconds as i64 + 1)
    }

    /// Lets everything happen until then, and the process die anywhere in between.
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
            // What was claimed is judged by what is in the store by now.
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

    /// One of the services.
    fn any(&mut self) -> usize {
        let services = self.world.replicas();
        if services == 1 { 0 } else { self.rng.random_range(0..services) }
    }

    /// A process dies, and is started again after some time.
    async fn crash(&mut self, outage: SignedDuration) -> Result<(), String> {
        let replica = self.any();
        self.note(format!("service {replica} crashes; back after {outage:?}"));
        self.report.crashes += 1;
        self.checker.crashed();
        self.world.clock.advance(outage);
        // It is started until it runs.
        for _ in 0..100 {
            if self.world.restart_one(replica).await.is_ok() {
                return Ok(());
            }
        }
        Err("the service does not start any more".to_owned())
    }

    /// Something goes wrong that is more than a lost message.
    async fn mishap(&mut self) -> Result<(), String> {
        let hosts: Vec<HostId> = self.world.service.hosts().all().iter().map(|host| host.host.id).collect();
        let Some(host) = hosts.choose(&mut self.rng).copied() else { return Ok(()) };
        let outage = SignedDuration::from_mins(self.rng.random_range(1..24 * 60));
        let back = self.world.now() + outage;
        let what = self.rng.random_range(0..10);
        self.checker.disturbed(back);
        if let Some(power) = &mut self.power {
            // What is told of the fleet, the store and services is missed everywhere.
            power.disturbed((!(6..=8).contains(&what)).then_some(host), back);
        }
        match what {
            // It is noticed only when it is switched on.
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
                // The store itself, or the way of one service to it.
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

    /// For one service, or for all.
    fn set_down(&self, which: Option<usize>, down: bool) {
        for replica in 0..self.world.replicas() {
            if which.is_none_or(|which| which == replica) {
                self.world.store_of(replica).set_down(down);
            }
        }
    }

    /// A process that cannot read its store does not start, so it must not die while the store is down.
    async fn go_on_until_without_crash(&mut self, until: Timestamp) -> Result<(), String> {
        let calm = std::mem::replace(&mut self.calm, true);
        let gone_on = self.go_on_until(until).await;
        self.calm = calm;
        gone_on
    }

    /// Nothing goes wrong any more; in the end all leases are over and all hosts are free.
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
        // Long enough for whatever failed to be tried again.
        self.go_on_until(self.world.now() + SignedDuration::from_mins(30)).await?;
        self.until_calm(check_ratios).await?;
        let leases = self.world.store.contents().await.leases;
        let now = self.world.now();
        // One that is to start as soon as it can may still be put off until its deadline.
        let end = |lease: &Lease| {
            let latest = lease.lease_type.deadline().map(|deadline| deadline + lease.window.length());
            lease.window.end().max(latest.unwrap_or(Timestamp::MIN))
        };
        let last = leases.iter().map(|record| end(&record.lease)).max().unwrap_or(now).max(now);
        // Hosts that fail or fall silent now recover before that.
        self.go_on_until(last.max(now + SignedDuration::from_hours(24)) + SignedDuration::from_hours(2))
            .await?;
        // Where power is saved, a host may be on its way back to the free pool just now.
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

    /// Goes on for some minutes until that holds: a step may be on its way just now.
    async fn until_calm(&mut self, check: fn(&Snapshot, &SimulatedFleet) -> Verdict) -> Result<(), String> {
        for _ in 0..10 {
            if check(&self.world.store.contents().await, &self.world.fleet).is_ok() {
                return Ok(());
            }
            self.go_on_until(self.world.now() + SignedDuration::from_secs(30)).await?;
        }
        check(&self.world.store.contents().await, &self.world.fleet)
    }

    /// All leases are deleted, and then there are none.
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
