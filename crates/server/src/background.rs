//! Background work of a server: notifications to listeners and from the cloud.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::app::App;
use crate::listeners;

/// Sends notifications to the configured listeners until `stop` becomes true. A delivery under way at that
/// moment is abandoned, and repeated after the next start.
pub async fn push_notifications(app: App, stop: watch::Receiver<bool>) {
    let inner = &app.inner;
    listeners::push(&inner.listeners, &inner.service, &inner.metrics, stop).await;
}

/// Receives notifications of the cloud's services until `stop` becomes true. Returns at once unless the
/// settings have a message bus with topics to listen to. `read` returns the compute services that a message
/// concerns, by their names in the cloud.
pub async fn hear_the_cloud(
    app: App,
    read: impl FnMut(&[u8]) -> BTreeSet<String> + Send,
    mut stop: watch::Receiver<bool>,
) {
    let inner = &app.inner;
    let Some(news) = &inner.cloud_news else { return };
    tokio::select! {
        () = news.hear_all(&inner.service, &inner.metrics, read) => {}
        // A dropped sender also means stop.
        _ = stop.wait_for(|stop| *stop) => {}
    }
}
