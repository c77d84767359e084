//! Files of tokens and users: TOML or YAML, by their names. No error repeats anything that is in one: it may be a
//! secret.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

use super::failures::shown;
use super::hash::HashError;
use super::identity::Roles;

/// Why such a file is of no use.
#[derive(Debug, Error)]
pub enum AuthFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not of its form.
    #[error("{path}{}: {message}", place(*.line))]
    Form {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: Option<usize>,
        /// What, without anything that is in the file.
        message: String,
    },
    /// What it says cannot be.
    #[error("{path}{}: {entry}: {message}", place(*.line))]
    Entry {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: Option<usize>,
        /// Whose.
        entry: String,
        /// What.
        message: String,
    },
    /// Several entries are wrong.
    #[error("{}", lines(.0))]
    Entries(Vec<Self>),
    /// No hash can be made.
    #[error(transparent)]
    Hash(#[from] HashError),
}

impl AuthFileError {
    /// An error with all of these, if there are any.
    pub(crate) fn all(mut mistakes: Vec<Self>) -> Result<(), Self> {
        match mistakes.len() {
            0 => Ok(()),
            1 => Err(mistakes.remove(0)),
            _ => Err(Self::Entries(mistakes)),
        }
    }
}

fn lines(mistakes: &[AuthFileError]) -> String {
    let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    mistakes.join("\n")
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Read<T> {
    /// What it says.
    pub value: T,
    /// Where its entries begin, as far as that is known.
    lines: Vec<usize>,
}

impl<T> Read<T> {
    /// A warning about the roles of an entry that no rule of ours names, if there are any.
    pub fn unknown_roles(
        &self,
        path: &Path,
        position: usize,
        whose: &str,
        roles: &[String],
    ) -> Option<String> {
        let unknown: Vec<String> = Roles::unknown(roles).into_iter().map(shown).collect();
        let message = format!(
            "unknown role {}: it allows only what a rule of policy_file says; there are admin, manager, member, reader",
            unknown.join(", ")
        );
        (!unknown.is_empty()).then(|| self.warning(path, position, whose, &message))
    }

    /// A warning about an entry.
    pub fn warning(&self, path: &Path, position: usize, whose: &str, message: &str) -> String {
        format!("{}{}: {whose}: {message}", path.display(), place(self.line(position)))
    }

    /// The line of the entry of that position.
    pub fn line(&self, position: usize) -> Option<usize> {
        self.lines.get(position).copied()
    }
}

/// What a file is like.
#[derive(Debug)]
pub(crate) struct Form {
    /// The list that it consists of.
    pub list: &'static str,
    /// What an entry must have.
    pub required: &'static [&'static str],
    /// What it may have beside.
    pub optional: &'static [&'static str],
}

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, form: &Form) -> Result<Read<T>, AuthFileError> {
    parse(path, &text_of(path)?, form)
}

/// The content of a file.
pub(crate) fn text_of(path: &Path) -> Result<String, AuthFileError> {
    std::fs::read_to_string(path).map_err(|error| AuthFileError::Unreadable { path: path.to_owned(), error })
}

pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Parses the content of a file: YAML if its name ends so, otherwise TOML.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    form: &Form,
) -> Result<Read<T>, AuthFileError> {
    let yaml = is_yaml(path);
    let read = if yaml {
        serde_yaml_ng::from_str(text)
            .map_err(|error| (error.location().map(|location| location.line()), error.to_string()))
    } else {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            (error.span().map(|span| line_of(text, span.start)), error.message().to_owned())
        })
    };
    let lines = if yaml { yaml_lines(text) } else { toml_lines(text, form.list) };
    match read {
        Ok(value) => Ok(Read { value, lines }),
        Err((line, message)) => {
            let message = without_contents(&message, form);
            Err(AuthFileError::Form { path: path.to_owned(), line, message })
        }
    }
}

/// Rewords a parser error, which can contain secrets of the file. After a slip, even the name of a field can be one.
fn without_contents(message: &str, form: &Form) -> String {
    for field in form.required.iter().chain([&form.list]) {
        if message.contains(&format!("missing field `{field}`")) {
            return format!("{field} is missing");
        }
    }
    let kind = if message.contains("unknown field") {
        "there is an unknown field"
    } else if message.contains("invalid type") || message.contains("invalid value") {
        "a value has the wrong type"
    } else {
        "syntax error"
    };
    let optional = if form.optional.is_empty() {
        String::new()
    } else {
        format!(", and may have {}", form.optional.join(", "))
    };
    format!("{kind}; each entry of {} needs {}{optional}", form.list, form.required.join(", "))
}

/// The line that a byte is in, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}

fn toml_lines(text: &str, list: &str) -> Vec<usize> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let found = document.get_ref().iter().find(|(name, _)| name.get_ref() == list);
    match found.map(|(_, value)| value.get_ref()) {
        Some(DeValue::Array(entries)) => {
            entries.iter().map(|entry| line_of(text, entry.span().start)).collect()
        }
        _ => Vec::new(),
    }
}

/// Entries begin with a hyphen, the first one as far to the right as the others. Of lists in brackets, nothing is
/// known.
fn yaml_lines(text: &str) -> Vec<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let entries = || {
        let lines = text.lines().enumerate();
        lines.filter(|(_, line)| line.trim_start().starts_with("- ") || line.trim() == "-")
    };
    let Some(first) = entries().next().map(|(_, line)| indent(line)) else { return Vec::new() };
    entries().filter(|(_, line)| indent(line) == first).map(|(number, _)| number + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_lines() {
        let text = "# users\n[[users]]\nname = \"a\"\n\n[[users]]\nname = \"b\"\n[users.projects]\np = []\n";
        assert_eq!(toml_lines(text, "users"), [2, 5]);
        assert_eq!(toml_lines("users = [\n {name = \"a\"},\n {name = \"b\"}]", "users"), [2, 3]);
        let text = "users:\n  - name: a\n    projects:\n      p:\n        - member\n  - name: b\n";
        assert_eq!(yaml_lines(text), [2, 6]);
    }
}
