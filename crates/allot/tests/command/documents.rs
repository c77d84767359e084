//! Follows README and the pages of `docs` like a reader: runs every block of commands in a scratch directory.
//! The output of a `console` block must have the shape that the page shows. Commands of an `sh` block must
//! succeed, and `allot serve` must start.
//!
//! System directories ([`ELSEWHERE`]) are moved below the scratch directory. In skipped blocks, `allot` must
//! know the commands and their options.
//!
//! Comments in a page, which its readers don't see, tell what a reader has done before:
//!
//! | comment | |
//! | --- | --- |
//! | `<!-- file: NAME -->`, `<!-- file: NAME executable -->` | the next block is a file of that name |
//! | `<!-- same: PAGE NAME -->` | the file of that name from another page |
//! | `<!-- start: serve ARGS -->` | `allot serve ARGS` runs from here on |
//! | `<!-- run: COMMAND -->` | a command that the page doesn't show |
//! | `<!-- joined -->` | the output of the next block is one line, broken to fit the page |
//! | `<!-- skip: REASON -->` | the next block can't run in a test, for one of [`REASONS`] |
//!
//! Numbers and identifiers can differ, and a line `...` stands for any lines. A command without shown output
//! must succeed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::service::Running;
use crate::shell::fresh;

/// Valid reasons for skipping a block.
const REASONS: &[&str] = &[
    "builds the program",
    "needs root",
    "shows one moment",
    "shows a shortened answer",
    "needs OpenStack's clients",
    "needs Tempest",
    "needs a Blazar",
    "needs a server",
    "needs a Ganeti cluster",
    "needs PostgreSQL",
    "needs instances of others in the way",
    "needs hosts of several kinds",
    "asks for a password",
    "needs a login",
    "takes an hour",
];

macro_rules! pages {
    ($($name:ident $path:literal;)*) => {
        $(#[test]
        fn $name() {
            follow($path);
        })*

        /// The pages that are followed.
        const PAGES: &[&str] = &[$($path),*];
    };
}

pages! {
    readme_does_what_it_says "README.md";
    lease_types_does_what_it_says "docs/explanation/lease-types.md";
    drain_whatif_fit_does_what_it_says "docs/how-to/drain-whatif-fit.md";
    housekeeping_does_what_it_says "docs/how-to/housekeeping.md";
    instances_does_what_it_says "docs/how-to/instances.md";
    negotiate_does_what_it_says "docs/how-to/negotiate.md";
    offer_preemptible_instances_does_what_it_says "docs/how-to/offer-preemptible-instances.md";
    operations_does_what_it_says "docs/how-to/operations.md";
    replace_blazar_does_what_it_says "docs/how-to/replace-blazar.md";
    run_the_service_does_what_it_says "docs/how-to/run-the-service.md";
    save_power_does_what_it_says "docs/how-to/save-power.md";
    survive_failures_does_what_it_says "docs/how-to/survive-failures.md";
    usage_and_billing_does_what_it_says "docs/how-to/usage-and-billing.md";
    calendar_api_does_what_it_says "docs/reference/calendar-api.md";
    command_line_does_what_it_says "docs/reference/command-line.md";
    ganeti_programs_does_what_it_says "docs/reference/ganeti-programs.md";
    pools_does_what_it_says "docs/reference/pools.md";
    first_lease_does_what_it_says "docs/tutorials/first-lease.md";
    ganeti_does_what_it_says "docs/tutorials/ganeti.md";
    own_machines_does_what_it_says "docs/tutorials/own-machines.md";
    use_preemptible_instances_does_what_it_says "docs/tutorials/use-preemptible-instances.md";
}

/// Pages without a block that can run in a test.
const NOT_FOLLOWED: &[&str] = &[
    "docs/how-to/openstack.md",
    "docs/how-to/replace-blazar-in-containers.md",
    "docs/reference/cluster-sources.md",
    "docs/reference/filters.md",
    "docs/reference/workloads.md",
];

/// System directories in the commands of pages.
const ELSEWHERE: [&str; 3] = ["/etc/allot", "/var/lib/allot", "/backup"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Paths of the pages in a directory of the checkout and below it.
fn pages_in(directory: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join(directory)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages.extend(pages_in(&path));
        } else if entry.path().extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages
}

#[test]
fn every_page_with_commands_is_followed() {
    let mut missing = Vec::new();
    for page in pages_in("docs").into_iter().chain(["README.md".to_owned()]) {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        let commands =
            parts(&text).into_iter().any(|part| !matches!(part, Part::File { .. } | Part::Skipped { .. }));
        if NOT_FOLLOWED.contains(&page.as_str()) {
            assert!(!commands, "{page} has blocks that can be run");
        } else if commands && !PAGES.contains(&page.as_str()) {
            missing.push(page);
        }
    }
    assert!(missing.is_empty(), "they have commands that nobody tries: {missing:?}");
}

#[test]
fn commands_that_are_not_run_are_known() {
    let pages = PAGES.iter().chain(NOT_FOLLOWED);
    let mut seen = 0;
    for page in pages {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        for part in parts(&text) {
            let Part::Skipped { reason, commands } = part else { continue };
            assert!(REASONS.contains(&reason.as_str()), "{page}: {reason:?} is none of {REASONS:?}");
            for command in commands {
                seen += usize::from(is_known(page, &command));
            }
        }
    }
    assert!(seen > 10, "{seen} commands of ours");
}

/// Whether this is a command of ours. If so, its help must have the options.
fn is_known(page: &str, command: &str) -> bool {
    let line = command.split(" #").next().unwrap_or_default().replace("\\\n", " ");
    let mut words = line.split_whitespace().skip_while(|word| word.contains('=') || *word == "sudo");
    if words.next() != Some("allot") {
        return false;
    }
    let names: Vec<&str> = words
        .clone()
        .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'))
        .take(2)
        .collect();
    // The second word can be an argument.
    let helps =
        (1..=names.len()).rev().map(|count| crate::shell::allot(&[&["help"], &names[..count]].concat()));
    let help = helps.into_iter().find(|help| help.status == 0);
    let help = help.unwrap_or_else(|| panic!("{page}: {command}: there is no such command")).out;
    let help = help + &crate::shell::allot(&["help", "connecting"]).out;
    for option in words.filter(|word| word.starts_with("--")) {
        let option = option.split('=').next().unwrap_or(option);
        assert!(help.contains(option), "{page}: {command}: there is no {option}\n{help}");
    }
    true
}

/// Commands that only administrators can use.
const OPERATORS: [&str; 13] = [
    "host",
    "freepool",
    "flavor create",
    "flavor delete",
    "floatingip create",
    "floatingip delete",
    "instance filter",
    "maintenance",
    "preemptible project",
    "energy",
    "audit",
    "settings",
    "doctor",
];

/// Commands in a row of a command table: `allot host list`, `show`, `delete` are three.
fn of_table(line: &str) -> Vec<String> {
    let cell = line.strip_prefix("| `allot ").and_then(|line| line.split(" | ").next());
    let spans = cell.unwrap_or_default().split('`').step_by(2);
    let mut spans = spans.filter(|span| !span.is_empty());
    let Some(first) = spans.next() else { return Vec::new() };
    let mut parent: Vec<&str> =
        first.split(' ').take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect();
    parent.pop();
    let others = spans.map(|span| format!("allot {} {span}", parent.join(" ")));
    std::iter::once(format!("allot {first}")).chain(others).collect()
}

#[test]
fn every_documented_command_answers_members_and_readers() {
    let service = crate::people::service();
    let directory = fresh("member");
    fs::create_dir_all(&directory).expect("a scratch directory");
    let operator =
        "export ALLOT_USER=ada ALLOT_PASSWORD=secret\nallot host create r1-h01 r1-h02 r2-h01 --set rack=r1";
    assert_eq!(shell(operator, 0, &directory, Some(&service)).0, 0);
    let mut commands_seen = std::collections::BTreeSet::new();
    for page in PAGES.iter().chain(NOT_FOLLOWED) {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        commands_seen.extend(text.lines().flat_map(of_table));
        for part in parts(&text) {
            match part {
                Part::Run(command) => commands_seen.extend([command]),
                Part::Shell(commands) | Part::Skipped { commands, .. } => commands_seen.extend(commands),
                Part::Console { steps, .. } => {
                    commands_seen.extend(steps.into_iter().map(|step| step.command));
                }
                Part::File { .. } | Part::Start(_) | Part::Unmarked(_) => {}
            }
        }
    }
    let mut clients = std::collections::BTreeMap::new();
    let mut run = 0;
    for line in commands_seen {
        let Some(name) = line.strip_prefix("allot ").and_then(|words| words.split(' ').next()) else {
            continue;
        };
        let is_client = clients.entry(name.to_owned()).or_insert_with_key(|name| {
            crate::shell::allot(&[name, "--help"]).out.contains("`allot help connecting`")
        });
        if !*is_client || line.contains("--follow") || line.starts_with("allot lease wait") {
            continue;
        }
        run += 1;
        let command = line.replace("--wait", "");
        for user in ["ann", "rea"] {
            let line = format!("export ALLOT_USER={user} ALLOT_PASSWORD=secret\n{command}");
            let (status, out) = shell(&line, 0, &directory, Some(&service));
            assert!(status < 3, "{user}: {command}: {status}\n{out}");
            assert!(!out.contains("Policy doesn't") && !out.contains("Too many"), "{user}: {command}\n{out}");
            let words = command.strip_prefix("allot ").unwrap_or_default();
            let for_operators =
                words.contains("--of-project") || OPERATORS.iter().any(|prefix| words.starts_with(prefix));
            assert!(for_operators || !out.contains("Only administrators"), "{user}: {command}\n{out}");
            assert!(user == "rea" || !out.contains("Only members"), "{user}: {command}\n{out}");
        }
    }
    assert!(run > 100, "{run} commands");
}

/// Part of a page.
#[derive(Debug, PartialEq)]
enum Part {
    File {
        name: String,
        executable: bool,
        content: String,
    },
    Start(String),
    Run(String),
    Console {
        steps: Vec<Step>,
        joined: bool,
    },
    /// Commands that must succeed.
    Shell(Vec<String>),
    Skipped {
        reason: String,
        commands: Vec<String>,
    },
    /// Commands in a block that isn't marked as a console.
    Unmarked(String),
}

/// A command and the output that the page shows.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    command: String,
    shown: Vec<String>,
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines();
    let mut comment = None;
    while let Some(line) = lines.next() {
        if let Some(said) = line.strip_prefix("<!-- ").and_then(|said| said.strip_suffix(" -->")) {
            match said.split_once(": ") {
                Some(("start", arguments)) => parts.push(Part::Start(arguments.to_owned())),
                Some(("run", command)) => parts.push(Part::Run(command.to_owned())),
                Some(("same", file)) => parts.push(same(file)),
                _ => comment = Some(said.to_owned()),
            }
            continue;
        }
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let content = block.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
        let comment = comment.take().unwrap_or_default();
        match (comment.split_once(": "), kind) {
            (Some(("file", name)), _) => {
                let executable = name.ends_with(" executable");
                let name = name.trim_end_matches(" executable").to_owned();
                parts.push(Part::File { name, executable, content });
            }
            (Some(("skip", reason)), _) => {
                let commands = match kind {
                    "console" => steps(&block).into_iter().map(|step| step.command).collect(),
                    _ => commands(&block),
                };
                parts.push(Part::Skipped { reason: reason.to_owned(), commands });
            }
            (_, "sh") => parts.push(Part::Shell(commands(&block))),
            (_, "console") => parts.push(Part::Console { steps: steps(&block), joined: comment == "joined" }),
            _ if block.iter().any(|line| line.starts_with("$ ")) => parts.push(Part::Unmarked(content)),
            _ => {}
        }
    }
    parts
}

/// A file from another page.
fn same(file: &str) -> Part {
    let (page, wanted) = file.split_once(' ').expect("a page and a name");
    let text = fs::read_to_string(root().join(page)).expect("a page");
    let of_name = |part: &Part| matches!(part, Part::File { name, .. } if name == wanted);
    parts(&text).into_iter().find(of_name).unwrap_or_else(|| panic!("{page} has no file {wanted}"))
}

fn steps(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for line in block {
        let command = line.strip_prefix("$ ").or(continued.then_some(*line));
        match (command, steps.last_mut()) {
            (Some(more), Some(step)) if continued => step.command = format!("{}\n{more}", step.command),
            (Some(command), _) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
            (None, Some(step)) => step.shown.push((*line).to_owned()),
            (None, None) => panic!("a console block begins with a command, not with {line:?}"),
        }
        continued = command.is_some_and(|command| command.ends_with('\\'));
    }
    steps
}

/// The commands of an `sh` block.
fn commands(block: &[&str]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut continued = false;
    for line in block.iter().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match commands.last_mut() {
            Some(command) if continued => *command = format!("{command}\n{line}"),
            _ => commands.push((*line).to_owned()),
        }
        continued = line.ends_with(['\\', '|']);
    }
    commands
}

/// Moves the system directories in a command below `directory`.
fn below(directory: &Path, command: &str) -> String {
    let mut command = command.to_owned();
    for elsewhere in ELSEWHERE {
        command = command.replace(elsewhere, &format!("{}{elsewhere}", directory.display()));
    }
    command
}

/// Runs everything on a page.
fn follow(page: &str) {
    let text = fs::read_to_string(root().join(page)).expect("a page");
    let directory = fresh("reader");
    fs::create_dir_all(&directory).expect("a scratch directory");
    let mut service = None;
    let (mut run, mut skipped) = (0, 0);
    for part in parts(&text) {
        match part {
            Part::File { name, executable, content } => {
                let path = directory.join(name);
                fs::write(&path, content).expect("a file");
                let mode = if executable { 0o700 } else { 0o600 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its owner's");
            }
            Part::Start(arguments) => {
                drop(service.take());
                service = Some(Running::start_in(&directory, &arguments));
            }
            Part::Shell(commands) => {
                run += 1;
                for command in commands {
                    if let Some(arguments) = command.strip_prefix("allot serve") {
                        let arguments = arguments.split(" #").next().unwrap_or_default();
                        drop(service.take());
                        let words = below(&directory, &format!("serve{arguments}"));
                        service = Some(Running::start_in(&directory, &words));
                        continue;
                    }
                    let (status, out) = shell(&command, 0, &directory, service.as_ref());
                    assert_eq!(status, 0, "{page}: {command}\n{out}");
                }
            }
            Part::Run(command) => {
                let (status, out) = shell(&command, 0, &directory, service.as_ref());
                assert_eq!(status, 0, "{page}: {command}\n{out}");
            }
            Part::Console { steps, joined } => {
                run += 1;
                let mut last = 0;
                for step in steps {
                    last = check(page, &step, joined, last, &directory, service.as_ref());
                }
            }
            Part::Skipped { .. } => skipped += 1,
            Part::Unmarked(content) => panic!("{page}: these commands are in no console block:\n{content}"),
        }
    }
    println!("{page}: {run} blocks run, {skipped} skipped");
    assert!(run > 0, "{page}: nothing was run");
}

/// Runs a command. `last` is the exit status of the previous one, for `$?`.
fn shell(command: &str, last: i32, directory: &Path, service: Option<&Running>) -> (i32, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_allot")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let url = service.map_or("http://127.0.0.1:1", |service| &service.url);
    let command = below(directory, command).replace("http://127.0.0.1:1234", url);
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n(exit {last})\n{command}")])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("ALLOT_URL", url)
        .env("TZ", "UTC")
        .env_remove("HTOOLS")
        .env_remove("OS_AUTH_URL")
        .output()
        .expect("a shell");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compares the output of a command with the page. Returns its exit status.
fn check(
    page: &str,
    step: &Step,
    joined: bool,
    last: i32,
    directory: &Path,
    service: Option<&Running>,
) -> i32 {
    let (status, out) = shell(&step.command, last, directory, service);
    if step.shown.is_empty() {
        assert_eq!(status, 0, "{page}: $ {}\n{out}", step.command);
        return status;
    }
    let refused = step.shown.iter().any(|line| line.starts_with("Error: "));
    assert!(
        refused || !out.lines().any(|line| line.starts_with("Error: ")),
        "{page}: $ {}\n{out}",
        step.command
    );
    let shown = if joined { vec![step.shown.join(" ")] } else { step.shown.clone() };
    let shapes = |lines: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        // Messages while waiting for a lease depend on how long that takes.
        lines.filter(|line| !line.contains(" and waits for ")).map(shape).collect()
    };
    let wanted = shapes(&mut shown.iter().map(String::as_str));
    let got = shapes(&mut out.lines());
    assert!(
        alike(&wanted, &got),
        "{page}: $ {}\nprints\n{out}\nand the page shows\n{}",
        step.command,
        shown.join("\n")
    );
    status
}

/// Whether the lines match, where `...` matches any number of lines.
fn alike(wanted: &[String], got: &[String]) -> bool {
    match wanted.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == "..." => (0..=got.len()).any(|skipped| alike(rest, &got[skipped..])),
        Some((first, rest)) => got.first() == Some(first) && alike(rest, &got[1..]),
    }
}

/// A line without the parts that differ from run to run: numbers, identifiers, and distances between columns.
fn shape(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let pieces = word.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        pieces.map(piece).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn piece(piece: &str) -> String {
    let (core, end) = match piece.char_indices().last() {
        Some((at, c)) if !(c.is_ascii_alphanumeric() || c == '-') => piece.split_at(at),
        _ => (piece, ""),
    };
    let identifier = core.len() == 36 && core.matches('-').count() == 4;
    if identifier {
        return format!("#{end}");
    }
    let mut shape = String::new();
    for c in core.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    format!("{shape}{end}")
}

#[test]
fn shapes_forget_numbers_and_identifiers_and_nothing_else() {
    assert_eq!(shape("Lease web (e598c8b3-fd75-44ed-b106-bf9858c80054)"), "Lease web (#)");
    assert_eq!(shape("  start        2026-11-21 16:14"), "start #-#-# #:#");
    assert_eq!(shape("score 4.31103324"), "score #.#");
    let lines = |text: &str| text.lines().map(shape).collect::<Vec<_>>();
    assert!(alike(&lines("a 1\n...\nc"), &lines("a 2\nb\nb\nc")));
    assert!(!alike(&lines("a\n...\nc"), &lines("a\nb")));
    assert!(!alike(&lines("a"), &lines("a\nb")));
}

#[test]
fn a_page_is_read_as_its_parts() {
    let page = "\
# Page
<!-- start: serve --name x -->
<!-- run: true -->
<!-- file: f.sh executable -->
```sh
echo 1
```
```console
$ echo a \\
    b
a b
$ ./f.sh
1
```
<!-- skip: needs PostgreSQL -->
```console
$ psql
```
```sh
# Twice.
true   # once
echo \\
    b

```
```text
$ echo
```
";
    let step =
        |command: &str, shown: &str| Step { command: command.to_owned(), shown: vec![shown.to_owned()] };
    let wanted = [
        Part::Start("serve --name x".to_owned()),
        Part::Run("true".to_owned()),
        Part::File { name: "f.sh".to_owned(), executable: true, content: "echo 1\n".to_owned() },
        Part::Console { steps: vec![step("echo a \\\n    b", "a b"), step("./f.sh", "1")], joined: false },
        Part::Skipped { reason: "needs PostgreSQL".to_owned(), commands: vec!["psql".to_owned()] },
        Part::Shell(vec!["true   # once".to_owned(), "echo \\\n    b".to_owned()]),
        Part::Unmarked("$ echo\n".to_owned()),
    ];
    assert_eq!(parts(page), wanted);
}

#[test]
fn every_moment_of_hooks_and_every_variable_of_theirs_is_documented() {
    let page =
        fs::read_to_string(root().join("docs/tutorials/own-machines.md")).expect("the page on machines");
    let source =
        |path: &str| fs::read_to_string(root().join("crates/fleet/src/hooks").join(path)).expect("a source");
    let named = |text: &str, start: &str, plain: fn(char) -> bool| -> Vec<String> {
        let quoted = format!("\"{start}");
        let found = text.match_indices(&quoted);
        let names = found.map(|(at, _)| text[at + 1..].chars().take_while(|c| plain(*c)).collect());
        names.collect()
    };
    let moments = named(&source("config.rs"), "on_", |c| c.is_ascii_lowercase() || c == '_');
    let variables = named(&source("call.rs"), "ALLOT_", |c| c.is_ascii_uppercase() || c == '_');
    assert!(moments.len() >= 15 && variables.len() >= 16, "{moments:?} {variables:?}");
    for name in moments.into_iter().chain(variables).chain(["check".to_owned()]) {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/tutorials/own-machines.md does not explain {name}"
        );
    }
}
