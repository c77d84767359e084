//! Help texts derived from the table of options.

use std::fmt::Write;

use super::program::Program;
use super::table::{Argument, Flag, flags};

/// Width of a screen, in columns.
const COLUMNS: usize = 80;

/// Maximum width of an option's names, in columns, for a description on the same line. Descriptions of wider
/// options start on the next line.
const LONGEST_NAMES: usize = 38;

/// Product and version, also used as the origin of jobs.
pub fn version_text() -> String {
    format!("(allotment) version {}", env!("CARGO_PKG_VERSION"))
}

/// Name and version, as a line.
fn version_line(program: Program) -> String {
    format!("{} {}\n", program.name(), version_text())
}

/// Output of `--version`.
pub(super) fn version(program: Program) -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{}running on {os} {arch}\n", version_line(program))
}

/// Output of `--help`.
pub(super) fn usage(program: Program) -> String {
    let (own, common): (Vec<_>, Vec<_>) = flags(program).partition(|f| f.own);
    let mut out = version_line(program);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Usage: {} [OPTION...]", program.name());
    out.push_str(&screen(&common));
    out.push_str("Not in Ganeti's own tools, and not to be abbreviated:\n");
    out.push_str(&screen(&own));
    out
}

/// An option, for other forms of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHelp {
    pub short: Option<char>,
    /// Name without dashes.
    pub long: &'static str,
    /// Placeholder of the value; `None` if it takes none.
    pub value: Option<&'static str>,
    /// Whether the value can be omitted.
    pub optional_value: bool,
    pub help: &'static str,
}

/// Options of a program, in the order of its help.
pub fn described(program: Program) -> Vec<OptionHelp> {
    let described = |flag: &Flag| OptionHelp {
        short: flag.short,
        long: flag.long,
        value: match flag.argument {
            Argument::None => None,
            Argument::Required(what) | Argument::Optional(what) => Some(what),
        },
        optional_value: matches!(flag.argument, Argument::Optional(_)),
        help: flag.help,
    };
    flags(program).map(described).collect()
}

/// Options with descriptions that are wrapped to fit a screen.
pub(super) fn screen(flags: &[&Flag]) -> String {
    let short_width = flags.iter().map(|flag| short_form(flag).len()).max().unwrap_or(0);
    let names =
        flags.iter().map(|flag| format!("  {:short_width$}  {}  ", short_form(flag), long_form(flag)));
    let names: Vec<String> = names.collect();
    let column = names.iter().map(String::len).filter(|width| *width <= LONGEST_NAMES).max().unwrap_or(0);
    let mut out = String::new();
    for (name, flag) in names.iter().zip(flags) {
        let mut before = name.as_str();
        if name.len() > column {
            let _ = writeln!(out, "{}", name.trim_end());
            before = "";
        }
        for line in broken(flag.help, COLUMNS - column) {
            let _ = writeln!(out, "{before:column$}{line}");
            before = "";
        }
    }
    out
}

/// Wraps text between words into lines of at most `columns` columns.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn short_form(flag: &Flag) -> String {
    match (flag.short, flag.argument) {
        (None, _) => String::new(),
        (Some(short), Argument::None) => format!("-{short}"),
        (Some(short), Argument::Required(what)) => format!("-{short} {what}"),
        (Some(short), Argument::Optional(what)) => format!("-{short}[{what}]"),
    }
}

fn long_form(flag: &Flag) -> String {
    match flag.argument {
        Argument::None => format!("--{}", flag.long),
        Argument::Required(what) => format!("--{}={what}", flag.long),
        Argument::Optional(what) => format!("--{}[={what}]", flag.long),
    }
}

/// Output of `--help-completion`.
pub(super) fn completion(program: Program) -> String {
    let mut out = String::new();
    for flag in flags(program) {
        if let Some(short) = flag.short {
            let _ = write!(out, "-{short},");
        }
        let _ = writeln!(out, "--{} {}", flag.long, flag.completion);
    }
    out.push_str(match program {
        Program::Hail => "file 1 1\n",
        Program::Hscan => "host 0 none\n",
        _ => "",
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_a_screen_and_has_every_option_and_word() {
        for program in Program::ALL {
            let text = usage(program);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= COLUMNS, "{}: {widest} columns\n{text}", program.name());
            let words: Vec<&str> = text.split_whitespace().collect();
            let words = words.join(" ");
            for flag in flags(program) {
                assert!(
                    words.contains(&format!("{} {}", long_form(flag), flag.help)),
                    "{}:\n{text}",
                    flag.long
                );
            }
        }
    }
}
