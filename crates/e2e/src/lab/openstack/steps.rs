//! Finds failed steps in the logs of the services that drove the cloud.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;

/// Parts of errors that are expected while a component is stopped on purpose: the database, the message bus.
const OUTAGES: [&str; 3] = ["DBConnectionError", "MessagingTimeout", "answered 503"];

/// Checks that no step failed because of a response from the cloud, even if it succeeded later. `root` has a
/// directory for each service; logs from before `since` are ignored.
pub fn none_fails(cases: &mut Cases, root: &Path, since: SystemTime) {
    cases.check("the cloud has answered every step as expected", || {
        let failed = failed_steps(root, since)?;
        ensure!(failed.is_empty(), "{} steps failed:\n{}", failed.len(), failed.join("\n"));
        Ok(())
    });
}

fn failed_steps(root: &Path, since: SystemTime) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    for directory in fs::read_dir(root).context("no directory of the lab")? {
        let directory = directory?;
        if !directory.file_name().to_string_lossy().starts_with("allot") || !directory.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(directory.path())? {
            let file = file?;
            let is_log = file.path().extension().is_some_and(|extension| extension == "log");
            if is_log && file.metadata()?.modified()? >= since {
                let log = fs::read(file.path())?;
                failed.extend(refused_steps(&String::from_utf8_lossy(&log)));
            }
        }
    }
    Ok(failed)
}

/// Log lines of steps that failed because of a response from the cloud. A step that only waits, for example
/// for a server to be deleted, logs no response.
fn refused_steps(log: &str) -> Vec<String> {
    let failed = log.lines().filter(|line| line.contains("step failed") && line.contains("answered "));
    failed.filter(|line| !OUTAGES.iter().any(|outage| line.contains(outage))).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_break_a_step_count_but_not_those_of_an_outage() {
        let line = |error: &str| format!("WARN service::execution::steps: step failed error={error}\n");
        let duplicate =
            "compute: create aggregate: answered 500: <class 'oslo_db.exception.DBDuplicateEntry'>";
        let outage = "compute: list servers: answered 500: <class 'oslo_db.exception.DBConnectionError'>";
        let log: String =
            [duplicate, outage, "host host1 is still in aggregate x"].map(line).into_iter().collect();
        assert_eq!(refused_steps(&log), [line(duplicate).trim_end()]);
        assert_eq!(refused_steps("INFO keystone: answered 500"), [""; 0]);
    }
}
