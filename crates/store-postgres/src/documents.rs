//! Plain records of all kinds.

use sqlx::PgConnection;
use store::{CommitError, Document, DocumentChange, DocumentKey, Snapshot};

use crate::columns::{plain, text};
use crate::error::TxError;

/// Keys of the plain records to read: kinds, and identifiers at the same positions.
pub(crate) type Keys = (Vec<String>, Vec<String>);

/// Keys as columns.
pub(crate) fn columns(keys: &[&DocumentKey]) -> Keys {
    keys.iter().map(|key| (key.kind.name().to_owned(), text(&key.id).into_owned())).unzip()
}

/// Reads the wanted plain records, or all, into a snapshot without plain records.
pub(crate) async fn read(
    db: &mut PgConnection,
    wanted: Option<&Keys>,
    snapshot: &mut Snapshot,
) -> Result<(), TxError> {
    let (kinds, ids) = wanted.map(|(kinds, ids)| (kinds.as_slice(), ids.as_slice())).unzip();
    let rows = sqlx::query!(
        "SELECT kind, id, body FROM document
         WHERE $1::text[] IS NULL OR (kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
         ORDER BY kind, id COLLATE \"C\"",
        kinds,
        ids,
    );
    for row in rows.fetch_all(db).await? {
        if let Some(document) = Document::read(&row.kind, plain(row.id), &row.body)? {
            snapshot.add_document(document);
        }
    }
    Ok(())
}

/// Adds or replaces a plain record, or removes it.
pub(crate) async fn write(db: &mut PgConnection, change: &DocumentChange) -> Result<(), TxError> {
    match change {
        DocumentChange::Put(document) => {
            let key = document.key();
            let write = sqlx::query!(
                "INSERT INTO document (kind, id, body) VALUES ($1, $2, $3)
                 ON CONFLICT (kind, id) DO UPDATE SET body = $3",
                key.kind.name(),
                &text(&key.id),
                document.body(),
            );
            write.execute(db).await?;
        }
        DocumentChange::Remove(key) => {
            let deletion = sqlx::query!(
                "DELETE FROM document WHERE kind = $1 AND id = $2",
                key.kind.name(),
                &text(&key.id),
            );
            if deletion.execute(db).await?.rows_affected() == 0 {
                return Err(CommitError::stale_document(key).into());
            }
        }
    }
    Ok(())
}
