//! SIGHUP: reads the files of users, tokens and rules, and the certificates, again.

use std::sync::Arc;

use server::App;
use tokio::signal::unix::Signal;

use super::files::warn_of_modes;
use crate::config::{Configuration, Values};

/// Reads the settings again, from the same sources as at the start.
pub(crate) type Settings = Arc<dyn Fn() -> Values + Send + Sync>;

/// Reloads on each signal. A failure never ends the process.
pub(crate) async fn by_signal(mut signal: Signal, app: App, started_with: Arc<Values>, settings: Settings) {
    while signal.recv().await.is_some() {
        let (app, started_with, settings) = (app.clone(), Arc::clone(&started_with), Arc::clone(&settings));
        // Reading files can be slow.
        let reloaded = tokio::task::spawn_blocking(move || reload(&app, &started_with, &settings));
        if let Err(error) = reloaded.await {
            tracing::error!(%error, "reload failed");
        }
    }
}

fn reload(app: &App, started_with: &Values, settings: &Settings) {
    // Checks first that the service could start with these settings. If not, nothing is reloaded.
    let values = settings();
    if let Err(error) = Configuration::of(&values) {
        tracing::error!(%error, "reload failed, nothing changed");
        return;
    }
    match app.reload() {
        Ok(server::Reloaded { users, tokens, rules, certificate }) => tracing::info!(
            users_added = users.added,
            users_removed = users.removed,
            users_changed = users.changed,
            tokens_added = tokens.added,
            tokens_removed = tokens.removed,
            tokens_changed = tokens.changed,
            rules_added = rules.added,
            rules_removed = rules.removed,
            rules_changed = rules.changed,
            certificate_changed = certificate,
            "access reloaded"
        ),
        Err(error) => {
            tracing::error!(%error, "reload failed, nothing changed");
            return;
        }
    }
    let changed = started_with.changed(&values);
    if !changed.is_empty() {
        tracing::warn!(settings = changed.join(", "), "settings need a restart");
    }
    // The service still uses the files that were named at its start.
    if let Ok(configuration) = Configuration::of(started_with) {
        warn_of_modes(&configuration, started_with);
    }
}
