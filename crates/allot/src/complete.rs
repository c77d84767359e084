//! `allot __complete SHELL -- WORD...`: candidates for the last word of a command line. The scripts of
//! [`completions`](crate::completions) run it.
//!
//! It prints nothing on errors, never prompts, and ends within seconds.

use clap::builder::ValueHint;
use clap::{Arg, Command};
use htools::io::{Io, SUCCESS};
use htools::options::Program;
use leases::text::is_control;

use crate::client::{self, Named};
use crate::screen::joined;

/// Name of the hidden command.
pub(crate) const NAME: &str = "__complete";

/// Tells the shell to complete file names.
const FILES: &str = ":files";

/// A word and its description.
type Candidate = (String, String);

enum Candidates {
    Files,
    Words(Vec<Candidate>),
}

/// Prints one candidate per line: the word, a tab, its description.
pub(crate) fn run(arguments: &[String], mut tree: Command, io: &mut Io<'_>) -> u8 {
    let [_, shell, _, words @ ..] = arguments else { return SUCCESS };
    tree.build();
    let lines = match candidates(&tree, words, shell == "bash", &client::names) {
        Candidates::Files => vec![FILES.to_owned()],
        Candidates::Words(words) => {
            words.into_iter().map(|(word, about)| format!("{word}\t{about}")).collect()
        }
    };
    for line in lines {
        if writeln!(io.out, "{line}").is_err() {
            break;
        }
    }
    SUCCESS
}

/// Returns the candidates for the last word. `words` begin with the name of the program. A shell that splits
/// words at `=`, as bash does, expects only the value of `--name=value`.
fn candidates(
    tree: &Command,
    words: &[String],
    splits_at_equals: bool,
    names: &dyn Fn(Named, &[String]) -> Vec<String>,
) -> Candidates {
    let words = with_attached_values(words);
    let [program, before @ .., current] = words.as_slice() else { return Candidates::Words(Vec::new()) };
    let program = program.rsplit('/').next().and_then(Program::from_name);
    let before = program.map(|program| program.name().to_owned()).into_iter().chain(before.iter().cloned());
    let place = Place::after(tree, &before.collect::<Vec<_>>());

    let attached = current.split_once('=').filter(|_| place.takes_options && current.starts_with("--"));
    let (arg, typed, prefix) = match (place.value_of, attached) {
        (Some(arg), _) => (Some(arg), current.as_str(), String::new()),
        (None, Some((option, value))) => {
            let prefix = if splits_at_equals { String::new() } else { format!("{option}=") };
            (place.option(option), value, prefix)
        }
        (None, None) if place.takes_options && current.starts_with('-') => {
            return only_with_prefix(place.options(), current);
        }
        (None, None) => (place.positional(), current.as_str(), String::new()),
    };
    let mut found = match arg.map(|arg| place.values(arg, names)) {
        Some(Candidates::Files) => return Candidates::Files,
        Some(Candidates::Words(found)) => found,
        None => Vec::new(),
    };
    if place.value_of.is_none() && attached.is_none() {
        found.extend(place.subcommands());
    }
    match only_with_prefix(found, typed) {
        Candidates::Words(words) => {
            let words = words.into_iter().map(|(word, about)| (format!("{prefix}{word}"), about));
            Candidates::Words(words.collect())
        }
        files @ Candidates::Files => files,
    }
}

fn only_with_prefix(found: impl IntoIterator<Item = Candidate>, typed: &str) -> Candidates {
    Candidates::Words(found.into_iter().filter(|(word, _)| word.starts_with(typed)).collect())
}

/// Joins `--name`, `=` and `value` if the shell split them.
fn with_attached_values(words: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in words {
        match joined.last_mut() {
            Some(last) if is_open => {
                last.push_str(word);
                is_open = false;
            }
            Some(last) if word == "=" && last.starts_with("--") => {
                last.push('=');
                is_open = true;
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

/// Position of a word in a command line.
struct Place<'a> {
    command: &'a Command,
    /// The command's words without `allot`.
    path: String,
    /// The preceding option, if the word is its value.
    value_of: Option<&'a Arg>,
    /// Number of preceding positional arguments.
    position: usize,
    /// False after `--`.
    takes_options: bool,
    /// Preceding shared options with their values: URL of the service and login.
    shared: Vec<String>,
}

impl<'a> Place<'a> {
    fn after(tree: &'a Command, words: &[String]) -> Self {
        let mut place = Self {
            command: tree,
            path: String::new(),
            value_of: None,
            position: 0,
            takes_options: true,
            shared: Vec::new(),
        };
        for word in words {
            place.read(word);
        }
        place
    }

    fn read(&mut self, word: &str) {
        if let Some(arg) = self.value_of.take() {
            self.note(arg, word);
        } else if self.takes_options && word == "--" {
            self.takes_options = false;
        } else if self.takes_options && word.starts_with("--") {
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            if let Some(arg) = self.option(name) {
                self.note(arg, word);
                self.value_of = Some(arg).filter(|arg| value.is_none() && takes_next_word(arg));
            }
        } else if self.takes_options && word.len() > 1 && word.starts_with('-') {
            self.read_switches(word);
        } else if let Some(next) = self.command.find_subcommand(word).filter(|_| self.position == 0) {
            // The words after `help` name a command.
            if next.get_name() != "help" {
                self.path = joined(&self.path, next.get_name());
                self.command = next;
            }
        } else {
            self.position += 1;
        }
    }

    /// Reads `-o`, `-ojson` or `-CL`.
    fn read_switches(&mut self, word: &str) {
        for (at, letter) in word.char_indices().skip(1) {
            let Some(arg) = self.command.get_arguments().find(|arg| arg.get_short() == Some(letter)) else {
                return;
            };
            if arg.get_action().takes_values() {
                self.note(arg, word);
                let is_last = at + letter.len_utf8() == word.len();
                self.value_of = Some(arg).filter(|arg| is_last && takes_next_word(arg));
                return;
            }
        }
    }

    fn note(&mut self, arg: &Arg, word: &str) {
        if arg.is_global_set() {
            self.shared.push(word.to_owned());
        }
    }

    fn option(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| arg.get_long() == name.strip_prefix("--"))
    }

    fn options(&self) -> Vec<Candidate> {
        let options = self.command.get_arguments().filter_map(|arg| {
            let name = arg.get_long().map(|long| format!("--{long}"));
            let name = name.or_else(|| arg.get_short().map(|short| format!("-{short}")))?;
            Some((name, first_line(arg.get_help().map(ToString::to_string))))
        });
        options.collect()
    }

    fn subcommands(&self) -> Vec<Candidate> {
        if self.position > 0 {
            return Vec::new();
        }
        let listed = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        let named = listed.map(|command| {
            (command.get_name().to_owned(), first_line(command.get_about().map(ToString::to_string)))
        });
        named.collect()
    }

    /// Positional argument at this place. The last one can take several words.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let is_several = |arg: &&&Arg| arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        all.get(self.position).or_else(|| all.last().filter(is_several)).copied()
    }

    fn values(&self, arg: &Arg, names: &dyn Fn(Named, &[String]) -> Vec<String>) -> Candidates {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let listed = possible.iter().filter(|value| !value.is_hide_set());
            let words = listed.map(|value| {
                (value.get_name().to_owned(), first_line(value.get_help().map(ToString::to_string)))
            });
            return Candidates::Words(words.collect());
        }
        let Some(named) = self.named(arg) else {
            return match arg.get_value_hint() {
                ValueHint::Other => Candidates::Words(Vec::new()),
                _ => Candidates::Files,
            };
        };
        let names = names(named, &self.shared).into_iter().filter(|name| is_plain(name));
        Candidates::Words(names.map(|name| (name, String::new())).collect())
    }

    /// Kind of names that the argument takes.
    fn named(&self, arg: &Arg) -> Option<Named> {
        let first = self.path.split(' ').next()?;
        // `host create` takes machines that aren't hosts yet.
        if !client::NAMES.contains(&first) || self.path == "host create" {
            return None;
        }
        match arg.get_value_names()?.first()?.as_str() {
            "LEASE" => Some(Named::Lease),
            "HOST" => Some(Named::Host),
            "INSTANCE" => Some(Named::Instance),
            _ => None,
        }
    }
}

fn takes_next_word(arg: &Arg) -> bool {
    let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    arg.get_action().takes_values() && !arg.is_require_equals_set() && !is_optional
}

fn first_line(text: Option<String>) -> String {
    text.unwrap_or_default().lines().next().unwrap_or_default().replace(is_control, " ")
}

/// Whether the name needs no quoting in a shell. Other users choose names: `$(...)` in one must not run.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-') && name.chars().all(|c| c.is_alphanumeric() || "-_.+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    fn completed(line: &str, splits_at_equals: bool) -> Vec<String> {
        let mut tree = help::tree();
        tree.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let names = |named, _: &[String]| match named {
            Named::Lease => vec!["exp".into(), "$(reboot)".into(), "-x".into()],
            Named::Host => vec!["lab01".into(), "lab02".into()],
            Named::Instance => vec!["job1".into()],
        };
        match candidates(&tree, &words, splits_at_equals, &names) {
            Candidates::Files => vec![FILES.to_owned()],
            Candidates::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
        }
    }

    #[test]
    fn commands_options_values_and_files_are_completed() {
        for (line, wanted) in [
            ("allot le", &["lease", "leasepool"][..]),
            ("allot lease sh", &["show"]),
            ("allot help lease sh", &["show"]),
            ("allot lease create --wait", &["--waitlist", "--wait"]),
            ("allot lease create web --type im", &["immediate"]),
            ("allot -o", &[]),
            ("allot lease list -o js", &["json"]),
            ("allot lease list --output=js", &["--output=json"]),
            ("allot lease list --output = js", &["--output=json"]),
            ("allot lease create web --for ", &[]),
            ("allot lease list --ca-file ", &[FILES]),
            ("allot man ", &[FILES]),
            ("allot completions ba", &["bash"]),
            ("/usr/lib/allot/hbal --text", &["--text-data"]),
            ("hspace -t x --disk-t", &["--disk-template"]),
            ("allot hbal -t ", &[FILES]),
            ("allot hbal -t x --sea", &["--search", "--search-rounds", "--search-seed", "--search-time"]),
        ] {
            let mut completed = completed(line, false);
            let mut wanted: Vec<&str> = wanted.to_vec();
            completed.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(completed, wanted, "{line}");
        }
        assert_eq!(completed("allot lease list --output = js", true), ["json"]);
    }

    #[test]
    fn names_of_the_service_are_completed_and_those_with_special_characters_left_out() {
        for (line, wanted) in [
            ("allot lease show e", &["exp"][..]),
            ("allot lease show ", &["exp"]),
            ("allot lease end exp ", &["exp"]),
            ("allot lease show exp ", &[]),
            ("allot lease create web --like ", &["exp"]),
            ("allot instance list --lease=e", &["--lease=exp"]),
            ("allot host close lab01 l", &["lab01", "lab02"]),
            ("allot host create l", &[]),
            ("allot instance show ", &["job1"]),
            ("allot drain -- l", &[]),
        ] {
            assert_eq!(completed(line, false), wanted, "{line}");
        }
        let mut tree = help::tree();
        tree.build();
        let words = "lease show --url http://a --utc -ojson --user=ann".split(' ').map(str::to_owned);
        let place = Place::after(&tree, &words.collect::<Vec<_>>());
        assert_eq!(place.shared.join(" "), "--url http://a --utc -ojson --user=ann");
        assert_eq!((place.path.as_str(), place.position), ("lease show", 0));
    }
}
