//! Command-line syntax in the GNU style, with the reference's messages.

use std::collections::VecDeque;
use std::fmt::Write;

use super::help;
use super::program::Program;
use super::table::{Argument, Flag, flags};

/// A parsed command line.
pub(super) struct Line {
    /// Options with their arguments, in order.
    pub(super) flags: Vec<(&'static Flag, Option<String>)>,
    /// Arguments that are not options, in order.
    pub(super) positional: Vec<String>,
    /// Error messages, one line each. Unknown options come last.
    pub(super) errors: String,
}

struct Scanner {
    known: Vec<&'static Flag>,
    rest: VecDeque<String>,
    line: Line,
    unknown: String,
}

pub(super) fn scan(program: Program, args: &[String]) -> Line {
    let mut scanner = Scanner {
        known: flags(program).collect(),
        rest: args.iter().cloned().collect(),
        line: Line { flags: Vec::new(), positional: Vec::new(), errors: String::new() },
        unknown: String::new(),
    };
    while let Some(word) = scanner.rest.pop_front() {
        if word == "--" {
            scanner.line.positional.extend(scanner.rest.drain(..));
        } else if let Some(long) = word.strip_prefix("--") {
            scanner.long(long);
        } else if let Some(first) = word.strip_prefix('-').and_then(|w| w.chars().next()) {
            scanner.short(first, &word[1 + first.len_utf8()..]);
        } else {
            scanner.line.positional.push(word);
        }
    }
    scanner.line.errors.push_str(&scanner.unknown);
    scanner.line
}

impl Scanner {
    fn long(&mut self, text: &str) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let shown = format!("--{name}");
        let exact: Vec<_> = self.known.iter().copied().filter(|f| f.long == name).collect();
        let matches = if exact.is_empty() {
            // Our own options must not make a prefix ambiguous that the reference accepts.
            self.known.iter().copied().filter(|f| !f.own && f.long.starts_with(name)).collect()
        } else {
            exact
        };
        match (matches.as_slice(), value) {
            ([], _) => self.unrecognized(&format!("--{text}")),
            ([flag], None) => match flag.argument {
                Argument::Required(what) => self.separate(flag, &shown, what),
                Argument::None | Argument::Optional(_) => self.line.flags.push((flag, None)),
            },
            ([flag], Some(_)) if flag.argument == Argument::None => {
                self.error(&format!("option `{shown}' doesn't allow an argument"));
            }
            ([flag], value) => self.line.flags.push((flag, value)),
            _ => {
                self.error(&format!("option `{shown}' is ambiguous; could be one of:"));
                self.line.errors.push_str(&help::screen(&matches));
            }
        }
    }

    fn short(&mut self, name: char, attached: &str) {
        let shown = format!("-{name}");
        let value = (!attached.is_empty()).then(|| attached.to_owned());
        let Some(flag) = self.known.iter().copied().find(|f| f.short == Some(name)) else {
            self.unrecognized(&shown);
            self.cluster(value);
            return;
        };
        match (flag.argument, value) {
            (Argument::Required(what), None) => self.separate(flag, &shown, what),
            (Argument::Required(_) | Argument::Optional(_), value) => self.line.flags.push((flag, value)),
            (Argument::None, value) => {
                self.line.flags.push((flag, None));
                self.cluster(value);
            }
        }
    }

    /// The text after a short option without an argument is read as if it had its own dash, so `-v-` ends the
    /// options.
    fn cluster(&mut self, following: Option<String>) {
        if let Some(following) = following {
            self.rest.push_front(format!("-{following}"));
        }
    }

    /// Takes the next word as the argument, even if it looks like an option.
    fn separate(&mut self, flag: &'static Flag, shown: &str, what: &str) {
        match self.rest.pop_front() {
            Some(value) => self.line.flags.push((flag, Some(value))),
            None => self.error(&format!("option `{shown}' requires an argument {what}")),
        }
    }

    fn error(&mut self, message: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.line.errors, "{message}");
    }

    fn unrecognized(&mut self, shown: &str) {
        let _ = writeln!(self.unknown, "unrecognized option `{shown}'");
    }
}
