//! Result of a translation.

use std::collections::BTreeMap;
use std::fmt::Write;

use leases::text::{counted, escaped};
use server::RateLimit;
use service::Settings;
use toml::Value;

use crate::config::{TABLE, UNRESOLVED};
use crate::import::ini::Given;

/// A translated setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) value: Value,
    /// Option and line that it comes from.
    pub(super) origin: String,
}

/// An option that didn't become a setting, or a line that isn't an option. Never quotes secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Note {
    pub(super) line: usize,
    pub(super) option: String,
    pub(super) what: String,
}

/// Result of translating a file.
#[derive(Debug, Default)]
pub(in crate::import) struct Translation {
    pub(super) settings: BTreeMap<&'static str, Setting>,
    /// Advice on the database, if Blazar's has no counterpart.
    pub(super) database: Option<String>,
    /// Options that are taken over from an old name or another section.
    pub(super) renamed: Vec<Note>,
    /// Options without a counterpart.
    pub(super) notes: Vec<Note>,
    /// Options that Blazar doesn't know, values that it doesn't accept, and lines that aren't options.
    pub(in crate::import) unusual: Vec<Note>,
    /// Limits of Blazar's that aren't taken over. Without them the service would allow more, so it must not
    /// start.
    pub(in crate::import) unresolved: Vec<Note>,
}

impl Translation {
    pub(super) fn set(&mut self, key: &'static str, value: Value, origin: impl Into<String>) {
        self.settings.insert(key, Setting { value, origin: origin.into() });
    }

    pub(super) fn text(&mut self, key: &'static str, value: impl Into<String>, origin: impl Into<String>) {
        self.set(key, Value::String(value.into()), origin);
    }

    /// The settings file. Each setting has a comment with its origin. Options without a counterpart are
    /// listed at the end.
    pub(in crate::import) fn toml(&self) -> String {
        let mut text = format!(
            "# Settings of allot serve, from a blazar.conf. Limits that Blazar lacks keep their defaults: {} requests per\n\
             # second of a user (limits.requests_per_second) and {} leases of a project that are not over (quota.leases),\n\
             # ten times as many with the role admin or service.\n",
            RateLimit::USUAL,
            Settings::USUAL_LEASES,
        );
        if !self.unresolved.is_empty() {
            let told: Vec<Value> = self.unresolved.iter().map(|note| Value::String(note.told())).collect();
            let _ = writeln!(
                text,
                "\n# Limits of Blazar's that are not taken over. The service does not start while this line is here: replace\n\
                 # them, for example by an external service (enforcement.url), and then delete it.\n\
                 {UNRESOLVED} = {}",
                Value::Array(told)
            );
        }
        if let Some(advice) = &self.database {
            text.push('\n');
            text.push_str(advice);
        }
        let mut section = "";
        for setting in TABLE {
            let Some(Setting { value, origin }) = self.settings.get(setting.key) else { continue };
            let (of, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
            if of != section {
                section = of;
                let _ = writeln!(text, "\n[{section}]");
            }
            let _ = writeln!(text, "# {origin}\n{name} = {value}");
        }
        let mut list = |heading: &str, notes: &[Note]| {
            if !notes.is_empty() {
                let _ = writeln!(text, "\n# {heading}");
            }
            for Note { line, option, what } in notes {
                let _ = writeln!(text, "# line {line}, {option}: {what}");
            }
        };
        list("From other names and sections:", &self.renamed);
        list("Without a counterpart:", &self.notes);
        list("Unusual:", &self.unusual);
        text
    }

    /// Numbers of settings, of options without a counterpart, of unusual options, and of limits that must be
    /// replaced.
    pub(in crate::import) fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| counted(number as u64, one, many);
        let summary = format!(
            "{}, {} without a counterpart, {} unusual",
            count(self.settings.len(), "setting", "settings"),
            count(self.notes.len(), "option", "options"),
            self.unusual.len()
        );
        match self.unresolved.len() {
            0 => summary,
            left => {
                format!("{summary}, {} to replace before the service starts", count(left, "limit", "limits"))
            }
        }
    }
}

impl Note {
    /// The note in one line, for standard error and the settings file.
    pub(in crate::import) fn told(&self) -> String {
        format!("line {}, {}: {}", self.line, self.option, self.what)
    }
}

pub(super) fn wrong(given: &Given, reason: impl Into<String>) -> Note {
    note(given, format!("not taken over: {}", reason.into()))
}

/// Name of an option in messages. It's escaped because a TOML comment can't have all the characters that the
/// file can.
pub(super) fn option(section: &str, name: &str) -> String {
    escaped(&format!("[{section}]{name}"))
}

pub(super) fn origin(given: &Given) -> String {
    format!("{}, line {}", option(&given.section, &given.name), given.line)
}

pub(super) fn note(given: &Given, what: impl Into<String>) -> Note {
    Note { line: given.line, option: option(&given.section, &given.name), what: escaped(&what.into()) }
}
