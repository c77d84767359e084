//! Tests with well-behaved and misbehaving daemons.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Limits;
use super::*;

const PATIENT: Limits =
    Limits { connect: Duration::from_secs(20), answer: Duration::from_secs(20), most_bytes: 1 << 20 };
const IMPATIENT: Limits = Limits { answer: Duration::from_millis(150), ..PATIENT };

/// A daemon's reply to a message.
enum Reply {
    Bytes(Vec<u8>),
    /// Sends these bytes, then closes the connection.
    Last(Vec<u8>),
    /// Sends single bytes with pauses.
    Drip,
}

/// A daemon that runs until the process ends.
struct Daemon {
    directory: TempDir,
    messages: Arc<Mutex<Vec<Value>>>,
}

impl Daemon {
    fn start(mut reply: impl FnMut(&Value) -> Reply + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let seen = messages.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &mut reply, &seen);
            }
        });
        Self { directory, messages }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn messages(&self) -> Vec<Value> {
        self.messages.lock().unwrap().clone()
    }
}

/// Answers messages of one connection until it's closed.
fn serve(
    mut stream: UnixStream,
    reply: &mut impl FnMut(&Value) -> Reply,
    seen: &Mutex<Vec<Value>>,
) -> Option<()> {
    let mut message = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        if byte[0] != 3 {
            message.push(byte[0]);
            continue;
        }
        let value: Value = serde_json::from_slice(&std::mem::take(&mut message)).unwrap();
        seen.lock().unwrap().push(value.clone());
        match reply(&value) {
            Reply::Bytes(bytes) => stream.write_all(&bytes).ok()?,
            Reply::Last(bytes) => {
                stream.write_all(&bytes).ok()?;
                return None;
            }
            Reply::Drip => loop {
                stream.write_all(b" ").ok()?;
                thread::sleep(Duration::from_millis(20));
            },
        }
    }
}

fn message(value: &Value) -> Vec<u8> {
    format!("{value}\u{3}").into_bytes()
}

/// Cells with normal status.
fn cells(values: &[Value]) -> Value {
    values.iter().map(|value| json!([0, value])).collect()
}

fn policy() -> Value {
    let spec = json!({"memory-size": 1, "cpu-count": 1, "disk-size": 1, "disk-count": 1, "nic-count": 1,
        "spindle-use": 1});
    json!({"minmax": [], "std": spec, "disk-templates": ["drbd"], "vcpu-ratio": 4, "spindle-ratio": 32})
}

/// Answers to the four queries.
fn answer(question: &Value) -> Value {
    let node = |name: &str| {
        cells(&[
            json!(name),
            json!(1024),
            json!(64),
            json!(512),
            json!(9000),
            json!(8000),
            json!(4),
            json!(1),
            json!(false),
            json!(false),
            json!(true),
            json!(2),
            json!("u1"),
            json!([]),
            json!(false),
            json!(0),
            json!(null),
            json!(1.5),
        ])
    };
    let instance = cells(&[
        json!("i1"),
        json!(10),
        json!(128),
        json!(2),
        json!("running"),
        json!("n1"),
        json!(["n2"]),
        json!(["t"]),
        json!(true),
        json!("drbd"),
        json!(1),
        json!([6, 4]),
        json!([1, null]),
        json!(false),
    ]);
    let group = cells(&[json!("u1"), json!("g1"), json!("preferred"), policy(), json!([])]);
    match question["args"][0].as_str() {
        Some("node") => json!({"fields": [], "data": [node("n1"), node("n2")]}),
        Some("instance") => json!({"fields": [], "data": [instance]}),
        Some("group") => json!({"fields": [], "data": [group]}),
        _ => json!({"tags": [], "ipolicy": policy(), "master": "n2", "default_hypervisor": "kvm"}),
    }
}

fn success(result: &Value) -> Reply {
    Reply::Bytes(message(&json!({"success": true, "result": result})))
}

/// Error from answers modified by `change`, which gets the query's subject and the answer.
fn complaint(change: impl Fn(&str, &mut Value) + Send + 'static) -> String {
    let daemon = Daemon::start(move |question| {
        let mut result = answer(question);
        change(question["args"][0].as_str().unwrap_or("cluster"), &mut result);
        success(&result)
    });
    load(&daemon.socket()).unwrap_err().to_string()
}

/// Error from a daemon that replies to the first call like this.
fn failure(limits: Limits, mut reply: impl FnMut() -> Reply + Send + 'static) -> String {
    let daemon = Daemon::start(move |_| reply());
    let mut client = Client::connect_within(&daemon.socket(), limits).unwrap();
    client.call("Ask", &json!([])).unwrap_err().to_string()
}

#[test]
fn a_cluster_is_four_questions_on_one_connection() {
    let daemon = Daemon::start(|question| success(&answer(question)));
    let data = load(&daemon.socket()).unwrap();
    let asked: Vec<String> = daemon
        .messages()
        .iter()
        .map(|message| format!("{} {}", message["method"], message["args"][0]))
        .collect();
    assert_eq!(
        asked,
        [r#""Query" "node""#, r#""Query" "instance""#, r#""QueryClusterInfo" null"#, r#""Query" "group""#]
    );
    assert_eq!((data.groups.len(), data.nodes.len(), data.instances.len()), (1, 2, 1));
    assert_eq!((data.nodes[1].master, data.nodes[1].kvm, data.nodes[1].cpu_speed), (true, true, 1.5));
    assert_eq!(data.instances[0].disks.iter().map(|disk| disk.spindles).collect::<Vec<_>>(), [Some(1), None]);
}

#[test]
fn several_answers_may_come_at_once() {
    let two =
        [message(&json!({"success": true, "result": 1})), message(&json!({"success": true, "result": 2}))];
    let mut waiting = vec![Vec::new(), two.concat()];
    let daemon = Daemon::start(move |_| Reply::Bytes(waiting.pop().unwrap()));
    let mut client = Client::connect(&daemon.socket()).unwrap();
    assert_eq!(client.call("A", &json!([])).unwrap(), 1);
    assert_eq!(client.call("B", &json!([])).unwrap(), 2);
}

#[test]
fn a_daemon_that_misbehaves_is_told_apart() {
    let check = |limits, reply: fn() -> Reply, expect: &str| {
        let message = failure(limits, reply);
        assert!(message.starts_with(expect), "{message}");
    };
    check(
        PATIENT,
        || Reply::Last(b"{\"success\"".to_vec()),
        "Ask: the connection was closed before the answer was complete",
    );
    check(PATIENT, || Reply::Bytes(b"garbage\x03".to_vec()), "Ask: the answer cannot be read: ");
    check(
        PATIENT,
        || Reply::Bytes(b"{}\x03".to_vec()),
        "Ask: the answer cannot be read: missing field `success`",
    );
    check(IMPATIENT, || Reply::Bytes(Vec::new()), "Ask: no complete answer within 150ms");
    check(IMPATIENT, || Reply::Drip, "Ask: no complete answer within 150ms");
    let small = Limits { most_bytes: 100, ..PATIENT };
    check(small, || Reply::Bytes(vec![b' '; 1000]), "Ask: the answer is longer than 100 bytes");
}

#[test]
fn a_socket_that_nobody_listens_on_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nobody");
    let message = load(&path).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot connect to {}: ", path.display())), "{message}");
}

#[test]
fn refusals_are_told_in_the_daemons_words() {
    let refuse = |reason: Value| {
        let reply = message(&json!({"success": false, "result": reason}));
        failure(PATIENT, move || Reply::Bytes(reply.clone()))
    };
    assert_eq!(
        refuse(json!(["OpPrereqError", ["no such field", "wrong_input"]])),
        "Failure: prerequisites not met for this operation:\nerror type: ECodeInval, error details:\nno such field"
    );
    assert_eq!(refuse(json!(["OpExecError", ["broken"]])), "Failure: command execution error:\nbroken");
    assert_eq!(refuse(json!("what?")), "Unhandled Ganeti error: \"what?\"");
}

#[test]
fn complaints_name_the_thing_and_the_attribute() {
    let cell = |kind: &'static str, at: usize, cell: Value| {
        complaint(move |asked, result| {
            if asked == kind {
                result["data"][0][at] = cell.clone();
            }
        })
    };
    let node = |what| format!("Node 'n1', error while reading attribute {what}");
    assert_eq!(cell("node", 1, json!([3, null])), node("'mtotal': Ganeti reports unavailable data"));
    assert_eq!(cell("node", 8, json!([4, null])), node("'offline': Ganeti reports resource as offline"));
    assert_eq!(cell("node", 17, json!([1, null])), node("'cpu_speed': Unknown field"));
    assert_eq!(
        cell("node", 1, json!([0, null])),
        node("'mtotal': Cannot convert value 'null', error: Unable to read Double")
    );
    assert_eq!(cell("node", 12, json!([0, "zz"])), "Unknown group 'zz' for node n1");
    assert_eq!(
        cell("instance", 12, json!([0, null])),
        "Instance 'i1', error while reading attribute 'disk.spindles': Expecting array, got 'null'"
    );
    assert_eq!(cell("instance", 6, json!([0, ["zz"]])), "Unknown node 'zz' for instance i1");
    assert_eq!(
        cell("group", 2, json!([0, "odd"])),
        "Group 'g1', error while reading attribute 'alloc_policy': Cannot convert value '\"odd\"', error: Invalid \
         string value for type AllocPolicy: \"odd\""
    );
    assert_eq!(
        cell("node", 0, json!([0, 5])),
        "Parsing new node: Cannot convert value '5', error: Unable to read String"
    );
    assert_eq!(cell("node", 1, json!(5)), "Invalid query field, expected (status, value) but got 5");
    let row = complaint(|asked, result| {
        if asked == "group" {
            result["data"][0] = json!([[0, "u1"]]);
        }
    });
    assert!(row.starts_with("Invalid query row"), "{row}");
    let master = complaint(|asked, result| {
        if asked == "cluster" {
            result["master"] = json!("zz");
        }
    });
    assert_eq!(master, "Master node zz unknown");
}

#[test]
fn what_dead_nodes_say_does_not_matter() {
    let daemon = Daemon::start(|question| {
        let mut result = answer(question);
        if question["args"][0] == "node" {
            for at in [1, 2, 3, 6, 7] {
                result["data"][0][at] = json!([4, null]);
            }
            result["data"][0][8] = json!([0, true]);
            // The second node's disk size is unavailable, and counts as 0.
            result["data"][1][4] = json!([3, null]);
        }
        success(&result)
    });
    let data = load(&daemon.socket()).unwrap();
    assert_eq!((data.nodes[0].offline, data.nodes[0].total_memory), (true, 0.0));
    assert_eq!((data.nodes[1].offline, data.nodes[1].total_disk), (false, 0.0));
}

#[test]
fn the_usual_socket_may_be_below_the_root_of_a_virtual_cluster() {
    let path = |socket, root: Option<&str>| socket_path(&socket, root.map(OsStr::new));
    assert_eq!(path(LuxiSocket::Default, None), Path::new("/var/run/ganeti/socket/ganeti-query"));
    assert_eq!(
        path(LuxiSocket::Default, Some("/srv/one")),
        Path::new("/srv/one/var/run/ganeti/socket/ganeti-query")
    );
    assert_eq!(path(LuxiSocket::Path("here".to_owned()), Some("/srv/one")), Path::new("here"));
}
