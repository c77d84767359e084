//! `cargo xtask console`: the web console, built into `console/dist`, from where the build of the service takes it; and
//! its tests in a browser, a stage of `cargo xtask test`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::places::{self, need_program, root, target};
use crate::run::{Executable, must_run};
use crate::tally::{Tally, report_failure};

/// The oldest major version of Node.js that the tools run on: Debian 12 has it.
const OLDEST_NODE: u32 = 18;

/// What the console is built from; a change of anything else builds nothing.
const SOURCES: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let schema = arguments.switch("--schema");
    let tests = arguments.switch("--test");
    let bless = arguments.switch("--bless");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    if schema {
        let ours = ours.map_or_else(places::ours, Ok)?;
        return write_schema(&ours);
    }
    build()?;
    if tests || bless {
        let ours = ours.map_or_else(places::ours, Ok)?;
        return run(&ours, bless)?.conclude("console");
    }
    eprintln!(
        "The console is in {}; the next build of allot takes it in.",
        directory().join("dist").display()
    );
    Ok(())
}

fn directory() -> PathBuf {
    root().join("console")
}

/// Builds the console, unless what is there was built from the same. Installs Node.js if it is missing and that is
/// possible here.
pub fn build() -> Result<()> {
    let built = directory().join("dist/index.html");
    let stamp = target().join("console.stamp");
    let sources = fingerprint()?;
    if built.is_file() && fs::read_to_string(&stamp).is_ok_and(|of| of == sources) {
        return Ok(());
    }
    install()?;
    eprintln!("Building the console.");
    must_run(npm(&["run", "--silent", "build"]).stdout(std::io::stderr()))?;
    ensure!(built.is_file(), "the build of the console left no {}", built.display());
    fs::create_dir_all(target())?;
    fs::write(&stamp, sources).with_context(|| format!("cannot write {}", stamp.display()))
}

/// A text that differs where sources differ.
fn fingerprint() -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        digest(&directory().join(source), &mut hasher)?;
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn digest(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let wrong = || format!("cannot read {}", path.display());
    path.file_name().hash(hasher);
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(wrong)?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        paths.iter().try_for_each(|path| digest(path, hasher))
    } else {
        fs::read(path).with_context(wrong)?.hash(hasher);
        Ok(())
    }
}

/// Node.js, and the packages that the lock file names.
fn install() -> Result<()> {
    need_program("node", "nodejs")?;
    need_program("npm", "npm")?;
    let version = crate::run::output_of(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok());
    let major: u32 = major.with_context(|| format!("node --version says '{}'", version.trim()))?;
    if major < OLDEST_NODE {
        bail!("Node.js {major} is too old for the console's tools: install {OLDEST_NODE} or a later one");
    }
    let lock = directory().join("package-lock.json");
    let wanted = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let installed = directory().join("node_modules/.installed");
    if fs::read_to_string(&installed).is_ok_and(|of| of == wanted) {
        return Ok(());
    }
    must_run(npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"]).stdout(std::io::stderr()))?;
    // Last, so that what was left half installed is installed again.
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(directory()).stdin(Stdio::null());
    command
}

/// Writes the types of the API's bodies from what the service says of itself.
fn write_schema(ours: &Executable) -> Result<()> {
    install()?;
    must_run(with_service(ours, &["scripts/schema.mjs"]).stdout(std::io::stderr()))
}

/// Sees to it that what the tests need is there.
pub fn prepare() -> Result<()> {
    need_program("chromium", "chromium")?;
    build()
}

/// The tests: of the parts by themselves, then in a browser with this program.
pub fn check(ours: &Executable) -> Result<Tally> {
    run(ours, false)
}

fn run(ours: &Executable, bless: bool) -> Result<Tally> {
    prepare()?;
    install()?;
    // The build checks the types of tests as well, but is left out where nothing else was changed.
    let mut types = Command::new("node");
    types.args(["node_modules/typescript/bin/tsc", "--noEmit"]).current_dir(directory());
    must_run(types.stdin(Stdio::null()))?;
    let report = target().join("console.json");
    let mut command = with_service(
        ours,
        &["node_modules/vitest/vitest.mjs", "run", "--reporter=default", "--reporter=json"],
    );
    command.arg(format!("--outputFile={}", report.display()));
    if bless {
        command.env("ALLOT_BLESS", "1");
    }
    let _ = fs::remove_file(&report);
    // Whether all passed is in the report, with what did not.
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    let written = fs::read_to_string(&report)
        .with_context(|| format!("the tests of the console broke off ({status}): no report"))?;
    tally(&serde_json::from_str(&written)?)
}

/// Draws the calendar of a service in a browser, and prints what that took.
pub fn measure(ours: &Executable, url: &str) -> Result<()> {
    prepare()?;
    install()?;
    let mut command = with_service(ours, &["node_modules/vitest/vitest.mjs", "run", "tests/scale.test.ts"]);
    must_run(command.env("ALLOT_SCALE_URL", url))
}

/// A script that starts services of its own.
fn with_service(ours: &Executable, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(arguments).current_dir(directory()).stdin(Stdio::null());
    // It runs in another directory than we do.
    let ours = std::path::absolute(ours.path()).unwrap_or_else(|_| ours.path().to_owned());
    command.env("ALLOT", ours).env("ALLOT_CONSOLE_OUT", target().join("console"));
    command
}

/// Reads vitest's report: each test is a check.
fn tally(report: &Value) -> Result<Tally> {
    let mut tally = Tally::default();
    let files =
        report["testResults"].as_array().context("the report of the console's tests has no results")?;
    for file in files {
        let tests = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        for test in tests {
            match test["status"].as_str() {
                Some("passed") => tally.passed += 1,
                status => {
                    tally.failed += 1;
                    let messages = test["failureMessages"].as_array().map_or(&[][..], Vec::as_slice);
                    let message = messages.iter().find_map(Value::as_str).unwrap_or("no message");
                    let shown: String = message.lines().take(12).collect::<Vec<_>>().join("\n    ");
                    let name = test["fullName"].as_str().unwrap_or("a test");
                    report_failure(format!("console: {name}: {}: {shown}", status.unwrap_or("?")));
                }
            }
        }
        // A file that could not even be loaded has no tests.
        if tests.is_empty() {
            tally.failed += 1;
            let message = file["message"].as_str().unwrap_or("no message");
            report_failure(format!("console: {}: {message}", file["name"].as_str().unwrap_or("a file")));
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_test_of_the_report_is_counted_and_a_file_without_tests_has_failed() {
        let report = json!({"testResults": [
            {"name": "a", "assertionResults": [
                {"status": "passed", "fullName": "x"},
                {"status": "failed", "fullName": "y", "failureMessages": ["no\nmore"]},
                {"status": "skipped", "fullName": "z", "failureMessages": []},
            ]},
            {"name": "b", "assertionResults": [], "message": "it cannot be loaded"},
        ]});
        assert_eq!(tally(&report).unwrap(), Tally { passed: 1, failed: 3, skipped: 0 });
        assert!(tally(&json!({})).is_err());
    }

    #[test]
    fn what_is_not_built_is_not_mistaken_for_built() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &Path| {
            let mut hasher = DefaultHasher::new();
            digest(path, &mut hasher).map(|()| hasher.finish())
        };
        fs::write(folder.path().join("a"), "1").unwrap();
        let before = of(folder.path()).unwrap();
        assert_eq!(before, of(folder.path()).unwrap());
        fs::write(folder.path().join("a"), "2").unwrap();
        assert_ne!(before, of(folder.path()).unwrap());
        assert!(of(&folder.path().join("missing")).is_err());
    }
}
