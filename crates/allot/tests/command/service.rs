//! A leasing service in its own process, and commands that talk to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::shell::{Ran, command, fresh, run};

/// A service that runs until this value is dropped.
pub struct Running {
    pub child: Child,
    pub url: String,
}

impl Running {
    /// Starts a service on a free port and waits until it serves. Its log is JSON, so that the address can be
    /// read.
    pub fn start(database: &str, more: &[&str]) -> Self {
        Self::of(serving(database).args(more))
    }

    /// Starts a service with its database in memory and its temporary files in `directory`.
    pub fn start_with_temporary(directory: &Path, more: &[&str]) -> Self {
        Self::of(serving("memory").args(more).env("TMPDIR", directory))
    }

    /// Starts a service in a directory. `words` are as a page writes them for a shell: `serve --name one`.
    pub fn start_in(directory: &Path, words: &str) -> Self {
        let line = format!("exec \"$0\" {words} --listen 127.0.0.1:0 --log-format json");
        let allot = command();
        let mut serve = Command::new("sh");
        serve.arg("-c").arg(line).arg(allot.get_program()).current_dir(directory);
        for (name, value) in allot.get_envs() {
            match value {
                Some(value) => serve.env(name, value),
                None => serve.env_remove(name),
            };
        }
        Self::of(&mut serve)
    }

    fn of(serve: &mut Command) -> Self {
        let child = serve.stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut service = Self { child, url: String::new() };
        let mut log = BufReader::new(service.child.stderr.take().expect("a pipe"));
        let mut lines = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).expect("a log"), 0, "it does not serve:\n{lines}");
            let entry: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(url) = entry["url"].as_str() {
                url.clone_into(&mut service.url);
                // Reads the rest, so that the pipe never fills up.
                std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                return service;
            }
            lines.push_str(&line);
        }
    }

    /// Tells the service to stop, and waits for it. Returns its exit status.
    pub fn stop(mut self) -> i32 {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(told.expect("there is a kill").success());
        self.child.wait().expect("a child").code().expect("no signal")
    }

    /// Sends SIGKILL, so the service can't clean up.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
    }

    /// Runs a command against this service.
    pub fn allot(&self, words: &str) -> Ran {
        // Single quotation marks keep words together, as in a shell.
        let words = words.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        run(command().env("ALLOT_URL", &self.url).env("TZ", "UTC").args(words))
    }

    /// Output and notes of a command that must succeed.
    pub fn says(&self, words: &str) -> String {
        let ran = self.allot(words);
        assert_eq!(ran.status, 0, "{words}: {}{}", ran.out, ran.err);
        ran.out + &ran.err
    }

    /// JSON output of a command that must succeed.
    pub fn json(&self, words: &str) -> Value {
        let ran = self.allot(&format!("{words} -o json"));
        assert_eq!(ran.status, 0, "{words}: {}{}", ran.out, ran.err);
        serde_json::from_str(&ran.out).expect("JSON")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serving(database: &str) -> Command {
    let mut command = command();
    let fixed = ["serve", "--listen", "127.0.0.1:0", "--database", database, "--log-format", "json"];
    command.args(fixed);
    command
}

/// URL of a new database file.
pub fn database() -> String {
    format!("sqlite://{}", fresh("allot.db").display())
}

/// Hash of a secret, from `allot hash`.
pub fn hashed(kind: &str, secret: &str) -> String {
    use std::io::Write;
    let mut child = command()
        .args(["hash", kind])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(secret.as_bytes()).expect("it reads");
    String::from_utf8(child.wait_with_output().expect("a child").stdout).expect("text").trim().to_owned()
}
