//! Project sizes in journals, as the schema counts them: records of the previous version from before the upgrade, and
//! records that services of that version write after it.

use std::path::Path;

use leases::project::ProjectId;
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, PgConnection};
use store::{Journal, JournalSize, Store, Trimmed, WriteSize};

use crate::{SERVER, open};

/// The first migration that the previous version doesn't have.
const FIRST: i64 = 18;

/// Records as the previous version writes them.
const RECORDS: &str = "
    INSERT INTO audit (at_us, user_id, project, request_id, action, object)
        VALUES (1, 'u', 'p', 'r', 'act', 'thing'), (2, 'u', 'p', 'r', 'act', 'thing'), (3, 'u', 'é', 'r', 'act', 'thing');
    INSERT INTO notification (number, at_us, lease, project, event_type, payload)
        SELECT coalesce(max(number), 0) + 1, 1, gen_random_uuid(), 'p', 'event', '{  }' FROM notification;
    INSERT INTO notification (number, at_us, lease, project, event_type, payload)
        SELECT max(number) + 1, 1, gen_random_uuid(), '', 'event', '{   }' FROM notification;
";

fn size(journal: Journal, project: &str, records: u64, bytes: u64) -> JournalSize {
    JournalSize { journal, project: ProjectId(project.into()), records, bytes }
}

#[tokio::test]
async fn records_of_the_version_before_are_counted_and_those_that_it_goes_on_to_write() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let all = Migrator::new(all.as_path()).await.expect("read");
    let before = all.iter().filter(|migration| migration.version < FIRST).cloned().collect();
    let url = SERVER.database(None).expect("a database");
    let mut db = PgConnection::connect(&url).await.expect("connected");
    Migrator::with_migrations(before).run(&mut db).await.expect("works");
    sqlx::raw_sql(RECORDS).execute(&mut db).await.expect("works");

    let store = open(&url.parse().expect("an address")).await;
    let counted = async || {
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
    assert_eq!(counted().await, expected(1));
    sqlx::raw_sql(RECORDS).execute(&mut db).await.expect("works");
    assert_eq!(counted().await, expected(2));
    // These records don't say whether an administrator caused them, so they are protected.
    let whole = WriteSize { rows: 9, bytes: 9999 };
    let p = ProjectId("p".into());
    assert_eq!(store.trim(Journal::Audit, &p, 0, whole).await.expect("works"), Trimmed::default());
    let trimmed = store.trim(Journal::Notifications, &p, 138, whole).await.expect("works");
    assert_eq!(trimmed, Trimmed { records: 1, undelivered: 0, more: false });
}
