//! A listener of oslo.messaging's, as OpenStack's services are.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chores::python::Python;
use serde_json::Value;

use super::broker::USER;

/// How long something is waited for that comes by itself. A listener that has lost its broker tries again after up to
/// half a minute.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// What reads notifications.
const LISTEN: &str = include_str!("../../../leasing/listen.py");

/// A process that reads notifications.
pub struct Listener {
    child: Child,
    lines: Receiver<String>,
}

impl Listener {
    /// Reads what is published on `notifications` at the broker of that address.
    pub fn start(directory: &Path, address: &str) -> Result<Self> {
        let script = directory.join("listen.py");
        fs::write(&script, LISTEN)?;
        let mut command = Python::for_message_bus()?.program("python", directory);
        command.arg(&script).args([&format!("rabbit://{USER}@{address}//"), "notifications"]);
        command.stdout(Stdio::piped()).stderr(fs::File::create(directory.join("listener.log"))?);
        let mut child = command.spawn().context("cannot run the listener")?;
        let output = child.stdout.take().context("the listener has no output")?;
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// The next notification of that type; others are passed over.
    pub fn next_of(&self, event_type: &str) -> Result<Value> {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                bail!("the listener is not told of a {event_type}");
            };
            let told: Value = serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))?;
            if told["event_type"] == event_type {
                return Ok(told);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
