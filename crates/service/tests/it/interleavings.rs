//! The race that Blazar's specification leaves open (PRE-09): an instance that is started while its host is fenced,
//! drained and handed over, with two services on one store. The same of one that is started on a host of a lease (PRE-11)
//! while the lease starts to use it, or does not let others on it any more. All orders of what the three can do are tried.

use std::collections::BTreeMap;

use service::{Done, LeaseChanges, NewInstance, NewLease, Placing, ServiceError, Settings, Task};
use simulation::{Setup, World, caller};

use fleet::simulated::{Layout, Model};
use jiff::SignedDuration;
use leases::admission::Changes;
use leases::ids::LeaseId;
use leases::instance::LeaseHint;
use leases::plan::{GuestOwner, GuestSize, Place};
use leases::preemption::{Mark, Marked};

use crate::terms::{asking, at, hosts, settings, status};

/// So many choices are tried in all ways; after these whatever is first happens.
const CHOICES: usize = 6;

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The request at that position is made.
    Ask(usize),
    /// A service goes through a cycle.
    Cycle(usize),
    /// The fleet is asked for the task at that position.
    Perform(usize),
    /// The service is told what came of the task at that position.
    Note(usize),
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// A preemptible instance, of the second service.
    Preemptible,
    /// An instance in the lease, of the first one.
    Own,
    /// That nobody else is on the lease's host any more, of the first one.
    Withdraw,
}

/// What is played.
#[derive(Clone, Debug)]
struct Scene {
    settings: Settings,
    /// The minute when the lease of the host starts.
    start: i64,
    /// When requests begin, in seconds.
    from_second: i64,
    /// All that is asked for, in any order.
    requests: &'static [Request],
}

impl Scene {
    /// Whether the lease lets preemptible instances on its host, which it has from the beginning.
    fn backfills(&self) -> bool {
        self.settings.plan_rules.backfill
    }
}

/// One order.
struct Play<'s> {
    scene: &'s Scene,
    world: World,
    lease: LeaseId,
    /// Requests that were not made yet.
    to_ask: Vec<Request>,
    asked: Vec<(Request, Result<(), ServiceError>)>,
    /// Tasks that are to be carried out, and whose they are.
    tasks: Vec<(usize, Task)>,
    /// Tasks that were, and whose they were.
    done: Vec<(usize, Done)>,
    /// Services that have been told of something since their last cycle.
    told: [bool; 2],
}

impl<'s> Play<'s> {
    /// Two services, and a host that a lease has from some minute on. A preemptible guest runs there already.
    async fn begin(scene: &'s Scene) -> Self {
        let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
        let settings = scene.settings.clone();
        let setup = Setup { seed: 1, begins: at(0), layout: layout.clone(), settings, enforcer: None };
        let mut world = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await.expect("empty");
        world.take_on(&layout).await.expect("taken on");
        world.settle().await;
        let asking = asking(scene.start, 60, vec![hosts(1)]);
        let asking = NewLease { terms: asking.terms.backfilled(scene.backfills()), ..asking };
        let made = world.service_of(0).leases().create(&caller("q"), asking, None).await;
        let lease = made.expect("free").lease.lease.id;
        world.settle().await;
        world.service_of(0).instances().create(&caller("p"), preemptible()).await.expect("room");
        world.settle().await;
        let to_ask = scene.requests.to_vec();
        let (asked, tasks, done) = (Vec::new(), Vec::new(), Vec::new());
        Self { scene, world, lease, to_ask, asked, tasks, done, told: [true; 2] }
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

    /// Lets everything happen, in the order that `choices` say, and then time pass until the lease has started. Says among
    /// how many things was chosen each time.
    async fn play(mut self, choices: &[usize]) -> Vec<usize> {
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
            assert!(order.len() < 500, "it goes round in circles: {order:?}");
            self.happens(next).await;
        }
        self.check(&order).await;
        widths
    }

    /// The lease has its host in time, and nobody is there who is not its own; what it has asked for is there.
    async fn check(mut self, order: &[Next]) {
        let from = at(0) + SignedDuration::from_secs(self.scene.from_second);
        self.world.touched();
        self.world.run_until(at(self.scene.start).max(from) + SignedDuration::from_secs(2)).await;
        let seen = self.world.fleet.look(leases::ids::HostId(1)).expect("taken on");
        let preemptible = seen.guests.iter().any(|guest| guest.owner == GuestOwner::Preemptible);
        assert_eq!(self.world.fleet.violations(), [], "{order:?}");
        assert_eq!(status(&self.world, self.lease), "ACTIVE", "{order:?} {seen:?}");
        assert!(!preemptible && matches!(seen.place, Place::Held(_)), "{order:?} {seen:?}");
        // Who was told that an instance is being started is told what became of it.
        self.world.run_until(self.world.now() + SignedDuration::from_mins(5)).await;
        let instances = self.world.service_of(0).instances().all(None, None);
        let state = |own: bool| {
            let wanted = instances.iter().filter(move |record| record.instance.kind.lease().is_some() == own);
            wanted.map(|record| record.instance.status.name()).collect::<Vec<_>>()
        };
        assert!(state(false).iter().all(|status| *status == "ERROR"), "{order:?} {:?}", state(false));
        let wanted = self.scene.requests.iter().filter(|request| **request == Request::Own).count();
        assert_eq!(state(true), vec!["ACTIVE"; wanted], "{order:?}");
        for (request, answer) in self.asked {
            let Err(refused) = answer else { continue };
            let expected = request == Request::Preemptible && matches!(refused, ServiceError::NoHost(_));
            assert!(expected, "{order:?} {request:?} {refused:?}");
        }
    }
}

/// In the lease.
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

/// Tries all orders.
async fn all_orders(scene: &Scene) {
    let (mut choices, mut plays) = (Vec::new(), 0_u32);
    loop {
        let mut play = Play::begin(scene).await;
        let from = at(0) + SignedDuration::from_secs(scene.from_second);
        play.world.run_until(from - SignedDuration::from_secs(1)).await;
        play.world.clock.set(from);
        let widths = play.play(&choices).await;
        plays += 1;
        // The next in the order of words: the last that can be another becomes the next one.
        choices.resize(widths.len(), 0);
        while choices.last().is_some_and(|last| last + 1 >= widths[choices.len() - 1]) {
            choices.pop();
        }
        let Some(last) = choices.last_mut() else { break };
        *last += 1;
    }
    assert!(plays > 1000, "{plays} orders");
    println!("{plays} orders");
}

/// Preemptible instances may be started as long as nobody else has the host; they have no time to shut down.
fn rules() -> Settings {
    let mut settings = settings();
    settings.preemption.allowed = true;
    settings.preemption.least_lifetime = SignedDuration::ZERO;
    settings.plan_rules.grace = SignedDuration::ZERO;
    settings
}

/// Just before a lease starts.
fn handing_over(ahead: Option<SignedDuration>) -> Scene {
    let mut settings = rules();
    settings.plan_rules.clear_ahead = ahead;
    let ahead = ahead.map_or(0, |ahead| ahead.as_secs());
    Scene { settings, start: 30, from_second: 30 * 60 - ahead, requests: &[Request::Preemptible] }
}

/// In the middle of a lease that lets preemptible instances on its host.
fn backfilling(requests: &'static [Request]) -> Scene {
    let mut settings = rules();
    settings.plan_rules.backfill = true;
    Scene { settings, start: 0, from_second: 5 * 60, requests }
}

#[tokio::test]
async fn pre_09_a_start_that_meets_the_fence_ahead_of_a_lease_in_any_order_leaves_nobody_behind() {
    all_orders(&handing_over(Some(SignedDuration::from_mins(2)))).await;
}

#[tokio::test]
async fn pre_09_a_start_that_meets_drain_and_hand_over_in_any_order_leaves_nobody_behind() {
    all_orders(&handing_over(None)).await;
}

#[tokio::test]
async fn pre_11_a_start_that_meets_one_of_the_lease_in_any_order_leaves_the_lease_its_host() {
    all_orders(&backfilling(&[Request::Preemptible, Request::Own])).await;
}

#[tokio::test]
async fn pre_11_a_start_that_meets_withdrawn_consent_in_any_order_leaves_nobody_on_the_host() {
    all_orders(&backfilling(&[Request::Preemptible, Request::Withdraw])).await;
}
