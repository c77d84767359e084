//! State that services share when they hand over the same machines: the file with the ledger, and locks.
//!
//! Each service has its own driver. The file is authoritative, and each driver has a copy in memory. A task
//! that changes a host has exclusive access to it across all services, and has read all earlier changes.
//! Locks are file locks of the operating system on files next to the ledger, so they end with their process,
//! even if it is killed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leases::ids::HostId;
use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use tokio::task::{JoinError, spawn_blocking};

use super::ledger::{Ledger, Part, Record};
use crate::FleetError;
use crate::state_file::{StateError, StateLog};

/// Interval between attempts to lock a part that another service has locked.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The ledger and its file.
#[derive(Debug)]
pub(super) struct Shared {
    state_file: PathBuf,
    /// Directory of the lock files.
    locks: PathBuf,
    ledger: Mutex<Ledger>,
    /// Tasks of this service that wait for their turn.
    queues: BTreeMap<Part, Arc<Queue<()>>>,
    /// Locked while the file is read or written.
    known: Mutex<Known>,
}

/// The last known content of the file.
#[derive(Debug)]
struct Known {
    log: StateLog,
    /// Last written version of the ledger.
    version: u64,
    /// Stamp of the file after the last read or write; `None` if the ledger can have changes that the file
    /// lacks.
    stamp: Option<Stamp>,
}

/// Distinguishes versions of the file: each write makes the file longer or replaces it.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// Exclusive access to a part. A pending write has a copy of its turn, so other tasks only follow after the
/// write, even if its caller no longer waits.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    part: Part,
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    /// Dropped first, because the next task in the queue needs it.
    _lock: File,
    _queue: OwnedMutexGuard<()>,
}

/// Exclusive access to a host.
#[derive(Debug)]
pub(super) struct HostTurn {
    pub(super) host: HostId,
    turn: Turn,
}

impl Shared {
    /// Reads the file and writes it, so that errors are found at startup.
    pub(super) fn open(
        state_file: &Path,
        hosts: impl Iterator<Item = HostId>,
    ) -> Result<Arc<Self>, StateError> {
        let mut locks = state_file.as_os_str().to_owned();
        locks.push(".locks");
        let locks = PathBuf::from(locks);
        let mut ledger = Ledger { version: 1, ..Ledger::default() };
        ledger.hosts.extend(hosts.map(|host| (host, Record::default())));
        let parts = ledger
            .hosts
            .keys()
            .map(|host| Part::Host(*host))
            .chain([Part::Addresses, Part::Keeper])
            .chain(Part::shares());
        let shared = Self {
            state_file: state_file.to_owned(),
            locks,
            queues: parts.map(|part| (part, Arc::default())).collect(),
            ledger: Mutex::new(ledger),
            known: Mutex::new(Known { log: StateLog::new(state_file), version: 0, stamp: None }),
        };
        // The file is read first, so that no locks are created next to a file of another program.
        shared.take_in(&mut shared.known())?;
        fs::create_dir_all(&shared.locks)
            .map_err(|source| StateError::Write { path: shared.locks.clone(), source })?;
        shared.keep(1)?;
        Ok(Arc::new(shared))
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for exclusive access to a host, and reads the changes of other services.
    pub(super) async fn host_turn(self: &Arc<Self>, host: HostId) -> Result<HostTurn, FleetError> {
        Ok(HostTurn { host, turn: self.turn(Part::Host(host)).await? })
    }

    /// Waits for exclusive access to a part, and reads the changes of other services.
    pub(super) async fn turn(self: &Arc<Self>, part: Part) -> Result<Turn, FleetError> {
        let Some(queue) = self.queues.get(&part) else {
            return Err(FleetError::Refused(format!("{part} is not in the fleet")));
        };
        let queue = queue.clone().lock_owned().await;
        let lock = loop {
            let shared = self.clone();
            match self.apart(move || shared.try_lock(part)).await? {
                Some(lock) => break lock,
                None => tokio::time::sleep(BETWEEN_LOOKS).await,
            }
        };
        self.read().await?;
        Ok(Turn { part, _held: Arc::new(Held { _lock: lock, _queue: queue }) })
    }

    /// Reads the changes of other services.
    pub(super) async fn read(self: &Arc<Self>) -> Result<(), FleetError> {
        let shared = self.clone();
        Ok(self.apart(move || shared.take_in(&mut shared.known())).await?)
    }

    /// Changes a part of the ledger. Returns once the change is in the file.
    pub(super) async fn write<T>(
        self: &Arc<Self>,
        turn: &Turn,
        change: impl FnOnce(&mut Ledger) -> T,
    ) -> Result<T, FleetError> {
        let (result, version) = {
            let mut ledger = self.ledger();
            ledger.version += 1;
            ledger.changed.insert(turn.part);
            (change(&mut ledger), ledger.version)
        };
        let (shared, turn) = (self.clone(), turn.clone());
        let written = move || {
            shared.keep(version).inspect_err(|_| {
                // The change failed, so it must not overwrite later changes of other services.
                shared.ledger().changed.remove(&turn.part);
            })
        };
        self.apart(written).await?;
        Ok(result)
    }

    /// Changes a host's record. Returns once the change is in the file.
    pub(super) async fn write_host<T>(
        self: &Arc<Self>,
        turn: &HostTurn,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<T, FleetError> {
        self.write(&turn.turn, |ledger| change(ledger.hosts.entry(turn.host).or_default())).await
    }

    /// Returns once this version of the ledger, or a newer one, is in the file. Callers that wait for each
    /// other share one write.
    fn keep(&self, version: u64) -> Result<(), StateError> {
        let mut known = self.known();
        if known.version >= version {
            return Ok(());
        }
        // Held only for a moment, so blocking is fine.
        let lock = self.lock_file("ledger")?;
        lock.lock().map_err(|source| self.failed(source))?;
        self.take_in(&mut known)?;
        known.stamp = None;
        let (version, state, changed) = {
            let mut ledger = self.ledger();
            (ledger.version, serde_json::to_value(&*ledger), std::mem::take(&mut ledger.changed))
        };
        let written = state.map_err(StateError::Encode).and_then(|state| known.log.write(state));
        if let Err(error) = written {
            self.ledger().changed.extend(changed);
            return Err(error);
        }
        known.version = version;
        known.stamp = self.stamp()?;
        Ok(())
    }

    /// Merges the changes of other services, if the file has changed.
    fn take_in(&self, known: &mut Known) -> Result<(), StateError> {
        // Taken before the file is read: if the file changes in between, it is read again next time.
        let stamp = self.stamp()?;
        if stamp.is_some() && stamp == known.stamp {
            return Ok(());
        }
        if let Some(theirs) = known.log.read()? {
            self.ledger().take_in(theirs);
        }
        known.stamp = stamp;
        Ok(())
    }

    fn stamp(&self) -> Result<Option<Stamp>, StateError> {
        match fs::metadata(&self.state_file) {
            Ok(file) => {
                let (seconds, nanoseconds) = (file.mtime(), file.mtime_nsec());
                Ok(Some(Stamp { inode: file.ino(), length: file.len(), seconds, nanoseconds }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError::Read { path: self.state_file.clone(), source }),
        }
    }

    /// Locks a part; `None` if another task or service has locked it.
    fn try_lock(&self, part: Part) -> Result<Option<File>, StateError> {
        let file = self.lock_file(&part.to_string().replace(' ', "-"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    fn lock_file(&self, name: &str) -> Result<File, StateError> {
        let path = self.locks.join(name);
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
        file.map_err(|source| StateError::Write { path, source })
    }

    fn failed(&self, source: io::Error) -> StateError {
        StateError::Lock { path: self.locks.clone(), source }
    }

    /// Runs file operations on a thread for blocking work.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let broke_off = |error: JoinError| StateError::Write {
            path: self.state_file.clone(),
            source: io::Error::other(error),
        };
        spawn_blocking(work).await.map_err(broke_off)?
    }
}
