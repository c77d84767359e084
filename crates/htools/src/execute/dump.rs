//! Job sets with their results, printed in the reference's notation, because scripts can search it for names.

use std::fmt::Write;

use super::daemon::{JobId, JobStatus};
use super::jobs::{Finished, JobSet};
use crate::opcode::{NewSecondary, OpCode, Tagged};
use crate::report::shown;

/// Report of an interrupted run: job sets that were submitted, and those that were not.
pub(super) fn early_exit(finished: &[Finished], rest: &[JobSet]) -> String {
    let done = bracketed(finished, |(what, jobs)| {
        let jobs = bracketed(jobs, |(id, status)| format!("({id},{})", constant(*status)));
        format!("({},{jobs})", shown(what))
    });
    let left = bracketed(rest, |set| {
        let jobs = bracketed(&set.jobs, |job| bracketed(job, record));
        format!("({},{jobs})", shown(&set.what))
    });
    format!(
        "Exiting early due to user request, \n{}jobset(s) submitted: \n{done}\n{} jobset(s) not \
         submitted:\n{left}\n",
        finished.len(),
        rest.len(),
    )
}

/// List of unsuccessful jobs.
pub(super) fn failed(jobs: &[(JobId, JobStatus)]) -> String {
    bracketed(jobs, |(id, status)| format!("(JobId {{fromJobId = {id}}},{})", constant(*status)))
}

fn constant(status: JobStatus) -> String {
    format!("JOB_STATUS_{}", status.name().to_uppercase())
}

fn bracketed<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(item).collect();
    format!("[{}]", items.join(","))
}

fn record(op: &OpCode) -> String {
    match op {
        OpCode::Migrate { instance, target } => format!(
            "OpInstanceMigrate {{opInstanceName = {}, opInstanceUuid = Nothing, opMigrationMode = Nothing, \
             opOldLiveMode = Nothing, opTargetNode = {}, opTargetNodeUuid = Nothing, opAllowRuntimeChanges = \
             False, opIgnoreIpolicy = False, opMigrationCleanup = False, opIallocator = Nothing, \
             opAllowFailover = True, opIgnoreHvversions = True}}",
            shown(instance),
            optional(target.as_deref()),
        ),
        OpCode::Failover { instance, target } => format!(
            "OpInstanceFailover {{opInstanceName = {}, opInstanceUuid = Nothing, opShutdownTimeout = \
             NonNegative {{fromNonNegative = 120}}, opIgnoreConsistency = False, opTargetNode = {}, \
             opTargetNodeUuid = Nothing, opIgnoreIpolicy = False, opMigrationCleanup = False, opIallocator = \
             Nothing}}",
            shown(instance),
            optional(target.as_deref()),
        ),
        OpCode::ReplaceDisks { instance, secondary: NewSecondary::Node(node) } => format!(
            "OpInstanceReplaceDisks {{opInstanceName = {}, opInstanceUuid = Nothing, opEarlyRelease = False, \
             opIgnoreIpolicy = False, opReplaceDisksMode = ReplaceNewSecondary, opReplaceDisksList = [], \
             opRemoteNode = {}, opRemoteNodeUuid = Nothing, opIallocator = Nothing}}",
            shown(instance),
            optional(Some(node)),
        ),
        OpCode::TagsSet { object: Tagged::Node(node), tags } => format!(
            "OpTagsSet {{opKind = TagKindNode, opTagsList = {}, opTagsGetName = Just {}}}",
            bracketed(tags, |tag| shown(tag)),
            shown(node),
        ),
        OpCode::NodeSetOffline { node, offline } => format!(
            "OpNodeSetParams {{opNodeName = {}, opNodeUuid = Nothing, opForce = False, opHvState = Nothing, \
             opDiskState = Nothing, opMasterCandidate = Nothing, opOffline = Just {}, opDrained = Nothing, \
             opAutoPromote = False, opMasterCapable = Nothing, opVmCapable = Nothing, opSecondaryIp = \
             Nothing, opgenericNdParams = Nothing, opPowered = Nothing}}",
            non_empty(node),
            if *offline { "True" } else { "False" },
        ),
        OpCode::NodePower { nodes, on } => format!(
            "OpOobCommand {{opNodeNames = {}, opNodeUuids = Nothing, opOobCommand = OobPower{}, opOobTimeout \
             = 60, opIgnoreStatus = False, opPowerDelay = 2.0}}",
            bracketed(nodes, |node| non_empty(node)),
            if *on { "On" } else { "Off" },
        ),
        // Programs that can be interrupted between job sets don't submit other operations.
        other => {
            let mut json = String::new();
            other.write(&mut json);
            json
        }
    }
}

fn non_empty(name: &str) -> String {
    format!("NonEmpty {{fromNonEmpty = {}}}", shown(name))
}

fn optional(name: Option<&str>) -> String {
    let mut out = String::from("Nothing");
    if let Some(name) = name {
        out.clear();
        // Writing to a string cannot fail.
        let _ = write!(out, "Just ({})", non_empty(name));
    }
    out
}
