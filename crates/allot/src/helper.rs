//! The mode in which the program acts as a helper of the service: it runs another program and kills all its
//! descendants when that program ends, when the service sends SIGTERM, and when the service itself ends.

use std::collections::HashMap;
use std::env::ArgsOs;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::Duration;

use ambient::{Limits, NOT_STARTED};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process,
    kill_process_group, set_child_subreaper, set_parent_process_death_signal, setrlimit, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// First and longest pause between attempts to kill the remaining descendants. Attempts continue until none is left: a
/// process that waits for a disk can't be killed before the disk responds.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Runs a program until it ends or the service ends. Then exits with the same status, or dies by the same signal.
#[expect(clippy::print_stderr, reason = "it has only the resources of the program")]
pub(crate) fn run(arguments: ArgsOs) -> ExitCode {
    match supervise(arguments) {
        Ok(status) => end_as(status),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn supervise(mut arguments: ArgsOs) -> io::Result<WaitStatus> {
    let usage = || io::Error::other("this is a mode of allot for its service");
    let parent = arguments.next().and_then(|parent| parent.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let limits = arguments.next().ok_or_else(usage)?;
    let program = arguments.next().ok_or_else(usage)?;

    let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // If the service ended before the signal was requested, the signal is never sent.
    if parent.is_none() || getppid() != parent {
        return Err(io::Error::other("the service has ended"));
    }
    if let Some(limits) = limits.to_str().and_then(Limits::from_argument) {
        limits.apply(None)?;
    }
    let child = Command::new(program).args(arguments).process_group(0).spawn()?;
    let child = Pid::from_child(&child);

    let mut status = None;
    let mut is_told = false;
    while status.is_none() && !is_told {
        is_told = signals.wait().any(|signal| signal != SIGCHLD);
        reap(child, &mut status);
    }
    if status.is_none() {
        let _ = kill_process_group(child, Signal::KILL);
    }
    let mut pause = FIRST_PAUSE;
    while !reap(child, &mut status) {
        kill_descendants();
        sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    status.ok_or_else(|| io::Error::other("the program was not waited for"))
}

/// Reaps all children that have ended. Returns true if no child is left. Descendants whose parents have ended are
/// children of this process, too.
fn reap(child: Pid, status: &mut Option<WaitStatus>) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((process, ended))) if process == child => *status = Some(ended),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn kill_descendants() {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (process, parent) in processes() {
        children.entry(parent).or_default().push(process);
    }
    let mut found = vec![getpid()];
    while let Some(process) = found.pop() {
        for child in children.remove(&process).into_iter().flatten() {
            // Fails if the process has ended, or now runs as another user.
            let _ = kill_process(child, Signal::KILL);
            found.push(child);
        }
    }
}

/// All visible processes, each with its parent.
fn processes() -> impl Iterator<Item = (Pid, Pid)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((Pid::from_raw(process)?, Pid::from_raw(parent(&stat)?)?))
    })
}

/// The parent in `/proc/PID/stat`: `1 (name) S 0 ...`, where the name can contain any character.
fn parent(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Ends as a program did: with its exit status, or by the same signal.
fn end_as(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal() {
        // The program has already dumped core, if that is enabled. The helper must not dump one as well.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let _ = emulate_default_handler(signal);
        return ExitCode::from(128u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX)));
    }
    ExitCode::from(status.exit_status().and_then(|status| u8::try_from(status).ok()).unwrap_or(NOT_STARTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_whatever_the_name_is() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0 -1"), Some(7));
        assert_eq!(parent(b"12 (a) R 1 (\xff) S 7 12 12 0 -1"), Some(7));
        assert_eq!(parent(b"12 (sh"), None);
        assert!(processes().any(|(process, parent)| process == getpid() && Some(parent) == getppid()));
    }
}
