//! Revisions and the records that changed in each.
//!
//! A transaction changes the row of the revision last, and holds its lock until the transaction is visible.
//! So numbers become visible in order, and a reader of a number has seen everything before it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::usage::Event;
use sqlx::PgConnection;
use store::encoding::usage::hosts_json;
use store::encoding::{record_key_text, subject_number};
use store::{Advance, Commit, KEPT_REVISIONS, RecordKey, Revision};
use uuid::Uuid;

use crate::columns::{text, us, uuid};
use crate::error::TxError;
use crate::usage::maybe;

/// Number of old revisions that are deleted together.
const FORGOTTEN_TOGETHER: u64 = 1000;

pub(crate) async fn last(db: &mut PgConnection) -> Result<Revision, TxError> {
    let row = sqlx::query!("SELECT number, mark FROM revision").fetch_one(db).await?;
    Ok(Revision { number: row.number.cast_unsigned(), mark: row.mark.as_u128() })
}

/// Makes the revision of a commit, along with its notifications, audit records and usage events.
pub(crate) async fn commit(db: &mut PgConnection, commit: &Commit) -> Result<Advance, TxError> {
    enter(db, &commit.keys(), commit).await
}

/// Makes a revision in which the history of these steps changed. No steps, no revision.
pub(crate) async fn steps(
    db: &mut PgConnection,
    changed: &BTreeSet<RecordKey>,
    at: Timestamp,
) -> Result<Option<Advance>, TxError> {
    if changed.is_empty() { Ok(None) } else { enter(db, changed, &Commit::new(at)).await.map(Some) }
}

/// Uses one statement, since all other writers wait for its end. Notifications are numbered here for the same
/// reason as revisions.
async fn enter(
    db: &mut PgConnection,
    keys: &BTreeSet<RecordKey>,
    commit: &Commit,
) -> Result<Advance, TxError> {
    let keys: Vec<String> = keys.iter().map(|key| text(&record_key_text(key)).into_owned()).collect();
    let (told, audited, events) = (&commit.notifications, &commit.audit, &commit.usage.events);
    let leases: Vec<Uuid> = told.iter().map(|new| uuid(subject_number(new.lease))).collect();
    let audited_us: Vec<i64> = audited.iter().map(|record| us(record.at)).collect();
    let protected: Vec<bool> = audited.iter().map(|record| record.protected).collect();
    let row = sqlx::query!(
        "WITH made AS (
             UPDATE revision SET
                 number = number + 1, previous_mark = mark, mark = gen_random_uuid(),
                 notifications = notifications + cardinality($3::uuid[])
             RETURNING number, mark, previous_mark, notifications
         ), entered AS (
             INSERT INTO change (number, mark, keys) SELECT number, mark, $1::text[] FROM made
         ), told AS (
             INSERT INTO notification (number, at_us, lease, project, event_type, payload)
             SELECT notifications - cardinality($3) + position, $2, new.lease, project, event_type, payload
             FROM made, unnest($3, $4::text[], $5::text[], $6::text[])
                 WITH ORDINALITY AS new (lease, project, event_type, payload, position)
         ), audited AS (
             INSERT INTO audit (at_us, user_id, project, request_id, action, object, protected)
             SELECT at_us, user_id, project, request_id, action, object, protected
             FROM made, unnest($7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
                 $25::boolean[])
                 WITH ORDINALITY AS new (at_us, user_id, project, request_id, action, object, protected, position)
             ORDER BY position
         ), accounted AS (
             INSERT INTO usage_event (at_us, what, lease, instance, project, user_id, lease_type, status,
                 starts_us, ends_us, hosts, reason)
             SELECT new.at_us, what, new.lease, instance, project, user_id, lease_type, status, starts_us, ends_us,
                 hosts, reason
             FROM made, unnest($13::text[], $14::uuid[], $15::uuid[], $16::text[], $17::text[], $18::text[],
                 $19::text[], $20::bigint[], $21::bigint[], $22::text[], $23::text[], $24::bigint[])
                 WITH ORDINALITY AS new (what, lease, instance, project, user_id, lease_type, status,
                     starts_us, ends_us, hosts, reason, at_us, position)
             ORDER BY position
         )
         SELECT number, mark, previous_mark FROM made",
        &keys,
        us(commit.at),
        &leases,
        &column(told, |new| &new.project.0),
        &column(told, |new| &new.event_type),
        &column(told, |new| &new.payload),
        &audited_us,
        &column(audited, |record| &record.user.0),
        &column(audited, |record| &record.project.0),
        &column(audited, |record| &record.request_id),
        &column(audited, |record| &record.action),
        &column(audited, |record| &record.object),
        &column(events, |event| event.what.name()),
        &each(events, |event| event.lease.map(|id| uuid(id.0))) as &[Option<Uuid>],
        &each(events, |event| event.instance.map(|id| uuid(id.0))) as &[Option<Uuid>],
        &column(events, |event| &event.owner.project.0),
        &column(events, |event| &event.owner.user.0),
        &each(events, |event| maybe(event.lease_type.as_deref())) as &[Option<String>],
        &column(events, |event| &event.status),
        &each(events, |event| event.window.map(|window| us(window.start()))) as &[Option<i64>],
        &each(events, |event| event.window.map(|window| us(window.end()))) as &[Option<i64>],
        &each(events, |event| hosts_json(&event.hosts)),
        &each(events, |event| maybe(event.reason.as_deref())) as &[Option<String>],
        &each(events, |event| us(event.at)),
        &protected,
    );
    let row = row.fetch_one(&mut *db).await?;
    let number = row.number.cast_unsigned();
    if number % FORGOTTEN_TOGETHER == 0 {
        let oldest = number.saturating_sub(KEPT_REVISIONS).cast_signed();
        sqlx::query!("DELETE FROM change WHERE number < $1", oldest).execute(db).await?;
    }
    Ok(Advance {
        from: Revision { number: number - 1, mark: row.previous_mark.as_u128() },
        to: Revision { number, mark: row.mark.as_u128() },
    })
}

/// A column of events that isn't plain text.
fn each<T>(events: &[Event], of: impl FnMut(&Event) -> T) -> Vec<T> {
    events.iter().map(of).collect()
}

/// A text column of records.
pub(crate) fn column<R>(records: &[R], of: fn(&R) -> &str) -> Vec<String> {
    records.iter().map(|record| text(of(record)).into_owned()).collect()
}
