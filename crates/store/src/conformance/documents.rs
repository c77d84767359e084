//! Promises about plain records.

use std::sync::Arc;

use super::changes::{delta, follow};
use super::records::{accept, loaded, refuse};
use super::sample::*;
use crate::{CommitError, Document, Snapshot, Store, Write};

/// Plain records in a snapshot, by kind and identifier.
fn plain(snapshot: &Snapshot) -> Vec<Document> {
    snapshot.documents().collect()
}

/// Identifiers can be any text, and each change is in the delta.
pub async fn plain_records_are_entered_replaced_and_removed(store: &Arc<dyn Store>) {
    let mut known = loaded(store).await;
    let first = documents();
    let second = with_other_contents(&first);
    for records in [&first, &second] {
        accept(store, records.iter().rev().cloned().map(Write::from)).await;
        assert_eq!(plain(&loaded(store).await), *records);
        let changes = delta(store, known.revision).await;
        known = follow(known, changes);
        assert_eq!(plain(&known), *records);
    }
    let (gone, left): (Vec<_>, Vec<_>) = second.into_iter().partition(|document| removal(document).is_some());
    accept(store, gone.iter().filter_map(removal)).await;
    assert_eq!(plain(&loaded(store).await), left);
    let changes = delta(store, known.revision).await;
    assert_eq!(plain(&follow(known, changes)), left);
    for document in &gone {
        let CommitError::Stale { what } = refuse(store, &commit(removal(document))).await else {
            panic!("there is no such record to be removed");
        };
        assert_eq!(what, document.key().to_string());
    }
}
