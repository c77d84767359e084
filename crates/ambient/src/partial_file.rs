//! Files that are moved to their target once they are complete.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use tempfile::{Builder, TempPath};

use crate::temporary::{ATTEMPTS, RANDOM_CHARS, is_at};

/// Separates the name of the target from the random characters.
const MARK: &str = ".partial-";

/// A new file with a random name in the directory of its target. It is moved to its target once it is
/// complete, or removed when this value is dropped.
///
/// The file is locked. If its process is killed, the next partial file for the same target removes it.
#[derive(Debug)]
pub struct PartialFile {
    // Fields are dropped in order: the file must be removed before it is unlocked.
    _journals: Journals,
    path: TempPath,
    file: File,
    place: PathBuf,
}

/// SQLite's files next to a partial file that is a database. They are removed when this value is dropped.
#[derive(Debug)]
struct Journals(PathBuf);

impl Drop for Journals {
    fn drop(&mut self) {
        for end in ["-wal", "-shm", "-journal"] {
            let mut name = self.0.as_os_str().to_owned();
            name.push(end);
            let _ = fs::remove_file(name);
        }
    }
}

impl PartialFile {
    /// Creates an empty file that only its owner can read, whatever the umask.
    pub fn beside(place: &Path) -> io::Result<Self> {
        Self::with_mode(place, 0o600)
    }

    /// Creates an empty file with the mode that the umask gives to new files.
    pub fn public_beside(place: &Path) -> io::Result<Self> {
        Self::with_mode(place, 0o666)
    }

    fn with_mode(place: &Path, mode: u32) -> io::Result<Self> {
        let mut prefix = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        prefix.push(MARK);
        let directory = directory_of(place);
        remove_abandoned(directory, &prefix);
        let mut builder = Builder::new();
        builder.prefix(&prefix).rand_bytes(RANDOM_CHARS).permissions(Permissions::from_mode(mode));
        for _ in 0..ATTEMPTS {
            let (file, path) = builder.tempfile_in(directory)?.into_parts();
            // On a file system without locks, the file needs none: `remove_abandoned` can't lock it either.
            let is_locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if is_locked && is_at(&file, &path) {
                return Ok(Self {
                    _journals: Journals(path.to_owned()),
                    path,
                    file,
                    place: place.to_owned(),
                });
            }
        }
        Err(io::Error::other("each file was removed while it was made"))
    }

    /// Path of the incomplete file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Moves the file to its target, where there must be a regular file or nothing. After a power cut, the
    /// target is the earlier file or all of the new one.
    pub fn replace(self) -> io::Result<()> {
        match fs::symlink_metadata(&self.place) {
            Ok(file) if !file.is_file() => {
                let place = self.place.display();
                return Err(io::Error::other(format!("{place} is not a regular file: move it away")));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.file.sync_all()?;
        self.path.persist(&self.place)?;
        sync_directory(&self.place)
    }

    /// Moves the file to its target, where there must be nothing.
    pub fn put_new(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.path.persist_noclobber(&self.place)?;
        sync_directory(&self.place)
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// Removes partial files of this process's user whose processes no longer run. Errors don't matter: the new file has
/// another name.
fn remove_abandoned(directory: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| is_ours(&entry.file_name(), prefix)) {
        let path = entry.path();
        // The lock is held until the file is removed.
        if let Some(_lock) = abandoned(&path) {
            drop(Journals(path.clone()));
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a name has the form of [`PartialFile`]'s names.
fn is_ours(name: &OsStr, prefix: &OsStr) -> bool {
    let random = name.as_bytes().strip_prefix(prefix.as_bytes());
    random.is_some_and(|random| random.len() == RANDOM_CHARS && random.iter().all(u8::is_ascii_alphanumeric))
}

/// Locks an abandoned file; `None` if a process holds the lock, or for a file that [`PartialFile`] didn't make.
fn abandoned(path: &Path) -> Option<File> {
    // Don't follow symbolic links, and don't wait for the writer of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let lock = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = lock.metadata().ok()?;
    let is_own = metadata.is_file() && metadata.nlink() == 1 && metadata.uid() == geteuid().as_raw();
    (is_own && lock.try_lock().is_ok() && is_at(&lock, path)).then_some(lock)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_private_and_go_with_their_value() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("place");
        let file = PartialFile::beside(&place).expect("made");
        assert_eq!(file.path().metadata().expect("there").mode() & 0o777, 0o600);
        fs::write(format!("{}-wal", file.path().display()), "of SQLite").expect("written");
        drop(file);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("old"), "old").expect("written");
        symlink("old", at("link")).expect("linked");
        symlink("nowhere", at("dangling")).expect("linked");
        fs::create_dir(at("directory")).expect("made");
        let write = |name: &str| {
            let mut file = PartialFile::beside(&at(name)).expect("made");
            file.write_all(b"new").expect("written");
            file
        };
        for name in ["link", "dangling", "directory"] {
            let error = write(name).replace().expect_err("not regular").to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = write("old").put_new().expect_err("there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(at("link")).expect("there"), b"old");
        write("old").replace().expect("regular");
        write("new").put_new().expect("empty");
        for name in ["old", "link", "new"] {
            assert_eq!(fs::read(at(name)).expect("there"), b"new");
        }
        assert_eq!(names(directory.path()), ["dangling", "directory", "link", "new", "old"]);
    }

    #[test]
    fn only_files_without_a_process_are_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let live = PartialFile::beside(&at("place")).expect("made");
        for name in ["place.partial-0123456789abcdef", "place.partial-0123456789abcdef-wal"] {
            fs::write(at(name), "of a killed process").expect("written");
        }
        let foreign = [
            "place.partial",
            "place.partial-0123456789abcde",
            "place.partial-0123456789abcdef.old",
            "place.partial-wal",
            "second.partial-0123456789abcdef",
        ];
        for name in foreign {
            fs::write(at(name), "of another program").expect("written");
        }
        fs::create_dir(at("place.partial-directory1234567")).expect("made");
        symlink("place.partial", at("place.partial-link567890123456")).expect("linked");
        let before = names(directory.path()).len();
        drop(PartialFile::beside(&at("place")).expect("made"));
        assert_eq!(names(directory.path()).len(), before - 2);
        assert!(live.path().exists() && foreign.iter().all(|name| at(name).exists()));
    }
}
