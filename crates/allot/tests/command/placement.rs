//! Questions about clusters over HTTP get the same answers as the commands give.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::service::Running;
use crate::shell::{UNBALANCED, allot, file, fresh};

/// Status and body of `POST /v1/placement/...`.
fn ask(service: &Running, question: &str, body: &Value) -> (u16, Value) {
    let host = service.url.strip_prefix("http://").expect("no TLS");
    let body = body.to_string();
    let mut stream = TcpStream::connect(host).expect("it listens");
    let head = format!(
        "POST /v1/placement/{question} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    stream.write_all(body.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).expect("JSON"))
}

/// JSON output of a command.
fn printed(arguments: &[&str]) -> Value {
    let ran = allot(arguments);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

/// Each question, with the arguments of the equivalent command.
fn questions() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        ("balance", json!({}), vec!["hbal", "--json", "--explain"]),
        ("balance", json!({"moves": 1, "group": "g"}), vec!["hbal", "--json", "--explain", "-l1", "-Gg"]),
        ("balance", json!({"disk_moves": false}), vec!["hbal", "--json", "--explain", "--no-disk-moves"]),
        ("drain", json!({"nodes": ["n1"]}), vec!["drain", "--json", "n1"]),
        (
            "drain",
            json!({"nodes": ["n2", "n3"], "reboot": true, "disk_moves": false, "ignore_soft_errors": true}),
            vec!["drain", "--json", "--reboot", "--no-disk-moves", "--ignore-soft-errors", "n2", "n3"],
        ),
        ("whatif", json!({"lose": ["n1"], "limit": 20}), vec!["whatif", "--json", "--lose=n1", "--limit=20"]),
        (
            "whatif",
            json!({"add_nodes": ["2,100g,16g,8@g"], "resize": ["i1:mem=2g"], "remove_instances": ["i2"],
                "add_instances": ["3,1g,1g,1"], "rebalance": true, "independent_groups": true, "offline": ["n3"]}),
            vec![
                "whatif",
                "--json",
                "--add-nodes=2,100g,16g,8@g",
                "--resize=i1:mem=2g",
                "--remove-instance=i2",
                "--add-instances=3,1g,1g,1",
                "--rebalance",
                "--independent-groups",
                "-On3",
            ],
        ),
        ("fit", json!({"shape": "1g,2g,1"}), vec!["fit", "--json", "1g,2g,1"]),
        (
            "fit",
            json!({"shape": "1g,9g,1", "count": 3, "disk_template": "plain", "capacity_checks": false}),
            vec!["fit", "--json", "--count=3", "--disk-template=plain", "--no-capacity-checks", "1g,9g,1"],
        ),
    ]
}

#[test]
fn a_cluster_that_is_sent_or_named_has_the_answers_that_commands_print() {
    let path = file("cluster.data", UNBALANCED);
    let named = format!("lab=file:{path}");
    let service = Running::start("memory", &["--placement-clusters", &named]);
    for (question, body, mut words) in questions() {
        words.extend(["-t", path.as_str()]);
        let expected = json!({ question: printed(&words) });
        for (field, value) in [("text", UNBALANCED), ("cluster", "lab")] {
            let mut body = body.clone();
            body[field] = json!(value);
            assert_eq!(ask(&service, question, &body), (200, expected.clone()), "{question} {body}");
        }
    }
}

/// Responses of a remote API with two nodes and an instance.
fn documents() -> Value {
    let policy = json!({
        "std": {"memory-size": 128, "cpu-count": 1, "disk-size": 1024, "disk-count": 1, "nic-count": 1, "spindle-use": 1},
        "minmax": [], "disk-templates": ["drbd", "plain"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0});
    let node = |name: &str, free: u32| {
        json!({"name": name, "offline": false, "drained": false, "vm_capable": true, "group.uuid": "u", "tags": [],
            "ndparams": {"spindle_count": 1, "exclusive_storage": false}, "mtotal": 16384, "mnode": 0, "mfree": free,
            "dtotal": 100_000, "dfree": 98_976, "ctotal": 8, "cnos": 0, "sptotal": 0, "spfree": 0})
    };
    json!({
        "groups": [{"name": "g", "uuid": "u", "alloc_policy": "preferred", "ipolicy": policy, "tags": []}],
        "nodes": [node("n1.x", 15_360), node("n2.x", 16_384)],
        "instances": [{"name": "i1.x", "pnode": "n1.x", "snodes": ["n2.x"], "disk_template": "drbd", "tags": [],
            "status": "running", "admin_state": "up", "disk.sizes": [1024], "disk.spindles": [null], "disk_usage": 1152,
            "nic.bridges": [], "beparams": {"memory": 1024, "minmem": 1024, "maxmem": 1024, "vcpus": 1,
            "auto_balance": true, "spindle_use": 1}, "oper_ram": 1024, "oper_vcpus": 1, "disk_free": 0}],
        "info": {"name": "c", "master": "n1.x", "tags": [], "ipolicy": policy, "default_hypervisor": "fake"}})
}

#[test]
fn documents_of_a_remote_api_have_the_answers_that_commands_print() {
    let rapi = documents();
    let directory = fresh("rapi");
    fs::create_dir(&directory).expect("a directory");
    for (name, document) in rapi.as_object().expect("documents") {
        fs::write(directory.join(format!("{name}.json")), document.to_string()).expect("a file");
    }
    let source = format!("--master=file://{}", directory.display());
    let service = Running::start("memory", &[]);
    for (question, body, words) in [
        ("balance", json!({}), vec!["hbal", "--json", "--explain"]),
        ("drain", json!({"nodes": ["n1"]}), vec!["drain", "--json", "n1"]),
        ("whatif", json!({"lose": ["n1"]}), vec!["whatif", "--json", "--lose=n1"]),
        ("fit", json!({"shape": "1g,2g,1"}), vec!["fit", "--json", "1g,2g,1"]),
    ] {
        let expected = json!({ question: printed(&[&words[..], &[&source]].concat()) });
        let mut body = body;
        body["rapi"] = rapi.clone();
        assert_eq!(ask(&service, question, &body), (200, expected), "{question}");
    }
}

#[test]
fn what_has_no_answer_says_why_and_nothing_of_the_machine() {
    let service = Running::start("memory", &["--placement-clusters", "gone=file:/nonexistent/secret.data"]);
    for (question, body, status, message) in [
        (
            "drain",
            json!({"text": UNBALANCED, "nodes": ["nosuch"]}),
            400,
            "\"nosuch\" names no node of the cluster",
        ),
        ("whatif", json!({"text": UNBALANCED}), 400, "no change given; see allot whatif --help"),
        ("balance", json!({"text": "nonsense"}), 400, "failed to load data, aborting: "),
        ("balance", json!({"text": UNBALANCED, "group": "h"}), 400, "Node group h not found."),
        ("drain", json!({"text": UNBALANCED, "nodes": ["/etc/passwd"]}), 400, "\"/etc/passwd\" isn't a node"),
        (
            "fit",
            json!({"cluster": "gone", "shape": "1g,1g,1"}),
            503,
            "The cluster gone cannot be read at present",
        ),
        (
            "fit",
            json!({"cluster": "other", "shape": "1g,1g,1"}),
            400,
            "Malformed parameter cluster: there is no other",
        ),
    ] {
        let (found, answer) = ask(&service, question, &body);
        let said = answer["error_message"].as_str().expect("a message");
        assert_eq!(found, status, "{answer}");
        assert!(said.starts_with(message), "{said}");
        assert!(!answer.to_string().contains("secret") && !answer.to_string().contains("/tmp"), "{answer}");
    }
}
