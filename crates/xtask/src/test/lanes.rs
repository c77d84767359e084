//! Stages side by side: in each lane one after the other, each in a process of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::stage::Stage;
use crate::places;
use crate::run::Executable;
use crate::tally::Tally;

/// What came of a stage.
#[derive(Debug)]
pub struct Ended {
    pub stage: &'static str,
    pub seconds: f64,
    pub status: ExitStatus,
    /// What it printed, but for what follows.
    pub output: String,
    pub failures: Vec<String>,
    pub skips: Vec<String>,
    /// None if it broke off.
    pub tally: Option<Tally>,
}

/// Runs the lanes with this program, `xtask`, and says of each stage when it has ended. Lanes after the first give way to it.
pub fn side_by_side(
    lanes: &[&[Stage]],
    program: &Path,
    ours: &Executable,
    mut tell: impl FnMut(&Ended),
) -> Result<()> {
    let logs = places::target().join("test");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for (number, lane) in lanes.iter().enumerate() {
            let (sender, logs) = (sender.clone(), &logs);
            scope.spawn(move || {
                for stage in *lane {
                    // Nobody listens any more if another stage could not be run at all.
                    let _ = sender.send(run(stage.name, number > 0, program, ours, logs));
                }
            });
        }
        drop(sender);
        receiver.into_iter().try_for_each(|ended| ended.map(|ended| tell(&ended)))
    })
}

fn run(
    stage: &'static str,
    gives_way: bool,
    program: &Path,
    ours: &Executable,
    logs: &Path,
) -> Result<Ended> {
    let mut command = if gives_way { Command::new("nice") } else { Command::new(program) };
    if gives_way {
        command.args(["-n", "10"]).arg(program);
    }
    let log = logs.join(format!("{stage}.log"));
    let written = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    command.args(["test", "--only", stage, "--ours"]).arg(ours.path());
    command.stdin(Stdio::null()).stdout(written.try_clone()?).stderr(written);
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let said = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(ended(stage, seconds, status, &String::from_utf8_lossy(&said)))
}

/// Reads what a run of one stage printed: its output, durations, what was skipped, what failed, and the counts. An
/// error may follow on standard error.
fn ended(stage: &'static str, seconds: f64, status: ExitStatus, said: &str) -> Ended {
    let (output, summary) = said.split_once("== durations\n").unwrap_or((said, ""));
    let lines: Vec<&str> = summary.lines().collect();
    let counts = lines.iter().rposition(|line| line.parse::<Tally>().is_ok());
    let (mut failures, mut skips) = (Vec::new(), Vec::new());
    let mut current: Option<&mut Vec<String>> = None;
    for line in &lines[..counts.unwrap_or(lines.len())] {
        if let Some(failure) = line.strip_prefix("FAILED: ") {
            failures.push(failure.to_owned());
            current = Some(&mut failures);
        } else if let Some(skip) = line.strip_prefix("SKIPPED: ") {
            skips.push(skip.to_owned());
            current = Some(&mut skips);
        } else if let Some(text) = current.as_deref_mut().and_then(|texts| texts.last_mut()) {
            text.push('\n');
            text.push_str(line);
        }
    }
    let tally = counts.and_then(|at| lines[at].parse().ok());
    Ended { stage, seconds, status, output: output.to_owned(), failures, skips, tally }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn what_came_of_a_stage_is_read_from_what_it_printed() {
        let said = "== races\nraces: NOT SO: a\n    why\n== durations\n                races    10.0 s\n\
                    SKIPPED: b\nFAILED: races: NOT SO: a\n    3 passed, 1 failed\nFAILED: c\n7 passed, 2 failed, \
                    1 skipped\nError: 2 checks failed\n";
        let ended = ended("races", 10.0, ExitStatus::from_raw(256), said);
        assert_eq!(ended.output, "== races\nraces: NOT SO: a\n    why\n");
        assert_eq!(ended.skips, ["b"]);
        assert_eq!(ended.failures, ["races: NOT SO: a\n    3 passed, 1 failed", "c"]);
        assert_eq!(ended.tally, Some(Tally { passed: 7, failed: 2, skipped: 1 }));
    }

    #[test]
    fn a_stage_that_broke_off_has_no_counts() {
        let ended = ended("races", 1.0, ExitStatus::from_raw(9), "== races\nthread main panicked\n");
        assert_eq!((ended.tally, ended.output.lines().count()), (None, 2));
    }
}
