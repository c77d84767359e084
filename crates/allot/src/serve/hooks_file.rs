//! Files of hooks, and where mistakes are in them. No error repeats a value: headers of web hooks are secrets.

use std::fmt::Write as _;
use std::path::Path;

use fleet::hooks::HooksError;
use leases::text::line_of;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::AssemblyError;

/// The most mistakes that are looked for: after each, the file is read again.
const MOST_MISTAKES: usize = 50;

/// A file of hooks.
#[derive(Debug)]
pub(super) struct HooksFile<'p, T> {
    path: &'p Path,
    text: String,
    pub config: T,
}

impl<'p, T: DeserializeOwned> HooksFile<'p, T> {
    /// Reads the file that a setting names. `example` has one that works. The error has all values of a wrong form.
    pub(super) fn read(setting: &'static str, path: &'p Path, example: &str) -> Result<Self, AssemblyError> {
        match Self::read_all(setting, path, example)? {
            (Some(file), mistakes) if mistakes.is_empty() => Ok(file),
            (_, mistakes) => Err(AssemblyError::Settings(mistakes)),
        }
    }

    /// The same without the values of a wrong form, and the mistakes in these. There is no file if one lacks something
    /// without them.
    pub(super) fn read_all(
        setting: &'static str,
        path: &'p Path,
        example: &str,
    ) -> Result<(Option<Self>, Vec<String>), AssemblyError> {
        let text = super::error::read(setting, path)?;
        let (config, mistakes) = parse(&text);
        let mut mistakes: Vec<String> =
            mistakes.into_iter().map(|mistake| format!("{}, {mistake}", path.display())).collect();
        if let Some(last) = mistakes.last_mut() {
            let _ = write!(last, " ({example} has a file of hooks that works)");
        }
        let file = config.map(|config| Self { path, text, config });
        Ok((file, mistakes))
    }

    /// A mistake in the file, with its line.
    pub(super) fn located(&self, mistake: &HooksError) -> AssemblyError {
        let line = line_of_value(&self.text, &mistake.path());
        let line = line.map(|line| format!("line {line}, ")).unwrap_or_default();
        AssemblyError::Form { path: self.path.to_owned(), reason: format!("{line}{mistake}") }
    }
}

/// The configuration without values of a wrong form, and the mistakes. Each value is taken out of the document once its mistake
/// is known, so that it hides no other.
fn parse<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<String>) {
    let mut document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => return (None, vec![malformed(text, &error)]),
    };
    let mut mistakes = Vec::new();
    loop {
        let error = match T::deserialize(toml::Deserializer::from(document.clone())) {
            Ok(config) => return (Some(config), mistakes),
            Err(error) => error,
        };
        // A missing value may be one that was taken out, or misspelled.
        let is_missing = error.message().starts_with("missing field ");
        if !is_missing || mistakes.is_empty() {
            mistakes.push(malformed(text, &error));
        }
        let byte = error.span().map(|span| span.start);
        let removed = byte.is_some_and(|byte| remove_at(document.get_mut(), byte));
        if is_missing || !removed || mistakes.len() >= MOST_MISTAKES {
            return (None, mistakes);
        }
    }
}

/// Takes the innermost value out that a byte is in, or whose key it is in.
fn remove_at(table: &mut DeTable<'_>, byte: usize) -> bool {
    let mut found = None;
    for (name, value) in table.iter_mut() {
        if remove_inside(value.get_mut(), byte) {
            return true;
        }
        if name.span().contains(&byte) || value.span().contains(&byte) {
            found = Some(name.get_ref().to_string());
        }
    }
    found.is_some_and(|name| table.remove(name.as_str()).is_some())
}

fn remove_inside(value: &mut DeValue<'_>, byte: usize) -> bool {
    match value {
        DeValue::Table(table) => remove_at(table, byte),
        DeValue::Array(items) => items.iter_mut().any(|item| remove_inside(item.get_mut(), byte)),
        _ => false,
    }
}

/// The line and the key of what TOML or the types of the configuration reject.
fn malformed(text: &str, error: &toml::de::Error) -> String {
    let byte = error.span().map_or(0, |span| span.start);
    let line = line_of(text, byte);
    let message = error.message();
    if message.starts_with("missing field ") {
        return format!("line {line}: {message}");
    }
    let kind = if message.starts_with("unknown ") {
        "unknown key"
    } else if message.starts_with("invalid type") || message.starts_with("invalid value") {
        "wrong type"
    } else if message.starts_with("invalid length") {
        "wrong length"
    } else if message.starts_with("duplicate ") {
        "duplicate key"
    } else {
        "invalid TOML"
    };
    // The value stands before what is expected.
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| format!(", expected {expected}"));
    let key = DeTable::parse(text).ok().and_then(|document| key_at(document.get_ref(), byte));
    let key = key.map(|key| format!(", {key}")).unwrap_or_default();
    format!("line {line}{key}: {kind}{}", expected.unwrap_or_default())
}

/// The line of a value, or of the innermost one around it that is written.
fn line_of_value(text: &str, path: &[String]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (first, rest) = path.split_first()?;
    let mut value = document.get_ref().get(first.as_str())?;
    for step in rest {
        let inner = match step.parse::<usize>() {
            Ok(position) => value.get_ref().get(position),
            Err(_) => value.get_ref().get(step.as_str()),
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    Some(line_of(text, value.span().start))
}

/// The key that a byte is in, or in whose value it is, with the keys of the tables around it.
fn key_at(table: &DeTable<'_>, byte: usize) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let inner = inside(value, byte).map(|key| format!("{}.{key}", name.get_ref()));
        let found = name.span().contains(&byte) || value.span().contains(&byte);
        inner.or_else(|| found.then(|| name.get_ref().to_string()))
    })
}

fn inside(value: &Spanned<DeValue<'_>>, byte: usize) -> Option<String> {
    match value.get_ref() {
        DeValue::Table(table) => key_at(table, byte),
        DeValue::Array(items) => items.iter().find_map(|item| inside(item, byte)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fleet::hooks::HooksConfig;

    use super::*;

    const FILE: &str = "state_file = \"/dev/null\"\nhosts = [\n  { id = 1, name = \"a\", vcpus = 1, memory_mib = 1 },\n  \
                        { id = 1, name = \"b\", vcpus = 1, memory_mib = 1 },\n]\n\n[hooks.on_hold]\nexec = [\"./no\"]\n\
                        time_limit_seconds = 0\n\n[hooks]\non_start = {}\n\
                        on_stop = { webhook = \"http://h/\", secret_header = { name = \"X\", file = \"/no/secret\" } }\n";

    #[test]
    fn mistakes_name_their_lines() {
        let file = HooksFile {
            path: Path::new("hooks.toml"),
            text: FILE.to_owned(),
            config: toml::from_str::<HooksConfig>(FILE).expect("a configuration"),
        };
        let mistakes: Vec<String> =
            file.config.mistakes().iter().map(|mistake| file.located(mistake).to_string()).collect();
        let expected = [
            "hooks.toml, line 1, state_file: /dev/null is not a regular file",
            "hooks.toml, line 4, hosts: id 1 occurs twice",
            "hooks.toml, line 8, hooks.on_hold: ./no: no such file",
            "hooks.toml, line 9, hooks.on_hold: time_limit_seconds must be at least 1",
            "hooks.toml, line 12, hooks.on_start: give either exec",
            "hooks.toml, line 13, hooks.on_stop: secret_header: /no/secret: ",
        ];
        for mistake in expected {
            assert!(mistakes.iter().any(|found| found.starts_with(mistake)), "{mistake}: {mistakes:#?}");
        }
        assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
    }

    #[test]
    fn keys_are_named_and_values_are_not() {
        let malformed = |text: &str| {
            let error = toml::from_str::<HooksConfig>(text).expect_err(text);
            malformed(text, &error)
        };
        for (text, wanted) in [
            ("state_file = \"s\"\nhosst = []\n", "line 2, hosst: unknown key, expected one of"),
            (
                "state_file = \"s\"\nhosts = []\n[hooks.on_hold]\nsecret_header = { name = \"A\", fiel = \"hunter2\" }\n",
                "line 4, hooks.on_hold.secret_header.fiel: unknown key, expected",
            ),
            (
                "state_file = \"s\"\nhosts = [{ id = 1, name = \"a\", vcpus = \"hunter2\", memory_mib = 1 }]\n",
                "line 2, hosts.vcpus: wrong type, expected",
            ),
            ("state_file = \"s\"\nstate_file = \"hunter2\"\n", "line 2: duplicate key"),
            ("token: hunter2\n", "line 1: invalid TOML"),
        ] {
            let reason = malformed(text);
            assert!(reason.starts_with(wanted) && !reason.contains("hunter2"), "{text}: {reason}");
        }
    }

    #[test]
    fn a_value_of_a_wrong_form_hides_no_other() {
        let text = "state_file = \"s\"\nhosst = 1\nhosts = [\n  { id = 1, name = \"a\", vcpus = 1, memory_mib = 1, ram = 2 },\n]\n\
                    [hooks.on_held]\nexec = [\"true\"]\n[hooks.on_hold]\nexce = [\"true\"]\n\
                    [hooks.on_start]\nexec = [\"true\"]\ntime_limit_seconds = \"long\"\n";
        let (config, mistakes) = parse::<HooksConfig>(text);
        for place in [
            "line 2, hosst: unknown key",
            "line 4, hosts.ram: unknown key",
            "line 6, hooks.on_held: unknown key",
            "line 9, hooks.on_hold.exce: unknown key",
            "line 12, hooks.on_start.time_limit_seconds: wrong type",
        ] {
            assert!(mistakes.iter().any(|mistake| mistake.starts_with(place)), "{place}: {mistakes:#?}");
        }
        assert_eq!(mistakes.len(), 5, "{mistakes:#?}");
        // The rest is checked as well.
        let found = config.expect("nothing is missing").mistakes();
        assert!(
            found.iter().any(|mistake| mistake.to_string().starts_with("hooks.on_hold: give")),
            "{found:?}"
        );
    }
}
