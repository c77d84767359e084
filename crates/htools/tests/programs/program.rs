//! Runs programs in memory.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use htools::io::{Io, SUCCESS};
use serde_json::{Value, json};

/// Output and exit status of a program.
#[derive(Debug)]
pub struct Ran {
    pub status: u8,
    pub out: String,
    pub err: String,
}

fn run(program: fn(&[String], &mut Io<'_>) -> u8, args: &[&str]) -> Ran {
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = program(&args, &mut Io { stdin: &mut std::io::empty(), out: &mut out, err: &mut err });
    let text = |bytes| String::from_utf8(bytes).expect("programs print text");
    Ran { status, out: text(out), err: text(err) }
}

/// Writes a file with a name that is unique among tests.
fn file(contents: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{}-{number}", std::process::id()));
    fs::write(&path, contents).expect("the directory for tests is writable");
    path
}

pub fn hail(message: &Value) -> Ran {
    let path = file(&message.to_string());
    run(htools::hail::run, &[path.to_str().expect("a plain path")])
}

pub fn explained_file(path: &str) -> Ran {
    run(htools::hail::run, &["--explain", path])
}

/// Run of `hail --explain` on a request.
pub fn explained(message: &Value) -> Ran {
    explained_file(file(&message.to_string()).to_str().expect("a plain path"))
}

/// Response of `hail`, which must exit with success.
pub fn answer(message: &Value) -> Value {
    let ran = hail(message);
    assert_eq!(ran.status, SUCCESS, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("the answer is JSON")
}

/// Nodes that `hail` chose. The request must succeed.
pub fn chosen(message: &Value) -> Vec<String> {
    let answer = answer(message);
    assert_eq!(answer["success"], json!(true), "{answer}");
    let nodes = answer["result"].as_array().expect("a list");
    nodes.iter().map(|n| n.as_str().expect("a name").to_owned()).collect()
}

/// Runs a program on a cluster in the text format.
fn on_file(program: fn(&[String], &mut Io<'_>) -> u8, text: &str, options: &[&str]) -> Ran {
    let path = file(text);
    let mut args = vec!["-t", path.to_str().expect("a plain path")];
    args.extend(options);
    run(program, &args)
}

pub fn hbal(text: &str, options: &[&str]) -> Ran {
    on_file(htools::hbal::run, text, options)
}

pub fn hcheck(text: &str, options: &[&str]) -> Ran {
    on_file(htools::hcheck::run, text, options)
}

pub fn hsqueeze(text: &str, options: &[&str]) -> Ran {
    on_file(htools::hsqueeze::run, text, options)
}

pub fn hroller(text: &str, options: &[&str]) -> Ran {
    on_file(htools::hroller::run, text, options)
}

pub fn hspace(text: &str, options: &[&str]) -> Ran {
    on_file(htools::hspace::run, text, options)
}

/// Lines of `hbal` that list moves.
pub fn moves(ran: &Ran) -> Vec<&str> {
    ran.out.lines().filter(|line| line.contains(" a=")).map(str::trim).collect()
}
