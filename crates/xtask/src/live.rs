//! Servers for comparisons: a master daemon and a remote API that answer from files, the same to everybody.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};

use crate::arguments::Arguments;

/// The name of a daemon's socket in its directory.
pub const SOCKET: &str = "socket";
/// What ends a message.
const END: u8 = 3;

/// A file that shows that a directory is a daemon's.
pub const MARK: &str = "cluster.luxi";

/// A server that ends with its owner.
#[derive(Debug)]
struct Running<A> {
    address: A,
    wake: fn(&A),
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<A> Drop for Running<A> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // It waits for a connection, and now gets one.
        (self.wake)(&self.address);
        if let Some(thread) = self.thread.take() {
            // A server that failed shows as a difference.
            let _ = thread.join();
        }
    }
}

/// A master daemon that answers from `*.luxi` files in its directory, on a socket there.
#[derive(Debug)]
pub struct Daemon {
    _running: Running<PathBuf>,
}

impl Daemon {
    /// Starts one.
    pub fn start(directory: &Path) -> Result<Self> {
        let address = directory.join(SOCKET);
        let listener = UnixListener::bind(&address)
            .with_context(|| format!("cannot listen on {}", address.display()))?;
        let over = Arc::new(AtomicBool::new(false));
        let (ends, directory) = (over.clone(), directory.to_owned());
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away early ends its own connection only.
                let _ = stream.and_then(|stream| converse(&stream, &directory));
            }
        });
        let wake = |address: &PathBuf| drop(UnixStream::connect(address));
        Ok(Self { _running: Running { address, wake, over, thread: Some(thread) } })
    }
}

/// Answers the messages of one connection.
fn converse(stream: &UnixStream, directory: &Path) -> io::Result<()> {
    let mut messages = BufReader::new(stream);
    loop {
        let mut message = Vec::new();
        if messages.read_until(END, &mut message)? == 0 {
            return Ok(());
        }
        message.pop();
        let message: serde_json::Value = serde_json::from_slice(&message)?;
        let subject = message["args"][0].as_str().unwrap_or("cluster");
        let answer = match fs::read_to_string(directory.join(format!("{subject}.luxi"))) {
            Ok(result) => format!("{{\"success\": true, \"result\": {result}}}"),
            Err(_) => {
                r#"{"success": false, "result": ["OpPrereqError", ["unknown", "wrong_input"]]}"#.to_owned()
            }
        };
        let mut writer = stream;
        writer.write_all(answer.as_bytes())?;
        writer.write_all(&[END])?;
    }
}

/// A remote API that answers from `*.json` files in a directory, without encryption.
#[derive(Debug)]
pub struct Api {
    running: Running<SocketAddr>,
}

impl Api {
    /// Starts one.
    pub fn start(directory: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr().context("cannot listen")?;
        let over = Arc::new(AtomicBool::new(false));
        let (ends, directory) = (over.clone(), directory.to_owned());
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let _ = stream.and_then(|stream| serve(stream, &directory));
            }
        });
        let wake = |address: &SocketAddr| drop(TcpStream::connect(address));
        Ok(Self { running: Running { address, wake, over, thread: Some(thread) } })
    }

    /// Its address, as for `-m`.
    pub fn url(&self) -> String {
        format!("http://{}", self.running.address)
    }
}

/// Answers one request, as Ganeti does: the connection ends with the answer.
fn serve(mut stream: TcpStream, directory: &Path) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split_whitespace().nth(1).unwrap_or_default();
    let name = path.trim_start_matches("/2/").split('?').next().unwrap_or_default();
    let (status, body) = match fs::read(directory.join(format!("{name}.json"))) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

/// `cargo xtask serve`: such servers for a person to try programs on.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let directory = PathBuf::from(arguments.text("--dir")?.unwrap_or_else(|| ".".to_owned()));
    arguments.finish()?;
    let _daemon = Daemon::start(&directory)?;
    let api = Api::start(&directory)?;
    println!("-L{}\n-m {}\nuntil standard input ends", directory.join(SOCKET).display(), api.url());
    io::stdin().read_to_end(&mut Vec::new()).context("cannot wait")?;
    fs::remove_file(directory.join(SOCKET)).context("cannot remove the socket")
}
