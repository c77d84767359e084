//! Suggestions for users who type the terms of other programs.

use clap::Command;

/// Verbs that people try, and our subcommands in order of preference. The first that the command has is suggested.
const ACTIONS: [(&[&str], &[&str]); 10] = [
    (&["ls", "ps", "index", "all"], &["list"]),
    (&["get", "describe", "info", "status", "view"], &["show", "list"]),
    (&["rm", "remove", "del", "cancel", "release", "destroy", "drop"], &["delete", "remove"]),
    (&["add", "new", "make", "book", "reserve", "request", "allocate"], &["create", "add"]),
    (&["edit", "modify", "change", "set", "resize"], &["update", "rename"]),
    (&["move", "reschedule", "shift", "postpone", "mv"], &["move", "update"]),
    (&["stop", "terminate", "finish", "kill"], &["end", "delete"]),
    (&["renew", "prolong", "lengthen"], &["extend"]),
    (&["copy", "clone", "duplicate", "repeat", "cp"], &["copy", "create"]),
    (&["watch", "follow"], &["wait"]),
];

/// Nouns, and the commands for them.
const THINGS: [(&[&str], &str); 13] = [
    (&["reservation", "reservations", "booking", "bookings", "job", "jobs"], "lease"),
    (&["node", "nodes", "machine", "machines", "hypervisor", "compute"], "host"),
    (&["vm", "vms", "server", "servers", "guest"], "instance"),
    (&["pool", "pools", "aggregate"], "freepool"),
    (&["ip", "ips", "address", "addresses"], "floatingip"),
    (&["size", "sizes", "type", "types"], "flavor"),
    (&["users", "account", "accounts", "passwd", "adduser", "useradd"], "user"),
    (&["spot"], "preemptible"),
    (&["free", "sinfo"], "availability"),
    (&["billing", "cost", "costs", "invoice", "report"], "usage"),
    (&["log", "logs", "history"], "events"),
    (&["config", "configuration"], "settings"),
    (&["login", "logout", "auth", "me", "id"], "whoami"),
];

/// Options that people try, and ours in order of preference. The first that the command has is suggested.
const OPTIONS: [(&str, &[&str]); 9] = [
    ("--port", &["--listen"]),
    ("--count", &["--hosts", "--amount", "--instances"]),
    ("--nodes", &["--hosts", "--amount"]),
    ("--for", &["--end"]),
    ("--duration", &["--for", "--end"]),
    ("--length", &["--for", "--end"]),
    ("--until", &["--end", "--to"]),
    ("--since", &["--from"]),
    ("--ram", &["--memory"]),
];

/// Options that a command lacks, and the command line to use instead.
const INSTEAD: [(&str, &[&str], &str); 5] = [
    (
        "copy",
        &["--end", "--for", "--to", "--until", "--duration", "--length"],
        "allot lease create NAME --like LEASE --start WHEN --end WHEN",
    ),
    ("demo", &["--user", "--password", "--project", "--token", "--auth"], "allot demo --login"),
    ("extend", &["--by", "--for", "--extend-by", "--duration"], "allot lease extend LEASE 12h"),
    ("extend", &["--end", "--to", "--until"], "allot lease update LEASE --end WHEN"),
    ("move", &["--by", "--move-by"], "allot lease update LEASE --move-by 1d"),
];

fn action<'a>(word: &str, of: &'a Command) -> Option<&'a str> {
    let (_, own) = ACTIONS.iter().find(|(words, _)| words.contains(&word))?;
    own.iter().find_map(|name| of.find_subcommand(name)).map(Command::get_name)
}

/// Command to suggest for an unknown one: the command for a noun, or an action on leases.
pub(crate) fn command(word: &str, tree: &Command) -> Option<String> {
    if let Some((_, own)) = THINGS.iter().find(|(words, _)| words.contains(&word)) {
        return Some((*own).to_owned());
    }
    let leases = tree.find_subcommand("lease")?;
    let own = leases.find_subcommand(word).map(Command::get_name).or_else(|| action(word, leases))?;
    Some(format!("lease {own}"))
}

/// Subcommand, option or command line to suggest for an unknown subcommand or option of this command.
pub(crate) fn part<'a>(word: &str, of: &'a Command) -> Option<&'a str> {
    if let Some(own) = action(word, of) {
        return Some(own);
    }
    let is_negative =
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match of.get_name() {
        "extend" if is_negative => return Some("allot lease extend LEASE -- -2h"),
        "update" if is_negative => return Some("--shorten-by"),
        _ => {}
    }
    let is_meant =
        |(command, options, _): &&(&str, &[&str], &str)| *command == of.get_name() && options.contains(&word);
    if let Some((_, _, line)) = INSTEAD.iter().find(is_meant) {
        return Some(line);
    }
    let (_, own) = OPTIONS.iter().find(|(option, _)| *option == word)?;
    let has = |option: &&&str| of.get_arguments().any(|arg| arg.get_long() == option.strip_prefix("--"));
    own.iter().find(has).copied()
}
