//! Splits moves into sets of jobs that can run at the same time (HT-jobs).

use cluster::{Cluster, DiskTemplate, Move, NodeIdx};

use crate::balance::Step;

/// Splits steps into sets, in order of execution. Steps in one set have no node in common.
///
/// Steps are grouped greedily from the last one backwards, as in the reference.
pub fn job_sets(cluster: &Cluster, steps: &[Step]) -> Vec<Vec<Step>> {
    let mut sets: Vec<Vec<Step>> = Vec::new();
    let mut busy: Vec<NodeIdx> = Vec::new();
    for step in steps.iter().rev() {
        let nodes = involved(cluster, step);
        match sets.last_mut() {
            Some(set) if nodes.iter().all(|n| !busy.contains(n)) => {
                set.push(step.clone());
                busy.extend(nodes);
            }
            _ => {
                sets.push(vec![step.clone()]);
                busy = nodes;
            }
        }
    }
    for set in &mut sets {
        set.reverse();
    }
    sets.reverse();
    sets
}

/// Like [`job_sets`], for our own plans: leading steps that restart instances of unreadable nodes and copy no
/// data form one set, even if they have nodes in common.
pub fn own_job_sets(cluster: &Cluster, steps: &[Step]) -> Vec<Vec<Step>> {
    let starts = |step: &&Step| {
        let is_quick = matches!(step.mov, Move::Failover | Move::FailoverTo(_));
        is_quick && !cluster.node(step.from.0).readable()
    };
    let (first, rest) = steps.split_at(steps.iter().take_while(starts).count());
    let first = (!first.is_empty()).then(|| first.to_vec());
    first.into_iter().chain(job_sets(cluster, rest)).collect()
}

/// Nodes that a step moves to or from.
fn involved(cluster: &Cluster, step: &Step) -> Vec<NodeIdx> {
    let drbd = cluster.instance(step.instance).template == DiskTemplate::Drbd;
    let old_secondary = if drbd { step.from.1 } else { None };
    [Some(step.to.0), step.to.1, Some(step.from.0), old_secondary].into_iter().flatten().collect()
}
