//! A fake master daemon. The first of its three nodes has all four instances.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use serde_json::{Value, json};

use crate::shell::fresh;

/// Reaction of the daemon to a query for jobs.
pub enum Answer {
    /// All jobs are in this state.
    State(&'static str),
    /// Never answers.
    Silence,
    /// Closes the connection.
    Hangup,
}

/// A running daemon.
pub struct Daemon {
    pub socket: String,
    /// Receives a message for each query for jobs.
    pub questions: Receiver<()>,
    /// Reactions to the queries. The daemon waits for each.
    pub answers: Sender<Answer>,
}

impl Daemon {
    /// Starts a daemon that runs until the test ends.
    pub fn start() -> Self {
        let path = fresh("s");
        let listener = UnixListener::bind(&path).expect("a socket can be made");
        let (asked, questions) = mpsc::channel();
        let (answers, to_give) = mpsc::channel();
        thread::spawn(move || {
            let mut jobs = 0;
            // Serving one connection after another is enough: a program waits for each of its connections.
            for stream in listener.incoming().flatten() {
                let asked = asked.clone();
                serve(stream, &mut jobs, &asked, &to_give);
            }
        });
        Self { socket: path.to_str().expect("a plain path").to_owned(), questions, answers }
    }
}

fn serve(mut stream: UnixStream, jobs: &mut u64, asked: &Sender<()>, answers: &Receiver<Answer>) {
    while let Some(request) = message(&mut stream) {
        let result = match request["method"].as_str() {
            Some("Query") => rows(&request["args"]),
            Some("QueryClusterInfo") => {
                json!({"tags": [], "ipolicy": policy(), "master": "n1.x", "default_hypervisor": "xen-pvm"})
            }
            Some("SubmitManyJobs") => {
                let count = request["args"][0].as_array().map_or(0, Vec::len);
                let accepted = (0..count).map(|_| {
                    *jobs += 1;
                    json!([true, jobs])
                });
                Value::Array(accepted.collect())
            }
            _ => {
                let count = request["args"][0].as_array().map_or(0, Vec::len);
                let _ = asked.send(());
                match answers.recv() {
                    Ok(Answer::State(state)) => Value::Array(vec![json!([state]); count]),
                    Ok(Answer::Silence) => continue,
                    Ok(Answer::Hangup) | Err(_) => return,
                }
            }
        };
        let answer = json!({"success": true, "result": result});
        if write!(stream, "{answer}\u{3}").is_err() {
            return;
        }
    }
}

fn message(stream: &mut UnixStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).ok()? == 1 {
        if byte[0] == 3 {
            return serde_json::from_slice(&bytes).ok();
        }
        bytes.push(byte[0]);
    }
    None
}

fn policy() -> Value {
    json!({
        "minmax": [], "disk-templates": ["drbd"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0,
        "std": {"memory-size": 128, "cpu-count": 1, "disk-size": 1024, "disk-count": 1, "nic-count": 1,
                "spindle-use": 1},
    })
}

fn rows(query: &Value) -> Value {
    let node = |name, free: u64| {
        json!({
            "name": name, "mtotal": 16384, "mnode": 0, "mfree": free, "dtotal": 100_000, "dfree": 95_000,
            "ctotal": 8, "cnos": 1, "offline": false, "drained": false, "vm_capable": true,
            "ndp/spindle_count": 1, "group.uuid": "u", "tags": [], "ndp/exclusive_storage": false,
            "sptotal": 0, "spfree": 0, "ndp/cpu_speed": 1.0,
        })
    };
    let instance = |name, secondary| {
        json!({
            "name": name, "disk_usage": 1024, "be/memory": 1024, "be/vcpus": 1, "status": "running",
            "pnode": "n1.x", "snodes": [secondary], "tags": [], "be/auto_balance": true,
            "disk_template": "drbd", "be/spindle_use": 1, "disk.sizes": [1024], "disk.spindles": [null],
            "forthcoming": false,
        })
    };
    let records = match query[0].as_str() {
        Some("node") => vec![node("n1.x", 12288), node("n2.x", 16384), node("n3.x", 16384)],
        Some("instance") => vec![
            instance("i1.x", "n2.x"),
            instance("i2.x", "n3.x"),
            instance("i3.x", "n2.x"),
            instance("i4.x", "n3.x"),
        ],
        _ => vec![json!({
            "uuid": "u", "name": "g", "alloc_policy": "preferred", "ipolicy": policy(), "tags": [],
        })],
    };
    let fields: Vec<&str> = query[1].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let row = |record: &Value| fields.iter().map(|field| json!([0, record[field]])).collect::<Value>();
    json!({"fields": [], "data": records.iter().map(row).collect::<Value>()})
}
