//! `cargo xtask advisories`: looks up dependencies in a database of known faults.
//!
//! The database is a directory in the format of `RustSec`, which the caller names. It changes every day: if
//! it were fetched here, the outcome of a run would depend on its time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use chores::arguments::Arguments;
use chores::run::Executable;
use chores::stages::{Outcome, Stage};
use chores::tally::{Tally, report_failure};
use chores::{places, program, stages};
use rustsec::advisory::Informational;
use rustsec::report::Settings;
use rustsec::{Database, Lockfile, Report};

/// Variable with the path of the database.
const VARIABLE: &str = "ALLOT_ADVISORY_DB";
/// All lock files of the repository, each with its own versions of dependencies.
const LOCK_FILES: [&str; 3] = ["Cargo.lock", "exact/Cargo.lock", "fuzz/Cargo.lock"];

/// Reason for skipping the stage.
const NO_DATABASE: &str =
    "no advisory database: set ALLOT_ADVISORY_DB to a checkout of a database in RustSec's format";

/// The database that the environment names, if it does.
fn database() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

const HELP: &str = "\
Whether a dependency has a fault that is known.

Usage: advisories [--database DIR]

cargo xtask builds this program before it runs it.
";

/// This program's only stage of `cargo xtask test`.
const STAGES: [Stage<Outcome>; 1] = [("advisories", stage)];

fn main() -> ExitCode {
    program::main(HELP, dispatch)
}

fn dispatch(mut arguments: Arguments) -> Result<()> {
    let given = arguments.text("--database")?.map(PathBuf::from);
    if arguments.switch("test") {
        return stages::main(arguments, &STAGES);
    }
    arguments.finish()?;
    let database = given.or_else(database).context(NO_DATABASE)?;
    check(&database)?.conclude("advisories")
}

/// Skipped if the environment names no database.
fn stage(_: &Executable) -> Result<Outcome> {
    match database() {
        Some(database) => check(&database).map(Outcome::Counted),
        None => Ok(Outcome::Skipped(NO_DATABASE)),
    }
}

/// Looks up all dependencies in all lock files.
fn check(database: &Path) -> Result<Tally> {
    let known = Known::read(database)?;
    let mut tally = Tally::default();
    for name in LOCK_FILES {
        known.look_up(&places::root().join(name), &mut tally)?;
    }
    Ok(tally)
}

/// A database of advisories.
struct Known(Database);

impl Known {
    fn read(directory: &Path) -> Result<Self> {
        let database = Database::open(directory)
            .with_context(|| format!("{} isn't an advisory database", directory.display()))?;
        let count = database.iter().count();
        ensure!(count > 0, "there is no advisory in {}", directory.display());
        println!("advisories: {count} in {}", directory.display());
        Ok(Self(database))
    }

    /// A vulnerability, or an unsound crate, fails. Unmaintained crates are only reported.
    fn look_up(&self, lock_file: &Path, tally: &mut Tally) -> Result<()> {
        let locked =
            Lockfile::load(lock_file).with_context(|| format!("cannot read {}", lock_file.display()))?;
        let settings = Settings {
            informational_warnings: vec![
                Informational::Unsound,
                Informational::Unmaintained,
                Informational::Notice,
            ],
            ..Settings::default()
        };
        let report = Report::generate(&self.0, &locked, &settings);
        let unsound = report.warnings.values().flatten().filter(|warning| warning.is_unsound());
        let unsound = unsound.filter_map(|warning| Some((warning.advisory.as_ref()?, &warning.package)));
        let faults = report.vulnerabilities.list.iter().map(|fault| (&fault.advisory, &fault.package));
        let before = tally.failed;
        for (advisory, package) in faults.chain(unsound) {
            tally.count(false);
            let (id, title, name, version) = (&advisory.id, &advisory.title, &package.name, &package.version);
            report_failure(format!("{}: {name} {version}: {id}: {title}", lock_file.display()));
        }
        for warning in report.warnings.values().flatten().filter(|warning| !warning.is_unsound()) {
            let id = warning.advisory.as_ref().map_or("", |advisory| advisory.id.as_str());
            println!(
                "advisories: {} {} is {}: {id}",
                warning.package.name,
                warning.package.version,
                warning.kind.as_str()
            );
        }
        if tally.failed == before {
            tally.count(true);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A package that our own lock file has, in any version.
    const PACKAGE: &str = "tokio";

    /// A database with one advisory for that package. `lines` are added to its header.
    fn planted(package: &str, lines: &str, patched: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("crates").join(package);
        fs::create_dir_all(&place).unwrap();
        let text = format!(
            "```toml\n[advisory]\nid = \"RUSTSEC-2026-9999\"\npackage = \"{package}\"\ndate = \"2026-01-02\"\n{lines}\n\
             [versions]\npatched = [{patched}]\n```\n\n# A planted fault\n\nIt is not real.\n"
        );
        fs::write(place.join("RUSTSEC-2026-9999.md"), text).unwrap();
        directory
    }

    fn looked_up(database: &tempfile::TempDir) -> Tally {
        check(database.path()).unwrap()
    }

    #[test]
    fn a_dependency_with_a_known_fault_fails() {
        let tally = looked_up(&planted(PACKAGE, "", ""));
        assert!(tally.failed >= 1, "{tally}");
        let tally = looked_up(&planted(PACKAGE, "informational = \"unsound\"", ""));
        assert!(tally.failed >= 1, "{tally}");
    }

    #[test]
    fn a_fault_that_is_fixed_in_the_version_used_or_of_another_crate_passes() {
        for database in [
            planted(PACKAGE, "", "\">= 0.1.0\""),
            planted("nobody-uses-this", "", ""),
            planted(PACKAGE, "withdrawn = \"2026-01-03\"", ""),
            planted(PACKAGE, "informational = \"unmaintained\"", ""),
        ] {
            assert_eq!(looked_up(&database), Tally { passed: LOCK_FILES.len(), failed: 0, skipped: 0 });
        }
    }

    #[test]
    fn what_is_no_database_does_not_pass() {
        let directory = tempfile::tempdir().unwrap();
        assert!(check(directory.path()).is_err());
        fs::create_dir(directory.path().join("crates")).unwrap();
        assert!(check(directory.path()).is_err(), "empty");
    }
}
