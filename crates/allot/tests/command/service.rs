//! A leasing service as a process of its own, and commands that talk to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::shell::{Ran, command, fresh, run};

/// A service that runs until this value goes away.
pub struct Running {
    pub child: Child,
    pub url: String,
}

impl Running {
    /// Starts it on a free port and waits until it serves. Its log is JSON, so that the address can be read.
    pub fn start(database: &str, more: &[&str]) -> Self {
        Self::of(serving(database).args(more))
    }

    /// Starts a service with its database in memory and its temporary files in `directory`.
    pub fn start_with_temporary(directory: &Path, more: &[&str]) -> Self {
        Self::of(serving("memory").args(more).env("TMPDIR", directory))
    }

    /// The same in a directory, with words as a page has them for a shell: `serve --name one`.
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
                // The rest has to be read, or the service would wait for it to be.
                std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                return service;
            }
            lines.push_str(&line);
        }
    }

    /// Tells it to stop, and waits until it has.
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

    /// Runs a command that talks to it.
    pub fn allot(&self, words: &str) -> Ran {
        // Single quotation marks keep words together, as in a shell.
        let words = words.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        run(command().env("ALLOT_URL", &self.url).env("TZ", "UTC").args(words))
    }

    /// What it prints with its notes, if it succeeds.
    pub fn says(&self, words: &str) -> String {
        let ran = self.allot(words);
        assert_eq!(ran.status, 0, "{words}: {}{}", ran.out, ran.err);
        ran.out + &ran.err
    }

    /// The JSON that it prints.
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

/// A database file of its own.
pub fn database() -> String {
    format!("sqlite://{}", fresh("allot.db").display())
}

/// What `allot hash` makes of a secret.
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
