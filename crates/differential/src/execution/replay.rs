//! Recorded exchanges with a real cluster's daemon: our requests must be those of the reference.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use chores::run::Executable;
use chores::tally::{Tally, report_failure};
use serde_json::Value;

use super::mask::mask;
use super::scenario::LIMIT;
use crate::compare;
use crate::luxi_server::{Reply, Server};
use crate::outcome;

/// The recordings, and the arguments with which they were made.
const RECORDINGS: [(&str, &str, &[&str]); 2] =
    [("hbal-exec", "hbal", &["-X", "-G", "default"]), ("harep-load", "harep", &["--dry-run"])];

/// Plays the daemon's part of all recordings.
pub fn replay(ours: &Executable, shared: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for (name, program, arguments) in RECORDINGS {
        let path = shared.join(format!("labs/ganeti/captures/luxi/{name}.luxi.jsonl"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let (requests, answers) = parse(&text).with_context(|| format!("{name}: cannot be read"))?;
        let mut answers = answers.into_iter();
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let server = Server::start(
            directory.path(),
            Box::new(move |_, _| answers.next().map_or(Reply::CutOff, Reply::Raw)),
        )?;
        let mut arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        arguments.push(format!("-L{}", server.socket().display()));
        let files: [(&str, &str); 0] = [];
        let outcome = outcome::of(ours, program, &arguments, &files, LIMIT)?;
        outcome.with_context(|| format!("{name}: not finished within {LIMIT:?}"))?;
        let found = compare::bytes(
            "requests",
            mask(&requests.join("\n"), 0).as_bytes(),
            mask(&server.requests().join("\n"), 0).as_bytes(),
        );
        tally.count(found.is_none());
        if let Some(found) = found {
            report_failure(format!("{name}: {program} {}\n{found}", arguments.join(" ")));
        }
    }
    Ok(tally)
}

/// Requests and answers of a recording. Of several answers to questions for the same jobs only the last is
/// kept, with its question: the others were pauses.
fn parse(recording: &str) -> Option<(Vec<String>, Vec<String>)> {
    let mut exchanges: Vec<(String, String)> = Vec::new();
    let mut asked: Option<String> = None;
    for line in recording.lines() {
        let entry: Value = serde_json::from_str(line).ok()?;
        // What was written, with the order of its keys; only blanks were added when it was recorded.
        let message = compact(line.split_once("\"msg\": ")?.1.strip_suffix('}')?);
        if entry["dir"] == "request" {
            asked = Some(message);
        } else {
            let request = asked.take()?;
            exchanges.retain(|(before, _)| *before != request || !request.contains("QueryJobs"));
            exchanges.push((request, message));
        }
    }
    Some(exchanges.into_iter().unzip())
}

/// JSON without the blanks between its tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted || !c.is_whitespace() {
            out.push(c);
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_texts_stay() {
        assert_eq!(compact(r#"{"a b": [1, "x \" y", "\\"]}"#), r#"{"a b":[1,"x \" y","\\"]}"#);
    }
}
