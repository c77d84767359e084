//! Carrying decisions out: jobs for a master daemon, one set after another (HT-execute).
//!
//! [`JobSet`] is what to do, [`Daemon`] who does it, [`run`] the order of things. Only [`carry_out`] and
//! [`signals`] know the outer world, so that everything else is tested without daemon and without waiting.

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

/// Runs job sets through the master daemon that the options name, and waits for each; a comment that
/// begins with `what` goes with every operation.
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
    // A JSON document must stay alone on standard output.
    let signals = signals::Watch::start(!options.json).map_err(ExecuteError::Signals)?;
    let interrupted = || signals.interrupted();
    run(program, sets, &annotation, &mut daemon, &mut clock, &interrupted, io.out)
}
