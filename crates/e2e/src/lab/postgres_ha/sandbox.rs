//! Name spaces of the lab's own, which the kernel takes away with everything in them when the lab ends, however it
//! ends: processes, network, `/run`. So nothing has to be cleaned up, and nothing of the machine's can be touched.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The first process in there. It stays, because somebody has to wait for processes whose parents have ended.
const INIT: &str = r#"
mount -t tmpfs -o size=75% tmpfs /run && mkdir /run/lab && ip link set lo up || exit
"$@"
exit $?
"#;

/// Where the lab keeps what it needs while it runs: in memory.
pub fn directory() -> PathBuf {
    PathBuf::from("/run/lab")
}

/// Runs this program there, with those arguments.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let mut command = Command::new("setpriv");
    // When this process ends, `unshare` is killed, and with it the first process in there, and with that all others.
    command.args(["--pdeathsig", "KILL", "unshare", "--kill-child", "--fork", "--pid", "--mount-proc"]);
    command.args(["--mount", "--net", "--ipc", "--uts", "sh", "-c", INIT, "sh"]).arg(program).args(arguments);
    // Nor does the keyboard reach them on another way than by the end of this process.
    let status = command.process_group(0).stdin(Stdio::null()).status();
    let status = status.context("cannot run setpriv and unshare (Debian package util-linux)")?;
    if !status.success() {
        bail!("the lab ended with {status}");
    }
    Ok(())
}
