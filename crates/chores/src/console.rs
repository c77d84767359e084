//! The web console: built into `console/dist`, from where the build of the service takes it, and its scripts, which run
//! beside a service.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::places::{need_program, root, target};
use crate::run::{Executable, must_run, output_of};

/// The oldest major version of Node.js that the tools run on: Debian 12 has it.
const OLDEST_NODE: u32 = 18;

/// What the console is built from; a change of anything else builds nothing.
const SOURCES: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];

/// Where it is in the checkout.
pub fn directory() -> PathBuf {
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
pub fn install() -> Result<()> {
    need_program("node", "nodejs")?;
    need_program("npm", "npm")?;
    let version = output_of(Command::new("node").arg("--version"))?;
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

/// The browser of the tests; installs it if missing.
pub fn need_browser() -> Result<()> {
    need_program("chromium", "chromium")
}

/// Sees to it that what the tests need is there.
pub fn prepare() -> Result<()> {
    need_browser()?;
    build()
}

/// A script that starts services of its own.
pub fn with_service(ours: &Executable, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(arguments).current_dir(directory()).stdin(Stdio::null());
    // It runs in another directory than we do.
    let ours = std::path::absolute(ours.path()).unwrap_or_else(|_| ours.path().to_owned());
    command.env("ALLOT", ours).env("ALLOT_CONSOLE_OUT", target().join("console"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

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
