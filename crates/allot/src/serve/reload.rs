//! SIGHUP: reads the files of users, tokens and rules, and the certificates, again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use server::App;
use tokio::signal::unix::Signal;

use super::files::{of_hooks, warn_of_modes};
use crate::config::{Configuration, Values};

/// Reads the settings again, from the same sources as at the start.
pub(crate) type Settings = Arc<dyn Fn() -> Values + Send + Sync>;

/// What the service was started with.
#[derive(Debug)]
pub(crate) struct Start {
    values: Values,
    /// The file of hooks and its text, which is read only once.
    hooks: Option<(PathBuf, Vec<u8>)>,
}

impl Start {
    pub(crate) fn new(values: Values, configuration: &Configuration) -> Self {
        let hooks = of_hooks(configuration);
        let hooks = hooks.and_then(|path| Some((path.to_owned(), std::fs::read(path).ok()?)));
        Self { values, hooks }
    }

    /// The file of hooks, if it has changed since.
    fn changed_hooks(&self) -> Option<&Path> {
        let (path, text) = self.hooks.as_ref()?;
        let changed = std::fs::read(path).is_ok_and(|now| now != *text);
        changed.then_some(path)
    }
}

/// Reloads on each signal. A failure never ends the process.
pub(crate) async fn by_signal(mut signal: Signal, app: App, start: Arc<Start>, settings: Settings) {
    while signal.recv().await.is_some() {
        let (app, start, settings) = (app.clone(), Arc::clone(&start), Arc::clone(&settings));
        // Reading files can be slow.
        let reloaded = tokio::task::spawn_blocking(move || reload(&app, &start, &settings));
        if let Err(error) = reloaded.await {
            tracing::error!(%error, "reload failed");
        }
    }
}

fn reload(app: &App, start: &Start, settings: &Settings) {
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
    let changed = start.values.changed(&values);
    if !changed.is_empty() {
        tracing::warn!(settings = changed.join(", "), "settings need a restart");
    }
    if let Some(path) = start.changed_hooks() {
        tracing::warn!(path = %path.display(), "hooks need a restart");
    }
    // The service still uses the files that were named at its start.
    if let Ok(configuration) = Configuration::of(&start.values) {
        warn_of_modes(&configuration, &start.values);
    }
}
