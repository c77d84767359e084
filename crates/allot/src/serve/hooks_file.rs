//! Files of hooks, and the places of mistakes in them. Errors never quote a value, because headers of web
//! hooks are secrets.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use fleet::hooks::HooksError;
use leases::text::line_of;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::AssemblyError;

/// Maximum number of mistakes to look for. The file is parsed again after each.
const MOST_MISTAKES: usize = 50;

/// A file of hooks.
#[derive(Debug)]
pub(super) struct HooksFile<'p, T> {
    path: &'p Path,
    text: String,
    /// Positions in the text of what was taken out, in this order. `config` is without it.
    taken: Vec<usize>,
    pub config: T,
}

impl<'p, T: DeserializeOwned> HooksFile<'p, T> {
    /// Reads the file that a setting names. `example` is a page with a valid file. The error lists all
    /// malformed values.
    pub(super) fn read(setting: &'static str, path: &'p Path, example: &str) -> Result<Self, AssemblyError> {
        match Self::read_all(setting, path, example)? {
            (Some(file), mistakes) if mistakes.is_empty() => Ok(file),
            (_, mistakes) => Err(AssemblyError::Settings(mistakes)),
        }
    }

    /// The same without the values of a wrong form and the tables that lack a field, and the mistakes in these. There is no
    /// file if the document itself lacks a field.
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
        let file = config.map(|(config, taken)| Self { path, text, taken, config });
        Ok((file, mistakes))
    }

    /// Adds the file and the line to a mistake.
    pub(super) fn located(&self, mistake: &HooksError) -> AssemblyError {
        let line = self.rest().and_then(|(document, _)| {
            let value = value_at(document.get_ref(), &mistake.path())?;
            Some(line_of(&self.text, value.span().start))
        });
        let line = line.map(|line| format!("line {line}, ")).unwrap_or_default();
        AssemblyError::Form { path: self.path.to_owned(), reason: format!("{line}{mistake}") }
    }

    /// Whether a hook is only incomplete because a value of a wrong form was taken out of it.
    pub(super) fn is_explained(&self, mistake: &HooksError) -> bool {
        if !matches!(mistake, HooksError::Kind(_)) {
            return false;
        }
        let Some((document, incomplete)) = self.rest() else { return false };
        let Some(hook) = value_at(document.get_ref(), &mistake.path()) else { return false };
        let has_both = ["exec", "webhook"].iter().all(|key| hook.get_ref().get(*key).is_some());
        !has_both && incomplete.contains(&hook.span())
    }

    /// The document that `config` was read from, and the spans of tables and lists that something was taken out of.
    fn rest(&self) -> Option<(Spanned<DeTable<'_>>, Vec<Range<usize>>)> {
        let mut document = DeTable::parse(&self.text).ok()?;
        let span = document.span();
        let mut incomplete = Vec::new();
        for byte in &self.taken {
            incomplete.extend(take_out(document.get_mut(), span.clone(), *byte));
        }
        Some((document, incomplete))
    }
}

/// The configuration without values of a wrong form, their positions, and the mistakes. Each value, or table that lacks a field,
/// is taken out of the document once its mistake is known, so that it hides no other.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> (Option<(T, Vec<usize>)>, Vec<String>) {
    let mut document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => return (None, vec![malformed(text, &error)]),
    };
    let root = document.span();
    let mut mistakes = Vec::new();
    let mut taken = Vec::new();
    let mut incomplete: Vec<Range<usize>> = Vec::new();
    loop {
        let error = match T::deserialize(toml::Deserializer::from(document.clone())) {
            Ok(config) => return (Some((config, taken)), mistakes),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| root.clone());
        // A field may be missing because a mistake in it was removed above, or because its name is misspelled.
        let is_explained = error.message().starts_with("missing field ") && incomplete.contains(&span);
        if !is_explained {
            mistakes.push(malformed(text, &error));
        }
        if span == root || mistakes.len() >= MOST_MISTAKES {
            return (None, mistakes);
        }
        let Some(table) = take_out(document.get_mut(), root.clone(), span.start) else {
            return (None, mistakes);
        };
        taken.push(span.start);
        incomplete.push(table);
    }
}

/// Removes the value at a byte: the value of the key there, or else the innermost value in a table or list. Returns the
/// span of the enclosing table or list. `span` is that of `table`.
fn take_out(table: &mut DeTable<'_>, span: Range<usize>, byte: usize) -> Option<Range<usize>> {
    let mut found = None;
    for (name, value) in table.iter_mut() {
        // The span of a table with a heading also covers the keys of the tables around it.
        let is_key = name.span().contains(&byte);
        let inner = if is_key { None } else { take_out_inside(value, byte) };
        if inner.is_some() {
            return inner;
        }
        if is_key || value.span().contains(&byte) {
            found = Some(name.get_ref().to_string());
        }
    }
    table.remove(found?.as_str()).map(|_| span)
}

fn take_out_inside(value: &mut Spanned<DeValue<'_>>, byte: usize) -> Option<Range<usize>> {
    let span = value.span();
    match value.get_mut() {
        DeValue::Table(table) => take_out(table, span, byte),
        DeValue::Array(items) => {
            let inner = items.iter_mut().find_map(|item| take_out_inside(item, byte));
            let is_there =
                |item: &Spanned<DeValue<'_>>| item.get_ref().is_table() && item.span().contains(&byte);
            if inner.is_none() && items.iter().any(is_there) {
                *items = items.iter().filter(|item| !is_there(item)).cloned().collect();
                return Some(span);
            }
            inner
        }
        _ => None,
    }
}

/// Line and key of a mistake that TOML or the types of the configuration reject.
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
    // The part before the expectation quotes the value.
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| format!(", expected {expected}"));
    let key = DeTable::parse(text).ok().and_then(|document| key_at(document.get_ref(), byte));
    let key = key.map(|key| format!(", {key}")).unwrap_or_default();
    format!("line {line}{key}: {kind}{}", expected.unwrap_or_default())
}

/// A value, or the innermost one around it that is written.
fn value_at<'d, 'i>(document: &'d DeTable<'i>, path: &[String]) -> Option<&'d Spanned<DeValue<'i>>> {
    let (first, rest) = path.split_first()?;
    let mut value = document.get(first.as_str())?;
    for step in rest {
        let inner = match step.parse::<usize>() {
            Ok(position) => value.get_ref().get(position),
            Err(_) => value.get_ref().get(step.as_str()),
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    Some(value)
}

/// The key at this byte or at the value around it, with the keys of the tables around it.
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
            taken: Vec::new(),
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
        assert!(config.is_some());
    }

    #[test]
    fn one_mistake_neither_hides_another_nor_is_reported_again() {
        let text = "state_file = \"s\"\nhosts = [\n  { id = 1, name = \"a\", vcpu = 1, memory_mib = 1 },\n  \
                    { id = 2, name = \"b\", vcpus = 1 },\n  { id = 3, name = \"c\", vcpus = 1, memory_mib = 1 },\n  \
                    { id = 3, name = \"d\", vcpus = 1, memory_mib = 1 },\n]\n\
                    [hooks.on_hold]\nexec = \"true\"\n[hooks.on_held]\nexec = [\"true\"]\n\
                    [hooks.on_stop]\nwebhook = \"http://h/\"\nsecret_header = { name = \"X\" }\n\
                    [hooks.on_start]\n[hooks.on_delete]\nexce = [\"true\"]\n\
                    [hooks.on_resume]\ntime = 1\nexec = [\"true\"]\nwebhook = \"http://h/\"\n";
        let (config, mut mistakes) = parse::<HooksConfig>(text);
        mistakes.sort_unstable();
        let expected = [
            "line 10, hooks.on_held: unknown key",
            "line 14: missing field `file`",
            "line 17, hooks.on_delete.exce: unknown key",
            "line 19, hooks.on_resume.time: unknown key",
            "line 3, hosts.vcpu: unknown key",
            "line 4: missing field `memory_mib`",
            "line 9, hooks.on_hold.exec: wrong type",
        ];
        assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
        for (found, wanted) in mistakes.iter().zip(expected) {
            assert!(found.starts_with(wanted), "{wanted}: {found}");
        }
        let (config, taken) = config.expect("the document has all fields");
        let file = HooksFile { path: Path::new("hooks.toml"), text: text.to_owned(), taken, config };
        let others: Vec<String> = file
            .config
            .mistakes()
            .iter()
            .filter(|mistake| !file.is_explained(mistake))
            .map(|mistake| file.located(mistake).to_string())
            .collect();
        let expected = [
            "hooks.toml, line 6, hosts: id 3 occurs twice",
            "hooks.toml, line 15, hooks.on_start: give either exec",
            "hooks.toml, line 18, hooks.on_resume: give either exec",
        ];
        assert_eq!(others.len(), expected.len(), "{others:#?}");
        for wanted in expected {
            assert!(others.iter().any(|found| found.starts_with(wanted)), "{wanted}: {others:#?}");
        }
    }

    #[test]
    fn tables_with_headings_that_lack_a_field_hide_no_others() {
        let text = "state_file = \"s\"\n[[hosts]]\nid = 1\nname = \"a\"\nvcpus = 1\n\
                    [[hosts]]\nid = 2\nname = \"b\"\nvcpus = 1\nmemory_mib = 1\n\
                    [hooks.on_stop]\nwebhook = \"http://h/\"\n[hooks.on_stop.secret_header]\nname = \"X\"\n";
        let (config, mut mistakes) = parse::<HooksConfig>(text);
        mistakes.sort_unstable();
        assert_eq!(mistakes, ["line 13: missing field `file`", "line 2: missing field `memory_mib`"]);
        let (config, _) = config.expect("the document has all fields");
        assert_eq!(config.hosts.iter().map(|host| host.id).collect::<Vec<_>>(), [2]);
        let (config, mistakes) = parse::<HooksConfig>("hosts = []\n[hooks.on_hold]\nexec = 1\n");
        assert!(config.is_none() && mistakes.len() == 2, "{mistakes:#?}");
    }
}
