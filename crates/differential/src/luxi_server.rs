//! A simulated master daemon: serves JSON messages over a Unix socket and records all requests.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result};
use chores::listening::Listening;
use serde_json::Value;

/// Name of the socket in its directory.
pub const SOCKET: &str = "socket";
/// Byte that ends a message.
const END: u8 = 3;

/// Reaction of the daemon to a request.
pub enum Reply {
    /// Success, with the JSON text of `result`.
    Result(String),
    /// Refusal, with the JSON text of `result`.
    Refusal(String),
    /// Any other text.
    Raw(String),
    /// Closes the connection.
    CutOff,
}

/// Decides on a request from its method and arguments.
pub type Respond = Box<dyn FnMut(&str, &Value) -> Reply + Send>;

/// A running server. Dropping it ends the server.
pub struct Server {
    listening: Listening<PathBuf>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server on a socket in the directory.
    pub fn start(directory: &Path, respond: Respond) -> Result<Self> {
        let socket = directory.join(SOCKET);
        let listener =
            UnixListener::bind(&socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (noted, respond) = (Arc::clone(&requests), Arc::new(Mutex::new(respond)));
        let listening = Listening::start(
            socket,
            |socket| UnixStream::connect(socket).is_ok(),
            move || listener.accept().map(|(stream, _)| stream),
            move |stream| {
                let (noted, respond) = (Arc::clone(&noted), Arc::clone(&respond));
                // Clients keep a connection open while they open the next.
                thread::spawn(move || serve(stream, &noted, &respond));
            },
        );
        Ok(Self { listening, requests })
    }

    /// Path of the socket.
    pub fn socket(&self) -> &Path {
        self.listening.address()
    }

    /// Requests so far, verbatim.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().map(|requests| requests.clone()).unwrap_or_default()
    }

    /// Number of calls of a method so far.
    pub fn calls(&self, method: &str) -> usize {
        let start = format!("{{\"method\":\"{method}\"");
        self.requests().iter().filter(|request| request.starts_with(&start)).count()
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
