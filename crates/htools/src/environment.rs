//! Settings from the environment or a file, for where options are impossible: Ganeti calls `hail` and
//! `hcheck` with its own arguments.

use std::ffi::OsString;
use std::{env, fs, io};

use cluster::InitialN1;
use thiserror::Error;

use crate::options::initial_n1 as read_rule;

/// Environment variable, and name in the file, of the initial N+1 rule.
pub const N1_INITIAL: &str = "ALLOT_N1_INITIAL";

/// File that is read if the variable is not set. Lines are `NAME=VALUE`; `#` starts a comment.
pub const FILE: &str = "/etc/allot/htools.env";

/// Error in the environment variable or the file.
#[derive(Debug, Error)]
pub enum EnvironmentError {
    /// The value is not a rule.
    #[error("{place}: {N1_INITIAL} is {value:?}: write reported or recorded")]
    Rule {
        /// The environment or the file.
        place: &'static str,
        /// At most the first 40 characters.
        value: String,
    },
    /// A line, by number from 1, that is neither a setting nor a comment.
    #[error("{FILE}, line {0}: expected {N1_INITIAL}=reported or {N1_INITIAL}=recorded")]
    Line(usize),
    /// The file exists but cannot be read.
    #[error("{FILE}: {0}")]
    Unreadable(io::Error),
}

/// The initial N+1 rule from the environment, else from the file. `None` if neither sets it.
pub fn initial_n1() -> Result<Option<InitialN1>, EnvironmentError> {
    find(env::var_os(N1_INITIAL), || fs::read_to_string(FILE))
}

fn find(
    variable: Option<OsString>,
    file: impl FnOnce() -> io::Result<String>,
) -> Result<Option<InitialN1>, EnvironmentError> {
    if let Some(value) = variable.filter(|value| !value.is_empty()) {
        return rule("the environment", &value.to_string_lossy()).map(Some);
    }
    match file() {
        Ok(text) => in_file(&text),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(EnvironmentError::Unreadable(error)),
    }
}

/// The last setting wins.
fn in_file(text: &str) -> Result<Option<InitialN1>, EnvironmentError> {
    let mut found = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let value = line.strip_prefix(N1_INITIAL).and_then(|rest| rest.strip_prefix('='));
        found = Some(rule(FILE, value.ok_or(EnvironmentError::Line(at + 1))?)?);
    }
    Ok(found)
}

fn rule(place: &'static str, value: &str) -> Result<InitialN1, EnvironmentError> {
    const SHOWN: usize = 40;
    read_rule(value).map_err(|_| EnvironmentError::Rule { place, value: value.chars().take(SHOWN).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variable: Option<&str>, file: Option<&str>) -> Result<Option<InitialN1>, String> {
        let text = file.map(str::to_owned);
        let file = || text.ok_or_else(|| io::ErrorKind::NotFound.into());
        find(variable.map(OsString::from), file).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let file = "# as Ganeti 3.1\n\nALLOT_N1_INITIAL=recorded\n";
        assert_eq!(found(None, None), Ok(None));
        assert_eq!(found(Some(""), None), Ok(None));
        assert_eq!(found(None, Some(file)), Ok(Some(InitialN1::Recorded)));
        assert_eq!(found(Some("reported"), Some(file)), Ok(Some(InitialN1::Reported)));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let wrong = found(Some("recoded"), None).unwrap_err();
        assert_eq!(wrong, "the environment: ALLOT_N1_INITIAL is \"recoded\": write reported or recorded");
        let wrong = found(None, Some("\nN1=recorded\n")).unwrap_err();
        assert!(wrong.starts_with("/etc/allot/htools.env, line 2: expected"), "{wrong}");
        assert!(found(None, Some("ALLOT_N1_INITIAL= recorded")).is_err());
    }
}
