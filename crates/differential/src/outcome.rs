//! Runs a program on files, in a directory that has only these. If they are a daemon's files, a daemon serves
//! them while the program runs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chores::run::{Executable, write};

use crate::generate::model::Case;
use crate::{live, luxi_server};

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Exit status. `None` if a signal ended the program.
    pub status: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Files written, sorted by name.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Runs a case. `None` if it exceeded the limit.
pub fn of_case(executable: &Executable, case: &Case, limit: Duration) -> Result<Option<Outcome>> {
    of(executable, &case.program.to_string(), &case.arguments(), &case.files(), limit)
}

/// Runs a program on files in an otherwise empty directory. `None` if it exceeded the limit.
pub fn of<N: AsRef<str>, C: AsRef<[u8]>>(
    executable: &Executable,
    program: &str,
    arguments: &[String],
    files: &[(N, C)],
    limit: Duration,
) -> Result<Option<Outcome>> {
    watched(executable, program, arguments, files, limit, &mut |_| {})
}

/// Like [`of`], but calls `watch` repeatedly with the process ID while the program runs.
pub fn watched<N: AsRef<str>, C: AsRef<[u8]>>(
    executable: &Executable,
    program: &str,
    arguments: &[String],
    files: &[(N, C)],
    limit: Duration,
    watch: &mut dyn FnMut(u32),
) -> Result<Option<Outcome>> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    for (name, content) in files {
        write(&directory.path().join(name.as_ref()), content.as_ref())?;
    }
    let mut command = executable.command(program);
    command.args(arguments).current_dir(directory.path());
    let mut inputs: Vec<&str> = files.iter().map(|(name, _)| name.as_ref()).collect();
    let daemon = if inputs.contains(&live::MARK) { Some(live::daemon(directory.path())?) } else { None };
    inputs.push(luxi_server::SOCKET);
    let Some((status, stdout, stderr)) = capture(&mut command, limit, watch)? else { return Ok(None) };
    drop(daemon);
    let files = written(directory.path(), &inputs)?;
    Ok(Some(Outcome { status, stdout, stderr, files }))
}

fn written(directory: &Path, inputs: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !inputs.contains(&name.as_str()) {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

type Captured = (Option<i32>, Vec<u8>, Vec<u8>);

/// Runs a command to its end, or kills it at the limit.
fn capture(command: &mut Command, limit: Duration, watch: &mut dyn FnMut(u32)) -> Result<Option<Captured>> {
    let described = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {described}"))?;
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let started = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        watch(child.id());
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    let collect = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Some((status.code(), collect(stdout), collect(stderr))))
}

fn read_all(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut content = Vec::new();
        if let Some(mut stream) = stream {
            // A broken pipe shows up as a difference, so the error needs no handling here.
            let _ = stream.read_to_end(&mut content);
        }
        content
    })
}
