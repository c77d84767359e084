//! Layout of `--help`, which fits a screen: usage, examples, and one line per option of the command. The full
//! text is in `allot help COMMAND` and the manual pages, and the shared options are in `allot help
//! connecting`.

use clap::{Arg, ArgAction, Command};

use crate::client::names::is_client;
use crate::examples;
use crate::shown::broken;

/// Width of a screen.
pub(crate) const COLUMNS: usize = 80;

/// Options of long commands that only `allot help COMMAND` shows.
const FURTHER: [(&str, &[&str]); 5] = [
    (
        "lease create",
        &[
            "timeout",
            "before-end-at",
            "backfill",
            "hint",
            "key",
            "before-end",
            "affinity",
            "network",
            "address",
            "reservation",
            "survive",
            "skip-unavailable",
        ],
    ),
    (
        "lease update",
        &[
            "keep",
            "backfill",
            "before-end-at",
            "end-action",
            "reservation",
            "shorten-by",
            "amount",
            "survive",
        ],
    ),
    ("instance create", &OF_INSTANCES),
    ("instance filter", &OF_INSTANCES),
    ("usage", &["pool", "format"]),
];

const OF_INSTANCES: [&str; 7] = [
    "reservation",
    "preemptible-class",
    "flavor-property",
    "image-property",
    "volume-property",
    "same-host",
    "different-host",
];

/// Heading of options that, for every command, only `allot help COMMAND` shows.
const FURTHER_HEADING: &str = "Requirements on whole hosts";

/// Options that `allot serve --help` shows, out of several hundred.
const SERVE: [(&str, &str); 8] = [
    ("config", "Read settings from this file (TOML)"),
    ("check", "Report every mistake in the configuration and exit"),
    ("listen", "Address and port to listen on [default: 127.0.0.1:1234]"),
    ("database", "Database: sqlite://FILE, postgres://..., or memory"),
    ("fleet", "Machines: simulated, openstack, or hooks:FILE"),
    ("auth", "How clients log in"),
    ("tls-certificate", "Serve HTTPS with this certificate (PEM)"),
    ("tls-key", "Its private key (PEM)"),
];

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Lays out a command and its subcommands for `--help`. `path` has the command's words without `allot`.
pub(crate) fn screen(command: Command, path: &str) -> Command {
    let named: Vec<Arg> = command.get_arguments().filter(|arg| !is_further(path, arg)).cloned().collect();
    let mut is_whole = true;
    let command = command.mut_args(|arg| {
        if arg.is_global_set() {
            return arg.hide(true);
        }
        if is_further(path, &arg) {
            is_whole = false;
            return arg.hide_short_help(true);
        }
        if path == "serve" {
            is_whole = false;
            let own = SERVE.iter().find(|(option, _)| arg.get_long() == Some(option));
            return own.map_or(arg.clone(), |(_, help)| arg.help_heading(None::<&str>).help(*help));
        }
        let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
        let short = beginning(&help, room(&arg, &named));
        is_whole &= short.len() == help.len() && arg.get_long_help().is_none();
        let short = short.to_owned();
        arg.help(short)
    });
    let longest = command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let room = COLUMNS.saturating_sub(longest + 4);
    let command = command.mut_subcommands(|subcommand| {
        let path = joined(path, subcommand.get_name());
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let about = beginning(&about, room).to_owned();
        screen(subcommand.about(about), &path)
    });
    let command = command.disable_help_flag(true).arg(
        Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).hide(true).help("Show help"),
    );
    let further = (!is_whole).then(|| format!("All options and details: `allot help {path}`"));
    with_texts(command, path, further)
}

/// Lays out a command of the tree for `allot help COMMAND`.
pub(crate) fn whole(command: Command, path: &str) -> Command {
    let command = command.mut_args(|arg| {
        let shared = arg.is_global_set() || arg.get_id() == "help";
        if shared { arg.hide(true) } else { arg }
    });
    with_texts(command, path, None)
}

/// Adds the examples, and the notes at the end.
fn with_texts(command: Command, path: &str, further: Option<String>) -> Command {
    let common = is_client(path)
        .then_some("Options of all commands (-o, --url, --user, ...): `allot help connecting`");
    let own = command.get_after_help().map(ToString::to_string);
    let notes = [own, further, common.map(str::to_owned)];
    let notes = notes.into_iter().flatten().collect::<Vec<_>>().join("\n");
    let examples = match examples::own(path) {
        [] => String::new(),
        own => format!("Examples:\n  {}", own.join("\n  ")),
    };
    let lists = command.has_subcommands() || command.get_arguments().any(is_shown);
    let (before, after) =
        if lists { (vec![examples], notes) } else { (vec![examples, notes], String::new()) };
    let before = before.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let command = if before.is_empty() { command } else { command.before_help(before) };
    command.after_help(after).help_template(TEMPLATE)
}

/// Wraps a text between words, at `columns`.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    broken(&words.join(" "), columns).lines().map(str::to_owned).collect()
}

/// Wraps lines that don't fit the screen between words. Continuation lines start below the description.
pub(crate) fn fitted(text: &str) -> String {
    let mut fitted = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let described = line[indent..].find("  ").map(|gap| {
            let rest = &line[indent + gap..];
            line.len() - rest.trim_start().len()
        });
        let start = described.unwrap_or(indent).min(COLUMNS / 2);
        if line.chars().count() <= COLUMNS || !line.is_char_boundary(start) {
            fitted.extend([line, "\n"]);
            continue;
        }
        for (number, part) in wrapped(&line[start..], COLUMNS - start).into_iter().enumerate() {
            let before = if number == 0 { line[..start].to_owned() } else { " ".repeat(start) };
            fitted.extend([&before, &part, "\n"]);
        }
    }
    fitted
}

fn is_shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !arg.is_hide_short_help_set()
}

/// Path of a subcommand.
pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path} {name}") }
}

fn is_further(path: &str, arg: &Arg) -> bool {
    let Some(long) = arg.get_long() else { return false };
    if path == "serve" {
        return !SERVE.iter().any(|(option, _)| *option == long);
    }
    arg.get_help_heading() == Some(FURTHER_HEADING)
        || FURTHER.iter().any(|(command, options)| *command == path && options.contains(&long))
}

/// Columns for the help of an argument, next to the longest name under the same heading.
fn room(arg: &Arg, all: &[Arg]) -> usize {
    let beside = |other: &&Arg| {
        other.is_positional() == arg.is_positional() && other.get_help_heading() == arg.get_help_heading()
    };
    let longest = all.iter().filter(beside).map(name_width).max().unwrap_or(0);
    let room = COLUMNS.saturating_sub(longest + if arg.is_positional() { 4 } else { 8 });
    match room.checked_sub(remarks_width(arg)) {
        Some(left) if left >= COLUMNS / 5 => left,
        // Long lists of values wrap in any case.
        _ => room,
    }
}

/// Columns of `--name <VALUE>`.
fn name_width(arg: &Arg) -> usize {
    let long = arg.get_long().map_or(0, |long| long.len() + 2);
    if !arg.get_action().takes_values() {
        return long;
    }
    let value =
        arg.get_value_names().and_then(<[_]>::first).map_or(arg.get_id().as_str().len(), |name| name.len());
    let several = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    long + value + 3 + if several { 3 } else { 0 }
}

/// Columns for the default and the possible values.
fn remarks_width(arg: &Arg) -> usize {
    // Until a command is built, switches have possible values as well.
    if !arg.get_action().takes_values() {
        return 0;
    }
    let default = arg.get_default_values().iter().map(|value| value.len() + 12).sum::<usize>();
    let values = arg.get_possible_values();
    let names = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().len() + 2);
    default + if values.is_empty() { 0 } else { names.sum::<usize>() + 18 }
}

/// The longest start of a text that fits and ends with a sentence, or else with a clause. If there is none,
/// the whole text.
fn beginning(text: &str, room: usize) -> &str {
    let fits = |text: &str| text.chars().count() <= room;
    if fits(text) {
        return text;
    }
    let longest = |ends: &[&str]| {
        let ends = ends.iter().flat_map(|end| text.match_indices(end));
        let clauses = ends.map(|(at, _)| &text[..at]).filter(|clause| fits(clause) && is_closed(clause));
        clauses.max_by_key(|clause| clause.len())
    };
    longest(&["; ", ". "]).or_else(|| longest(&[": ", ", ", " (", " ["])).unwrap_or(text)
}

/// Whether all quotation marks and parentheses are closed.
fn is_closed(text: &str) -> bool {
    let count = |mark| text.matches(mark).count();
    let are_closed = |open, close| count(open) == count(close);
    count('"') % 2 == 0 && count('`') % 2 == 0 && are_closed('(', ')') && are_closed('[', ']')
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{client, help, serve, user};

    /// Height of a screen, and the limit for commands with many options.
    const LINES: usize = 24;
    const MOST_LINES: usize = 44;
    /// Maximum number of options that fit a screen.
    const FEW: usize = 10;

    fn check(command: &Command, path: &str, topic: &str) {
        let listed = command.get_arguments().filter(|arg| is_shown(arg)).count();
        let listed = listed + command.get_subcommands().count();
        let text = command.clone().render_help().to_string();
        let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(COLUMNS).max(1)).sum();
        let most = if listed <= FEW { LINES } else { MOST_LINES };
        assert!(path.is_empty() || lines <= most, "allot {path}: {lines} lines\n{text}");
        if let [first, ..] = examples::own(path) {
            assert!(text.contains(&format!("\n\nExamples:\n  {first}\n")), "allot {path}:\n{text}");
        }
        let is_further = Arg::is_hide_short_help_set;
        let words: Vec<String> = path.split(' ').map(str::to_owned).collect();
        let whole = command.get_arguments().any(is_further).then(|| help::whole(&words)).flatten();
        for arg in command.get_arguments().filter(|arg| !is_shown(arg)) {
            let name = format!("--{}", arg.get_long().unwrap_or_default());
            let shown = if is_further(arg) { whole.as_deref().unwrap_or_default() } else { topic };
            assert!(shown.contains(&name), "allot {path} hides {name}");
        }
        for next in command.get_subcommands() {
            check(next, &joined(path, next.get_name()), topic);
        }
    }

    #[test]
    fn long_lines_are_broken_between_words_below_their_beginning() {
        let words = "word ".repeat(20);
        let text = format!("Usage: short\n  -o, --option <X>  {words}\n      {words}");
        let fitted = fitted(&text);
        let lines: Vec<&str> = fitted.lines().collect();
        assert_eq!(lines.len(), 5, "{fitted}");
        assert!(lines.iter().all(|line| line.len() <= COLUMNS), "{fitted}");
        assert!(lines[1].starts_with("  -o, --option <X>  word ") && lines[2].starts_with(&" ".repeat(20)));
        assert!(lines[4].starts_with("      word"), "{fitted}");
    }

    #[test]
    fn help_fits_a_screen_begins_with_examples_and_says_where_hidden_options_are() {
        let topic = client::connecting();
        let all = [(client::Line::command(), ""), (serve::command(), "serve"), (user::command(), "user")];
        for (command, path) in all {
            let mut command = screen(command, path);
            command.build();
            check(&command, path, &topic);
        }
    }

    #[test]
    fn texts_are_cut_between_clauses() {
        let text = "How long, at most: 90m, 2h; or \"until, when\" (13:00)";
        assert_eq!(beginning(text, 60), text);
        assert_eq!(beginning(text, 40), "How long, at most: 90m, 2h");
        assert_eq!(beginning(text, 22), "How long, at most: 90m");
        assert_eq!(beginning(text, 18), "How long, at most");
        assert_eq!(beginning(text, 3), text);
        assert_eq!(beginning("Say \"a, b\", or", 11), "Say \"a, b\"");
    }
}
