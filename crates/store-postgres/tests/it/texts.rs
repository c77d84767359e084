//! Storage of long text: once for all leases.

use std::sync::Arc;

use store::Store;
use store_postgres::Servers;

use crate::schema::by_hand;
use crate::{database, open};

/// The two numbers in the single row that a query returns.
fn numbers(servers: &Servers, query: &str) -> (u64, u64) {
    let row = by_hand(servers, query).expect("works");
    let (one, two) = row.trim().split_once('|').unwrap_or_else(|| panic!("two numbers: {row}"));
    (one.parse().expect("a number"), two.parse().expect("a number"))
}

fn texts(servers: &Servers) -> (u64, u64) {
    numbers(servers, "SELECT (SELECT count(*) FROM long_text), (SELECT count(*) FROM lease_text)")
}

#[tokio::test]
async fn long_text_is_stored_once() {
    let servers = database();
    let store: Arc<dyn Store> = open(&servers).await;
    store::conformance::long_text_is_stored_once(&store, async || texts(&servers)).await;
}

#[tokio::test]
async fn long_text_in_rows_is_read_and_moves() {
    let servers = database();
    let store: Arc<dyn Store> = open(&servers).await;
    let inline = async |text: &str| {
        let change = format!(
            "UPDATE lease SET name = '{text}'; UPDATE reservation SET resource_properties = '{text}'"
        );
        by_hand(&servers, &change).expect("works");
    };
    store::conformance::long_text_in_rows_is_read_and_moves(&store, inline, async || texts(&servers)).await;
}

#[tokio::test]
async fn a_status_change_writes_no_text() {
    let servers = database();
    let store: Arc<dyn Store> = open(&servers).await;
    let sizes = async || {
        let sizes = "SELECT (SELECT max(pg_column_size(lease.*)) FROM lease),
                         (SELECT max(pg_column_size(reservation.*)) FROM reservation)";
        numbers(&servers, sizes)
    };
    let forbid = async || {
        for table in ["long_text", "lease_text"] {
            let trigger = format!(
                "CREATE FUNCTION forbid_{table}() RETURNS trigger LANGUAGE plpgsql
                     AS $$ BEGIN RAISE EXCEPTION 'it is written'; END $$;
                 CREATE TRIGGER forbid BEFORE INSERT OR UPDATE OR DELETE ON {table}
                     FOR EACH ROW EXECUTE FUNCTION forbid_{table}()"
            );
            by_hand(&servers, &trigger).expect("works");
        }
    };
    store::conformance::a_status_change_writes_no_text(&store, sizes, forbid).await;
}
