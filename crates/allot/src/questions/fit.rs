//! `allot fit`: number of instances of a shape that fit, and changes that would make room for more.

use std::cmp::Reverse;

use clap::Args;
use cluster::{Cluster, GroupIdx, NodeIdx};
use htools::io::Io;
use htools::number::plain;
use htools::progress::Progress;
use placement::capacity::Shape;
use placement::drain::Role;
use placement::explain::words;
use placement::fit::{self, Action, Bound, Fit, FitQuestion, Lack, MOST_COUNTED, Near, PolicyChange, Remedy};
use placement::whatif::policy_item;
use serde::Serialize;

use super::print::{self, MoveEntry, ShapeEntry};
use super::source::{RuleArguments, SourceArguments};
use super::{QuestionError, spec, tell};

/// Count instances of a shape that fit, and find how to fit more
///
/// Places instances where hail would put them, until no more fit. Then shows why the next one doesn't fit,
/// which nodes are nearest to taking it, and which single change would let it fit: a few moves, one limit of
/// a policy, or one more node.
///
/// Sizes are in MiB, or with a unit: g and t are multiples of 1024, G and T of 1000.
///
/// Exit status: 0 if the requested number fits (without --count: at least one), 1 if not, 2 if there is no
/// answer.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Shape of an instance: DISK,RAM,CPUS[,SPINDLES]
    #[arg(value_name = "SHAPE")]
    shape: String,
    /// Check whether this number fits
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<usize>,
    /// Disk template; by default the most common one that the policy allows
    #[arg(long, alias = "template", value_name = "TEMPLATE")]
    disk_template: Option<String>,
    /// Only in this group
    #[arg(short = 'G', long, value_name = "GROUP")]
    group: Option<String>,
    /// Maximum number to count
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    limit: usize,
    /// Print a JSON document instead
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    source: SourceArguments,
}

/// Answers the question. Returns whether as many fit as requested.
pub(super) fn answer(arguments: &Arguments, io: &mut Io<'_>) -> Result<bool, QuestionError> {
    let cluster = arguments.source.load(io)?;
    let group = arguments.group.as_deref().map(|name| spec::group(&cluster, Some(name))).transpose()?;
    let policy = group.map_or(&cluster.policy, |group| &cluster.group(group).policy);
    let disk = spec::disk(&arguments.shape)?;
    let template = spec::template(arguments.disk_template.as_deref(), &cluster, policy, disk)?;
    let question = FitQuestion {
        shape: spec::shape(&arguments.shape, template, policy)?,
        rules: arguments.rules.options(group),
        most: arguments.count.unwrap_or(arguments.limit),
    };
    let progress = Progress::start("Searching");
    let fit = fit::fit(&cluster, &question);
    drop(progress);
    let is_proven = fit.is_proven(&question);
    let (shape, wanted) = (question.shape, arguments.count);
    let answer = Answer { cluster: &cluster, group, shape, wanted, is_proven, fit: &fit };
    tell(arguments.json, || answer.document(), |io| answer.print(io), io)?;
    Ok(answer.enough())
}

struct Answer<'a> {
    cluster: &'a Cluster,
    /// The group that the question is limited to.
    group: Option<GroupIdx>,
    shape: Shape,
    wanted: Option<usize>,
    /// See [`Fit::is_proven`].
    is_proven: bool,
    fit: &'a Fit,
}

/// Nodes of an instance, primary first.
type Pair = (NodeIdx, Option<NodeIdx>);

/// Maximum number of stuck nodes that are listed with their instances.
const STUCK_LISTED: usize = 3;
/// Maximum number of listed places.
const PLACES_LISTED: usize = 20;

impl Answer<'_> {
    fn enough(&self) -> bool {
        self.fit.placed.len() >= self.wanted.unwrap_or(1)
    }

    fn print(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        writeln!(io.out, "{}", self.verdict())?;
        self.print_places(io)?;
        let Some(refusal) = &self.fit.refused else { return Ok(()) };
        writeln!(io.out, "\nWhat stops the next one:")?;
        // If no policy allows the shape, counts by node would only repeat that.
        let is_told = !self.fit.outside_policy.is_empty() || !self.fit.unallocable.is_empty();
        if !self.fit.nearest.is_empty() || !is_told {
            writeln!(io.out, "  {}", print::refusal(self.cluster, refusal, self.group))?;
        }
        for (group, mode) in &self.fit.outside_policy {
            let group = &self.cluster.group(*group).name;
            writeln!(io.out, "  the policy of group {group} does not allow it (its {})", policy_item(*mode))?;
        }
        for group in &self.fit.unallocable {
            let group = &self.cluster.group(*group).name;
            writeln!(io.out, "  group {group} is unallocable: nothing is placed there")?;
        }
        if self.fit.placed.is_empty() {
            self.print_stuck(io)?;
        }
        self.print_nearest(io)?;
        self.print_remedies(io)
    }

    /// Lists the nodes that already fail the capacity check, which is why it refuses everything.
    fn print_stuck(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        for (node, instances) in self.fit.stuck.iter().take(STUCK_LISTED) {
            let died = print::died(self.cluster, &[*node]);
            let which = print::without_place(self.cluster, instances);
            writeln!(io.out, "  already now there is no place for {which} if {died}")?;
        }
        if let Some(rest) = self.fit.stuck.get(STUCK_LISTED..).filter(|rest| !rest.is_empty()) {
            let rest: Vec<NodeIdx> = rest.iter().map(|(node, _)| *node).collect();
            writeln!(io.out, "  nor for everything if {}", print::died(self.cluster, &rest))?;
        }
        Ok(())
    }

    fn print_nearest(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let cluster = self.cluster;
        if !self.fit.nearest.is_empty() {
            writeln!(io.out, "\nNearest to taking it:")?;
        }
        for role in [Role::Primary, Role::Secondary] {
            let word = if role == Role::Primary { "primary" } else { "mirror" };
            let of_role = self.fit.nearest.iter().filter(|near| near.role == role);
            let (short, ready): (Vec<&Near>, Vec<&Near>) = of_role.partition(|near| near.refused.is_some());
            if !ready.is_empty() {
                let ready: Vec<NodeIdx> = ready.iter().map(|near| near.node).collect();
                writeln!(io.out, "  as {word}: {} would take it", print::names(cluster, &ready))?;
                continue;
            }
            for near in short {
                let name = cluster.alias(&cluster.node(near.node).name);
                writeln!(io.out, "  as {word}: {name} {}", lacking(near))?;
            }
        }
        Ok(())
    }

    fn verdict(&self) -> String {
        let (count, shape) = (self.fit.placed.len(), print::shape(&self.shape));
        let more = if self.fit.refused.is_none() && self.wanted.is_none() { " or more" } else { "" };
        let fits = if count == 1 { "fits" } else { "fit" };
        match self.wanted {
            Some(wanted) if count >= wanted => {
                format!("YES: {} {fits} ({shape}).", print::count(wanted, "instance"))
            }
            Some(wanted) if self.is_proven => {
                format!("NO: only {count} of {wanted} instances {fits} ({shape}).")
            }
            Some(wanted) if self.fit.refused.is_none() => {
                format!("NO: counting stopped at {count} of {wanted} instances, more may fit ({shape}).")
            }
            Some(wanted) => {
                format!("NO: no way was found for more than {count} of {wanted} instances ({shape}).")
            }
            None => format!("{}{more} {fits} ({shape}).", print::count(count, "instance")),
        }
    }

    /// Pairs of nodes, or single nodes, with the number of instances that each takes. The most come first.
    fn places(&self) -> Vec<(Pair, usize)> {
        let tally = print::tally(self.fit.placed.iter().map(|p| (p.primary, p.secondary)));
        let mut places: Vec<(Pair, usize)> = tally.into_iter().collect();
        places.sort_by_key(|(_, count)| Reverse(*count));
        places
    }

    fn print_places(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let places = self.places();
        if !places.is_empty() {
            writeln!(io.out, "\nWhere:")?;
        }
        for (pair, count) in places.iter().take(PLACES_LISTED) {
            writeln!(io.out, "  {count:4} on {}", print::pair(self.cluster, *pair))?;
        }
        if let Some(rest) = places.get(PLACES_LISTED..).filter(|rest| !rest.is_empty()) {
            let count: usize = rest.iter().map(|(_, count)| count).sum();
            writeln!(io.out, "  {count:4} on {} other places", rest.len())?;
        }
        Ok(())
    }

    fn print_remedies(&self, io: &mut Io<'_>) -> Result<(), QuestionError> {
        let cluster = self.cluster;
        if self.fit.remedies.is_empty() {
            writeln!(io.out, "\nNo single change was found that makes room.")?;
            return Ok(());
        }
        writeln!(io.out, "\nWhat would make room (each alone):")?;
        for Remedy { action, more } in &self.fit.remedies {
            let plus = if *more == MOST_COUNTED { " or more" } else { "" };
            let gain = format!("{more}{plus} more");
            match action {
                Action::AddNode(node) => {
                    let group = &cluster.group(node.group).name;
                    let like = cluster.alias(&node.name);
                    let shape = print::node_shape(node);
                    writeln!(io.out, "  one more node like {like} in group {group} ({shape}): {gain}")?;
                }
                Action::Policy(change) => writeln!(io.out, "  {}: {gain}", policy_change(cluster, change))?,
                Action::AllocPolicy(group) => {
                    let name = &cluster.group(*group).name;
                    writeln!(io.out, "  gnt-group modify --alloc-policy=preferred {name}: {gain}")?;
                }
                Action::NoCapacityCheck(groups) => {
                    let names: Vec<String> = groups.iter().map(|g| cluster.group(*g).name.clone()).collect();
                    let names = print::list(&names);
                    writeln!(
                        io.out,
                        "  without the capacity check (hail --no-capacity-checks): {gain} in {names}"
                    )?;
                }
                Action::Moves(steps) => {
                    writeln!(io.out, "  {}: {gain}", print::count(steps.len(), "move"))?;
                    for step in steps {
                        let name = cluster.alias(&cluster.instance(step.instance).name);
                        let (from, to) = (print::pair(cluster, step.from), print::pair(cluster, step.to));
                        let action = htools::commands::action(cluster, step.mov);
                        writeln!(io.out, "    {name} {from} => {to} a={action}")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn document(&self) -> Document<'_> {
        let (cluster, fit) = (self.cluster, self.fit);
        let place =
            |(pair, count): (Pair, usize)| PlaceEntry { nodes: print::node_names(cluster, pair), count };
        Document {
            question: "fit",
            possible: self.enough(),
            shape: ShapeEntry::new(&self.shape),
            wanted: self.wanted,
            count: fit.placed.len(),
            exact: fit.refused.is_some(),
            proven: self.is_proven,
            places: self.places().into_iter().map(place).collect(),
            refused: fit.refused.as_ref().map(|refusal| print::refusal(cluster, refusal, self.group)),
            outside_policy: fit
                .outside_policy
                .iter()
                .map(|(group, mode)| OutsideEntry {
                    group: &cluster.group(*group).name,
                    what: policy_item(*mode),
                })
                .collect(),
            unallocable: fit.unallocable.iter().map(|g| cluster.group(*g).name.as_str()).collect(),
            not_evacuable: fit.stuck.iter().map(|(n, _)| cluster.node(*n).name.as_str()).collect(),
            nearest: fit.nearest.iter().map(|near| NearEntry::new(cluster, near)).collect(),
            remedies: fit.remedies.iter().map(|remedy| RemedyEntry::new(cluster, remedy)).collect(),
        }
    }
}

/// Resources that a node lacks, in words.
fn lacking(near: &Near) -> String {
    let Lack { memory_mib, disk_mib, vcpus, instance_spindles, spindles } = near.lack;
    let lacks: Vec<String> = [
        (memory_mib > 0).then(|| format!("{memory_mib} MiB of memory")),
        (disk_mib > 0).then(|| format!("{disk_mib} MiB of disk")),
        (vcpus > 0).then(|| print::count(vcpus as usize, "vCPU")),
        (instance_spindles > 0.0).then(|| format!("{} of allowed spindle use", plain(instance_spindles))),
        (spindles > 0).then(|| print::count(spindles as usize, "spindle")),
    ]
    .into_iter()
    .flatten()
    .collect();
    match (near.refused, lacks.as_slice()) {
        (Some(mode), []) => format!("refuses: {}", words(mode)),
        (_, lacks) => format!("lacks {}", print::list(lacks)),
    }
}

fn policy_change(cluster: &Cluster, change: &PolicyChange) -> String {
    let group = &cluster.group(change.group).name;
    let what = match (change.bound, change.template) {
        (Bound::Template, Some(template)) => {
            return format!("policy of {group}: allow disk template {}", template.name());
        }
        (bound, _) => bound_name(bound),
    };
    let value = |bound: Option<f64>| plain(bound.unwrap_or_default()).trim_end_matches(".0").to_owned();
    format!("policy of {group}: {what} {} instead of {}", value(change.to), value(change.from))
}

fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::VcpuRatio => "vcpu-ratio",
        Bound::SpindleRatio => "spindle-ratio",
        Bound::Memory => "memory-size",
        Bound::Disk => "disk-size",
        Bound::Vcpus => "cpu-count",
        Bound::SpindleUse => "spindle-use",
        Bound::Disks => "disk-count",
        Bound::Template => "disk-templates",
    }
}

#[derive(Serialize)]
struct Document<'a> {
    question: &'static str,
    possible: bool,
    shape: ShapeEntry,
    wanted: Option<usize>,
    count: usize,
    /// Whether counting ended because no more fit.
    exact: bool,
    /// Whether it's proven that no other placement fits more than `count`.
    proven: bool,
    places: Vec<PlaceEntry<'a>>,
    refused: Option<String>,
    outside_policy: Vec<OutsideEntry<'a>>,
    /// Groups that take no new instances.
    unallocable: Vec<&'a str>,
    not_evacuable: Vec<&'a str>,
    nearest: Vec<NearEntry<'a>>,
    remedies: Vec<RemedyEntry<'a>>,
}

/// A group whose policy never allows the shape, with the bound that it violates.
#[derive(Serialize)]
struct OutsideEntry<'a> {
    group: &'a str,
    what: &'static str,
}

#[derive(Serialize)]
struct PlaceEntry<'a> {
    nodes: Vec<&'a str>,
    count: usize,
}

#[derive(Serialize)]
struct NearEntry<'a> {
    node: &'a str,
    role: &'static str,
    memory_mib: i64,
    disk_mib: i64,
    vcpus: i64,
    instance_spindles: f64,
    spindles: i64,
    refused: Option<String>,
}

impl<'a> NearEntry<'a> {
    fn new(cluster: &'a Cluster, near: &Near) -> Self {
        Self {
            node: &cluster.node(near.node).name,
            role: if near.role == Role::Primary { "primary" } else { "secondary" },
            memory_mib: near.lack.memory_mib,
            disk_mib: near.lack.disk_mib,
            vcpus: near.lack.vcpus,
            instance_spindles: near.lack.instance_spindles,
            spindles: near.lack.spindles,
            refused: near.refused.map(|mode| mode.to_string()),
        }
    }
}

#[derive(Serialize)]
struct RemedyEntry<'a> {
    /// Number of additional instances that fit after this change.
    more: usize,
    #[serde(flatten)]
    action: ActionEntry<'a>,
}

#[derive(Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum ActionEntry<'a> {
    Moves {
        moves: Vec<MoveEntry<'a>>,
    },
    Policy {
        group: &'a str,
        bound: &'static str,
        from: Option<f64>,
        to: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        template: Option<&'static str>,
    },
    AllocPolicy {
        group: &'a str,
    },
    NoCapacityCheck {
        groups: Vec<&'a str>,
    },
    AddNode {
        group: &'a str,
        like: String,
        disk_mib: i64,
        memory_mib: i64,
        cpus: i64,
    },
}

impl<'a> RemedyEntry<'a> {
    fn new(cluster: &'a Cluster, Remedy { action, more }: &Remedy) -> Self {
        let action = match action {
            Action::Moves(steps) => {
                ActionEntry::Moves { moves: steps.iter().map(|s| MoveEntry::new(cluster, s)).collect() }
            }
            Action::Policy(change) => ActionEntry::Policy {
                group: &cluster.group(change.group).name,
                bound: bound_name(change.bound),
                from: change.from,
                to: change.to,
                template: change.template.map(cluster::DiskTemplate::name),
            },
            Action::AllocPolicy(group) => ActionEntry::AllocPolicy { group: &cluster.group(*group).name },
            Action::NoCapacityCheck(groups) => ActionEntry::NoCapacityCheck {
                groups: groups.iter().map(|g| cluster.group(*g).name.as_str()).collect(),
            },
            Action::AddNode(node) => ActionEntry::AddNode {
                group: &cluster.group(node.group).name,
                like: node.name.clone(),
                disk_mib: node.total_disk as i64,
                memory_mib: node.total_memory_mib(),
                cpus: node.total_cpus as i64,
            },
        };
        Self { more: *more, action }
    }
}
