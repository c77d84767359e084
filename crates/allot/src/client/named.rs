//! Names of objects in the service, for shell completion.

use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use serde_json::Value;

use super::identify::Listed;
use super::wire::read;
use super::{Common, Connection, Line, Login, host, instance, lease, without_empty_variables};

/// Time limit. A longer wait would disturb typing.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of names.
const MOST: usize = 500;

/// Objects with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Leases that aren't over. Commands prefer them to others with the same name.
    Lease,
    Host,
    Instance,
}

/// Names that the caller is allowed to see, unescaped. Empty if the service doesn't answer in time or
/// refuses, or if a password is missing. `shared` contains the shared options with their values.
pub(crate) fn names(named: Named, shared: &[String]) -> Vec<String> {
    let (listed, statuses): (&Listed, &[&str]) = match named {
        Named::Lease => (&lease::LEASES, &["ACTIVE", "PENDING", "STARTING", "ERROR"]),
        Named::Host => (&host::HOSTS, &[""]),
        Named::Instance => (&instance::INSTANCES, &[""]),
    };
    let words = ["allot"].into_iter().chain(shared.iter().map(String::as_str)).chain(["whoami"]);
    let matches = without_empty_variables(Line::command()).try_get_matches_from(words);
    let Ok(Line { common: Common { target, login, .. }, .. }) =
        matches.and_then(|matches| Line::from_arg_matches(&matches))
    else {
        return Vec::new();
    };
    let Ok(login) = Login::new(login) else { return Vec::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let mut names = Vec::new();
    let asked = async {
        let connection = Connection::open(target, login, true).await.ok()?;
        for status in statuses {
            let mut query = vec![("limit", MOST.to_string())];
            if !status.is_empty() {
                query.push(("status", (*status).to_owned()));
            }
            let answer = connection.get(listed.path, &query).await.ok()?;
            let entries: Vec<Value> = read(&answer, listed.key).ok()?;
            let found = entries.iter().filter_map(|entry| entry.pointer(listed.name)?.as_str());
            names.extend(found.map(str::to_owned));
        }
        Some(())
    };
    runtime.block_on(async {
        // Names that arrived before the limit are kept.
        let _ = tokio::time::timeout(LIMIT, asked).await;
    });
    // Don't wait for a DNS lookup.
    runtime.shutdown_background();
    names.sort_unstable();
    names.dedup();
    names.truncate(MOST);
    names
}
