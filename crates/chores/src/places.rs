//! Paths of the checkout, build results, the reference and the reference material. Builds our programs, and
//! installs Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::run::{Executable, must_run};

/// Root of the checkout.
pub fn root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).unwrap_or(crate_directory).to_owned()
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether this runs in continuous integration (`CI`).
pub fn unattended() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// Prefixes of variables with which cargo describes a program's own package to it.
const OF_THIS_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// `cargo` in the checkout, with the environment of a call by hand.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // These variables describe this program's package. Build scripts of dependencies, such as ring's, check
    // whether they changed. Half of the dependencies would be rebuilt after each `cargo build` of a
    // developer.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OF_THIS_PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    if unattended() {
        command.env("CARGO_TERM_COLOR", "never").env("CARGO_NET_RETRY", "5");
        // Nothing is built twice there, and preparing for incremental builds costs a tenth of the time.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Directory of the reference material: `$ALLOT_SHARED`, or `../shared`. `None` if it doesn't exist; it isn't
/// part of the repository.
pub fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("ALLOT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    path.is_dir().then_some(path)
}

/// Arguments that build a program with the features that its tests have, so that crates aren't built twice,
/// for programs and for tests. Cargo unifies features over the selected packages. Without `--package`, these
/// are all of the workspace, and `--bin` builds a part of them. Features of development dependencies only
/// count if a test is built too, so this builds the smallest one.
const AS_IN_TESTS: [&str; 2] = ["--test", "independence"];

/// Builds development versions of programs of the workspace.
pub fn build(programs: &[&str]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet"]).args(AS_IN_TESTS);
    for program in programs {
        build.args(["--bin", program]);
    }
    must_run(&mut build)
}

/// Builds the development version of our program: its core is optimized, and it has additional self-checks.
pub fn ours() -> Result<Executable> {
    build(&["allot"])?;
    Ok(ours_as_built())
}

/// The development version as it was last built.
pub fn ours_as_built() -> Executable {
    Executable::new(development_build("allot"))
}

/// Builds the development version for a waiting user: shows the build, and doesn't optimize the crates in
/// `unoptimized`. Development builds usually optimize them for tests that compute for minutes. Dependencies
/// are shared with other development builds.
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

/// Path of a program's development build.
pub fn development_build(program: &str) -> PathBuf {
    target().join("debug").join(program)
}

/// Builds the release version of our program, for measurements of speed and for packages. This takes several
/// times as long.
pub fn released() -> Result<Executable> {
    must_run(cargo().args(["build", "--quiet", "--release", "--package", "allot"]))?;
    Ok(Executable::new(target().join("release/allot")))
}

/// The installed reference. Installs it if that is possible here.
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

/// A seed that no earlier run used, followed by 65,535 unused ones.
pub fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()) << 16
}

/// Whether a program is in `PATH`.
pub fn has_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(name).is_file())
}

/// Installs a Debian package if the program `name` is missing.
pub fn need_program(name: &str, package: &str) -> Result<()> {
    if has_program(name) { Ok(()) } else { install(&[package], name) }
}

/// Installs libclang, which generates bindings to C, if it is missing.
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

/// Installs PostgreSQL's server if it is missing. Debian doesn't put it in `PATH`.
pub fn need_postgres() -> Result<()> {
    if scratch_postgres::is_installed() { Ok(()) } else { install(&["postgresql"], "PostgreSQL's server") }
}

/// Whether this process runs as root.
fn is_root() -> bool {
    crate::run::output_of(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Fails unless this runs as root. Labs change the machine's network and packages.
pub fn need_root() -> Result<()> {
    if is_root() {
        return Ok(());
    }
    bail!("the lab makes network namespaces and installs packages: run it as root")
}

static INSTALLING: Mutex<()> = Mutex::new(());

/// Installs Debian packages, or fails with a one-line hint.
fn install(packages: &[&str], what: &str) -> Result<()> {
    let wanted = packages.join(" ");
    let hint =
        format!("{what} is missing: install it with 'apt-get install {wanted}' (as root) and try again");
    if !is_root() || !has_program("apt-get") {
        bail!(hint);
    }
    // Only one installation can run at a time.
    let _others_wait = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    eprintln!("installing {wanted}");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments).stdout(std::io::stderr());
        command.status().is_ok_and(|status| status.success())
    };
    // The first attempt fails if the package index is missing or outdated.
    let arguments = [&["install", "-qq", "-y", "--no-install-recommends"], packages].concat();
    if apt(&arguments) || (apt(&["update", "-qq"]) && apt(&arguments)) { Ok(()) } else { bail!(hint) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn cargo_is_called_as_it_would_be_by_hand() {
        // Cargo sets it when it runs this test.
        let name = OsStr::new("CARGO_MANIFEST_DIR");
        assert!(std::env::var_os(name).is_some());
        assert!(cargo().get_envs().any(|(removed, value)| removed == name && value.is_none()));
    }
}
