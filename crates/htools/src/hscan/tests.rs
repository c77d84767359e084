//! Tests of printed and saved clusters.

use std::fs;

use super::*;
use crate::http::fake::{Reply, Server};
use crate::io::FAILURE;
use crate::rapi::tests::document;

/// Exit status, standard output and standard error of a run.
fn hscan(arguments: &[&str]) -> (u8, String, String) {
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&arguments, &mut Io { stdin: &mut io::empty(), out: &mut out, err: &mut err });
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn api() -> Server {
    Server::start(|head| Reply::Document(200, document(head.lines().next().unwrap())))
}

#[test]
fn a_password_is_neither_printed_nor_part_of_a_files_name() {
    let (server, directory) = (api(), tempfile::tempdir().unwrap());
    let address = format!("http://user:secret@127.0.0.1:{}", server.port);
    let (status, out, err) = hscan(&["-d", directory.path().to_str().unwrap(), &address]);
    assert_eq!((status, err.as_str()), (SUCCESS, ""));
    let name = format!("http://user@127.0.0.1:{}", server.port);
    let row = "     2     1     0     0   2049   1024      0      0";
    assert!(out.lines().nth(1).unwrap().starts_with(&format!("{name}{row}")), "{out}");
    let file = format!("{}.data", name.replace('/', "_"));
    assert!(directory.path().join(file).is_file());
}

#[test]
fn the_memory_of_kvm_nodes_is_saved_as_it_counts() {
    let (server, directory) = (api(), tempfile::tempdir().unwrap());
    let address = format!("http://127.0.0.1:{}", server.port);
    let saved = directory.path().join(format!("{}.data", address.replace('/', "_")));
    for (options, memory) in [
        (&[][..], 4096),
        (&["--static-kvm-node-memory=900"], 900),
        // The value that the node reports.
        (&["--static-kvm-node-memory=0"], 64),
    ] {
        let directory = directory.path().to_str().unwrap();
        let (_, out, _) = hscan(&[&["-pname,nmem", "-d", directory, &address], options].concat());
        assert!(out.contains(&format!(" {memory}\n n2 ")), "{out}");
        let saved = fs::read_to_string(&saved).unwrap();
        assert!(saved.contains(&format!("\nn1|1024|{memory}|512|")), "{saved}");
    }
}

#[test]
fn a_score_that_is_not_a_number_is_not_padded() {
    let server = Server::start(|head| {
        let request = head.lines().next().unwrap();
        Reply::Document(200, document(request).replace("\"spindle_count\":2", "\"spindle_count\":0"))
    });
    let directory = tempfile::tempdir().unwrap();
    let address = format!("http://127.0.0.1:{}", server.port);
    let (status, out, _) = hscan(&["-d", directory.path().to_str().unwrap(), &address]);
    assert_eq!(status, SUCCESS);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].ends_with(" f_disk      Score") && lines[1].ends_with("  0 NaN"), "{out}");
}

#[test]
fn a_cluster_that_cannot_be_read_does_not_keep_others_from_being_saved() {
    let (server, directory) = (api(), tempfile::tempdir().unwrap());
    let refusing = Server::start(|_| Reply::Document(500, String::new()));
    let bad = format!("http://user:secret@127.0.0.1:{}", refusing.port);
    let good = format!("http://127.0.0.1:{}", server.port);
    let (status, out, _) = hscan(&["--no-headers", "-d", directory.path().to_str().unwrap(), &bad, &good]);
    assert_eq!(status, USAGE);
    let complaint = format!("\nError for {}: failed to load data. Details:\n", bad.replace(":secret", ""));
    assert!(out.starts_with(&complaint) && !out.contains("secret"), "{out}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn certificates_are_never_left_unverified_in_silence() {
    let (server, directory) = (api(), tempfile::tempdir().unwrap());
    for address in [
        format!("user:sec/ret@127.0.0.1:{}", server.port),
        format!("http://user:sec/ret@127.0.0.1:{}", server.port),
        "user:sec/ret@localhost".to_owned(),
        "file://.".to_owned(),
    ] {
        let directory = directory.path().to_str().unwrap();
        let (status, out, _) = hscan(&["--rapi-ca", "ca.pem", "-d", directory, &address]);
        assert_eq!(status, INCOMPLETE, "{out}");
        assert!(out.contains("--rapi-ca wants https://") && !out.contains("ret"), "{out}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[test]
fn without_addresses_there_must_be_a_daemon() {
    let (status, out, err) = hscan(&["-L/nonexistent/socket"]);
    assert_eq!((status, out.lines().count()), (FAILURE, 1));
    assert!(err.starts_with("Error: cannot connect to /nonexistent/socket: "), "{err}");
}
