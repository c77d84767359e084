//! A log that can't be written loses lines, but affects nothing else.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::service::{Running, database};
use crate::shell::command;

/// Far longer than any step here takes.
const LIMIT: Duration = Duration::from_mins(1);

fn readiness(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Runs a service with this standard error, starts a lease, and stops the service.
fn serves_with(stderr: impl Into<Stdio>) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let (address, database) = (free.to_string(), database());
    let mut serve = command();
    serve.args(["serve", "--listen", &address, "--database", &database, "--log-level", "debug"]);
    serve.args(["--simulated-timing", "immediate"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = serve.stderr(stderr).spawn().expect("the binary runs");
    let service = Running { child, url: format!("http://{address}") };
    let begun = Instant::now();
    let ready = || readiness(&address).is_ok_and(|answer| answer.ends_with("\r\n\r\nready\n"));
    while !ready() {
        assert!(begun.elapsed() < LIMIT, "not ready: {:?}", readiness(&address));
        std::thread::sleep(Duration::from_millis(20));
    }
    service.says("host create r1-h01");
    assert!(service.says("lease create web --hosts 1 --for 1d --wait").contains("ACTIVE"));
    assert!(ready());
    assert_eq!(service.stop(), 0);
}

#[test]
fn a_reader_of_the_log_that_is_gone_stops_nothing() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    serves_with(writer);
}

#[test]
fn a_reader_of_the_log_that_hangs_stops_nothing() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut own = writer.try_clone().expect("the same pipe");
    // Fills the pipe, and ends when the reader is dropped.
    let filling = std::thread::spawn(move || while own.write_all(&[b'\n'; 4096]).is_ok() {});
    serves_with(writer);
    drop(reader);
    filling.join().expect("no panic");
}

#[test]
fn a_full_disk_below_the_log_stops_nothing() {
    serves_with(OpenOptions::new().write(true).open("/dev/full").expect("Linux has it"));
}

#[test]
fn an_error_at_the_start_ends_the_process_though_nobody_reads_it() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut own = writer.try_clone().expect("the same pipe");
    let filling = std::thread::spawn(move || while own.write_all(&[b'\n'; 4096]).is_ok() {});
    let mut serve: Command = command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--database", "sqlite:///nowhere/allot.db"]);
    let mut child = serve.stderr(writer).spawn().expect("the binary runs");
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(1));
    drop(reader);
    filling.join().expect("no panic");
}
