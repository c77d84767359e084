//! Help: one tree of all commands, grouped by audience, and messages for invalid command lines.

use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory};
use cluster::nearest;
use htools::io::{Io, SUCCESS, USAGE};
use htools::options::{OptionHelp, Program, described};
use leases::text::escaped;

use crate::{client, database, demo, foreign, import, manual, questions, screen, serve, user};

/// Every command once, grouped by audience.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Try it", &["demo"]),
    (
        "Reserve machines",
        &["lease", "availability", "calendar", "instance", "preemptible", "events", "usage", "whoami"],
    ),
    (
        "Offer machines (for operators)",
        &[
            "serve",
            "user",
            "host",
            "freepool",
            "leasepool",
            "floatingip",
            "flavor",
            "maintenance",
            "energy",
            "capacity",
            "audit",
            "settings",
            "doctor",
            "database",
            "import",
        ],
    ),
    (
        "Place the instances of a Ganeti cluster",
        &[
            "hail", "hbal", "hcheck", "hinfo", "hspace", "hroller", "hsqueeze", "hscan", "harep", "drain",
            "whatif", "fit",
        ],
    ),
    ("Set up this command", &["completions", "man", "hash", "install-links", "help", "version"]),
];

/// All commands in one tree, from which help, manual pages and completions are generated. It can't run them:
/// their modules do that.
pub(crate) fn tree() -> Command {
    let with_common_options = |mut command: Command| {
        // Building adds the global options to each subcommand.
        command.build();
        command.get_subcommands().cloned().collect::<Vec<_>>()
    };
    let tree = Command::new("allot")
        .about("Reserves machines for a time, and places virtual machines")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands([
            serve::command(),
            demo::command(),
            database::command(),
            import::command(),
            user::command(),
        ])
        .subcommands(with_common_options(client::Line::command()))
        .subcommands(with_common_options(questions::command()))
        .subcommands(with_common_options(manual::command()))
        .subcommands(Program::ALL.iter().map(|program| ganeti(*program)))
        .subcommand(
            Command::new("help")
                .about("Show this text, or the help of a command")
                .arg(Arg::new("command").value_name("COMMAND").num_args(0..)),
        )
        .subcommand(Command::new("version").about("Show the version"));
    with_value_hints(tree)
}

/// Makes shells complete file names only in values named FILE or DIR.
fn with_value_hints(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let named = arg.get_value_names().unwrap_or_default().iter();
            let file = named.clone().any(|name| name.contains("FILE") || name.contains("DIR"));
            match arg.get_value_hint() {
                ValueHint::Unknown if !file && arg.get_action().takes_values() => {
                    arg.value_hint(ValueHint::Other)
                }
                _ => arg,
            }
        })
        .mut_subcommands(with_value_hints)
}

/// One of Ganeti's programs, with the options of its own table.
fn ganeti(program: Program) -> Command {
    let option = |option: OptionHelp| {
        let arg = Arg::new(option.long).long(option.long).help(option.help);
        let arg = match option.short {
            Some(short) => arg.short(short),
            None => arg,
        };
        match option.value {
            None => arg.action(ArgAction::Count),
            Some(value) if option.optional_value => {
                arg.value_name(value).num_args(0..=1).require_equals(true)
            }
            Some(value) => arg.value_name(value).action(ArgAction::Append),
        }
    };
    let command = Command::new(program.name())
        .about(purpose(program))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(described(program).into_iter().map(option));
    match program {
        Program::Hail => command.arg(Arg::new("request").value_name("FILE").help("The request")),
        Program::Hscan => {
            command.arg(Arg::new("cluster").value_name("CLUSTER").num_args(0..).help("Clusters to read"))
        }
        _ => command,
    }
}

fn purpose(program: Program) -> &'static str {
    match program {
        Program::Hail => "Place a new or moved instance (iallocator)",
        Program::Harep => "Repair broken instances, as far as tags allow",
        Program::Hbal => "Balance a node group",
        Program::Hcheck => "Check a cluster, and whether balancing would help",
        Program::Hinfo => "Describe a cluster",
        Program::Hroller => "Group nodes that can be rebooted together",
        Program::Hscan => "Save clusters to files",
        Program::Hspace => "Count instances that still fit",
        Program::Hsqueeze => "Find nodes that can be switched off",
    }
}

/// The overview: every command with its purpose.
pub(crate) fn general() -> String {
    let tree = tree();
    let mut text = format!(
        "Usage: allot COMMAND [ARGUMENT...]\n\n{}.\n",
        tree.get_about().map(ToString::to_string).unwrap_or_default()
    );
    for (heading, names) in GROUPS {
        text.extend(["\n", heading, ":\n"]);
        for name in names {
            let about = tree.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.extend([format!("  {name:<14}{about}\n")]);
        }
    }
    text.push_str(
        "
`allot lease create --help` shows examples and options of a command, `allot help
lease create` explains all of them, and `allot help connecting` how to reach a
service and log in. Ganeti's programs also run under their own names (links to
this binary), or under the name in the environment variable HTOOLS.
",
    );
    text
}

/// A topic of `allot help` that isn't a command.
pub(crate) const CONNECTING: &str = "connecting";

/// Full help of a command, by its words, or of a topic. `None` if it's unknown or one of Ganeti's programs,
/// which print their own help.
pub(crate) fn whole(words: &[String]) -> Option<String> {
    if matches!(words, [topic] if topic == CONNECTING) {
        return Some(client::connecting());
    }
    if Program::from_name(words.first()?).is_some() {
        return None;
    }
    let mut tree = tree();
    tree.build();
    let mut command = &tree;
    let mut path = String::new();
    for word in words {
        command = command.find_subcommand(word)?;
        path = screen::joined(&path, command.get_name());
    }
    Some(screen::fitted(&screen::whole(command.clone(), &path).render_long_help().to_string()))
}

pub(crate) fn has_subcommands(command: &str) -> bool {
    tree().find_subcommand(command).is_some_and(Command::has_subcommands)
}

/// Message for an unknown command, with a suggestion if there is one.
pub(crate) fn unknown(word: &str) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
    let typed = word.to_lowercase();
    let meant = foreign::command(&typed, &tree()).or_else(|| nearest(&typed, names).map(str::to_owned));
    let meant = meant.map(|name| format!("did you mean `{name}`? "));
    let word: String = word.chars().take(MOST_QUOTED).collect();
    format!(
        "Error: there is no command `{}`\nHint: {}`allot help` lists all commands\n",
        escaped(&word),
        meant.unwrap_or_default()
    )
}

/// Maximum number of characters of user input to quote.
const MOST_QUOTED: usize = 200;

/// Prints an error in the command line in two lines, or the help that was asked for. Returns the exit status.
/// `arguments` begin with the name of the command.
pub(crate) fn refuse(error: &clap::Error, arguments: &[String], io: &mut Io<'_>) -> u8 {
    if !error.use_stderr() {
        return if io.out.write_all(screen::fitted(&error.render().to_string()).as_bytes()).is_ok() {
            SUCCESS
        } else {
            USAGE
        };
    }
    // Not an error: the command needs a subcommand, so its help is shown.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = write!(io.err, "{}", screen::fitted(&error.render().to_string()));
        return USAGE;
    }
    let tree = tree();
    let (path, command) = path(&tree, arguments);
    let meant = meant(error, command).map(|word| format!("did you mean `{word}`? ")).unwrap_or_default();
    let _ = writeln!(io.err, "Error: {}", escaped(&complaint(error)));
    let _ = writeln!(io.err, "Hint: {}`{path} --help` shows how", escaped(&meant));
    USAGE
}

/// The parser's error in one line, without its usage and tips.
fn complaint(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").map(str::trim_start);
    let paragraphs = paragraphs
        .take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more information"));
    let lines = paragraphs.filter(|part| !part.starts_with("tip:")).flat_map(str::lines);
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Suggestion for a wrong word: the same meaning, or a similar spelling.
fn meant(error: &clap::Error, command: &Command) -> Option<String> {
    let wrong = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let known = wrong.iter().filter_map(|kind| error.get(*kind)).find_map(|wrong| match wrong {
        ContextValue::String(word) => foreign::part(word, command),
        _ => None,
    });
    if let Some(own) = known {
        return Some(own.to_owned());
    }
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.iter().find_map(|kind| match error.get(*kind)? {
        ContextValue::String(word) => Some(word.clone()),
        // The most similar one is the last.
        ContextValue::Strings(words) => words.last().cloned(),
        _ => None,
    })
}

/// The command that the known words among the arguments name: `allot lease create`.
fn path<'a>(tree: &'a Command, arguments: &[String]) -> (String, &'a Command) {
    let (mut path, mut command) = ("allot".to_owned(), tree);
    for word in arguments {
        if let Some(next) = command.find_subcommand(word) {
            path.push(' ');
            path.push_str(next.get_name());
            command = next;
        }
    }
    (path, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_commands_has_no_contradiction() {
        tree().debug_assert();
    }

    #[test]
    fn help_has_every_command_once() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let tree = tree();
        let mut known: Vec<&str> = tree.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
        for line in general().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for name in known {
            let lines = general().lines().filter(|line| line.starts_with(&format!("  {name} "))).count();
            assert_eq!(lines, 1, "{name}");
        }
    }

    #[test]
    fn no_option_shares_a_name_or_variable_with_one_of_all_commands() {
        fn check(path: &str, command: &Command, common: &[Arg]) {
            for arg in command.get_arguments() {
                for other in common {
                    let shared = arg.get_id() == other.get_id()
                        || arg.get_long() == other.get_long()
                        || arg.get_env().is_some_and(|variable| Some(variable) == other.get_env());
                    let same = arg.get_help() == other.get_help() && arg.get_env() == other.get_env();
                    assert!(!shared || same, "{path} {arg} is not {other}");
                }
            }
            for next in command.get_subcommands() {
                check(&format!("{path} {}", next.get_name()), next, common);
            }
        }
        let login = |arg: &&Arg| arg.get_help_heading().is_some_and(|heading| heading != "Output");
        let common: Vec<Arg> = client::Line::command().get_arguments().filter(login).cloned().collect();
        assert!(common.len() > 15, "{common:?}");
        check("allot", &tree(), &common);
    }

    #[test]
    fn commands_that_destroy_something_have_an_option_not_to_ask() {
        fn with_yes(path: &str, command: &Command, found: &mut Vec<String>) {
            if command.get_arguments().any(|arg| arg.get_long() == Some("yes")) {
                found.push(path.to_owned());
            }
            for next in command.get_subcommands() {
                with_yes(format!("{path} {}", next.get_name()).trim_start(), next, found);
            }
        }
        let mut found = Vec::new();
        with_yes("", &client::Line::command(), &mut found);
        let wanted = [
            "lease end",
            "lease delete",
            "lease delete-series",
            "host delete",
            "freepool delete",
            "freepool remove-host",
            "leasepool delete",
            "floatingip delete",
            "flavor delete",
            "instance delete",
            "maintenance cancel",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn every_command_option_and_heading_says_what_it_is() {
        fn check(path: &str, command: &Command) {
            assert!(command.get_about().is_some(), "{path} does not say what it does");
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some() || path == "allot help", "{path} {arg} has no help");
            }
            for next in command.get_subcommands() {
                check(&format!("{path} {}", next.get_name()), next);
            }
        }
        check("allot", &tree());
    }

    #[test]
    fn options_are_under_the_headings_that_they_belong_to() {
        let tree = tree();
        let find = |path: &[&str], option: &str| {
            let command =
                path.iter().fold(&tree, |command, name| command.find_subcommand(name).expect("a command"));
            let option =
                command.get_arguments().find(|arg| arg.get_long() == Some(option)).expect("an option");
            option.get_help_heading().map(str::to_owned)
        };
        let create = ["lease", "create"];
        for option in ["hint", "dry-run", "waitlist", "wait", "key", "start", "for", "end", "type"] {
            assert_eq!(find(&create, option), None, "--{option}");
        }
        for (option, heading) in [
            ("hosts", "Reservations"),
            ("every", "Recurrence"),
            ("zone", "Requirements on whole hosts"),
            ("url", "Connection"),
            ("token", "Login"),
            ("os-username", "Login at Keystone"),
            ("json", "Output"),
            ("utc", "Output"),
            ("columns", "Output"),
        ] {
            assert_eq!(find(&create, option).as_deref(), Some(heading), "--{option}");
        }
    }

    #[test]
    fn commands_that_do_not_exist_are_two_lines_with_the_one_that_was_meant() {
        let wanted = "Error: there is no command `leases`\nHint: did you mean `lease`? `allot help` lists all commands\n";
        assert_eq!(unknown("leases"), wanted);
        assert_eq!(unknown("\u{1b}[2J").lines().count(), 2);
        assert!(unknown(&"x".repeat(100_000)).len() < 400);
    }

    #[test]
    fn a_command_is_found_among_options() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let tree = tree();
        let path = |text: &str| path(&tree, &words(text)).0;
        assert_eq!(path("lease create web --hosts"), "allot lease create");
        assert_eq!(path("lease --json create"), "allot lease create");
        assert_eq!(path("demo --nothing"), "allot demo");
    }
}
