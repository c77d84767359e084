//! PostgreSQL's programs, and the empty server that is copied for each new one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::unprivileged::{NOBODY, give_away, is_root, output, unprivileged};

const MISSING: &str = "PostgreSQL's server is missing: install it with 'apt-get install postgresql' (as root), or put \
                       initdb on the path, and try again";

/// Directory and version of PostgreSQL's programs.
#[derive(Debug)]
pub(crate) struct Programs {
    directory: PathBuf,
    version: String,
}

impl Programs {
    /// Finds the programs: the newest version in Debian's directory, otherwise the first complete set in
    /// `PATH`.
    pub(crate) fn find() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .collect();
        versions.sort();
        // Links and wrappers in `PATH` lead to Debian's directory, which has all programs next to each other.
        found.splice(0..0, versions.into_iter().rev());
        let whole = |directory: &PathBuf| {
            ["initdb", "postgres", "pg_ctl", "psql"].iter().all(|name| directory.join(name).is_file())
        };
        let directory = found.into_iter().find(whole).ok_or(MISSING)?;
        let version = output(Command::new(directory.join("postgres")).arg("--version"))?;
        Ok(Self { directory, version: version.replace(|c: char| !c.is_ascii_alphanumeric(), "-") })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn postgres(&self) -> PathBuf {
        self.directory.join("postgres")
    }

    pub(crate) fn pg_ctl(&self) -> PathBuf {
        self.directory.join("pg_ctl")
    }

    pub(crate) fn psql(&self) -> PathBuf {
        self.directory.join("psql")
    }

    /// Creates the data directory of an empty server by copying a template.
    pub(crate) fn copy_empty(&self, data: &Path) -> Result<(), String> {
        let empty = self.empty()?;
        let mut copy = Command::new("cp");
        output(copy.args(["-a", "--reflink=auto"]).arg(&empty).arg(data)).map(drop)
    }

    fn empty(&self) -> Result<PathBuf, String> {
        let owner = if is_root() { NOBODY } else { fs::metadata("/proc/self").map_err(text)?.uid() };
        let store = std::env::temp_dir().join(format!("allot-empty-postgres-{owner}"));
        match make_private(&store) {
            Ok(()) => give_away(&store).map_err(text)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(text(error)),
        }
        let known = fs::symlink_metadata(&store).map_err(text)?;
        if !known.is_dir() || known.uid() != owner {
            return Err(format!("{} belongs to another user: remove it", store.display()));
        }
        // Tests start at the same time. The first one creates the template.
        let _lock = locked(&store.join(".lock")).map_err(text)?;
        let empty = store.join(&self.version);
        if !empty.exists() {
            self.initialise(&empty)?;
        }
        Ok(empty)
    }

    /// Created under another name and renamed, so that a directory with the final name is always complete.
    fn initialise(&self, empty: &Path) -> Result<(), String> {
        let unfinished = empty.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(text)?;
        }
        let mut command = Command::new(self.directory.join("initdb"));
        command.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        command.arg("--no-instructions").arg("-D").arg(&unfinished).current_dir("/");
        output(unprivileged(&mut command))?;
        fs::rename(&unfinished, empty).map_err(text)
    }
}

/// A file that is locked until it is dropped.
fn locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Creates a directory that only its owner can enter.
fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[expect(clippy::needless_pass_by_value, reason = "is passed to `map_err`")]
fn text(error: io::Error) -> String {
    format!("an empty PostgreSQL server cannot be made: {error}")
}
