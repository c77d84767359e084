//! Options that limit moves and placements.

use super::Argument::Required;
use super::{Flag, INSTANCES, NOTHING, float, int, number, option, values};
use crate::options::program::Program::{Hail, Harep, Hbal, Hcheck, Hroller, Hspace, Hsqueeze};

pub(super) static FLAGS: &[Flag] = &[
    option(
        Some('E'),
        "evac-mode",
        NOTHING,
        &[Hbal, Hcheck],
        "only move instances off offline nodes",
        on!(evac_mode),
    ),
    option(
        None,
        "restricted-migration",
        NOTHING,
        &[Hbal],
        "never migrate to the secondary only to replace the primary",
        on!(restricted_migration),
    ),
    option(
        Some('X'),
        "exec",
        NOTHING,
        &[Hbal, Hsqueeze],
        "run the moves, on a cluster read with --luxi",
        on!(exec),
    ),
    option(
        None,
        "first-job-group",
        NOTHING,
        &[Hbal],
        "print or run only the first set of jobs",
        on!(first_job_group),
    ),
    option(
        None,
        "reason",
        (Required("REASON"), "none"),
        &[Hbal, Harep],
        "reason for the jobs",
        keep!(reason),
    ),
    option(
        None,
        "priority",
        (Required("PRIO"), "choices=low,normal,high"),
        &[Hbal],
        "priority of the jobs: low, normal or high",
        |o, v| {
            o.priority = v.map(values::priority).transpose()?;
            Ok(())
        },
    ),
    option(
        Some('G'),
        "group",
        (Required("ID"), "onegroup"),
        &[Hbal, Hroller],
        "name or UUID of the node group to work on",
        keep!(group),
    ),
    option(
        Some('l'),
        "max-length",
        (Required("N"), "integer"),
        &[Hbal, Hspace, Hcheck],
        "stop after this many moves or allocations",
        read!(max_length, |v| int("max solution length", v)),
    ),
    option(
        Some('e'),
        "min-score",
        number("EPSILON"),
        &[Hbal, Hcheck],
        "treat a score this close to the best possible one as balanced",
        read!(min_score, |v| float("min score", v)),
    ),
    option(
        Some('g'),
        "min-gain",
        number("DELTA"),
        &[Hbal, Hcheck],
        "stop when a step gains less than this",
        read!(min_gain, |v| float("min gain", v)),
    ),
    option(
        None,
        "min-gain-limit",
        number("SCORE"),
        &[Hbal, Hcheck],
        "accept any gain while the score is above this",
        read!(min_gain_limit, |v| float("min gain limit", v)),
    ),
    option(
        None,
        "max-cpu",
        number("RATIO"),
        &[Hbal, Hspace, Hcheck],
        "allow this many virtual CPUs per physical CPU, instead of the policy's ratio",
        |o, v| {
            o.max_cpu = v.map(values::max_cpu).transpose()?;
            Ok(())
        },
    ),
    option(
        None,
        "min-disk",
        number("RATIO"),
        &[Hbal, Hspace, Hcheck],
        "keep this share of each node's disk free (0 to 1)",
        read!(min_disk, |v| float("min free disk space", v)),
    ),
    option(
        None,
        "no-disk-moves",
        NOTHING,
        &[Hbal, Hcheck],
        "move no data: only migrate and fail over",
        on!(no_disk_moves),
    ),
    option(
        None,
        "no-instance-moves",
        NOTHING,
        &[Hbal, Hcheck],
        "leave instances running where they are: only move their mirrors",
        on!(no_instance_moves),
    ),
    option(
        None,
        "select-instances",
        INSTANCES,
        &[Hbal, Hcheck],
        "move only these instances",
        names!(select_instances),
    ),
    option(
        None,
        "exclude-instances",
        INSTANCES,
        &[Hbal, Hcheck],
        "do not move these instances",
        names!(exclude_instances),
    ),
    option(
        None,
        "exclusion-tags",
        (Required("TAG,..."), "string"),
        &[Hbal, Hcheck],
        "keep instances apart that share a tag that begins with one of these and a colon",
        names!(exclusion_tags),
    ),
    option(
        None,
        "ignore-soft-errors",
        NOTHING,
        &[Hail, Hbal, Hcheck],
        "accept limits that are already exceeded",
        on!(ignore_soft_errors),
    ),
    option(
        None,
        "restrict-allocation-to",
        (Required("NODE,..."), "manynodes"),
        &[Hail],
        "place new instances on these nodes only",
        |o, v| {
            o.restrict_allocation_to = v.map(values::list);
            Ok(())
        },
    ),
    option(
        None,
        "no-capacity-checks",
        NOTHING,
        &[Hail, Hspace, Hcheck],
        "do not check that the cluster as a whole survives the loss of a node",
        on!(no_capacity_checks),
    ),
];
