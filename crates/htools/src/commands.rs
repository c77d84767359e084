//! Commands that carry out moves, printed for people or written as a shell script (HT-hbal, HT-hsqueeze).

use cluster::{Cluster, InstanceStatus, Move};
use placement::balance::Step;

use crate::io::Io;
use crate::options::PrintCommands;
use crate::saving::{self, SaveError};

/// Form of instance names in commands. Nodes always have their aliases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceNames {
    /// Alias, without the common suffix.
    Short,
    /// Full name.
    Full,
}

/// One line per command. Job sets are separated by empty lines, and each job starts with a `check`.
pub fn lines(cluster: &Cluster, sets: &[Vec<Step>], names: InstanceNames) -> Vec<String> {
    lines_with(sets, |step| commands(cluster, step, names))
}

/// Like [`lines`], with [`possible_commands`].
pub fn possible_lines(cluster: &Cluster, sets: &[Vec<Step>], names: InstanceNames) -> Vec<String> {
    lines_with(sets, |step| possible_commands(cluster, step, names))
}

fn lines_with(sets: &[Vec<Step>], commands: impl Fn(&Step) -> Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        let number = number + 1;
        lines.push(String::new());
        lines.push(format!("echo jobset {number}, {} jobs", set.len()));
        for (job, step) in set.iter().enumerate() {
            lines.push(format!("  echo job {number}/{}", job + 1));
            lines.push("  check".to_owned());
            lines.extend(commands(step).into_iter().map(|c| format!("  gnt-instance {c}")));
        }
    }
    lines
}

/// A shell script of the lines. It stops between jobs if `/tmp/stop-htools` exists.
pub fn script(lines: &[String]) -> String {
    let prologue = "#!/bin/sh\n\n# Auto-generated script for executing cluster rebalancing\n\n# To stop, touch \
                    the file /tmp/stop-htools\n\nset -e\n\ncheck() {\n  if [ -f /tmp/stop-htools ]; then\n    \
                    echo 'Stop requested, exiting'\n    exit 0\n  fi\n}\n\n";
    let mut script = prologue.to_owned();
    for line in lines {
        script.push_str(line);
        script.push('\n');
    }
    script
}

/// The lines without `check`, which only works in the script.
pub fn readable(lines: &[String]) -> impl Iterator<Item = &str> {
    lines.iter().map(String::as_str).filter(|line| line.trim() != "check")
}

/// Prints the lines under a title, or writes the script to a file, depending on `-C`.
pub(crate) fn print(
    where_to: &PrintCommands,
    title: &str,
    lines: &[String],
    script: &str,
    io: &mut Io<'_>,
) -> Result<(), SaveError> {
    match where_to {
        PrintCommands::Stdout => {
            writeln!(io.out, "\n{title}")?;
            for line in readable(lines) {
                writeln!(io.out, "  {line}")?;
            }
        }
        PrintCommands::File(path) => {
            saving::write(path, script)?;
            writeln!(io.out, "The commands have been written to file '{path}'")?;
        }
    }
    Ok(())
}

/// Short form of a move in the listing.
pub fn action(cluster: &Cluster, mov: Move) -> String {
    let name = |node| cluster.alias(&cluster.node(node).name);
    match mov {
        Move::Failover => "f".to_owned(),
        Move::FailoverTo(t) => format!("fa:{}", name(t)),
        Move::ReplaceSecondary(t) => format!("r:{}", name(t)),
        Move::ReplaceAndFailover(t) => format!("r:{} f", name(t)),
        Move::ReplacePrimary(t) => format!("f r:{} f", name(t)),
        Move::FailoverAndReplace(t) => format!("f r:{}", name(t)),
    }
}

/// Like [`commands`], but instances leave an unreadable node by failover: they cannot migrate.
///
/// The reference always migrates, and so do the programs that match it.
pub fn possible_commands(cluster: &Cluster, step: &Step, names: InstanceNames) -> Vec<String> {
    let status = cluster.instance(step.instance).status;
    let mut is_down = !cluster.node(step.from.0).readable();
    // Its node is offline, so the instance runs only after a move restarts it. That can have been an earlier
    // move.
    let runs =
        status.running() || status == InstanceStatus::ErrorNodeOffline || (is_down && status.uses_memory());
    let mut commands = commands(cluster, step, names);
    for command in &mut commands {
        let over = command.strip_prefix("migrate ").or_else(|| command.strip_prefix("failover "));
        let Some(rest) = over else { continue };
        let verb = if runs && !is_down { "migrate" } else { "failover" };
        *command = format!("{verb} {rest}");
        is_down = false;
    }
    commands
}

/// Commands of one move, without `gnt-instance`.
pub fn commands(cluster: &Cluster, step: &Step, names: InstanceNames) -> Vec<String> {
    let instance = cluster.instance(step.instance);
    let name = match names {
        InstanceNames::Short => cluster.alias(&instance.name),
        InstanceNames::Full => &instance.name,
    };
    let node = |index| cluster.alias(&cluster.node(index).name);
    let verb = if instance.status.running() { "migrate" } else { "failover" };
    let over = || format!("{verb} -f {name}");
    let replace = |t| format!("replace-disks -n {} {name}", node(t));
    match step.mov {
        Move::Failover => vec![over()],
        Move::FailoverTo(t) => vec![format!("{verb} -f -n {} {name}", node(t))],
        Move::ReplaceSecondary(t) => vec![replace(t)],
        Move::ReplaceAndFailover(t) => vec![replace(t), over()],
        Move::ReplacePrimary(t) => vec![over(), replace(t), over()],
        Move::FailoverAndReplace(t) => vec![over(), replace(t)],
    }
}
