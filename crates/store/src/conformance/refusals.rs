//! Promises about counts of refused requests.

use std::sync::Arc;

use leases::project::ProjectId;
use leases::shortage::{MOST_MISSING, Shortage};
use leases::window::Window;
use tokio::task::JoinSet;

use super::sample::*;
use crate::{REFUSAL_RECORDS, RefusalFilter, RefusalRecord, Store};

/// Minutes in a day.
const DAY: i64 = 24 * 60;

fn shortage(kind: &str, missing: Option<u32>) -> Shortage {
    Shortage { resource_type: "physical:host".to_owned(), kind: kind.to_owned(), missing }
}

fn record(project: &str, day: i64, shortage: Shortage, refused: u64) -> RefusalRecord {
    RefusalRecord { project: ProjectId(project.to_owned()), day: at(day * DAY), shortage, refused }
}

/// Records of each kind, in the order in which they are exported.
pub(super) fn some_refusals() -> Vec<RefusalRecord> {
    let address = Shortage { resource_type: "virtual:floatingip".to_owned(), ..shortage("public", None) };
    vec![
        record("", -1, address.clone(), u64::from(u32::MAX)),
        record("p", 0, shortage("", Some(1)), 2),
        record("p", 0, shortage("gpu='a\"100'", None), 3),
        record("p", 0, shortage("gpu='a\"100'", Some(MOST_MISSING)), 5),
        record("p", 0, address, 7),
        record("p", 1, shortage("\u{e9} and 7", Some(7)), 1),
        record("q", 0, shortage("", Some(1)), 11),
    ]
}

/// More records than one statement inserts, in the order in which they are exported.
pub(super) fn many_refusals() -> Vec<RefusalRecord> {
    let of_project = |project: &'static str| {
        (1..=400).map(move |missing| record(project, 0, shortage("", Some(missing)), 1))
    };
    ["x", "y", "z"].into_iter().flat_map(of_project).collect()
}

async fn add(store: &Arc<dyn Store>, refusals: &[RefusalRecord]) {
    store.add_refusals(refusals).await.expect("works");
}

async fn read(store: &Arc<dyn Store>, project: Option<&str>, days: Window) -> Vec<(Shortage, u64)> {
    let project = project.map(|name| ProjectId(name.to_owned()));
    store.refusals(&RefusalFilter { project, days }, 100).await.expect("works")
}

/// Sums over everything, over one project, and over some days.
pub async fn refusals_are_summed_by_shortage_over_days_and_projects(store: &Arc<dyn Store>) {
    add(store, &[]).await;
    assert_eq!(read(store, None, Window::ALWAYS).await, []);
    let all = some_refusals();
    add(store, &all).await;
    assert_eq!(store.export().await.expect("works").refusals, all);
    add(store, &all).await;
    let doubled = |mut record: RefusalRecord| {
        record.refused *= 2;
        record
    };
    let twice: Vec<_> = all.into_iter().map(doubled).collect();
    assert_eq!(store.export().await.expect("works").refusals, twice);
    // Equal records within one call add up too.
    let one = record("p", 1, shortage("\u{e9} and 7", Some(7)), 1);
    add(store, &[one.clone(), one]).await;

    let sum = |index: usize, refused: u64| (twice[index].shortage.clone(), refused);
    let of_p = [sum(1, 4), sum(2, 6), sum(3, 10), sum(5, 4), sum(4, 14)];
    assert_eq!(read(store, Some("p"), Window::ALWAYS).await, of_p);
    assert_eq!(read(store, Some("p"), window(1, DAY + 1)).await, [sum(5, 4)], "those that begin in it");
    assert_eq!(read(store, Some("p"), window(0, DAY)).await, [sum(1, 4), sum(2, 6), sum(3, 10), sum(4, 14)]);
    assert_eq!(read(store, Some("nobody"), Window::ALWAYS).await, []);
    let of_all = [sum(1, 26), sum(2, 6), sum(3, 10), sum(5, 4), sum(4, 14 + 2 * u64::from(u32::MAX))];
    assert_eq!(read(store, None, Window::ALWAYS).await, of_all);
    assert_eq!(read(store, None, window(-DAY, 0)).await, [sum(0, 2 * u64::from(u32::MAX))]);
}

/// A kind is read with all its shortages. Ties go to the first by name.
pub async fn refusals_of_the_kinds_refused_most_are_read(store: &Arc<dyn Store>) {
    let [often, seldom, other, never] = ["often", "seldom", "other", "almost never"];
    add(
        store,
        &[
            record("p", 0, shortage(often, Some(1)), 3),
            record("q", 3, shortage(often, Some(9)), 4),
            record("p", 0, shortage(seldom, Some(2)), 5),
            record("p", 1, shortage(other, None), 5),
            record("p", 2, shortage(never, None), 1),
        ],
    )
    .await;
    let most = async |project: Option<&str>, kinds| {
        let project = project.map(|name| ProjectId(name.to_owned()));
        let filter = RefusalFilter { project, days: Window::ALWAYS };
        store.refusals(&filter, kinds).await.expect("works")
    };
    let of_often = [(shortage(often, Some(1)), 3), (shortage(often, Some(9)), 4)];
    assert_eq!(most(None, 1).await, of_often);
    let [first, second] = of_often;
    assert_eq!(most(None, 2).await, [first.clone(), second, (shortage(other, None), 5)]);
    let of_p = [(shortage(other, None), 5), (shortage(seldom, Some(2)), 5)];
    assert_eq!(most(Some("p"), 2).await, of_p);
    let [other, seldom] = of_p;
    assert_eq!(most(Some("p"), 3).await, [first, other, seldom]);
    assert_eq!(most(None, 0).await, []);
}

/// Other projects lose none.
pub async fn a_project_with_too_many_refusals_loses_its_oldest(store: &Arc<dyn Store>) {
    let quiet = record("quiet", -9, shortage("", Some(1)), 1);
    add(store, std::slice::from_ref(&quiet)).await;
    let most = i64::from(REFUSAL_RECORDS);
    let days: Vec<_> = (0..most).map(|day| record("flood", day, shortage("", Some(1)), 1)).collect();
    for part in days.chunks(300).rev() {
        add(store, part).await;
    }
    let left = async || store.export().await.expect("works").refusals;
    assert_eq!(left().await, [days.clone(), vec![quiet.clone()]].concat(), "as many as there may be");
    // On the oldest day that remains, the first shortages stay.
    let more = [Some(3), Some(2), None].map(|missing| record("flood", 3, shortage("", missing), 1));
    add(store, &more).await;
    let mut expected = days[3..].to_vec();
    let [_, two, none] = more;
    expected.splice(0..1, [none, days[3].clone(), two, record("flood", 3, shortage("", Some(3)), 1)]);
    expected.push(quiet);
    assert_eq!(left().await, expected);
    add(store, &[record("flood", most, shortage("a", None), 1), record("flood", 1, shortage("", None), 1)])
        .await;
    expected.remove(3);
    expected.insert(expected.len() - 1, record("flood", most, shortage("a", None), 1));
    assert_eq!(left().await, expected, "what is older than all others is not kept");
}

/// Each call removes a part.
pub async fn old_refusals_are_forgotten_with_usage(store: &Arc<dyn Store>) {
    let all = some_refusals();
    add(store, &all).await;
    while store.prune_usage(at(DAY), 2).await.expect("works") {}
    assert_eq!(store.export().await.expect("works").refusals, all[5..6]);
}

/// Services that share a store count the same kinds at once.
pub async fn of_parallel_writers_of_refusals_all_are_counted(store: &Arc<dyn Store>) {
    const EACH: u64 = 10;
    let mut tasks = JoinSet::new();
    for reversed in [false, true, false] {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for _ in 0..EACH {
                let mut refusals = some_refusals();
                if reversed {
                    refusals.reverse();
                }
                add(&store, &refusals).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    let expected = some_refusals().into_iter().map(|record| (record.shortage, record.refused * 3 * EACH));
    assert_eq!(read(store, None, Window::ALWAYS).await, crate::most_refused(expected, 100));
}
