//! What is given of settings, as text.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Mistake, Origin};
use super::secrets;

/// Text for each setting that was given, and where it was found.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub(super) given: BTreeMap<&'static str, (String, Origin)>,
    /// What isn't a setting, or isn't text.
    pub(super) mistakes: Vec<Mistake>,
}

impl Values {
    /// An error that begins with the key of a setting, with the place where the setting was given instead.
    pub(crate) fn located(&self, error: &str) -> String {
        let located = error.split_once(": ").and_then(|(key, reason)| {
            let (_, origin) = self.given.get(key)?;
            Some(format!("{origin}: {reason}"))
        });
        located.unwrap_or_else(|| error.to_owned())
    }

    /// The file that the database's password is in, if it is in one.
    pub(crate) fn file_with_password(&self) -> Option<&Path> {
        match self.given.get("database")? {
            (text, Origin::File { path, .. }) if secrets::without_passwords(text) != *text => Some(path),
            _ => None,
        }
    }
}
