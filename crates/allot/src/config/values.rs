//! Given settings as text, before they are parsed.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Mistake, Origin};
use super::secrets;

/// Text and origin of each given setting.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub(super) given: BTreeMap<&'static str, (String, Origin)>,
    /// Keys that aren't settings, and values that aren't text.
    pub(super) mistakes: Vec<Mistake>,
}

impl Values {
    /// Replaces the key of a setting at the start of an error with the place where that setting was given.
    pub(crate) fn located(&self, error: &str) -> String {
        let located = error.split_once(": ").and_then(|(key, reason)| {
            let (_, origin) = self.given.get(key)?;
            Some(format!("{origin}: {reason}"))
        });
        located.unwrap_or_else(|| error.to_owned())
    }

    /// The settings file, if the database URL in it contains a password.
    pub(crate) fn file_with_password(&self) -> Option<&Path> {
        match self.given.get("database")? {
            (text, Origin::File { path, .. }) if secrets::without_passwords(text) != *text => Some(path),
            _ => None,
        }
    }
}
