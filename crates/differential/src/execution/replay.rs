//! Recorded exchanges with a real cluster's daemon: our requests must equal those of the reference.

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

/// Recordings, and the program and arguments they were made with.
const RECORDINGS: [(&str, &str, &[&str]); 2] =
    [("hbal-exec", "hbal", &["-X", "-G", "default"]), ("harep-load", "harep", &["--dry-run"])];

/// Replays all recordings, playing the daemon's part.
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

/// Requests and answers of a recording. Repeated polls of the same jobs are reduced to the last one, because
/// the number of polls depends on timing.
fn parse(recording: &str) -> Option<(Vec<String>, Vec<String>)> {
    let mut exchanges: Vec<(String, String)> = Vec::new();
    let mut asked: Option<String> = None;
    for line in recording.lines() {
        let entry: Value = serde_json::from_str(line).ok()?;
        // The original text, to keep the order of its keys. Recording only added blanks.
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

/// Removes blanks between the tokens of JSON.
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
