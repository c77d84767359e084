//! Recorded answers of a real master daemon and a real remote API.
//!
//! They are served to the reference and to our program, which must handle them in the same way.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use chores::run::{Executable, write};
use chores::tally::{MOST_SHOWN, Tally, report_failure};
use serde_json::Value;

use super::{LIMIT, read};
use crate::compare::{self, Difference};
use crate::known;
use crate::live::{self, Api};
use crate::luxi_server;
use crate::outcome::{self, Outcome};

/// Runs for each recording. `SOURCE` stands for the option or argument that names it.
const RUNS: &[(&str, &[&str])] = &[
    ("hbal", &["SOURCE", "-Gdefault", "-C", "-p", "--print-instances", "-S", "saved"]),
    ("hbal", &["SOURCE", "-Ggroup2", "-vvvv"]),
    ("hbal", &["SOURCE", "-Gdefault", "--evac-mode", "--ignore-soft-errors", "--static-kvm-node-memory=0"]),
    ("hinfo", &["SOURCE", "-vvv", "-p", "--print-instances"]),
    ("hcheck", &["SOURCE", "--machine-readable"]),
    ("hspace", &["SOURCE", "--machine-readable", "-l20"]),
    ("hroller", &["SOURCE", "--ignore-non-redundant", "--print-moves"]),
    ("hsqueeze", &["SOURCE", "-C", "-v"]),
    ("hscan", &["SOURCE", "-p"]),
];

/// Recorded answers as files, and the option that makes programs read them.
struct Recording {
    name: String,
    source: String,
    files: Vec<(String, Vec<u8>)>,
}

pub(super) fn run(ours: &Executable, reference: &Executable, captures: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    for recording in of_daemon(&captures.join("luxi"))? {
        compare(&recording, ours, reference, &mut tally)?;
    }
    let documents = of_api(&captures.join("rapi"))?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    for (name, content) in &documents {
        write(&directory.path().join(name), content)?;
    }
    let api = Api::start(directory.path())?;
    let over_http = Recording { name: "RAPI over HTTP".to_owned(), source: api.url(), files: Vec::new() };
    compare(&over_http, ours, reference, &mut tally)?;
    let from_files =
        Recording { name: "RAPI from files".to_owned(), source: "file://.".to_owned(), files: documents };
    compare(&from_files, ours, reference, &mut tally)?;
    Ok(tally)
}

fn compare(
    recording: &Recording,
    ours: &Executable,
    reference: &Executable,
    tally: &mut Tally,
) -> Result<()> {
    for (program, words) in RUNS {
        let over_luxi = recording.source.starts_with("-L");
        if *program == "hsqueeze" && !over_luxi {
            // hsqueeze has no option for a remote API.
            continue;
        }
        let arguments = arguments(program, words, &recording.source);
        let outcome = |executable: &Executable| -> Result<Outcome> {
            let outcome = outcome::of(executable, program, &arguments, &recording.files, LIMIT)?;
            outcome.with_context(|| format!("{}: not finished within {LIMIT:?}", recording.name))
        };
        let found = difference(&outcome(reference)?, &outcome(ours)?);
        tally.count(found.is_none());
        if let Some(found) = found.filter(|_| tally.failed <= MOST_SHOWN) {
            report_failure(format!("{}: {program} {}\n{found}", recording.name, arguments.join(" ")));
        }
    }
    Ok(())
}

/// The remote API is an argument of `hscan`, but an option of all other programs.
fn arguments(program: &str, words: &[&str], source: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    for word in words {
        match *word {
            "SOURCE" if source.starts_with("-L") || program == "hscan" => arguments.push(source.to_owned()),
            "SOURCE" => arguments.extend(["-m".to_owned(), source.to_owned()]),
            word => arguments.push(word.to_owned()),
        }
    }
    arguments
}

fn difference(theirs: &Outcome, mine: &Outcome) -> Option<Difference> {
    let status = |outcome: &Outcome| {
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        format!("{:?}, {}", outcome.status, stderr.lines().next().unwrap_or_default()).into_bytes()
    };
    // All recordings are readable, so a run that prints nothing failed, even if the reference's did too.
    if theirs.status != mine.status || mine.stdout.is_empty() {
        return compare::bytes("exit status", &status(theirs), &[status(mine), b" (ours)".to_vec()].concat());
    }
    let out = |outcome: &Outcome| known::normalise(&outcome.stdout);
    let files = |outcome: &Outcome| -> Vec<u8> {
        let content = |(name, content): &(String, Vec<u8>)| [name.as_bytes(), b"\n", content].concat();
        outcome.files.iter().flat_map(content).collect()
    };
    compare::bytes("standard output", &out(theirs), &out(mine))
        .or_else(|| compare::bytes("standard error", &theirs.stderr, &mine.stderr))
        .or_else(|| compare::bytes("files written", &files(theirs), &files(mine)))
}

/// Recordings of a load of the cluster over a master daemon's socket.
fn of_daemon(directory: &Path) -> Result<Vec<Recording>> {
    let mut recordings = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = answers(&read(&path)?).with_context(|| format!("{name}: not a recording"))?;
        let complete = files.len() == 4 && files.iter().any(|(file, _)| file == live::MARK);
        anyhow::ensure!(complete, "{name}: not the four answers of a load");
        recordings.push(Recording { name, source: format!("-L{}", luxi_server::SOCKET), files });
    }
    recordings.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(recordings)
}

/// Answers of a recording that belong to the load, under the file names that the daemon reads.
fn answers(lines: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut asked = None;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        let message = &line["msg"];
        if line["dir"] == "request" {
            let load = ["Query", "QueryClusterInfo"].iter().any(|method| message["method"] == *method);
            asked = load.then(|| message["args"][0].as_str().unwrap_or("cluster").to_owned());
        } else if let Some(subject) = asked.take() {
            files.push((format!("{subject}.luxi"), message["result"].to_string().into_bytes()));
        }
    }
    Ok(files)
}

/// Documents of the remote API, under the names that `file://` looks for.
fn of_api(directory: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let recorded = [
        ("groups.json", "_2_groups_bulk_1.json"),
        ("nodes.json", "_2_nodes_bulk_1.json"),
        ("instances.json", "_2_instances_bulk_1.json"),
        ("info.json", "_2_info.json"),
    ];
    let documents = recorded.map(|(name, recorded)| {
        read(&directory.join(recorded)).map(|text| (name.to_owned(), text.into_bytes()))
    });
    documents.into_iter().collect()
}
