//! What is given of settings, as text.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{ConfigError, Origin};
use super::value::{self, Value};

/// Text for each setting that was given, and where it was found.
#[derive(Debug, Default)]
pub(crate) struct Values(pub(super) BTreeMap<&'static str, (String, Origin)>);

impl Values {
    /// The file that the database's password is in, if it is in one.
    pub(crate) fn file_with_password(&self) -> Option<&Path> {
        match self.0.get("database")? {
            (text, Origin::File { path, .. }) if value::without_passwords(text) != *text => Some(path),
            _ => None,
        }
    }

    /// What is given for a setting, or its default, read.
    pub(super) fn get<T: Value>(&self, key: &'static str, default: &'static str) -> Result<T, ConfigError> {
        let standard = (default.to_owned(), Origin::Default(key));
        let (text, origin) = self.0.get(key).unwrap_or(&standard);
        T::parse(text).map_err(|reason| ConfigError::Value {
            origin: origin.clone(),
            value: value::without_passwords(text),
            reason,
        })
    }
}
