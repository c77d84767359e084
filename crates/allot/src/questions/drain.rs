//! `allot drain`: whether nodes can be emptied, and by which moves.

use clap::Args;
use cluster::{Cluster, NodeIdx};
use htools::io::Io;
use htools::progress::Progress;
use placement::drain::{self, DrainOptions, Obstacle, Plan, Purpose, Role, Stay};
use serde::Serialize;

use super::print::{self, HealthEntry, StepEntry};
use super::source::{self, SourceArguments};
use super::{QuestionError, tell};

/// Advice for the operator about a pin.
pub(super) const UNPIN: &str = "take the tag away with gnt-instance remove-tags";

/// Check whether nodes can be emptied, and list the moves
///
/// Lists the moves that take all instances and mirrors off the nodes, in an order in which each move is
/// possible after the previous ones, and the instances that must stay, with reasons. Running instances leave
/// first; no disk is copied if a mirror can take over.
///
/// Exit status: 0 if everything can leave, 1 if something stays, 2 if there is no answer.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Nodes to empty
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    /// Plan only for a restart of the nodes: move instances that would stop, leave mirrors and stopped instances
    #[arg(long)]
    reboot: bool,
    /// Copy no disks: move only to mirrors or with shared storage
    #[arg(long)]
    no_disk_moves: bool,
    /// Accept moves that violate policies, exclusion tags or N+1 if they are violated already
    #[arg(long)]
    ignore_soft_errors: bool,
    /// Print the commands for the moves
    #[arg(short = 'C', long)]
    print_commands: bool,
    /// Print a JSON document instead
    #[arg(long)]
    json: bool,
    /// Write the cluster after the moves to a file (text format), with emptied nodes marked offline
    #[arg(short = 'S', long, value_name = "FILE")]
    save: Option<String>,
    #[command(flatten)]
    source: SourceArguments,
}

/// Answers the question. Returns whether everything can leave the nodes.
pub(super) fn answer(arguments: &Arguments, io: &mut Io<'_>) -> Result<bool, QuestionError> {
    // Node names have no slashes.
    if let Some(path) = arguments.nodes.iter().find(|name| name.starts_with('/')) {
        return Err(QuestionError::SeparateSocket(path.clone()));
    }
    let mut cluster = arguments.source.load(io)?;
    let nodes = source::nodes(&cluster, &arguments.nodes)?;
    let purpose = if arguments.reboot { Purpose::Reboot } else { Purpose::Retire };
    let holds = nodes.iter().map(|n| Holds::of(&cluster, *n)).collect();
    let options = DrainOptions {
        purpose,
        ignore_soft_errors: arguments.ignore_soft_errors,
        disk_moves: !arguments.no_disk_moves,
    };
    let progress = Progress::start("Searching");
    let plan = drain::drain(&mut cluster, &nodes, options);
    drop(progress);
    let answer = Answer { cluster: &cluster, nodes: &nodes, holds, purpose, plan: &plan };
    // If the file can't be written, no answer is printed either.
    if let Some(path) = &arguments.save {
        let mut saved = cluster.clone();
        if purpose == Purpose::Retire {
            for node in &nodes {
                saved.nodes[node.at()].lose();
            }
        }
        source::save(saved, path)?;
    }
    tell(arguments.json, || answer.document(), |io| answer.print(arguments.print_commands, io), io)?;
    Ok(plan.stays.is_empty())
}

/// Number of instances on a node before the moves.
struct Holds {
    primaries: usize,
    secondaries: usize,
}

impl Holds {
    fn of(cluster: &Cluster, node: NodeIdx) -> Self {
        let state = cluster.state(node);
        Self { primaries: state.primaries.len(), secondaries: state.secondaries.len() }
    }
}

struct Answer<'a> {
    cluster: &'a Cluster,
    nodes: &'a [NodeIdx],
    holds: Vec<Holds>,
    purpose: Purpose,
    plan: &'a Plan,
}

impl Answer<'_> {
    fn print(&self, commands: bool, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let (cluster, plan) = (self.cluster, self.plan);
        self.print_verdict(io)?;
        for (node, holds) in self.nodes.iter().zip(&self.holds) {
            let name = cluster.alias(&cluster.node(*node).name);
            let primaries = print::count(holds.primaries, "instance");
            let secondaries = print::count(holds.secondaries, "mirror");
            let group = &cluster.group(cluster.node(*node).group).name;
            writeln!(io.out, "  {name} (group {group}): {primaries}, {secondaries}")?;
        }
        if !plan.stays.is_empty() {
            writeln!(io.out, "\nStays behind:")?;
            for stay in &plan.stays {
                writeln!(io.out, "  {}", self.stay(stay))?;
            }
        }
        if !plan.steps.is_empty() {
            writeln!(io.out, "\nMoves, in this order:")?;
            write!(io.out, "{}", print::steps(cluster, &plan.steps))?;
        }
        if self.purpose == Purpose::Reboot && self.copied_mib() > 0 {
            writeln!(
                io.out,
                "Disks are copied where a mirror's node has no room beside its N+1 reserve; to fail over all the same, \
                 use --no-disk-moves --ignore-soft-errors."
            )?;
        }
        self.print_health(io)?;
        if commands && !plan.steps.is_empty() {
            writeln!(io.out, "\nCommands:")?;
            for line in print::command_lines(cluster, &plan.steps) {
                writeln!(io.out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn print_verdict(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let plan = self.plan;
        let names = print::names(self.cluster, self.nodes);
        let reboot = self.purpose == Purpose::Reboot;
        let done = if reboot { "rebooted" } else { "emptied" };
        let moves = print::count(plan.steps.len(), "move");
        let (stays, effort) = (plan.stays.len(), self.effort());
        let planned = self.planned();
        let unproven = !plan.refused().is_empty();
        if stays == 0 && plan.steps.is_empty() {
            writeln!(io.out, "YES: {names} can be {done} as things are{planned}.")?;
        } else if stays == 0 {
            writeln!(io.out, "YES: {names} can be {done} after {moves} ({effort}){planned}.")?;
        } else if reboot {
            let stop = print::count(stays, "instance");
            let end = if unproven { "; no way was found around it" } else { "" };
            writeln!(
                io.out,
                "NO: {stop} would stop in a reboot of {names}, even after {moves} ({effort}){end}."
            )?;
        } else {
            let all: usize = self.holds.iter().map(|holds| holds.primaries + holds.secondaries).sum();
            let stay = if stays == 1 { "stays" } else { "stay" };
            let no = if unproven { "NO: no way was found" } else { "NO" };
            writeln!(
                io.out,
                "{no}: {stays} of {all} instances and mirrors {stay} on {names}; the rest can leave by {moves} ({effort}){planned}."
            )?;
        }
        Ok(())
    }

    /// Remark on instances that are planned for the nodes. Empty if there are none.
    fn planned(&self) -> String {
        let planned = &self.plan.planned;
        if planned.is_empty() {
            return String::new();
        }
        let count = print::count(planned.len(), "instance");
        let (are, them) = if planned.len() == 1 { ("is", "it") } else { ("are", "them") };
        let names = print::instance_names(self.cluster, planned);
        let there = if self.nodes.len() == 1 { "it" } else { "them" };
        format!("; {count} {are} planned for {there} ({names}): give {them} other nodes first")
    }

    /// Size of all disks that the plan copies, in MiB.
    fn copied_mib(&self) -> i64 {
        let steps = self.plan.steps.iter().map(|s| &s.step);
        let copied = steps.filter(|s| print::copies_disks(self.cluster, s));
        copied.map(|s| self.cluster.instance(s.instance).disk).sum()
    }

    fn effort(&self) -> String {
        match self.copied_mib() {
            0 => "no disk is copied".to_owned(),
            mib => format!("{} of disks are copied", print::size(mib)),
        }
    }

    fn stay(&self, stay: &Stay) -> String {
        let cluster = self.cluster;
        let name = cluster.alias(&cluster.instance(stay.instance).name);
        let node = cluster.alias(&cluster.node(stay.node).name);
        let what = match stay.role {
            Role::Primary if self.purpose == Purpose::Reboot => "will stop on",
            Role::Primary => "lives on",
            Role::Secondary => "has its mirror on",
        };
        format!("{name} {what} {node}: {} ({})", stay.obstacle, self.remedy(stay))
    }

    /// What the operator can do so that a copy can leave.
    fn remedy(&self, stay: &Stay) -> &'static str {
        let reboot = self.purpose == Purpose::Reboot;
        let readable = self.cluster.node(stay.node).readable();
        match &stay.obstacle {
            // Nothing can be done with data on a dead node.
            Obstacle::NotMirrored(_) | Obstacle::NoSecondary if !readable => "bring the node back",
            Obstacle::NotMirrored(_) if reboot => {
                "convert it with gnt-instance modify -t drbd, or stop it first"
            }
            Obstacle::NotMirrored(_) => {
                "convert it with gnt-instance modify -t drbd, or stop it and use gnt-instance move"
            }
            Obstacle::NoSecondary => "give it a secondary node, or stop it",
            Obstacle::Pinned if reboot => "take the tag away with gnt-instance remove-tags, or stop it first",
            Obstacle::Pinned => UNPIN,
            Obstacle::BothOffline => "bring one of its nodes back",
            Obstacle::SecondaryDrained => "let its secondary node take instances again",
            Obstacle::DifferentGroups => "bring its nodes into one group with gnt-group assign-nodes",
            Obstacle::NoDiskMoves => "leave out --no-disk-moves",
            Obstacle::Refused(refusals) if refusals.is_soft => "--ignore-soft-errors accepts that",
            Obstacle::Refused(_) if reboot && readable => "make room in its group, or stop it first",
            Obstacle::Refused(_) => "make room in its group, or add a node to it",
        }
    }

    fn print_health(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let (cluster, Plan { before, after, .. }) = (self.cluster, self.plan);
        let others = if self.purpose == Purpose::Reboot { "while they are down" } else { "without them" };
        writeln!(io.out, "\nThe other nodes          now  {others}")?;
        let row = |what: &str, now: String, then: String| format!("  {what:<18} {now:>9}  {then:>9}");
        let counts = |now: &[NodeIdx], then: &[NodeIdx]| (now.len().to_string(), then.len().to_string());
        let (now, then) = counts(&before.failing_n1, &after.failing_n1);
        let score = |score: f64| htools::number::fixed(score, 4);
        writeln!(io.out, "{}", row("score", score(before.score), score(after.score)))?;
        writeln!(io.out, "{}", row("nodes failing N+1", now, then))?;
        let (now, then) = counts(&before.stuck, &after.stuck);
        writeln!(io.out, "{}", row("nodes stuck", now, then))?;
        let fresh: Vec<NodeIdx> = after.stuck.iter().copied().filter(|n| !before.stuck.contains(n)).collect();
        if !fresh.is_empty() {
            let died = print::died(cluster, &fresh);
            writeln!(io.out, "WARNING: {others}, not everything would find a place if {died}.")?;
        }
        writeln!(io.out, "(stuck: not everything on the node would find a place if it died)")?;
        Ok(())
    }

    fn document(&self) -> Document<'_> {
        let (cluster, plan) = (self.cluster, self.plan);
        let name = |n: NodeIdx| cluster.node(n).name.as_str();
        Document {
            question: "drain",
            purpose: if self.purpose == Purpose::Reboot { "reboot" } else { "retire" },
            possible: plan.stays.is_empty(),
            nodes: self
                .nodes
                .iter()
                .zip(&self.holds)
                .map(|(n, holds)| NodeEntry {
                    name: name(*n),
                    primaries: holds.primaries,
                    secondaries: holds.secondaries,
                })
                .collect(),
            before: HealthEntry::new(cluster, &plan.before),
            steps: plan.steps.iter().map(|s| StepEntry::new(cluster, s)).collect(),
            stays: plan.stays.iter().map(|s| StayEntry::new(cluster, s, self.remedy(s))).collect(),
            planned: plan.planned.iter().map(|i| cluster.instance(*i).name.as_str()).collect(),
            after: HealthEntry::new(cluster, &plan.after),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    question: &'static str,
    purpose: &'static str,
    possible: bool,
    nodes: Vec<NodeEntry<'a>>,
    before: HealthEntry<'a>,
    steps: Vec<StepEntry<'a>>,
    stays: Vec<StayEntry<'a>>,
    /// Instances that don't exist yet, but are planned for the nodes.
    planned: Vec<&'a str>,
    after: HealthEntry<'a>,
}

#[derive(Serialize)]
struct NodeEntry<'a> {
    name: &'a str,
    primaries: usize,
    secondaries: usize,
}

#[derive(Serialize)]
struct StayEntry<'a> {
    instance: &'a str,
    role: &'static str,
    node: &'a str,
    reason: String,
    remedy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusals: Option<serde_json::Map<String, serde_json::Value>>,
}

impl<'a> StayEntry<'a> {
    fn new(cluster: &'a Cluster, stay: &Stay, remedy: &'static str) -> Self {
        let refusals = match &stay.obstacle {
            Obstacle::Refused(refusals) => {
                Some(refusals.targets.reasons().map(|(mode, n)| (mode.to_string(), n.into())).collect())
            }
            _ => None,
        };
        Self {
            instance: &cluster.instance(stay.instance).name,
            role: if stay.role == Role::Primary { "primary" } else { "secondary" },
            node: &cluster.node(stay.node).name,
            reason: stay.obstacle.to_string(),
            remedy,
            refusals,
        }
    }
}
