//! Promises about the size of each project's records in journals.

use std::collections::BTreeMap;
use std::sync::Arc;

use ambient::{Ids, SeededIds};
use jiff::Timestamp;
use leases::project::ProjectId;
use tokio::task::JoinSet;

use super::sample::*;
use crate::{AuditRecord, Commit, Journal, JournalSize, NewNotification, Store, Trimmed, WriteSize};

/// No limit on the records that one call removes.
const WHOLE: WriteSize = WriteSize { rows: u64::MAX, bytes: u64::MAX };

fn project(name: &str) -> ProjectId {
    ProjectId(name.into())
}

/// A commit with one record of the project in each journal.
fn records(name: &str, number: i64) -> Commit {
    let audited = AuditRecord { at: at(number), project: project(name), ..audit("a") };
    let protected = AuditRecord { protected: true, ..audited.clone() };
    let told = NewNotification { project: project(name), ..notification("n") };
    Commit { audit: vec![audited, protected], notifications: vec![told], ..Commit::new(at(number)) }
}

async fn sizes(store: &Arc<dyn Store>) -> Vec<JournalSize> {
    while store.count_journals(7).await.expect("works") {}
    store.journals_over(0).await.expect("works")
}

async fn size(store: &Arc<dyn Store>, name: &str, journal: Journal) -> JournalSize {
    let none = JournalSize { journal, project: project(name), records: 0, bytes: 0 };
    let own = |size: &JournalSize| size.journal == journal && size.project.0 == name;
    sizes(store).await.into_iter().find(own).unwrap_or(none)
}

/// Project sizes, computed from the exported records.
async fn summed(store: &Arc<dyn Store>) -> Vec<JournalSize> {
    let all = store.export().await.expect("works");
    let told = all.notifications.iter().map(|one| &one.content);
    let told = told.map(|one| (Journal::Notifications, &one.project, one.bytes()));
    let audit = all.audit.iter().map(|one| (one.journal(), &one.project, one.bytes()));
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for (journal, project, bytes) in told.chain(audit) {
        let (records, sum) = sums.entry((journal, project.clone())).or_default();
        (*records, *sum) = (*records + 1, *sum + bytes);
    }
    let size = |((journal, project), (records, bytes))| JournalSize { journal, project, records, bytes };
    sums.into_iter().map(size).collect()
}

/// A project above its limit loses its oldest records. Other projects lose none.
pub async fn a_project_that_has_too_many_records_loses_its_own(store: &Arc<dyn Store>) {
    for number in 0..20 {
        store.commit(&records("flood", number)).await.expect("accepted");
        if number % 5 == 0 {
            store.commit(&records("other", number)).await.expect("accepted");
        }
    }
    for journal in Journal::ALL.into_iter().filter(|journal| journal.expires_by_size()) {
        let before = sizes(store).await;
        let full = size(store, "flood", journal).await;
        let most = full.bytes * 6 / 20;
        let over = store.journals_over(most).await.expect("works");
        assert!(over.contains(&full) && over.iter().all(|size| size.project == full.project), "{over:?}");
        let trimmed = store.trim(journal, &full.project, most, WHOLE).await.expect("works");
        assert_eq!((trimmed.undelivered, trimmed.more), (0, false));
        let left = size(store, "flood", journal).await;
        assert_eq!(left.records + trimmed.records, 20);
        assert!((5..=6).contains(&left.records) && left.bytes <= most, "{journal}: {left:?}");
        let others = |sizes: Vec<JournalSize>| {
            let other = |size: &JournalSize| size.journal != journal || size.project != full.project;
            sizes.into_iter().filter(other).collect::<Vec<_>>()
        };
        assert_eq!(others(sizes(store).await), others(before), "{journal}");
        assert_eq!(store.trim(journal, &full.project, most, WHOLE).await.expect("works"), Trimmed::default());
        let nobody = project("nobody");
        assert_eq!(store.trim(journal, &nobody, 0, WHOLE).await.expect("works"), Trimmed::default());
    }
    // The newest records of `flood` and all records of `other` remain.
    let told = store.notifications(Some(&project("flood")), 0, 99).await.expect("works");
    assert!((5..=6).contains(&told.len()) && told.last().is_some_and(|one| one.at == at(19)));
    assert!(told.windows(2).all(|two| two[0].number < two[1].number && two[0].at < two[1].at));
    assert_eq!(store.notifications(Some(&project("other")), 0, 99).await.expect("works").len(), 4);
    let audited = store.audit(99).await.expect("works");
    let of = |name: &str, protected| {
        let own = audited.iter().filter(|one| one.project.0 == name && one.protected == protected);
        own.map(|one| one.at).collect::<Vec<_>>()
    };
    assert_eq!((of("flood", true).len(), of("other", true).len(), of("other", false).len()), (20, 4, 4));
    let left = of("flood", false);
    let newest: Vec<_> = (0..left.len() as i64).map(|age| at(19 - age)).collect();
    assert_eq!(left, newest);
    assert_eq!(sizes(store).await, summed(store).await);
}

/// Protected audit records are never trimmed, regardless of their size. `prune` removes them.
pub async fn protected_audit_records_expire_by_age_only(store: &Arc<dyn Store>) {
    for number in 0..9 {
        store.commit(&records("p", number)).await.expect("accepted");
    }
    let (journal, owner) = (Journal::ProtectedAudit, project("p"));
    assert_eq!(size(store, "p", journal).await.records, 9);
    assert_eq!(store.trim(journal, &owner, 0, WHOLE).await.expect("works"), Trimmed::default());
    store.trim(Journal::Audit, &owner, 0, WHOLE).await.expect("works");
    let left = store.audit(99).await.expect("works");
    assert!(left.len() == 9 && left.iter().all(|one| one.protected), "{left:?}");
    store.prune(at(4), Timestamp::MIN, 100).await.expect("works");
    assert_eq!(store.audit(99).await.expect("works"), left[..5]);
    assert_eq!(sizes(store).await, summed(store).await);
}

/// Each call removes a limited number of records, so other requests don't wait long. The rest is removed by later
/// calls, even after a crash.
pub async fn what_is_too_much_is_forgotten_a_part_at_a_time(store: &Arc<dyn Store>) {
    for number in 0..12 {
        store.commit(&records("p", number)).await.expect("accepted");
    }
    let journal = Journal::Notifications;
    let one = size(store, "p", journal).await.bytes / 12;
    let trim = async |part| store.trim(journal, &project("p"), 2 * one, part).await.expect("works");
    let records = async || size(store, "p", journal).await.records;
    let trimmed = trim(WriteSize { rows: 4, ..WHOLE }).await;
    assert_eq!((trimmed.records, trimmed.more, records().await), (4, true, 8));
    let trimmed = trim(WriteSize { bytes: 3 * one, ..WHOLE }).await;
    assert_eq!((trimmed.records, trimmed.more, records().await), (3, true, 5));
    let trimmed = trim(WriteSize { bytes: 1, ..WHOLE }).await;
    assert_eq!((trimmed.records, trimmed.more, records().await), (1, true, 4), "never nothing");
    let trimmed = trim(WriteSize { rows: 4, ..WHOLE }).await;
    assert_eq!((trimmed.records, trimmed.more, records().await), (2, false, 2), "never too many");
}

/// Trimming removes undelivered notifications too, so an absent listener doesn't make the store grow. The
/// result counts the notifications that a listener misses.
pub async fn notifications_that_a_listener_misses_are_counted(store: &Arc<dyn Store>) {
    for number in 0..6 {
        store.commit(&records("p", number)).await.expect("accepted");
        store.commit(&records("q", number)).await.expect("accepted");
    }
    let all = store.notifications(None, 0, 99).await.expect("works");
    let own: Vec<_> = all.iter().filter(|one| one.content.project.0 == "p").collect();
    store.set_delivered("quick", all[11].number).await.expect("works");
    store.set_delivered("slow", own[1].number).await.expect("works");
    let journal = Journal::Notifications;
    let most = size(store, "p", journal).await.bytes / 2;
    let trimmed = store.trim(journal, &project("p"), most, WHOLE).await.expect("works");
    assert_eq!(trimmed, Trimmed { records: 3, undelivered: 1, more: false });
    let left = store.notifications(None, own[1].number, 99).await.expect("works");
    assert_eq!(left.iter().filter(|one| one.content.project.0 == "q").count(), 5, "the others' wait for it");
}

/// Project sizes match the records after any sequence of writes and removals, and after an import into another store.
pub async fn shares_of_projects_are_those_of_their_records(store: &Arc<dyn Store>) {
    let ids = SeededIds::new(7);
    let below = |limit: u64| (ids.uuid() as u64 & u64::from(u32::MAX)) % limit;
    let name = || ["", "a", "b", "long \u{fc} name"][below(4) as usize];
    let text = |length: u64| "\u{e9}x".repeat(below(length) as usize);
    for minute in 0..200 {
        let audit = (0..below(3)).map(|_| AuditRecord {
            at: at(minute),
            project: project(name()),
            object: text(50),
            protected: below(2) == 0,
            ..audit("a")
        });
        let told = (0..below(4)).map(|_| NewNotification {
            project: project(name()),
            payload: text(3000),
            ..notification("n")
        });
        let commit =
            Commit { audit: audit.collect(), notifications: told.collect(), ..Commit::new(at(minute * 60)) };
        store.commit(&commit).await.expect("accepted");
        if minute % 3 == 0 {
            store.count_journals(5).await.expect("works");
        }
        if minute % 7 == 0 {
            let part = WriteSize { rows: 1 + below(9), bytes: below(20_000) };
            let journal = Journal::ALL[below(3) as usize];
            store.trim(journal, &project(name()), below(9000), part).await.expect("works");
        }
        if minute % 31 == 0 {
            store.prune(at(minute * 30), Timestamp::MIN, 10).await.expect("works");
        }
        if minute % 5 == 0 {
            assert_eq!(sizes(store).await, summed(store).await, "minute {minute}");
        }
    }
    let copy: Arc<dyn Store> = Arc::new(crate::memory::MemoryStore::new());
    copy.import(&store.export().await.expect("works")).await.expect("it is empty");
    assert_eq!(sizes(&copy).await, sizes(store).await);
}

/// Concurrent calls of `commit`, `count_journals`, `trim` and `prune` all succeed, and sizes match the records
/// afterward.
pub async fn of_parallel_writers_of_journals_all_are_counted(store: &Arc<dyn Store>) {
    const EACH: i64 = 12;
    let names = ["a", "b", "c"];
    let mut tasks = JoinSet::new();
    for (task, order) in [[0, 1, 2], [2, 1, 0], [1, 0, 2]].into_iter().enumerate() {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for round in 0..EACH {
                let number = round * 3 + task as i64;
                let mut all = records(names[order[0]], number);
                for other in &order[1..] {
                    let more = records(names[*other], number);
                    all.audit.extend(more.audit);
                    all.notifications.extend(more.notifications);
                }
                store.commit(&all).await.expect("accepted");
            }
        });
    }
    for name in names {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for round in 0..EACH {
                store.count_journals(5).await.expect("works");
                for journal in Journal::ALL {
                    store.trim(journal, &project(name), 500, WHOLE).await.expect("works");
                }
                store.prune(at(round), at(round), 5).await.expect("works");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    assert_eq!(sizes(store).await, summed(store).await);
}
