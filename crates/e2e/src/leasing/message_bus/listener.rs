//! A listener that uses oslo.messaging, as OpenStack's services do.

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

/// Maximum wait for a notification. A listener that lost its broker reconnects after up to half a minute.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Script that reads notifications.
const LISTEN: &str = include_str!("../../../leasing/listen.py");

/// A process that reads notifications. Dropping it kills the process.
pub struct Listener {
    child: Child,
    lines: Receiver<String>,
}

impl Listener {
    /// Reads notifications of the topic `notifications` from the broker at `address`.
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

    /// Waits for the next notification of that type, and skips notifications of different types.
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
        // Errors are ignored: the listener can have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
