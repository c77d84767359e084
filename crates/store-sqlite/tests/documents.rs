//! Plain records and the tables that the previous version has for them: a file of that version can be read,
//! and that version can continue with the file.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use leases::terms::{FlavorSize, InstanceSize};
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, SqliteConnection};
use store::conformance::sample::{commit, documents, removal, with_other_contents};
use store::{
    Document, DocumentKey, DocumentKind, FlavorRecord, PreemptibleProjectRecord, PropertyRecord, Store, Write,
};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// The first migration that the previous version doesn't have.
const FIRST: &str = "0016";

/// A file of the previous version, without records.
async fn old_file() -> (TempDir, SqliteConnection) {
    let directory = tempfile::tempdir().expect("a directory");
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let some = directory.path().join("migrations");
    fs::create_dir(&some).expect("made");
    for entry in fs::read_dir(&all).expect("a directory") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        if name.as_str() < FIRST {
            fs::copy(all.join(&name), some.join(&name)).expect("copied");
        }
    }
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("allot.db").display());
    let mut db = SqliteConnection::connect(&url).await.expect("made");
    Migrator::new(some.as_path()).await.expect("read").run(&mut db).await.expect("works");
    (directory, db)
}

async fn by_hand(directory: &TempDir) -> SqliteConnection {
    let url = format!("sqlite://{}", directory.path().join("allot.db").display());
    SqliteConnection::connect(&url).await.expect("opens")
}

async fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(directory.path().join("allot.db")).await.expect("opens")
}

async fn loaded(directory: &TempDir) -> Vec<Document> {
    let store = open(directory).await;
    let snapshot = store.load().await.expect("loads");
    store.close().await.expect("closes");
    snapshot.documents().collect()
}

fn us(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// Writes a record like the previous version.
async fn old_write(db: &mut SqliteConnection, document: &Document) {
    let write = match document {
        Document::Flavor(record) => {
            let extra_specs = store::encoding::json(&record.extra_specs);
            let insertion = sqlx::query(
                "INSERT INTO flavor (
                     id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
                 ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (id) DO UPDATE SET
                     name = ?2, vcpus = ?3, memory_mib = ?4, disk_gib = ?5, ephemeral_gib = ?6, swap_mib = ?7,
                     public = ?8, extra_specs = ?9, created_at_us = ?10",
            );
            let size = record.size.instance;
            let insertion = insertion.bind(&record.id).bind(&record.name).bind(size.vcpus());
            let insertion = insertion.bind(size.memory_mib()).bind(size.disk_gib());
            let insertion =
                insertion.bind(record.size.ephemeral_gib).bind(record.swap_mib).bind(record.public);
            insertion.bind(extra_specs).bind(us(record.created_at))
        }
        Document::Property(record) => {
            let insertion = sqlx::query(
                "INSERT INTO property (name, id, private, created_at_us, updated_at_us) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (name) DO UPDATE SET id = ?2, private = ?3, created_at_us = ?4, updated_at_us = ?5",
            );
            let insertion = insertion.bind(&record.name).bind(record.id.to_be_bytes().to_vec());
            insertion.bind(record.private).bind(us(record.created_at)).bind(record.updated_at.map(us))
        }
        Document::PreemptibleProject(record) => {
            let insertion = sqlx::query(
                "INSERT INTO preemptible_project (pattern, created_at_us) VALUES (?1, ?2)
                 ON CONFLICT (pattern) DO UPDATE SET created_at_us = ?2",
            );
            insertion.bind(record.pattern.to_string()).bind(us(record.created_at))
        }
    };
    assert_eq!(write.execute(db).await.expect("written").rows_affected(), 1);
}

/// Removes a record like the previous version does or would.
async fn old_removal(db: &mut SqliteConnection, key: &DocumentKey) {
    let deletion = match key.kind {
        DocumentKind::Flavor => sqlx::query("DELETE FROM flavor WHERE id = ?"),
        DocumentKind::Property => sqlx::query("DELETE FROM property WHERE name = ?"),
        DocumentKind::PreemptibleProject => sqlx::query("DELETE FROM preemptible_project WHERE pattern = ?"),
    };
    assert_eq!(deletion.bind(&key.id).execute(db).await.expect("removed").rows_affected(), 1);
}

type FlavorRow = (String, String, u32, u32, u32, u32, u32, bool, String, i64);
/// A row of properties, with the identifier as bytes.
type PropertyRow = (String, Vec<u8>, bool, i64, Option<i64>);

/// Reads all records like the previous version.
async fn old_read(db: &mut SqliteConnection) -> Vec<Document> {
    let at = |us| store::encoding::column::instant(us).expect("a time");
    let flavors = sqlx::query_as(
        "SELECT id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
         FROM flavor ORDER BY id",
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
        let instance = InstanceSize::new(vcpus, memory_mib, disk_gib).expect("a size");
        let extra_specs = store::encoding::from_json("extra specs", &extra_specs).expect("JSON");
        let (size, created_at) = (FlavorSize { instance, ephemeral_gib }, at(created_at_us));
        Document::Flavor(FlavorRecord { id, name, size, swap_mib, public, extra_specs, created_at })
    });
    let properties = "SELECT name, id, private, created_at_us, updated_at_us FROM property ORDER BY name";
    let properties: Vec<PropertyRow> = sqlx::query_as(properties).fetch_all(&mut *db).await.expect("read");
    let properties = properties.into_iter().map(|(name, id, private, created_at_us, updated_at_us)| {
        let id = u128::from_be_bytes(id.try_into().expect("16 bytes"));
        let (created_at, updated_at) = (at(created_at_us), updated_at_us.map(at));
        Document::Property(PropertyRecord { id, name, private, created_at, updated_at })
    });
    let projects = "SELECT pattern, created_at_us FROM preemptible_project ORDER BY pattern";
    let projects: Vec<(String, i64)> = sqlx::query_as(projects).fetch_all(db).await.expect("read");
    let projects = projects.into_iter().map(|(pattern, created_at_us)| {
        let Ok(pattern) = pattern.parse();
        Document::PreemptibleProject(PreemptibleProjectRecord { pattern, created_at: at(created_at_us) })
    });
    flavors.chain(properties).chain(projects).collect()
}

#[tokio::test]
async fn records_of_the_version_before_are_read_as_they_were_written() {
    let (directory, mut old) = old_file().await;
    for document in documents() {
        old_write(&mut old, &document).await;
    }
    assert_eq!(old_read(&mut old).await, documents());
    old.close().await.expect("closes");
    assert_eq!(loaded(&directory).await, documents());
    let again = old_read(&mut by_hand(&directory).await).await;
    assert_eq!(again, documents(), "the tables are as they were");
}

#[tokio::test]
async fn the_version_before_can_go_on_with_a_file_and_back() {
    let (directory, old) = old_file().await;
    old.close().await.expect("closes");
    // The previous version can read everything that this version writes.
    let store = open(&directory).await;
    let (first, second) = (documents(), with_other_contents(&documents()));
    for records in [&first, &second] {
        store.commit(&commit(records.iter().cloned().map(Write::from))).await.expect("accepted");
        assert_eq!(old_read(&mut by_hand(&directory).await).await, *records);
    }
    store.commit(&commit(second.iter().filter_map(removal))).await.expect("accepted");
    store.close().await.expect("closes");
    drop(store);
    let left: Vec<_> = second.into_iter().filter(|document| removal(document).is_none()).collect();
    let mut old = by_hand(&directory).await;
    assert_eq!(old_read(&mut old).await, left);
    // And the reverse.
    for document in &left {
        old_removal(&mut old, &document.key()).await;
    }
    assert_eq!(loaded(&directory).await, []);
    for records in [&first, &with_other_contents(&first)] {
        for document in records {
            old_write(&mut old, document).await;
        }
        assert_eq!(loaded(&directory).await, *records);
    }
    for document in &first {
        old_removal(&mut old, &document.key()).await;
    }
    assert_eq!(loaded(&directory).await, []);
}

/// Fields that the old tables don't have survive a write by this version.
#[tokio::test]
async fn a_document_is_kept_as_it_was_written() {
    let (directory, old) = old_file().await;
    old.close().await.expect("closes");
    drop(open(&directory).await);
    let mut db = by_hand(&directory).await;
    let body = r#"{"later":[1],"created_at_us":7}"#;
    for text in [body, r#"{"created_at_us":8,"later":2}"#] {
        let write = sqlx::query(
            "INSERT INTO document (kind, id, body) VALUES ('preemptible-project', 'a', ?1)
             ON CONFLICT (kind, id) DO UPDATE SET body = ?1",
        );
        write.bind(text).execute(&mut db).await.expect("written");
        let kept: String =
            sqlx::query_scalar("SELECT body FROM document").fetch_one(&mut db).await.expect("read");
        assert_eq!(kept, text);
    }
    // Kinds that only a later version knows cause no errors.
    let later = sqlx::query("INSERT INTO document (kind, id, body) VALUES ('quota', 'a', '{}')");
    later.execute(&mut db).await.expect("written");
    assert_eq!(loaded(&directory).await.len(), 1);
}
