//! Private namespaces for processes, network and `/run`. The kernel removes them and everything in them when
//! the lab ends, even if it is killed. So nothing has to be cleaned up, and the lab can't affect the rest of
//! the machine.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The sandbox's first process. It stays alive because it must reap orphaned processes.
const INIT: &str = r#"
mount -t tmpfs -o size=75% tmpfs /run && mkdir /run/lab && ip link set lo up || exit
"$@"
exit $?
"#;

/// The lab's working directory, in memory.
pub fn directory() -> PathBuf {
    PathBuf::from("/run/lab")
}

/// Runs this program in the sandbox.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let mut command = Command::new("setpriv");
    // If this process ends, the kernel kills `unshare`, then the sandbox's first process, and with it the
    // whole sandbox.
    command.args(["--pdeathsig", "KILL", "unshare", "--kill-child", "--fork", "--pid", "--mount-proc"]);
    command.args(["--mount", "--net", "--ipc", "--uts", "sh", "-c", INIT, "sh"]).arg(program).args(arguments);
    // A separate process group, so that Ctrl-C reaches the sandbox only through the end of this process.
    let status = command.process_group(0).stdin(Stdio::null()).status();
    let status = status.context("cannot run setpriv and unshare (Debian package util-linux)")?;
    if !status.success() {
        bail!("the lab ended with {status}");
    }
    Ok(())
}
