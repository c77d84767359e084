//! Who PostgreSQL's programs run as: a user without rights, where this is root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// PostgreSQL refuses to run as root. This user has no rights of its own.
pub(crate) const NOBODY: u32 = 65_534;

/// Whether this is root, who owns the root directory and every process's own entry.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

pub(crate) fn give_away(path: &Path) -> io::Result<()> {
    if is_root() { chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

pub(crate) fn unprivileged(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// What a command printed, or what it complained of.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    // The output is read to its end, which comes when nobody has the stream any more: not a server's.
    let output = unprivileged(command).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
