//! Clusters built from specifications (`--simulate`, HT-simulate).

use cluster::{AllocPolicy, Group, GroupIdx, Node, Policy};
use thiserror::Error;

use crate::data::{ClusterData, bounded};
use crate::number::{NumberError, read_int};
use crate::units::{self, UnitError};

/// Error in a specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimulateError {
    /// Too few or too many elements.
    #[error(
        "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, node count, \
         disk size, memory size, number of CPUs, spindles) but got {count}: '{spec}'"
    )]
    Elements {
        /// Number of elements found.
        count: usize,
        spec: String,
    },
    /// Unknown allocation policy.
    #[error("unknown allocation policy {0:?}, pass one of preferred, last_resort or unallocable")]
    AllocPolicy(String),
    #[error("{what}: {error}")]
    Size {
        /// Name of the size.
        what: &'static str,
        error: UnitError,
    },
    #[error(transparent)]
    Number(#[from] NumberError),
    /// More nodes than fit into memory. The reference has no limit.
    #[error("node count: {0} exceeds {MAX_NODES}")]
    TooManyNodes(i64),
    /// Invalid value for exclusive storage.
    #[error("exclusive storage: cannot parse string '{0}'")]
    Exclusive(String),
}

/// Maximum number of nodes in a specification.
const MAX_NODES: i64 = 1_000_000;

/// Builds one group per specification, in reverse order like the reference. Group names, and which group is
/// first, depend on it.
pub fn parse(specs: &[String]) -> Result<ClusterData, SimulateError> {
    let mut data = ClusterData::default();
    for spec in specs.iter().rev() {
        add_group(&mut data, spec)?;
    }
    Ok(data)
}

fn add_group(data: &mut ClusterData, spec: &str) -> Result<(), SimulateError> {
    let fields: Vec<&str> = if spec.is_empty() { Vec::new() } else { spec.split(',').collect() };
    let wrong_count = || SimulateError::Elements { count: fields.len(), spec: spec.to_owned() };
    let [policy, nodes, disk, memory, cpus, ref optional @ ..] = *fields.as_slice() else {
        return Err(wrong_count());
    };
    if optional.len() > 2 {
        return Err(wrong_count());
    }
    let size =
        |what, text| units::parse(text).map(bounded).map_err(|error| SimulateError::Size { what, error });
    let alloc_policy = alloc_policy(policy)?;
    let node_count = read_int("node count", nodes)?;
    let disk = size("disk size", disk)?;
    let memory = size("memory size", memory)?;
    let cpus = bounded(read_int("cpu count", cpus)?);
    let spindles = bounded(optional.first().map_or(Ok(1), |text| read_int("spindles", text))?);
    let exclusive_storage = optional.get(1).map_or(Ok(false), |text| truth_value(text))?;
    if node_count > MAX_NODES {
        return Err(SimulateError::TooManyNodes(node_count));
    }

    let number = data.groups.len() + 1;
    let group = GroupIdx::from_usize(data.groups.len());
    data.groups.push(Group {
        name: format!("group-{number:02}"),
        uuid: format!("fake-uuid-{number:02}"),
        alloc_policy,
        tags: Vec::new(),
        networks: Vec::new(),
        policy: Policy::default(),
    });
    data.nodes.extend((1..=node_count).map(|n| Node {
        total_memory: memory as f64,
        reported_free_memory: memory,
        total_disk: disk as f64,
        reported_free_disk: disk,
        total_cpus: cpus as f64,
        total_spindles: spindles,
        exclusive_storage,
        master: number == 1 && n == 1,
        ..Node::new(format!("node-{number:02}-{n:03}"), group)
    }));
    Ok(())
}

fn alloc_policy(text: &str) -> Result<AllocPolicy, SimulateError> {
    match text {
        "p" => Ok(AllocPolicy::Preferred),
        "a" => Ok(AllocPolicy::LastResort),
        "u" => Ok(AllocPolicy::Unallocable),
        _ => AllocPolicy::from_name(text).ok_or_else(|| SimulateError::AllocPolicy(text.to_owned())),
    }
}

fn truth_value(text: &str) -> Result<bool, SimulateError> {
    match text.trim_start() {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(SimulateError::Exclusive(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes() {
        let check = |spec: &str, expect: &str| {
            assert_eq!(
                parse(&[spec.to_owned()]).map(|_| ()).map_err(|e| e.to_string()),
                Err(expect.to_owned())
            );
        };
        for (spec, count) in [("", 0), ("p,1,1,1", 4), ("p,1,1,1,1,1,True,x", 8)] {
            check(
                spec,
                &format!(
                    "Invalid cluster specification, expected 6 comma-separated sections (allocation policy, \
                     node count, disk size, memory size, number of CPUs, spindles) but got {count}: '{spec}'"
                ),
            );
        }
        check(
            "allocable,1,1,1,1",
            "unknown allocation policy \"allocable\", pass one of preferred, last_resort or unallocable",
        );
        check("p,x,1,1,1", "node count: cannot parse string 'x'");
        check("p,1000000000000,1,1,1", "node count: 1000000000000 exceeds 1000000");
        check("p,1,1k,1,1", "disk size: Unknown unit 'k', use m, g or t (1024) or M, G or T (1000)");
        check("p,1,1,1.5,1", "memory size: Can't parse string '1.5'");
        check("p,1,1,1,1m", "cpu count: leftover characters when parsing '1m': 'm'");
        check("p,1,1,1,1,", "spindles: cannot parse string ''");
        check("p,1,1,1,1,1,yes", "exclusive storage: cannot parse string 'yes'");
    }

    #[test]
    fn the_last_specification_makes_the_first_group() {
        let data = parse(&["p,2,10g,1g,2,3,True".to_owned(), "unallocable,1,20g,2g,0x4".to_owned()]).unwrap();
        let groups: Vec<_> = data.groups.iter().map(|g| (g.name.as_str(), g.alloc_policy)).collect();
        assert_eq!(groups, [("group-01", AllocPolicy::Unallocable), ("group-02", AllocPolicy::Preferred)]);
        let nodes: Vec<_> = data
            .nodes
            .iter()
            .map(|n| (n.name.as_str(), n.reported_free_disk, n.total_cpus, n.master, n.exclusive_storage))
            .collect();
        assert_eq!(
            nodes,
            [
                ("node-01-001", 20_480, 4.0, true, false),
                ("node-02-001", 10_240, 2.0, false, true),
                ("node-02-002", 10_240, 2.0, false, true)
            ]
        );
        assert_eq!(parse(&["p,-3,1,1,1".to_owned()]).unwrap().nodes, []);
    }

    #[test]
    fn sizes_are_bounded_so_that_sums_do_not_overflow() {
        let most = i64::MAX;
        let data = parse(&[format!("p,1,{most},{most},{most},{most}")]).unwrap();
        let node = &data.nodes[0];
        let sizes = [node.reported_free_memory, node.reported_free_disk, node.total_spindles];
        assert_eq!((sizes, node.total_cpus), ([1 << 40; 3], (1_i64 << 40) as f64));
    }
}
