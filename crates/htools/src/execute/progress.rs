//! Running one set of jobs after another.

use std::io::{self, Write};

use thiserror::Error;

use super::annotation::Annotation;
use super::daemon::{Clock, Daemon, DaemonError, JobId, JobStatus, id_list, wait};
use super::dump;
use super::jobs::{Finished, JobSet};
use crate::options::Program;

/// Why not everything was carried out.
#[derive(Debug, Error)]
pub(crate) enum ExecuteError {
    /// There is nobody to give jobs to.
    #[error("{}: Execution of commands possible only on LUXI", .0.name())]
    NoDaemon(Program),
    /// A set was not submitted, or only in part.
    #[error("{}: Job submission error: {source}", .program.name())]
    Submission {
        /// Who says so.
        program: Program,
        /// Why.
        source: DaemonError,
    },
    /// How far jobs are is not known.
    #[error("{}: Checking job status: {source}", .program.name())]
    Status {
        /// Who says so.
        program: Program,
        /// Why.
        source: DaemonError,
    },
    /// Some jobs of a set failed or were cancelled; later sets were not submitted.
    #[error("{}: Not all jobs completed successfully: {}\nAborting.\n", .program.name(), dump::failed(.jobs))]
    Failed {
        /// Who says so.
        program: Program,
        /// Those jobs.
        jobs: Vec<(JobId, JobStatus)>,
    },
    /// Signals cannot be caught; without that, interrupting would leave it open what was done.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// Nobody reads what is printed.
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Submits one set after another, each when the one before has succeeded.
///
/// When `interrupted` becomes true, the current set is still waited for, and the rest is shown.
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
        // The next line may be hours away.
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
