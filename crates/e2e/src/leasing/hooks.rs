//! Hosts that are handed over by a script, which logs each call to one file. Several services can share the
//! hosts. The log shows the history of each host without asking a service.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chores::run::write;
use serde_json::json;

use super::fleet::NETWORK;

/// Logs its start, waits, and logs its end. It continues if the service that called it is killed.
///
/// An entry is one short line in a single append, so entries of several services don't interleave.
const SCRIPT: &str = r#"
note() {
    printf '%s %s %s %s %s %s %s\n' \
        "$(date +%s%3N)" "$1" "$$" "${SERVICE_NAME:--}" "$ALLOT_MOMENT" "${ALLOT_HOST:--}" "${ALLOT_LEASE:--}" >>"$2/hooks.log"
}
note begins "$1"
case $ALLOT_MOMENT in
    on_hold | on_release) sleep "$(cat "$1/takes")" ;;
esac
note ends "$1"
"#;

/// Moments for which the script is configured.
const MOMENTS: [&str; 8] = [
    "on_fence",
    "on_unfence",
    "on_hold",
    "on_release",
    "on_grant",
    "on_withdraw",
    "on_assign",
    "on_unassign",
];

/// A fleet of hosts with this script. It is valid as long as its directory exists.
#[derive(Clone, Debug)]
pub struct Hooks {
    directory: PathBuf,
}

/// Maximum wait for running calls to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// Entries of the log, and the state of calls without an end.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// All entries, in the order they were written.
    pub notes: Vec<Note>,
    /// First entries of calls that are still running.
    pub running: Vec<Note>,
    /// First entries of calls that are gone without logging an end. The service kills a call when its claim
    /// to the step expires.
    pub broken_off: Vec<Note>,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Milliseconds since 1970.
    pub at_millis: i64,
    /// Whether the call ends. Otherwise, it starts.
    pub ends: bool,
    /// Process id of the script, which identifies the call.
    pub call: u32,
    /// Name of the calling service.
    pub service: String,
    /// `on_hold`, `on_release`, ...
    pub moment: String,
    /// Host name; `-` for addresses.
    pub host: String,
    /// Lease identifier; `-` without a lease.
    pub lease: String,
}

impl Hooks {
    /// Creates a fleet of hosts numbered from 1, with all of its files in `directory`.
    pub fn new(directory: &Path, machines: usize) -> Result<Self> {
        let hooks = Self { directory: directory.to_owned() };
        write(&hooks.file("hook"), SCRIPT.as_bytes())?;
        write(&hooks.file("hooks.log"), b"")?;
        write(&hooks.config(), hooks.configuration(machines).as_bytes())?;
        hooks.take(Duration::ZERO)?;
        Ok(hooks)
    }

    /// Path of the file for `--fleet hooks:FILE`.
    pub fn config(&self) -> PathBuf {
        self.file("hooks.toml")
    }

    /// Sets how long handing over a host takes from now on, and how long taking it back takes.
    pub fn take(&self, time: Duration) -> Result<()> {
        // Replaced atomically: a script that read a partial file would not wait at all.
        write(&self.file("takes.new"), format!("{:.3}\n", time.as_secs_f64()).as_bytes())?;
        fs::rename(self.file("takes.new"), self.file("takes")).context("cannot say how long hooks take")
    }

    /// The log so far.
    pub fn log(&self) -> Result<Log> {
        let open = unended(&self.notes()?);
        let gone: Vec<Note> = open.into_iter().filter(|call| !self.runs(call)).collect();
        // Read again after looking for processes: a process that was gone by then has logged its end or never
        // will.
        let notes = self.notes()?;
        let (broken_off, running) = unended(&notes).into_iter().partition(|call| gone.contains(call));
        Ok(Log { notes, running, broken_off })
    }

    /// Waits until no call is running, and returns the log.
    pub fn log_at_rest(&self) -> Result<Log> {
        let started = Instant::now();
        loop {
            let log = self.log()?;
            let Some(call) = log.running.first() else { return Ok(log) };
            ensure!(started.elapsed() < PATIENCE, "a call does not end: {call:?}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether the call's process exists. Its process id alone can have been reused.
    fn runs(&self, call: &Note) -> bool {
        let words = fs::read(format!("/proc/{}/cmdline", call.call)).unwrap_or_default();
        let hook = self.file("hook");
        words.split(|byte| *byte == 0).any(|word| word == hook.as_os_str().as_encoded_bytes())
    }

    fn notes(&self) -> Result<Vec<Note>> {
        let text = fs::read_to_string(self.file("hooks.log")).context("no log of hooks")?;
        // The last line can be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| Note::read(line).with_context(|| format!("no note: '{line}'"))).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn configuration(&self, machines: usize) -> String {
        // TOML strings and arrays of strings have the same syntax as in JSON.
        let mut parts = vec![format!(
            "state_file = {}\npass_environment = [\"SERVICE_NAME\"]",
            json!(self.file("hooks.state"))
        )];
        parts.extend((1..=machines).map(|id| {
            let name = machine(id);
            format!("[[hosts]]\nid = {id}\nname = {name:?}\nvcpus = 16\nmemory_mib = 65536\ndisk_gib = 1000")
        }));
        parts.push(format!(
            "[[networks]]\nid = \"{NETWORK}\"\nsubnets = [{{ id = \"subnet\", cidr = \"203.0.113.0/24\", \
             gateway = \"203.0.113.1\", allocation_pools = [[\"203.0.113.10\", \"203.0.113.99\"]] }}]"
        ));
        let exec = json!(["sh", self.file("hook"), self.directory]);
        parts.extend(MOMENTS.iter().map(|moment| format!("[hooks.{moment}]\nexec = {exec}")));
        parts.join("\n\n") + "\n"
    }
}

/// First entries of calls that haven't logged their end.
fn unended(notes: &[Note]) -> Vec<Note> {
    let mut open: Vec<Note> = Vec::new();
    for note in notes {
        if !note.ends {
            open.push(note.clone());
        } else if let Some(call) = open.iter().position(|call| note.is_of(call)) {
            open.remove(call);
        }
    }
    open
}

/// Name of the host with that number.
pub fn machine(id: usize) -> String {
    format!("r1-h{id:02}")
}

impl Note {
    /// Whether both entries belong to the same call.
    pub fn is_of(&self, call: &Self) -> bool {
        let of = |note: &Self| (note.call, note.service.clone(), note.host.clone(), note.moment.clone());
        of(self) == of(call)
    }

    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, step, call, service, moment, host, lease] = words[..] else { return None };
        Some(Self {
            at_millis: at.parse().ok()?,
            ends: match step {
                "begins" => false,
                "ends" => true,
                _ => return None,
            },
            call: call.parse().ok()?,
            service: service.to_owned(),
            moment: moment.to_owned(),
            host: host.to_owned(),
            lease: lease.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn what_the_script_notes_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let hooks = Hooks::new(directory.path(), 2).unwrap();
        let mut script = std::process::Command::new("sh");
        script.arg(hooks.file("hook")).arg(directory.path()).env("SERVICE_NAME", "one");
        script.env("ALLOT_MOMENT", "on_hold").env("ALLOT_HOST", machine(2)).env("ALLOT_LEASE", "a-lease");
        assert!(script.status().unwrap().success());
        let log = hooks.log().unwrap();
        let [begins, ends] = &log.notes[..] else { panic!("{log:?}") };
        assert!(log.running.is_empty() && log.broken_off.is_empty());
        assert_eq!((begins.ends, ends.ends), (false, true));
        assert_eq!(
            (begins.moment.as_str(), begins.host.as_str(), begins.lease.as_str()),
            ("on_hold", "r1-h02", "a-lease")
        );
        assert_eq!((begins.call, begins.service.as_str()), (ends.call, "one"));
        assert!(begins.at_millis <= ends.at_millis);
    }

    #[test]
    fn a_call_without_an_end_runs_or_was_broken_off() {
        let directory = tempfile::tempdir().unwrap();
        let hooks = Hooks::new(directory.path(), 1).unwrap();
        hooks.take(Duration::from_mins(10)).unwrap();
        let mut script = std::process::Command::new("sh");
        script.arg(hooks.file("hook")).arg(directory.path()).process_group(0);
        script.env("ALLOT_MOMENT", "on_release").env("ALLOT_HOST", machine(1));
        let mut script = script.spawn().unwrap();
        let begun = loop {
            let log = hooks.log().unwrap();
            assert!(log.broken_off.is_empty());
            if let [call] = &log.running[..] {
                break call.clone();
            }
        };
        let group = format!("-{}", script.id());
        assert!(std::process::Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
        script.wait().unwrap();
        let log = hooks.log_at_rest().unwrap();
        assert_eq!((log.notes, log.broken_off), (vec![begun.clone()], vec![begun]));
    }

    #[test]
    fn half_a_line_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let hooks = Hooks::new(directory.path(), 1).unwrap();
        fs::write(hooks.file("hooks.log"), "1 begins 2 one on_hold h1 A\n3 ends 2 o").unwrap();
        assert_eq!(hooks.log().unwrap().notes.len(), 1);
    }
}
