//! The configuration file: TOML, whose every key must be a setting.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::table::TABLE;
use crate::nearest::nearest;

/// A value of the file.
#[derive(Debug)]
pub(super) struct FileValue {
    pub key: &'static str,
    /// As it would stand on the command line.
    pub text: String,
    pub line: usize,
}

/// Reads all values. Unknown keys are refused: a limit that is misspelt would not limit anything.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<FileValue>, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line(text, span.start)),
        reason: error.message().to_owned(),
    })?;
    let mut reader = Reader { path, text, found: Vec::new() };
    reader.table("", document.get_ref())?;
    Ok(reader.found)
}

/// The line that a byte is in, from 1.
fn line(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    found: Vec<FileValue>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            self.entry(&key, line(self.text, name.span().start), value)?;
        }
        Ok(())
    }

    fn entry(&mut self, key: &str, line: usize, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        let kind =
            |reason| ConfigError::Kind { path: self.path.to_owned(), line, key: key.to_owned(), reason };
        let section = format!("{key}.");
        let is_section = TABLE.iter().any(|setting| setting.key.starts_with(&section));
        let setting = TABLE.iter().find(|setting| setting.key == key);
        match (setting, value.get_ref()) {
            (Some(_), DeValue::Table(_)) => Err(kind("this is a value, not a section")),
            (Some(setting), value) => {
                let text = text(value)
                    .ok_or_else(|| kind("write text, a number, true or false, or a list of texts"))?;
                self.found.push(FileValue { key: setting.key, text, line });
                Ok(())
            }
            (None, DeValue::Table(table)) if is_section => self.table(&section, table),
            (None, _) if is_section => Err(kind("this is a section, not a value")),
            (None, _) => Err(ConfigError::Unknown {
                path: self.path.to_owned(),
                line,
                key: key.to_owned(),
                nearest: nearest(key, TABLE.iter().map(|setting| setting.key)),
            }),
        }
    }
}

/// The value as it would stand on the command line.
fn text(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| text(item.get_ref())).collect();
            items?.join(",")
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}
