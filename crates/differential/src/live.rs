//! Servers for comparisons: a master daemon and a remote API that answer from files, with the same answer
//! every time.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::listening::Listening;
use serde_json::Value;

use crate::luxi_server::{Reply, Server};

/// File that marks a directory as a daemon's.
pub const MARK: &str = "cluster.luxi";

/// Starts a master daemon on a socket in the directory, which answers from the `*.luxi` files there.
pub fn daemon(directory: &Path) -> Result<Server> {
    let files = directory.to_owned();
    let answer = move |_: &str, arguments: &Value| {
        let subject = arguments[0].as_str().unwrap_or("cluster");
        match fs::read_to_string(files.join(format!("{subject}.luxi"))) {
            Ok(result) => Reply::Result(result),
            Err(_) => Reply::Refusal(r#"["OpPrereqError", ["unknown", "wrong_input"]]"#.to_owned()),
        }
    };
    Server::start(directory, Box::new(answer))
}

/// A remote API that answers from `*.json` files in a directory, without encryption.
#[derive(Debug)]
pub struct Api {
    listening: Listening<SocketAddr>,
}

impl Api {
    /// Starts the server on a free port of the loopback interface.
    pub fn start(directory: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr().context("cannot listen")?;
        let directory = directory.to_owned();
        let listening = Listening::start(
            address,
            |address| TcpStream::connect(address).is_ok(),
            move || listener.accept().map(|(stream, _)| stream),
            move |stream| {
                // A client that disconnects early ends only its own connection.
                let _ = serve(stream, &directory);
            },
        );
        Ok(Self { listening })
    }

    /// The server's address, as for `-m`.
    pub fn url(&self) -> String {
        format!("http://{}", self.listening.address())
    }
}

/// Answers one request. As with Ganeti, the connection ends after the answer.
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

/// `cargo xtask serve`: runs both servers until standard input ends, for trying programs by hand.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let directory = PathBuf::from(arguments.text("--dir")?.unwrap_or_else(|| ".".to_owned()));
    arguments.finish()?;
    let daemon = daemon(&directory)?;
    let api = Api::start(&directory)?;
    println!("-L{}\n-m {}\nuntil standard input ends", daemon.socket().display(), api.url());
    io::stdin().read_to_end(&mut Vec::new()).context("cannot wait")?;
    fs::remove_file(daemon.socket()).context("cannot remove the socket")
}
