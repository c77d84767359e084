//! A driver's state in a file. Only changes are written.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambient::PartialFile;
use json_patch::Patch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::error::FleetError;

/// Bytes of changes in a file, in addition to the size of the state, before the file is rewritten. A byte of
/// a change thus costs at most one more byte later.
const CHANGES: u64 = 64 * 1024;

/// Error of a driver's state file.
#[derive(Debug, Error)]
pub enum StateError {
    /// The file can't be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// The path names a device, a directory, a pipe or a socket.
    #[error("{path} is not a regular file: give the state another name (state_file), or move it away")]
    NotRegular { path: PathBuf },
    /// The content isn't a driver's state.
    #[error("{path}, line {line}, does not hold the state of a fleet: {source}; move it away to start again")]
    Corrupt {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        source: serde_json::Error,
    },
    /// The content is a state, but a change to it doesn't fit.
    #[error(
        "{path}, line {line}: this change does not fit the state before it: {source}; move the file away to start again"
    )]
    Misfit {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Operation that failed.
        source: json_patch::PatchError,
    },
    /// The file can't be written.
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    /// Processes that share the file can't lock it.
    #[error("cannot lock files in {path}: {source}; put state_file on a file system that has locks")]
    Lock {
        /// Directory of the locked files.
        path: PathBuf,
        source: io::Error,
    },
    /// The state can't be represented as JSON.
    #[error("cannot write the state of the fleet as JSON: {0}")]
    Encode(serde_json::Error),
}

impl From<StateError> for FleetError {
    /// An action whose result can get lost counts as not done.
    fn from(error: StateError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A state in a file. The first line is the state as JSON, and each further line is a change (JSON Patch, RFC 6902).
///
/// After a crash a reader sees a state that was written completely: a line without a line feed doesn't count, and
/// whole states are written to a new file that replaces the old one.
#[derive(Debug)]
pub(crate) struct StateLog {
    path: PathBuf,
    /// `None` if the file must be rewritten.
    known: Option<Known>,
}

/// Known content of the file.
#[derive(Debug)]
struct Known {
    state: Value,
    /// Bytes of the whole file.
    length: u64,
    /// Bytes of its first line.
    whole: u64,
}

impl StateLog {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), known: None }
    }

    /// Reads the state. `None` if there is no file.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StateError> {
        self.known = None;
        require_regular(&self.path)?;
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Read { path: self.path.clone(), source }),
        };
        let corrupt = |line, source| StateError::Corrupt { path: self.path.clone(), line, source };
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
        // A state without changes may have been written by hand, without a line feed.
        let first = lines.next().unwrap_or_default();
        let mut state: Value = serde_json::from_slice(first).map_err(|source| corrupt(1, source))?;
        let mut length = first.len();
        for (number, change) in (2..).zip(lines).filter(|(_, change)| change.ends_with(b"\n")) {
            let patch: Patch = serde_json::from_slice(change).map_err(|source| corrupt(number, source))?;
            json_patch::patch(&mut state, &patch).map_err(|source| StateError::Misfit {
                path: self.path.clone(),
                line: number,
                source,
            })?;
            length += change.len();
        }
        let value = T::deserialize(&state).map_err(|source| corrupt(1, source))?;
        // Appending to an incomplete line would lose both.
        if first.ends_with(b"\n") && length == bytes.len() {
            self.known = Some(Known { state, length: length as u64, whole: first.len() as u64 });
        }
        Ok(Some(value))
    }

    /// Writes the state, or only its changes since it was last read or written. The state is on disk when this
    /// returns. Processes that share the file lock it and read it before they write.
    pub(crate) fn write(&mut self, state: Value) -> Result<(), StateError> {
        let written = match self.known.take() {
            Some(known) => {
                let (before, after) = differing(&known.state, &state);
                self.append(&json_patch::diff(&before, &after), Known { state, ..known })
            }
            None => self.write_whole(state),
        };
        self.known = Some(written?);
        Ok(())
    }

    /// Writes changes of a state with a large map. `changes` has all other fields, and in the field `map`
    /// only entries that can have changed, with `null` for removed entries.
    fn write_entries(&mut self, mut known: Known, map: &str, changes: Value) -> Result<(), StateError> {
        let before = Value::Object(merge(&mut known.state, map, changes.clone()));
        let (before, after) = differing(&before, &without_removed(changes, map));
        self.known = Some(self.append(&json_patch::diff(&before, &after), known)?);
        Ok(())
    }

    /// Appends a change that leads to the known state. Rewrites the file if it is too long, or if it has
    /// another length than after the last write.
    fn append(&self, patch: &Patch, known: Known) -> Result<Known, StateError> {
        let Known { state, length, whole } = known;
        require_regular(&self.path)?;
        let failed = |source| StateError::Write { path: self.path.clone(), source };
        let mut file = match File::options().append(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.write_whole(state),
            Err(source) => return Err(failed(source)),
        };
        if file.metadata().map_err(failed)?.len() != length || length > 2 * whole + CHANGES {
            return self.write_whole(state);
        }
        if patch.is_empty() {
            return Ok(Known { state, length, whole });
        }
        let line = line(patch)?;
        file.write_all(&line).and_then(|()| file.sync_data()).map_err(failed)?;
        Ok(Known { state, length: length + line.len() as u64, whole })
    }

    fn write_whole(&self, state: Value) -> Result<Known, StateError> {
        require_regular(&self.path)?;
        let line = line(&state)?;
        replace(&self.path, &line).map_err(|source| StateError::Write { path: self.path.clone(), source })?;
        Ok(Known { state, length: line.len() as u64, whole: line.len() as u64 })
    }
}

/// Applies changes to a state: whole fields, and single entries of `map`. `null` removes an entry. Returns
/// the earlier values of these fields and entries.
fn merge(state: &mut Value, map: &str, changes: Value) -> Map<String, Value> {
    let mut before = Map::new();
    let (Value::Object(state), Value::Object(changes)) = (state, changes) else { return before };
    for (key, value) in changes {
        let old = match state.get_mut(&key) {
            Some(entries) if key == map => Some(Value::Object(merge_entries(entries, value))),
            _ => state.insert(key.clone(), value),
        };
        before.extend(old.map(|old| (key, old)));
    }
    before
}

fn merge_entries(entries: &mut Value, changes: Value) -> Map<String, Value> {
    let mut before = Map::new();
    let (Value::Object(entries), Value::Object(changes)) = (entries, changes) else { return before };
    for (key, value) in changes {
        let old = if value.is_null() { entries.remove(&key) } else { entries.insert(key.clone(), value) };
        before.extend(old.map(|old| (key, old)));
    }
    before
}

fn without_removed(mut changes: Value, map: &str) -> Value {
    if let Some(Value::Object(entries)) = changes.get_mut(map) {
        entries.retain(|_, value| !value.is_null());
    }
    changes
}

/// The fields in which two values differ. Comparing equal fields takes a fraction of the time that
/// [`json_patch::diff`] takes for them.
fn differing(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return (before.clone(), after.clone());
    };
    let (mut old, mut new) = (Map::new(), Map::new());
    for (key, before) in before {
        match after.get(key) {
            Some(after) if before == after => {}
            Some(after) => {
                let (before, after) = differing(before, after);
                old.insert(key.clone(), before);
                new.insert(key.clone(), after);
            }
            None => {
                old.insert(key.clone(), before.clone());
            }
        }
    }
    let added = after.iter().filter(|(key, _)| !before.contains_key(*key));
    new.extend(added.map(|(key, after)| (key.clone(), after.clone())));
    (Value::Object(old), Value::Object(new))
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, StateError> {
    let mut line = serde_json::to_vec(value).map_err(StateError::Encode)?;
    line.push(b'\n');
    Ok(line)
}

/// Rejects anything at this path that is neither a regular file nor a link to one: reading it might never end, and
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

/// Replaces the file, or the target of a symbolic link, but never the link itself.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut file = PartialFile::beside(&place)?;
    file.write_all(text)?;
    file.replace()
}

/// A state file for concurrent tasks of one process.
#[derive(Debug)]
pub(crate) struct StateFile(Arc<Mutex<Written>>);

/// Extent of the JSON that a state file receives for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// The state, but only the changed entries of its largest map since the last write, with `null` for
    /// removed entries.
    Changes,
}

#[derive(Debug)]
struct Written {
    /// Last written version of the state.
    version: u64,
    log: StateLog,
    /// Field with the largest map of the state.
    map: &'static str,
}

impl StateFile {
    pub(crate) fn new(log: StateLog, map: &'static str) -> Self {
        Self(Arc::new(Mutex::new(Written { version: 0, log, map })))
    }

    /// Writes the state unless the file already has this version or a newer one. Versions start at 1. Tasks
    /// that wait for each other share one write of the newest version.
    pub(crate) async fn keep(
        &self,
        current: impl Fn(Extent) -> (u64, Result<Value, serde_json::Error>) + Send,
        version: u64,
    ) -> Result<(), StateError> {
        let mut written = self.0.clone().lock_owned().await;
        if written.version >= version {
            return Ok(());
        }
        // After an error the state is written as a whole.
        let known = written.log.known.take();
        let (version, state) = current(if known.is_some() { Extent::Changes } else { Extent::Whole });
        let state = state.map_err(StateError::Encode)?;
        let path = written.log.path.clone();
        let write = move || {
            let map = written.map;
            match known {
                Some(known) => written.log.write_entries(known, map, state)?,
                None => written.log.write(state)?,
            }
            written.version = version;
            Ok(())
        };
        let done = tokio::task::spawn_blocking(write).await;
        done.map_err(|error| StateError::Write { path, source: io::Error::other(error) })?
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("allot-state-{}-{name}", std::process::id()))
    }

    fn read(path: &Path) -> Option<Value> {
        StateLog::new(path).read().expect("readable")
    }

    #[test]
    fn only_changes_are_written() {
        let path = path("changes");
        let mut log = StateLog::new(&path);
        let mut state = json!({"hosts": {}, "draws": 0});
        for host in 0..1000 {
            state["hosts"][host.to_string()] = json!({"held": null, "note": "x".repeat(200)});
        }
        log.write(state.clone()).expect("written");
        let whole = fs::metadata(&path).expect("there").len();
        for draws in 1..=100 {
            state["draws"] = json!(draws);
            state["hosts"]["7"]["held"] = if draws % 2 == 0 { Value::Null } else { json!(draws) };
            state["hosts"][format!("new{draws}")] = json!({});
            state["hosts"].as_object_mut().expect("a map").remove(&draws.to_string());
            log.write(state.clone()).expect("written");
            assert_eq!(read(&path).as_ref(), Some(&state));
        }
        let length = fs::metadata(&path).expect("there").len();
        assert!(length < whole + 100 * 400, "{length} bytes after {whole}");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        fs::remove_file(&path).expect("there");
    }

    #[test]
    fn a_file_stays_short_however_often_its_state_changes() {
        let path = path("short");
        let mut log = StateLog::new(&path);
        for draws in 0..200 {
            let state = json!({"draws": draws, "note": "x".repeat(1000 + draws)});
            log.write(state.clone()).expect("written");
            assert_eq!(read(&path), Some(state));
        }
        let length = fs::metadata(&path).expect("there").len();
        assert!(length < CHANGES + 5000, "{length} bytes");
        fs::remove_file(&path).expect("there");
    }

    #[test]
    fn a_change_that_a_crash_broke_off_does_not_count() {
        let path = path("crash");
        let mut log = StateLog::new(&path);
        log.write(json!({"draws": 1})).expect("written");
        log.write(json!({"draws": 2})).expect("written");
        let complete = fs::read(&path).expect("there");
        log.write(json!({"draws": 3})).expect("written");
        let all = fs::read(&path).expect("there");
        for length in complete.len()..all.len() {
            fs::write(&path, &all[..length]).expect("written");
            assert_eq!(read(&path), Some(json!({"draws": 2})), "{length} bytes");
            let mut next = StateLog::new(&path);
            let _: Option<Value> = next.read().expect("readable");
            for draws in [4, 5] {
                next.write(json!({"draws": draws})).expect("written");
                assert_eq!(read(&path), Some(json!({"draws": draws})), "{length} bytes");
            }
        }
        fs::remove_file(&path).expect("there");
    }

    #[test]
    fn errors_name_the_line() {
        let path = path("lines");
        for (text, expected) in [
            ("[]", "line 1, does not hold"),
            ("{}\n[\n", "line 2, does not hold"),
            ("{}\n[]\n[{\"op\":\"remove\",\"path\":\"/x\"}]\n", "line 3: this change does not fit"),
        ] {
            fs::write(&path, text).expect("written");
            let error = StateLog::new(&path).read::<serde_json::Map<String, Value>>();
            let error = error.expect_err("not a state").to_string();
            assert!(error.contains(expected) && error.contains("start again"), "{error}");
        }
        fs::remove_file(&path).expect("there");
    }

    #[test]
    fn only_regular_files_are_read_and_replaced() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let path = path("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        for place in [&path, &link] {
            assert!(matches!(StateLog::new(place).read::<String>(), Err(StateError::NotRegular { .. })));
        }
        for place in [&path, &link] {
            let written = StateLog::new(place).write(json!("text"));
            assert!(matches!(written, Err(StateError::NotRegular { .. })));
        }
        for left in [&link, &path] {
            assert!(fs::metadata(left).is_ok_and(|file| !file.is_file()), "{}", left.display());
            fs::remove_file(left).expect("there");
        }
    }

    #[test]
    fn files_of_other_programs_and_links_are_kept() {
        let directory = path("kept");
        fs::create_dir(&directory).expect("made");
        let at = |name: &str| directory.join(name);
        let foreign = ["state.new", "state.partial", "state.partial-wal"];
        for name in foreign {
            fs::write(at(name), "of another program").expect("written");
        }
        StateLog::new(&at("state")).write(json!("first")).expect("written");
        std::os::unix::fs::symlink("state", at("link")).expect("linked");
        StateLog::new(&at("link")).write(json!("second")).expect("written");
        assert!(at("link").is_symlink());
        assert_eq!(read(&at("state")), Some(json!("second")));
        for name in foreign {
            assert_eq!(fs::read_to_string(at(name)).ok().as_deref(), Some("of another program"), "{name}");
        }
        assert_eq!(fs::read_dir(&directory).expect("there").count(), foreign.len() + 2);
        fs::remove_dir_all(&directory).expect("there");
    }

    #[test]
    fn of_a_map_only_entries_that_changed_are_given() {
        let path = path("entries");
        let mut log = StateLog::new(&path);
        log.write(json!({"draws": 1, "hosts": {"1": {"held": null}, "2": {}, "3": {"guests": {"a": 1}}}}))
            .expect("written");
        let known = log.known.take().expect("written");
        let changes =
            json!({"draws": 2, "hosts": {"1": {"held": 7}, "2": null, "3": {"guests": {}}, "4": {}}});
        log.write_entries(known, "hosts", changes).expect("written");
        let state = json!({"draws": 2, "hosts": {"1": {"held": 7}, "3": {"guests": {}}, "4": {}}});
        assert_eq!(read(&path).as_ref(), Some(&state));
        assert_eq!(log.known.as_ref().map(|known| &known.state), Some(&state));
        let length = fs::metadata(&path).expect("there").len();
        let known = log.known.take().expect("written");
        log.write_entries(known, "hosts", json!({"draws": 2, "hosts": {"4": {}}})).expect("nothing to write");
        assert_eq!(fs::metadata(&path).expect("there").len(), length);
        fs::remove_file(&path).expect("there");
        let known = log.known.take().expect("written");
        log.write_entries(known, "hosts", json!({"draws": 3, "hosts": {}})).expect("written");
        assert_eq!(
            read(&path),
            Some(json!({"draws": 3, "hosts": {"1": {"held": 7}, "3": {"guests": {}}, "4": {}}}))
        );
        fs::remove_file(&path).expect("there");
    }

    #[tokio::test]
    async fn waiting_tasks_share_one_write_of_the_newest_version() {
        let path = path("versions");
        let file = StateFile::new(StateLog::new(&path), "hosts");
        let state = |version: u64| move |_| (version, Ok(json!({"version": version})));
        let kept = |version: u64| Some(json!({"version": version}));
        file.keep(state(3), 1).await.expect("written");
        assert_eq!(read(&path), kept(3));
        fs::remove_file(&path).expect("there");
        file.keep(state(3), 3).await.expect("nothing to write");
        assert_eq!(read(&path), None);
        file.keep(state(4), 4).await.expect("written");
        assert_eq!(read(&path), kept(4));
        fs::remove_file(&path).expect("there");
    }

    #[tokio::test]
    async fn after_an_error_the_whole_state_is_written() {
        let directory = path("error");
        let file = StateFile::new(StateLog::new(&directory.join("fleet.json")), "hosts");
        let extents = std::sync::Mutex::new(Vec::new());
        let current = |version: u64| {
            let extents = &extents;
            move |extent| {
                extents.lock().expect("no panic").push(extent);
                (version, Ok(json!({"version": version})))
            }
        };
        let error = file.keep(current(1), 1).await.expect_err("no such directory").to_string();
        assert!(error.starts_with(&format!("cannot write {}", directory.display())), "{error}");
        fs::create_dir(&directory).expect("made");
        for version in [1, 2] {
            file.keep(current(version), version).await.expect("written");
        }
        fs::remove_dir_all(&directory).expect("there");
        file.keep(current(3), 3).await.expect_err("no such directory");
        fs::create_dir(&directory).expect("made");
        file.keep(current(3), 3).await.expect("written");
        let given = extents.lock().expect("no panic").clone();
        assert_eq!(given, [Extent::Whole, Extent::Whole, Extent::Changes, Extent::Changes, Extent::Whole]);
        fs::remove_dir_all(&directory).expect("there");
    }
}
