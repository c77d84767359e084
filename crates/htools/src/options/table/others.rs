//! Options that neither `hail` nor `hbal` has.

use super::Argument::Required;
use super::{CHOICE, Flag, NOTHING, float, number, option, values};
use crate::options::program::Program::{Harep, Hcheck, Hroller, Hscan, Hspace, Hsqueeze};

pub(super) static FLAGS: &[Flag] = &[
    option(
        None,
        "machine-readable",
        CHOICE,
        &[Hspace, Hcheck],
        "print keys and values for programs to read",
        |o, v| {
            o.machine_readable = values::choice(v)?;
            Ok(())
        },
    ),
    option(None, "no-simulation", NOTHING, &[Hcheck], "do not simulate balancing", on!(no_simulation)),
    option(
        None,
        "disk-template",
        (Required("TEMPLATE"), "choices=diskless,file,sharedfile,plain,blockdev,drbd,rbd,ext,gluster"),
        &[Hspace],
        "disk template of the instances to place",
        |o, v| {
            o.disk_template = v.map(values::disk_template).transpose()?;
            Ok(())
        },
    ),
    option(
        None,
        "spindle-use",
        number("SPINDLES"),
        &[Hspace],
        "spindle use of the instances to place",
        |o, v| {
            o.spindle_use = v.map(values::spindle_use).transpose()?;
            Ok(())
        },
    ),
    option(
        None,
        "standard-alloc",
        (Required("STDSPEC"), "string"),
        &[Hspace],
        "shape of the instances to place: disk,memory,cpus[,spindles]",
        |o, v| {
            o.standard_alloc = v.map(|text| values::alloc_spec("standard", text)).transpose()?;
            Ok(())
        },
    ),
    option(
        None,
        "tiered-alloc",
        (Required("TSPEC"), "string"),
        &[Hspace],
        "shape of the first instances to place, which then shrink",
        |o, v| {
            o.tiered_alloc = v.map(|text| values::alloc_spec("tiered", text)).transpose()?;
            Ok(())
        },
    ),
    option(
        None,
        "independent-groups",
        NOTHING,
        &[Hspace],
        "check the redundancy of each group separately",
        on!(independent_groups),
    ),
    option(
        None,
        "accept-existing-errors",
        NOTHING,
        &[Hspace],
        "continue where redundancy is already lost",
        on!(accept_existing_errors),
    ),
    option(None, "no-headers", NOTHING, &[Hroller, Hsqueeze, Hscan], "print no headings", on!(no_headers)),
    option(
        None,
        "node-tags",
        (Required("TAG,..."), "string"),
        &[Hroller],
        "only nodes with one of these tags",
        |o, v| {
            o.node_tags = v.map(values::list);
            Ok(())
        },
    ),
    option(
        None,
        "one-step-only",
        NOTHING,
        &[Hroller],
        "print only the first group of nodes",
        on!(one_step_only),
    ),
    option(None, "print-moves", NOTHING, &[Hroller], "print the moves of instances", on!(print_moves)),
    option(None, "full-evacuation", NOTHING, &[Hroller], "move mirrors away as well", on!(full_evacuation)),
    option(
        None,
        "offline-maintenance",
        NOTHING,
        &[Hroller],
        "instances are shut down during the maintenance, so they need not move",
        on!(offline_maintenance),
    ),
    option(
        None,
        "skip-non-redundant",
        NOTHING,
        &[Hroller],
        "leave out nodes with instances that cannot move",
        on!(skip_non_redundant),
    ),
    option(
        None,
        "ignore-non-redundant",
        NOTHING,
        &[Hroller],
        "ignore instances that cannot move",
        on!(ignore_non_redundant),
    ),
    option(Some('f'), "force", NOTHING, &[Hroller], "continue without a master node", on!(force)),
    option(
        None,
        "minimal-resources",
        number("FACTOR"),
        &[Hsqueeze],
        "switch nodes on when less capacity than this is left, in standard instances per node",
        read!(minimal_resources, |v| float("minimal resources", v)),
    ),
    option(
        None,
        "target-resources",
        number("FACTOR"),
        &[Hsqueeze],
        "capacity to leave after switching nodes on or off",
        read!(target_resources, |v| float("target resources", v)),
    ),
    option(
        Some('d'),
        "output-dir",
        (Required("PATH"), "dir"),
        &[Hscan],
        "directory for the files",
        |o, v| {
            v.unwrap_or_default().clone_into(&mut o.output_dir);
            Ok(())
        },
    ),
    option(
        None,
        "job-delay",
        number("SECONDS"),
        &[Harep],
        "delay each repair by this time before it starts",
        read!(job_delay, |v| float("job delay", v)),
    ),
    option(None, "dry-run", NOTHING, &[Harep], "print jobs and tags, change nothing", on!(dry_run)),
];
