//! Temporary directories that are removed even if their process is killed.
//!
//! A process holds a lock on each of its directories, so other processes can recognize abandoned ones. systemd-tmpfiles
//! also leaves locked directories alone.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use tempfile::TempDir;

/// Number of random characters at the end of a name, large enough that no user picks such a name.
pub(crate) const RANDOM_CHARS: usize = 16;

/// Attempts to create a directory or file. Another process can remove it as abandoned before it is locked.
pub(crate) const ATTEMPTS: usize = 256;

/// Purpose of a temporary directory, which selects the prefix of its name.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// The description of a cluster.
    Cluster,
    /// A copy of a database.
    Database,
    /// The database of the demonstration.
    Demo,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Cluster, Self::Database, Self::Demo];

    fn prefix(self) -> &'static str {
        match self {
            Self::Cluster => "allot-cluster-",
            Self::Database => "allot-database-",
            Self::Demo => "allot-demo-",
        }
    }
}

/// A directory that only its owner can enter. It is removed when this value is dropped, or else by
/// [`remove_abandoned`].
#[derive(Debug)]
pub struct TemporaryDirectory {
    directory: TempDir,
    // Fields are dropped in order: the directory must be removed before it is unlocked.
    _lock: File,
}

impl TemporaryDirectory {
    /// Creates a directory in the system's temporary directory.
    pub fn new(purpose: Purpose) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), purpose)
    }

    pub fn new_in(parent: &Path, purpose: Purpose) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let mut private = tempfile::Builder::new();
            private.prefix(purpose.prefix()).rand_bytes(RANDOM_CHARS);
            let directory = private.permissions(Permissions::from_mode(0o700)).tempdir_in(parent)?;
            let lock = match open(directory.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            // On a file system without locks, the directory needs none: `remove_abandoned` can't lock it
            // either, and leaves it alone.
            let is_locked = !matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if is_locked && is_at(&lock, directory.path()) {
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(io::Error::other("each directory was removed while it was made"))
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes directories of this process's user whose processes have ended. Returns the path of each, and the
/// result of its removal.
pub fn remove_abandoned() -> io::Result<Vec<(PathBuf, io::Result<()>)>> {
    remove_abandoned_in(&std::env::temp_dir())
}

/// Like [`remove_abandoned`], for directories from [`TemporaryDirectory::new_in`].
pub fn remove_abandoned_in(parent: &Path) -> io::Result<Vec<(PathBuf, io::Result<()>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)?.flatten() {
        if entry.file_name().to_str().is_some_and(is_ours) {
            let path = entry.path();
            // The lock is held until the directory is removed.
            if let Some(_lock) = abandoned(&path) {
                let removed = fs::remove_dir_all(&path);
                found.push((path, removed));
            }
        }
    }
    Ok(found)
}

/// Whether a name has the form of [`TemporaryDirectory`]'s names.
fn is_ours(name: &str) -> bool {
    let random = Purpose::ALL.iter().find_map(|purpose| name.strip_prefix(purpose.prefix()));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Locks an abandoned directory; `None` if a process holds the lock or the directory belongs to another user.
fn abandoned(path: &Path) -> Option<File> {
    let lock = open(path).ok()?;
    let is_own = lock.metadata().is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
    (is_own && lock.try_lock().is_ok() && is_at(&lock, path)).then_some(lock)
}

/// Opens a directory. Any other file, including a symbolic link, is an error.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether an open directory or file still has this path.
pub(crate) fn is_at(open: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (open.metadata(), fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn removed(parent: &Path) -> Vec<PathBuf> {
        let found = remove_abandoned_in(parent).expect("it can be read").into_iter();
        let mut paths: Vec<_> =
            found.map(|(path, removed)| removed.map(|()| path)).map(Result::unwrap).collect();
        paths.sort();
        paths
    }

    #[test]
    fn directories_are_private_and_go_with_their_value() {
        let parent = tempfile::tempdir().expect("a directory");
        for purpose in Purpose::ALL {
            let made = TemporaryDirectory::new_in(parent.path(), purpose).expect("a directory");
            assert_eq!(made.path().metadata().expect("it is there").mode() & 0o777, 0o700);
            assert!(made.path().file_name().and_then(|name| name.to_str()).is_some_and(is_ours));
            fs::write(made.path().join("file"), "text").expect("it is ours");
        }
        assert_eq!(fs::read_dir(parent.path()).expect("it is ours").count(), 0);
    }

    #[test]
    fn only_directories_without_a_process_are_removed() {
        let parent = tempfile::tempdir().expect("a directory");
        let at = |name: &str| parent.path().join(name);
        let locked = TemporaryDirectory::new_in(parent.path(), Purpose::Cluster).expect("a directory");
        for name in [
            "allot-cluster-left5678901234ab",
            "allot-database-left5678901234cd",
            "allot-demo-left5678901234ef",
        ] {
            fs::create_dir_all(at(name).join("inner")).expect("it is ours");
            fs::write(at(name).join("inner/file"), "text").expect("it is ours");
        }
        for name in [
            "allot-cluster-mine",
            "allot-database-backup",
            "allot-cluster-left567890123-ab",
            "allot-left5678901234ab",
            "cluster-left5678901234ab",
        ] {
            fs::create_dir(at(name)).expect("it is ours");
        }
        fs::write(at("allot-cluster-file567890123456"), "text").expect("it is ours");
        symlink(at("allot-cluster-mine"), at("allot-cluster-link567890123456")).expect("it is ours");
        symlink(at("allot-cluster-mine"), at("allot-cluster-left5678901234ab/link")).expect("it is ours");
        fs::write(at("allot-cluster-mine/kept"), "text").expect("it is ours");

        let left = [
            "allot-cluster-left5678901234ab",
            "allot-database-left5678901234cd",
            "allot-demo-left5678901234ef",
        ];
        assert_eq!(removed(parent.path()), left.map(at));
        assert!(locked.path().exists() && at("allot-cluster-mine/kept").exists());
        assert_eq!(fs::read_dir(parent.path()).expect("it is ours").count(), 8);
        assert_eq!(removed(parent.path()), [] as [PathBuf; 0]);
    }

    #[test]
    fn directories_that_are_just_being_made_are_not_lost() {
        let parent = tempfile::tempdir().expect("a directory");
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..300 {
                            let made = TemporaryDirectory::new_in(parent.path(), Purpose::Cluster);
                            let made = made.expect("a directory");
                            fs::write(made.path().join("file"), "text").expect("it is there");
                        }
                    })
                })
                .collect();
            while makers.iter().any(|maker| !maker.is_finished()) {
                let _ = remove_abandoned_in(parent.path());
            }
        });
    }
}
