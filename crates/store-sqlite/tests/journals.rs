//! Project sizes in journals, as the schema counts them: records that the previous version wrote before and after the
//! upgrade.

use std::path::Path;

use leases::project::ProjectId;
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, SqliteConnection};
use store::{AuditFilter, Journal, JournalSize, Store, Trimmed, WriteSize};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// The first migration that the previous version doesn't have.
const FIRST: i64 = 19;

/// Records as the previous version writes them.
const RECORDS: &str = "
    INSERT INTO audit (at_us, user_id, project, request_id, action, object)
        VALUES (1, 'u', 'p', 'r', 'act', 'thing'), (2, 'u', 'p', 'r', 'act', 'thing'), (3, 'u', 'é', 'r', 'act', 'thing');
    INSERT INTO notification (at_us, lease, project, event_type, payload)
        VALUES (1, zeroblob(16), 'p', 'event', '{  }'), (2, zeroblob(16), '', 'event', '{   }');
";

async fn by_hand(directory: &TempDir) -> SqliteConnection {
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("allot.db").display());
    SqliteConnection::connect(&url).await.expect("opens")
}

fn size(journal: Journal, project: &str, records: u64, bytes: u64) -> JournalSize {
    JournalSize { journal, project: ProjectId(project.into()), records, bytes }
}

#[tokio::test]
async fn records_of_the_version_before_are_counted_and_those_that_it_goes_on_to_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let all = Migrator::new(all.as_path()).await.expect("read");
    let before = all.iter().filter(|migration| migration.version < FIRST).cloned().collect();
    let mut db = by_hand(&directory).await;
    Migrator::with_migrations(before).run(&mut db).await.expect("works");
    sqlx::raw_sql(RECORDS).execute(&mut db).await.expect("works");
    db.close().await.expect("closes");

    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await.expect("opens");
    let counted = async |store: &SqliteStore| {
        while store.count_journals(2).await.expect("works") {}
        store.journals_over(0).await.expect("works")
    };
    let expected = |times| {
        [
            size(Journal::Notifications, "", times, 138 * times),
            size(Journal::Notifications, "p", times, 138 * times),
            size(Journal::ProtectedAudit, "p", 2 * times, 2 * 139 * times),
            size(Journal::ProtectedAudit, "é", times, 140 * times),
        ]
    };
    assert_eq!(counted(&store).await, expected(1));
    store.close().await.expect("closes");
    drop(store);

    let mut db = by_hand(&directory).await;
    sqlx::raw_sql(RECORDS).execute(&mut db).await.expect("works");
    db.close().await.expect("closes");
    let store = SqliteStore::open(&path).await.expect("opens");
    assert_eq!(counted(&store).await, expected(2));
    // These records don't say whether an administrator caused them, so they are protected.
    let whole = WriteSize { rows: 9, bytes: 9999 };
    let p = ProjectId("p".into());
    assert_eq!(store.trim(Journal::Audit, &p, 0, whole).await.expect("works"), Trimmed::default());
    let trimmed = store.trim(Journal::Notifications, &p, 138, whole).await.expect("works");
    assert_eq!(trimmed, Trimmed { records: 1, undelivered: 0, more: false });
    let filter = AuditFilter { project: Some(p), ..AuditFilter::default() };
    assert_eq!(store.audit_page(&filter, None, 9).await.expect("works").len(), 4);
}
