//! The order in which requests get the write lock, and places to decide without it.
//!
//! The loop goes before all clients, since it starts and ends leases. Clients share what is left by fair queuing: each has a
//! level, which rises by the work of its requests, and who would have the lowest level once it was served goes first
//! (weighted fair queuing: Demers, Keshav and Shenker, 1989). What a request costs is known only when it was served. Until
//! then it is what the client's requests usually cost, or what it takes to write what this one asks for, if that is more.
//! So a client with costly requests waits for the others, and they do not wait for it.
//!
//! A client that arrives, or comes back, begins at the highest level that was let in (start-time fair queuing: Goyal, Vin
//! and Cheng, 1996), less a small [lead](LEAD). So nobody saves up more than the lead, and nobody pays for work that was
//! done while no other client waited. Without the lead, a client with cheap requests would wait for one request of each
//! client that is at the same level and of which nothing is known.
//!
//! Requests of one client go in the order in which they came. A request that stops waiting leaves nothing behind. How many
//! requests a client may have under way is limited by the server.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leases::project::Owner;
use tokio::sync::oneshot;

/// What is charged for a place beside the work: even who decides little keeps others waiting.
const FOR_A_PLACE: u64 = 1000;
/// How far below the request that was let in last a client begins: the work of ten ordinary requests among 1,000 hosts.
/// A decision that costs more has used it up before its commit waits for the write lock.
const LEAD: u64 = 1_000_000;
/// From so many levels on, those are forgotten that do not matter any more.
const MANY_LEVELS: usize = 1024;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The write lock: there is one.
    Write,
    /// To decide or read much without changing anything.
    Read,
}

/// Who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The loop, or the service itself.
    Loop,
    /// A client, as far as it is known.
    Client(Option<Owner>),
}

/// All places, and who waits for them.
#[derive(Debug)]
pub(crate) struct Places {
    queues: Mutex<Queues>,
}

#[derive(Debug)]
struct Queues {
    write: Queue,
    read: Queue,
    /// What clients have used. Who has no level, or a lower one, is at the floor.
    used: HashMap<Owner, Used>,
    /// The highest level of a request that was let in.
    reached: u64,
    /// When so many levels are known, it is time to forget some.
    most_levels: usize,
    /// The number of the next who comes.
    next: u64,
}

/// What a client has used, in units of work.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    level: u64,
    /// What a decision or a commit of its costs: the last one, or half of what was said before, whichever is more. So
    /// cheap requests do not hide that costly ones come between them.
    usual: u64,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    who: Who,
    /// What the request costs at least, as far as that is known.
    expected: u64,
    granted: oneshot::Sender<Place>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    /// None once it is somebody else's business to give it back.
    places: Option<Arc<Places>>,
    kind: Kind,
}

impl Places {
    /// One for who writes, and so many for others.
    pub fn new(readers: usize) -> Arc<Self> {
        let queue = |free| Queue { free, waiting: Vec::new() };
        let queues = Queues {
            write: queue(1),
            read: queue(readers.max(1)),
            used: HashMap::new(),
            reached: 0,
            most_levels: MANY_LEVELS,
            next: 0,
        };
        Arc::new(Self { queues: Mutex::new(queues) })
    }

    /// Waits for a place, for a request that is expected to cost so much at least. Whoever stops waiting is not in the
    /// queue any more.
    pub async fn enter(self: &Arc<Self>, kind: Kind, who: Who, expected: u64) -> Place {
        let (entry, granted) = {
            let mut queues = self.queues();
            // Where a place is free nobody waits.
            if queues.of(kind).free > 0 {
                queues.of(kind).free -= 1;
                queues.let_in(&who);
                return self.place(kind);
            }
            let number = queues.next;
            queues.next += 1;
            let queue = queues.of(kind);
            let (sender, granted) = oneshot::channel();
            queue.waiting.push(Waiting { number, who, expected, granted: sender });
            (Entry { places: self, kind, number }, granted)
        };
        let place = granted.await;
        drop(entry);
        match place {
            Ok(place) => place,
            // Nobody takes the entry out but its owner, who is here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Charges a client for work.
    pub fn charge(&self, who: &Who, work: u64) {
        self.queues().charge(who, work);
    }

    /// How many wait for the write lock, and how many to decide without it.
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.queues();
        (queues.write.waiting.len(), queues.read.waiting.len())
    }

    fn place(self: &Arc<Self>, kind: Kind) -> Place {
        Place { places: Some(Arc::clone(self)), kind }
    }

    /// Gives a place to whoever is next.
    fn pass_on(self: &Arc<Self>, kind: Kind) {
        loop {
            let next = {
                let mut queues = self.queues();
                let next = queues.take_next(kind);
                if next.is_none() {
                    queues.of(kind).free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.granted.send(self.place(kind)) {
                Ok(()) => return,
                // They have just gone. The place is still ours to give.
                Err(mut refused) => refused.places = None,
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn of(&mut self, kind: Kind) -> &mut Queue {
        match kind {
            Kind::Write => &mut self.write,
            Kind::Read => &mut self.read,
        }
    }

    /// Takes whoever is next out of the queue.
    fn take_next(&mut self, kind: Kind) -> Option<Waiting> {
        let queue = match kind {
            Kind::Write => &self.write,
            Kind::Read => &self.read,
        };
        // The loop before clients, who will have the lowest level first, and those who came first.
        let rank = |waiting: &Waiting| match &waiting.who {
            Who::Loop => (false, 0, waiting.number),
            Who::Client(None) => (true, self.floor(), waiting.number),
            Who::Client(Some(owner)) => {
                let used = self.used(owner);
                (true, used.level.saturating_add(used.usual.max(waiting.expected)), waiting.number)
            }
        };
        // Of each client only who came first: a costly request would wait for all cheaper ones of its own client
        // otherwise, which do not get dearer by being served. They are in the order in which they came.
        let mut clients = HashSet::new();
        let first = queue.waiting.iter().enumerate().filter(|(_, waiting)| match &waiting.who {
            Who::Client(Some(owner)) => clients.insert(owner),
            Who::Loop | Who::Client(None) => true,
        });
        let next = first.min_by_key(|(_, waiting)| rank(waiting))?.0;
        let next = self.of(kind).waiting.remove(next);
        self.let_in(&next.who);
        Some(next)
    }

    /// The lowest level at which anybody can be.
    fn floor(&self) -> u64 {
        self.reached.saturating_sub(LEAD)
    }

    /// Where a client stands.
    fn used(&self, owner: &Owner) -> Used {
        let used = self.used.get(owner).copied().unwrap_or_default();
        Used { level: used.level.max(self.floor()), ..used }
    }

    fn let_in(&mut self, who: &Who) {
        if let Who::Client(Some(owner)) = who {
            let used = self.used(owner);
            self.reached = self.reached.max(used.level);
            self.put(owner, Used { level: used.level.saturating_add(FOR_A_PLACE), ..used });
        }
    }

    fn charge(&mut self, who: &Who, work: u64) {
        if let Who::Client(Some(owner)) = who {
            let Used { level, usual } = self.used(owner);
            self.put(owner, Used { level: level.saturating_add(work), usual: work.max(usual / 2) });
        }
    }

    fn put(&mut self, owner: &Owner, used: Used) {
        self.used.insert(owner.clone(), used);
        if self.used.len() >= self.most_levels {
            let floor = self.floor();
            self.used.retain(|_, used| used.level > floor);
            self.most_levels = MANY_LEVELS.max(2 * self.used.len());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(places) = self.places.take() {
            places.pass_on(self.kind);
        }
    }
}

/// That somebody waits.
struct Entry<'a> {
    places: &'a Places,
    kind: Kind,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.places.queues().of(self.kind).waiting.retain(|waiting| waiting.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use leases::project::{ProjectId, UserId};

    use super::*;

    type Wait = Pin<Box<dyn Future<Output = Place>>>;

    fn user(name: &str) -> Who {
        Who::Client(Some(Owner { project: ProjectId("p".into()), user: UserId(name.into()) }))
    }

    fn wait(places: &Arc<Places>, kind: Kind, who: Who) -> Wait {
        wait_with(places, kind, who, 0)
    }

    fn wait_with(places: &Arc<Places>, kind: Kind, who: Who, expected: u64) -> Wait {
        let places = Arc::clone(places);
        let mut wait: Wait = Box::pin(async move { places.enter(kind, who, expected).await });
        assert!(poll(&mut wait).is_none(), "the place is taken");
        wait
    }

    fn poll(wait: &mut Wait) -> Option<Place> {
        match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    fn taken(places: &Arc<Places>, kind: Kind) -> Place {
        let places = Arc::clone(places);
        poll(&mut (Box::pin(async move { places.enter(kind, Who::Loop, 0).await }) as Wait))
            .expect("it is free")
    }

    /// The order in which they get the place, by position.
    fn order(first: Place, mut waiting: Vec<Wait>) -> Vec<usize> {
        let (mut place, mut order) = (Some(first), Vec::new());
        let mut served = vec![false; waiting.len()];
        while order.len() < waiting.len() {
            drop(place.take());
            let mut all = waiting.iter_mut().enumerate().filter(|(position, _)| !served[*position]);
            let (next, got) =
                all.find_map(|(position, wait)| Some((position, poll(wait)?))).expect("one is next");
            place = Some(got);
            served[next] = true;
            order.push(next);
        }
        order
    }

    #[test]
    fn the_loop_goes_before_clients_who_came_before_it() {
        let places = Places::new(1);
        let held = taken(&places, Kind::Write);
        let waiting = [user("a"), Who::Client(None), Who::Loop];
        let waiting = waiting.map(|who| wait(&places, Kind::Write, who)).into();
        assert_eq!(order(held, waiting), [2, 0, 1]);
    }

    #[test]
    fn whoever_has_used_the_least_goes_first_and_each_in_their_order() {
        let places = Places::new(1);
        places.charge(&user("greedy"), 1_000_000);
        places.charge(&user("modest"), 10);
        let held = taken(&places, Kind::Read);
        let waiting = ["greedy", "greedy", "modest", "modest", "new"];
        let waiting = waiting.map(|name| wait(&places, Kind::Read, user(name))).into();
        assert_eq!(order(held, waiting), [4, 2, 3, 0, 1]);
    }

    #[test]
    fn clients_that_have_used_the_same_take_turns() {
        let places = Places::new(1);
        let held = taken(&places, Kind::Write);
        let waiting = ["a", "a", "a", "b", "b"];
        let waiting = waiting.map(|name| wait(&places, Kind::Write, user(name))).into();
        assert_eq!(order(held, waiting), [0, 3, 1, 4, 2]);
    }

    /// How many requests that cost nothing but their place a client has in advance.
    const LED: usize = (LEAD / FOR_A_PLACE) as usize;

    /// Or else who makes many leases on a quiet day would be kept out by whoever comes after.
    #[test]
    fn who_was_alone_does_not_pay_for_what_they_used_then() {
        let places = Places::new(1);
        for _ in 0..1000 {
            places.queues().let_in(&user("early"));
            places.charge(&user("early"), 10 * FOR_A_PLACE);
        }
        let held = taken(&places, Kind::Write);
        let mut waiting = vec![wait(&places, Kind::Write, user("early"))];
        waiting.extend((0..LED + 100).map(|_| wait(&places, Kind::Write, user("late"))));
        let order = order(held, waiting);
        // The lead, and as much as the last request of the one and its next one has the other now, and no more.
        let turn = order.iter().position(|who| *who == 0).expect("they had it");
        assert!((LED + 20..=LED + 22).contains(&turn), "{turn}");
    }

    #[test]
    fn who_was_away_has_saved_nothing_but_the_lead() {
        let places = Places::new(1);
        for _ in 0..1000 {
            places.queues().let_in(&user("here"));
        }
        let held = taken(&places, Kind::Write);
        let mut waiting = vec![wait(&places, Kind::Write, user("here"))];
        waiting.extend((0..LED + 10).map(|_| wait(&places, Kind::Write, user("away"))));
        let turn = order(held, waiting).iter().position(|who| *who == 0).expect("they had it");
        assert!((LED..=LED + 2).contains(&turn), "{turn}");
    }

    #[test]
    fn who_asks_for_little_waits_for_one_of_many_costly_requests() {
        let places = Places::new(1);
        let costly = |number: usize| user(&format!("costly {number}"));
        // What they ask for is known: each has had one request.
        (0..8).for_each(|number| places.charge(&costly(number), 1_000_000));
        let held = taken(&places, Kind::Write);
        let mut waiting: Vec<Wait> =
            (0..8).map(|number| wait(&places, Kind::Write, costly(number))).collect();
        let mut place = Some(held);
        for round in 0..100 {
            // The first of them is let in, and writes much.
            drop(place.take());
            let mut first = waiting.remove(0);
            place = Some(poll(&mut first).expect("it has the lowest level and came first"));
            places.charge(&costly(round % 8), 1_000_000);
            waiting.push(wait(&places, Kind::Write, costly(round % 8)));
            let mut little = wait(&places, Kind::Write, user("little"));
            drop(place.take());
            place = Some(poll(&mut little).expect("none of the costly ones goes before it"));
            places.charge(&user("little"), 5 * FOR_A_PLACE);
        }
    }

    /// The position of a client that is here all the time and asks for little, when eight come back who ask for this, one
    /// after the other.
    fn turn_of_little(asked: &[u64]) -> usize {
        let places = Places::new(1);
        let costly = |number: usize| user(&format!("costly {number}"));
        for number in 0..8 {
            for work in asked {
                places.charge(&costly(number), *work);
            }
        }
        // Meanwhile all have come down to the floor.
        for _ in 0..10_000 {
            places.queues().let_in(&user("little"));
            places.charge(&user("little"), LEAD / 10);
        }
        let held = taken(&places, Kind::Write);
        let mut waiting: Vec<Wait> =
            (0..8).map(|number| wait(&places, Kind::Write, costly(number))).collect();
        waiting.push(wait(&places, Kind::Write, user("little")));
        order(held, waiting).iter().position(|who| *who == 8).expect("it had it")
    }

    #[test]
    fn who_asks_for_little_does_not_wait_for_all_who_come_back_and_ask_for_much() {
        assert_eq!(turn_of_little(&[10 * LEAD]), 0);
        assert_eq!(turn_of_little(&[10 * LEAD, 1, 1]), 0, "cheap requests do not hide a costly one");
        assert_eq!(turn_of_little(&[10 * LEAD; 100]), 0);
        let mut better = vec![10 * LEAD];
        better.extend([1; 10]);
        assert_eq!(turn_of_little(&better), 8, "who has long asked for little is like all who do");
    }

    #[test]
    fn what_is_known_to_cost_much_does_not_go_first_though_its_client_is_new() {
        let places = Places::new(1);
        let held = taken(&places, Kind::Write);
        places.charge(&user("here"), 5 * FOR_A_PLACE);
        let mut waiting: Vec<Wait> = (0..8)
            .map(|number| wait_with(&places, Kind::Write, user(&format!("new {number}")), LEAD))
            .collect();
        waiting.push(wait(&places, Kind::Write, user("here")));
        assert_eq!(order(held, waiting)[0], 8);
    }

    #[test]
    fn requests_of_one_client_go_in_the_order_in_which_they_came_whatever_they_ask_for() {
        let places = Places::new(1);
        let mut place = Some(taken(&places, Kind::Write));
        let mut cheap: VecDeque<Wait> = (0..3).map(|_| wait(&places, Kind::Write, user("a"))).collect();
        let mut costly = wait_with(&places, Kind::Write, user("a"), 2000);
        // As of clients that ask again at once, there is always a cheap one.
        for _ in 0..3 {
            drop(place.take());
            place = Some(poll(&mut cheap.pop_front().expect("one waits")).expect("it came first"));
            places.charge(&user("a"), 200);
            cheap.push_back(wait(&places, Kind::Write, user("a")));
        }
        drop(place.take());
        assert!(poll(&mut costly).is_some(), "the others came later");
    }

    #[test]
    fn levels_that_do_not_matter_are_forgotten() {
        let places = Places::new(1);
        for number in 0..100_000 {
            places.charge(&user(&number.to_string()), 10);
            places.queues().let_in(&user("busy"));
        }
        assert!(places.queues().used.len() <= 2 * MANY_LEVELS);
    }

    #[test]
    fn who_stops_waiting_leaves_the_queue_and_the_place_goes_to_the_next() {
        let places = Places::new(1);
        let held = taken(&places, Kind::Write);
        let gone: Vec<Wait> = (0..100).map(|_| wait(&places, Kind::Write, user("a"))).collect();
        let mut stays = wait(&places, Kind::Write, user("b"));
        assert_eq!(places.waiting(), (101, 0));
        drop(gone);
        assert_eq!(places.waiting(), (1, 0));
        drop(held);
        assert!(poll(&mut stays).is_some());
        drop(stays);
        assert_eq!((places.waiting(), places.queues().write.free), ((0, 0), 1));
    }

    #[test]
    fn a_place_that_was_granted_to_who_has_gone_goes_to_the_next() {
        let places = Places::new(1);
        let held = taken(&places, Kind::Write);
        let first = wait(&places, Kind::Write, user("a"));
        let mut second = wait(&places, Kind::Write, user("b"));
        drop(held);
        assert!(poll(&mut second).is_none(), "the first has it");
        drop(first);
        assert!(poll(&mut second).is_some());
    }

    #[test]
    fn readers_do_not_wait_for_the_writer_nor_it_for_them() {
        let places = Places::new(2);
        let _writer = taken(&places, Kind::Write);
        let _readers = (taken(&places, Kind::Read), taken(&places, Kind::Read));
        let _waits = wait(&places, Kind::Read, user("a"));
        assert_eq!(places.waiting(), (0, 1));
    }
}
