//! SIGHUP to the real process: files that it reads again, and settings that stay.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::service::{database, hashed};
use crate::shell::{command, fresh};

/// A running service and its log.
pub struct Logged {
    pub child: Child,
    pub url: String,
    log: Receiver<Value>,
    /// Entries that were read so far.
    read: Vec<Value>,
}

impl Logged {
    pub fn start(more: &[&str]) -> Self {
        let database = database();
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--database", &database, "--log-format", "json"];
        let mut child =
            command().args(fixed).args(more).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let entry = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(entry).is_err() {
                    return;
                }
            }
        });
        let mut service = Self { child, url: String::new(), log: receiver, read: Vec::new() };
        let url = service.until("serving leases")["url"].as_str().expect("an address").to_owned();
        service.url = url;
        service
    }

    /// Reads the log up to the entry with this message.
    pub fn until(&mut self, message: &str) -> Value {
        loop {
            let entry = self.log.recv_timeout(Duration::from_mins(2));
            let entry = entry.unwrap_or_else(|_| panic!("no {message:?} in {:#?}", self.read));
            self.read.push(entry.clone());
            if entry["message"] == message {
                return entry;
            }
        }
    }

    fn hang_up(&self) {
        self.signal("-HUP");
    }

    pub fn signal(&self, signal: &str) {
        let told = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(told.expect("there is a kill").success());
    }

    /// HTTP status of a request with this token.
    fn status(&self, token: &str) -> u16 {
        let ran = crate::shell::run(
            command().env("ALLOT_URL", &self.url).env("ALLOT_TOKEN", token).args(["lease", "list"]),
        );
        match ran.status {
            0 => 200,
            _ if ran.err.contains("rejects") => 401,
            _ => panic!("{}", ran.err),
        }
    }

    /// The log so far, as text.
    fn text(&mut self) -> String {
        self.read.extend(self.log.try_iter());
        self.read.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
}

fn tokens(tokens: &[&str]) -> String {
    let entry = |token: &&str| {
        let sha256 = hashed("token", token);
        format!(
            "[[tokens]]\nsha256 = \"{sha256}\"\nuser = \"{token}-user\"\nproject = \"p\"\nroles = [\"member\"]\n"
        )
    };
    tokens.iter().map(entry).collect()
}

#[test]
fn a_signal_reads_tokens_again_all_or_nothing_and_never_ends_the_service() {
    let path = fresh("tokens.toml");
    write(&path, &tokens(&["first", "second"]));
    let mut service = Logged::start(&["--auth", &format!("tokens:{}", path.display())]);
    assert_eq!((service.status("first"), service.status("second"), service.status("third")), (200, 200, 401));
    write(&path, &tokens(&["second", "third"]));
    service.hang_up();
    let said = service.until("access reloaded");
    assert_eq!(
        (&said["tokens_added"], &said["tokens_removed"], &said["tokens_changed"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!((service.status("first"), service.status("second"), service.status("third")), (401, 200, 200));
    write(&path, "[[tokens]]\nsha256 = \"hunter2\"\n");
    service.hang_up();
    let said = service.until("reload failed, nothing changed");
    let error = said["error"].as_str().expect("a reason");
    assert!(error.starts_with(&format!("{}, line 1: ", path.display())), "{error}");
    assert_eq!((service.status("second"), service.status("third")), (200, 200));
    for _ in 0..5 {
        service.hang_up();
        service.until("reload failed, nothing changed");
    }
    assert!(!service.text().contains("hunter2"));
}

#[test]
fn a_signal_where_there_is_nothing_to_reload_leaves_the_service_running() {
    let mut service = Logged::start(&[]);
    for _ in 0..3 {
        service.hang_up();
        service.until("access reloaded");
    }
    assert_eq!(service.status(""), 200);
}

#[test]
fn settings_that_need_a_restart_and_secrets_that_others_read_are_named() {
    let (path, settings) = (fresh("tokens.toml"), fresh("allot.toml"));
    write(&path, &tokens(&["first"]));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    write(&settings, "[limits]\npage = 10\n");
    let auth = format!("tokens:{}", path.display());
    let mut service = Logged::start(&["--auth", &auth, "--config", &settings.display().to_string()]);
    let open: Vec<Value> =
        service.read.iter().filter(|entry| entry["message"] == "secrets open to others").cloned().collect();
    assert_eq!(open.len(), 1);
    assert_eq!((&open[0]["mode"], open[0]["path"].as_str()), (&"0644".into(), path.to_str()));
    write(&settings, "[limits]\npage = 20\n[log]\nlevel = \"debug\"\n");
    service.hang_up();
    let said = service.until("settings need a restart");
    assert_eq!(said["settings"], "limits.page, log.level");
    service.until("secrets open to others");
    write(&settings, "[limits]\npage = no\n");
    service.hang_up();
    let said = service.until("reload failed, nothing changed");
    assert!(said["error"].as_str().expect("a reason").contains("line 2"), "{said}");
    assert_eq!(service.status("first"), 200);
}

#[test]
fn a_changed_file_of_hooks_needs_a_restart() {
    let rack = fresh("rack");
    fs::create_dir(&rack).expect("a directory");
    let hooks = |limit: u32| {
        let state = rack.join("state.json");
        format!(
            "state_file = {state:?}\nhosts = []\n[hooks.on_hold]\nexec = [\"true\"]\ntime_limit_seconds = {limit}\n"
        )
    };
    let path = rack.join("hooks.toml");
    write(&path, &hooks(10));
    let mut service = Logged::start(&["--fleet", &format!("hooks:{}", path.display())]);
    service.hang_up();
    service.until("access reloaded");
    write(&path, &hooks(20));
    service.hang_up();
    assert_eq!(service.until("hooks need a restart")["path"].as_str(), path.to_str());
    let text = service.text();
    assert_eq!(text.matches("hooks need a restart").count(), 1, "{text}");
}
