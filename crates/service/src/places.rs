//! The order in which requests get the write lock, and places to decide or to read the store without it.
//!
//! The loop goes before all clients, since it starts and ends leases. Clients share the rest by fair queuing: each project
//! has a level, which rises by the [cost](crate::cost) of its requests, and the project that would have the lowest level
//! once it was served goes first (weighted fair queuing: Demers, Keshav and Shenker, 1989). Within a project its users
//! share in the same way, so a project with many users gets no more than one with a single user. All kinds of places count
//! towards the same levels. The cost of a request is known only after it was served. Until then it is what requests of this
//! kind usually cost the project, or what is known of this one, if that is more.
//!
//! A project that arrives, or comes back, begins at the highest level that was let in (start-time fair queuing: Goyal, Vin
//! and Cheng, 1996), less a small [lead](crate::levels::LEAD). So a project saves up no more than the lead, and doesn't
//! pay for work that was done while no other one waited. Without the lead, a client with cheap requests would wait for one
//! request of each project that is at the same level and of which nothing is known.
//!
//! Requests of one user go in the order in which they came. A request that stops waiting leaves nothing behind. How many
//! requests a client may have under way is limited by the server.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leases::project::{Owner, ProjectId, UserId};
use tokio::sync::oneshot;

use crate::levels::Levels;

/// Reads of the store at once. Each has a thread and a connection of its own, and two leave others a processor on small
/// machines.
const STORE_READS: usize = 2;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The write lock: there is one.
    Write,
    /// To decide or read much in memory without changing anything.
    Read,
    /// To read the store. It never keeps decisions waiting.
    Store,
}

/// Kind of request, of which the usual cost is remembered: method and route.
pub(crate) type Operation = Arc<str>;

/// Who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The loop, or the service itself.
    Loop,
    /// A client with its kind of request, as far as it is known.
    Client(Option<(Owner, Operation)>),
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
    store: Queue,
    projects: Levels<ProjectId>,
    /// More about the projects that have a level.
    within: HashMap<ProjectId, Within>,
    /// The number of the next who comes.
    next: u64,
}

#[derive(Debug, Default)]
struct Within {
    users: Levels<UserId>,
    /// What a decision, a commit or a read costs by kind of request: the last one, or half of what was said before,
    /// whichever is more. So cheap requests do not hide that costly ones come between them.
    usual: HashMap<Operation, u64>,
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
    /// One for who writes, and so many for those who decide.
    pub fn new(readers: usize) -> Arc<Self> {
        let queue = |free| Queue { free, waiting: Vec::new() };
        let queues = Queues {
            write: queue(1),
            read: queue(readers.max(1)),
            store: queue(STORE_READS),
            projects: Levels::default(),
            within: HashMap::new(),
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

    /// Charges a client for what it did in a place, and expects the same of its next request of that kind.
    pub fn charge(&self, who: &Who, cost: u64) {
        let mut queues = self.queues();
        if let Who::Client(Some((owner, operation))) = who {
            queues.charge(owner, cost);
            let usual = queues.within(owner).usual.entry(Arc::clone(operation)).or_default();
            *usual = cost.max(*usual / 2);
        }
    }

    /// Charges a client for what it costs beside places: bytes that are received and sent.
    pub fn charge_beside(&self, owner: &Owner, cost: u64) {
        self.queues().charge(owner, cost);
    }

    /// What a project has been charged, as long as nobody else is let in.
    pub fn level(&self, project: &ProjectId) -> u64 {
        self.queues().projects.of(project)
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
            Kind::Store => &mut self.store,
        }
    }

    /// Takes whoever is next out of the queue.
    fn take_next(&mut self, kind: Kind) -> Option<Waiting> {
        let next = match kind {
            Kind::Write => self.next_of(&self.write.waiting),
            Kind::Read => self.next_of(&self.read.waiting),
            Kind::Store => self.next_of(&self.store.waiting),
        };
        let next = self.of(kind).waiting.remove(next?);
        self.let_in(&next.who);
        Some(next)
    }

    /// The position of whoever is next.
    fn next_of(&self, waiting: &[Waiting]) -> Option<usize> {
        let mut next: Option<((bool, u64, u64), usize)> = None;
        let mut offer = |rank, position| {
            if next.is_none_or(|(first, _)| rank < first) {
                next = Some((rank, position));
            }
        };
        // Of each user only who came first: a costly request would wait for all cheaper ones of its own client
        // otherwise, which do not get dearer by being served. They are in the order in which they came.
        let mut users = HashSet::new();
        // Of each project the user who will have the lowest level there.
        let mut of_projects: HashMap<&ProjectId, (u64, usize, u64)> = HashMap::new();
        for (position, Waiting { number, who, expected, .. }) in waiting.iter().enumerate() {
            match who {
                // The loop before clients.
                Who::Loop => offer((false, 0, *number), position),
                Who::Client(None) => offer((true, self.projects.floor(), *number), position),
                Who::Client(Some((owner, operation))) if users.insert(owner) => {
                    let within = self.within.get(&owner.project);
                    let usual = within.and_then(|within| within.usual.get(operation)).copied();
                    let cost = usual.unwrap_or_default().max(*expected);
                    let used = within.map_or(0, |within| within.users.of(&owner.user));
                    let mine = (used.saturating_add(cost), position, cost);
                    let best = of_projects.entry(&owner.project).or_insert(mine);
                    *best = mine.min(*best);
                }
                Who::Client(Some(_)) => {}
            }
        }
        for (project, (_, position, cost)) in of_projects {
            offer((true, self.projects.of(project).saturating_add(cost), waiting[position].number), position);
        }
        next.map(|(_, position)| position)
    }

    fn let_in(&mut self, who: &Who) {
        if let Who::Client(Some((owner, _))) = who {
            self.projects.let_in(&owner.project);
            self.within(owner).users.let_in(&owner.user);
            self.forget(owner);
        }
    }

    fn charge(&mut self, owner: &Owner, cost: u64) {
        self.projects.charge(&owner.project, cost);
        self.within(owner).users.charge(&owner.user, cost);
        self.forget(owner);
    }

    fn within(&mut self, owner: &Owner) -> &mut Within {
        self.within.entry(owner.project.clone()).or_default()
    }

    fn forget(&mut self, owner: &Owner) {
        self.within(owner).users.forget();
        if self.projects.forget() {
            let projects = &self.projects;
            self.within.retain(|project, _| projects.is_known(project));
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
mod tests;
