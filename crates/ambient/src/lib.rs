//! Everything that a program takes from its machine: time, identifiers, child processes, and temporary files.
//!
//! Code that decides takes the time as an argument. Code that drives decisions (the service, drivers) takes a
//! [`Clock`] and [`Ids`]. So a run with a test's own clock and identifiers is always the same.
//!
//! - [`Clock`]: [`SystemClock`] is the machine's clock. [`FastClock`] starts at its time and runs faster, for
//!   demonstrations. [`ManualClock`] is for tests and simulations. [`Trust`] detects a machine's clock that
//!   was set or is wrong.
//! - [`Ids`]: [`RandomIds`] are random, [`SeededIds`] are the same in every run.
//! - [`ChildCommand`] and [`RunningChild`]: processes that end together with all of their descendants.
//!   [`run_program`] runs a program with a text on standard input.
//! - [`TemporaryDirectory`] and [`PartialFile`]: directories and files that are removed when their value is
//!   dropped.
//!
//! If this process is killed, a helper process ([`use_helper`]) kills its children, and a later process
//! removes its abandoned directories ([`remove_abandoned`]) and files.
//!
//! Start reading at [`Clock`].

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
