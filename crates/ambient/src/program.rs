//! Programs that operators name in the configuration: whether one can be started, and running it with a text on its
//! standard input. A program is trusted neither to end nor to write little.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::children::ChildCommand;

/// Bytes of each output stream that are kept: the last ones. Up to twice as many are held in between.
const KEPT_BYTES: usize = 256 * 1024;

/// Characters of the last line that are passed on.
const LINE_CHARS: usize = 300;

/// After a program has ended, others may hold its output open; it is not waited for longer than this.
const AFTER_THE_END: Duration = Duration::from_millis(200);

/// Variables of the service's own environment that programs get. Its other variables may be secrets.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// How a program ended, and the last of what it wrote.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Exit status, or the signal that ended it.
    pub status: ExitStatus,
    /// The end of its standard output.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: Vec<u8>,
}

impl ProgramOutput {
    /// The last line on standard error, or on standard output if there is none.
    pub fn last_line(&self) -> Option<String> {
        last_line(&self.stderr).or_else(|| last_line(&self.stdout))
    }
}

/// The part of this process's environment that programs get.
pub fn inherited_environment() -> impl Iterator<Item = (&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Runs a program. The program and all of its descendants are killed when the caller stops waiting, so that a program
/// that was given up does not run beside the next attempt.
pub async fn run_program(mut command: ChildCommand, input: &[u8]) -> io::Result<ProgramOutput> {
    command.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().await?;
    let child = &mut running.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut said = Vec::new();
    let mut complained = Vec::new();
    let status = {
        let tell = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read is as good as one that does.
                let _ = stdin.write_all(input).await;
            }
        };
        let conversation =
            async { tokio::join!(tell, listen(stdout, &mut said), listen(stderr, &mut complained)) };
        tokio::pin!(conversation);
        tokio::select! {
            // Who closes the output first is not done yet.
            _ = &mut conversation => child.wait().await,
            status = child.wait() => {
                let _ = tokio::time::timeout(AFTER_THE_END, conversation).await;
                status
            }
        }
    };
    Ok(ProgramOutput { status: status?, stdout: said, stderr: complained })
}

/// Reads to the end, and keeps the last of it.
async fn listen(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut chunk = vec![0; 8192];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        keep_last(kept, &chunk[..length]);
    }
}

/// Appends to what is kept of an output, and drops its beginning if it is too long.
pub fn keep_last(kept: &mut Vec<u8>, chunk: &[u8]) {
    kept.extend_from_slice(chunk);
    if kept.len() > 2 * KEPT_BYTES {
        kept.drain(..kept.len() - KEPT_BYTES);
    }
}

/// The last line that is not blank, without control characters, of at most 300 characters.
pub fn last_line(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(LINE_CHARS).collect())
}

/// Why a program can't be started; `None` if it can. As when it is started, a name without a slash is searched in
/// `PATH`, and a relative path starts at the working directory.
pub fn unusable_program(program: &str) -> Option<&'static str> {
    if !program.contains('/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return (!is_in_path(program, &path)).then_some("not found in PATH");
    }
    match is_executable(Path::new(program)) {
        Some(true) => None,
        Some(false) => Some("not executable"),
        None => Some("no such file"),
    }
}

fn is_in_path(program: &str, path: &OsStr) -> bool {
    std::env::split_paths(path).any(|directory| is_executable(&directory.join(program)) == Some(true))
}

/// `None` if there is no such file.
fn is_executable(path: &Path) -> Option<bool> {
    let metadata = path.metadata().ok()?;
    Some(metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_must_be_there_and_executable() {
        for (program, reason) in [
            ("sh", None),
            ("/bin/sh", None),
            ("", Some("not found in PATH")),
            ("no-such-program", Some("not found in PATH")),
            ("./no-such-program", Some("no such file")),
            ("/etc/passwd", Some("not executable")),
            ("/etc/", Some("not executable")),
        ] {
            assert_eq!(unusable_program(program), reason, "{program:?}");
        }
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_its_last_line_is_kept() {
        let mut command = ChildCommand::new("sh", None);
        command.command.args(["-c", "cat; echo one >&2; printf ' t\\033wo \\n\\n' >&2; exit 3"]);
        let output = run_program(command, b"told").await.expect("it runs");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"told".as_slice()));
        assert_eq!(output.last_line().as_deref(), Some("two"));
    }
}
