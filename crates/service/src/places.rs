//! Scheduling of requests: the write lock, and places for decisions and for reads of the store that don't need it.
//!
//! The execution loop goes before all clients, since it starts and ends leases. Clients share the rest by weighted fair
//! queuing (Demers, Keshav and Shenker, 1989). Each project has a level, which rises by the [cost](crate::cost) of its
//! requests. The project that would have the lowest level after its request goes first. The users of a project share in
//! the same way, so a project with many users gets no more than a project with one. All kinds of places count towards
//! the same levels. The cost of a request is known only after it was served. Until then, it is estimated: by the usual
//! cost of such requests in the project, or by the known minimum cost of this one, if that is higher. The estimate
//! counts only up to a limit. That lets cheap requests go before expensive ones. If it counted in full, an expensive
//! request would wait until each other project had used as much.
//!
//! A new or returning project starts at the highest level that was admitted (start-time fair queuing: Goyal, Vin and
//! Cheng, 1996), less a small [lead](crate::levels::LEAD). So an idle project saves up no more than the lead, and a
//! project doesn't pay for work that it did while no other project was waiting. Without the lead, a client with cheap
//! requests would wait for one request of each project at the same level whose cost isn't known yet.
//!
//! While a project has a waiting request, only its own costs raise its level. If the other projects raised it too, a
//! request that costs more than the lead would wait as long as cheaper ones arrive.
//!
//! An expensive decision without the write lock pauses for cheap requests: see [`crate::turn`]. Other expensive requests
//! wait until it is complete, so few are incomplete at a time.
//!
//! Requests of one user are served in order of arrival. A canceled request leaves nothing in the queue. The server
//! limits how many requests a client can have under way.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leases::project::{Owner, ProjectId, UserId};
use tokio::sync::oneshot;

use crate::levels::{LEAD, Levels};

/// Maximum number of concurrent reads of the store. Each uses a thread and a connection. With two, small machines still
/// have a processor for other work.
const STORE_READS: usize = 2;

/// Limit to the estimated cost that a waiting request counts with. Must exceed [`LEAD`] and the cost of some ordinary
/// requests. Otherwise clients that return with expensive requests would go before one that has just been served. A
/// request that reaches the limit is expensive and doesn't pause decisions of others.
const MAX_ESTIMATE: u64 = 4 * LEAD;

/// Resource that a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The write lock. It has a single place.
    Write,
    /// A place for a long decision, or for a long read of memory, that changes nothing.
    Read,
    /// The turn of decisions in several parts. It has a single place, because two such decisions at once
    /// would find the same hosts, which only one can get.
    Parts,
    /// A place for reading the store. It never delays decisions.
    Store,
}

/// Maximum number of paused decisions of each kind. Only a request that was cheap so far can pause another, so there
/// are usually few. Each keeps its memory.
const MAX_PAUSED: usize = 4;

/// Method and route of a request. The usual cost is remembered for each operation.
pub(crate) type Operation = Arc<str>;

/// A waiting request's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The loop or another task of the service itself.
    Loop,
    /// A client and its operation; `None` if they aren't known.
    Client(Option<(Owner, Operation)>),
}

/// All places, and the requests that wait for them.
#[derive(Debug)]
pub(crate) struct Places {
    queues: Mutex<Queues>,
}

#[derive(Debug)]
struct Queues {
    /// Indexed by [`Kind`].
    kinds: [Queue; 4],
    projects: Levels<ProjectId>,
    /// Users and usual costs of the projects that have a level.
    within: HashMap<ProjectId, Within>,
    /// Number of the next arrival.
    next: u64,
}

#[derive(Debug, Default)]
struct Within {
    users: Levels<UserId>,
    /// Estimated cost of a decision, commit or read by operation: the cost of the last one, or half of the previous
    /// estimate if that is higher. So cheap requests don't hide the expensive ones between them.
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
    /// Known minimum cost of the request.
    expected: u64,
    /// Whether it has begun. It costs nothing more than what is charged already, and expensive requests wait for it.
    paused: bool,
    granted: oneshot::Sender<Place>,
}

/// A place, occupied until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    /// `None` if dropping must not pass the place on.
    places: Option<Arc<Places>>,
    kind: Kind,
}

impl Places {
    /// Creates one place for writing, `readers` places for decisions (at least one), one turn for decisions
    /// in parts, and `STORE_READS` places for reads of the store.
    pub fn new(readers: usize) -> Arc<Self> {
        let queue = |free| Queue { free, waiting: Vec::new() };
        let queues = Queues {
            kinds: [1, readers.max(1), 1, STORE_READS].map(queue),
            projects: Levels::default(),
            within: HashMap::new(),
            next: 0,
        };
        Arc::new(Self { queues: Mutex::new(queues) })
    }

    /// Waits for a place. `expected` is the known minimum cost of the request. A canceled request leaves the
    /// queue.
    pub async fn enter(self: &Arc<Self>, kind: Kind, who: Who, expected: u64) -> Place {
        self.enter_as(kind, who, expected, false).await
    }

    /// Waits for a place again, after [`Self::is_outranked`].
    pub async fn reenter(self: &Arc<Self>, kind: Kind, who: Who) -> Place {
        self.enter_as(kind, who, 0, true).await
    }

    /// Whether a request waits that is cheap and would go before more work of this client. False if many
    /// decisions are paused already.
    pub fn is_outranked(&self, kind: Kind, who: &Who) -> bool {
        self.queues().is_outranked(kind, who)
    }

    async fn enter_as(self: &Arc<Self>, kind: Kind, who: Who, expected: u64, paused: bool) -> Place {
        let (entry, granted) = {
            let mut queues = self.queues();
            // A place is only free if no request waits for it.
            if queues.of(kind).free > 0 {
                queues.of_mut(kind).free -= 1;
                if !paused {
                    queues.let_in(&who);
                }
                return self.place(kind);
            }
            let number = queues.next;
            queues.next += 1;
            queues.begin_wait(&who);
            let queue = queues.of_mut(kind);
            let (sender, granted) = oneshot::channel();
            queue.waiting.push(Waiting { number, who, expected, paused, granted: sender });
            (Entry { places: self, kind, number }, granted)
        };
        let place = granted.await;
        drop(entry);
        match place {
            Ok(place) => place,
            // Can't happen: a request is removed without a grant only when its entry is dropped.
            Err(_) => std::future::pending().await,
        }
    }

    /// Charges a client for its work in a place, and updates the usual cost of the operation.
    pub fn charge(&self, who: &Who, cost: u64) {
        self.charge_rest(who, cost, 0);
    }

    /// Like [`Self::charge`], if the part `charged` of the cost was charged before.
    pub fn charge_rest(&self, who: &Who, cost: u64, charged: u64) {
        let mut queues = self.queues();
        if let Who::Client(Some((owner, operation))) = who {
            queues.charge(owner, cost.saturating_sub(charged));
            let usual = queues.within(owner).usual.entry(Arc::clone(operation)).or_default();
            *usual = cost.max(*usual / 2);
        }
    }

    /// Charges a client for work outside of places: bytes received and sent.
    pub fn charge_beside(&self, owner: &Owner, cost: u64) {
        self.queues().charge(owner, cost);
    }

    /// Level of a project. While no other client is admitted, it rises by the project's charges only.
    pub fn level(&self, project: &ProjectId) -> u64 {
        self.queues().projects.of(project)
    }

    /// Number of requests that wait for the write lock, and number that wait to decide without it.
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.queues();
        (queues.of(Kind::Write).waiting.len(), queues.of(Kind::Read).waiting.len())
    }

    /// Whether a request for such a place would get it immediately.
    pub fn is_free(&self, kind: Kind) -> bool {
        self.queues().of(kind).free > 0
    }

    fn place(self: &Arc<Self>, kind: Kind) -> Place {
        Place { places: Some(Arc::clone(self)), kind }
    }

    /// Gives a place to the next request.
    fn pass_on(self: &Arc<Self>, kind: Kind) {
        loop {
            let next = {
                let mut queues = self.queues();
                let next = queues.take_next(kind);
                if next.is_none() {
                    queues.of_mut(kind).free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.granted.send(self.place(kind)) {
                Ok(()) => return,
                // The request was just canceled, so the next request gets the place.
                Err(mut refused) => refused.places = None,
            }
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn of(&self, kind: Kind) -> &Queue {
        &self.kinds[kind as usize]
    }

    fn of_mut(&mut self, kind: Kind) -> &mut Queue {
        &mut self.kinds[kind as usize]
    }

    /// Removes the next request from the queue.
    fn take_next(&mut self, kind: Kind) -> Option<Waiting> {
        let next = self.next_of(&self.of(kind).waiting)?;
        let next = self.of_mut(kind).waiting.remove(next);
        if !next.paused {
            self.let_in(&next.who);
        }
        self.end_wait(&next.who);
        Some(next)
    }

    /// Position in `waiting` of the request to serve next.
    fn next_of(&self, waiting: &[Waiting]) -> Option<usize> {
        let mut next: Option<((bool, u64, u64), usize)> = None;
        let mut offer = |rank, position| {
            if next.is_none_or(|(first, _)| rank < first) {
                next = Some((rank, position));
            }
        };
        // Only the first request of each user is a candidate; `waiting` is in order of arrival. Otherwise an expensive
        // request would wait for all cheaper ones of the same user, however late they arrive.
        let mut users = HashSet::new();
        // Best candidate of each project: the request of the user with the lowest level.
        let mut of_projects: HashMap<&ProjectId, (u64, usize, u64)> = HashMap::new();
        let only_cheap = waiting.iter().any(|waiting| waiting.paused);
        for (position, Waiting { number, who, expected, paused, .. }) in waiting.iter().enumerate() {
            match who {
                // The loop goes before clients.
                Who::Loop => offer((false, 0, *number), position),
                Who::Client(None) => offer((true, self.projects.floor(), *number), position),
                Who::Client(Some((owner, operation))) if *paused || users.insert(owner) => {
                    let cost = if *paused { 0 } else { self.estimate(owner, operation, *expected) };
                    if only_cheap && cost >= MAX_ESTIMATE {
                        continue;
                    }
                    let mine = (self.used(owner).saturating_add(cost), position, cost);
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

    fn is_outranked(&self, kind: Kind, who: &Who) -> bool {
        let waiting = &self.of(kind).waiting;
        let Who::Client(Some((owner, _))) = who else { return false };
        if waiting.iter().filter(|waiting| waiting.paused).count() >= MAX_PAUSED {
            return false;
        }
        let Some(next) = self.next_of(waiting).map(|next| &waiting[next]) else { return false };
        match &next.who {
            Who::Loop => true,
            Who::Client(None) => false,
            Who::Client(Some((other, operation))) => {
                let cost = if next.paused { 0 } else { self.estimate(other, operation, next.expected) };
                let (level, mine) = if other.project == owner.project {
                    (self.used(other), self.used(owner))
                } else {
                    (self.projects.of(&other.project), self.projects.of(&owner.project))
                };
                cost < MAX_ESTIMATE && level.saturating_add(cost) < mine
            }
        }
    }

    /// Estimated cost of a waiting request.
    fn estimate(&self, owner: &Owner, operation: &Operation, expected: u64) -> u64 {
        let usual = self.within.get(&owner.project).and_then(|within| within.usual.get(operation)).copied();
        usual.unwrap_or_default().max(expected).min(MAX_ESTIMATE)
    }

    /// Level of a user within the project.
    fn used(&self, owner: &Owner) -> u64 {
        self.within.get(&owner.project).map_or(0, |within| within.users.of(&owner.user))
    }

    fn let_in(&mut self, who: &Who) {
        if let Who::Client(Some((owner, _))) = who {
            self.projects.let_in(&owner.project);
            self.within(owner).users.let_in(&owner.user);
            self.forget(owner);
        }
    }

    fn begin_wait(&mut self, who: &Who) {
        if let Who::Client(Some((owner, _))) = who {
            self.projects.begin_wait(&owner.project);
            self.within(owner).users.begin_wait(&owner.user);
        }
    }

    fn end_wait(&mut self, who: &Who) {
        if let Who::Client(Some((owner, _))) = who {
            self.projects.end_wait(&owner.project);
            self.within(owner).users.end_wait(&owner.user);
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

/// A request's place in the queue. Dropping it removes the request.
struct Entry<'a> {
    places: &'a Places,
    kind: Kind,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut queues = self.places.queues();
        let waiting = &mut queues.of_mut(self.kind).waiting;
        let Some(position) = waiting.iter().position(|waiting| waiting.number == self.number) else { return };
        let canceled = waiting.remove(position);
        queues.end_wait(&canceled.who);
    }
}

#[cfg(test)]
mod tests;
