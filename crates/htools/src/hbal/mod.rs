//! `hbal`: balances one node group and prints the moves (HT-hbal).

mod deep;
mod idle;
mod json;
mod repair;
mod show;

use std::io;

use cluster::{Cluster, GroupIdx, InstanceIdx, NodeIdx};
use placement::Search;
use placement::balance::{BalanceOptions, Balancer, Step};
use placement::jobs::{job_sets, own_job_sets};
use placement::score::Values;
use thiserror::Error;

use crate::commands::{self, InstanceNames};
use crate::execute::{self, ExecuteError};
use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::number::fixed;
use crate::options::{Options, Program};
use crate::saving::{self, SaveError};
use crate::source::{self, SourceError};
use crate::tables;

#[derive(Debug, Error)]
enum HbalError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// Details are already printed.
    #[error("Aborting.")]
    Group,
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hbal, args, io, narrated, |error| {
        matches!(
            error,
            HbalError::Output(_)
                | HbalError::Save(SaveError::Output(_))
                | HbalError::Execute(ExecuteError::Output(_))
        )
    })
}

/// Balances. Prints progress to standard output or, with `--json`, one document at the end.
fn narrated(options: &Options, io: &mut Io<'_>) -> Result<u8, HbalError> {
    let mut nowhere = io::sink();
    let out: &mut dyn io::Write = if options.json { &mut nowhere } else { &mut *io.out };
    let document = balance(options, &mut Io { stdin: &mut *io.stdin, out, err: &mut *io.err })?;
    if options.json {
        io.out.write_all(document.as_bytes())?;
    }
    Ok(SUCCESS)
}

/// The group to balance, with its nodes and instances.
struct Scope {
    group: GroupIdx,
    nodes: Vec<NodeIdx>,
    instances: Vec<InstanceIdx>,
}

/// Result of a run.
struct Solution {
    steps: Vec<Step>,
    before: Values,
    after: Values,
    optimal: f64,
    /// Score components before and after each step, with `--explain`.
    explained: Vec<(Values, Values)>,
    /// Reasons why nothing is moved, with `--explain`.
    reasons: Vec<String>,
    /// The group was balanced, or free of violations, from the start.
    well_balanced: bool,
    /// Violations that `--repair-only` cannot end; empty without the option.
    remaining: Vec<repair::Remaining>,
    /// Cost of `--search=deep`; `None` without the option.
    comparison: Option<deep::Comparison>,
}

impl Solution {
    /// A solution without moves. Prints the initial score and whether there is anything to do.
    fn begin(run: &Balancer<'_>, options: &Options, io: &mut Io<'_>) -> io::Result<Self> {
        let now = *run.board().values();
        show::initial_score(run.board(), options.verbosity, io)?;
        if run.well_balanced() {
            show::well_balanced(run, options, io)?;
        } else {
            writeln!(io.out, "Trying to minimize the CV...")?;
        }
        Ok(Self {
            steps: Vec::new(),
            before: now,
            after: now,
            optimal: run.optimal(),
            explained: Vec::new(),
            reasons: Vec::new(),
            well_balanced: run.well_balanced(),
            remaining: Vec::new(),
            comparison: None,
        })
    }
}

/// Runs the search and returns the JSON document.
fn balance(options: &Options, io: &mut Io<'_>) -> Result<String, HbalError> {
    let level = options.verbosity;
    let mut cluster = source::load(options, io)?;
    show::loaded(&cluster, level, io)?;
    // The saved original is the cluster as it was read.
    let as_read = options.save.as_ref().map(|_| saving::whole(&cluster));
    source::apply_overrides(options, &mut cluster)?;
    if cluster.instances.is_empty() {
        writeln!(io.out, "Cluster is empty, exiting.")?;
        return Ok("{\"instances\": 0, \"moves\": []}\n".to_owned());
    }
    show::split_instances(&cluster, level, io)?;
    show::size(&cluster, level, io)?;
    if let (Some(prefix), Some(text)) = (&options.save, as_read) {
        saving::save(&text, prefix, "original", "before balancing", io)?;
    }
    let scope = choose_group(&cluster, options.group.as_deref(), io)?;
    show::scope(&cluster, &scope, options, io)?;
    print_tables(&cluster, &scope, options, "Initial", io)?;
    let original = show::totals(&cluster, &scope);
    let solve = match (options.repair_only, options.search) {
        (true, _) => repair::solve,
        (_, Search::Deep) => deep::solve,
        (_, Search::Exact) => solve,
    };
    let solution = solve(&mut cluster, &scope, options, io)?;
    let document = json::document(&cluster, &scope, &solution)?;
    if solution.well_balanced {
        return Ok(document);
    }
    show::summary(&cluster, &scope, &solution, level, io)?;
    print_commands(&cluster, &solution, options, io)?;
    if let Some(prefix) = &options.save {
        let text = crate::text::serialize(&cluster, &scope.nodes, &scope.instances);
        saving::save(&text, prefix, "balanced", "after balancing", io)?;
    }
    print_tables(&cluster, &scope, options, "Final", io)?;
    if level > 3 {
        let (memory, disk) = original;
        writeln!(io.out, "Original: mem={memory} disk={disk}")?;
        let (memory, disk) = show::totals(&cluster, &scope);
        writeln!(io.out, "Final:    mem={memory} disk={disk}")?;
    }
    if options.exec && !solution.steps.is_empty() {
        let sets =
            execute::moves(&cluster, &sets_of_jobs(&cluster, &solution, options), "Executing jobset for");
        execute::carry_out(Program::Hbal, "rebalancing via hbal", &sets, options, io)?;
    }
    Ok(document)
}

/// Finds the moves and prints each one as it's found.
fn solve(
    cluster: &mut Cluster,
    scope: &Scope,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<Solution, HbalError> {
    let listing = show::Listing::new(cluster, scope);
    let mut run = Balancer::new(cluster, &scope.nodes, &scope.instances, BalanceOptions::from(options));
    let mut solution = Solution::begin(&run, options, io)?;
    if solution.well_balanced {
        return Ok(solution);
    }
    while let Some(step) = run.step() {
        let now = *run.board().values();
        writeln!(io.out, "{}", listing.line(run.cluster(), solution.steps.len() + 1, &step))?;
        if options.explain {
            show::explain(&solution.after, &now, io)?;
            solution.explained.push((solution.after, now));
        }
        solution.steps.push(step);
        solution.after = now;
    }
    if options.explain && solution.steps.is_empty() {
        solution.reasons = idle::reasons(run.cluster(), &run.idle(&scope.instances), options);
    }
    Ok(solution)
}

/// The requested group, or else the only group with nodes.
fn choose_group(cluster: &Cluster, wanted: Option<&str>, io: &mut Io<'_>) -> Result<Scope, HbalError> {
    let group = if let Some(name) = wanted {
        if let Ok(group) = cluster.find_group(name) {
            group
        } else {
            writeln!(io.err, "Node group {name} not found. Node group list is:")?;
            for group in &cluster.groups {
                writeln!(io.err, "  {}", group.name)?;
            }
            return Err(HbalError::Group);
        }
    } else {
        let inhabited = placement::groups::inhabited(cluster);
        match inhabited.as_slice() {
            [group] => *group,
            several => {
                writeln!(io.err, "Found multiple node groups:")?;
                for group in several {
                    writeln!(io.err, "  {}", cluster.group(*group).name)?;
                }
                return Err(HbalError::Group);
            }
        }
    };
    Ok(Scope { group, nodes: cluster.nodes_of(group), instances: cluster.instances_of(group) })
}

fn print_tables(
    cluster: &Cluster,
    scope: &Scope,
    options: &Options,
    when: &str,
    io: &mut Io<'_>,
) -> Result<(), HbalError> {
    if options.print_instances {
        let table = tables::instance_table(cluster, &scope.instances);
        write!(io.err, "\n{when} instance map:\n{table}")?;
    }
    if let Some(fields) = &options.print_nodes {
        let table = tables::node_table(cluster, &scope.nodes, fields);
        write!(io.err, "\n{when} cluster status:\n{table}\n")?;
    }
    Ok(())
}

/// Whether the reference has no such search, so that jobs and commands needn't match its own.
fn is_own(options: &Options) -> bool {
    options.repair_only || options.search == Search::Deep
}

/// Moves grouped into sets that can run together, limited by options.
fn sets_of_jobs(cluster: &Cluster, solution: &Solution, options: &Options) -> Vec<Vec<Step>> {
    let split = if is_own(options) { own_job_sets } else { job_sets };
    let mut sets = split(cluster, &solution.steps);
    if options.first_job_group {
        sets.truncate(1);
    }
    sets
}

fn print_commands(
    cluster: &Cluster,
    solution: &Solution,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<(), HbalError> {
    let Some(where_to) = &options.print_commands else { return Ok(()) };
    let sets = sets_of_jobs(cluster, solution, options);
    let write = if is_own(options) { commands::possible_lines } else { commands::lines };
    let lines = write(cluster, &sets, InstanceNames::Short);
    let title = if options.first_job_group {
        "First set of jobs:"
    } else {
        "Commands to run to reach the above solution:"
    };
    Ok(commands::print(where_to, title, &lines, &commands::script(&lines), io)?)
}

fn score(value: f64) -> String {
    fixed(value, 8)
}
