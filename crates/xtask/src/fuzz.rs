//! `cargo xtask fuzz`: the parsers on random input, where `cargo fuzz` is installed.

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::places;
use crate::run::must_run;

const TARGETS: [&str; 5] = ["text", "iallocator", "rapi", "luxi", "mond"];

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let seconds: u32 = arguments.value("--seconds", 60)?;
    arguments.finish()?;
    if !places::has_program("cargo-fuzz") {
        bail!("cargo-fuzz is missing: install it with 'cargo install cargo-fuzz' and try again");
    }
    for target in TARGETS {
        println!("{target}, {seconds} s");
        // Without a sanitizer the stable compiler does; the code has no `unsafe` for one to watch.
        let mut command = places::cargo();
        // What is found goes to the corpus, which is not committed; the seeds are.
        let corpus = places::root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus)?;
        command.args(["fuzz", "run", "--sanitizer", "none", target]);
        command.arg(corpus).arg(places::root().join("fuzz/seeds").join(target)).arg("--");
        must_run(command.arg(format!("-max_total_time={seconds}")))?;
    }
    Ok(())
}
