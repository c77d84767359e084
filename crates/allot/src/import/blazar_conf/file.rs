//! Options of a file under today's names, with their references to other options.

use std::collections::BTreeMap;

use super::translation::{Note, note, option, wrong};
use crate::import::ini::Given;
use crate::import::options;

/// Section with the login of the service that validates tokens.
pub(super) const LOGIN: &str = "keystone_authtoken";

/// Section and option that have a value for each line.
const MULTIPLE: (&str, &str) = ("oslo_messaging_notifications", "driver");

/// Maximum number of references in a value, including those in the values that it refers to.
const MOST_REFERENCES: usize = 32;

/// Maximum length of a value that another one refers to, in bytes.
const LONGEST_REFERENCE: usize = 4096;

/// Options of a file by section and name.
pub(super) struct File(BTreeMap<(String, String), Given>);

/// Options of a file that don't count, or count under another name.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    pub taken: Vec<Note>,
    pub ignored: Vec<Note>,
}

impl File {
    /// Sorts the options. If a name occurs several times, the last one counts, as in Blazar. An old name only
    /// counts if today's name is missing.
    pub fn new(given: Vec<Given>) -> (Self, Renamed) {
        let mut file = Self(BTreeMap::new());
        let mut old = Self(BTreeMap::new());
        let mut renamed = Renamed::default();
        for mut given in given {
            // Except for DEFAULT, the case doesn't matter.
            if given.section != "DEFAULT" {
                given.section = given.section.to_lowercase();
            }
            match options::today(&given.section, &given.name) {
                Some((section, name)) => {
                    renamed.taken.push(note(&given, format!("old name of {}", option(section, name))));
                    (given.section, given.name) = (section.to_owned(), name.to_owned());
                    old.insert(given, &mut renamed);
                }
                None => file.insert(given, &mut renamed),
            }
        }
        for (key, given) in old.0 {
            if let Some(current) = file.0.get(&key) {
                let why = format!("not taken over: line {} has it under today's name", current.line);
                renamed.ignored.push(note(&given, why));
            } else {
                file.0.insert(key, given);
            }
        }
        file.move_login(&mut renamed);
        (file, renamed)
    }

    fn insert(&mut self, given: Given, renamed: &mut Renamed) {
        let key = (given.section.clone(), given.name.clone());
        match self.0.get_mut(&key) {
            Some(earlier) if MULTIPLE == (key.0.as_str(), key.1.as_str()) => {
                earlier.value.push(',');
                earlier.value.push_str(&given.value);
            }
            Some(earlier) => {
                let why = format!("not taken over: line {} sets it again", given.line);
                renamed.ignored.push(note(earlier, why));
                *earlier = given;
            }
            None => _ = self.0.insert(key, given),
        }
    }

    /// Moves the options of the login to its usual section, if the file has them in another one.
    fn move_login(&mut self, renamed: &mut Renamed) {
        let Some(section) = self.get(LOGIN, "auth_section") else { return };
        let section = section.to_lowercase();
        if section == LOGIN {
            return;
        }
        let belongs = |given: &&Given| {
            given.section == section
                && options::named(LOGIN, &given.name).is_some()
                && options::named(&section, &given.name).is_none()
        };
        let moved: Vec<Given> = self.0.values().filter(belongs).cloned().collect();
        for given in moved {
            self.0.remove(&(given.section.clone(), given.name.clone()));
            renamed.taken.push(note(&given, format!("read as {}", option(LOGIN, &given.name))));
            let key = (LOGIN.to_owned(), given.name.clone());
            self.0.insert(key, Given { section: LOGIN.to_owned(), ..given });
        }
    }

    pub fn options(&self) -> impl Iterator<Item = &Given> {
        self.0.values()
    }

    /// `None` if the option is missing or empty.
    pub fn given(&self, section: &str, name: &str) -> Option<&Given> {
        self.find(section, name).filter(|given| !given.value.is_empty())
    }

    /// `None` if the option is missing, empty or invalid.
    pub fn get(&self, section: &str, name: &str) -> Option<String> {
        self.given(section, name).and_then(|given| self.plain(given).ok())
    }

    /// The value with references replaced by the values of these options. `$$` and `\$` are a dollar sign.
    pub fn plain(&self, given: &Given) -> Result<String, Note> {
        let mut left = MOST_REFERENCES;
        self.expanded(&given.section, &given.value, &mut left).map_err(|reason| wrong(given, reason))
    }

    fn find(&self, section: &str, name: &str) -> Option<&Given> {
        self.0.get(&(section.to_owned(), name.to_owned()))
    }

    fn expanded(&self, section: &str, value: &str, left: &mut usize) -> Result<String, String> {
        let mut plain = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('$') {
            let escaped = before.strip_suffix('\\');
            plain.push_str(escaped.unwrap_or(before));
            if let Some((name, after)) = reference(after).filter(|_| escaped.is_none()) {
                plain.push_str(&self.referred(section, name, left)?);
                rest = after;
            } else {
                plain.push('$');
                rest = after.strip_prefix('$').filter(|_| escaped.is_none()).unwrap_or(after);
            }
        }
        plain.push_str(rest);
        Ok(plain)
    }

    /// Value of an option that a value in `section` refers to. Secrets aren't included, because settings are
    /// printed.
    fn referred(&self, section: &str, name: &str, left: &mut usize) -> Result<String, String> {
        let found = match name.split_once('.') {
            Some((section, name)) => self.find(section, name),
            None => self.find(section, name).or_else(|| self.find("DEFAULT", name)),
        };
        if found.is_some_and(|found| options::is_secret(&found.name)) {
            return Err(format!("it refers to ${name}, which is secret: write the value itself"));
        }
        let found = found.filter(|found| options::named(&found.section, &found.name).is_some());
        let found = found.ok_or_else(|| {
            format!("it refers to ${name}, which isn't an option that the file sets: write the value itself, or $$ for a dollar sign")
        })?;
        *left = left
            .checked_sub(1)
            .filter(|_| found.value.len() <= LONGEST_REFERENCE)
            .ok_or("it refers to too many or too long values: write the value itself")?;
        self.expanded(&found.section, &found.value, left)
    }
}

/// The name at the start of the text behind a dollar sign, with or without braces, and the remaining text.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (inner, end) = text.strip_prefix('{').map_or((text, ""), |inner| (inner, "}"));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let (name, rest) = inner.split_at(inner.find(|c: char| !is_of_name(c)).unwrap_or(inner.len()));
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    Some((name, rest.strip_prefix(end)?)).filter(|_| begins)
}
