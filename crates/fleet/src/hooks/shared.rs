//! What services share that hand over the same machines: the file with the ledger, and turns.
//!
//! Each service has a driver of its own, so the file is what counts, and memory is a copy of it. Whoever is at work
//! on a host has it to itself among all of them, and has read what the others wrote before. Locks are the operating
//! system's, on files beside the ledger; they end with the process that has them, however that ends.

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

/// How often is looked whether another service is done with a host.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The ledger, and the file that it is a copy of.
#[derive(Debug)]
pub(super) struct Shared {
    state_file: PathBuf,
    /// Directory of the files that are locked.
    locks: PathBuf,
    ledger: Mutex<Ledger>,
    /// Who of this service waits for its turn.
    queues: BTreeMap<Part, Arc<Queue<()>>>,
    /// Held while the file is read or written.
    known: Mutex<Known>,
}

/// How the file and memory compare.
#[derive(Debug)]
struct Known {
    log: StateLog,
    /// The version of the ledger that was last written.
    version: u64,
    /// The file that was last read or written; none if memory may have what it has not.
    stamp: Option<Stamp>,
}

/// Tells states of the file apart: each write makes it longer or replaces it.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// The right to be at work on a part. Whatever is still being written under it has it as well, so that others come
/// after that even if nobody waits for it any longer.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    part: Part,
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    /// Dropped first: who comes next in the queue wants it.
    _lock: File,
    _queue: OwnedMutexGuard<()>,
}

/// The same for a host.
#[derive(Debug)]
pub(super) struct HostTurn {
    pub(super) host: HostId,
    turn: Turn,
}

impl Shared {
    /// Reads the file, and writes it: not to be able to is better known now.
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
        // First, so that no locks are created beside a file of another program.
        shared.take_in(&mut shared.known())?;
        fs::create_dir_all(&shared.locks)
            .map_err(|source| StateError::Write { path: shared.locks.clone(), source })?;
        shared.keep(1)?;
        Ok(Arc::new(shared))
    }

    /// What is known at present.
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else is at work on a host, and knows then what they did to it.
    pub(super) async fn host_turn(self: &Arc<Self>, host: HostId) -> Result<HostTurn, FleetError> {
        Ok(HostTurn { host, turn: self.turn(Part::Host(host)).await? })
    }

    /// The same for any part.
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

    /// Learns what others have written.
    pub(super) async fn read(self: &Arc<Self>) -> Result<(), FleetError> {
        let shared = self.clone();
        Ok(self.apart(move || shared.take_in(&mut shared.known())).await?)
    }

    /// Changes what is known of a part, and returns when it is written down.
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
                // It does not count, and is not to be written over what others write from here on.
                shared.ledger().changed.remove(&turn.part);
            })
        };
        self.apart(written).await?;
        Ok(result)
    }

    /// The same for a host.
    pub(super) async fn write_host<T>(
        self: &Arc<Self>,
        turn: &HostTurn,
        change: impl FnOnce(&mut Record) -> T,
    ) -> Result<T, FleetError> {
        self.write(&turn.turn, |ledger| change(ledger.hosts.entry(turn.host).or_default())).await
    }

    /// Returns when that version of the ledger, or a newer one, is in the file. Those who wait for each other here
    /// are served by one write.
    fn keep(&self, version: u64) -> Result<(), StateError> {
        let mut known = self.known();
        if known.version >= version {
            return Ok(());
        }
        // For an instant only, so it is waited for.
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

    /// Takes over what others have written, if they have.
    fn take_in(&self, known: &mut Known) -> Result<(), StateError> {
        // Before it is read: if it is changed meanwhile, it is read once more.
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

    /// Locks a part, unless somebody else has it.
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

    /// Does something with files where it stops nobody else.
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
