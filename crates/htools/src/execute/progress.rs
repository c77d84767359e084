//! Submission of one job set after another.

use std::io::{self, Write};

use thiserror::Error;

use super::annotation::Annotation;
use super::daemon::{Clock, Daemon, DaemonError, JobId, JobStatus, id_list, wait};
use super::dump;
use super::jobs::{Finished, JobSet};
use crate::options::Program;

/// Error that ends a run before all its job sets are carried out.
#[derive(Debug, Error)]
pub(crate) enum ExecuteError {
    /// No master daemon was given.
    #[error("{}: Execution of commands possible only on LUXI", .0.name())]
    NoDaemon(Program),
    /// A set was not submitted, or only a part of it.
    #[error("{}: Job submission error: {source}", .program.name())]
    Submission { program: Program, source: DaemonError },
    /// The status of submitted jobs is unknown.
    #[error("{}: Checking job status: {source}", .program.name())]
    Status { program: Program, source: DaemonError },
    /// Some jobs of a set failed or were canceled. Later sets were not submitted.
    #[error("{}: Not all jobs completed successfully: {}\nAborting.\n", .program.name(), dump::failed(.jobs))]
    Failed { program: Program, jobs: Vec<(JobId, JobStatus)> },
    /// Signals cannot be caught. Without them, an interrupted run couldn't report what was done.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// Standard output cannot be written.
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Submits job sets in order, each after all jobs of the previous set succeeded.
///
/// Once `interrupted` returns true, it waits for the current set, then prints the sets that are left and
/// returns.
pub(crate) fn run(
    program: Program,
    sets: &[JobSet],
    annotation: &Annotation,
    daemon: &mut dyn Daemon,
    clock: &mut dyn Clock,
    interrupted: &dyn Fn() -> bool,
    out: &mut dyn Write,
) -> Result<(), ExecuteError> {
    let mut finished: Vec<Finished> = Vec::new();
    for (position, set) in sets.iter().enumerate() {
        if interrupted() {
            write!(out, "{}", dump::early_exit(&finished, &sets[position..]))?;
            return Ok(());
        }
        let submitted = daemon.reconnect().and_then(|()| daemon.submit(&set.jobs, annotation));
        let ids = submitted.map_err(|source| ExecuteError::Submission { program, source })?;
        writeln!(out, "Got job IDs {}", id_list(&ids))?;
        // The next line can take hours.
        out.flush()?;
        let statuses =
            wait(&ids, daemon, clock).map_err(|source| ExecuteError::Status { program, source })?;
        let jobs: Vec<_> = ids.into_iter().zip(statuses).collect();
        let failed = |job: &&(JobId, JobStatus)| job.1 != JobStatus::Success;
        if jobs.iter().any(|job| failed(&job)) {
            return Err(ExecuteError::Failed {
                program,
                jobs: jobs.iter().filter(failed).copied().collect(),
            });
        }
        finished.push((set.what.clone(), jobs));
    }
    Ok(())
}
