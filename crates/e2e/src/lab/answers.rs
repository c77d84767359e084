//! Compares the `hail` answers that ours gave to the cluster's master daemon during a scenario with the
//! reference's answers to the same requests.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chores::places;
use chores::run::Executable;
use chores::tally::Tally;
use differential::compare;
use differential::known;
use differential::outcome;

const LIMIT: Duration = Duration::from_mins(1);

/// Compares the answers to all requests recorded in `directory`.
pub fn compare(directory: &Path, ours: &Executable) -> Result<Tally> {
    let reference = places::reference()?;
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".request.json").map(str::to_owned));
    }
    names.sort();
    let mut tally = Tally::default();
    for name in &names {
        let difference = one(directory, name, ours, &reference)?;
        tally.count(difference.is_none());
        if let Some(difference) = difference {
            println!("{name}:\n{difference}");
        }
    }
    println!("iallocator answers: {tally}");
    if names.is_empty() {
        bail!("the cluster asked no iallocator");
    }
    Ok(tally)
}

fn one(
    directory: &Path,
    name: &str,
    ours: &Executable,
    reference: &Executable,
) -> Result<Option<compare::Difference>> {
    let read = |suffix: &str| -> Result<String> {
        let path = directory.join(format!("{name}.{suffix}"));
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let request = read("request.json")?;
    // The first two lines are the wrapper's name and the path of the request.
    let options = read("argv")?.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    let arguments: Vec<String> = options.into_iter().chain(["request.json".to_owned()]).collect();
    let files = [("request.json", request.as_str())];
    let answer = |executable: &Executable| -> Result<Vec<u8>> {
        let outcome = outcome::of(executable, "hail", &arguments, &files, LIMIT)?;
        let outcome = outcome.with_context(|| format!("{name}: not finished within {LIMIT:?}"))?;
        Ok(known::normalise(&outcome.stdout))
    };
    let theirs = answer(reference)?;
    let given = known::normalise(read("response.json")?.as_bytes());
    let found = compare::bytes("the answer given to the cluster", &theirs, &given);
    Ok(match found {
        Some(difference) => Some(difference),
        None => compare::bytes("the answer given again", &theirs, &answer(ours)?),
    })
}
