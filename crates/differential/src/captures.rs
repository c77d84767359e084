//! `cargo xtask captures`: replays traffic recorded on a real cluster, namely iallocator requests of its
//! master daemon with their answers, and exchanges with the master daemon and the remote API.

mod replay;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use chores::tally::{MOST_SHOWN, Tally, report_failure};

use crate::compare;
use crate::known;
use crate::outcome;

const LIMIT: Duration = Duration::from_mins(1);

pub fn main(mut arguments: Arguments) -> Result<()> {
    let ours = arguments.text("--ours")?.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    arguments.finish()?;
    let Some(shared) = places::shared() else {
        bail!("the captures are in ../shared (or $ALLOT_SHARED), which is not there");
    };
    run(&ours, &places::reference()?, &shared)?.conclude("captures")
}

pub fn run(ours: &Executable, reference: &Executable, shared: &Path) -> Result<Tally> {
    let mut tally = requests(ours, reference, shared)?;
    tally += replay::run(ours, reference, &shared.join("labs/ganeti/captures"))?;
    Ok(tally)
}

/// Replays all requests. Our answer must equal the installed reference's, and also the recorded one if that
/// came from hail (some captures exercise broken allocators).
fn requests(ours: &Executable, reference: &Executable, shared: &Path) -> Result<Tally> {
    let directory = shared.join("labs/ganeti/captures/iallocator");
    let index = read(&directory.join("INDEX.txt"))?;
    let mut tally = Tally::default();
    let mut of_hail = 0;
    for line in index.lines().filter(|line| !line.trim().is_empty()) {
        let (name, recorded) = parse(line).with_context(|| format!("INDEX.txt: cannot read '{line}'"))?;
        let request = read(&directory.join(format!("{name}.request.json")))?;
        let response =
            fs::read_to_string(directory.join(format!("{name}.response.json"))).unwrap_or_default();
        // With `--mond`, the reference would send network queries to nodes that no longer exist.
        let words = recorded.into_iter().filter(|word| word != "--mond" && word != "--mond=yes");
        let mut arguments: Vec<String> = words.collect();
        arguments.push("request.json".to_owned());
        let files = [("request.json", request.as_str())];
        let answer = |executable: &Executable| -> Result<_> {
            let outcome = outcome::of(executable, "hail", &arguments, &files, LIMIT)?;
            outcome.with_context(|| format!("{name}: not finished within {LIMIT:?}"))
        };
        let (theirs, mine) = (answer(reference)?, answer(ours)?);
        let mut found = compare::bytes(
            "exit status",
            format!("{:?}", theirs.status).as_bytes(),
            format!("{:?}", mine.status).as_bytes(),
        );
        let (theirs, mine) = (known::normalise(&theirs.stdout), known::normalise(&mine.stdout));
        found = found.or_else(|| compare::bytes("standard output", &theirs, &mine));
        let same_text = |a: &[u8], b: &str| String::from_utf8_lossy(a).trim_end() == b.trim_end();
        if !response.is_empty() && same_text(&theirs, &response) {
            of_hail += 1;
            if found.is_none() && !same_text(&mine, &response) {
                found = compare::bytes("recorded answer", response.as_bytes(), &mine);
            }
        }
        tally.count(found.is_none());
        if let Some(found) = found.filter(|_| tally.failed <= MOST_SHOWN) {
            report_failure(format!("{name}: hail {}\n{found}", arguments.join(" ")));
        }
    }
    println!("captures: {of_hail} of the recorded answers are the installed reference's");
    Ok(tally)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// `NAME | args: ARGS | rc=N seconds=S`
fn parse(line: &str) -> Option<(String, Vec<String>)> {
    let mut parts = line.split(" | ");
    let name = parts.next()?.trim().to_owned();
    let arguments = parts.next()?.strip_prefix("args:")?.trim();
    let words = arguments.split_whitespace().filter(|word| *word != "-").map(str::to_owned).collect();
    Some((name, words))
}
