//! Promises about records: versions, names, notifications, the audit log, and idempotency keys.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::host::Host;
use leases::ids::{FloatingIpId, FreePoolId, HostId, LeaseId, ReservationId};
use leases::instance::{Instance, InstanceKind, InstanceStatus};
use leases::project::ProjectId;

use super::sample::*;
use crate::{
    AuditFilter, Commit, CommitError, FreePoolRecord, HostRecord, InstanceRecord, LeaseRecord,
    NewNotification, Snapshot, Store, Version, Write,
};

pub(super) async fn loaded(store: &Arc<dyn Store>) -> Snapshot {
    store.load().await.expect("the store works")
}

/// Commits and panics if the store rejects it.
pub(super) async fn accept(store: &Arc<dyn Store>, writes: impl IntoIterator<Item = Write>) {
    if let Err(refusal) = store.commit(&commit(writes)).await {
        panic!("refused: {refusal}");
    }
}

/// Checks that the store rejects the commit and changes nothing.
pub(super) async fn refuse(store: &Arc<dyn Store>, commit: &Commit) -> CommitError {
    let before = format!("{:?}", loaded(store).await);
    let refusal = store.commit(commit).await.expect_err("it must be refused");
    assert!(!matches!(refusal, CommitError::Store(_)), "{refusal}");
    assert_eq!(format!("{:?}", loaded(store).await), before, "a refused commit has changed something");
    refusal
}

pub async fn a_new_store_is_empty(store: &Arc<dyn Store>) {
    let snapshot = loaded(store).await;
    let empty = Snapshot { revision: snapshot.revision, ..Snapshot::default() };
    assert_eq!(format!("{snapshot:?}"), format!("{empty:?}"));
    assert_eq!(store.notifications(None, 0, 10).await.expect("works"), []);
    assert_eq!(store.audit(10).await.expect("works"), []);
    assert_eq!(store.delivered("listener").await.expect("works"), 0);
    store.check().await.expect("works");
}

/// Records of every kind.
pub(super) fn everything() -> Vec<Write> {
    let mut writes = add_hosts([1, 2, 3]);
    writes.push(add_free_pool(&free_pool(8, "fast")));
    writes.push(add_host(HostRecord {
        host: Host { pool: FreePoolId(8), ..elaborate_host(9).host },
        ..elaborate_host(9)
    }));
    writes[2] = add_host(HostRecord { host: with_pcpus(host(3)), ..host(3) });
    writes.push(Write::AddFloatingIp(floating_ip(1)));
    writes.push(Write::Flavor(flavor("f")));
    writes.push(Write::Property(property("rack")));
    writes.push(Write::PreemptibleProject(preemptible_project("spot-*")));
    writes.push(add(&elaborate_lease(1, window(0, 60))));
    writes.push(add(&lease(2, window(60, 90), vec![hosts(&[1])])));
    writes.push(add(&lease(3, window(5, 5), vec![hosts(&[1])])));
    let part = InstanceKind::Reserved { lease: LeaseId(1), reservation: ReservationId(100) };
    writes.push(add_instance(&instance(5, part)));
    let mut immediate = lease(4, window(0, 9), vec![]);
    immediate.lease.lease_type = leases::lease_type::LeaseType::Immediate { deadline: at(1) };
    writes.push(add(&immediate));
    writes
}

fn with_pcpus(record: HostRecord) -> leases::host::Host {
    let mut host = record.host;
    host.other_resources = elaborate_host(3).host.other_resources;
    host
}

pub async fn everything_is_loaded_as_it_was_committed(store: &Arc<dyn Store>) {
    let writes = everything();
    accept(store, writes.clone()).await;
    expect_everything(&loaded(store).await, &writes);
    let old = elaborate_lease(1, window(0, 60));
    let mut changed = lease(1, window(0, 50), vec![hosts(&[2]), slots(&[(3, 1)])]).lease;
    changed.reservations.reverse();
    accept(store, [replace(&old, changed.clone()), Write::Flavor(flavor("g"))]).await;
    let snapshot = loaded(store).await;
    assert_eq!(snapshot.leases[0].lease, changed);
    assert_eq!(snapshot.leases[0].version, Version(2));
    assert_eq!(snapshot.flavors, [flavor("f"), flavor("g")]);
}

/// Checks that the snapshot has exactly these records.
pub(super) fn expect_everything(snapshot: &Snapshot, writes: &[Write]) {
    let hosts: Vec<HostRecord> = writes
        .iter()
        .filter_map(|w| if let Write::Host { record, .. } = w { Some((**record).clone()) } else { None })
        .collect();
    let leases: Vec<LeaseRecord> = writes
        .iter()
        .filter_map(|w| if let Write::Lease { record, .. } = w { Some((**record).clone()) } else { None })
        .collect();
    assert_eq!(snapshot.hosts, hosts);
    assert_eq!(snapshot.leases, leases);
    assert_eq!(snapshot.floating_ips, [floating_ip(1)]);
    assert_eq!(snapshot.flavors, [flavor("f")]);
    assert_eq!(snapshot.free_pools, [free_pool(8, "fast")]);
    assert_eq!(snapshot.properties, [property("rack")]);
    assert_eq!(snapshot.preemptible_projects, [preemptible_project("spot-*")]);
    let part = InstanceKind::Reserved { lease: LeaseId(1), reservation: ReservationId(100) };
    assert_eq!(snapshot.instances, [instance(5, part)]);
}

/// Changes and removals need the current version, and names are unique.
pub async fn free_pools_are_written_by_their_versions(store: &Arc<dyn Store>) {
    let new = free_pool(5, "fast");
    accept(store, [add_free_pool(&new)]).await;
    refuse(store, &commit([add_free_pool(&new)])).await;
    let same_name = refuse(store, &commit([add_free_pool(&free_pool(6, "fast"))])).await;
    assert!(matches!(same_name, CommitError::Exists { .. }), "{same_name}");
    accept(store, [add_free_pool(&free_pool(6, "slow"))]).await;
    let renamed = |name: &str| FreePoolRecord {
        version: new.version.next(),
        updated_at: Some(at(3)),
        ..free_pool(5, name)
    };
    let change = |name, expected| {
        commit([Write::FreePool { record: Box::new(renamed(name)), expected: Some(expected) }])
    };
    refuse(store, &change("quick", Version(2))).await;
    let same_name = refuse(store, &change("slow", Version(1))).await;
    assert!(matches!(same_name, CommitError::Exists { .. }), "{same_name}");
    store.commit(&change("quick", Version(1))).await.expect("as it is known");
    let pools = loaded(store).await.free_pools;
    assert_eq!(pools, [renamed("quick"), free_pool(6, "slow")]);
    let remove = |expected| Write::RemoveFreePool { id: FreePoolId(5), expected };
    refuse(store, &commit([remove(Version(1))])).await;
    accept(store, [remove(Version(2))]).await;
    refuse(store, &commit([remove(Version(2))])).await;
    assert_eq!(loaded(store).await.free_pools, [free_pool(6, "slow")]);
}

/// FP-2. A host can't be added to a pool that doesn't exist either.
pub async fn a_free_pool_stays_while_hosts_are_in_it(store: &Arc<dyn Store>) {
    let gone = refuse(store, &commit([add_host(host_in(1, 5))])).await;
    assert!(matches!(gone, CommitError::Stale { .. }), "{gone}");
    accept(store, [add_free_pool(&free_pool(5, "fast")), add_host(host_in(1, 5))]).await;
    let remove = Write::RemoveFreePool { id: FreePoolId(5), expected: Version(1) };
    let in_use = refuse(store, &commit([remove.clone()])).await;
    assert!(matches!(in_use, CommitError::InUse { .. }), "{in_use}");
    accept(store, [remove_host(1), remove]).await;
    let snapshot = loaded(store).await;
    assert_eq!((snapshot.hosts, snapshot.free_pools), (vec![], vec![]));
}

pub async fn instances_are_written_by_their_versions(store: &Arc<dyn Store>) {
    let new = instance(5, InstanceKind::Regular);
    accept(store, [add_instance(&new)]).await;
    refuse(store, &commit([add_instance(&new)])).await;
    let next = InstanceRecord {
        instance: Instance { host: HostId(8), ..new.instance.becoming(InstanceStatus::Active) },
        version: new.version.next(),
        ..new.clone()
    };
    let change =
        |expected| commit([Write::Instance { record: Box::new(next.clone()), expected: Some(expected) }]);
    refuse(store, &change(Version(2))).await;
    store.commit(&change(Version(1))).await.expect("as it is known");
    refuse(store, &change(Version(1))).await;
    assert_eq!(loaded(store).await.instances, std::slice::from_ref(&next));
    let forget = |expected| Write::ForgetInstance { id: new.instance.id, expected };
    refuse(store, &commit([forget(Version(1))])).await;
    accept(store, [forget(Version(2))]).await;
    refuse(store, &commit([forget(Version(2))])).await;
    assert_eq!(loaded(store).await.instances, []);
}

/// A commit is rejected as a whole.
pub async fn a_change_of_another_version_is_refused_and_changes_nothing(store: &Arc<dyn Store>) {
    let first = lease(1, window(0, 60), vec![hosts(&[1])]);
    accept(store, add_hosts([1])).await;
    accept(store, [add(&first)]).await;
    let second = LeaseRecord { version: Version(2), ..first.clone() };
    let mut host = host(1);
    host.version = Version(2);
    let old_host = Write::Host { record: Box::new(host), expected: Some(Version(2)) };
    for stale in [
        add(&first),
        replace(&second, first.lease.clone()),
        forget(&second),
        replace(&lease(8, window(0, 1), vec![]), lease(8, window(0, 1), vec![]).lease),
        add_hosts([1]).remove(0),
        old_host,
        Write::RemoveHost { id: leases::ids::HostId(1), expected: Version(2) },
    ] {
        let everything_else = Commit {
            writes: vec![add(&lease(5, window(60, 70), vec![hosts(&[1])])), stale],
            audit: vec![audit("lease.create")],
            notifications: vec![notification("lease.create")],
            idempotency: Some(request("key", at(0))),
            ..Commit::new(at(0))
        };
        let refusal = refuse(store, &everything_else).await;
        assert!(matches!(refusal, CommitError::Stale { .. }), "{refusal}");
    }
    assert_eq!(store.audit(10).await.expect("works"), []);
    assert_eq!(store.notifications(None, 0, 10).await.expect("works"), []);
    assert_eq!(store.idempotent(&owner().project, "key", at(0)).await.expect("works"), None);
    // Versions are compared in the order of writes, also within a commit.
    accept(store, [replace(&first, first.lease.clone()), forget(&second), add(&first)]).await;
    assert_eq!(loaded(store).await.leases, [first]);
}

/// Names of hosts are unique, and addresses are unique in their network.
pub async fn names_and_addresses_are_unique(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2])).await;
    accept(store, [Write::AddFloatingIp(floating_ip(1))]).await;
    let mut same_name = host(3);
    same_name.host.name = "node1".into();
    let mut renamed = host(2);
    renamed.host.name = "node1".into();
    let renamed = Write::Host { record: Box::new(renamed), expected: Some(Version::FIRST) };
    let mut same_address = floating_ip(1);
    same_address.floating_ip.id = FloatingIpId(2);
    let mut same_id = floating_ip(2);
    same_id.floating_ip.id = FloatingIpId(1);
    for existing in [
        add_host(same_name.clone()),
        renamed,
        Write::AddFloatingIp(same_address.clone()),
        Write::AddFloatingIp(same_id),
    ] {
        let refusal = refuse(store, &commit([existing])).await;
        assert!(matches!(refusal, CommitError::Exists { .. }), "{refusal}");
    }
    same_address.floating_ip.network.0 = "other".into();
    accept(store, [Write::AddFloatingIp(same_address)]).await;
    accept(store, [remove_host(1), add_host(same_name)]).await;
    // Adding a pattern again changes nothing; removing it again fails.
    let (listed, other) = (preemptible_project("spot-*"), preemptible_project("ci?"));
    let list = |record: &crate::PreemptibleProjectRecord| Write::PreemptibleProject(record.clone());
    accept(store, [list(&listed), list(&other)]).await;
    accept(store, [list(&listed)]).await;
    let unlist = Write::RemovePreemptibleProject(other.pattern);
    accept(store, [unlist.clone()]).await;
    refuse(store, &commit([unlist])).await;
    assert_eq!(loaded(store).await.preemptible_projects, [listed]);
    // Properties are identified by name, so the second write replaces the first.
    let shown = crate::PropertyRecord { id: 78, private: false, ..property("rack") };
    accept(store, [Write::Property(property("rack")), Write::Property(shown.clone())]).await;
    assert_eq!(loaded(store).await.properties, [shown]);
}

pub async fn what_is_gone_cannot_be_removed_again(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    accept(store, [Write::AddFloatingIp(floating_ip(1)), Write::Flavor(flavor("f"))]).await;
    let removals =
        [remove_host(1), Write::RemoveFloatingIp(FloatingIpId(1)), Write::RemoveFlavor("f".to_owned())];
    for removal in removals {
        accept(store, [removal.clone()]).await;
        let refusal = refuse(store, &commit([removal])).await;
        assert!(matches!(refusal, CommitError::Stale { .. }), "{refusal}");
    }
}

fn later(hours: i64) -> Timestamp {
    at(0).checked_add(SignedDuration::from_hours(hours)).expect("in range")
}

fn requesting(key: &str, at: Timestamp, number: u128) -> Commit {
    let idempotency = Some(request(key, at));
    Commit { writes: vec![add(&lease(number, window(0, 9), vec![]))], idempotency, ..Commit::new(at) }
}

/// For a day, a key belongs to a single request of its project.
pub async fn a_repeated_request_is_refused_for_a_day(store: &Arc<dyn Store>) {
    store.commit(&requesting("k", at(0), 1)).await.expect("accepted");
    let refusal = refuse(store, &requesting("k", later(23), 2)).await;
    assert!(matches!(refusal, CommitError::Repeated(ref key) if key == "k"), "{refusal}");
    // The key is checked first, so a repeated request isn't told that its own result is in the way.
    let refusal = refuse(store, &requesting("k", at(0), 1)).await;
    assert!(matches!(refusal, CommitError::Repeated(_)), "{refusal}");
    let project = owner().project;
    assert_eq!(store.idempotent(&project, "k", later(23)).await.expect("works"), Some(request("k", at(0))));
    assert_eq!(store.idempotent(&project, "k", later(24)).await.expect("works"), None);
    let other = ProjectId("other".into());
    assert_eq!(store.idempotent(&other, "k", at(0)).await.expect("works"), None);
    store.commit(&requesting("k", later(24), 2)).await.expect("a day later the key is free");
    store.prune(later(25), Timestamp::MIN, 100).await.expect("works");
    assert_eq!(store.idempotent(&project, "k", later(24)).await.expect("works"), None);
}

/// Numbers rise, and a listener's position only moves forward.
pub async fn notifications_are_numbered_in_the_order_of_commits(store: &Arc<dyn Store>) {
    for (minute, types) in [(0, ["a", "b"]), (1, ["c", "d"])] {
        let notifications = types.map(notification).to_vec();
        let commit = Commit { notifications, ..Commit::new(at(minute)) };
        store.commit(&commit).await.expect("accepted");
    }
    let all = store.notifications(None, 0, 10).await.expect("works");
    let types: Vec<&str> = all.iter().map(|n| n.content.event_type.as_str()).collect();
    assert_eq!(types, ["a", "b", "c", "d"]);
    assert_eq!(all[2].content, notification("c"));
    assert_eq!((all[1].at, all[2].at), (at(0), at(1)));
    assert!(all.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(store.notifications(None, all[0].number, 2).await.expect("works"), all[1..3]);
    store.set_delivered("listener", all[2].number).await.expect("works");
    store.set_delivered("listener", all[1].number).await.expect("works");
    assert_eq!(store.delivered("listener").await.expect("works"), all[2].number);
    assert_eq!(store.delivered("other").await.expect("works"), 0);
}

/// The limit counts the project's own notifications. The highest number covers all projects.
pub async fn notifications_of_a_project_are_read_without_those_of_others(store: &Arc<dyn Store>) {
    assert_eq!(store.last_notification().await.expect("works"), 0);
    let projects = ["a", "b", "", "a", "b", "a"].map(|name| ProjectId(name.into()));
    for (minute, project) in (0..).zip(&projects) {
        let notifications = vec![NewNotification { project: project.clone(), ..notification("n") }];
        store.commit(&Commit { notifications, ..Commit::new(at(minute)) }).await.expect("accepted");
    }
    let all = store.notifications(None, 0, 10).await.expect("works");
    let own: Vec<_> = all.iter().filter(|one| one.content.project == projects[0]).cloned().collect();
    let read =
        async |after, limit| store.notifications(Some(&projects[0]), after, limit).await.expect("works");
    assert_eq!(own.len(), 3);
    assert_eq!(read(0, 10).await, own);
    assert_eq!(read(0, 2).await, own[..2]);
    assert_eq!(read(own[0].number, 1).await, own[1..2]);
    assert_eq!(read(own[2].number, 10).await, []);
    let nobody = ProjectId("c".into());
    assert_eq!(store.notifications(Some(&nobody), 0, 10).await.expect("works"), []);
    store.prune(at(9), at(9), 100).await.expect("works");
    assert_eq!(store.last_notification().await.expect("works"), all[5].number);
}

/// Old notifications expire once all listeners have them, and their numbers aren't reused.
pub async fn notifications_are_kept_until_every_listener_was_told(store: &Arc<dyn Store>) {
    let tell = |minute| Commit { notifications: vec![notification("n")], ..Commit::new(at(minute)) };
    for minute in 0..4 {
        store.commit(&tell(minute)).await.expect("accepted");
    }
    let all = store.notifications(None, 0, 10).await.expect("works");
    store.set_delivered("quick", all[3].number).await.expect("works");
    store.set_delivered("slow", all[0].number).await.expect("works");
    store.prune(at(2), Timestamp::MIN, 100).await.expect("works");
    assert_eq!(store.notifications(None, 0, 10).await.expect("works"), all[1..]);
    store.set_delivered("slow", all[3].number).await.expect("works");
    store.prune(at(2), Timestamp::MIN, 100).await.expect("works");
    assert_eq!(store.notifications(None, 0, 10).await.expect("works"), all[2..]);
    store.prune(at(9), Timestamp::MIN, 100).await.expect("works");
    store.commit(&tell(9)).await.expect("accepted");
    let new = store.notifications(None, 0, 10).await.expect("works");
    assert!(new.len() == 1 && new[0].number > all[3].number);
}

pub async fn the_audit_log_shows_the_last_first(store: &Arc<dyn Store>) {
    let of = |minute, action| crate::AuditRecord { at: at(minute), ..audit(action) };
    for (minute, actions) in [(0, ["a", "b"]), (1, ["c", "d"])] {
        let audit = actions.map(|action| of(minute, action)).to_vec();
        store.commit(&Commit { audit, ..Commit::new(at(minute)) }).await.expect("accepted");
    }
    assert_eq!(store.audit(3).await.expect("works"), [of(1, "d"), of(1, "c"), of(0, "b")]);
    store.prune(at(1), Timestamp::MIN, 100).await.expect("works");
    assert_eq!(store.audit(10).await.expect("works"), [of(1, "d"), of(1, "c")]);
}

/// Pages of any size return each matching record once.
pub async fn the_audit_log_is_searched_page_by_page(store: &Arc<dyn Store>) {
    let of = |user: &str, action: &str, object: &str| crate::AuditRecord {
        user: leases::project::UserId(user.to_owned()),
        object: object.to_owned(),
        ..audit(action)
    };
    let all = [of("ann", "a", "1"), of("bo", "a", "2"), of("ann", "b", "1"), of("ann", "a", "2")];
    for record in &all {
        let audit = vec![record.clone()];
        store.commit(&Commit { audit, ..Commit::new(at(0)) }).await.expect("accepted");
    }
    let find = async |filter: &AuditFilter, before, limit| {
        store.audit_page(filter, before, limit).await.expect("works")
    };
    let every = find(&AuditFilter::default(), None, 10).await;
    assert!(every.is_sorted_by(|a, b| a.0 > b.0), "{every:?}");
    assert!(every.iter().map(|(_, record)| record).eq(all.iter().rev()));
    let first = find(&AuditFilter::default(), None, 3).await;
    let rest = find(&AuditFilter::default(), Some(first[2].0), 3).await;
    assert_eq!([first, rest].concat(), every);

    let text = |text: &str| Some(text.to_owned());
    let ann = AuditFilter { user: Some(leases::project::UserId("ann".to_owned())), ..AuditFilter::default() };
    let (project, request_id) = (all[0].project.clone(), all[0].request_id.clone());
    for (filter, count) in [
        (ann.clone(), 3),
        (AuditFilter { action: text("a"), ..ann.clone() }, 2),
        (AuditFilter { object: text("1"), ..AuditFilter::default() }, 2),
        (AuditFilter { request_id: Some(request_id), ..AuditFilter::default() }, 4),
        (AuditFilter { request_id: text("nosuch"), ..AuditFilter::default() }, 0),
        (AuditFilter { project: Some(project), ..ann.clone() }, 3),
        (AuditFilter { project: Some(leases::project::ProjectId("nosuch".to_owned())), ..ann }, 0),
    ] {
        let found = find(&filter, None, 10).await;
        assert_eq!(found.len(), count, "{filter:?}");
        assert!(found.iter().all(|(_, record)| filter.lets_through(record)), "{filter:?}");
    }
}

/// For persistent stores. `reopen` closes a store as if its process had ended, and opens it again.
pub async fn what_was_committed_survives(
    store: Arc<dyn Store>,
    reopen: impl AsyncFn(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    use crate::{Finished, Holder};
    use leases::plan::Action;

    let writes = everything();
    let idempotency = Some(request("key", at(0)));
    let notifications = vec![notification("n")];
    let commit = Commit { writes: writes.clone(), notifications, idempotency, ..Commit::new(at(0)) };
    store.commit(&commit).await.expect("accepted");
    let steps = [Action::Fence(leases::ids::HostId(1)), Action::Fence(leases::ids::HostId(2))];
    let holder = Holder("me".into());
    let claims = store.claim(&steps, &holder, at(0), at(5)).await.expect("works");
    let failed = Finished { claim: claims[0].clone(), result: Err("no route".into()) };
    store.finish(&[failed], at(1)).await.expect("works");
    let history = loaded(&store).await.history;
    let told = store.notifications(None, 0, 9).await.expect("works");
    store.set_delivered("listener", told[0].number).await.expect("works");
    store.count_journals(9).await.expect("works");
    let sizes = store.journals_over(0).await.expect("works");

    let store = reopen(store).await;
    let snapshot = loaded(&store).await;
    expect_everything(&snapshot, &writes);
    assert_eq!(snapshot.history, history);
    assert_eq!(store.notifications(None, 0, 9).await.expect("works"), told);
    assert_eq!(store.delivered("listener").await.expect("works"), told[0].number);
    assert_eq!(store.journals_over(0).await.expect("works"), sizes);
    let repeated = refuse(&store, &requesting("key", at(1), 9)).await;
    assert!(matches!(repeated, CommitError::Repeated(_)), "{repeated}");
    let overlapping = add(&lease(9, window(59, 61), vec![hosts(&[1])]));
    let refusal = refuse(&store, &super::sample::commit([overlapping])).await;
    assert!(matches!(refusal, CommitError::Taken { .. }), "{refusal}");
    let other = Holder("other".into());
    let again = store.claim(&steps[1..], &other, at(5), at(9)).await.expect("works");
    assert!(again[0].fence > claims[1].fence);
    assert!(loaded(&store).await.leases.iter().any(|record| record.lease.id == LeaseId(1)));
}
