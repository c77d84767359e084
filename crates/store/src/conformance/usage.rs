//! Promises about usage: the sums of committed entries equal the model's.

use std::sync::Arc;

use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use leases::project::{Owner, ProjectId, UserId};
use leases::usage::{
    By, Entries, Event, Held, Ledger, Occurrence, Query, Size, Span, SpanChange, Sum, held_hosts, sums,
};
use leases::window::Window;

use super::sample::*;
use crate::{Commit, CommitError, Store, UsageFilter, Write};

/// A span of a host in a lease, both with that number. It is the lease's only span.
fn span(number: u128, open: bool, window: Window) -> Span {
    Span {
        held: Held::Host,
        host: Some(HostId(number as u64)),
        pool: Some("freepool".into()),
        flavor: None,
        size: Size { count: 1, cores: 16, memory_mib: 65_536, disk_gib: 1000 },
        lease: Some(LeaseId(number)),
        reservation: Some(ReservationId(number * 10)),
        owner: Owner { project: ProjectId(format!("p'{}", number % 3)), user: UserId("ü\"".into()) },
        lease_type: Some("SCHEDULE".into()),
        begins: true,
        window,
        open,
    }
}

/// Spans of everything that can be held.
fn spans() -> Vec<Span> {
    let forever =
        Window::new(at(3), jiff::Timestamp::from_microsecond(253_402_207_199_999_999).expect("in range"));
    let lease =
        Span { held: Held::Lease, host: None, pool: None, size: Size::ONE, ..span(1, true, window(0, 60)) };
    let room = Size { count: 3, cores: 6, memory_mib: 3, disk_gib: 1 << 48 };
    let instance = GuestId(u128::MAX);
    let beside = Span {
        held: Held::Instance(instance),
        lease: None,
        reservation: None,
        lease_type: None,
        begins: false,
        ..span(4, true, forever.expect("forwards"))
    };
    vec![
        span(1, true, window(0, 60)),
        lease.clone(),
        Span {
            held: Held::Room,
            flavor: Some("ü'flavor".into()),
            size: room,
            ..span(2, true, window(10, 90))
        },
        Span {
            held: Held::Address(FloatingIpId(7)),
            size: Size::ONE,
            ..Span { pool: None, host: None, ..span(3, true, window(5, 25)) }
        },
        Span { held: Held::Instance(GuestId(5)), ..span(1, false, window(20, 40)) },
        // An instance that was there, but for no time.
        Span { held: Held::Instance(GuestId(6)), ..span(1, false, window(30, 30)) },
        beside,
        span(5, false, window(-100, -50)),
    ]
}

/// An event of the lease with that number.
fn event(number: u128, minute: i64, what: Occurrence) -> Event {
    Event {
        at: at(minute),
        what,
        lease: Some(LeaseId(number)),
        instance: None,
        owner: Owner { project: ProjectId(format!("p{number}")), user: UserId("u".into()) },
        lease_type: Some("BEST-EFFORT".into()),
        status: "ACTIVE".into(),
        window: Some(window(0, 60)),
        hosts: vec![HostId(3), HostId(u64::from(u32::MAX))],
        reason: Some("host 3 does not answer".into()),
    }
}

/// Usage entries of every kind.
pub(super) fn some_usage() -> Entries {
    let of_instance = Event {
        lease: None,
        instance: Some(GuestId(9)),
        lease_type: None,
        window: None,
        reason: None,
        ..event(2, 1, Occurrence::InstanceStarted)
    };
    Entries {
        changed: Vec::new(),
        opened: spans(),
        events: vec![event(1, 0, Occurrence::Started), of_instance],
    }
}

fn using(usage: Entries) -> Commit {
    Commit { usage, ..Commit::new(at(0)) }
}

async fn enter(store: &Arc<dyn Store>, usage: Entries) {
    store.commit(&using(usage)).await.expect("accepted");
}

/// Queries of every kind.
fn queries() -> Vec<Query> {
    let bys: Vec<By> = (0..64_u8)
        .map(|bits| By {
            project: bits & 1 != 0,
            user: bits & 2 != 0,
            pool: bits & 4 != 0,
            lease: bits & 8 != 0,
            lease_type: bits & 16 != 0,
            flavor: bits & 32 != 0,
        })
        .collect();
    let of = |periods: &[(i64, i64)], by| Query {
        periods: periods.iter().map(|(start, end)| window(*start, *end)).collect(),
        by,
        ..Query::default()
    };
    let mut queries: Vec<Query> = bys.iter().map(|by| of(&[(0, 30), (30, 31), (31, 100)], *by)).collect();
    for period in [(-1000, 1000), (7, 8), (20, 30), (30, 30), (-200, -60), (500, 600)] {
        queries.push(of(&[period], By::default()));
    }
    let all = of(&[(-1000, 1000)], bys[63]);
    queries.push(Query { project: Some(ProjectId("p'1".into())), ..all.clone() });
    queries.push(Query { user: Some(UserId("ü\"".into())), ..all.clone() });
    queries.push(Query { user: Some(UserId("nobody".into())), ..all.clone() });
    queries.push(Query { pool: Some("freepool".into()), ..all.clone() });
    queries.push(Query { lease: Some(LeaseId(1)), ..all });
    queries.push(of(&[], By::default()));
    queries
}

/// Compares all answers with the model's.
async fn check(store: &Arc<dyn Store>, model: &Ledger, when: &str) {
    for query in queries() {
        let answer: Vec<Sum> = store.usage(&query).await.expect("works");
        assert_eq!(answer, sums(model.spans(), &query), "{when}: {query:?}");
    }
    for period in [(-1000, 1000), (25, 30), (30, 31), (40, 60), (90, 500), (-200, -60), (-50, 0)] {
        let period = window(period.0, period.1);
        let held = store.held_hosts(&period).await.expect("works");
        assert_eq!(held, held_hosts(model.spans(), &period), "{when}: {period:?}");
    }
    let mut open: Vec<_> = model.spans().iter().filter(|span| span.open).cloned().collect();
    open.sort_by_cached_key(Span::key);
    assert_eq!(store.open_usage().await.expect("works"), open, "{when}");
}

/// By project, user, pool, lease and type, over any periods.
pub async fn usage_e_is_summed_as_the_model_sums_it(store: &Arc<dyn Store>) {
    let mut model = Ledger::default();
    check(store, &model, "nothing").await;
    let key = |place: usize| spans()[place].key();
    let change = |place: usize, minute, closes| SpanChange { key: key(place), end: at(minute), closes };
    let changed = |changed: Vec<SpanChange>| Entries { changed, ..Entries::default() };
    let another = Span { begins: false, ..span(1, true, window(50, 80)) };
    let steps = [
        some_usage(),
        // Ends move to a later and an earlier time, spans close before and after their planned end, and an
        // unknown span is closed.
        changed(vec![change(0, 90, false), change(2, 70, false), change(3, 15, true)]),
        changed(vec![change(6, 45, true), SpanChange { key: "host/none".into(), end: at(1), closes: true }]),
        Entries { changed: vec![change(0, 50, true)], opened: vec![another.clone()], ..Entries::default() },
        // The span is already open.
        Entries { opened: vec![another], ..Entries::default() },
        // The end is before the start.
        changed(vec![change(2, -30, false)]),
    ];
    for (step, usage) in steps.into_iter().enumerate() {
        model.enter(&usage);
        enter(store, usage).await;
        check(store, &model, &format!("step {step}")).await;
    }
    model.prune(at(20));
    store.prune_usage(at(20), 100).await.expect("works");
    check(store, &model, "pruned").await;
}

/// Microseconds of thousands of hosts over months don't fit in an integer of the database.
pub async fn usage_d_sums_do_not_overflow(store: &Arc<dyn Store>) {
    let years = window(-50_000_000, 50_000_000);
    let size = Size { count: 1 << 48, cores: 1 << 48, memory_mib: 1 << 48, disk_gib: 1 << 48 };
    let opened: Vec<_> = (0..4000).map(|number| Span { size, ..span(number, false, years) }).collect();
    enter(store, Entries { opened, ..Entries::default() }).await;
    let query = Query { periods: vec![years], ..Query::default() };
    let sums = store.usage(&query).await.expect("works");
    let time_us: u128 = sums.iter().map(|sum| sum.time_us).sum();
    assert_eq!(time_us, 4000 * 100_000_000 * 60_000_000);
}

/// Usage is written with its commit, or not at all.
pub async fn usage_c_a_refused_commit_leaves_no_usage(store: &Arc<dyn Store>) {
    let refused = Commit {
        writes: vec![Write::ForgetLease { id: LeaseId(1), expected: crate::Version::FIRST }],
        ..using(some_usage())
    };
    let error = store.commit(&refused).await.expect_err("there is no such lease");
    assert!(matches!(error, CommitError::Stale { .. }), "{error}");
    assert!(store.open_usage().await.expect("works").is_empty());
    assert!(store.usage_events(&UsageFilter::default(), 0, 9).await.expect("works").is_empty());
}

/// Every field is kept, and events are in the order of commits.
pub async fn usage_a_events_are_read_as_they_were_written(store: &Arc<dyn Store>) {
    enter(store, some_usage()).await;
    enter(store, Entries { events: vec![event(1, 5, Occurrence::Extended)], ..Entries::default() }).await;
    let all = some_usage().events.into_iter().chain([event(1, 5, Occurrence::Extended)]);
    let all: Vec<Event> = all.collect();
    let ask = async |filter: UsageFilter, after, limit| {
        store.usage_events(&filter, after, limit).await.expect("works")
    };
    let found = ask(UsageFilter::default(), 0, 9).await;
    assert_eq!(found.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>(), all);
    assert!(found.is_sorted_by_key(|(number, _)| *number));
    assert_eq!(ask(UsageFilter::default(), found[0].0, 1).await, found[1..2]);
    let filters = [
        UsageFilter { period: Some(window(1, 5)), ..UsageFilter::default() },
        UsageFilter { project: Some(ProjectId("p1".into())), ..UsageFilter::default() },
        UsageFilter { lease: Some(LeaseId(1)), ..UsageFilter::default() },
        UsageFilter { what: Some(Occurrence::Extended), ..UsageFilter::default() },
        UsageFilter { lease: Some(LeaseId(8)), ..UsageFilter::default() },
    ];
    for filter in filters {
        let wanted: Vec<_> = found.iter().filter(|(_, event)| filter.lets_through(event)).cloned().collect();
        assert_eq!(ask(filter.clone(), 0, 9).await, wanted, "{filter:?}");
    }
    store.prune_usage(at(1), 100).await.expect("works");
    assert_eq!(ask(UsageFilter::default(), 0, 9).await, found[1..]);
    enter(store, Entries { events: vec![event(3, 9, Occurrence::Ended)], ..Entries::default() }).await;
    let last = ask(UsageFilter::default(), found[2].0, 9).await;
    assert_eq!(last.len(), 1, "numbers are not given twice");
}
