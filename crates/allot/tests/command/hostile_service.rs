//! Commands against a hostile service, or one with hostile names: every text in every response has characters
//! that a terminal would interpret. The output must not have any.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;

use leases::text::is_control;
use serde_json::{Map, Value, json};

use crate::shell::{Ran, command, run};

/// Colors, a title, the clipboard, an extra line, an erased line, the text direction.
const HOSTILE: &str =
    "x\u{1b}[31m\u{1b}]0;T\u{7}\u{9b}2J\r\n r9  root  ACTIVE\u{0}\u{202e}\u{2066}\u{2028}\u{85}\u{7f}y";

/// Whether a terminal interprets a character that isn't layout of the command.
fn obeyed(c: char) -> bool {
    is_control(c) && !matches!(c, '\n' | '\t')
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(server::openapi()).expect("JSON"));

/// A value of the schema in which every text is hostile, except dates, which are parsed.
fn sample(name: &str, schema: &Value, depth: usize) -> Value {
    if depth > 12 {
        return Value::Null;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return sample(
            name,
            DOCUMENT.pointer(&reference[1..]).expect("references lead somewhere"),
            depth + 1,
        );
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(all) = schema[alternatives].as_array() {
            let mut all = all.iter().map(|one| sample(name, one, depth + 1));
            return all.find(|value| !value.is_null()).unwrap_or_default();
        }
    }
    let mut object = Map::new();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        object.extend(sample(name, part, depth + 1).as_object().cloned().unwrap_or_default());
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str()).unwrap_or_default();
    let date = ["date", "_at", "start", "end", "until", "time", "by", "timestamp"];
    match kind {
        "object" => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                object.insert(name.clone(), sample(name, property, depth + 1));
            }
            if schema["additionalProperties"].is_object() {
                object.insert(HOSTILE.to_owned(), sample("", &schema["additionalProperties"], depth + 1));
            }
            Value::Object(object)
        }
        "array" => json!([sample(name, &schema["items"], depth + 1)]),
        "integer" => json!(1),
        "number" => json!(0.5),
        "boolean" => json!(true),
        "string" if schema["format"] == "date-time" => json!("2030-01-02T10:00:00Z"),
        "string" if date.iter().any(|end| name.ends_with(end)) => json!("2030-01-02T10:00:00.000000"),
        "string" => json!(HOSTILE),
        _ if object.is_empty() => json!({"name": HOSTILE, "status": HOSTILE}),
        _ => Value::Object(object),
    }
}

/// Successful response to a request: status and body.
fn answer(method: &str, target: &str) -> (u16, Option<Value>) {
    let path = target.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        wanted.len() == parts.len()
            && wanted.iter().zip(&parts).all(|(wanted, part)| wanted == part || wanted.starts_with('{'))
    };
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let mut found: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let responses = found.first().map(|(_, item)| &item[method.to_lowercase()]["responses"]);
    let success = |status: &u16| responses.is_some_and(|responses| responses[status.to_string()].is_object());
    let Some(status) = [200, 201, 202, 204].into_iter().find(success) else { return (404, None) };
    let schema =
        &responses.unwrap_or(&Value::Null)[status.to_string()]["content"]["application/json"]["schema"];
    let mut body = if schema.is_null() { None } else { Some(sample("", schema, 0)) };
    // Pages after the first one are empty.
    let first = !target.contains("marker=") && (!target.contains("after=") || target.contains("after=0"));
    for list in body.iter_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if let Some(items) = list.as_array_mut().filter(|_| !first) {
            items.clear();
        }
    }
    (status, body)
}

/// Answers one request after another, each on its own connection.
fn serve(listener: &TcpListener, refuse: bool) {
    let mut followed = false;
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        // A client that has disconnected needs no response.
        let _ = respond(&stream, refuse, &mut followed);
    }
}

fn respond(mut stream: &TcpStream, refuse: bool, followed: &mut bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = if target.contains("wait=30") && *followed || refuse && target != "/healthz" {
        let offers = json!([sample("", &json!({"$ref": "#/components/schemas/Offer"}), 0)]);
        let refusal = json!({"error_code": 409, "error_name": 409, "error_message": HOSTILE, "hint": HOSTILE,
            "offers": if refuse { offers } else { json!([]) }});
        (409, "application/json", refusal.to_string())
    } else if target.contains("format=csv") {
        (200, "text/csv", format!("PROJECT,LEASES\r\n{HOSTILE},1\r\n"))
    } else {
        let asked = target.replace("after=1&limit=500&wait=30", "after=0");
        *followed |= asked != target;
        let (status, body) = answer(method, &asked);
        (status, "application/json", body.map(|body| body.to_string()).unwrap_or_default())
    };
    let head = format!("content-type: {kind}\r\ncontent-length: {}\r\nconnection: close", body.len());
    write!(stream, "HTTP/1.1 {status} X\r\n{head}\r\n\r\n{body}")
}

/// A hostile service, and a way to run commands against it.
struct Service(String);

impl Service {
    fn start(refuse: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        // The thread ends with the test process.
        std::thread::spawn(move || serve(&listener, refuse));
        Self(url)
    }

    fn allot(&self, words: &str) -> Ran {
        let words = words.split_whitespace();
        run(command().env("ALLOT_URL", &self.0).env("TZ", "UTC").args(words))
    }
}

const ID: &str = "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";

/// Commands, with an identifier that all hostile items have.
fn commands() -> Vec<String> {
    let commands = [
        "lease list",
        "lease show ID",
        "lease plan ID",
        "lease occupancy ID",
        "lease hints",
        "lease offers",
        "lease waitlist",
        "lease create x --hosts 1 --for 1h --start now",
        "lease update ID --name y",
        "lease accept ID",
        "host list",
        "host show 1",
        "host create n1",
        "host update 1 --set a=b",
        "host properties",
        "host properties --all",
        "host allocations",
        "freepool list",
        "freepool show ID",
        "freepool create p",
        "freepool update ID --end-action keep",
        "freepool add-host ID n1",
        "leasepool list",
        "leasepool show ID",
        "leasepool create x --hosts 1 --for 1h",
        "leasepool rename ID y",
        "floatingip list",
        "floatingip show ID",
        "floatingip create n 203.0.113.1",
        "flavor list",
        "flavor create f --vcpus 1 --memory 1G --disk 1",
        "instance list",
        "instance show ID",
        "instance create x --vcpus 1 --memory 1G",
        "instance filter --vcpus 1 --memory 1G",
        "preemptible list",
        "preemptible report",
        "preemptible project list",
        "preemptible project add p*",
        "maintenance plan n1 --for 1h",
        "maintenance book n1 --for 1h",
        "availability --for 1h",
        "calendar",
        "calendar --by rack",
        "events",
        "events --last 3",
        "events --follow",
        "audit",
        "usage",
        "usage --format csv",
        "usage --by lease",
        "usage billing",
        "usage events",
        "capacity",
        "energy plan",
        "energy report",
        "energy hosts",
        "settings",
        "settings --changed",
        "doctor",
        "doctor --repair",
    ];
    commands.iter().map(|words| words.replace("ID", ID)).collect()
}

fn check(words: &str, ran: &Ran) {
    // CSV lines end as in RFC 4180.
    let out = if words.contains("csv") { ran.out.replace("\r\n", "\n") } else { ran.out.clone() };
    for (stream, text) in [("output", &out), ("error", &ran.err)] {
        assert!(!text.contains(obeyed), "{words}: {stream}: {text:?}");
        // In CSV, line breaks come from the service.
        let forged = !words.contains("csv") && text.lines().any(|line| line.starts_with(" r9  root"));
        assert!(!forged, "{words}: {stream}: {text}");
    }
}

#[test]
fn no_command_prints_what_a_terminal_obeys() {
    let service = Service::start(false);
    let mut shown = BTreeMap::new();
    for words in commands() {
        let ran = service.allot(&words);
        check(&words, &ran);
        assert_ne!(ran.status, 2, "{words} is no command: {}", ran.err);
        shown.insert(words, ran.out.contains("\\u{1b}[31m") || ran.err.contains("\\u{1b}[31m"));
    }
    // Tables of numbers don't show hostile text, nor does output that only repeats a command's own arguments.
    let silent: Vec<_> =
        shown.iter().filter(|(_, shown)| !**shown).map(|(words, _)| words.as_str()).collect();
    assert!(silent.len() < shown.len() / 4, "{silent:?}");
}

#[test]
fn no_refusal_is_printed_so_that_a_terminal_obeys_it() {
    let service = Service::start(true);
    for words in commands() {
        let ran = service.allot(&words);
        check(&words, &ran);
        assert!(ran.err.contains("Error: x\\u{1b}[31m"), "{words}: {}", ran.err);
    }
}

#[test]
fn json_is_json_and_nothing_of_it_is_obeyed() {
    let service = Service::start(false);
    for words in commands() {
        let follows = words.contains("follow");
        let ran = service.allot(&format!("{words} --json"));
        check(&words, &ran);
        for text in
            if words.starts_with("events") { ran.out.lines().collect() } else { vec![ran.out.as_str()] }
        {
            let document: Value =
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{words}: {error}: {text}"));
            assert!(follows || !document.is_null(), "{words}");
        }
        if words == "lease list" {
            let document: Value = serde_json::from_str(&ran.out).expect("JSON");
            assert_eq!(document["leases"][0]["name"], HOSTILE, "a program gets what there is");
        }
    }
}
