//! Seed 000: the worked examples of dedicated allocation, as requests to `hail`.

use serde_json::{Map, Value, json};

use crate::dedicated_allocation::{QUARTER, SPARE};
use crate::program::{answer, chosen};

fn spec(quarters: i64) -> Value {
    json!({"memory-size": 100 * quarters, "cpu-count": 1, "disk-size": QUARTER * quarters, "disk-count": 1,
        "nic-count": 1, "spindle-use": quarters})
}

/// An instance with one spindle per quarter.
fn instance(quarters: i64, template: &str) -> Value {
    json!({"memory": 100 * quarters, "vcpus": 1, "disk_space_total": QUARTER * quarters,
        "disks": [{"size": QUARTER * quarters, "spindles": quarters}], "disk_template": template, "tags": [],
        "spindle_use": quarters, "nics": [], "admin_state": "up"})
}

/// A cluster with two groups. `filled` is the number of quarters in use on each node of the first group;
/// nodes of the second are never chosen.
struct Example {
    filled: Vec<i64>,
    sizes: Vec<i64>,
    template: &'static str,
    exclusive: bool,
}

impl Example {
    fn plain(filled: &[i64]) -> Self {
        Self { filled: filled.to_vec(), sizes: vec![4, 2, 1], template: "plain", exclusive: true }
    }

    fn drbd(filled: &[i64]) -> Self {
        Self { template: "drbd", ..Self::plain(filled) }
    }

    /// Request for an instance of `quarters` quarters.
    fn request(&self, quarters: i64) -> Value {
        let minmax: Vec<Value> =
            self.sizes.iter().map(|size| json!({"min": spec(*size), "max": spec(*size)})).collect();
        let policy = json!({"std": spec(1), "minmax": minmax, "disk-templates": ["drbd", "plain"],
            "vcpu-ratio": 32.0, "spindle-ratio": 32.0});
        let (mut nodes, mut instances) = (Map::new(), Map::new());
        for (position, filled) in self.filled.iter().enumerate() {
            let name = format!("n{position}");
            let node = json!({"group": "u", "offline": false, "drained": false, "vm_capable": true,
                "ndparams": {"spindle_count": 4, "exclusive_storage": self.exclusive}, "tags": [],
                "total_memory": 65536, "reserved_memory": 0, "free_memory": 65536 - 100 * filled,
                "total_disk": 4 * QUARTER + SPARE, "free_disk": (4 - filled) * QUARTER + SPARE,
                "total_cpus": 8, "reserved_cpus": 0, "total_spindles": 4, "free_spindles": 4 - filled});
            for number in 0..*filled {
                let mut record = instance(1, "plain");
                record["nodes"] = json!([name]);
                instances.insert(format!("i{position}-{number}"), record);
            }
            nodes.insert(name, node);
        }
        let mut request = instance(quarters, self.template);
        request["type"] = json!("allocate");
        request["name"] = json!("new");
        request["required_nodes"] = json!(if self.template == "drbd" { 2 } else { 1 });
        json!({"version": 2, "cluster_name": "c", "cluster_tags": [], "enabled_hypervisors": ["fake"],
            "nodegroups": {"u": {"name": "g", "alloc_policy": "preferred", "networks": [], "tags": [],
                "ipolicy": policy}},
            "nodes": nodes, "instances": instances, "request": request})
    }

    /// Quarters in use on the chosen nodes, fullest first.
    fn preferred(&self, quarters: i64) -> Vec<i64> {
        let nodes = chosen(&self.request(quarters));
        let filled = |name: &String| self.filled[name[1..].parse::<usize>().expect("a number")];
        let mut filled: Vec<i64> = nodes.iter().map(filled).collect();
        filled.sort_unstable_by(|a, b| b.cmp(a));
        filled
    }
}

#[test]
fn a_quarter_prefers_three_quarters_over_a_quarter_over_a_half_over_an_empty_node() {
    assert_eq!(Example::plain(&[0, 2, 1, 3]).preferred(1), [3]);
    assert_eq!(Example::plain(&[3, 1, 2, 0]).preferred(1), [3]);
    assert_eq!(Example::plain(&[0, 2, 1, 4]).preferred(1), [1]);
    assert_eq!(Example::plain(&[1, 2, 0]).preferred(1), [1]);
    assert_eq!(Example::plain(&[2, 0]).preferred(1), [2]);
    assert_eq!(Example::plain(&[0, 4]).preferred(1), [0]);
}

#[test]
fn a_half_prefers_a_half_over_a_quarter_over_an_empty_node() {
    assert_eq!(Example::plain(&[0, 1, 2, 3]).preferred(2), [2]);
    assert_eq!(Example::plain(&[2, 1, 0]).preferred(2), [2]);
    assert_eq!(Example::plain(&[0, 1, 3]).preferred(2), [1]);
    assert_eq!(Example::plain(&[0, 3, 4]).preferred(2), [0]);
}

#[test]
fn with_three_quarters_allowed_a_quarter_prefers_a_half_full_node_over_a_quarter_filled_one() {
    for filled in [[1, 2], [2, 1]] {
        let example = Example { sizes: vec![1, 2, 3, 4], ..Example::plain(&filled) };
        assert_eq!(example.preferred(1), [2]);
        assert_eq!(Example::plain(&filled).preferred(1), [1]);
    }
}

#[test]
fn the_answer_states_lost_allocations_and_disk_left() {
    let info = |example: &Example, quarters: i64| {
        let answer = answer(&example.request(quarters));
        answer["info"].as_str().expect("a text").to_owned()
    };
    for (filled, quarters, stated) in [
        (3, 1, "([0,0,1],1)"),
        (1, 1, "([0,0,1],2001)"),
        (2, 1, "([0,1,1],1001)"),
        (0, 1, "([1,1,1],3001)"),
        (2, 2, "([0,1,2],1)"),
        (1, 2, "([0,1,2],1001)"),
        (0, 2, "([1,1,2],2001)"),
    ] {
        let info = info(&Example::plain(&[filled]), quarters);
        assert!(info.contains(stated), "{filled} quarters: {info} lacks {stated}");
    }
}

#[test]
fn drbd_takes_the_pair_of_nodes_that_loses_least() {
    assert_eq!(Example::drbd(&[0, 2, 1, 3, 3]).preferred(1), [3, 3]);
    assert_eq!(Example::drbd(&[0, 2, 1, 3]).preferred(1), [3, 1]);
    assert_eq!(Example::drbd(&[0, 2, 1, 1]).preferred(1), [1, 1]);
    assert_eq!(Example::drbd(&[0, 0, 2, 2]).preferred(1), [2, 2]);
    assert_eq!(Example::drbd(&[0, 2, 1, 2]).preferred(2), [2, 2]);
    assert_eq!(Example::drbd(&[0, 3, 1, 2]).preferred(2), [2, 1]);
    let three = Example { sizes: vec![4, 3, 2, 1], ..Example::drbd(&[1, 2, 1, 2]) };
    assert_eq!(three.preferred(1), [2, 2]);
}

#[test]
fn nothing_changes_for_non_exclusive_groups() {
    // Without exclusive storage, the cluster is kept as balanced as possible: small instances go to empty
    // nodes.
    let shared = |filled: &[i64]| Example { exclusive: false, ..Example::plain(filled) };
    assert_eq!(shared(&[0, 2, 1, 3]).preferred(1), [0]);
    assert_eq!(shared(&[3, 2, 1]).preferred(1), [1]);
    assert_eq!(shared(&[2, 1, 0]).preferred(2), [0]);
    let mirrored = Example { exclusive: false, ..Example::drbd(&[0, 2, 0, 3]) };
    assert_eq!(mirrored.preferred(1), [0, 0]);
    let answer = answer(&shared(&[0, 1]).request(1));
    assert!(!answer["info"].as_str().is_none_or(|info| info.contains("([")), "{answer}");
}

#[test]
fn an_instance_that_fits_nowhere_is_refused() {
    for example in [Example::plain(&[3, 4]), Example::drbd(&[0, 4])] {
        let answer = answer(&example.request(2));
        assert_eq!((&answer["success"], &answer["result"]), (&json!(false), &json!([])), "{answer}");
    }
}
