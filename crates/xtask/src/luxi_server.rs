//! A master daemon that only pretends: serves JSON messages over a Unix socket, and notes what it is asked.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use serde_json::Value;

/// What ends a message.
const END: u8 = 3;

/// What the daemon does with a request.
pub enum Reply {
    /// Answers: the text of `result`.
    Result(String),
    /// Refuses: the text of `result`.
    Refusal(String),
    /// Answers something else.
    Raw(String),
    /// Closes the connection.
    CutOff,
}

/// Decides on a request: its method and arguments.
pub type Respond = Box<dyn FnMut(&str, &Value) -> Reply + Send>;

/// A running server; it ends when this is dropped.
pub struct Server {
    directory: tempfile::TempDir,
    requests: Arc<Mutex<Vec<String>>>,
    ending: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a socket of its own.
    pub fn start(respond: Respond) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let listener = UnixListener::bind(directory.path().join("socket")).context("cannot listen")?;
        let (requests, ending) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let respond = Arc::new(Mutex::new(respond));
        let listening = thread::spawn({
            let (requests, ending) = (Arc::clone(&requests), Arc::clone(&ending));
            move || {
                for stream in listener.incoming() {
                    if ending.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { return };
                    let (requests, respond) = (Arc::clone(&requests), Arc::clone(&respond));
                    // Clients keep a connection open while they open the next.
                    thread::spawn(move || serve(stream, &requests, &respond));
                }
            }
        });
        Ok(Self { directory, requests, ending, listening: Some(listening) })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// The requests so far, as they were written.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().map(|requests| requests.clone()).unwrap_or_default()
    }

    /// How often a method was called so far.
    pub fn calls(&self, method: &str) -> usize {
        let start = format!("{{\"method\":\"{method}\"");
        self.requests().iter().filter(|request| request.starts_with(&start)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // Connecting wakes the listener, which then ends.
        let woken = UnixStream::connect(self.socket()).is_ok();
        if let Some(listening) = self.listening.take().filter(|_| woken) {
            let _ = listening.join();
        }
    }
}

fn serve(mut stream: UnixStream, requests: &Mutex<Vec<String>>, respond: &Mutex<Respond>) {
    let mut pending = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        while let Some(at) = pending.iter().position(|byte| *byte == END) {
            let rest = pending.split_off(at + 1);
            pending.pop();
            let request = String::from_utf8_lossy(&std::mem::replace(&mut pending, rest)).into_owned();
            let reply = reply(&request, respond);
            if let Ok(mut requests) = requests.lock() {
                requests.push(request);
            }
            let message = match reply {
                Reply::Result(result) => format!("{{\"success\":true,\"result\":{result}}}"),
                Reply::Refusal(result) => format!("{{\"success\":false,\"result\":{result}}}"),
                Reply::Raw(text) => text,
                Reply::CutOff => return,
            };
            if stream.write_all(message.as_bytes()).and(stream.write_all(&[END])).is_err() {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => pending.extend_from_slice(&buffer[..count]),
        }
    }
}

fn reply(request: &str, respond: &Mutex<Respond>) -> Reply {
    let parsed: Option<Value> = serde_json::from_str(request).ok();
    let method = parsed.as_ref().and_then(|value| value["method"].as_str());
    match (method, &parsed, respond.lock()) {
        (Some(method), Some(value), Ok(mut respond)) => respond(method, &value["args"]),
        _ => Reply::Refusal("\"not a request\"".to_owned()),
    }
}
