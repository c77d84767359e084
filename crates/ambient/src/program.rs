//! Programs that operators configure: checks that they can be started, and runs them with a text on standard
//! input. A program is trusted neither to end nor to limit its output.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::children::ChildCommand;

/// Size of the kept end of each output stream, in bytes. The buffer grows to at most twice this size.
const KEPT_BYTES: usize = 256 * 1024;

/// Maximum length of a quoted last line, in characters.
const LINE_CHARS: usize = 300;

/// Maximum wait for the rest of the output after a program has ended, because another process can keep it
/// open.
const AFTER_THE_END: Duration = Duration::from_millis(200);

/// Variables of the service's environment that programs get. Any other variable may be a secret.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Exit status of a program, and the end of its output.
#[derive(Debug)]
pub struct ProgramOutput {
    pub status: ExitStatus,
    /// All of it, or the last 256 to 512 KiB.
    pub stdout: Vec<u8>,
    /// All of it, or the last 256 to 512 KiB.
    pub stderr: Vec<u8>,
}

impl ProgramOutput {
    /// The last line of standard error, or of standard output if standard error is empty.
    pub fn last_line(&self) -> Option<String> {
        last_line(&self.stderr).or_else(|| last_line(&self.stdout))
    }
}

/// Variables of this process's environment that programs get.
pub fn inherited_environment() -> impl Iterator<Item = (&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Runs a program. The program and all of its descendants are killed when the caller stops waiting, so that
/// an abandoned run doesn't overlap with the next attempt.
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
                // A program needn't read its input.
                let _ = stdin.write_all(input).await;
            }
        };
        let conversation =
            async { tokio::join!(tell, listen(stdout, &mut said), listen(stderr, &mut complained)) };
        tokio::pin!(conversation);
        tokio::select! {
            // A program that closes its output can still be running.
            _ = &mut conversation => child.wait().await,
            status = child.wait() => {
                let _ = tokio::time::timeout(AFTER_THE_END, conversation).await;
                status
            }
        }
    };
    Ok(ProgramOutput { status: status?, stdout: said, stderr: complained })
}

/// Reads to the end of the stream, and keeps the end of the data.
async fn listen(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut chunk = vec![0; 8192];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        keep_last(kept, &chunk[..length]);
    }
}

/// Appends a chunk, and drops the beginning if the data gets too long.
pub fn keep_last(kept: &mut Vec<u8>, chunk: &[u8]) {
    kept.extend_from_slice(chunk);
    if kept.len() > 2 * KEPT_BYTES {
        kept.drain(..kept.len() - KEPT_BYTES);
    }
}

/// The last line that isn't blank, without control characters and limited to 300 characters.
pub fn last_line(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(LINE_CHARS).collect())
}

/// Reason why a program can't be started; `None` if it can. Programs are resolved as when they are started: a
/// name without a slash in `PATH`, a relative path from the working directory.
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

/// `None` if the file doesn't exist.
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
