//! How anything is decided: with a budget of work, off the threads that serve requests, and in a fair order.
//!
//! What is to be committed is decided with the write lock, if that takes little work, as it does nearly always. If it
//! takes more it is decided without, so that others commit meanwhile, and committed if it can still be had by then.
//! Whatever is decided or read at length without the write lock waits for one of a few places; reads of the store have
//! places of their own. All of it runs on threads beside those that serve requests, so that no answer waits for a decision
//! that it does not need. Where there is one thread only, as in simulations, it runs on that, in the order in which it came.

use std::sync::Arc;

use jiff::SignedDuration;
use leases::project::ProjectId;
use leases::work::{Budget, Stop};
use store::{Revision, StoreError};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::client::{Client, Gone};
use crate::cost;
use crate::places::{Kind, Place, Who};
use crate::service::Service;
use crate::state::State;
use crate::types::ServiceError;
use crate::writing::{NoWriter, Writer};

/// Of the work that a decision may cost, the part that it may cost with the write lock.
pub(crate) const QUICK: u64 = 20;
/// How often a decision that costs more is made without the write lock. If others have spoiled it each time, it is made
/// with it: otherwise nothing would ever come of it.
const AHEAD: usize = 3;

/// What came of a part of a decision.
pub(crate) enum Part<T> {
    /// All is decided.
    Done(T),
    /// The rest needs another part, with a budget of its own.
    More(T),
}

/// Why a pass commits nothing.
enum Nothing {
    /// Nothing was found.
    Found,
    /// The store does not work.
    Store(StoreError),
}

impl From<NoWriter> for Nothing {
    fn from(why: NoWriter) -> Self {
        match why {
            NoWriter::Store(error) => Self::Store(error),
            NoWriter::Gone | NoWriter::Overtaken => Self::Found,
        }
    }
}

impl Service {
    /// Waits for a place of that kind, until the client has gone.
    pub(crate) async fn place(&self, kind: Kind) -> Result<Place, Gone> {
        let client = Client::current();
        let who = client.as_ref().map_or(Who::Client(None), Client::who);
        let expected = client.as_ref().map(|client| client.expected(kind)).unwrap_or_default();
        let enter = self.places.enter(kind, who, expected);
        let Some(client) = client else { return Ok(enter.await) };
        tokio::select! {
            biased;
            // What need not wait is done all the same.
            place = enter => Ok(place),
            () = client.gone() => {
                self.ended.count(Stop::Canceled);
                Err(Gone)
            }
        }
    }

    /// Decides, or reads much, without changing anything. An error if the client has gone, or as it is decided.
    pub(crate) async fn consider<T>(
        &self,
        decide: impl FnOnce(&Budget) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let _place = self.place(Kind::Read).await?;
        self.decide(decide)
    }

    /// The same in parts. Others have their turn between two of them.
    pub(crate) async fn consider_in_parts<T>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        Ok(self.decide_in_parts(&decide, &mut None).await?.1)
    }

    /// Decides what is to be committed, on what is in memory. The write lock comes with it.
    ///
    /// `holds` says of what was decided whether it can be committed to a state that differs from the one that it was
    /// decided on by leases, and by preemptible instances. It is called with the write lock held, so it must be cheap.
    pub(crate) async fn decided<T>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, ServiceError>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), ServiceError> {
        let writer = self.writer().await?;
        let quick = Budget::new((self.decider.settings.decision_work / QUICK).max(1));
        let decided = self.charged_for(&quick, || decide(&quick));
        if !quick.exhausted() {
            return Ok((writer, decided?));
        }
        drop(writer);
        self.decided_ahead(decide, holds).await
    }

    /// The same for what is known to cost more: it is decided without the write lock from the start.
    pub(crate) async fn decided_ahead<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        self.decided_in_parts(|_, budget| decide(budget).map(Part::Done), holds).await
    }

    /// As [`Self::decided_ahead`], for decisions that may cost more than one budget. The last attempt holds the write lock
    /// only if one budget was enough before.
    pub(crate) async fn decided_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        let (mut turn, mut attempts) = (None, 0);
        loop {
            let ((revision, ground), decided) = self.decide_in_parts(&decide, &mut turn).await?;
            let mut writer = self.writer().await?;
            let now = self.decided_on();
            if now == (revision, ground)
                || now.1 == ground && beside_requests(|| holds(&self.snapshot(), &decided))
            {
                writer.turn = turn;
                return Ok((writer, decided));
            }
            attempts += 1;
            if attempts < AHEAD {
                continue;
            }
            // Several parts would keep others from writing for too long.
            if turn.is_none()
                && let Part::Done(decided) = self.decide(|budget| decide(None, budget))?
            {
                return Ok((writer, decided));
            }
            return Err(NoWriter::Overtaken.into());
        }
    }

    /// Decides without the write lock. Returns what it was decided on as well. `turn` is the place for decisions in several
    /// parts, once it is needed.
    async fn decide_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: &impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        turn: &mut Option<Place>,
    ) -> Result<((Revision, u64), T), E> {
        let (mut first, mut so_far) = (None, None);
        loop {
            let place = self.place(Kind::Read).await.map_err(NoWriter::from)?;
            // Only now: what others commit while this waits for its place is known to the decision.
            let on = *first.get_or_insert_with(|| self.decided_on());
            let part = self.decide(|budget| decide(so_far, budget))?;
            drop(place);
            so_far = match part {
                Part::Done(decided) => return Ok((on, decided)),
                Part::More(decided) if turn.is_some() || self.places.is_free(Kind::Parts) => Some(decided),
                // Others would take the hosts that it has found, and each that waits would keep its part in memory.
                Part::More(decided) => {
                    drop(decided);
                    first = None;
                    None
                }
            };
            if turn.is_none() {
                *turn = Some(self.place(Kind::Parts).await.map_err(NoWriter::from)?);
            }
        }
    }

    /// Decides for a pass. The write lock comes with what is found; `holds` says of that the same as of what is
    /// [decided](Self::decided) for clients.
    pub(crate) async fn decided_by_pass<T>(
        &self,
        find: impl Fn(&Budget) -> Option<T>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<Option<(Writer<'_>, T)>, StoreError> {
        match self.decided_ahead(|budget| find(budget).ok_or(Nothing::Found), holds).await {
            Ok(found) => Ok(Some(found)),
            Err(Nothing::Found) => Ok(None),
            Err(Nothing::Store(error)) => Err(error),
        }
    }

    /// What decisions are made on, for comparison: the revision, and what it has beside leases.
    fn decided_on(&self) -> (Revision, u64) {
        let state = self.state();
        (state.revision, state.ground)
    }

    /// Decides here and now, with the budget of a decision, until the client leaves. For who has a place.
    fn decide<T, E: From<NoWriter>>(&self, decide: impl FnOnce(&Budget) -> Result<T, E>) -> Result<T, E> {
        let client = Client::current();
        let budget = Arc::new(Budget::new(self.decider.settings.decision_work));
        let deciding = client.as_ref().map(|client| client.decides(&budget));
        let decided = self.charged_for(&budget, || decide(&budget));
        drop(deciding);
        let stopped = budget.stopped();
        if let Some(why) = stopped {
            self.ended.count(why);
        }
        if stopped == Some(Stop::Canceled) { Err(NoWriter::Gone.into()) } else { decided }
    }

    /// Decides beside the threads that serve requests, and charges the client for the processor time, or for the counted work
    /// if that is more: not every part of a decision counts its work.
    fn charged_for<T>(&self, budget: &Budget, decide: impl FnOnce() -> T) -> T {
        let clock = &self.parts.clock;
        let begun = clock.processor_time();
        let decided = beside_requests(decide);
        let took = begun.zip(clock.processor_time()).map(|(begun, now)| now.saturating_sub(begun));
        self.charge_for(budget.spent().max(cost::of_time(took.unwrap_or_default())));
        decided
    }

    /// Charges the client, if there is one, for what it did in a place, in units of work.
    pub(crate) fn charge_for(&self, cost: u64) {
        if let Some(client) = Client::current() {
            self.places.charge(&client.who(), cost);
        }
    }

    /// Charges a client for what it costs beside decisions, commits and reads: its request and the answer.
    pub fn charge_beside(&self, client: &Client, cost: u64) {
        self.places.charge_beside(client.owner(), cost);
    }

    /// Units of work that a project was charged, up to a constant, while no other project was served.
    pub fn charged(&self, project: &ProjectId) -> u64 {
        self.places.level(project)
    }

    /// Reads the store for a client: waits for one of the places for that, so that decisions never wait for the store,
    /// and charges the time that passes, or the rows where time is simulated. Long reads are cut into several of these.
    /// All that serves clients reads the store by this.
    pub(crate) async fn store_read<T>(
        &self,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> Result<Vec<T>, ServiceError> {
        let _place = self.place(Kind::Store).await?;
        let mut reading = Reading { service: self, begun: self.parts.clock.steady(), rows: 0 };
        let rows = read.await?;
        reading.rows = rows.len();
        Ok(rows)
    }
}

/// A read of the store, charged when it ends or is given up.
struct Reading<'a> {
    service: &'a Service,
    /// By the clock that nobody sets.
    begun: Option<SignedDuration>,
    rows: usize,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let passed = self.begun.zip(self.service.parts.clock.steady());
        let took = passed.and_then(|(begun, now)| now.saturating_sub(begun).try_into().ok());
        self.service.charge_for(cost::of_read(took.unwrap_or_default(), self.rows));
    }
}

/// For what is decided again whenever others have committed something.
pub(crate) fn never<T>(_: &State, _: &T) -> bool {
    false
}

/// Computes beside the threads that serve requests, if there are several.
pub(crate) fn beside_requests<T>(compute: impl FnOnce() -> T) -> T {
    let several =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(compute) } else { compute() }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use ambient::{Clock, RandomIds, SystemClock};
    use async_trait::async_trait;
    use fleet::simulated::{Layout, SimulatedFleet};
    use futures::FutureExt;
    use jiff::Timestamp;
    use leases::project::{Owner, UserId};
    use leases::terms::{HostsTerms, ReservationTerms, Terms};
    use leases::window::Window;
    use store::memory::MemoryStore;
    use store::{Commit, PreemptibleProjectRecord, Wording, Write};
    use tokio::sync::Notify;

    use super::*;
    use crate::{Caller, NewLease, NotReady, Parts, Request, Settings};

    /// More than a decision may cost with the write lock, and less than it may cost at all.
    const COSTLY: u64 = Settings::DECISION_WORK / 2;

    async fn service() -> Arc<Service> {
        service_at(Arc::new(SystemClock)).await
    }

    async fn service_at(clock: Arc<dyn ambient::Clock>) -> Arc<Service> {
        let parts = Parts {
            store: Arc::new(MemoryStore::new()),
            fleet: Arc::new(SimulatedFleet::new(clock.clone(), 1, &Layout::default())),
            clock,
            ids: Arc::new(RandomIds),
            enforcer: None,
        };
        Service::open(parts, Settings::default()).await.expect("nothing is stored")
    }

    fn client(name: &str) -> Client {
        let owner = Owner { project: ProjectId(name.into()), user: UserId(name.into()) };
        Client::new(Request { owner, operation: "POST /v1/leases".into(), body: 0, privileged: false })
    }

    /// A clock by which ten milliseconds of processor time are used between two readings.
    #[derive(Debug, Default)]
    struct Ticking(AtomicU64);

    #[async_trait]
    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            SystemClock.now()
        }

        async fn sleep_until(&self, instant: Timestamp) {
            SystemClock.sleep_until(instant).await;
        }

        fn processor_time(&self) -> Option<Duration> {
            Some(Duration::from_millis(self.0.fetch_add(10, Ordering::Relaxed)))
        }
    }

    #[tokio::test]
    async fn decisions_are_charged_for_time_that_they_did_not_count_as_work() {
        let service = service_at(Arc::new(Ticking::default())).await;
        let ten_milliseconds = cost::of_time(Duration::from_millis(10));
        let charged = || service.charged(&ProjectId("p".into()));
        let before = charged();
        client("p").scope(service.consider(|_| Ok(()))).await.expect("nobody has gone");
        let read = charged() - before;
        assert!(read >= ten_milliseconds, "{read}");
        client("p").scope(service.decided(|_| Ok(()), never)).await.map(drop).expect("nobody has gone");
        assert!(charged() - before - read >= ten_milliseconds, "{}", charged());
        let costly = service.consider(|budget| {
            budget.charge(COSTLY);
            Ok(())
        });
        client("p").scope(costly).await.expect("nobody has gone");
        assert!(charged() >= COSTLY, "counted work that costs more than its time");
    }

    /// Where decisions stop until they may go on.
    struct Latch {
        reached: Notify,
        open: Mutex<Receiver<()>>,
    }

    impl Latch {
        fn new() -> (Arc<Self>, Sender<()>) {
            let (sender, receiver) = channel();
            (Arc::new(Self { reached: Notify::new(), open: Mutex::new(receiver) }), sender)
        }

        fn stop(&self) {
            self.reached.notify_one();
            self.open.lock().expect("no panic").recv().expect("it is opened");
        }
    }

    /// What others ask for meanwhile: whatever waits for a decision makes the test hang.
    async fn others_are_served(service: &Arc<Service>) {
        // It is not ready, since the loop does not run here.
        assert!(matches!(service.ready().await, Err(NotReady::LoopStopped)));
        assert_eq!(service.statistics().hosts, 0);
        let others = Arc::clone(service);
        let change = async move {
            let (writer, ()) = others.decided(|_| Ok(()), never).await.expect("nobody has gone");
            writer.commit(Commit::new(others.now())).await
        };
        client("other").scope(change).await.expect("it can be committed");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn while_something_is_decided_without_a_change_others_are_served() {
        let (service, (latch, open)) = (service().await, Latch::new());
        let (deciding, stop) = (Arc::clone(&service), Arc::clone(&latch));
        let decision = async move {
            let consider = deciding.consider(|_| {
                stop.stop();
                Ok(())
            });
            consider.await
        };
        let decision = tokio::spawn(client("slow").scope(decision));
        latch.reached.notified().await;
        others_are_served(&service).await;
        open.send(()).expect("it waits");
        decision.await.expect("no panic").expect("nobody has gone");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn while_a_costly_change_is_decided_others_are_served() {
        let (service, (latch, open)) = (service().await, Latch::new());
        let (deciding, stop) = (Arc::clone(&service), Arc::clone(&latch));
        let decision = async move {
            let decided = deciding.decided(
                |budget| {
                    let affordable = budget.spend(COSTLY);
                    if affordable {
                        stop.stop();
                    }
                    Ok(affordable)
                },
                never,
            );
            decided.await.map(|(_, affordable)| affordable)
        };
        let decision = tokio::spawn(client("slow").scope(decision));
        latch.reached.notified().await;
        others_are_served(&service).await;
        // They have committed something, so it is decided once more.
        open.send(()).expect("it waits");
        open.send(()).expect("it waits, or will");
        assert!(decision.await.expect("no panic").expect("nobody has gone"));
    }

    #[tokio::test]
    async fn a_costly_change_is_decided_with_the_write_lock_if_others_are_faster_each_time() {
        let (service, times) = (service().await, AtomicU64::new(0));
        let others_commit = async || {
            let writer = service.loop_writer().await.expect("the store works");
            writer.commit(Commit::new(service.now())).await.expect("it can be committed");
        };
        let decided = service.decided(
            |budget| {
                budget.charge(COSTLY);
                // Nobody else commits while the decision has the write lock: the first time, and the last.
                if (1..=AHEAD as u64).contains(&times.fetch_add(1, Ordering::Relaxed)) {
                    others_commit().now_or_never().expect("nobody else has the write lock");
                }
                Ok(())
            },
            never,
        );
        assert!(decided.await.is_ok());
        assert_eq!(times.into_inner(), 2 + AHEAD as u64);
        assert_eq!(service.ended.counts(), (0, 0), "none of it was too costly");
    }

    /// How often a costly change is decided if others commit those writes each time, and it would hold all the same.
    async fn decided_times(writes: impl Fn() -> Vec<Write>) -> u64 {
        let (service, times) = (service().await, AtomicU64::new(0));
        let others_commit = async || {
            let writer = service.loop_writer().await.expect("the store works");
            let commit = Commit { writes: writes(), ..Commit::new(service.now()) };
            writer.commit(commit).await.expect("it can be committed");
        };
        let decided = service.decided(
            |budget| {
                budget.charge(COSTLY);
                if (1..=AHEAD as u64).contains(&times.fetch_add(1, Ordering::Relaxed)) {
                    others_commit().now_or_never().expect("nobody else has the write lock");
                }
                Ok(())
            },
            |_, ()| true,
        );
        assert!(decided.await.is_ok());
        times.into_inner()
    }

    #[tokio::test]
    async fn who_has_written_more_waits_for_who_has_written_less() {
        let service = service().await;
        let commit = async |number: u32, rows: u32| {
            let writer = service.writer().await.ok().expect("nobody has gone");
            let created_at = Timestamp::UNIX_EPOCH;
            let project = |row| {
                let pattern = format!("{number}-{row}").parse().expect("any text is a pattern");
                Write::PreemptibleProject(PreemptibleProjectRecord { pattern, created_at })
            };
            let commit = Commit { writes: (0..rows).map(project).collect(), ..Commit::new(service.now()) };
            writer.commit(commit).await.expect("it can be committed");
        };
        client("much").scope(commit(1, 100)).await;
        client("little").scope(commit(2, 1)).await;
        let held = service.loop_writer().await.expect("the store works");
        let mut much = Box::pin(client("much").scope(service.writer()));
        let mut little = Box::pin(client("little").scope(service.writer()));
        assert!(much.as_mut().now_or_never().is_none() && little.as_mut().now_or_never().is_none());
        drop(held);
        assert!(much.as_mut().now_or_never().is_none(), "it came first");
        assert!(little.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_asks_for_much_waits_for_who_asks_for_little() {
        let service = service().await;
        let create = async |number: u32| {
            let start = service.now() + jiff::SignedDuration::from_hours(1);
            let window = Window::new(start, start + jiff::SignedDuration::from_hours(1)).expect("in order");
            let hosts = ReservationTerms::Hosts(HostsTerms::new(number, number).expect("a range"));
            let new = NewLease {
                asked_at: service.now(),
                name: String::new(),
                terms: Terms::new(window, None, vec![hosts]).expect("terms"),
                wording: vec![Wording::default()],
                end_action: None,
                waits: false,
            };
            let caller = Caller {
                user: UserId("u".into()),
                project: ProjectId("p".into()),
                request_id: String::new(),
                administrator: false,
            };
            // There are no hosts.
            service.leases().create(&caller, new, None).await.expect_err("refused")
        };
        let held = service.loop_writer().await.expect("the store works");
        let mut much = Box::pin(client("much").scope(create(100)));
        let mut little = Box::pin(client("little").scope(create(1)));
        assert!(much.as_mut().now_or_never().is_none() && little.as_mut().now_or_never().is_none());
        drop(held);
        assert!(much.as_mut().now_or_never().is_none(), "it came first");
        assert!(little.as_mut().now_or_never().is_some());
        assert!(much.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_holds_beside_other_leases_is_not_decided_again() {
        assert_eq!(decided_times(Vec::new).await, 2, "once with the write lock, and once without");
    }

    #[tokio::test]
    async fn what_was_decided_on_something_else_than_leases_is_decided_again() {
        let other = || {
            let pattern = "research*".parse().expect("any text is a pattern");
            let created_at = Timestamp::UNIX_EPOCH;
            vec![Write::PreemptibleProject(PreemptibleProjectRecord { pattern, created_at })]
        };
        assert_eq!(decided_times(other).await, 2 + AHEAD as u64);
    }

    #[tokio::test]
    async fn what_others_commit_while_a_costly_change_waits_for_a_place_does_not_spoil_it() {
        let (service, times) = (service().await, AtomicU64::new(0));
        let mut places = Vec::new();
        while let Some(place) = service.place(Kind::Read).now_or_never() {
            places.push(place.expect("there is no client"));
        }
        let mut decided = std::pin::pin!(service.decided(
            |budget| {
                budget.charge(COSTLY);
                times.fetch_add(1, Ordering::Relaxed);
                Ok(())
            },
            never
        ));
        assert!(decided.as_mut().now_or_never().is_none(), "it waits for a place");
        let writer = service.loop_writer().await.expect("the store works");
        writer.commit(Commit::new(service.now())).await.expect("it can be committed");
        drop((writer, places));
        assert!(decided.await.is_ok());
        assert_eq!(times.load(Ordering::Relaxed), 2, "once with the write lock, and once without");
    }

    #[tokio::test]
    async fn decisions_in_several_parts_are_made_one_after_another() {
        let (service, parts) = (service().await, Mutex::new(Vec::new()));
        let turn = service.place(Kind::Parts).await.expect("there is no client");
        let mut decided = std::pin::pin!(service.decided_in_parts::<u32, ServiceError>(
            |so_far, _| {
                parts.lock().expect("no panic").push(so_far);
                Ok(if so_far == Some(2) { Part::Done(3) } else { Part::More(so_far.unwrap_or_default() + 1) })
            },
            |_, _| false,
        ));
        assert!(decided.as_mut().now_or_never().is_none(), "it waits for its turn");
        drop(turn);
        let (writer, _) = decided.await.expect("nobody has gone");
        let expected = [None, None, Some(1), Some(2)];
        assert_eq!(*parts.lock().expect("no panic"), expected, "it starts again when it has its turn");
        assert!(!service.places.is_free(Kind::Parts), "the next one is decided on what this one commits");
        drop(writer);
        assert!(service.places.is_free(Kind::Parts));
    }

    #[tokio::test]
    async fn what_costs_more_than_it_may_is_counted() {
        let service = service().await;
        let decided = service.consider(|budget| Ok(budget.spend(Settings::DECISION_WORK + 1)));
        assert!(!decided.await.expect("it has ended"));
        assert_eq!(service.ended.counts(), (1, 0));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_decision_ends_when_its_client_leaves() {
        let service = service().await;
        let (client, running) = (client("gone"), Arc::new(Notify::new()));
        let (deciding, begun) = (Arc::clone(&service), Arc::clone(&running));
        let decision = async move {
            let decided = deciding.decided(
                |budget| {
                    // Without the write lock; with it, it may not take that long.
                    if budget.spend(COSTLY) {
                        begun.notify_one();
                        while budget.spend(0) {
                            std::thread::yield_now();
                        }
                    }
                    Ok(())
                },
                never,
            );
            decided.await.map(|_| ())
        };
        let decision = tokio::spawn(client.clone().scope(decision));
        running.notified().await;
        client.leave();
        assert!(matches!(decision.await.expect("no panic"), Err(ServiceError::Gone)));
        assert_eq!((service.ended.counts(), service.places.waiting()), ((0, 1), (0, 0)));
        others_are_served(&service).await;
    }

    #[tokio::test]
    async fn clients_that_leave_while_they_wait_leave_nothing_in_the_queue() {
        let service = service().await;
        let writer = service.writer().await.ok().expect("nobody has gone");
        let clients: Vec<Client> = (0..100).map(|number| client(&number.to_string())).collect();
        let wait = |client: &Client| {
            let waiting = Arc::clone(&service);
            tokio::spawn(
                client.clone().scope(async move { waiting.decided(|_| Ok(()), never).await.map(|_| ()) }),
            )
        };
        let waiting: Vec<_> = clients.iter().map(wait).collect();
        while service.places.waiting() != (100, 0) {
            tokio::task::yield_now().await;
        }
        clients.iter().for_each(Client::leave);
        for waits in waiting {
            assert!(matches!(waits.await.expect("no panic"), Err(ServiceError::Gone)));
        }
        assert_eq!((service.ended.counts(), service.places.waiting()), ((0, 100), (0, 0)));
        drop(writer);
        others_are_served(&service).await;
    }
}
