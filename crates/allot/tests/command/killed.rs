//! Processes and files that remain when a service is killed or a hook exceeds its time limit.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::reload::Logged;
use crate::service::Running;
use crate::shell::{command, fresh, run};

/// A remote API that never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let setting = format!("lab=rapi:{}", listener.local_addr().expect("an address"));
    (listener, setting)
}

/// Asks a question about the cluster with the silent API, and returns when the question's process has connected to it.
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
    let link = temporary.join("allot-cluster-link567890123456");
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

/// The command that starts a program through the helper, as the service does.
fn helped(limits: &str, program: &[&str]) -> Command {
    let mut helper = command();
    helper.arg0(ambient::HELPER).arg(std::process::id().to_string()).arg(limits).args(program);
    helper
}

#[test]
fn the_helper_ends_as_its_program_does() {
    for status in [0, 1, 7, 255] {
        let ended = helped("", &["sh", "-c", &format!("exit {status}")]).status().expect("it runs");
        assert_eq!(ended.code(), Some(status));
    }
    for (name, signal) in
        [("TERM", 15), ("KILL", 9), ("ABRT", 6), ("PIPE", 13), ("XCPU", 24), ("SEGV", 11), ("INT", 2)]
    {
        let script = format!("ulimit -c 0; kill -s {name} $$");
        let ended = helped("", &["sh", "-c", &script]).status().expect("it runs");
        assert_eq!(ended.signal(), Some(signal), "{name}: {ended}");
    }
    let missing = helped("", &["/nowhere/hook"]).output().expect("it runs");
    assert_eq!(missing.status.code(), Some(ambient::NOT_STARTED.into()));
    assert!(missing.stderr.starts_with(b"No such file"), "{missing:?}");
}

#[test]
fn the_output_of_a_program_ends_with_it_whatever_it_leaves_running() {
    let script = "cat; echo said; echo complained >&2; setsid sleep 100000 & sleep 100000 & exit 3";
    let mut helper = helped("", &["sh", "-c", script]);
    helper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut helper = helper.spawn().expect("it runs");
    helper.stdin.take().expect("a pipe").write_all(b"told ").expect("it reads");
    let output = helper.wait_with_output().expect("it runs");
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"told said\n"[..], &b"complained\n"[..]));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn limits_are_those_of_the_program() {
    let script = "ulimit -t; ulimit -d; ulimit -f; ulimit -c";
    let output = helped("5,4294967296", &["sh", "-c", script]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5\n4194304\n0\n0\n", "{output:?}");
}

#[test]
fn the_helper_of_a_service_that_is_gone_starts_nothing() {
    let mut helper = command();
    let output = helper.arg0(ambient::HELPER).args(["1", "", "echo", "begun"]).output().expect("it runs");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(127), &b""[..]), "{output:?}");
}

#[test]
fn all_descendants_of_a_program_end_when_the_helper_is_told_to() {
    // The read below ends only when no process has the pipe open.
    let script = "setsid sh -c 'trap \"\" TERM HUP; sleep 100000 & (setsid sleep 100000 &) ; wait' &
        setsid sleep 100000 & echo begun; exec sleep 100000";
    let mut helper = helped("", &["sh", "-c", script]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut output = BufReader::new(helper.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    let told = Command::new("kill").arg(helper.id().to_string()).status();
    assert!(told.expect("there is a kill").success());
    output.read_to_end(&mut Vec::new()).expect("its end");
    assert_eq!(helper.wait().expect("a child").signal(), Some(9));
}

/// Starts a service whose check of a host doesn't end, and has started a process in a session of its own. Reading the
/// returned file ends when that process ends.
fn checking(time_limit_seconds: u32) -> (Child, File) {
    let rack = fresh("rack");
    fs::create_dir(&rack).expect("a directory");
    let made = Command::new("mkfifo").arg(rack.join("pipe")).status().expect("there is a mkfifo");
    assert!(made.success());
    let hooks = format!(
        "state_file = \"state.json\"
         hosts = [{{ id = 1, name = \"node1\", vcpus = 8, memory_mib = 16384 }}]
         [hooks.check]
         time_limit_seconds = {time_limit_seconds}
         exec = [\"sh\", \"-c\", \"mkdir begun || exit 1; setsid sleep 100000 > pipe & exec sleep 100000\"]"
    );
    fs::write(rack.join("hooks.toml"), hooks).expect("a file");
    let mut serve = command();
    serve.args(["serve", "--fleet", "hooks:hooks.toml", "--database", "memory", "--listen", "127.0.0.1:0"]);
    // The service only listens once the check is over, so there is no address to wait for.
    let service = serve.current_dir(&rack).stderr(Stdio::null()).spawn().expect("it runs");
    (service, File::open(rack.join("pipe")).expect("the process opens it, too"))
}

#[test]
fn what_a_hook_started_in_a_session_of_its_own_ends_with_its_time_limit() {
    let (mut service, mut opened) = checking(1);
    opened.read_to_end(&mut Vec::new()).expect("its end");
    assert!(service.try_wait().expect("a child").is_none(), "the service goes on");
    service.kill().expect("a child");
    service.wait().expect("a child");
}

#[test]
fn what_a_hook_started_in_a_session_of_its_own_ends_with_a_service_that_is_killed() {
    let (mut service, mut opened) = checking(3600);
    service.kill().expect("a child");
    service.wait().expect("a child");
    opened.read_to_end(&mut Vec::new()).expect("its end");
}

#[test]
fn a_service_that_stops_says_what_it_waits_for_and_a_second_signal_ends_its_hooks() {
    let rack = fresh("rack");
    fs::create_dir(&rack).expect("a directory");
    let pipe = rack.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo").success());
    let hooks = format!(
        "state_file = \"{}\"
         hosts = [{{ id = 1, name = \"node1\", vcpus = 8, memory_mib = 16384 }}]
         [hooks.on_hold]
         time_limit_seconds = 3600
         exec = [\"sh\", \"-c\", \"setsid sleep 100000 > {} & exec sleep 100000\"]",
        rack.join("state.json").display(),
        pipe.display()
    );
    let path = rack.join("hooks.toml");
    fs::write(&path, hooks).expect("a file");
    let mut service = Logged::start(&["--fleet", &format!("hooks:{}", path.display())]);
    for words in
        [&["host", "create", "node1"][..], &["lease", "create", "web", "--hosts", "1", "--for", "1d"]]
    {
        let ran = run(command().env("ALLOT_URL", &service.url).args(words));
        assert_eq!(ran.status, 0, "{}", ran.err);
    }
    let mut opened = File::open(&pipe).expect("the hook opens it, too");
    service.signal("-TERM");
    let waits = service.until("waiting for steps");
    let steps = waits["steps"].as_str().unwrap_or_default();
    assert!(steps.starts_with("hand host node1 to reservation ") && waits["until"].is_string(), "{waits}");
    assert!(
        waits["hooks"].as_str().is_some_and(|hooks| hooks.starts_with("on_hold of node1 until ")),
        "{waits}"
    );
    assert!(service.child.try_wait().expect("a child").is_none(), "it waits");
    service.signal("-TERM");
    service.until("stopping at once");
    assert_eq!(service.child.wait().expect("a child").code(), Some(1));
    opened.read_to_end(&mut Vec::new()).expect("its end");
}

#[test]
fn hooks_may_take_longer_than_other_steps() {
    let rack = fresh("rack");
    fs::create_dir(&rack).expect("a directory");
    let hooks = format!(
        "state_file = \"{}\"
         hosts = [{{ id = 1, name = \"node1\", vcpus = 8, memory_mib = 16384 }}]
         [hooks.on_hold]
         time_limit_seconds = 600
         exec = [\"sleep\", \"2\"]",
        rack.join("state.json").display()
    );
    let path = rack.join("hooks.toml");
    fs::write(&path, hooks).expect("a file");
    let fleet = format!("hooks:{}", path.display());
    let service = Running::start("memory", &["--fleet", &fleet, "--limits-step-time", "1s"]);
    let create = ["lease", "create", "web", "--hosts", "1", "--for", "1d", "--wait"];
    for words in [&["host", "create", "node1"][..], &create] {
        let ran = run(command().env("ALLOT_URL", &service.url).args(words));
        assert_eq!(ran.status, 0, "{}", ran.err);
    }
}

#[test]
fn a_question_ends_with_a_service_that_is_killed() {
    let (api, setting) = silent();
    let service =
        Running::start("memory", &["--placement-clusters", &setting, "--placement-compute-time", "1h"]);
    let (_client, mut asked) = ask(&service, &api);
    service.kill();
    // The connection to the API is closed when the question's process ends.
    let _ = asked.read_to_end(&mut Vec::new());
}
