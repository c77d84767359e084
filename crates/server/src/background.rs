//! What a server does beside answering requests.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::app::App;
use crate::listeners;

/// Tells the listeners that the settings name of what happens, until `stop` becomes true. What is under way then is
/// given up, and told again after the next start.
pub async fn push_notifications(app: App, stop: watch::Receiver<bool>) {
    let inner = &app.inner;
    listeners::push(&inner.listeners, &inner.service, &inner.metrics, stop).await;
}

/// Hears what the services of the cloud say until `stop` becomes true, if the settings name a message bus and topics of
/// theirs. `read` says which compute services a message is about, by the names that they have in the cloud.
pub async fn hear_the_cloud(
    app: App,
    read: impl FnMut(&[u8]) -> BTreeSet<String> + Send,
    mut stop: watch::Receiver<bool>,
) {
    let inner = &app.inner;
    let Some(news) = &inner.cloud_news else { return };
    tokio::select! {
        () = news.hear_all(&inner.service, &inner.metrics, read) => {}
        // If nobody is left to say so, that is a stop as well.
        _ = stop.wait_for(|stop| *stop) => {}
    }
}
