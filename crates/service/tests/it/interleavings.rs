//! The race that Blazar's specification leaves open (spec PRE-09): an instance that is started while its host is fenced,
//! drained and handed over, with two services on one store. All orders of what the three can do are tried.

use service::{Done, NewInstance, Placing, ServiceError, Settings, Task};
use simulation::{Setup, World, caller};

use fleet::simulated::{Layout, Model};
use jiff::SignedDuration;
use leases::ids::LeaseId;
use leases::plan::{GuestOwner, GuestSize, Place};
use leases::preemption::{Mark, Marked};

use crate::terms::{asking, at, hosts, settings, status};

/// So many choices are tried in all ways; after these whatever is first happens.
const CHOICES: usize = 6;

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Somebody asks a service for an instance.
    Ask,
    /// A service goes through a cycle.
    Cycle(usize),
    /// The fleet is asked for the task at that position.
    Perform(usize),
    /// The service is told what came of the task at that position.
    Note(usize),
}

/// One order.
struct Play {
    world: World,
    lease: LeaseId,
    asked: Option<Result<(), ServiceError>>,
    /// Tasks that are to be carried out, and whose they are.
    tasks: Vec<(usize, Task)>,
    /// Tasks that were, and whose they were.
    done: Vec<(usize, Done)>,
    /// Services that have been told of something since their last cycle.
    told: [bool; 2],
}

impl Play {
    /// Two services, and a host that a lease has from minute 30 on. `guest` runs there already.
    async fn begin(settings: Settings, guest: bool) -> Self {
        let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
        let setup = Setup { seed: 1, begins: at(0), layout: layout.clone(), settings, enforcer: None };
        let mut world = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await.expect("empty");
        world.take_on(&layout).await.expect("taken on");
        world.settle().await;
        let made = world.service_of(0).create_lease(&caller("q"), asking(30, 60, vec![hosts(1)]), None).await;
        let lease = made.expect("free").lease.lease.id;
        if guest {
            world.service_of(0).create_instance(&caller("p"), preemptible()).await.expect("room");
        }
        world.settle().await;
        Self { world, lease, asked: None, tasks: Vec::new(), done: Vec::new(), told: [true; 2] }
    }

    fn possible(&self) -> Vec<Next> {
        let ask = self.asked.is_none().then_some(Next::Ask);
        let notes = (0..self.done.len()).map(Next::Note);
        let tasks = (0..self.tasks.len()).map(Next::Perform);
        let cycles = [0, 1].into_iter().filter(|service| self.told[*service]).map(Next::Cycle);
        cycles.chain(tasks).chain(notes).chain(ask).collect()
    }

    async fn happens(&mut self, next: Next) {
        let commits = self.world.commits();
        match next {
            Next::Ask => {
                let service = self.world.service_of(1).clone();
                let answer = service.create_instance(&caller("p"), preemptible()).await;
                self.asked = Some(answer.map(|_| ()));
            }
            Next::Cycle(number) => {
                self.told[number] = false;
                let cycle = self.world.service_of(number).clone().cycle().await;
                self.tasks.extend(cycle.tasks.into_iter().map(|task| (number, task)));
            }
            Next::Perform(position) => {
                let (number, task) = self.tasks.remove(position);
                let service = self.world.service_of(number).clone();
                let done = self.world.wait_for(service.perform(task)).await;
                self.done.push((number, done));
            }
            Next::Note(position) => {
                let (number, done) = self.done.remove(position);
                self.world.service_of(number).note(done);
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

    /// The lease has its host in time, and nobody is there who is not its own.
    async fn check(mut self, order: &[Next]) {
        self.world.touched();
        self.world.run_until(at(30) + SignedDuration::from_secs(2)).await;
        let seen = self.world.fleet.look(leases::ids::HostId(1)).expect("taken on");
        let preemptible = seen.guests.iter().any(|guest| guest.owner == GuestOwner::Preemptible);
        assert_eq!(self.world.fleet.violations(), [], "{order:?}");
        assert_eq!(status(&self.world, self.lease), "ACTIVE", "{order:?} {seen:?}");
        assert!(!preemptible && matches!(seen.place, Place::Held(_)), "{order:?} {seen:?}");
        // Who was told that an instance is being started is told what became of it.
        self.world.run_until(at(35)).await;
        let instances = self.world.service_of(0).instances(None, None);
        let statuses: Vec<_> = instances.iter().map(|record| record.instance.status.name()).collect();
        assert!(statuses.iter().all(|status| *status == "ERROR"), "{order:?} {statuses:?}");
        if let Some(Err(refused)) = self.asked {
            assert!(matches!(refused, ServiceError::NoHost(_)), "{order:?} {refused:?}");
        }
    }
}

fn preemptible() -> NewInstance {
    let size = Some(GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 });
    let placing = Placing { size, marked: Marked(vec![(Mark::Hint, true)]), ..Placing::default() };
    NewInstance { name: "batch".to_owned(), placing, requeue: false }
}

/// Tries all orders, from that minute on.
async fn all_orders(settings: Settings, guest: bool, from_second: i64) {
    let (mut choices, mut plays) = (Vec::new(), 0_u32);
    loop {
        let mut play = Play::begin(settings.clone(), guest).await;
        let from = at(0) + SignedDuration::from_secs(from_second);
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
fn rules(ahead: Option<SignedDuration>) -> Settings {
    let mut settings = settings();
    settings.preemption.allowed = true;
    settings.preemption.least_lifetime = SignedDuration::ZERO;
    settings.plan_rules.grace = SignedDuration::ZERO;
    settings.plan_rules.clear_ahead = ahead;
    settings
}

#[tokio::test]
async fn pre_09_a_start_that_meets_the_fence_ahead_of_a_lease_in_any_order_leaves_nobody_behind() {
    all_orders(rules(Some(SignedDuration::from_mins(2))), true, 28 * 60).await;
}

#[tokio::test]
async fn pre_09_a_start_that_meets_drain_and_hand_over_in_any_order_leaves_nobody_behind() {
    all_orders(rules(None), true, 30 * 60).await;
}
