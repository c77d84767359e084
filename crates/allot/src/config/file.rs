//! The configuration file, in TOML. Every key must be a setting.

use std::path::Path;

use cluster::nearest;
use leases::text::line_of;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Mistake, Origin};
use super::secrets::without_passwords;
use super::setting::Setting;
use super::table::TABLE;

/// Key of the list of limits that `allot import` couldn't convert. It isn't a setting, so the service refuses
/// to start with it.
pub(crate) const UNRESOLVED: &str = "unresolved";

/// A value from the file.
#[derive(Debug)]
pub(super) struct FileValue {
    pub key: &'static str,
    /// The value in command-line notation.
    pub text: String,
    pub line: usize,
}

/// Reads all values, and collects all mistakes. An unknown key is a mistake, since a misspelled limit has no
/// effect. If the syntax is wrong, only its errors are reported, because other mistakes can be consequences.
pub(super) fn read(path: &Path, text: &str) -> (Vec<FileValue>, Vec<Mistake>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.into_iter().map(|error| Mistake::Syntax {
        path: path.to_owned(),
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        reason: error.message().to_owned(),
    });
    let mut reader = Reader { path, text, found: Vec::new(), mistakes: syntax.collect() };
    if reader.mistakes.is_empty() {
        reader.table("", document.get_ref());
    }
    (reader.found, reader.mistakes)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    found: Vec<FileValue>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            if let Err(mistake) = self.entry(&key, line_of(self.text, name.span().start), value) {
                self.mistakes.push(mistake);
            }
        }
    }

    fn entry(&mut self, key: &str, line: usize, value: &Spanned<DeValue<'_>>) -> Result<(), Mistake> {
        let kind = |reason| Mistake::Kind { path: self.path.to_owned(), line, key: key.to_owned(), reason };
        let section = format!("{key}.");
        let is_section = TABLE.iter().any(|setting| setting.key.starts_with(&section));
        let setting = TABLE.iter().find(|setting| setting.key == key);
        match (setting, value.get_ref()) {
            (Some(setting), DeValue::Table(table)) if setting.is_table() => {
                let text = self.values_by_name(setting, table);
                self.found.push(FileValue { key: setting.key, text, line });
                Ok(())
            }
            (Some(_), DeValue::Table(_)) => Err(kind("this is a value, not a section")),
            (Some(setting), value) => {
                let text = text(value)
                    .ok_or_else(|| kind("write text, a number, true or false, or a list of texts"))?;
                self.found.push(FileValue { key: setting.key, text, line });
                Ok(())
            }
            (None, DeValue::Table(table)) if is_section => {
                self.table(&section, table);
                Ok(())
            }
            (None, _) if is_section => Err(kind("this is a section, not a value")),
            (None, _) if key == UNRESOLVED => Err(kind(
                "`allot import blazar-conf` wrote this: replace what it lists by settings, then delete the line",
            )),
            (None, _) => Err(Mistake::Unknown {
                path: self.path.to_owned(),
                line,
                key: key.to_owned(),
                nearest: nearest(key, TABLE.iter().map(|setting| setting.key)),
            }),
        }
    }

    /// Returns the valid values of a table in command-line notation: `a=1,b=2`. Each value is checked
    /// separately, so that each mistake has its own line and key.
    fn values_by_name(&mut self, setting: &Setting, table: &DeTable<'_>) -> String {
        let mut values = Vec::new();
        for (name, value) in table {
            let (path, line) = (self.path.to_owned(), line_of(self.text, name.span().start));
            let name = name.get_ref();
            let key = format!("{}.{name}", setting.key);
            let Some(text) = text(value.get_ref()).filter(|_| !name.contains(',')) else {
                let reason = "write text or a number, with a name without commas";
                self.mistakes.push(Mistake::Kind { path, line, key, reason });
                continue;
            };
            let item = format!("{name}={text}");
            match setting.check(&item) {
                Ok(()) => values.push(item),
                Err(reason) => {
                    let reason = reason.strip_prefix(&format!("{name}: ")).unwrap_or(&reason).to_owned();
                    let (origin, value) = (Origin::File { path, line, key }, without_passwords(&text));
                    self.mistakes.push(Mistake::Value { key: setting.key, origin, value, reason });
                }
            }
        }
        values.join(",")
    }
}

/// Converts a value to command-line notation. `None` for dates and tables.
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
