//! The capacity check of `hail` and `hspace`: the nodes that it considers, and the records that it uses.

use serde_json::{Map, Value, json};

use crate::program::{answer, chosen, hspace};

const TEMPLATES: [&str; 4] = ["drbd", "plain", "ext", "rbd"];

fn spec(memory: i64, disk: i64, cpus: i64) -> Value {
    json!({"memory-size": memory, "cpu-count": cpus, "disk-size": disk, "disk-count": 1, "nic-count": 1,
        "spindle-use": 1})
}

fn instance(template: &str, memory: i64, disk: i64) -> Value {
    json!({"memory": memory, "vcpus": 1, "disk_space_total": disk, "disks": [{"size": disk, "spindles": 1}],
        "disk_template": template, "tags": [], "spindle_use": 1, "nics": [], "admin_state": "up"})
}

/// A request for a cluster that is built step by step.
struct Message {
    groups: Map<String, Value>,
    nodes: Map<String, Value>,
    instances: Map<String, Value>,
    tags: Vec<&'static str>,
}

impl Message {
    fn new() -> Self {
        let (groups, nodes, instances) = (Map::new(), Map::new(), Map::new());
        Self { groups, nodes, instances, tags: Vec::new() }
    }

    fn group(mut self, name: &str, alloc_policy: &str, templates: &[&str]) -> Self {
        let minmax = json!([{"min": spec(128, 1024, 1), "max": spec(65536, 1_048_576, 8)}]);
        let policy = json!({"std": spec(1024, 1024, 1), "minmax": minmax, "disk-templates": templates,
            "vcpu-ratio": 4.0, "spindle-ratio": 32.0});
        let group = json!({"name": name, "alloc_policy": alloc_policy, "networks": [], "tags": [], "ipolicy": policy});
        self.groups.insert(name.to_owned(), group);
        self
    }

    /// Adds a node with 32 GiB of memory. Its name is that of its group and a number from 1.
    fn node(mut self, group: &str, disk: i64, exclusive: bool, tags: &[&str]) -> Self {
        let number = 1 + self.nodes.values().filter(|node| node["group"] == group).count();
        let node = json!({"group": group, "offline": false, "drained": false, "tags": tags,
            "ndparams": {"spindle_count": 8, "exclusive_storage": exclusive},
            "total_memory": 32768, "reserved_memory": 1024, "free_memory": 31744,
            "total_disk": disk, "free_disk": disk, "total_cpus": 16, "reserved_cpus": 1,
            "total_spindles": 8, "free_spindles": 8});
        self.nodes.insert(format!("{group}{number}"), node);
        self
    }

    /// Adds an instance that uses the first of these nodes.
    fn instance(mut self, name: &str, nodes: &[&str], template: &str, memory: i64, disk: i64) -> Self {
        let mut instance = instance(template, memory, disk);
        instance["nodes"] = json!(nodes);
        self.instances.insert(name.to_owned(), instance);
        let free = |key: &str| self.nodes[nodes[0]][key].as_i64().expect("a number");
        let (free_memory, free_disk) = (free("free_memory") - memory, free("free_disk") - disk);
        self.nodes[nodes[0]]["free_memory"] = json!(free_memory);
        if template == "plain" || template == "drbd" {
            self.nodes[nodes[0]]["free_disk"] = json!(free_disk);
        }
        self
    }

    fn ask(&self, request: &Value) -> Value {
        json!({"version": 2, "cluster_name": "c", "cluster_tags": self.tags, "enabled_hypervisors": ["xen-pvm"],
            "nodegroups": self.groups, "nodes": self.nodes, "instances": self.instances, "request": request})
    }

    fn allocate(&self, template: &str, forthcoming: bool) -> Value {
        let mut request = instance(template, 1024, 5000);
        request["type"] = json!("allocate");
        request["name"] = json!("new");
        request["required_nodes"] = json!(1);
        request["forthcoming"] = json!(forthcoming);
        self.ask(&request)
    }
}

/// A group with exclusive storage, and an ordinary group whose nodes cannot be evacuated.
fn dedicated_beside_full() -> Message {
    Message::new()
        .group("d", "preferred", &TEMPLATES)
        .group("s", "preferred", &TEMPLATES)
        .node("d", 1_000_000, true, &[])
        .node("d", 1_000_000, true, &[])
        .node("s", 1_000_000, false, &[])
        .node("s", 1_000_000, false, &[])
        .instance("one", &["s1"], "ext", 20_000, 5000)
        .instance("two", &["s2"], "ext", 20_000, 5000)
}

#[test]
fn nodes_that_cannot_be_emptied_count_in_every_group() {
    for template in ["plain", "ext"] {
        let answer = answer(&dedicated_beside_full().allocate(template, false));
        assert_eq!(answer["success"], json!(false), "{answer}");
        let info = answer["info"].as_str().expect("a text");
        assert!(
            info.contains("Group d (preferred): No valid allocation solutions, failure reasons: FailN1: 2")
        );
    }
}

#[test]
fn instances_do_not_change_to_a_group_beside_one_that_cannot_be_emptied() {
    let message = dedicated_beside_full();
    let request = json!({"type": "change-group", "instances": ["one"], "target_groups": ["d"]});
    let answer = answer(&message.ask(&request));
    assert!(
        answer["info"].as_str().expect("a text").contains("1 instances failed to move and 0"),
        "{answer}"
    );
}

#[test]
fn what_does_not_exist_yet_needs_no_other_node() {
    let lonely = Message::new().group("g", "preferred", &TEMPLATES).node("g", 1_000_000, false, &[]);
    for template in ["plain", "ext"] {
        assert_eq!(chosen(&lonely.allocate(template, true)), ["g1"]);
        let real = answer(&lonely.allocate(template, false));
        assert_eq!(real["success"], json!(false), "{real}");
    }
}

#[test]
fn an_instance_that_gets_a_mirror_is_still_tested_as_the_plain_one_that_it_was() {
    let request = json!({"type": "allocate-secondary", "name": "i"});
    let group = |templates: &[&str], disk| {
        Message::new()
            .group("g", "preferred", templates)
            .node("g", 1_000_000, false, &[])
            .node("g", disk, false, &[])
            .instance("i", &["g1"], "plain", 1024, 20_000)
    };
    let secondary = answer(&group(&TEMPLATES, 1_000_000).ask(&request));
    assert_eq!(secondary["result"], json!("g2"));
    // It couldn't be created again: the policy forbids its template, or the mirror uses the disk.
    for message in [group(&["drbd", "ext"], 1_000_000), group(&TEMPLATES, 30_000)] {
        let refused = answer(&message.ask(&request));
        let info = "Request failed: No valid allocation solutions, failure reasons: FailN1: 1";
        assert_eq!(refused["info"], json!(info));
    }
}

#[test]
fn an_instance_that_changes_its_group_is_tested_where_it_is_so_far() {
    let mut message = Message::new()
        .group("a", "preferred", &TEMPLATES)
        .group("c", "unallocable", &TEMPLATES)
        .node("a", 1_000_000, false, &[])
        .node("a", 1_000_000, false, &[])
        .node("c", 100_000, false, &["hv:1"])
        .node("c", 1_000_000, false, &[])
        .instance("i", &["a1"], "ext", 1024, 5000);
    message.tags = vec!["htools:migration:hv"];
    // It must not migrate from c1 to c2, but it's on a1, and migration from there is allowed.
    let answer =
        answer(&message.ask(&json!({"type": "change-group", "instances": ["i"], "target_groups": []})));
    let reason = answer["result"][1][0][1].as_str().expect("a reason");
    assert!(reason.contains("successes 2, failures 0 ()"), "{reason}");
}

#[test]
fn with_existing_errors_accepted_an_offline_node_does_not_close_its_group() {
    let cluster = "\
g|u|preferred||

n1|32768|1024|30720|1000000|998000|16|M|u|2||N|0|1|1.0
n2|32768|1024|30720|1000000|998000|16|N|u|2||N|0|1|1.0
n3|65536|1024|15360|1000000|900000|16|Y|u|2||N|0|1|1.0

small1|1024|2000|1|running|Y|n1||plain||1|-|N
small2|1024|2000|1|running|Y|n2||plain||1|-|N
huge|49152|100000|8|ERROR_nodeoffline|Y|n3||plain||1|-|N


|1024,1,1024,1,1,1|128,1,1024,1,1,1;65536,8,1048576,16,8,12|plain,drbd|4.0|32.0
";
    let both = ["--independent-groups", "--accept-existing-errors"];
    let count = |options: &[&str]| {
        let shape = [
            "--disk-template=plain",
            "--standard-alloc=10g,4g,1",
            "--tiered-alloc=10g,4g,1",
            "--machine-readable",
        ];
        let ran = hspace(cluster, &[&shape, options].concat());
        assert_eq!((ran.status, ran.err.as_str()), (0, ""));
        let line = ran.out.lines().find_map(|line| line.strip_prefix("HTS_ALLOC_INSTANCES="));
        line.expect("a count").to_owned()
    };
    assert_eq!(count(&both), count(&both[1..]));
    assert_ne!(count(&both), "0");
}

#[test]
fn an_infinite_ratio_is_no_crash() {
    let cluster = "\
g|u|preferred||

n1|65536|1024|64512|2000000|2000000|16|M|u|10||N|10|1|1
n2|65536|1024|64512|2000000|2000000|16|N|u|10||N|0|1|1



";
    let shape = ["--disk-template=plain", "--standard-alloc=10g,30g,1", "--tiered-alloc=10g,30g,1", "-l2"];
    for options in [["--max-cpu", "1e400"], ["--max-cpu", "1e300"], ["--min-disk", "-Infinity"]] {
        let ran = hspace(cluster, &[&shape[..], &options].concat());
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{options:?}");
    }
}
