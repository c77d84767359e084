//! What the crates of chores share: command lines, where programs and material are, running programs, counting checks.
//!
//! It knows nothing of what is checked, and no crate of the engine.

pub mod arguments;
pub mod cases;
pub mod console;
pub mod listening;
pub mod places;
pub mod processor;
pub mod program;
pub mod python;
pub mod random;
pub mod run;
pub mod stages;
pub mod tally;
