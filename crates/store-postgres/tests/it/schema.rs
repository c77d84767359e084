//! The schema without the code around it, and its versions.

use store::conformance::sample::{
    add, add_host, add_hosts, addresses, at, commit, floating_ip, host, hosts, lease, slots, window,
};
use store::{Changes, Store, StoreError, Write};
use store_postgres::{OpenError, PostgresStore, Servers};

use crate::{SERVER, database, name, open};

/// Runs a statement directly, as a user of `psql` does, without the store's code.
pub(crate) fn by_hand(servers: &Servers, statement: &str) -> Result<String, String> {
    SERVER.script(&name(servers), &["-c", statement])
}

#[tokio::test]
async fn w1_the_schema_alone_refuses_double_bookings() {
    let servers = database();
    let store = open(&servers).await;
    let mut writes = add_hosts([1, 2]);
    writes.push(Write::AddFloatingIp(floating_ip(1)));
    store.commit(&commit(writes)).await.expect("accepted");
    let first = lease(1, window(10, 20), vec![hosts(&[1])]);
    let second = lease(2, window(20, 30), vec![hosts(&[1]), slots(&[(2, 3)])]);
    let third = lease(3, window(10, 20), vec![slots(&[(2, 4)]), addresses(&[1])]);
    store.commit(&commit([add(&first), add(&second), add(&third)])).await.expect("accepted");
    for (statement, says) in [
        ("UPDATE host_allocation SET ends_us = ends_us + 1", "has to be inserted anew"),
        ("UPDATE host_allocation SET starts_us = starts_us - 1", "has to be inserted anew"),
        ("UPDATE host_allocation SET host = 2", "has to be inserted anew"),
        ("UPDATE slot_use SET amount = amount + 1", "has to be inserted anew"),
        ("UPDATE slot_use SET ends_us = ends_us + 1", "has to be inserted anew"),
        (
            "INSERT INTO host_allocation SELECT lease, reservation.id, 1, 0, 9223372036854775807, true
             FROM reservation JOIN lease ON lease.id = lease WHERE name = 'lease 3'",
            "host_allocation_once",
        ),
        (
            "INSERT INTO host_allocation SELECT lease, id, 2, 0, 9223372036854775807, true FROM reservation",
            "allot: taken",
        ),
        (
            "INSERT INTO floating_ip_allocation
             SELECT lease, id, (SELECT id FROM floating_ip), 0, 9223372036854775807, true FROM reservation",
            "floating_ip_allocation_once",
        ),
        ("INSERT INTO host_allocation SELECT lease, id, 3, 0, 1, true FROM reservation", "allot: gone"),
        ("DELETE FROM host", "allot: in_use"),
        ("DELETE FROM floating_ip", "allot: in_use"),
        (
            "INSERT INTO slot_use
             SELECT lease, reservation, host, 'GPU', 1, starts_us, ends_us, true FROM slot_use WHERE class = 'VCPU'",
            "allot: no_room",
        ),
        (
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
             INSERT INTO host_allocation SELECT lease, id, 2, 0, 1, true FROM reservation; COMMIT",
            "read committed",
        ),
    ] {
        let error = by_hand(&servers, statement).expect_err(statement);
        assert!(error.contains(says), "{statement}: {error}");
    }
    by_hand(&servers, "UPDATE host_allocation SET ends_us = ends_us - 1")
        .expect("what shrinks is in nobody's way");
}

/// Both transactions add to a sum. Neither sees the uncommitted part of its competitor.
#[tokio::test(flavor = "multi_thread")]
async fn w2_two_transactions_cannot_fill_a_host_together() {
    let servers = database();
    let store = open(&servers).await;
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    for number in [1, 2] {
        store.commit(&commit([add(&lease(number, window(0, 60), vec![]))])).await.expect("accepted");
    }
    let take = |number: u32| {
        format!(
            "BEGIN;
             INSERT INTO reservation SELECT id, id, 0, '{{}}', 'pending', false, false FROM lease
                 WHERE name = 'lease {number}';
             INSERT INTO slot_allocation SELECT id, id, 1, 3 FROM lease WHERE name = 'lease {number}';
             INSERT INTO slot_use SELECT id, id, 1, 'VCPU', 12, starts_us, ends_us, true FROM lease
                 WHERE name = 'lease {number}';
             SELECT pg_sleep(0.2);
             COMMIT"
        )
    };
    let [first, second] = [1, 2].map(|number| {
        let (servers, statements) = (servers.clone(), take(number));
        std::thread::spawn(move || by_hand(&servers, &statements))
    });
    let results = [first.join().expect("ends"), second.join().expect("ends")];
    let refused: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(refused.len(), 1, "{results:?}");
    assert!(refused[0].contains("allot: no_room"), "{refused:?}");
}

#[tokio::test]
async fn amounts_that_no_sum_can_hold_are_kept_as_the_largest_there_is() {
    let store = open(&database()).await;
    let mut endless = host(1);
    let class = leases::resources::ResourceClass("X".into());
    endless.host.other_resources.insert(class.clone(), u64::MAX);
    store.commit(&commit([add_host(endless)])).await.expect("accepted");
    let kept = store.load().await.expect("works").hosts.remove(0).host.other_resources[&class];
    assert_eq!(kept, (1 << 62) - 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_an_error_and_no_panic() {
    let servers = database();
    let store = open(&servers).await;
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    store.commit(&commit([add(&lease(1, window(0, 9), vec![hosts(&[1])]))])).await.expect("accepted");
    by_hand(&servers, "UPDATE reservation SET terms = '{}'").expect("works");
    let error = store.load().await.expect_err("no terms");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
}

#[tokio::test]
async fn who_is_too_far_behind_loads_everything() {
    let servers = database();
    let store = open(&servers).await;
    let first = store.load().await.expect("works").revision;
    let second = store.commit(&commit(add_hosts([1]))).await.expect("accepted").to;
    by_hand(&servers, "DELETE FROM change WHERE number = 0").expect("works");
    assert!(matches!(store.changes_since(first).await.expect("works"), Changes::Reload));
    assert!(matches!(store.changes_since(second).await.expect("works"), Changes::Delta(_)));
}

#[tokio::test]
async fn a_later_schema_is_refused_only_if_it_says_so() {
    let servers = database();
    drop(open(&servers).await);
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'later', true, '', 0)";
    by_hand(&servers, later).expect("works");
    let store = open(&servers).await;
    store.commit(&commit(add_hosts([1]))).await.expect("it goes together");
    by_hand(&servers, "UPDATE compatibility SET oldest = 9999").expect("works");
    let error = PostgresStore::open(servers).await.expect_err("it does not go together");
    assert!(matches!(error, OpenError::Newer { .. }), "{error}");
    assert!(error.to_string().contains("schema 9999 is needed"), "{error}");
}

#[tokio::test]
async fn a_missing_schema_is_made_only_if_it_is_to_be() {
    let servers = database();
    let error = PostgresStore::open_as_it_is(servers.clone()).await.expect_err("there is none");
    assert!(error.to_string().contains("allot database migrate"), "{error}");
    assert_eq!(PostgresStore::schema(&servers).await.expect("works").found, 0);
    drop(open(&servers).await);
    let schema = PostgresStore::schema(&servers).await.expect("works");
    assert_eq!(schema.found, schema.known);
    let store = PostgresStore::open_as_it_is(servers).await.expect("there is one");
    assert!(store.load().await.expect("works").leases.is_empty());
    assert!(store.now().await.expect("works").is_some_and(|now| now != at(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_services_may_open_an_empty_database_at_once() {
    let servers = database();
    let [a, b, c] = [(); 3].map(|()| PostgresStore::open(servers.clone()));
    let opened = tokio::join!(a, b, c);
    for store in [opened.0, opened.1, opened.2] {
        store.expect("it can be opened").check().await.expect("works");
    }
}
