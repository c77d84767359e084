//! Processor time of processes. On a machine that does other work too, elapsed time says little.

use std::fs;

use anyhow::{Context, Result};

/// Linux reports process times in hundredths of a second, regardless of its clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a process has used, in seconds.
pub fn of_process(process: u32) -> Result<f64> {
    Ok(Stat::read(&process.to_string()).context("no /proc")?.seconds)
}

/// Processor time of all processes of a session, given its leader. A process that ended counts once its
/// parent has waited for it, as the parent's time.
pub fn of_session(leader: u32) -> Result<f64> {
    let entries = fs::read_dir("/proc").context("no /proc")?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let all = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let of_session = all.filter_map(|name| Stat::read(&name)).filter(|stat| stat.session == leader);
    Ok(of_session.map(|stat| stat.seconds).sum())
}

/// Fields of `/proc/PID/stat`; see `proc_pid_stat(5)`.
struct Stat {
    session: u32,
    seconds: f64,
}

impl Stat {
    /// `None` if the process no longer exists.
    fn read(process: &str) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The program's name, in parentheses, can contain any character.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |position: usize| fields.get(position).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12))?;
        Some(Self { session: fields.get(3)?.parse().ok()?, seconds: (user + system) / TICKS_PER_SECOND })
    }
}
