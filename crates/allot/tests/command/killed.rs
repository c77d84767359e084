//! What is left on the machine when a service is killed.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::service::Running;
use crate::shell::fresh;

/// A remote API that never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let setting = format!("lab=rapi:{}", listener.local_addr().expect("an address"));
    (listener, setting)
}

/// Asks about the cluster with the silent API. The question is under way when this returns.
fn ask(service: &Running, api: &TcpListener) -> (TcpStream, TcpStream) {
    let host = service.url.strip_prefix("http://").expect("no TLS");
    let body = json!({"cluster": "lab", "nodes": ["n1"]}).to_string();
    let mut client = TcpStream::connect(host).expect("it listens");
    let head = format!(
        "POST /v1/placement/drain HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).expect("it reads");
    (client, api.accept().expect("a connection").0)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn temporary_directories_of_a_killed_service_are_removed_at_the_next_start() {
    let temporary = fresh("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let linked = fresh("linked");
    fs::create_dir(&linked).expect("a directory");
    fs::write(linked.join("kept"), "text").expect("a file");
    let link = temporary.join("allot-cluster-link01");
    symlink(&linked, &link).expect("a link");
    let (api, setting) = silent();
    let start = || Running::start_with_temporary(&temporary, &["--placement-clusters", &setting]);

    let killed = start();
    let _question = ask(&killed, &api);
    let made = entries(&temporary);
    assert_eq!(made.len(), 2, "{made:?}");
    let other = start();
    assert_eq!(entries(&temporary), made, "its process runs");
    killed.kill();
    assert_eq!(entries(&temporary), made, "a killed process removes nothing");
    let next = start();
    assert_eq!(entries(&temporary), [link]);
    assert!(linked.join("kept").exists());
    drop((other, next));
}
