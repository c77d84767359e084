//! Plain records of all kinds.

use sqlx::SqliteConnection;
use store::{CommitError, Document, DocumentChange, Snapshot, StoreError};

use crate::error::{failed, unavailable};

/// Reads all plain records into a snapshot without plain records.
pub(crate) async fn read(db: &mut SqliteConnection, snapshot: &mut Snapshot) -> Result<(), StoreError> {
    let rows = sqlx::query!("SELECT kind, id, body FROM document ORDER BY kind, id");
    for row in rows.fetch_all(db).await.map_err(unavailable)? {
        if let Some(document) = Document::read(&row.kind, row.id, &row.body)? {
            snapshot.add_document(document);
        }
    }
    Ok(())
}

/// Adds or replaces a plain record, or removes it.
pub(crate) async fn write(db: &mut SqliteConnection, change: &DocumentChange) -> Result<(), CommitError> {
    match change {
        DocumentChange::Put(document) => {
            let (key, body) = (document.key(), document.body());
            let kind = key.kind.name();
            let write = sqlx::query!(
                "INSERT INTO document (kind, id, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (kind, id) DO UPDATE SET body = ?3",
                kind,
                key.id,
                body,
            );
            write.execute(db).await.map_err(failed)?;
        }
        DocumentChange::Remove(key) => {
            let kind = key.kind.name();
            let deletion = sqlx::query!("DELETE FROM document WHERE kind = ? AND id = ?", kind, key.id);
            if deletion.execute(db).await.map_err(failed)?.rows_affected() == 0 {
                return Err(CommitError::stale_document(key));
            }
        }
    }
    Ok(())
}
