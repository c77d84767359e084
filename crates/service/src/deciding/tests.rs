//! Which decisions make other clients wait, and which decisions are repeated after a conflict.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ambient::{Clock, ManualClock, RandomIds, SystemClock};
use async_trait::async_trait;
use fleet::simulated::{Layout, SimulatedFleet};
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use leases::host::{FloatingIp, NetworkId};
use leases::ids::FloatingIpId;
use leases::project::{Owner, UserId};
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use leases::window::Window;
use store::memory::MemoryStore;
use store::{Commit, FloatingIpRecord, PreemptibleProjectRecord, Wording, Write};
use tokio::sync::Notify;

use super::*;
use crate::{Caller, NewLease, NotReady, Parts, Request, Settings};

/// Exceeds the budget with the write lock, but not the one without.
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

/// Clock whose steady time and processor time advance by 10 ms per reading.
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

    fn steady(&self) -> Option<SignedDuration> {
        self.processor_time()?.try_into().ok()
    }

    fn processor_time(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.0.fetch_add(10, Ordering::Relaxed)))
    }
}

#[tokio::test]
async fn decisions_and_the_write_lock_are_charged_for_time_that_was_not_counted_as_work() {
    let service = service_at(Arc::new(Ticking::default())).await;
    let ten_milliseconds = cost::of_time(Duration::from_millis(10));
    let charged = || service.charged(&ProjectId("p".into()));
    let before = charged();
    client("p").scope(service.consider(|_| Ok(()))).await.expect("nobody has gone");
    let read = charged() - before;
    assert!(read >= ten_milliseconds, "{read}");
    let commit = async {
        let (writer, ()) = service.decided(|_| Ok(()), never).await.expect("nobody has gone");
        writer.commit(Commit::new(service.now())).await
    };
    client("p").scope(commit).await.expect("nothing conflicts");
    let written = charged() - before - read;
    assert!(written >= ten_milliseconds, "{written}");
    let costly = service.consider(|budget| {
        budget.charge(COSTLY);
        Ok(())
    });
    client("p").scope(costly).await.expect("nobody has gone");
    assert!(charged() >= COSTLY, "counted work that costs more than its time");
}

/// Blocks decisions until the test lets them continue.
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

/// Requests of another client. The test hangs if one waits for the blocked decision.
async fn others_are_served(service: &Arc<Service>) {
    // Not ready because the loop doesn't run in this test.
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
async fn a_costly_decision_pauses_for_a_cheap_one() {
    let (service, (latch, open)) = (service().await, Latch::new());
    let served = Arc::new(AtomicU64::new(0));
    let (deciding, stop, before) = (Arc::clone(&service), Arc::clone(&latch), Arc::clone(&served));
    let costly = async move {
        let consider = deciding.consider(|budget| {
            stop.stop();
            budget.charge(COSTLY);
            Ok(before.load(Ordering::Relaxed))
        });
        consider.await
    };
    let costly = tokio::spawn(client("costly").scope(costly));
    latch.reached.notified().await;
    let mut places = Vec::new();
    while let Some(place) = service.place(Kind::Read).now_or_never() {
        places.push(place.expect("there is no client"));
    }
    let cheap = service.consider(|_| Ok(served.fetch_add(1, Ordering::Relaxed)));
    let mut cheap = Box::pin(client("cheap").scope(cheap));
    assert!(cheap.as_mut().now_or_never().is_none(), "the places are taken");
    open.send(()).expect("it waits");
    cheap.await.expect("nobody has gone");
    let served = costly.await.expect("no panic").expect("nobody has gone");
    assert_eq!(served, 1, "the cheap request was served before the end of the costly one");
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
    // The commit of the second client forces one more attempt.
    open.send(()).expect("it waits");
    open.send(()).expect("it waits, or will");
    assert!(decision.await.expect("no panic").expect("nobody has gone"));
}

#[tokio::test]
async fn a_costly_change_is_decided_with_the_write_lock_if_others_are_faster_each_time() {
    assert_eq!(decided_times(Vec::new, false).await, 2 + AHEAD as u64);
}

/// Number of attempts at a costly change if `writes` are committed during each attempt. `holds` tells whether
/// the decision remains valid after them.
async fn decided_times(writes: impl Fn() -> Vec<Write>, holds: bool) -> u64 {
    let (service, times) = (service().await, AtomicU64::new(0));
    let others_commit = async || {
        let writer = service.loop_writer().await.expect("the store works");
        let commit = Commit { writes: writes(), ..Commit::new(service.now()) };
        writer.commit(commit).await.expect("it can be committed");
    };
    let decided = service.decided(
        |budget| {
            budget.charge(COSTLY);
            // The first and the last attempt hold the write lock, so no other commit is possible.
            if (1..=AHEAD as u64).contains(&times.fetch_add(1, Ordering::Relaxed)) {
                others_commit().now_or_never().expect("nobody else has the write lock");
            }
            Ok(())
        },
        |_, ()| holds,
    );
    assert!(decided.await.is_ok());
    assert_eq!(service.ended.counts(), (0, 0), "none of it was too costly");
    times.into_inner()
}

#[tokio::test]
async fn who_has_written_more_waits_for_who_has_written_less() {
    // Time doesn't pass, so that only the writes have a cost.
    let service = service_at(Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))).await;
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
        let start = service.now() + SignedDuration::from_hours(1);
        let window = Window::new(start, start + SignedDuration::from_hours(1)).expect("in order");
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
        // Refused because there are no hosts.
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
    assert_eq!(decided_times(Vec::new, true).await, 2, "once with the write lock, and once without");
}

#[tokio::test]
async fn what_was_decided_on_something_else_than_leases_is_decided_again() {
    let other = || {
        let pattern = "research*".parse().expect("any text is a pattern");
        let created_at = Timestamp::UNIX_EPOCH;
        vec![Write::PreemptibleProject(PreemptibleProjectRecord { pattern, created_at })]
    };
    assert_eq!(decided_times(other, true).await, 2 + AHEAD as u64);
}

#[tokio::test]
async fn additions_to_the_inventory_do_not_invalidate_decisions() {
    let address = || {
        let floating_ip = FloatingIp {
            id: FloatingIpId(1),
            network: NetworkId("public".into()),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            reservable: true,
        };
        let created_at = Timestamp::UNIX_EPOCH;
        vec![Write::AddFloatingIp(FloatingIpRecord { floating_ip, subnet: String::new(), created_at })]
    };
    assert_eq!(decided_times(address, true).await, 2);
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
                // Only without the write lock: with it, this exceeds the budget.
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
