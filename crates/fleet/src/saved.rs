//! What drivers keep in a file: identifiers as text, and files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::error::FleetError;

/// Why a driver's file is of no use.
#[derive(Debug, Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A device, a directory, a pipe or a socket.
    #[error("{path} is not a regular file: give the state another name (state_file), or move it away")]
    NotRegular {
        /// Which file.
        path: PathBuf,
    },
    /// What it holds makes no sense.
    #[error("{path} does not hold the state of a fleet: {source}; move it away to start again")]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Those who share it cannot keep out of each other's way.
    #[error("cannot lock files in {path}: {source}; put state_file on a file system that has locks")]
    Lock {
        /// Which directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be told as text.
    #[error("cannot tell the state of the fleet as JSON: {0}")]
    Encode(serde_json::Error),
}

/// Refuses anything at that path that is neither a regular file nor a link to one: reading it might never end, and
/// writing would replace it.
fn require_regular(path: &Path) -> Result<(), StateError> {
    match fs::metadata(path) {
        Ok(file) if !file.is_file() => Err(StateError::NotRegular { path: path.to_owned() }),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(StateError::Read { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// What the file holds, if it is there.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    require_regular(path)?;
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StateError::Read { path: path.to_owned(), source }),
    };
    let value = serde_json::from_slice(&text);
    value.map(Some).map_err(|source| StateError::Corrupt { path: path.to_owned(), source })
}

/// Text to be written.
pub(crate) fn text(state: &impl Serialize) -> Result<Vec<u8>, StateError> {
    serde_json::to_vec(state).map_err(StateError::Encode)
}

/// Exchanges the file for one with that text: whoever reads it, even after a crash or a power cut, sees the old
/// text or the new one.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let beside = beside(path);
    require_regular(path)?;
    require_regular(&beside)?;
    replace(path, &beside, text).map_err(|source| StateError::Write { path: path.to_owned(), source })
}

/// Removes what a crash has left.
fn remove_left(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The name of a file until it is complete.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    PathBuf::from(beside)
}

fn replace(path: &Path, beside: &Path, text: &[u8]) -> io::Result<()> {
    remove_left(beside)?;
    // Its owner's only, whatever the umask: it says who has what.
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// A driver's file, and which version of the state is in it.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    version: tokio::sync::Mutex<u64>,
}

impl StateFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), version: tokio::sync::Mutex::new(0) }
    }

    /// Returns when the version that `current` tells, or a newer one, is in the file. Versions begin at 1. Those
    /// who wait for each other here are served by one write.
    pub(crate) async fn keep(
        &self,
        current: impl Fn() -> (u64, Result<Vec<u8>, StateError>) + Send,
        version: u64,
    ) -> Result<(), StateError> {
        let mut kept = self.version.lock().await;
        if *kept >= version {
            return Ok(());
        }
        let (version, text) = current();
        let (path, text) = (self.path.clone(), text?);
        let written = tokio::task::spawn_blocking(move || write(&path, &text)).await;
        written.map_err(|error| StateError::Write {
            path: self.path.clone(),
            source: io::Error::other(error),
        })??;
        *kept = version;
        Ok(())
    }
}

impl From<StateError> for FleetError {
    /// What was done may be lost, so it does not count as done.
    fn from(error: StateError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// What can be written as text. The crate `leases` knows no serialisation.
pub(crate) trait Identifier: Copy + Ord {
    fn text(self) -> String;
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! uuids {
    ($($name:ident),*) => {$(
        impl Identifier for $name {
            fn text(self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Option<Self> {
                let hex: String = text.chars().filter(|c| *c != '-').collect();
                let is_uuid = hex.len() == 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
                u128::from_str_radix(&hex, 16).ok().filter(|_| is_uuid).map(Self)
            }
        }
    )*};
}

uuids!(LeaseId, ReservationId, FloatingIpId, GuestId);

impl Identifier for HostId {
    fn text(self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// For `#[serde(with)]`: an identifier.
pub(crate) mod id {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Identifier;

    pub(crate) fn serialize<T: Identifier, S: Serializer>(id: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&id.text())
    }

    pub(crate) fn deserialize<'de, T: Identifier, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let text = String::deserialize(from)?;
        T::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no identifier")))
    }
}

/// For `#[serde(with)]`: an identifier, if there is one.
pub(crate) mod id_or_none {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Identifier;

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<T: Identifier, S: Serializer>(
        id: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        id.map(Identifier::text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Identifier, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        T::parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is no identifier")))
    }
}

/// For `#[serde(with)]`: a map from identifiers.
pub(crate) mod by_id {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Identifier;

    pub(crate) fn serialize<K: Identifier, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(id, value)| (id.text(), value)))
    }

    pub(crate) fn deserialize<'de, K: Identifier, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        let map = BTreeMap::<String, V>::deserialize(from)?;
        let entry = |(text, value): (String, V)| match K::parse(&text) {
            Some(id) => Ok((id, value)),
            None => Err(D::Error::custom(format!("{text:?} is no identifier"))),
        };
        map.into_iter().map(entry).collect()
    }
}

/// For `#[serde(with)]`: a map whose keys are more than text, as a list of pairs.
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn identifiers_are_read_as_they_are_written_and_nothing_else_is() {
        let id = GuestId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
        assert_eq!(GuestId::parse(&id.text()), Some(id));
        assert_eq!(HostId::parse(&HostId(7).text()), Some(HostId(7)));
        for wrong in ["", "1", "+cdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "x".repeat(32).as_str()] {
            assert_eq!(GuestId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_neither_read_nor_replaced() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let path = std::env::temp_dir().join(format!("allot-saved-{}.pipe", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let unfinished = path.with_extension("state.new");
        std::os::unix::fs::symlink(&path, &unfinished).expect("linked");
        for place in [&path, &link] {
            assert!(matches!(read::<String>(place), Err(StateError::NotRegular { .. })));
        }
        for place in [&path, &link, &path.with_extension("state")] {
            assert!(matches!(write(place, b"text"), Err(StateError::NotRegular { .. })));
        }
        for left in [&link, &unfinished, &path] {
            assert!(fs::metadata(left).is_ok_and(|file| !file.is_file()), "{}", left.display());
            fs::remove_file(left).expect("there");
        }
    }

    #[tokio::test]
    async fn those_who_wait_are_served_by_one_write_of_the_newest_version() {
        let path = std::env::temp_dir().join(format!("allot-saved-{}.json", std::process::id()));
        let file = StateFile::new(&path);
        file.keep(|| (3, text(&"third")), 1).await.expect("written");
        assert_eq!(read::<String>(&path).expect("there").as_deref(), Some("third"));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).expect("it is there");
        file.keep(|| (3, text(&"again")), 3).await.expect("nothing to write");
        assert_eq!(read::<String>(&path).expect("nothing there"), None);
        file.keep(|| (4, text(&"fourth")), 4).await.expect("written");
        assert!(read::<u32>(&path).expect_err("a text").to_string().contains("move it away to start again"));
        fs::remove_file(&path).expect("it is there");
        let nowhere = StateFile::new(Path::new("/nowhere/fleet.json"));
        let error = nowhere.keep(|| (1, text(&"text")), 1).await.expect_err("no such directory");
        assert!(error.to_string().starts_with("cannot write /nowhere/fleet.json: "), "{error}");
    }
}
