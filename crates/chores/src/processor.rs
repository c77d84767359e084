//! Processor time of processes: on a machine that does other work as well, times to wait say little.

use std::fs;

use anyhow::{Context, Result};

/// Linux says times of processes in hundredths of a second, whatever its clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time that a process has taken.
pub fn of_process(process: u32) -> Result<f64> {
    Ok(Stat::read(&process.to_string()).context("no /proc")?.seconds)
}

/// The same of all processes of a session, by the process that leads it. Those that have ended count once they were
/// waited for, and then as their parent's.
pub fn of_session(leader: u32) -> Result<f64> {
    let entries = fs::read_dir("/proc").context("no /proc")?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let all = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let of_session = all.filter_map(|name| Stat::read(&name)).filter(|stat| stat.session == leader);
    Ok(of_session.map(|stat| stat.seconds).sum())
}

/// What the kernel says of a process: `proc_pid_stat(5)`.
struct Stat {
    session: u32,
    seconds: f64,
}

impl Stat {
    /// None if there is no such process any more.
    fn read(process: &str) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The program's name, in parentheses, may have anything in it.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = |position: usize| fields.get(position).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12))?;
        Some(Self { session: fields.get(3)?.parse().ok()?, seconds: (user + system) / TICKS_PER_SECOND })
    }
}
