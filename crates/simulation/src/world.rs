//! A service with its store, its fleet and its clock, driven by hand: time passes only when it is told to, and
//! nothing happens that is not in a [`Happened`].

use std::sync::Arc;
use std::task::Poll;

use ambient::{Clock, ManualClock, SeededIds};
use fleet::Inventory;
use fleet::simulated::{Layout, SimulatedFleet};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::project::{ProjectId, UserId};
use service::{Caller, Done, Enforcer, HostSelector, OpenError, Parts, Service, Settings, Task};

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
    /// A task came to its end, and was noted.
    Noted(Done),
    /// The service went through a cycle and handed out these tasks, which are under way now.
    Cycled(Vec<Task>),
    /// Time passed.
    Waited,
}

/// A service and all around it.
pub struct World {
    /// The time.
    pub clock: Arc<ManualClock>,
    /// The store.
    pub store: Arc<FaultyStore>,
    /// The machines.
    pub fleet: Arc<SimulatedFleet>,
    /// The service.
    pub service: Arc<Service>,
    parts: Parts,
    settings: Settings,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    wake_at: Timestamp,
    wanted: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl World {
    /// A world in which nobody has done anything yet. `fleet` gives its machines their ways.
    pub async fn new(
        setup: Setup,
        fleet: impl FnOnce(SimulatedFleet) -> SimulatedFleet,
    ) -> Result<Self, OpenError> {
        let clock = Arc::new(ManualClock::new(setup.begins));
        let store = Arc::new(FaultyStore::new(setup.seed));
        let fleet = Arc::new(fleet(SimulatedFleet::new(clock.clone(), setup.seed, &setup.layout)));
        let parts = Parts {
            store: store.clone(),
            fleet: fleet.clone(),
            clock: clock.clone(),
            ids: Arc::new(SeededIds::new(setup.seed)),
            enforcer: setup.enforcer,
        };
        let service = Service::open(parts.clone(), setup.settings.clone()).await?;
        let (settings, wake_at) = (setup.settings, setup.begins);
        let running = FuturesUnordered::new();
        Ok(Self { clock, store, fleet, service, parts, settings, running, wake_at, wanted: true })
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
            self.wait_for(self.service.add_host(&operator, HostSelector::Id(host), capabilities)).await?;
        }
        Ok(())
    }

    /// Lets time pass until the call is answered. Nothing else is carried out meanwhile.
    pub async fn wait_for<T>(&self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            if let Poll::Ready(answer) = futures::poll!(&mut call) {
                return answer;
            }
            // The runtime gives every task a share of its attention, which is used up some time.
            tokio::task::yield_now().await;
            let soon = self.now() + SignedDuration::from_millis(1);
            self.clock.set(self.next_event().unwrap_or(soon).max(soon));
        }
    }

    /// When anything happens next by itself.
    fn next_event(&self) -> Option<Timestamp> {
        [self.fleet.next_event(), self.clock.next_alarm()].into_iter().flatten().min()
    }

    /// The process dies. What it asked of the machines is under way; nobody waits for the answers.
    pub async fn restart(&mut self) -> Result<(), OpenError> {
        self.running.clear();
        self.service = Service::open(self.parts.clone(), self.settings.clone()).await?;
        self.wanted = true;
        Ok(())
    }

    /// Another service on the same store and fleet.
    pub async fn beside(&self) -> Result<Arc<Service>, OpenError> {
        Service::open(self.parts.clone(), self.settings.clone()).await
    }

    /// A call may have changed something: the service would be woken up.
    pub fn touched(&mut self) {
        self.wanted = true;
    }

    /// How many tasks are under way.
    pub fn under_way(&self) -> usize {
        self.running.len()
    }

    /// Lets the next thing happen: a task that has come to its end is noted, or a cycle is gone through, or
    /// time passes until something can happen, but not beyond `until`. None if nothing happens until then.
    pub async fn next(&mut self, until: Timestamp) -> Option<Happened> {
        if let Some(Some(done)) = tokio::task::unconstrained(self.running.next()).now_or_never() {
            self.service.note(done.clone());
            self.wanted = true;
            return Some(Happened::Noted(done));
        }
        if self.wanted || self.wake_at <= self.now() {
            return Some(Happened::Cycled(self.cycle().await));
        }
        let now = self.now();
        if now >= until {
            return None;
        }
        let events = self.next_event().filter(|at| *at > now && !self.running.is_empty());
        let next = [Some(self.wake_at), events, Some(until)].into_iter().flatten().min().unwrap_or(until);
        // Should an event be announced for now again and again, time passes nevertheless.
        self.clock.set(next.max(now + SignedDuration::from_micros(1)));
        Some(Happened::Waited)
    }

    async fn cycle(&mut self) -> Vec<Task> {
        let cycle = self.service.cycle().await;
        self.wanted = false;
        self.wake_at = cycle.wake_at;
        for task in cycle.tasks.clone() {
            let service = self.service.clone();
            self.running.push(async move { service.perform(task).await }.boxed());
        }
        cycle.tasks
    }

    /// Lets everything happen that does until then.
    pub async fn run_until(&mut self, until: Timestamp) {
        while self.next(until).await.is_some() {}
    }

    /// Lets everything happen that does without time passing.
    pub async fn settle(&mut self) {
        self.wanted = true;
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
    caller("operators")
}

/// Somebody of that project.
pub fn caller(project: &str) -> Caller {
    Caller {
        user: UserId(format!("{project}-user")),
        project: ProjectId(project.to_owned()),
        request_id: "req-00000000-0000-4000-8000-000000000000".to_owned(),
    }
}
