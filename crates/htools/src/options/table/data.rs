//! Options for the source of a cluster, and for printing and saving it.

use super::Argument::{Optional, Required};
use super::{CHOICE, FILE, Flag, NOTHING, READERS, option, values};
use crate::options::program::Program::{Hail, Harep, Hbal, Hcheck, Hinfo, Hroller, Hscan, Hspace, Hsqueeze};
use crate::options::values::{FieldSelection, LuxiSocket, PrintCommands};

pub(super) static FLAGS: &[Flag] = &[
    option(
        Some('p'),
        "print-nodes",
        (Optional("FIELDS"), "none"),
        &[Hail, Hbal, Hspace, Hinfo, Hscan],
        "print a table of the nodes with these columns, or with additional columns if the list begins with +",
        |o, v| {
            o.print_nodes = Some(FieldSelection::from_argument(v));
            Ok(())
        },
    ),
    option(
        None,
        "print-instances",
        NOTHING,
        &[Hbal, Hinfo],
        "print a table of the instances",
        on!(print_instances),
    ),
    option(
        Some('C'),
        "print-commands",
        (Optional("FILE"), "none"),
        &[Hbal, Hsqueeze],
        "print the commands that lead to the solution, or write them to a file",
        |o, v| {
            o.print_commands =
                Some(v.map_or(PrintCommands::Stdout, |file| PrintCommands::File(file.to_owned())));
            Ok(())
        },
    ),
    option(
        Some('t'),
        "text-data",
        FILE,
        &[Hail, Hbal, Hspace, Hcheck, Hinfo, Hroller, Hsqueeze],
        "read the cluster from a file in text format",
        keep!(text_data),
    ),
    option(
        Some('m'),
        "master",
        (Required("ADDRESS"), "host"),
        READERS,
        "read the cluster over RAPI",
        keep!(master),
    ),
    option(
        Some('L'),
        "luxi",
        (Optional("SOCKET"), "file"),
        &[Hbal, Hspace, Hcheck, Hinfo, Hroller, Hsqueeze, Hscan, Harep],
        "read the cluster from its master daemon",
        |o, v| {
            o.luxi = Some(v.map_or(LuxiSocket::Default, |path| LuxiSocket::Path(path.to_owned())));
            Ok(())
        },
    ),
    option(
        Some('I'),
        "ialloc-src",
        FILE,
        READERS,
        "read the cluster from an allocation request",
        keep!(ialloc_src),
    ),
    option(
        None,
        "simulate",
        (Required("SPEC"), "string"),
        &[Hail, Hspace],
        "simulate a group of empty nodes: policy,nodes,disk,memory,cpus (optional: ,spindles,exclusive)",
        |o, v| {
            o.simulate.extend(v.map(str::to_owned));
            Ok(())
        },
    ),
    option(
        Some('v'),
        "verbose",
        NOTHING,
        &[Hail, Hbal, Hspace, Hcheck, Hinfo, Hroller, Hsqueeze, Hscan],
        "print more; can be repeated",
        |o, _| {
            o.verbosity += 1;
            Ok(())
        },
    ),
    option(Some('q'), "quiet", NOTHING, READERS, "print less; can be repeated", |o, _| {
        o.verbosity -= 1;
        Ok(())
    }),
    option(
        Some('O'),
        "offline",
        (Required("NODE"), "onenode"),
        READERS,
        "treat a node as offline; can be repeated",
        |o, v| {
            o.offline.splice(0..0, v.map(str::to_owned));
            Ok(())
        },
    ),
    option(
        Some('U'),
        "dynu-file",
        FILE,
        &[Hbal, Hcheck],
        "read the utilization of instances from a file",
        keep!(dynu_file),
    ),
    option(
        None,
        "ignore-dynu",
        NOTHING,
        &[Hail, Hbal, Hcheck, Hinfo],
        "treat every instance as idle",
        on!(ignore_dynu),
    ),
    option(None, "mond", CHOICE, &[Hail, Hbal, Hinfo], "ask the monitoring daemons for CPU loads", |o, v| {
        o.mond = values::choice(v)?;
        Ok(())
    }),
    option(
        None,
        "mond-data",
        FILE,
        &[Hbal, Hinfo],
        "with --mond, read the daemons' answers from a file",
        keep!(mond_data),
    ),
    option(
        None,
        "mond-xen",
        NOTHING,
        &[Hail, Hbal],
        "with --mond, use the loads of instances that Xen reports",
        on!(mond_xen),
    ),
    option(
        None,
        "exit-on-missing-mond-data",
        NOTHING,
        &[Hbal],
        "with --mond, give up unless every daemon answers",
        on!(exit_on_missing_mond_data),
    ),
    option(
        None,
        "static-kvm-node-memory",
        (Required("N"), "integer"),
        &[Hail, Hbal, Hspace, Hinfo, Hroller, Hsqueeze, Hscan],
        "memory used by the system of a KVM node; 0 for the value that the node reports",
        read!(static_kvm_node_memory, values::node_memory),
    ),
    option(
        Some('S'),
        "save",
        (Required("FILE"), "none"),
        &[Hail, Hbal, Hspace, Hroller, Hsqueeze],
        "write the cluster's states to files with this prefix",
        keep!(save),
    ),
];
