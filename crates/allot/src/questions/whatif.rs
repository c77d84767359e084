//! `allot whatif`: a cluster before and after changes.

mod document;
mod rescue;

use clap::Args;
use cluster::{Cluster, InstanceIdx};
use htools::io::Io;
use htools::number::fixed;
use htools::progress::Progress;
use htools::report;
use placement::capacity::Shape;
use placement::whatif::{Added, Changes, Enacted, Offender, Room, Summary, Violation};

use self::rescue::Rescue;
use super::source::{self, RuleArguments, SourceArguments};
use super::{QuestionError, print, spec, tell};
use crate::client::Format;
use crate::client::table::{Style, prose, word};

/// Show the effect of changes on a cluster
///
/// Compares the cluster before and after: score, redundancy, free resources, number of instances that still
/// fit, and broken rules. Changes happen in this order: instances are removed and resized, nodes join, nodes
/// fail and their instances are rescued, instances are created, groups are balanced.
///
/// Sizes are in MiB, or with a unit: g and t are multiples of 1024, G and T of 1000.
///
/// Exit status: 0 if there is an answer, 2 if not.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Fail these nodes; their instances fail over to their mirrors, or start elsewhere from shared storage
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    lose: Vec<String>,
    /// Add this many empty nodes: COUNT,DISK,RAM,CPUS[,SPINDLES][@GROUP]
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    add_nodes: Vec<String>,
    /// Resize an instance in place: INSTANCE:mem=SIZE,vcpus=N,disk=SIZE (any of the three)
    #[arg(long, value_name = "SPEC")]
    resize: Vec<String>,
    /// Create this many instances, placed like hail does: COUNT,DISK,RAM,CPUS[,TEMPLATE]
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    add_instances: Vec<String>,
    /// Remove an instance
    #[arg(long, value_name = "INSTANCE")]
    remove_instance: Vec<String>,
    /// Balance the groups at the end, like hbal
    #[arg(long)]
    rebalance: bool,
    /// Disk template of instances to count; by default the most common one that the policy allows
    #[arg(long, value_name = "TEMPLATE")]
    disk_template: Option<String>,
    /// Maximum count per size
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    limit: usize,
    /// Print a JSON document instead
    #[arg(long)]
    json: bool,
    /// Write the changed cluster to a file (text format)
    #[arg(short = 'S', long, value_name = "FILE")]
    save: Option<String>,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    source: SourceArguments,
}

pub(super) fn answer(arguments: &Arguments, io: &mut Io<'_>) -> Result<bool, QuestionError> {
    let mut before = arguments.source.load(io)?;
    let changes = changes(arguments, &before)?;
    if changes.is_empty() {
        return Err(QuestionError::NoChange);
    }
    let shapes = shapes(arguments, &before)?;
    let mut after = arguments.source.reshape(&before, &changes)?;
    let progress = Progress::start("Searching");
    let now = Summary::of(&mut before, &shapes, arguments.limit, changes.rules);
    let enacted = changes.enact(&mut after);
    let then = Summary::of(&mut after, &shapes, arguments.limit, changes.rules);
    drop(progress);
    let answer = Answer { before: &before, after: &after, changes: &changes, enacted: &enacted, now, then };
    // If the file can't be written, no answer is printed either.
    if let Some(path) = &arguments.save {
        source::save(after.clone(), path)?;
    }
    tell(arguments.json, || document::Document::new(&answer), |io| answer.print(io), io)?;
    Ok(true)
}

fn changes(arguments: &Arguments, cluster: &Cluster) -> Result<Changes, QuestionError> {
    let instance = |name: &str| source::instance(cluster, name);
    let remove =
        arguments.remove_instance.iter().map(|name| instance(name)).collect::<Result<Vec<_>, _>>()?;
    let mut resize = Vec::new();
    for text in &arguments.resize {
        let (name, size) = spec::resize(text)?;
        let index = instance(name)?;
        if remove.contains(&index) {
            return Err(QuestionError::RemovedAndResized { name: cluster.instance(index).name.clone() });
        }
        resize.push((index, size));
    }
    Ok(Changes {
        remove,
        resize,
        add_nodes: arguments
            .add_nodes
            .iter()
            .map(|text| spec::new_nodes(text, cluster))
            .collect::<Result<_, _>>()?,
        lose: source::nodes(cluster, &arguments.lose)?,
        add_instances: arguments
            .add_instances
            .iter()
            .map(|text| spec::new_instances(text, cluster))
            .collect::<Result<_, _>>()?,
        rebalance: arguments.rebalance,
        rules: arguments.rules.options(None),
    })
}

/// Sizes for which room is counted: the policy's standard, and its largest if that differs.
fn shapes(arguments: &Arguments, cluster: &Cluster) -> Result<Vec<Shape>, QuestionError> {
    let policy = &cluster.policy;
    let template = spec::template(arguments.disk_template.as_deref(), cluster, policy, policy.std.disk_size)?;
    // The intervals of a policy have no particular order.
    let largest = policy.minmax.iter().map(|pair| &pair.max);
    let largest = largest.max_by_key(|max| (max.memory_size, max.disk_size, max.cpu_count));
    let specs = std::iter::once(&policy.std).chain(largest);
    let shapes = specs.map(|spec| Shape::of_spec(spec, policy.std.spindle_use, template).as_requested());
    let mut shapes: Vec<Shape> = shapes.collect();
    shapes.dedup();
    Ok(shapes)
}

struct Answer<'a> {
    before: &'a Cluster,
    after: &'a Cluster,
    changes: &'a Changes,
    enacted: &'a Enacted,
    now: Summary,
    then: Summary,
}

/// Maximum number of listed components of the score.
const COMPONENTS_LISTED: usize = 5;

impl Answer<'_> {
    fn print(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        writeln!(io.out, "What if:")?;
        for line in self.described() {
            writeln!(io.out, "  {line}")?;
        }
        writeln!(io.out)?;
        write!(io.out, "{}", self.comparison())?;
        for (position, room) in self.then.rooms.iter().enumerate() {
            if let Some(refusal) = &room.refused {
                let (which, next) = (ROOM_NAMES[position.min(1)], room.count + 1);
                let refusal = print::refusal(self.after, refusal, None);
                writeln!(io.out, "  afterwards, what stops {which} instance {next}: {refusal}")?;
            }
        }
        writeln!(io.out, "  (stuck: not everything on the node would find a place if it died)")?;
        self.print_violations(io)?;
        self.print_components(io)?;
        if let Some(plan) = &self.enacted.rescue {
            let is_balanced = |index| self.enacted.balances(index);
            Rescue::new(self.after, plan).print(self.after, is_balanced, io)?;
        }
        for added in &self.enacted.added {
            self.print_added(added, io)?;
        }
        self.print_moves(io)?;
        Ok(())
    }

    /// The changes in words.
    fn described(&self) -> Vec<String> {
        let (cluster, changes) = (self.before, self.changes);
        let name = |i: &InstanceIdx| cluster.alias(&cluster.instance(*i).name);
        let mut lines = Vec::new();
        lines.extend(changes.remove.iter().map(|i| format!("{} is removed", name(i))));
        for (index, size) in &changes.resize {
            let sizes = [
                size.memory_mib.map(|mib| format!("{} of memory", print::size(mib))),
                size.vcpus.map(|vcpus| format!("{vcpus} vCPUs")),
                size.disk_mib.map(|mib| format!("{} of disk", print::size(mib))),
            ];
            let sizes: Vec<String> = sizes.into_iter().flatten().collect();
            lines.push(format!("{} gets {}", name(index), print::list(&sizes)));
        }
        for new in &changes.add_nodes {
            let group = &cluster.group(new.like.group).name;
            let nodes = print::count(new.count, "node");
            lines.push(format!("{nodes} like this join group {group}: {}", print::node_shape(&new.like)));
        }
        if !changes.lose.is_empty() {
            let died = if changes.lose.len() == 1 { "dies" } else { "die" };
            lines.push(format!("{} {died}", print::names(cluster, &changes.lose)));
        }
        for (count, shape) in &changes.add_instances {
            lines.push(format!(
                "{} like this: {}",
                print::count(*count, "new instance"),
                print::shape(shape)
            ));
        }
        if changes.rebalance {
            lines.push("the groups are balanced in the end".to_owned());
        }
        lines
    }

    fn print_added(&self, added: &Added, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let cluster = self.after;
        let (placed, wanted) = (added.placed.len(), added.wanted);
        let end = if placed == 0 { '.' } else { ':' };
        writeln!(io.out, "\n{placed} of {} find a place{end}", print::count(wanted, "new instance"))?;
        for (pair, count) in print::tally(added.placed.iter().map(|p| (p.primary, p.secondary))) {
            writeln!(io.out, "  {count} on {}", print::pair(cluster, pair))?;
        }
        if let Some(refusal) = &added.refused {
            writeln!(io.out, "  no more: {}", print::refusal(cluster, refusal, None))?;
        } else if placed < wanted {
            writeln!(io.out, "  placing stopped there, more may fit")?;
        }
        Ok(())
    }

    fn print_moves(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let cluster = self.after;
        if self.changes.rebalance {
            writeln!(io.out, "\nBalancing takes {}.", print::count(self.enacted.moves.len(), "move"))?;
        }
        for step in &self.enacted.moves {
            let name = cluster.alias(&cluster.instance(step.instance).name);
            let action = htools::commands::action(cluster, step.mov);
            let (from, to) = (print::pair(cluster, step.from), print::pair(cluster, step.to));
            writeln!(io.out, "  {name} {from} => {to} a={action}")?;
        }
        Ok(())
    }

    /// The two clusters side by side.
    fn comparison(&self) -> String {
        let both = |what: &str, figure: &dyn Fn(&Summary) -> String| {
            vec![what.to_owned(), figure(&self.now), figure(&self.then)]
        };
        let mut rows = vec![
            both("score", &|s| fixed(s.values.score(), 4)),
            both("online nodes", &|s| s.online_nodes.to_string()),
            both("instances on them", &|s| s.instances.to_string()),
            both("nodes failing N+1", &|s| s.health.failing_n1.len().to_string()),
            both("nodes stuck", &|s| s.health.stuck.len().to_string()),
            both("free memory", &|s| print::size(s.free_memory_mib)),
            both("free disk", &|s| print::size(s.free_disk_mib)),
            both("free vCPUs", &|s| s.free_vcpus.map_or("no limit".to_owned(), |n| n.to_string())),
        ];
        for (position, room) in self.now.rooms.iter().enumerate() {
            let what = format!("room, {} ({})", ROOM_NAMES[position.min(1)], print::shape(&room.shape));
            rows.push(both(&what, &|s| s.rooms.get(position).map(counted).unwrap_or_default()));
        }
        rows.push(both("broken rules", &|s| s.violations.len().to_string()));
        let columns = [prose(""), word("before"), word("after")];
        print::table(&columns, &rows, &[false, true, true], &Style::of_output(Format::Table, None, false))
    }

    fn print_components(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let changes = report::component_changes(&self.now.values, &self.then.values);
        if !changes.is_empty() {
            writeln!(io.out, "\nWhat changes the score most:")?;
        }
        for (name, before, after, weighted) in changes.into_iter().take(COMPONENTS_LISTED) {
            let sign = if weighted < 0.0 { "" } else { "+" };
            let (before, after) = (fixed(before, 4), fixed(after, 4));
            writeln!(io.out, "  {name:<24} {before:>12} => {after:>12}  {sign}{}", fixed(weighted, 4))?;
        }
        Ok(())
    }

    fn print_violations(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let new = self.new_violations();
        if !new.is_empty() {
            writeln!(io.out, "\nRules that are broken only afterwards:")?;
        }
        for (name, violation) in new {
            writeln!(io.out, "  {}: {violation}", self.after.alias(name))?;
        }
        Ok(())
    }

    /// Violations after the changes that didn't exist before. They're matched by name, because indices can
    /// differ.
    fn new_violations(&self) -> Vec<(&str, &Violation)> {
        let before: Vec<(&str, std::mem::Discriminant<Violation>)> = self
            .now
            .violations
            .iter()
            .map(|(who, what)| (offender(self.before, *who), std::mem::discriminant(what)))
            .collect();
        let after = self.then.violations.iter().map(|(who, what)| (offender(self.after, *who), what));
        after.filter(|(name, what)| !before.contains(&(name, std::mem::discriminant(*what)))).collect()
    }
}

const ROOM_NAMES: [&str; 2] = ["standard", "largest"];

fn offender(cluster: &Cluster, who: Offender) -> &str {
    match who {
        Offender::Node(node) => &cluster.node(node).name,
        Offender::Instance(instance) => &cluster.instance(instance).name,
    }
}

/// Number of instances that fit, with `+` if counting ended at the limit.
fn counted(room: &Room) -> String {
    let more = if room.refused.is_none() { "+" } else { "" };
    format!("{}{more}", room.count)
}
