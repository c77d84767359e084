//! A service with its store, fleet and clock, driven by hand: time passes only on request, and every event is
//! reported as a [`Happened`].

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Poll;

use ambient::{Clock, ManualClock, SeededIds};
use async_trait::async_trait;
use fleet::Inventory;
use fleet::simulated::{Layout, SimulatedFleet};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::{SignedDuration, Timestamp};
use leases::free_pool::FreePool;
use leases::ids::HostId;
use leases::plan::Action;
use leases::project::{ProjectId, UserId};
use service::{Caller, Done, Enforcer, HostSelector, OpenError, Parts, Service, Settings, Task};
use store::Holder;
use store::memory::MemoryStore;

use crate::faulty_store::FaultyStore;

/// Ingredients of a [`World`].
#[derive(Debug)]
pub struct Setup {
    /// Determines all random choices.
    pub seed: u64,
    pub begins: Timestamp,
    /// The machines.
    pub layout: Layout,
    pub settings: Settings,
    /// External enforcement service, if any.
    pub enforcer: Option<Arc<dyn Enforcer>>,
}

/// An event in a [`World`].
#[derive(Clone, Debug)]
pub enum Happened {
    /// A task ended, and its service learned the result.
    Noted(Done),
    /// A service ran a cycle and started these tasks.
    Cycled(Vec<Task>),
    /// A rehearsal found that the next cycle's decision depends on how it is made ([`World::rehearsing`]).
    Differed(String),
    /// A service started a step that another service is carrying out.
    Repeated(Action),
    Waited,
}

/// A service and its surroundings, or several services that share a store and a fleet.
pub struct World {
    /// The true time. Services can have clocks that are ahead or behind.
    pub clock: Arc<ManualClock>,
    /// The first service's connection to the store.
    pub store: Arc<FaultyStore>,
    pub fleet: Arc<SimulatedFleet>,
    /// The first service.
    pub service: Arc<Service>,
    replicas: Vec<Replica>,
    /// Number of the service that has its turn.
    turn: usize,
    /// The store notifies services of commits.
    news: bool,
    /// Number of cycles that were rehearsed. `None` if rehearsals are off.
    rehearsed: Option<u64>,
}

struct Replica {
    service: Arc<Service>,
    store: Arc<FaultyStore>,
    parts: Parts,
    settings: Settings,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Steps that the fleet is carrying out for this service.
    steps: BTreeSet<Action>,
    /// Results of tasks that the service hasn't learned yet.
    ended: VecDeque<Done>,
    /// The process was killed and hasn't been restarted.
    dead: bool,
    wake_at: Timestamp,
    wanted: bool,
    /// Number of commits after the service's last cycle.
    commits: u64,
}

/// A clock that is ahead of another one.
#[derive(Debug)]
struct SkewedClock {
    clock: Arc<ManualClock>,
    ahead: SignedDuration,
}

#[async_trait]
impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        self.clock.now() + self.ahead
    }

    async fn sleep_until(&self, instant: Timestamp) {
        // Without the subtraction if its result would be out of range.
        let instant = instant.checked_sub(self.ahead).unwrap_or(instant);
        self.clock.sleep_until(instant).await;
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Replica {
    async fn start(parts: Parts, settings: Settings, store: Arc<FaultyStore>) -> Result<Self, OpenError> {
        let service = Service::open(parts.clone(), settings.clone()).await?;
        let wake_at = parts.clock.now();
        Ok(Self {
            service,
            store,
            parts,
            settings,
            running: FuturesUnordered::new(),
            steps: BTreeSet::new(),
            ended: VecDeque::new(),
            dead: false,
            wake_at,
            wanted: true,
            commits: 0,
        })
    }

    /// Drops the tasks under way and their results.
    fn die(&mut self) {
        self.running.clear();
        self.ended.clear();
        self.steps.clear();
    }

    /// Reports a task that has ended to the service.
    fn done(&mut self) -> Option<Done> {
        let done = self.ended.pop_front().or_else(|| self.end())?;
        self.service.execution().note(done.clone());
        self.wanted = true;
        Some(done)
    }

    /// Polls the tasks until one ends. `None` if all are pending.
    fn end(&mut self) -> Option<Done> {
        let done = tokio::task::unconstrained(self.running.next()).now_or_never().flatten()?;
        if let Done::Step(performed) = &done {
            self.steps.remove(&performed.step.claim.action);
        }
        Some(done)
    }

    /// Whether the fleet is carrying out the step for this service.
    fn is_at(&mut self, action: Action) -> bool {
        // Time may have passed since the task was last polled.
        while self.steps.contains(&action) {
            let Some(done) = self.end() else { return true };
            self.ended.push_back(done);
        }
        false
    }

    /// Runs a cycle and starts its tasks.
    async fn cycle(&mut self) -> Vec<Task> {
        let cycle = self.service.execution().cycle().await;
        self.wanted = false;
        self.wake_at = cycle.wake_at;
        for task in cycle.tasks.clone() {
            if let Task::Step(step) = &task {
                self.steps.insert(step.claim.action);
            }
            let service = self.service.clone();
            self.running.push(async move { service.execution().perform(task).await }.boxed());
        }
        cycle.tasks
    }
}

impl World {
    /// A world with one service and an empty store. `fleet` configures the machines.
    pub async fn new(
        setup: Setup,
        fleet: impl FnOnce(SimulatedFleet) -> SimulatedFleet,
    ) -> Result<Self, OpenError> {
        Box::pin(Self::shared(setup, &[SignedDuration::ZERO], fleet)).await
    }

    /// A world with several services that share the store and the machines. `clocks` is how far each
    /// service's clock is ahead.
    pub async fn shared(
        setup: Setup,
        clocks: &[SignedDuration],
        fleet: impl FnOnce(SimulatedFleet) -> SimulatedFleet,
    ) -> Result<Self, OpenError> {
        let clock = Arc::new(ManualClock::new(setup.begins));
        let fleet = Arc::new(fleet(SimulatedFleet::new(clock.clone(), setup.seed, &setup.layout)));
        let memory = Arc::new(MemoryStore::new());
        let ids = Arc::new(SeededIds::new(setup.seed));
        let mut replicas = Vec::new();
        for (number, &ahead) in (0..).zip(clocks) {
            let theirs = (clocks.len() > 1).then(|| clock.clone());
            let store = Arc::new(FaultyStore::new(setup.seed + number, memory.clone(), theirs));
            let parts = Parts {
                store: store.clone(),
                fleet: fleet.clone(),
                clock: Arc::new(SkewedClock { clock: clock.clone(), ahead }),
                ids: ids.clone(),
                enforcer: setup.enforcer.clone(),
            };
            let holder = Holder(format!("{}-{number}", setup.settings.holder));
            let settings = Settings { holder, ..setup.settings.clone() };
            // On the heap, since settings are large.
            replicas.push(Box::pin(Replica::start(parts, settings, store)).await?);
        }
        let (service, store) = (replicas[0].service.clone(), replicas[0].store.clone());
        Ok(Self { clock, store, fleet, service, replicas, turn: 0, news: true, rehearsed: None })
    }

    /// Before each cycle, also makes its decision again, as a whole and pass by pass. A difference is
    /// reported as [`Happened::Differed`].
    #[must_use]
    pub fn rehearsing(self) -> Self {
        Self { rehearsed: Some(0), ..self }
    }

    /// Number of cycles that were rehearsed.
    pub fn rehearsed(&self) -> u64 {
        self.rehearsed.unwrap_or_default()
    }

    /// Number of the service that the last event belongs to.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Number of services.
    pub fn replicas(&self) -> usize {
        self.replicas.len()
    }

    pub fn service_of(&self, replica: usize) -> &Arc<Service> {
        &self.replicas[replica].service
    }

    /// That service's connection to the store.
    pub fn store_of(&self, replica: usize) -> &Arc<FaultyStore> {
        &self.replicas[replica].store
    }

    /// Number of commits by all services.
    pub fn commits(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.store.commits()).sum()
    }

    /// The true time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Adds all machines of the layout as hosts, with the capabilities that an operator would note.
    pub async fn take_on(&self, layout: &Layout) -> Result<(), service::ServiceError> {
        let machines = self.wait_for(self.fleet.machines()).await;
        for host in machines.unwrap_or_default().into_iter().map(|machine| machine.id) {
            let capabilities = layout.capabilities(host).into_iter().collect();
            let operator = operator();
            self.wait_for(self.service.hosts().add(
                &operator,
                HostSelector::Id(host),
                capabilities,
                FreePool::DEFAULT,
            ))
            .await?;
        }
        Ok(())
    }

    /// Lets time pass until the call is answered. Until then, no tasks or cycles run.
    pub async fn wait_for<T>(&self, call: impl Future<Output = T>) -> T {
        // Otherwise tokio's cooperative scheduling would make the call yield now and then, which would look
        // like waiting.
        let mut call = std::pin::pin!(tokio::task::unconstrained(call));
        loop {
            if let Poll::Ready(answer) = futures::poll!(&mut call) {
                return answer;
            }
            // The call may wait for a spawned task.
            tokio::task::yield_now().await;
            let soon = self.now() + SignedDuration::from_millis(1);
            self.clock.set(self.next_event().unwrap_or(soon).max(soon));
        }
    }

    /// Time of the next event in the fleet or alarm of the clock.
    fn next_event(&self) -> Option<Timestamp> {
        [self.fleet.next_event(), self.clock.next_alarm()].into_iter().flatten().min()
    }

    /// Kills the first service and starts it again.
    pub async fn restart(&mut self) -> Result<(), OpenError> {
        self.restart_one(0).await
    }

    /// Like [`Self::restart`], with other settings from then on.
    pub async fn restart_with(&mut self, settings: Settings) -> Result<(), OpenError> {
        let holder = self.replicas[0].settings.holder.clone();
        self.replicas[0].settings = Settings { holder, ..settings };
        self.restart().await
    }

    /// Kills a service and starts it again. Its calls to machines stay under way, but their answers are
    /// dropped. If the start fails, its tasks are dropped nevertheless.
    pub async fn restart_one(&mut self, replica: usize) -> Result<(), OpenError> {
        let dead = &mut self.replicas[replica];
        dead.die();
        let (parts, settings, store) = (dead.parts.clone(), dead.settings.clone(), dead.store.clone());
        *dead = Replica::start(parts, settings, store).await?;
        self.service = self.replicas[0].service.clone();
        Ok(())
    }

    /// Kills a service. [`Self::restart_one`] starts it again.
    pub fn kill(&mut self, replica: usize) {
        let killed = &mut self.replicas[replica];
        killed.die();
        killed.dead = true;
    }

    /// Opens another service on the same store and fleet. Its loop isn't driven.
    pub async fn beside(&self) -> Result<Arc<Service>, OpenError> {
        Service::open(self.replicas[0].parts.clone(), self.replicas[0].settings.clone()).await
    }

    /// Wakes the loops of all services, since a call may have changed something.
    pub fn touched(&mut self) {
        for replica in &mut self.replicas {
            replica.wanted = true;
        }
    }

    /// Wakes one service's loop after a call to it. The store notifies the other services, if notifications
    /// are on.
    pub fn touched_one(&mut self, replica: usize) {
        self.replicas[replica].wanted = true;
    }

    /// Stops the store's notifications of other services' commits.
    pub fn without_news(&mut self) {
        self.news = false;
    }

    /// Number of tasks under way.
    pub fn under_way(&self) -> usize {
        self.replicas.iter().map(|replica| replica.running.len()).sum()
    }

    /// Runs the next event: a result is reported, a service runs a cycle, or time passes until something can
    /// happen, but not beyond `until`. `None` if nothing happens until then.
    pub async fn next(&mut self, until: Timestamp) -> Option<Happened> {
        for _ in 0..self.replicas.len() {
            self.turn = (self.turn + 1) % self.replicas.len();
            let commits = self.commits();
            let replica = &mut self.replicas[self.turn];
            if replica.dead {
                continue;
            }
            if let Some(done) = replica.done() {
                return Some(Happened::Noted(done));
            }
            // Another service has committed something, and the store notifies this one.
            replica.wanted |= self.news && replica.commits != commits;
            if replica.wanted || replica.wake_at <= replica.parts.clock.now() {
                if let Some(cycles) = &mut self.rehearsed {
                    *cycles += 1;
                    if let Err(difference) = replica.service.execution().rehearse() {
                        return Some(Happened::Differed(difference));
                    }
                }
                let tasks = replica.cycle().await;
                let commits = self.commits();
                self.replicas[self.turn].commits = commits;
                if let Some(action) = self.repeated(&tasks) {
                    return Some(Happened::Repeated(action));
                }
                return Some(Happened::Cycled(tasks));
            }
        }
        let now = self.now();
        if now >= until {
            return None;
        }
        let events = self.next_event().filter(|at| *at > now && self.under_way() > 0);
        let wakes = self
            .replicas
            .iter()
            .filter(|replica| !replica.dead)
            .map(|replica| now + replica.wake_at.duration_since(replica.parts.clock.now()));
        let next = wakes.chain(events).chain([until]).min().unwrap_or(until);
        // Time passes even if an event is announced for now again and again.
        self.clock.set(next.max(now + SignedDuration::from_micros(1)));
        Some(Happened::Waited)
    }

    /// First of these tasks' steps that another service is carrying out.
    fn repeated(&mut self, tasks: &[Task]) -> Option<Action> {
        let mut steps = tasks.iter().filter_map(|task| match task {
            Task::Step(step) => Some(step.claim.action),
            _ => None,
        });
        let turn = self.turn;
        steps.find(|action| {
            let mut others = self.replicas.iter_mut().enumerate().filter(|(number, _)| *number != turn);
            others.any(|(_, other)| other.is_at(*action))
        })
    }

    /// Runs all events until then.
    ///
    /// # Panics
    ///
    /// If two services are at the same step.
    pub async fn run_until(&mut self, until: Timestamp) {
        while let Some(happened) = self.next(until).await {
            let repeated = matches!(happened, Happened::Repeated(_));
            assert!(!repeated, "two services are at a step: {happened:?}");
        }
    }

    /// Runs all events that need no time to pass.
    pub async fn settle(&mut self) {
        self.touched();
        self.run_until(self.now()).await;
    }

    /// Number of these hosts that are held for a reservation.
    pub fn held(&self, hosts: impl IntoIterator<Item = HostId>) -> usize {
        let held = |host: &HostId| {
            self.fleet.look(*host).is_some_and(|seen| matches!(seen.place, leases::plan::Place::Held(_)))
        };
        hosts.into_iter().filter(held).count()
    }
}

/// An administrator.
pub fn operator() -> Caller {
    Caller { administrator: true, ..caller("operators") }
}

/// A user of that project.
pub fn caller(project: &str) -> Caller {
    Caller {
        user: UserId(format!("{project}-user")),
        project: ProjectId(project.to_owned()),
        request_id: "req-00000000-0000-4000-8000-000000000000".to_owned(),
        administrator: false,
    }
}
