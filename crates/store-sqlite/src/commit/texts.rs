//! Long text, which is stored once, and the references of leases to it.

use ::leases::ids::LeaseId;
use sqlx::SqliteConnection;
use store::CommitError;
use store::encoding::{TextChanges, TextHash, hex, json};

use crate::error::failed;

/// Stores text that isn't stored yet, and adds and removes references. A trigger deletes text with its last reference.
pub(super) async fn write(db: &mut SqliteConnection, changes: &TextChanges) -> Result<(), CommitError> {
    for (hash, text) in &changes.texts {
        let hash = hash.0.as_slice();
        let insertion = sqlx::query!(
            "INSERT INTO long_text (hash, body) VALUES (?, ?) ON CONFLICT DO NOTHING",
            hash,
            text
        );
        insertion.execute(&mut *db).await.map_err(failed)?;
    }
    if !changes.added.is_empty() {
        let added = references(&changes.added);
        let insertion = sqlx::query!(
            "INSERT INTO lease_text (lease, hash) SELECT unhex(value ->> 0), unhex(value ->> 1) FROM json_each(?)",
            added,
        );
        insertion.execute(&mut *db).await.map_err(failed)?;
    }
    if !changes.removed.is_empty() {
        let removed = references(&changes.removed);
        let deletion = sqlx::query!(
            "DELETE FROM lease_text
             WHERE (lease, hash) IN (SELECT unhex(value ->> 0), unhex(value ->> 1) FROM json_each(?))",
            removed,
        );
        deletion.execute(db).await.map_err(failed)?;
    }
    Ok(())
}

fn references(of: &[(LeaseId, TextHash)]) -> String {
    json(&of.iter().map(|(lease, hash)| (hex(lease.0), hash.to_string())).collect::<Vec<_>>())
}
