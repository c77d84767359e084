//! The web console: its build into `console/dist`, from where the service's build takes it, and its scripts,
//! which run next to a service.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::places::{need_program, root, target};
use crate::run::{Executable, must_run, output_of};

/// Oldest major version of Node.js that the tools support: the one in Debian 12.
const OLDEST_NODE: u32 = 18;

/// Sources of the console. Other changes don't trigger a build.
const SOURCES: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];

/// The console's directory in the checkout.
pub fn directory() -> PathBuf {
    root().join("console")
}

/// Builds the console unless it was already built from the same sources. Installs Node.js if it is missing
/// and can be installed here.
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

/// Hash of all sources.
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

/// Installs Node.js and the packages in the lock file.
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
    // Last, so that an interrupted installation is repeated.
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(directory()).stdin(Stdio::null());
    command
}

/// Installs the browser for tests if it is missing.
pub fn need_browser() -> Result<()> {
    need_program("chromium", "chromium")
}

/// Installs and builds what the tests need.
pub fn prepare() -> Result<()> {
    need_browser()?;
    build()
}

/// A Node.js script that starts its own services.
pub fn with_service(ours: &Executable, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(arguments).current_dir(directory()).stdin(Stdio::null());
    // The script runs in another directory, so its path must be absolute.
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
