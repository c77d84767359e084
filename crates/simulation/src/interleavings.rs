//! Exhaustive interleavings of a race: two services on one store start an instance on a host that a lease
//! wants.
//!
//! A [`Scene`] is one host with one lease, and requests made around the lease's start or while it runs.
//! [`try_all`] plays it once for each order of the requests, the services' cycles, the tasks and their
//! results, and checks the final state.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet::simulated::{Layout, Model};
use jiff::{SignedDuration, Timestamp};
use leases::admission::Changes;
use leases::ids::{HostId, LeaseId};
use leases::instance::{InstanceStatus, LeaseHint};
use leases::plan::{GuestOwner, GuestSize, Place};
use leases::preemption::{Mark, Marked};
use leases::status::LeaseStatus;
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use leases::window::Window;
use service::{Done, LeaseChanges, NewInstance, NewLease, Placing, ServiceError, Settings, Task};
use store::{InstanceRecord, Wording};

use crate::verdict::Verdict;
use crate::world::{Setup, World, caller};

/// Number of choices that are tried in all ways. After these, the first possible event is taken.
const CHOICES: usize = 6;
/// Maximum number of events. A play with more counts as endless.
const MOST: usize = 500;

/// Setting of a play: a host with a preemptible instance, and a lease of that host.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Settings of both services.
    pub settings: Settings,
    pub begins: Timestamp,
    /// Start of the lease, relative to the beginning.
    pub start: SignedDuration,
    /// Time of the requests, relative to the beginning.
    pub asked: SignedDuration,
    /// Requests, which are made in every order.
    pub requests: &'static [Request],
}

/// A client's request to one of the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Start a preemptible instance, through the second service.
    Preemptible,
    /// Start an instance in the lease, through the first service.
    Own,
    /// Withdraw the lease's consent to preemptible instances, through the first service.
    Withdraw,
}

/// Event that can come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The client makes the request at that position.
    Ask(usize),
    /// That service runs a cycle.
    Cycle(usize),
    /// The fleet carries out the task at that position.
    Perform(usize),
    /// The service learns the result of the task at that position.
    Note(usize),
}

/// Plays the scene in all orders and returns their number.
///
/// # Errors
///
/// The first violation, and the order in which it occurred.
pub fn try_all(scene: &Scene) -> Result<u32, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| format!("there is no runtime: {error}"))?;
    runtime.block_on(tokio::task::unconstrained(async {
        let (mut choices, mut plays) = (Vec::new(), 0);
        loop {
            let widths = Play::begin(scene).await?.play(&choices).await?;
            plays += 1;
            // Next choices in lexicographic order: the last choice that can still be increased is increased.
            choices.resize(widths.len(), 0);
            while choices.last().is_some_and(|last| last + 1 >= widths[choices.len() - 1]) {
                choices.pop();
            }
            let Some(last) = choices.last_mut() else { return Ok(plays) };
            *last += 1;
        }
    }))
}

/// One order of events.
struct Play<'s> {
    scene: &'s Scene,
    world: World,
    lease: LeaseId,
    /// Requests that are still to be made.
    to_ask: Vec<Request>,
    asked: Vec<(Request, Result<(), ServiceError>)>,
    /// Tasks that are still to be carried out, with their services.
    tasks: Vec<(usize, Task)>,
    /// Results that their services don't know yet.
    done: Vec<(usize, Done)>,
    /// Services that have had news since their last cycle.
    told: [bool; 2],
}

impl<'s> Play<'s> {
    /// Two services, just before requests are made.
    async fn begin(scene: &'s Scene) -> Result<Self, String> {
        let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
        let setup = Setup {
            seed: 1,
            begins: scene.begins,
            layout: layout.clone(),
            settings: scene.settings.clone(),
            enforcer: None,
        };
        let opened = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await;
        let mut world = opened.map_err(|error| error.to_string())?;
        world.take_on(&layout).await.map_err(|error| error.to_string())?;
        world.settle().await;
        let asked = scene.lease()?;
        let made = world.service_of(0).leases().create(&caller("q"), asked, None).await;
        let lease = made.map_err(|error| error.to_string())?.lease.lease.id;
        world.settle().await;
        let made = world.service_of(0).instances().create(&caller("p"), preemptible()).await;
        made.map_err(|error| error.to_string())?;
        world.settle().await;
        let from = scene.begins + scene.asked;
        world.run_until(from - SignedDuration::from_secs(1)).await;
        world.clock.set(from);
        let to_ask = scene.requests.to_vec();
        let (asked, tasks, done) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { scene, world, lease, to_ask, asked, tasks, done, told: [true; 2] })
    }

    async fn ask(&mut self, request: Request) {
        let service = self.world.service_of(usize::from(request == Request::Preemptible)).clone();
        let answer = match request {
            Request::Preemptible => service.instances().create(&caller("p"), preemptible()).await.map(drop),
            Request::Own => service.instances().create(&caller("q"), part_of(self.lease)).await.map(drop),
            Request::Withdraw => {
                let changes = Changes { backfill: Some(false), ..Changes::default() };
                let changes = LeaseChanges { asked_at: self.world.now(), changes, wording: BTreeMap::new() };
                service.leases().update(&caller("q"), self.lease, changes).await.map(drop)
            }
        };
        self.asked.push((request, answer));
    }

    fn possible(&self) -> Vec<Next> {
        let asks = (0..self.to_ask.len()).map(Next::Ask);
        let notes = (0..self.done.len()).map(Next::Note);
        let tasks = (0..self.tasks.len()).map(Next::Perform);
        let cycles = [0, 1].into_iter().filter(|service| self.told[*service]).map(Next::Cycle);
        cycles.chain(tasks).chain(notes).chain(asks).collect()
    }

    async fn happens(&mut self, next: Next) {
        let commits = self.world.commits();
        match next {
            Next::Ask(position) => {
                let request = self.to_ask.remove(position);
                self.ask(request).await;
            }
            Next::Cycle(number) => {
                self.told[number] = false;
                let cycle = self.world.service_of(number).clone().execution().cycle().await;
                self.tasks.extend(cycle.tasks.into_iter().map(|task| (number, task)));
            }
            Next::Perform(position) => {
                let (number, task) = self.tasks.remove(position);
                let service = self.world.service_of(number).clone();
                let done = self.world.wait_for(service.execution().perform(task)).await;
                self.done.push((number, done));
            }
            Next::Note(position) => {
                let (number, done) = self.done.remove(position);
                self.world.service_of(number).execution().note(done);
                self.told[number] = true;
            }
        }
        if self.world.commits() != commits {
            self.told = [true; 2];
        }
    }

    /// Runs all events in the order that `choices` define and checks the final state. Returns the number of
    /// alternatives at each choice.
    async fn play(mut self, choices: &[usize]) -> Result<Vec<usize>, String> {
        let (mut widths, mut order) = (Vec::new(), Vec::new());
        loop {
            let possible = self.possible();
            let Some(first) = possible.first() else { break };
            let mut next = *first;
            if possible.len() > 1 && widths.len() < CHOICES {
                next = possible[choices.get(widths.len()).copied().unwrap_or(0)];
                widths.push(possible.len());
            }
            order.push(next);
            if order.len() > MOST {
                return Err(format!("it does not end: {order:?}"));
            }
            self.happens(next).await;
        }
        self.check().await.map_err(|what| format!("{what}; this order: {order:?}"))?;
        Ok(widths)
    }

    /// The lease has its host in time and without preemptible guests, and the instances requested in it run.
    async fn check(&mut self) -> Verdict {
        let started = self.scene.begins + self.scene.start.max(self.scene.asked);
        self.world.touched();
        self.world.run_until(started + SignedDuration::from_secs(2)).await;
        let violations = self.world.fleet.violations();
        if !violations.is_empty() {
            return Err(format!("the fleet was told what must not be: {violations:?}"));
        }
        let seen = self.world.fleet.look(HostId(1)).ok_or("the host is gone")?;
        let preemptible = seen.guests.iter().any(|guest| guest.owner == GuestOwner::Preemptible);
        if preemptible || !matches!(seen.place, Place::Held(_)) {
            return Err(format!("the lease does not have the host for itself: {seen:?}"));
        }
        let lease = self.world.service.leases().get(self.lease).ok_or("the lease is gone")?;
        if lease.lease.status != LeaseStatus::Active {
            return Err(format!("the lease is {} on {seen:?}", lease.lease.status.name()));
        }
        // A client whose instance was accepted learns its result.
        self.world.run_until(self.world.now() + SignedDuration::from_mins(5)).await;
        let instances = self.world.service_of(0).instances().all(None, None);
        let (own, others): (Vec<_>, Vec<_>) =
            instances.iter().partition(|record| record.instance.kind.lease().is_some());
        let wanted = self.scene.requests.iter().filter(|request| **request == Request::Own).count();
        let all = |records: &[&Arc<InstanceRecord>], status| {
            records.iter().all(|record| record.instance.status == status)
        };
        if own.len() != wanted || !all(&own, InstanceStatus::Active) || !all(&others, InstanceStatus::Error) {
            return Err(format!("{wanted} of these should run, and only those in the lease: {instances:?}"));
        }
        for (request, answer) in &self.asked {
            let Err(refused) = answer else { continue };
            if *request != Request::Preemptible || !matches!(refused, ServiceError::NoHost(_)) {
                return Err(format!("{request:?} was refused: {refused}"));
            }
        }
        Ok(())
    }
}

impl Scene {
    /// The lease. It consents to preemptible instances if the settings allow that.
    fn lease(&self) -> Result<NewLease, String> {
        let (begins, end) = (self.begins, self.begins + SignedDuration::from_hours(1));
        let window = Window::new(begins + self.start, end).map_err(|error| error.to_string())?;
        let hosts = ReservationTerms::Hosts(HostsTerms::new(1, 1).map_err(|error| error.to_string())?);
        let terms = Terms::new(window, None, vec![hosts]).map_err(|error| error.to_string())?;
        Ok(NewLease {
            asked_at: begins,
            name: "a lease".to_owned(),
            terms: terms.backfilled(self.settings.plan_rules.backfill),
            wording: vec![Wording::default()],
            end_action: None,
            waits: false,
        })
    }
}

/// An instance in the lease.
fn part_of(lease: LeaseId) -> NewInstance {
    let size = Some(GuestSize { vcpus: 16, memory_mib: 1024, disk_gib: 10 });
    let placing = Placing { size, hint: Some(LeaseHint::Lease(lease)), ..Placing::default() };
    NewInstance { name: "own".to_owned(), placing, requeue: false }
}

fn preemptible() -> NewInstance {
    let size = Some(GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 });
    let placing = Placing { size, marked: Marked(vec![(Mark::Hint, true)]), ..Placing::default() };
    NewInstance { name: "batch".to_owned(), placing, requeue: false }
}
