//! Files of a database: their location and permissions, and whether they were replaced since they were
//! opened.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use store::StoreError;

use crate::log::Log;
use crate::open_error::OpenError;

/// Only the owner can read and write, regardless of the umask.
const PRIVATE: u32 = 0o600;
/// Minimum free bytes. With less space, a disk counts as full: an ordinary commit takes some KiB, but a write
/// can succeed with no space at all where it replaces an earlier one in the journal.
const LEAST_ROOM: u64 = 1 << 20;

/// Appends `end` to the file's name.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Flags that neither follow symbolic links nor block until a pipe has a writer.
const PLAINLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

fn plainly() -> OpenOptions {
    let mut options = File::options();
    options.read(true).custom_flags(PLAINLY.bits().cast_signed());
    options
}

fn private() -> OpenOptions {
    let mut options = plainly();
    options.create(true).truncate(false).write(true).mode(PRIVATE);
    options
}

/// Kind of file, with its article; `None` for a regular file.
fn irregular(file: &Metadata) -> Option<&'static str> {
    let kind = file.file_type();
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_symlink() => Some("a symbolic link"),
        _ if kind.is_fifo() => Some("a named pipe"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// Fails unless the file is regular. Used for files that this crate creates, such as the lock.
fn require_regular(file: &Metadata, path: &Path) -> io::Result<()> {
    let refused = |kind| io::Error::other(format!("{} is {kind}: move it away", path.display()));
    irregular(file).map_or(Ok(()), |kind| Err(refused(kind)))
}

/// Path of the database with symbolic links resolved, so that it has only one name, and one lock.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let unusable = |error| OpenError::File { path: path.to_owned(), error };
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return Err(OpenError::Dangling(path.to_owned()));
            }
            let directory = directory_of(path).canonicalize().map_err(unusable)?;
            let name = path.file_name().unwrap_or(OsStr::new(""));
            return Ok(directory.join(name));
        }
        Err(error) => return Err(unusable(error)),
    };
    let file = fs::metadata(&real).map_err(unusable)?;
    if let Some(kind) = irregular(&file) {
        return Err(OpenError::NotRegular { path: real, kind });
    }
    let links = file.nlink();
    if links > 1 { Err(OpenError::Linked { path: real, links }) } else { Ok(real) }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates the database file if it is missing, because SQLite would make it readable for other users. SQLite
/// gives its own files (`-wal`, `-shm`) the same mode.
pub(crate) fn make(path: &Path) -> Result<(), OpenError> {
    if !is_empty(path)? {
        return Ok(());
    }
    private().open(path).map(drop).map_err(|error| OpenError::File { path: path.to_owned(), error })
}

/// Whether the file is empty or missing. Fails if a journal exists without it: SQLite would take that for the journal
/// of an earlier file and delete it.
pub(crate) fn is_empty(path: &Path) -> Result<bool, OpenError> {
    match fs::metadata(path) {
        Ok(file) if file.len() > 0 => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(OpenError::File { path: path.to_owned(), error }),
    }
    match journal_of(path) {
        Some(journal) => Err(OpenError::JournalAlone { path: path.to_owned(), journal }),
        None => Ok(true),
    }
}

/// The database's journal, unless it is missing or empty. SQLite would apply it to any database file at this
/// path.
pub(crate) fn journal_of(path: &Path) -> Option<PathBuf> {
    let journals = ["-wal", "-journal"].map(|end| beside(path, end));
    journals.into_iter().find(|journal| fs::metadata(journal).is_ok_and(|file| file.len() > 0))
}

/// Locks the file `DATABASE.lock`. SQLite's own locks on the database are short, and don't exclude readers.
pub(crate) fn lock(database: &Path) -> Result<File, OpenError> {
    let path = beside(database, ".lock");
    let cannot_lock = |error| OpenError::Lock { path: path.clone(), error };
    let file = private().open(&path).map_err(cannot_lock)?;
    require_regular(&file.metadata().map_err(cannot_lock)?, &path).map_err(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(database.to_owned())),
        Err(TryLockError::Error(error)) => Err(cannot_lock(error)),
    }
}

/// State of a database's lock file.
pub(crate) enum Lock {
    Missing,
    /// Held by another process, or by another store of this one.
    Held,
    Free(File),
}

/// Takes the lock if its file exists. Never creates one.
pub(crate) fn find_lock(database: &Path) -> Result<Lock, OpenError> {
    let path = beside(database, ".lock");
    let cannot_lock = |error| OpenError::Lock { path: path.clone(), error };
    let file = match plainly().open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::Missing),
        Err(error) => return Err(cannot_lock(error)),
    };
    require_regular(&file.metadata().map_err(cannot_lock)?, &path).map_err(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock::Free(file)),
        Err(TryLockError::WouldBlock) => Ok(Lock::Held),
        Err(TryLockError::Error(error)) => Err(cannot_lock(error)),
    }
}

/// Ensures that names in the file's directory are on the disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// The files that were opened.
#[derive(Debug)]
pub(crate) struct Opened {
    files: Vec<(PathBuf, u64, u64)>,
    pub(crate) log: Log,
}

impl Opened {
    /// The database and its journal, while it is open and has been written to. The journal is only removed
    /// when the last connection ends.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(path)?;
        let (log, index) = (beside(&real, "-wal"), beside(&real, "-shm"));
        let (database, index_file, opened_log) =
            (fs::metadata(path)?, fs::metadata(&index)?, Log::open(&log)?);
        let identified = |path: PathBuf, file: &Metadata| (path, file.dev(), file.ino());
        let files = vec![
            identified(path.to_owned(), &database),
            identified(log, &opened_log.metadata()?),
            identified(index, &index_file),
        ];
        Ok(Self { files, log: opened_log })
    }

    /// Fails if a file is gone or was replaced, because writes would be lost.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for (path, device, inode) in &self.files {
            let lost = |how: &str| {
                let path = path.display();
                Err(StoreError::Unavailable(format!(
                    "{path} {how} since the service opened it, so new commits would be lost: \
                     put that file back, or stop the service and start it with the file to use"
                )))
            };
            match fs::metadata(path) {
                Ok(file) if (file.dev(), file.ino()) == (*device, *inode) => {}
                Ok(_) => return lost("was replaced"),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return lost("was removed or moved"),
                Err(error) => {
                    return Err(StoreError::Unavailable(format!(
                        "cannot look at {}: {error}",
                        path.display()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Fails if the disk has too little space for further commits.
pub(crate) fn check_room(database: &Path) -> Result<(), StoreError> {
    let path = database.display();
    let disk = rustix::fs::statvfs(database)
        .map_err(|error| StoreError::Unavailable(format!("cannot look at the disk of {path}: {error}")))?;
    // Some file systems reserve their last blocks for root.
    let free = if rustix::process::geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    enough(free.saturating_mul(disk.f_frsize)).map_err(|room| {
        StoreError::Unavailable(format!(
            "the disk of {path} is full: {} KiB of room are left, and {} KiB are the least; make room",
            room >> 10,
            LEAST_ROOM >> 10
        ))
    })
}

/// Fails with `room` if that is too little.
fn enough(room: u64) -> Result<(), u64> {
    if room < LEAST_ROOM { Err(room) } else { Ok(()) }
}

/// Files of a database that other users can read or write, with their modes.
pub fn open_to_others(database: &Path) -> Vec<(PathBuf, u32)> {
    let database = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    let all = ["", "-wal", "-shm", "-journal", ".lock"].into_iter().map(|end| beside(&database, end));
    let modes = all.filter_map(|path| Some((fs::metadata(&path).ok()?.permissions().mode() & 0o777, path)));
    modes.filter(|(mode, _)| mode & 0o077 != 0).map(|(mode, path)| (path, mode)).collect()
}
