//! Runs stages as separate processes, in parallel lanes. Stages of a lane run one after another.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use chores::places;
use chores::stages::Ended;

use super::stage::{Check, Programs, Stage};

/// Runs the lanes, and calls `tell` when a stage has ended. All lanes but the first run with lower priority.
pub fn side_by_side(lanes: &[&[Stage]], programs: &Programs, mut tell: impl FnMut(&Ended)) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for (number, lane) in lanes.iter().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                for stage in *lane {
                    // The receiver is gone if another stage could not run at all.
                    let _ = sender.send(run(*stage, number > 0, programs));
                }
            });
        }
        drop(sender);
        receiver.into_iter().try_for_each(|ended| ended.map(|ended| tell(&ended)))
    })
}

/// Runs a stage while no other stage is running.
pub fn alone(stage: Stage, programs: &Programs) -> Result<Ended> {
    run(stage, false, programs)
}

fn run(stage: Stage, gives_way: bool, programs: &Programs) -> Result<Ended> {
    let program = match stage.check {
        Check::Command(_) | Check::Checks(_) => programs.this.clone(),
        // It is built beforehand: while stages run, a build would wait until the lints are done.
        Check::Of(program) => program.path(),
    };
    let mut command = if gives_way { Command::new("nice") } else { Command::new(&program) };
    if gives_way {
        command.args(["-n", "10"]).arg(program);
    }
    let log = log(stage.name)?;
    let written = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    command.args(["test", "--only", stage.name, "--ours"]).arg(programs.ours.path());
    command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let said = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(Ended::read(stage.name, seconds, status, &String::from_utf8_lossy(&said)))
}

fn log(stage: &str) -> Result<PathBuf> {
    let logs = places::target().join("test");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    Ok(logs.join(format!("{stage}.log")))
}
