//! `allot help connecting`: options shared by all commands, with their environment variables and order of
//! precedence.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory};

use super::Line;
use crate::screen::{COLUMNS, screen, wrapped};

const INTRODUCTION: &str = "\
Options of all commands that talk to a service. Each can stand anywhere after
the command, and most can be set by a variable instead.

Precedence:
  An option comes before its variable. An empty variable counts as unset.
  Login: a token, then a user with a password, then Keystone, then no login.
  Service: --url, then Keystone's catalog, then http://127.0.0.1:1234.
  CA certificates: --ca-file, then --os-cacert, then the system's.
  Format: --json, then -o.

`allot whoami` shows the service, your user and how you logged in. Set secrets
as variables: other users of the machine see the options of running commands.
";

/// Options shared by all commands.
pub(crate) fn options() -> Vec<Arg> {
    let command = screen(Line::command(), "");
    command.get_arguments().filter(|arg| arg.is_hide_set()).cloned().collect()
}

pub(crate) fn topic() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut heading = None;
    for arg in options() {
        let own = arg.get_help_heading().unwrap_or("Help").to_owned();
        if heading.as_ref() != Some(&own) {
            let _ = write!(text, "\n{own}:\n");
            heading = Some(own);
        }
        let variable = arg.get_env().map(|name| format!("  {}", name.display())).unwrap_or_default();
        let _ = writeln!(text, "  {}{variable}", name(&arg));
        for line in wrapped(&explained(&arg), COLUMNS - 6) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

/// `-o, --output <FORMAT>`
fn name(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let long = arg.get_long().unwrap_or_default();
    let value = arg.get_value_names().and_then(<[_]>::first).filter(|_| arg.get_action().takes_values());
    let value = value.map(|value| format!(" <{value}>")).unwrap_or_default();
    format!("{short}--{long}{value}")
}

/// Help of an option, with its possible values and default.
fn explained(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    // Until a command is built, switches have possible values as well.
    if !arg.get_action().takes_values() {
        return text;
    }
    let values = arg.get_possible_values();
    if !values.is_empty() {
        let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let _ = write!(text, ": {}", values.join(", "));
    }
    for default in arg.get_default_values() {
        let _ = write!(text, " [default: {}]", default.display());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_fits_the_width_and_has_each_option_with_its_variable() {
        let topic = topic();
        for line in topic.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        for (option, variable) in [
            ("--url <URL>", "ALLOT_URL"),
            ("--os-auth-url <URL>", "OS_AUTH_URL"),
            ("--token <TOKEN>", "ALLOT_TOKEN"),
        ] {
            assert!(topic.contains(&format!("\n  {option}  {variable}\n")), "{option}\n{topic}");
        }
        assert!(topic.contains("\n  --utc\n") && !topic.contains("true, false"), "{topic}");
        assert!(topic.contains("\n  -h, --help\n") && topic.contains("  -o, --output <FORMAT>\n"), "{topic}");
        assert!(topic.contains("table, wide, csv, name, json, yaml [default: table]"), "{topic}");
    }
}
