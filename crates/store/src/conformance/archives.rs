//! Promises about export and import.

use std::sync::Arc;

use leases::ids::HostId;
use leases::plan::Action;

use super::records::{accept, everything, loaded};
use super::sample::*;
use crate::archive::{Archive, ImportError};
use crate::memory::MemoryStore;
use crate::{Commit, Finished, Holder, Store, TokenKey, Write};

/// Adds at least one record of each kind that an archive contains.
async fn fill(store: &Arc<dyn Store>) {
    let rich = Commit {
        writes: everything().into_iter().chain(documents().into_iter().map(Write::from)).collect(),
        audit: vec![audit("a"), audit("b")],
        notifications: vec![notification("a"), of_no_lease("b")],
        idempotency: Some(request("key", at(0))),
        usage: super::usage::some_usage(),
        slept: super::power::some_sleeps(),
        ..Commit::new(at(0))
    };
    store.commit(&rich).await.expect("accepted");
    let steps = [Action::Fence(HostId(1)), Action::Snapshot(HostId(1), leases::ids::ReservationId(7))];
    let claims = store.claim(&steps, &Holder("me".into()), at(0), at(5)).await.expect("works");
    let results = [Err("no route".to_owned()), Ok(())];
    let finished: Vec<Finished> =
        claims.into_iter().zip(results).map(|(claim, result)| Finished { claim, result }).collect();
    store.finish(&finished, at(1)).await.expect("works");
    store.set_delivered("listener", 1).await.expect("works");
    store.add_refusals(&super::refusals::some_refusals()).await.expect("works");
    store.record_occupancy(&super::occupancy::some_occupancy()).await.expect("works");
    super::tokens::add_some_tokens(store).await;
}

fn shown(archive: &Archive) -> String {
    let mut archive = archive.clone();
    archive.snapshot.revision = crate::Revision::default();
    format!("{archive:?}")
}

/// Exports from the model and imports into the tested store.
pub async fn what_was_exported_can_be_imported(store: &Arc<dyn Store>) {
    let model: Arc<dyn Store> = Arc::new(MemoryStore::new());
    fill(&model).await;
    model.add_refusals(&super::refusals::many_refusals()).await.expect("works");
    model.record_occupancy(&super::occupancy::many_intervals()).await.expect("works");
    let id = Some("0123456789abcdef0123456789abcdef".to_owned());
    let mut archive = Archive { id, ..model.export().await.expect("works") };
    // A token key that the service created at its start doesn't prevent the import.
    let own = TokenKey { number: 1, secret: vec![0; 32], at: at(0) };
    store.add_token_key(&own, 1).await.expect("works");
    store.import(&archive).await.expect("it is empty");
    let again = store.export().await.expect("works");
    if again.id.is_none() {
        // A store that isn't persistent has no identifier, so it can't adopt one.
        archive.id = None;
    }
    assert_eq!(shown(&again), shown(&archive));
    assert_eq!(again.tokens, archive.tokens, "keys are not shown");
    // Numbers and fences continue after the archive's.
    let later = Commit { notifications: vec![notification("c")], ..Commit::new(at(9)) };
    store.commit(&later).await.expect("accepted");
    let told = store.notifications(None, archive.last_notification, 9).await.expect("works");
    assert_eq!(told.len(), 1);
    let claims = store.claim(&[Action::Fence(HostId(1))], &Holder("me".into()), at(9), at(10)).await;
    assert!(claims.expect("works")[0].fence > archive.last_fence);
}

/// The attempt changes nothing.
pub async fn a_store_with_something_in_it_imports_nothing(store: &Arc<dyn Store>) {
    let model: Arc<dyn Store> = Arc::new(MemoryStore::new());
    fill(&model).await;
    let archive = model.export().await.expect("works");
    accept(store, add_hosts([77])).await;
    let before = format!("{:?}", loaded(store).await);
    let error = store.import(&archive).await.expect_err("it is not empty");
    assert!(matches!(error, ImportError::NotEmpty), "{error}");
    assert_eq!(format!("{:?}", loaded(store).await), before);
}

/// The archive's last lease is booked on a host that is taken.
pub async fn an_archive_that_contradicts_itself_is_imported_not_at_all(store: &Arc<dyn Store>) {
    let model: Arc<dyn Store> = Arc::new(MemoryStore::new());
    fill(&model).await;
    let mut archive = model.export().await.expect("works");
    archive.snapshot.leases.push(lease(99, window(60, 90), vec![hosts(&[1])]));
    let error = store.import(&archive).await.expect_err("host 1 is taken");
    assert!(matches!(error, ImportError::Refused(_)), "{error}");
    assert!(store.export().await.expect("works").is_empty());
}
