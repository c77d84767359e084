//! A small HTTP server that imitates an external service, such as Keystone or a webhook listener.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;

#[derive(Debug, Default)]
pub struct Request {
    /// Request line: method, path and version.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(other, _)| other == name);
        header.map_or("", |(_, value)| value)
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Response {
    pub fn new(status: u16, body: &impl ToString) -> Self {
        Self { status, headers: String::new(), body: body.to_string() }
    }
}

/// Starts a server that runs until the process exits, and returns its address. If `respond` returns `None`, the
/// connection is closed without a response.
pub fn serve(respond: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let respond = Arc::new(respond);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let respond = Arc::clone(&respond);
            // Errors of aborted connections are ignored.
            thread::spawn(move || _ = converse(&stream, &*respond));
        }
    });
    Ok(address)
}

fn converse(stream: &TcpStream, respond: &dyn Fn(&Request) -> Option<Response>) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut request = Request::default();
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        line.trim_end_matches(|c: char| c.is_whitespace()).clone_into(&mut request.line);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            request.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = request.header("content-length").parse().unwrap_or_default();
        reader.by_ref().take(length).read_to_end(&mut request.body)?;
        let Some(Response { status, headers, body }) = respond(&request) else { return Ok(()) };
        write!(
            writer,
            "HTTP/1.1 {status} .\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        )?;
    }
}
