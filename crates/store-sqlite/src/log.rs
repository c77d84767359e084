//! Checks that the write-ahead log still contains all commits.
//!
//! SQLite itself truncates or restarts the log only after its index (`-shm`) counts no frames any longer. So each frame
//! that the index counts must be in the file, with the salts of the file's header. If one is missing, another program
//! has truncated or overwritten the log.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::StoreError;

use crate::error::unavailable;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Magic number of a log. The last bit is the byte order of its checksums.
const MAGIC: u32 = 0x377f_0682;
/// Maximum number of comparisons between log and index, which can differ while another program checkpoints.
const COMPARISONS: usize = 3;

/// Length in bytes above which the log is restarted after a commit, 32 MiB. SQLite alone only restarts a log that no
/// reader uses, and readers that overlap commits use it all the time.
const LONG: u64 = 32 << 20;
/// Growth in bytes after which a restart that readers prevented is tried again, 8 MiB.
const GROWTH: u64 = 8 << 20;
/// Time to wait for readers before a restart is given up. Writers wait during this time.
const RESTART_WAIT: Duration = Duration::from_millis(50);

/// The log of an open database. SQLite doesn't lock this file, so closing it can't release a lock of SQLite.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    end: Option<End>,
    /// Whether `end` is still the end of the log.
    is_current: bool,
    /// Length in bytes at the last try to restart the log; 0 if it was restarted since.
    tried: u64,
}

/// The end of the log after a commit.
#[derive(Debug, PartialEq, Eq)]
struct End {
    frames: u64,
    header: [u8; HEADER],
    last: [u8; FRAME_HEADER],
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: File::open(path)?, state: Mutex::default() })
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the last commit is still in the log, before the next one is added.
    pub(crate) async fn check(&self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        if !self.ends_as_before()? {
            let frames = frames(db).await?;
            if self.is_current_end(frames) {
                return Err(self.damaged());
            }
            self.confirm(db).await?;
        }
        self.state().is_current = false;
        Ok(())
    }

    /// Checks that all frames of the latest commit are in the log.
    pub(crate) async fn confirm(&self, db: &mut SqliteConnection) -> Result<(), StoreError> {
        let mut before = None;
        for _ in 0..COMPARISONS {
            let frames = frames(db).await?;
            if self.holds(frames)? {
                return Ok(());
            }
            if before == Some(frames) {
                break;
            }
            before = Some(frames);
        }
        Err(self.damaged())
    }

    /// Lets the next commit write to the beginning of a long log, unless readers still need it. The caller is the only
    /// writer.
    pub(crate) async fn restart_if_long(&self, options: &SqliteConnectOptions) {
        if !self.is_restart_due() {
            return;
        }
        // The wait belongs to this connection, even if the caller is canceled. The commit is complete, so errors don't
        // matter.
        let options = options.clone().busy_timeout(RESTART_WAIT);
        if let Ok(mut db) = SqliteConnection::connect_with(&options).await {
            let _ = sqlx::query("PRAGMA wal_checkpoint(RESTART)").fetch_one(&mut db).await;
            let _ = db.close().await;
        }
    }

    fn is_restart_due(&self) -> bool {
        let mut state = self.state();
        let frame_bytes = |end: &End| FRAME_HEADER as u64 + page_bytes(&end.header);
        let bytes = state.end.as_ref().map_or(0, |end| end.frames * frame_bytes(end));
        if bytes < state.tried {
            state.tried = 0;
        }
        let is_due = bytes > LONG && (state.tried == 0 || bytes > state.tried + GROWTH);
        if is_due {
            state.tried = bytes;
        }
        is_due
    }

    /// Whether the log is known to end at this number of frames.
    fn is_current_end(&self, frames: u64) -> bool {
        let state = self.state();
        state.is_current && state.end.as_ref().is_some_and(|end| end.frames == frames)
    }

    fn ends_as_before(&self) -> Result<bool, StoreError> {
        let state = self.state();
        let Some(end) = &state.end else { return Ok(state.is_current) };
        let there = self.header()? == Some(end.header)
            && self.frame(page_bytes(&end.header), end.frames)? == Some(end.last);
        Ok(there)
    }

    /// Whether the log contains this many frames. If it does, the last one becomes its known end.
    fn holds(&self, frames: u64) -> Result<bool, StoreError> {
        let mut state = self.state();
        if frames == 0 {
            *state = State { end: None, is_current: true, tried: 0 };
            return Ok(true);
        }
        let Some(header) = self.header()? else { return Ok(false) };
        if big_endian(&header, 0) & !1 != MAGIC {
            return Ok(false);
        }
        let known = state.end.as_ref().filter(|end| end.header == header && end.frames <= frames);
        let first = known.map_or(1, |end| end.frames);
        let mut last = known.map_or([0; FRAME_HEADER], |end| end.last);
        for number in first..=frames {
            let Some(frame) = self.frame(page_bytes(&header), number)? else { return Ok(false) };
            if big_endian(&frame, 0) == 0 || frame[8..16] != header[16..24] {
                return Ok(false);
            }
            last = frame;
        }
        *state = State { end: Some(End { frames, header, last }), is_current: true, tried: state.tried };
        Ok(true)
    }

    fn header(&self) -> Result<Option<[u8; HEADER]>, StoreError> {
        self.read(0)
    }

    /// Header of a frame. Frames are numbered from 1.
    fn frame(&self, page_bytes: u64, number: u64) -> Result<Option<[u8; FRAME_HEADER]>, StoreError> {
        self.read(HEADER as u64 + number.saturating_sub(1) * (FRAME_HEADER as u64 + page_bytes))
    }

    /// Reads at an offset; `None` if the file ends before.
    fn read<const LENGTH: usize>(&self, offset: u64) -> Result<Option<[u8; LENGTH]>, StoreError> {
        let mut bytes = [0; LENGTH];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => {
                Err(StoreError::Unavailable(format!("cannot read {}: {error}", self.path.display())))
            }
        }
    }

    fn damaged(&self) -> StoreError {
        StoreError::Unavailable(format!(
            "{} was truncated or overwritten by another program, so commits in it are lost: stop the service, \
             then restore a backup, or start without the lost commits",
            self.path.display()
        ))
    }
}

fn page_bytes(header: &[u8; HEADER]) -> u64 {
    u64::from(big_endian(header, 8))
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    bytes.iter().skip(at).take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Number of frames that the index counts. `NOOP` checkpoints nothing and takes no lock.
async fn frames(db: &mut SqliteConnection) -> Result<u64, StoreError> {
    // The compiler can't check pragmas.
    let counted = sqlx::query_as("PRAGMA wal_checkpoint(NOOP)").fetch_one(db).await;
    let (_, frames, _): (i64, i64, i64) = counted.map_err(unavailable)?;
    Ok(frames.max(0).cast_unsigned())
}
