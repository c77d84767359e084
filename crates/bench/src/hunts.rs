//! `cargo xtask bench hunts`: plans of hunts against the cheapest plans there are, by the crate `exact`, which nothing
//! else builds: its solver takes minutes to build, and a compiler of C++ beside cmake and libclang.

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places::{cargo, need_libclang, need_program, root};
use chores::run::must_run;

/// Runs the chore: so many pools of each size and fill level.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let cases = arguments.word();
    arguments.finish()?;
    need_program("cmake", "cmake")?;
    need_libclang()?;
    let manifest = root().join("exact/Cargo.toml");
    must_run(
        cargo().args(["run", "--quiet", "--release", "--manifest-path"]).arg(manifest).arg("--").args(cases),
    )
}
