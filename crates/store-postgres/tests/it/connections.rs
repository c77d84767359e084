//! Database servers that stop and restart.

use store::conformance::sample::{add_hosts, commit};
use store::{Store, StoreError};
use store_postgres::{PostgresStore, Servers};

use crate::{SERVER, database, name, open, own_server};

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_on_when_its_server_has_come_back() {
    let server = own_server();
    let url = server.database(None).expect("a database");
    let store = open(&url.parse().expect("an address")).await;
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    server.restart().expect("it starts again");
    store.commit(&commit(add_hosts([2]))).await.expect("accepted");
    assert_eq!(store.load().await.expect("works").hosts.len(), 2);
}

/// The previous server has become a standby. It rejects writes, so the store can retry them.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_looks_for_another_server_when_its_own_takes_no_writes_any_more() {
    let (old, new) = (database(), database());
    let (host, path) = address(&old);
    let both: Servers =
        format!("{host}/{}{path},{host}/{}{path}", name(&old), name(&new)).parse().expect("two");
    drop(open(&new).await);
    let store = PostgresStore::open(both.clone()).await.expect("the first takes writes");
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    SERVER
        .run(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", name(&old)))
        .expect("works");
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", name(&old));
    SERVER.run(&end).expect("works");
    store.commit(&commit(add_hosts([1]))).await.expect("the second has no host 1 yet");
    // A store that is opened now avoids the first server from the start.
    let store = PostgresStore::open(both).await.expect("the second takes writes");
    assert_eq!(store.load().await.expect("works").hosts.len(), 1);
}

#[tokio::test]
async fn servers_that_all_take_no_writes_are_named() {
    let servers = database();
    SERVER
        .run(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", name(&servers)))
        .expect("works");
    let error = PostgresStore::open(servers).await.expect_err("read-only").to_string();
    assert!(error.contains("is a standby or read-only"), "{error}");
}

/// A time limit would end the wait for a synchronous standby by reporting that the commit was successful.
#[tokio::test]
async fn no_limit_of_time_makes_a_commit_that_waits_for_a_standby_look_done() {
    let servers = database();
    let store = open(&servers).await;
    let look = "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    IF current_setting('statement_timeout') <> '0' THEN RAISE 'there is a limit'; END IF;
                    RETURN new;
                END $$;
                CREATE TRIGGER look BEFORE UPDATE ON probe FOR EACH ROW EXECUTE FUNCTION look()";
    SERVER.script(&name(&servers), &["-c", look]).expect("works");
    SERVER.run(&format!("ALTER DATABASE {} SET statement_timeout = '1h'", name(&servers))).expect("works");
    store.check().await.expect("no limit in a session from before");
    open(&servers).await.check().await.expect("nor in a new one");
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let store = open(&database()).await;
    store.check().await.expect("works");
    store.close();
    let error = store.check().await.expect_err("closed");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}

/// The part of the address before the name of the database, and the part after it.
fn address(servers: &Servers) -> (String, String) {
    let url = SERVER.url(&name(servers));
    let (host, rest) = url.split_once("localhost").unwrap_or_default();
    let (_, parameters) = rest.split_once('?').unwrap_or_default();
    (format!("{host}localhost"), format!("?{parameters}"))
}
