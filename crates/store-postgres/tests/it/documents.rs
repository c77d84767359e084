//! Plain records, which the previous version keeps in a table per kind. This version reads databases of the
//! previous version, and services of both versions can share a database.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use leases::terms::{FlavorSize, InstanceSize};
use sqlx::migrate::Migrator;
use sqlx::types::Uuid;
use sqlx::{Connection as _, PgConnection};
use store::conformance::sample::{commit, documents, removal, with_other_contents};
use store::{
    Document, DocumentKey, DocumentKind, FlavorRecord, PreemptibleProjectRecord, PropertyRecord, Store, Write,
};
use store_postgres::Servers;

use crate::{SERVER, open};

/// The first migration that the previous version doesn't have.
const FIRST: &str = "0015";

/// A database of the previous version, without records. Returns its address and a connection to it.
async fn old_database() -> (Servers, PgConnection) {
    let directory = tempfile::tempdir().expect("a directory");
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for entry in fs::read_dir(&all).expect("a directory") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        if name.as_str() < FIRST {
            fs::copy(all.join(&name), directory.path().join(&name)).expect("copied");
        }
    }
    let url = SERVER.database(None).expect("a database");
    let mut db = PgConnection::connect(&url).await.expect("connected");
    Migrator::new(directory.path()).await.expect("read").run(&mut db).await.expect("works");
    (url.parse().expect("an address"), db)
}

async fn loaded(servers: &Servers) -> Vec<Document> {
    open(servers).await.load().await.expect("loads").documents().collect()
}

fn us(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// Encodes text for a column.
fn column(text: &str) -> String {
    text.replace('\u{1a}', "\u{1a}1").replace('\0', "\u{1a}0")
}

/// Decodes text from a column.
fn plain(column: &str) -> String {
    column.replace("\u{1a}0", "\0").replace("\u{1a}1", "\u{1a}")
}

/// Writes a record like the previous version.
async fn old_write(db: &mut PgConnection, document: &Document) -> Result<(), sqlx::Error> {
    let write = match document {
        Document::Flavor(record) => {
            let extra_specs = store::encoding::json(&record.extra_specs);
            let insertion = sqlx::query(
                "INSERT INTO flavor (
                     id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
                 ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 ON CONFLICT (id) DO UPDATE SET
                     name = $2, vcpus = $3, memory_mib = $4, disk_gib = $5, ephemeral_gib = $6, swap_mib = $7,
                     public = $8, extra_specs = $9, created_at_us = $10",
            );
            let size = record.size.instance;
            let insertion = insertion.bind(column(&record.id)).bind(column(&record.name));
            let insertion = insertion.bind(i64::from(size.vcpus())).bind(i64::from(size.memory_mib()));
            let insertion =
                insertion.bind(i64::from(size.disk_gib())).bind(i64::from(record.size.ephemeral_gib));
            let insertion = insertion.bind(i64::from(record.swap_mib)).bind(record.public);
            insertion.bind(extra_specs).bind(us(record.created_at))
        }
        Document::Property(record) => {
            let insertion = sqlx::query(
                "INSERT INTO property (name, id, private, created_at_us, updated_at_us) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (name) DO UPDATE SET id = $2, private = $3, created_at_us = $4, updated_at_us = $5",
            );
            let insertion = insertion.bind(column(&record.name)).bind(Uuid::from_u128(record.id));
            insertion.bind(record.private).bind(us(record.created_at)).bind(record.updated_at.map(us))
        }
        Document::PreemptibleProject(record) => {
            let insertion = sqlx::query(
                "INSERT INTO preemptible_project (pattern, created_at_us) VALUES ($1, $2)
                 ON CONFLICT (pattern) DO UPDATE SET created_at_us = $2",
            );
            insertion.bind(column(&record.pattern.to_string())).bind(us(record.created_at))
        }
    };
    assert_eq!(write.execute(db).await?.rows_affected(), 1);
    Ok(())
}

/// Removes a record like the previous version does or would.
async fn old_removal(db: &mut PgConnection, key: &DocumentKey) {
    let deletion = match key.kind {
        DocumentKind::Flavor => sqlx::query("DELETE FROM flavor WHERE id = $1"),
        DocumentKind::Property => sqlx::query("DELETE FROM property WHERE name = $1"),
        DocumentKind::PreemptibleProject => sqlx::query("DELETE FROM preemptible_project WHERE pattern = $1"),
    };
    assert_eq!(deletion.bind(column(&key.id)).execute(db).await.expect("removed").rows_affected(), 1);
}

type FlavorRow = (String, String, i64, i64, i64, i64, i64, bool, String, i64);

/// Reads all records like the previous version.
async fn old_read(db: &mut PgConnection) -> Vec<Document> {
    let at = |us| store::encoding::column::instant(us).expect("a time");
    let number = |number: i64| u32::try_from(number).expect("a number");
    let flavors = sqlx::query_as(
        "SELECT id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
         FROM flavor",
    );
    let flavors: Vec<FlavorRow> = flavors.fetch_all(&mut *db).await.expect("read");
    let flavors = flavors.into_iter().map(|row| {
        let (
            id,
            name,
            vcpus,
            memory_mib,
            disk_gib,
            ephemeral_gib,
            swap_mib,
            public,
            extra_specs,
            created_at_us,
        ) = row;
        let instance =
            InstanceSize::new(number(vcpus), number(memory_mib), number(disk_gib)).expect("a size");
        Document::Flavor(FlavorRecord {
            id: plain(&id),
            name: plain(&name),
            size: FlavorSize { instance, ephemeral_gib: number(ephemeral_gib) },
            swap_mib: number(swap_mib),
            public,
            extra_specs: store::encoding::from_json("extra specs", &extra_specs).expect("JSON"),
            created_at: at(created_at_us),
        })
    });
    let properties = "SELECT name, id, private, created_at_us, updated_at_us FROM property";
    let properties: Vec<(String, Uuid, bool, i64, Option<i64>)> =
        sqlx::query_as(properties).fetch_all(&mut *db).await.expect("read");
    let properties = properties.into_iter().map(|(name, id, private, created_at_us, updated_at_us)| {
        let (created_at, updated_at) = (at(created_at_us), updated_at_us.map(at));
        let (id, name) = (id.as_u128(), plain(&name));
        Document::Property(PropertyRecord { id, name, private, created_at, updated_at })
    });
    let projects = "SELECT pattern, created_at_us FROM preemptible_project";
    let projects: Vec<(String, i64)> = sqlx::query_as(projects).fetch_all(db).await.expect("read");
    let projects = projects.into_iter().map(|(pattern, created_at_us)| {
        let Ok(pattern) = plain(&pattern).parse();
        Document::PreemptibleProject(PreemptibleProjectRecord { pattern, created_at: at(created_at_us) })
    });
    let mut all: Vec<_> = flavors.chain(properties).chain(projects).collect();
    all.sort_by_key(Document::key);
    all
}

#[tokio::test]
async fn records_of_the_version_before_are_read_as_they_were_written() {
    let (servers, mut old) = old_database().await;
    for document in documents() {
        old_write(&mut old, &document).await.expect("written");
    }
    assert_eq!(old_read(&mut old).await, documents());
    assert_eq!(loaded(&servers).await, documents());
    assert_eq!(old_read(&mut old).await, documents(), "the tables are as they were");
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_the_version_before_may_go_on_beside_this_one() {
    let (servers, mut old) = old_database().await;
    // The previous version can read everything that this version writes.
    let store = open(&servers).await;
    let (first, second) = (documents(), with_other_contents(&documents()));
    for records in [&first, &second] {
        store.commit(&commit(records.iter().cloned().map(Write::from))).await.expect("accepted");
        assert_eq!(old_read(&mut old).await, *records);
    }
    store.commit(&commit(second.iter().filter_map(removal))).await.expect("accepted");
    let left: Vec<_> = second.into_iter().filter(|document| removal(document).is_none()).collect();
    assert_eq!(old_read(&mut old).await, left);
    // And the reverse.
    for document in &left {
        old_removal(&mut old, &document.key()).await;
    }
    assert_eq!(loaded(&servers).await, []);
    for records in [&first, &with_other_contents(&first)] {
        for document in records {
            old_write(&mut old, document).await.expect("written");
        }
        assert_eq!(loaded(&servers).await, *records);
    }
    for document in &first {
        old_removal(&mut old, &document.key()).await;
    }
    assert_eq!(loaded(&servers).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_record_that_both_versions_write_at_once_the_later_one_stays_in_both() {
    let (servers, mut old) = old_database().await;
    let store = open(&servers).await;
    let [one, other] = [documents(), with_other_contents(&documents())];
    for _ in 0..5 {
        let writing = {
            let (store, one) = (std::sync::Arc::clone(&store), one.clone());
            tokio::spawn(async move {
                for document in one {
                    store.commit(&commit([Write::from(document)])).await.expect("accepted");
                }
            })
        };
        for document in &other {
            // The previous version also retries after a deadlock.
            while let Err(error) = old_write(&mut old, document).await {
                assert_eq!(
                    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(),
                    Some("40P01"),
                    "{error}"
                );
            }
        }
        writing.await.expect("ends");
        assert_eq!(loaded(&servers).await, old_read(&mut old).await);
    }
}

/// Fields that the old tables don't have survive a write by this version.
#[tokio::test]
async fn a_document_is_kept_as_it_was_written() {
    let (servers, mut db) = old_database().await;
    drop(open(&servers).await);
    for text in [r#"{"later":[1],"created_at_us":7}"#, r#"{"created_at_us":8,"later":2}"#] {
        let write = sqlx::query(
            "INSERT INTO document (kind, id, body) VALUES ('preemptible-project', 'a', $1)
             ON CONFLICT (kind, id) DO UPDATE SET body = $1",
        );
        write.bind(text).execute(&mut db).await.expect("written");
        let kept: String =
            sqlx::query_scalar("SELECT body FROM document").fetch_one(&mut db).await.expect("read");
        assert_eq!(kept, text);
    }
    // Kinds that only a later version knows cause no errors.
    let later = sqlx::query("INSERT INTO document (kind, id, body) VALUES ('quota', 'a', '{}')");
    later.execute(&mut db).await.expect("written");
    assert_eq!(loaded(&servers).await.len(), 1);
}
