//! `cargo xtask vectors`: replays recorded inputs and outputs of two versions of the reference.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::{Executable, must_run};
use chores::tally::{MOST_SHOWN, Tally, report_failure};
use serde_json::Value;

use crate::compare;
use crate::known;
use crate::outcome;

/// Programs with recorded runs.
const PROGRAMS: [&str; 6] = ["hail", "hbal", "hcheck-hinfo", "hroller", "hspace", "hsqueeze"];
/// Versions of the reference, and the options that make our program behave like each.
const VERSIONS: [(&str, &[&str]); 2] = [("3.0.2", &[]), ("head", &["--n1-initial=recorded"])];
const LIMIT: Duration = Duration::from_mins(1);

pub fn main(mut arguments: Arguments) -> Result<()> {
    let ours = arguments.text("--ours")?.map_or_else(places::ours, |path| Ok(Executable::new(path)))?;
    arguments.finish()?;
    let Some(shared) = places::shared() else {
        bail!("the vectors are in ../shared (or $ALLOT_SHARED), which is not there");
    };
    run(&ours, &shared)?.conclude("vectors")
}

/// Unpacks and replays all vectors.
pub fn run(ours: &Executable, shared: &Path) -> Result<Tally> {
    let directory = places::target().join("vectors");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    places::need_program("xz", "xz-utils")?;
    let archive = shared.join("spec/vectors.tar.xz");
    must_run(Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&directory))?;
    let mut tally = Tally::default();
    for (program, (version, options)) in PROGRAMS.iter().flat_map(|p| VERSIONS.map(|v| (*p, v))) {
        let name = format!("{program}.{version}.jsonl");
        let path = directory.join("vectors").join(&name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut executable = ours.clone();
        executable.extra = options.iter().map(|o| (*o).to_owned()).collect();
        let mut of_file = Tally::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let vector: Value = serde_json::from_str(line).context("a vector is not JSON")?;
            let difference = replay(&executable, &vector)?;
            of_file.count(difference.is_none());
            if let Some(difference) = difference.filter(|_| of_file.failed <= MOST_SHOWN) {
                let arguments = arguments_of(&vector).join(" ");
                report_failure(format!("{name} line {}: {arguments}\n{difference}", number + 1));
            }
        }
        println!("{name}: {of_file}");
        tally += of_file;
    }
    Ok(tally)
}

fn arguments_of(vector: &Value) -> Vec<String> {
    let words = vector["args"].as_array().into_iter().flatten();
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn replay(executable: &Executable, vector: &Value) -> Result<Option<compare::Difference>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let files: Vec<(String, String)> =
        vector["files"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), text(v))).collect();
    let program = text(&vector["tool"]);
    let outcome = outcome::of(executable, &program, &arguments_of(vector), &files, LIMIT)?;
    let outcome = outcome.with_context(|| format!("{program} did not finish within {LIMIT:?}"))?;
    let expected = vector["rc"].as_i64().map(|rc| rc.to_string()).unwrap_or_default();
    let status = outcome.status.map(|s| s.to_string()).unwrap_or_default();
    let found = compare::bytes("exit status", expected.as_bytes(), status.as_bytes());
    Ok(found.or_else(|| {
        let expected = known::normalise(text(&vector["stdout"]).as_bytes());
        compare::bytes("standard output", &expected, &known::normalise(&outcome.stdout))
    }))
}
