//! A service with its store, its fleet and its clock, driven by hand: time passes only when it is told to, and
//! nothing happens that is not in a [`Happened`].

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

/// What a world is made of.
#[derive(Debug)]
pub struct Setup {
    /// From which its choices follow.
    pub seed: u64,
    /// When it begins.
    pub begins: Timestamp,
    /// Its machines.
    pub layout: Layout,
    /// Settings of the service.
    pub settings: Settings,
    /// The external service, if there is one.
    pub enforcer: Option<Arc<dyn Enforcer>>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Happened {
    /// A task ended, and was noted.
    Noted(Done),
    /// A service went through a cycle and handed out these tasks, which are under way now.
    Cycled(Vec<Task>),
    /// What a service would decide in its next cycle depends on how it is asked ([`World::rehearsing`]).
    Differed(String),
    /// A service has begun a step that another one is at.
    Repeated(Action),
    /// Time passed.
    Waited,
}

/// A service and all around it; or several that share a store and a fleet.
pub struct World {
    /// The time.
    pub clock: Arc<ManualClock>,
    /// The store, as the first service reaches it.
    pub store: Arc<FaultyStore>,
    /// The machines.
    pub fleet: Arc<SimulatedFleet>,
    /// The first service.
    pub service: Arc<Service>,
    replicas: Vec<Replica>,
    /// Whose turn it is.
    turn: usize,
    /// The store tells of commits.
    news: bool,
    /// Before each cycle it is found out whether its decision follows from what is known, and how often it was.
    rehearsed: Option<u64>,
}

/// A running service.
struct Replica {
    service: Arc<Service>,
    store: Arc<FaultyStore>,
    parts: Parts,
    settings: Settings,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Steps that the fleet is being asked for.
    steps: BTreeSet<Action>,
    /// Tasks that have ended and were not noted.
    ended: VecDeque<Done>,
    /// It was killed, and nobody has started it again.
    dead: bool,
    wake_at: Timestamp,
    wanted: bool,
    /// How many commits there were when it last looked.
    commits: u64,
}

/// A clock that is so far ahead of another.
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
        // As far as there is such a time.
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

    /// Nobody waits for its tasks any more.
    fn die(&mut self) {
        self.running.clear();
        self.ended.clear();
        self.steps.clear();
    }

    /// A task that has ended.
    fn done(&mut self) -> Option<Done> {
        let done = self.ended.pop_front().or_else(|| self.end())?;
        self.service.execution().note(done.clone());
        self.wanted = true;
        Some(done)
    }

    /// Goes on with the tasks until one ends.
    fn end(&mut self) -> Option<Done> {
        let done = tokio::task::unconstrained(self.running.next()).now_or_never().flatten()?;
        if let Done::Step(performed) = &done {
            self.steps.remove(&performed.step.claim.action);
        }
        Some(done)
    }

    /// Whether the fleet is being asked for the step.
    fn is_at(&mut self, action: Action) -> bool {
        // Time may have passed since the task could last go on.
        while self.steps.contains(&action) {
            let Some(done) = self.end() else { return true };
            self.ended.push_back(done);
        }
        false
    }

    /// Goes through a cycle.
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
    /// A world in which nobody has done anything yet. `fleet` gives its machines their ways.
    pub async fn new(
        setup: Setup,
        fleet: impl FnOnce(SimulatedFleet) -> SimulatedFleet,
    ) -> Result<Self, OpenError> {
        Box::pin(Self::shared(setup, &[SignedDuration::ZERO], fleet)).await
    }

    /// The same for several services that share the store and the machines, each with a clock that is so far
    /// ahead.
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

    /// The same, but what each cycle decides is also decided once more, and pass by pass, and has to be the same.
    #[must_use]
    pub fn rehearsing(self) -> Self {
        Self { rehearsed: Some(0), ..self }
    }

    /// How many cycles were decided several times.
    pub fn rehearsed(&self) -> u64 {
        self.rehearsed.unwrap_or_default()
    }

    /// The service to which the last thing happened.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// How many services there are.
    pub fn replicas(&self) -> usize {
        self.replicas.len()
    }

    /// One of the services.
    pub fn service_of(&self, replica: usize) -> &Arc<Service> {
        &self.replicas[replica].service
    }

    /// The store as that service reaches it.
    pub fn store_of(&self, replica: usize) -> &Arc<FaultyStore> {
        &self.replicas[replica].store
    }

    /// How many commits the store took.
    pub fn commits(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.store.commits()).sum()
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes on all machines of the layout, with what an operator would note of them.
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

    /// Lets time pass until the call is answered. Nothing else is carried out meanwhile.
    pub async fn wait_for<T>(&self, call: impl Future<Output = T>) -> T {
        // Else the runtime has it pause now and then, which would look as if it waited for something.
        let mut call = std::pin::pin!(tokio::task::unconstrained(call));
        loop {
            if let Poll::Ready(answer) = futures::poll!(&mut call) {
                return answer;
            }
            // What it waits for may be a task of its own.
            tokio::task::yield_now().await;
            let soon = self.now() + SignedDuration::from_millis(1);
            self.clock.set(self.next_event().unwrap_or(soon).max(soon));
        }
    }

    /// When anything happens next by itself.
    fn next_event(&self) -> Option<Timestamp> {
        [self.fleet.next_event(), self.clock.next_alarm()].into_iter().flatten().min()
    }

    /// The first service dies, and is started again.
    pub async fn restart(&mut self) -> Result<(), OpenError> {
        self.restart_one(0).await
    }

    /// The same, with other settings from then on.
    pub async fn restart_with(&mut self, settings: Settings) -> Result<(), OpenError> {
        let holder = self.replicas[0].settings.holder.clone();
        self.replicas[0].settings = Settings { holder, ..settings };
        self.restart().await
    }

    /// A service dies, and is started again. What it asked of the machines is under way; nobody waits for the
    /// answers. If it does not start it is as it was.
    pub async fn restart_one(&mut self, replica: usize) -> Result<(), OpenError> {
        let dead = &mut self.replicas[replica];
        dead.die();
        let (parts, settings, store) = (dead.parts.clone(), dead.settings.clone(), dead.store.clone());
        *dead = Replica::start(parts, settings, store).await?;
        self.service = self.replicas[0].service.clone();
        Ok(())
    }

    /// A service dies, and is not started again before [`Self::restart_one`].
    pub fn kill(&mut self, replica: usize) {
        let killed = &mut self.replicas[replica];
        killed.die();
        killed.dead = true;
    }

    /// Another service on the same store and fleet, that nobody drives.
    pub async fn beside(&self) -> Result<Arc<Service>, OpenError> {
        Service::open(self.replicas[0].parts.clone(), self.replicas[0].settings.clone()).await
    }

    /// A call may have changed something: the services would be woken up.
    pub fn touched(&mut self) {
        for replica in &mut self.replicas {
            replica.wanted = true;
        }
    }

    /// The same of a call to one service. Others are told by the store what it has committed, or not.
    pub fn touched_one(&mut self, replica: usize) {
        self.replicas[replica].wanted = true;
    }

    /// From now on the store does not tell when somebody else has committed something.
    pub fn without_news(&mut self) {
        self.news = false;
    }

    /// How many tasks are under way.
    pub fn under_way(&self) -> usize {
        self.replicas.iter().map(|replica| replica.running.len()).sum()
    }

    /// Lets the next thing happen: a task that has ended is noted, or a cycle is gone through, or
    /// time passes until something can happen, but not beyond `until`. None if nothing happens until then.
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
            // Somebody else has committed something, and it is told so.
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
        // Should an event be announced for now again and again, time passes nevertheless.
        self.clock.set(next.max(now + SignedDuration::from_micros(1)));
        Some(Happened::Waited)
    }

    /// A step among these tasks of the service whose turn it is that another service is at.
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

    /// Lets everything happen that does until then.
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

    /// Lets everything happen that does without time passing.
    pub async fn settle(&mut self) {
        self.touched();
        self.run_until(self.now()).await;
    }

    /// The hosts that machines are held as.
    pub fn held(&self, hosts: impl IntoIterator<Item = HostId>) -> usize {
        let held = |host: &HostId| {
            self.fleet.look(*host).is_some_and(|seen| matches!(seen.place, leases::plan::Place::Held(_)))
        };
        hosts.into_iter().filter(held).count()
    }
}

/// Who looks after hosts.
pub fn operator() -> Caller {
    Caller { administrator: true, ..caller("operators") }
}

/// Somebody of that project.
pub fn caller(project: &str) -> Caller {
    Caller {
        user: UserId(format!("{project}-user")),
        project: ProjectId(project.to_owned()),
        request_id: "req-00000000-0000-4000-8000-000000000000".to_owned(),
        administrator: false,
    }
}
