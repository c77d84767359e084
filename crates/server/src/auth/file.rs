//! Files of tokens and users: TOML or YAML, by their names. Errors name users and roles. They repeat no other values, nor names
//! of fields that aren't nearly those of known ones: these may be secrets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use leases::text::{line_of, lines};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strsim::levenshtein;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::failures::shown;
use super::hash::HashError;
use super::identity::Roles;

/// Error in a file of tokens, users or keys.
#[derive(Debug, Error)]
pub enum AuthFileError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// Syntax error, or a field with the wrong name or type.
    #[error("{path}{}: {message}", place(*.line))]
    Form {
        path: PathBuf,
        /// Counted from 1.
        line: Option<usize>,
        /// Quotes nothing from the file.
        message: String,
    },
    /// Invalid value in an entry.
    #[error("{path}{}: {entry}: {message}", place(*.line))]
    Entry {
        path: PathBuf,
        /// Counted from 1.
        line: Option<usize>,
        /// Owner of the entry, such as `user ann`.
        entry: String,
        message: String,
    },
    /// At least two errors.
    #[error("{}", lines(.0))]
    Entries(Vec<Self>),
    /// Failure to hash a password.
    #[error(transparent)]
    Hash(#[from] HashError),
}

impl AuthFileError {
    /// Fails with all of the errors, or succeeds if there are none.
    pub(crate) fn all(mistakes: Vec<Self>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self::join(mistakes)) }
    }

    fn join(mut mistakes: Vec<Self>) -> Self {
        if mistakes.len() == 1 { mistakes.remove(0) } else { Self::Entries(mistakes) }
    }
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Read<T> {
    pub value: T,
    /// Unknown fields.
    pub mistakes: Vec<AuthFileError>,
    /// Places of its entries, as far as they are known.
    places: Vec<Place>,
}

/// Place of an entry in the file.
#[derive(Debug)]
struct Place {
    /// First line of the entry, counted from 1.
    line: usize,
    /// Lines by field name, counted from 1.
    fields: BTreeMap<String, usize>,
}

impl<T> Read<T> {
    /// Warning about roles that no built-in rule uses, if the entry has any.
    pub fn unknown_roles(
        &self,
        path: &Path,
        position: usize,
        whose: &str,
        roles: &[String],
    ) -> Option<Warning> {
        let unknown: Vec<String> = Roles::unknown(roles).into_iter().map(str::to_owned).collect();
        (!unknown.is_empty()).then(|| self.warning(path, position, whose, WarningKind::Roles(unknown)))
    }

    pub fn warning(&self, path: &Path, position: usize, whose: &str, kind: WarningKind) -> Warning {
        let entry = format!("{}{}: {whose}", path.display(), place(self.line(position)));
        Warning { position, entry, kind }
    }

    /// Line of the entry at this position of the list.
    pub fn line(&self, position: usize) -> Option<usize> {
        self.places.get(position).map(|place| place.line)
    }

    /// Line of a field of the entry. Falls back to the line of the entry.
    pub fn line_of_field(&self, position: usize, field: &str) -> Option<usize> {
        self.places.get(position).map(|place| place.line_of(field))
    }
}

impl Place {
    fn line_of(&self, field: &str) -> usize {
        self.fields.get(field).copied().unwrap_or(self.line)
    }
}

/// A questionable entry.
#[derive(Clone, Debug)]
pub(crate) struct Warning {
    /// Position of the entry in its list.
    pub position: usize,
    /// File, line and owner of the entry.
    entry: String,
    kind: WarningKind,
}

/// Questionable values of an entry.
#[derive(Clone, Debug)]
pub(crate) enum WarningKind {
    /// A weak hash, with the message.
    Hash(&'static str),
    /// Roles that only rules in the operator's policy file can use.
    Roles(Vec<String>),
}

impl Warning {
    /// The warning's text. `is_named` tells whether a rule uses a role. `None` if rules use all of the roles.
    pub fn text(&self, is_named: &dyn Fn(&str) -> bool) -> Option<String> {
        let message = match &self.kind {
            WarningKind::Hash(message) => (*message).to_owned(),
            WarningKind::Roles(roles) => {
                let unknown = roles.iter().filter(|role| !is_named(role));
                let unknown: Vec<String> = unknown.map(|role| shown(role)).collect();
                if unknown.is_empty() {
                    return None;
                }
                format!(
                    "unknown role {}: it allows only what a rule of policy_file says; there are admin, manager, member, reader",
                    unknown.join(", ")
                )
            }
        };
        Some(format!("{}: {message}", self.entry))
    }
}

/// Schema of a file: a list of entries.
#[derive(Debug)]
pub(crate) struct Form {
    /// Name of the list.
    pub list: &'static str,
    /// Fields that each entry must have.
    pub required: &'static [&'static str],
    /// Fields that an entry can have in addition.
    pub optional: &'static [&'static str],
}

impl Form {
    /// Describes the fields of an entry in error messages.
    fn fields(&self) -> String {
        let optional = if self.optional.is_empty() {
            String::new()
        } else {
            format!(", and may have {}", self.optional.join(", "))
        };
        format!("each entry of {} needs {}{optional}", self.list, self.required.join(", "))
    }
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path, form: &Form) -> Result<Read<T>, AuthFileError> {
    parse(path, &text_of(path)?, form)
}

pub(crate) fn text_of(path: &Path) -> Result<String, AuthFileError> {
    std::fs::read_to_string(path).map_err(|error| AuthFileError::Unreadable { path: path.to_owned(), error })
}

pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Parses a file's content as YAML if the file name has its extension, otherwise as TOML.
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
    let places = if yaml { yaml_places(text) } else { toml_places(text, form.list) };
    let mut mistakes = unknown_fields(path, text, form, &places);
    match read {
        Ok(value) => Ok(Read { value, mistakes, places }),
        Err((line, message)) => {
            // A field reported as missing is often a misspelled one, which is already reported as unknown.
            if mistakes.is_empty() || !message.contains("missing field") {
                let message = without_contents(&message, form);
                mistakes.push(AuthFileError::Form { path: path.to_owned(), line, message });
            }
            Err(AuthFileError::join(mistakes))
        }
    }
}

/// Finds fields that the schema doesn't have. The deserialized types ignore them, so that an unknown field
/// doesn't hide other errors.
fn unknown_fields(path: &Path, text: &str, form: &Form, places: &[Place]) -> Vec<AuthFileError> {
    let document: Option<Value> =
        if is_yaml(path) { serde_yaml_ng::from_str(text).ok() } else { toml::from_str(text).ok() };
    let Some(Value::Object(document)) = document else { return Vec::new() };
    let mut found = Vec::new();
    let mut add = |name: &str, line| {
        let message = format!("{}; {}", unknown_field(name, form), form.fields());
        found.push(AuthFileError::Form { path: path.to_owned(), line, message });
    };
    for name in document.keys().filter(|name| name.as_str() != form.list) {
        add(name, line_of_top_level(path, text, name));
    }
    let entries = document.get(form.list).and_then(Value::as_array);
    for (position, entry) in entries.into_iter().flatten().enumerate() {
        let names = entry.as_object().into_iter().flat_map(|entry| entry.keys());
        let is_known = |name: &str| form.required.contains(&name) || form.optional.contains(&name);
        for name in names.filter(|name| !is_known(name)) {
            add(name, places.get(position).map(|place| place.line_of(name)));
        }
    }
    found
}

/// The line of a field beside the list. In YAML it isn't indented; in braces, its line is unknown.
fn line_of_top_level(path: &Path, text: &str, name: &str) -> Option<usize> {
    if is_yaml(path) {
        let is_field = |line: &str| {
            line.split_once(':').is_some_and(|(key, _)| key.trim_end().trim_matches(['"', '\'']) == name)
        };
        return text.lines().position(is_field).map(|position| position + 1);
    }
    let document = DeTable::parse(text).ok()?;
    let (key, _) = document.get_ref().get_key_value(name)?;
    Some(line_of(text, key.span().start))
}

/// The message for an unknown field. After a slip, its name can be a secret: it is only repeated if at most two letters of a
/// known name are wrong.
fn unknown_field(name: &str, form: &Form) -> String {
    let mut known = form.required.iter().chain(form.optional).chain([&form.list]);
    let is_misspelled = known.any(|known| {
        let most = (known.len() / 2).min(2);
        name.len() <= known.len() + most && levenshtein(name, known) <= most
    });
    let name = if is_misspelled { format!(" {}", shown(name)) } else { String::new() };
    format!("there is an unknown field{name}")
}

/// Rewords a parser error, which can quote secrets from the file.
fn without_contents(message: &str, form: &Form) -> String {
    for field in form.required.iter().chain([&form.list]) {
        if message.contains(&format!("missing field `{field}`")) {
            return format!("{field} is missing");
        }
    }
    let kind = if message.contains("invalid type") || message.contains("invalid value") {
        "a value has the wrong type"
    } else {
        "syntax error"
    };
    format!("{kind}; {}", form.fields())
}

fn toml_places(text: &str, list: &str) -> Vec<Place> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let found = document.get_ref().iter().find(|(name, _)| name.get_ref() == list);
    let Some(DeValue::Array(entries)) = found.map(|(_, value)| value.get_ref()) else { return Vec::new() };
    let place = |entry: &Spanned<DeValue<'_>>| {
        let fields = match entry.get_ref() {
            DeValue::Table(table) => {
                let field = |name: &Spanned<_>| line_of(text, name.span().start);
                table.iter().map(|(name, _)| (name.get_ref().to_string(), field(name))).collect()
            }
            _ => BTreeMap::new(),
        };
        Place { line: line_of(text, entry.span().start), fields }
    };
    entries.iter().map(place).collect()
}

/// Finds entries by their hyphens, which are all indented like the first one. Entries of a list in brackets
/// aren't found.
fn yaml_places(text: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut first = None;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let is_item = content.starts_with("- ") || content.trim_end() == "-";
        if is_item && indent == *first.get_or_insert(indent) {
            places.push(Place { line: number, fields: BTreeMap::new() });
        }
        let field = content.trim_start_matches("- ").split_once(':');
        if let (Some(place), Some((field, _))) = (places.last_mut(), field) {
            place.fields.entry(field.trim_matches(['"', '\'']).to_owned()).or_insert(number);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_lines() {
        let text = "# users\n[[users]]\nname = \"a\"\n\n[[users]]\nname = \"b\"\n[users.projects]\np = []\n";
        let lines = |places: Vec<Place>| places.iter().map(|place| place.line).collect::<Vec<_>>();
        let places = toml_places(text, "users");
        assert_eq!(
            (places[0].line_of("name"), places[1].line_of("name"), places[1].line_of("id")),
            (3, 6, 5)
        );
        assert_eq!(lines(places), [2, 5]);
        assert_eq!(lines(toml_places("users = [\n {name = \"a\"},\n {name = \"b\"}]", "users")), [2, 3]);
        let text = "users:\n  - name: a\n    projects:\n      p:\n        - member\n  - name: b\n";
        let places = yaml_places(text);
        assert_eq!((places[0].line_of("name"), places[0].line_of("projects")), (2, 3));
        assert_eq!(lines(places), [2, 6]);
    }

    #[test]
    fn names_of_unknown_fields_are_repeated_only_if_they_are_misspelled() {
        let form = Form { list: "users", required: &["name", "password_hash"], optional: &["id"] };
        for misspelled in ["nmae", "Name", "user", "passwordhash", "ids"] {
            assert_eq!(unknown_field(misspelled, &form), format!("there is an unknown field {misspelled}"));
        }
        for secret in ["correct-horse-battery-staple", "sesame", "hunter2", "idea", "argon2id", ""] {
            assert_eq!(unknown_field(secret, &form), "there is an unknown field");
        }
        let text = "[[users]]\nname = \"ann\"\ncorrect-horse-battery-staple = \"password_hash\"\n";
        let read = parse::<Value>(Path::new("users.toml"), text, &form).expect("TOML");
        assert_eq!(read.mistakes.len(), 1);
        assert!(!read.mistakes[0].to_string().contains("horse"), "{:?}", read.mistakes);
    }

    #[test]
    fn unknown_fields_beside_the_list_are_found_by_their_own_lines() {
        let form = Form { list: "users", required: &["name"], optional: &["projects"] };
        let mistakes = |path: &str, text: &str| -> Vec<String> {
            let read = parse::<Value>(Path::new(path), text, &form).expect(text);
            read.mistakes.iter().map(ToString::to_string).collect()
        };
        let first = "[[users]]\nname = \"user\"\nprojects = {}\n\n[[users]]\nname = \"b\"\n";
        for (path, text, line) in [
            ("users.toml", format!("{first}[projects]\np = []\n"), 7),
            ("users.toml", format!("{first}[user]\n"), 7),
            ("users.yaml", "users:\n  - name: user\n    projects: {}\n'projects' :\n  p: []\n".to_owned(), 4),
            ("users.yaml", "users:\n- name: a\n  projects: {}\nuser: b\n".to_owned(), 4),
        ] {
            let found = mistakes(path, &text);
            let place = format!("{path}, line {line}: there is an unknown field");
            assert!(found.len() == 1 && found[0].starts_with(&place), "{place}: {found:#?}");
        }
    }
}
