//! Faults of instances and the repairs that fix them (HT-harep).

use cluster::{Cluster, DiskTemplate, Instance};

use super::policy::RepairType;
use crate::opcode::{NewSecondary, OpCode};

/// Repair for an instance; `None` if it's healthy or cannot be repaired. Pinned instances are never repaired.
pub(super) fn needed(cluster: &Cluster, instance: &Instance) -> Option<RepairType> {
    if instance.is_pinned() {
        return None;
    }
    let offline = |node| cluster.node(node).offline;
    let primary = offline(instance.primary);
    match (instance.template, instance.secondary.map(offline)) {
        (DiskTemplate::Drbd, Some(secondary)) => match (primary, secondary) {
            (true, true) => Some(RepairType::Reinstall),
            (true, false) => Some(RepairType::Failover),
            (false, true) => Some(RepairType::FixStorage),
            (false, false) => None,
        },
        (DiskTemplate::Plain, _) if primary => Some(RepairType::Reinstall),
        _ => None,
    }
}

/// Operations of a repair, after a delay of `delay_s` seconds during which the job can be canceled.
pub(super) fn operations(kind: RepairType, instance: &str, delay_s: f64) -> Vec<OpCode> {
    let name = || instance.to_owned();
    let mut job = Vec::new();
    if delay_s > 0.0 {
        job.push(OpCode::TestDelay { seconds: delay_s });
    }
    match kind {
        RepairType::FixStorage => {
            job.push(OpCode::ReplaceDisks { instance: name(), secondary: NewSecondary::Allocated });
        }
        RepairType::Migrate => job.push(OpCode::Migrate { instance: name(), target: None }),
        RepairType::Failover => job.push(OpCode::Failover { instance: name(), target: None }),
        RepairType::Reinstall => {
            job.push(OpCode::RecreateDisks { instance: name() });
            job.push(OpCode::Reinstall { instance: name() });
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use cluster::{Group, LoadOptions, Node, NodeIdx, Policy};

    use super::*;

    /// Repair of an instance with nodes that can be offline.
    fn of(
        template: DiskTemplate,
        primary_offline: bool,
        secondary_offline: Option<bool>,
    ) -> Option<RepairType> {
        of_tagged(template, primary_offline, secondary_offline, &[])
    }

    fn of_tagged(
        template: DiskTemplate,
        primary_offline: bool,
        secondary_offline: Option<bool>,
        tags: &[&str],
    ) -> Option<RepairType> {
        let node = |name, offline| Node { offline, ..Node::new(name, cluster::GroupIdx::from_usize(0)) };
        let nodes = vec![node("a", primary_offline), node("b", secondary_offline == Some(true))];
        let mut instance = Instance::new("i", template, NodeIdx::from_usize(0));
        instance.secondary = secondary_offline.map(|_| NodeIdx::from_usize(1));
        instance.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let options = LoadOptions::default();
        let (cluster, _) = Cluster::load(
            vec![Group::new("g", "u")],
            nodes,
            vec![instance],
            vec![],
            Policy::default(),
            &options,
        )
        .unwrap();
        needed(&cluster, &cluster.instances[0])
    }

    #[test]
    fn which_nodes_are_offline_decides() {
        use DiskTemplate::{Drbd, Plain};
        use RepairType::{Failover, FixStorage, Reinstall};
        for (template, primary, secondary, repair) in [
            (Drbd, true, Some(true), Some(Reinstall)),
            (Drbd, true, Some(false), Some(Failover)),
            (Drbd, false, Some(true), Some(FixStorage)),
            (Drbd, false, Some(false), None),
            (Plain, true, None, Some(Reinstall)),
            (Plain, false, None, None),
            // The nodes with its data are unknown: leave it alone.
            (Drbd, true, None, None),
        ] {
            assert_eq!(of(template, primary, secondary), repair, "{template:?} {primary} {secondary:?}");
        }
    }

    #[test]
    fn pinned_instances_are_left_alone() {
        let of = |tags: &[&str]| of_tagged(DiskTemplate::Drbd, true, Some(false), tags);
        assert_eq!((of(&["pinned"]), of(&["a", "allot:pinned"])), (Some(RepairType::Failover), None));
    }

    #[test]
    fn only_local_storage_is_repaired() {
        for template in DiskTemplate::ALL {
            if !matches!(template, DiskTemplate::Drbd | DiskTemplate::Plain) {
                assert_eq!(of(template, true, None), None, "{template:?}");
            }
        }
    }

    #[test]
    fn a_delay_of_nothing_is_left_out() {
        for (delay, operations_expected) in [(10.0, 2), (0.0, 1), (-1.0, 1), (f64::NAN, 1)] {
            assert_eq!(operations(RepairType::Failover, "i", delay).len(), operations_expected);
        }
    }
}
