//! `--repair-only`: ends violations instead of balancing. Allotment's own feature.

use std::io;

use cluster::{Cluster, InstanceIdx, MirrorClass, NodeIdx, PINNED, TagId};
use placement::balance::{BalanceOptions, optimal_of};
use placement::board::Board;
use placement::explain::words;
use placement::idle::Immovable;
use placement::repair::{self, Class, Obstacle, Violation};
use serde::Serialize;

use super::{HbalError, Scope, Solution, idle, show};
use crate::io::Io;
use crate::options::Options;

/// A violation that remains, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Remaining {
    violation: String,
    reason: String,
}

/// Finds the moves, then prints them. Only at the end is it known which instances move twice.
pub(super) fn solve(
    cluster: &mut Cluster,
    scope: &Scope,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<Solution, HbalError> {
    let listing = show::Listing::new(cluster, scope);
    let board = Board::new(cluster, &scope.nodes);
    let optimal = optimal_of(cluster, &scope.nodes);
    show::initial_score(&board, options.verbosity, io)?;
    let repair = repair::repair(cluster, &scope.nodes, &scope.instances, &BalanceOptions::from(options));
    let before = *board.values();
    let healthy = repair.before.is_healthy();
    if healthy {
        writeln!(io.out, "No violations found.\nNothing to do, exiting")?;
    } else {
        writeln!(io.out, "Trying to end {} violations...", repair.found.len())?;
    }
    let explained = show::steps(cluster, &listing, &repair.steps, &repair.values, options, io)?;
    let in_words = |(violation, obstacle): &(Violation, Obstacle)| Remaining {
        violation: violation_in_words(cluster, *violation),
        reason: obstacle_in_words(*violation, obstacle),
    };
    let remaining = repair.remaining.iter().map(in_words).collect();
    let after = repair.values.last().copied().unwrap_or(before);
    let steps = repair.steps;
    Ok(Solution {
        steps,
        before,
        after,
        optimal,
        explained,
        // `remaining` has reasons of its own.
        reasons: Vec::new(),
        well_balanced: healthy,
        remaining,
        comparison: None,
    })
}

/// Prints violations that could not be ended.
pub(super) fn show_remaining(remaining: &[Remaining], io: &mut Io<'_>) -> io::Result<()> {
    if !remaining.is_empty() {
        writeln!(io.out, "Remaining violations:")?;
    }
    for Remaining { violation, reason } in remaining {
        writeln!(io.out, "  {violation}: {reason}")?;
    }
    Ok(())
}

fn violation_in_words(cluster: &Cluster, violation: Violation) -> String {
    let node = |index: NodeIdx| cluster.alias(&cluster.node(index).name);
    let instance = |index: InstanceIdx| cluster.alias(&cluster.instance(index).name);
    let tag = |id: TagId| cluster.tag_name(id);
    match violation {
        Violation::Offline { instance: index, node: on } => {
            let part = if cluster.instance(index).primary == on { "primary" } else { "secondary" };
            format!("instance {} has its {part} on offline node {}", instance(index), node(on))
        }
        Violation::N1 { node: on, shortage } => {
            format!("node {} is not N+1 happy, it lacks {shortage} MiB of memory", node(on))
        }
        Violation::Conflict { node: on, tag: shared } => {
            format!("node {} has several primaries with exclusion tag {}", node(on), tag(shared))
        }
        Violation::SharedLocation { instance: index } => {
            format!("instance {} has both nodes in the same location", instance(index))
        }
        Violation::UnmetWish { instance: index } => {
            format!("instance {} is not where it wishes to be", instance(index))
        }
        Violation::LocatedConflict { location, tag: shared } => {
            format!("location {} has several primaries with exclusion tag {}", tag(location), tag(shared))
        }
    }
}

fn class_in_words(class: Class) -> &'static str {
    match class {
        Class::Offline => "what is on offline nodes",
        Class::N1 => "N+1",
        Class::Conflicts => "exclusion tags",
        Class::Location => "locations",
    }
}

fn immovable_in_words(violation: Violation, reason: Immovable) -> String {
    match (violation, reason) {
        // The disks cannot be read, so no mirror can be made.
        (Violation::Offline { .. }, Immovable::Template(template))
            if template.mirror() == MirrorClass::None =>
        {
            format!("{} disks are on one node only (bring that node back)", template.name())
        }
        (_, Immovable::Template(template)) => idle::of_template(template),
        (Violation::Offline { .. }, Immovable::NoSecondary) => {
            "there is no secondary node (bring that node back)".to_owned()
        }
        (_, Immovable::NoSecondary) => "there is no secondary node (give it one)".to_owned(),
        (_, Immovable::Pinned) => {
            format!("pinned by the tag {PINNED} (gnt-instance remove-tags takes it away)")
        }
        (_, Immovable::AutoBalanceOff) => {
            "auto_balance is off (gnt-instance modify -B auto_balance=true)".to_owned()
        }
        (_, Immovable::LeftOut) => "options leave instances out".to_owned(),
    }
}

fn obstacle_in_words(violation: Violation, obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Limit => "the limit of moves is reached (--max-length)".to_owned(),
        Obstacle::Unmovable(reasons) if reasons.is_empty() => "no instance concerned may be moved".to_owned(),
        Obstacle::Unmovable(reasons) => {
            let reasons: Vec<String> =
                reasons.iter().map(|reason| immovable_in_words(violation, *reason)).collect();
            format!("no instance concerned can be moved: {}", reasons.join("; "))
        }
        Obstacle::Unreadable => {
            "both its nodes are offline, nothing can read its data (bring one of them back)".to_owned()
        }
        Obstacle::Forbidden => "the options, or a lack of online nodes, leave no move to try".to_owned(),
        Obstacle::Refused(failures) => {
            let reasons: Vec<String> =
                failures.reasons().map(|(mode, count)| format!("{} ({count})", words(mode))).collect();
            format!(
                "every move is refused: {}; make room in the group, or add a node to it",
                reasons.join(", ")
            )
        }
        Obstacle::Useless => "no possible move helps".to_owned(),
        Obstacle::Harmful(class) => format!(
            "every move that helps would make another violation worse ({}); --ignore-soft-errors accepts lesser ones",
            class_in_words(*class)
        ),
    }
}
