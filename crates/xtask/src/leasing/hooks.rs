//! Machines that change hands by a script, which notes in one log what was done to which machine: several services
//! can hand over the same ones, and what they did to them is known without asking them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::fleet::NETWORK;
use crate::run::write;

/// Notes that it begins, takes its time, and notes that it ends. Where a service is killed, what it called goes on.
///
/// A note is one short line, which is appended at once, so that those of several services do not mix.
const SCRIPT: &str = r#"
note() {
    printf '%s %s %s %s %s %s %s\n' \
        "$(date +%s%3N)" "$1" "$$" "${ALLOT_NAME:--}" "$ALLOT_MOMENT" "${ALLOT_HOST:--}" "${ALLOT_LEASE:--}" >>"$2/hooks.log"
}
note begins "$1"
case $ALLOT_MOMENT in
    on_hold | on_release) sleep "$(cat "$1/takes")" ;;
esac
note ends "$1"
"#;

/// Moments that the script is called at.
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

/// A fleet of such machines. It is there as long as its directory is.
#[derive(Clone, Debug)]
pub struct Hooks {
    directory: PathBuf,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When, in milliseconds since 1970.
    pub at_millis: i64,
    /// The call ends; else it begins.
    pub ends: bool,
    /// The number of the script's process, which is that of the call.
    pub call: u32,
    /// The service that calls.
    pub service: String,
    /// `on_hold`, `on_release`, ...
    pub moment: String,
    /// The machine, by name; `-` for addresses.
    pub host: String,
    /// The lease; `-` if it is for none.
    pub lease: String,
}

impl Hooks {
    /// So many machines, numbered from 1. Everything about them is in that directory.
    pub fn new(directory: &Path, machines: usize) -> Result<Self> {
        let hooks = Self { directory: directory.to_owned() };
        write(&hooks.file("hook"), SCRIPT.as_bytes())?;
        write(&hooks.file("hooks.log"), b"")?;
        write(&hooks.config(), hooks.configuration(machines).as_bytes())?;
        hooks.take(Duration::ZERO)?;
        Ok(hooks)
    }

    /// The file that `--fleet hooks:FILE` names.
    pub fn config(&self) -> PathBuf {
        self.file("hooks.toml")
    }

    /// From now on it takes that long to hand a machine over, and as long to take it back.
    pub fn take(&self, time: Duration) -> Result<()> {
        // Exchanged at once: who reads half of it would take no time.
        write(&self.file("takes.new"), format!("{:.3}\n", time.as_secs_f64()).as_bytes())?;
        fs::rename(self.file("takes.new"), self.file("takes")).context("cannot say how long hooks take")
    }

    /// What was done, in the order in which it was noted.
    pub fn log(&self) -> Result<Vec<Note>> {
        let text = fs::read_to_string(self.file("hooks.log")).context("no log of hooks")?;
        text.lines().map(|line| Note::read(line).with_context(|| format!("no note: '{line}'"))).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn configuration(&self, machines: usize) -> String {
        // Texts and lists of them are written as in JSON.
        let mut parts = vec![format!("state_file = {}", json!(self.file("hooks.state")))];
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

/// The name of the machine of that number.
pub fn machine(id: usize) -> String {
    format!("r1-h{id:02}")
}

impl Note {
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
    use super::*;

    #[test]
    fn what_the_script_notes_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let hooks = Hooks::new(directory.path(), 2).unwrap();
        let mut script = std::process::Command::new("sh");
        script.arg(hooks.file("hook")).arg(directory.path()).env("ALLOT_NAME", "one");
        script.env("ALLOT_MOMENT", "on_hold").env("ALLOT_HOST", machine(2)).env("ALLOT_LEASE", "a-lease");
        assert!(script.status().unwrap().success());
        let log = hooks.log().unwrap();
        let [begins, ends] = &log[..] else { panic!("{log:?}") };
        assert_eq!((begins.ends, ends.ends), (false, true));
        assert_eq!(
            (begins.moment.as_str(), begins.host.as_str(), begins.lease.as_str()),
            ("on_hold", "r1-h02", "a-lease")
        );
        assert_eq!((begins.call, begins.service.as_str()), (ends.call, "one"));
        assert!(begins.at_millis <= ends.at_millis);
    }
}
