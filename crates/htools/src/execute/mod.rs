//! Execution of decisions: submits jobs to a master daemon, one set after another (HT-execute).
//!
//! [`run`] submits each [`JobSet`] to a [`Daemon`] and waits for it. Only [`carry_out`] and [`signals`] touch
//! the outside world, so everything else is tested without a daemon and without waiting.

mod annotation;
mod daemon;
mod dump;
mod jobs;
mod progress;
mod signals;
#[cfg(test)]
mod tests;

pub(crate) use annotation::Annotation;
pub(crate) use daemon::{Clock, Daemon, DaemonError, JobId, JobStatus, LuxiDaemon, SystemClock, wait};
pub(crate) use jobs::{JobSet, moves, switch_off, switch_on};
pub(crate) use progress::{ExecuteError, run};

use crate::io::Io;
use crate::options::{Options, Program};
use crate::source;

/// Runs job sets through the master daemon given with `-L`, and waits for each set. Every operation gets a
/// comment that starts with `what`.
pub(crate) fn carry_out(
    program: Program,
    what: &str,
    sets: &[JobSet],
    options: &Options,
    io: &mut Io<'_>,
) -> Result<(), ExecuteError> {
    let Some(socket) = &options.luxi else { return Err(ExecuteError::NoDaemon(program)) };
    let mut clock = SystemClock;
    let annotation = Annotation::new(program, what, options, clock.now());
    let mut daemon = LuxiDaemon::new(source::luxi_path(socket));
    io.out.flush()?;
    // With `--json`, standard output must contain only the JSON document.
    let signals = signals::Watch::start(!options.json).map_err(ExecuteError::Signals)?;
    let interrupted = || signals.interrupted();
    run(program, sets, &annotation, &mut daemon, &mut clock, &interrupted, io.out)
}
