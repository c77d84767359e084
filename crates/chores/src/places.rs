//! Where things are: the checkout, what is built, the reference, and the material beside the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::run::{Executable, must_run};

/// The checkout.
pub fn root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).unwrap_or(crate_directory).to_owned()
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether this runs unattended: then the recorded versions of dependencies are binding.
pub fn unattended() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// Variables by which cargo tells a program that it runs of the program's package begin like this.
const OF_THIS_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// `cargo`, in the checkout, as it would be called by hand.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo tells this program of its own package. Scripts that build dependencies look whether that is different,
    // as that of ring does, and half of the dependencies would be built again after each `cargo build` of a developer.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OF_THIS_PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    if unattended() {
        command.env("CARGO_TERM_COLOR", "never").env("CARGO_NET_RETRY", "5");
        // Nothing is built twice there, and to prepare for that costs a tenth of the time.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// The reference material beside the checkout: `$ALLOT_SHARED`, or `../shared`. Not everybody has it.
pub fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("ALLOT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    path.is_dir().then_some(path)
}

/// What makes programs of the workspace be built with the features that its tests have, so that nothing is built once for a
/// program and again for the tests. Cargo chooses features by the packages that it is told to build: without a `--package`
/// those are all of the workspace, of which `--bin` then builds a part. What development dependencies ask for counts only
/// if a test is built as well, so the smallest one is.
const AS_IN_TESTS: [&str; 2] = ["--test", "independence"];

/// Builds programs of the workspace as developers have them.
pub fn build(programs: &[&str]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet"]).args(AS_IN_TESTS);
    for program in programs {
        build.args(["--bin", program]);
    }
    must_run(&mut build)
}

/// Builds and returns our program as developers have it: its core is optimised, and it checks itself more.
pub fn ours() -> Result<Executable> {
    build(&["allot"])?;
    Ok(ours_as_built())
}

/// The same, as it was built last.
pub fn ours_as_built() -> Executable {
    Executable::new(development_build("allot"))
}

/// The same for somebody who looks on: what is built is shown, and these crates are not optimized, although development
/// builds do that for tests which compute for minutes. Dependencies are those of other development builds.
pub fn ours_in_sight(unoptimized: &[&str]) -> Result<Executable> {
    eprintln!("Building allot; the first time this takes some minutes.");
    let mut build = cargo();
    build.args(["build", "--bin", "allot"]).args(AS_IN_TESTS);
    for name in unoptimized {
        build.args(["--config", &format!("profile.dev.package.{name}.opt-level=0")]);
    }
    must_run(&mut build)?;
    Ok(ours_as_built())
}

/// Where cargo builds programs as developers have them.
pub fn development_build(program: &str) -> PathBuf {
    target().join("debug").join(program)
}

/// Builds and returns our program as users get it, which takes several times as long to build: for what is about
/// its speed, and for packages.
pub fn released() -> Result<Executable> {
    must_run(cargo().args(["build", "--quiet", "--release", "--package", "allot"]))?;
    Ok(Executable::new(target().join("release/allot")))
}

/// The installed reference; installs it if that is possible here.
pub fn reference() -> Result<Executable> {
    if let Some(path) = installed_reference() {
        return Ok(Executable::new(path));
    }
    install(&["ganeti-htools"], "the reference")?;
    match installed_reference() {
        Some(path) => Ok(Executable::new(path)),
        None => bail!("the package ganeti-htools is installed, yet /usr/bin/hbal is missing"),
    }
}

fn installed_reference() -> Option<PathBuf> {
    let given = std::env::var_os("ALLOT_REFERENCE").map(PathBuf::from);
    let usual = ["/usr/bin/hbal", "/usr/lib/ganeti/iallocators/hail"].map(PathBuf::from);
    given.into_iter().chain(usual).find(|path| path.exists())
}

/// A seed that no earlier run had, with room for many that follow it.
pub fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()) << 16
}

/// Whether a program is on the path.
pub fn has_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(name).is_file())
}

/// A program that a Debian package of (by default) the same name brings; installs it if missing.
pub fn need_program(name: &str, package: &str) -> Result<()> {
    if has_program(name) { Ok(()) } else { install(&[package], name) }
}

/// The library of clang, with which bindings to C are made; installs it if missing.
pub fn need_libclang() -> Result<()> {
    let names = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_library = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libclang.so") || name.starts_with("libclang-") && name.contains(".so")
    };
    let versions =
        names(Path::new("/usr/lib")).into_iter().filter(|path| path.to_string_lossy().contains("/llvm"));
    let there = versions.flat_map(|version| names(&version.join("lib"))).any(|file| is_library(&file));
    if there { Ok(()) } else { install(&["libclang-dev"], "the library of clang") }
}

/// PostgreSQL's server, which Debian keeps off the path; installs it if missing.
pub fn need_postgres() -> Result<()> {
    if scratch_postgres::is_installed() { Ok(()) } else { install(&["postgresql"], "PostgreSQL's server") }
}

/// Whether we are root.
fn is_root() -> bool {
    crate::run::output_of(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Labs change the machine that they run on.
pub fn need_root() -> Result<()> {
    if is_root() {
        return Ok(());
    }
    bail!("the lab makes network namespaces and installs packages: run it as root")
}

static INSTALLING: Mutex<()> = Mutex::new(());

/// Installs Debian packages, or fails with one line that says what to install.
fn install(packages: &[&str], what: &str) -> Result<()> {
    let wanted = packages.join(" ");
    let hint =
        format!("{what} is missing: install it with 'apt-get install {wanted}' (as root) and try again");
    if !is_root() || !has_program("apt-get") {
        bail!(hint);
    }
    // Only one at a time may change what is installed.
    let _others_wait = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    eprintln!("installing {wanted}");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments).stdout(std::io::stderr());
        command.status().is_ok_and(|status| status.success())
    };
    // The index may be too old or absent; the first attempt then fails.
    let arguments = [&["install", "-qq", "-y", "--no-install-recommends"], packages].concat();
    if apt(&arguments) || (apt(&["update", "-qq"]) && apt(&arguments)) { Ok(()) } else { bail!(hint) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn cargo_is_called_as_it_would_be_by_hand() {
        // Cargo, which runs this test, has set it.
        let name = OsStr::new("CARGO_MANIFEST_DIR");
        assert!(std::env::var_os(name).is_some());
        assert!(cargo().get_envs().any(|(removed, value)| removed == name && value.is_none()));
    }
}
