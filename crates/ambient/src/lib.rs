//! Traits for time and identifiers; child processes, temporary directories and partial files that are cleaned up when
//! this process ends.
//!
//! Everything that decides takes the time as an argument. What drives decisions (the service, drivers) takes a
//! [`Clock`] and [`Ids`]; only [`SystemClock`] reads the machine's clock, and only [`RandomIds`] draws random
//! numbers. So a run under a clock and identifiers of a test's own is the same run every time.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod children;
mod clock;
mod ids;
mod partial_file;
mod program;
mod temporary;
mod trust;

pub use children::{ChildCommand, HELPER, Limits, NOT_STARTED, RunningChild, use_helper};
pub use clock::{Clock, FastClock, ManualClock, Stopwatch, SystemClock};
pub use ids::{Ids, RandomIds, SeededIds};
pub use partial_file::PartialFile;
pub use program::{
    ProgramOutput, inherited_environment, keep_last, last_line, run_program, unusable_program,
};
pub use temporary::{Purpose, TemporaryDirectory, remove_abandoned, remove_abandoned_in};
pub use trust::{Bounds, Reading, Trust, Wrong};
