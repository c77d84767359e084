//! Runs PostgreSQL's programs as a user without privileges if this process is root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// User id without privileges, because PostgreSQL refuses to run as root.
pub(crate) const NOBODY: u32 = 65_534;

/// Whether this process runs as root: a process owns its own entry in `/proc`.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

pub(crate) fn give_away(path: &Path) -> io::Result<()> {
    if is_root() { chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

pub(crate) fn unprivileged(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// Runs a command, and returns its standard output, or its standard error if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    // Waits until all processes have closed the output, so don't use this to start a server that inherits it.
    let output = unprivileged(command).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
