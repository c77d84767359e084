//! `hail --explain`: reasons for every node, for all types of requests.

use serde_json::{Value, json};

use crate::program::{explained, hbal};

fn policy(disk_templates: &[&str]) -> Value {
    let spec = |memory: i64, disk: i64, most: i64| {
        json!({"memory-size": memory, "cpu-count": most, "disk-size": disk, "disk-count": most, "nic-count": most,
               "spindle-use": most})
    };
    json!({"std": spec(128, 1024, 1), "minmax": [{"min": spec(128, 1024, 1), "max": spec(32768, 1_048_576, 16)}],
           "disk-templates": disk_templates, "vcpu-ratio": 4.0, "spindle-ratio": 32.0})
}

/// A node with 16 GiB of memory, of which an instance uses `used` MiB, and about 51 GiB of disk.
fn node(used: i64) -> Value {
    json!({"group": "u", "offline": false, "drained": false, "vm_capable": true,
           "ndparams": {"spindle_count": 1, "exclusive_storage": false}, "tags": [],
           "total_memory": 16384, "reserved_memory": 0, "free_memory": 16384 - used, "total_disk": 52_200,
           "free_disk": 51_200, "total_cpus": 8, "reserved_cpus": 0, "free_spindles": 0, "total_spindles": 0})
}

fn instance(nodes: &[&str], memory: i64, template: &str) -> Value {
    json!({"nodes": nodes, "memory": memory, "vcpus": 1, "disk_space_total": 1024, "disks": [{"size": 1024}],
           "disk_template": template, "tags": [], "spindle_use": 1, "nics": [], "admin_state": "up"})
}

fn message(nodes: &Value, instances: &Value, request: &Value) -> Value {
    json!({"version": 2, "cluster_name": "c", "cluster_tags": [], "enabled_hypervisors": ["fake"],
           "nodegroups": {"u": {"name": "g", "alloc_policy": "preferred", "networks": [], "tags": [],
                                "ipolicy": policy(&["plain", "drbd"])}},
           "nodes": nodes, "instances": instances, "request": request})
}

fn wanted(memory: i64, disk: i64, template: &str) -> Value {
    let nodes = if template == "drbd" { 2 } else { 1 };
    json!({"type": "allocate", "name": "new", "required_nodes": nodes, "memory": memory, "vcpus": 1,
           "disk_space_total": disk, "disks": [{"size": disk}], "disk_template": template, "tags": [],
           "spindle_use": 1, "nics": []})
}

fn three() -> Value {
    json!({"n1": node(0), "n2": node(0), "n3": node(0)})
}

fn told(message: &Value) -> String {
    let ran = explained(message);
    assert_eq!(ran.status, 0, "{}", ran.err);
    // `--explain` doesn't change the response.
    assert_eq!(ran.out, crate::program::hail(message).out);
    ran.err
}

#[track_caller]
fn says(message: &Value, parts: &[&str]) {
    let told = told(message);
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
}

#[test]
fn the_policys_bound_is_told_once_for_a_group() {
    let none = json!({});
    let small = message(&three(), &none, &wanted(1024, 512, "drbd"));
    says(&small, &["  refused on all nodes: disk 0 has 512 MiB, the policy wants 1024 to 1048576\n"]);
    assert!(!told(&small).contains("n1"));
    let template = message(&three(), &none, &wanted(1024, 2048, "rbd"));
    says(&template, &["the policy allows no rbd, only plain and drbd"]);
}

#[test]
fn what_decides_for_a_whole_group_is_told() {
    let none = json!({});
    let mut nodes = three();
    nodes["n2"]["drained"] = true.into();
    nodes["n3"]["offline"] = true.into();
    let drained = message(&nodes, &none, &wanted(1024, 2048, "drbd"));
    says(&drained, &["  n2 is drained, n3 is offline\n", "Not enough online nodes"]);
    let empty = message(&none, &none, &wanted(1024, 2048, "plain"));
    assert_eq!(told(&empty), "Instance new:\n  no group has nodes\n");
    let mut unallocable = message(&three(), &none, &wanted(1024, 2048, "plain"));
    unallocable["nodegroups"]["u"]["alloc_policy"] = "unallocable".into();
    assert_eq!(told(&unallocable), "Instance new:\nGroup g: unallocable, never chosen without group_name\n");
    let mut network = message(&three(), &none, &wanted(1024, 2048, "plain"));
    network["request"]["nics"] = json!([{"network": "net-9"}]);
    assert_eq!(told(&network), "Instance new:\nGroup g: left out, not connected to network net-9\n");
    let mut restricted = message(&three(), &none, &wanted(1024, 2048, "plain"));
    restricted["request"]["restrict-to-nodes"] = json!(["n3"]);
    says(&restricted, &["n1 is not among the nodes that the request allows", "  n3: score "]);
    restricted["request"]["restrict-to-nodes"] = json!(["n3", "m2"]);
    says(&restricted, &["  there is no node m2; did you mean n2?\n", "  n3: score "]);
}

#[test]
fn figures_show_the_gap() {
    let instances = json!({"i": instance(&["n1"], 12288, "plain")});
    let nodes = json!({"n1": node(12288)});
    // n1 has exactly this much memory left.
    let exactly = message(&nodes, &instances, &wanted(4096, 1024, "plain"));
    says(&exactly, &["n1: refused: more than 4096 MiB of memory wanted, 4096 MiB are not allocated"]);
}

#[test]
fn the_capacity_check_names_node_and_instance() {
    // The larger instance fits on the other node until the new instance is there.
    let instances = json!({"large": instance(&["n1"], 10000, "plain")});
    let nodes = json!({"n1": node(10000), "n2": node(0)});
    let refused = message(&nodes, &instances, &wanted(8000, 1024, "plain"));
    says(
        &refused,
        &["  n2: refused: n1 could not be emptied afterwards: there is no place for large (FailN1)"],
    );
}

#[test]
fn every_request_type_is_explained() {
    let instances = json!({
        "web": instance(&["n1", "n2"], 1024, "drbd"),
        "local": instance(&["n1"], 1024, "plain"),
        "shared": instance(&["n1"], 10000, "rbd"),
    });
    let nodes = json!({"n1": node(12048), "n2": node(0), "n3": node(0)});
    let ask = |request: Value| message(&nodes, &instances, &request);
    let relocate =
        ask(json!({"type": "relocate", "name": "web", "required_nodes": 1, "relocate_from": ["n2"],
                              "disk_space_total": 1024}));
    says(
        &relocate,
        &["Instance web (drbd, n1:n2):\n", "n1 is its primary node, n2 is being evacuated", "  n3: possible"],
    );
    let all = ask(
        json!({"type": "node-evacuate", "instances": ["web", "local", "shared"], "evac_mode": "primary-only"}),
    );
    says(
        &all,
        &[
            "Instance web (drbd, n1:n2):\n  n2: takes it over\n",
            "Instance local (plain, n1):\n  stays: its data is on one node only (gnt-instance modify -t drbd makes a \
             mirror)\n",
            "Instance shared (rbd, n1):\n",
            "  n3: possible\n",
        ],
    );
    let both = ask(json!({"type": "node-evacuate", "instances": ["web"], "evac_mode": "all"}));
    says(&both, &["stays: two other nodes are needed"]);
    let batch = ask(json!({"type": "multi-allocate", "instances": [
        {"name": "a", "required_nodes": 1, "memory": 1024, "vcpus": 1, "disk_space_total": 1024,
         "disks": [{"size": 1024}], "disk_template": "plain", "tags": [], "spindle_use": 1, "nics": []},
        {"name": "b", "required_nodes": 1, "memory": 99999, "vcpus": 1, "disk_space_total": 1024,
         "disks": [{"size": 1024}], "disk_template": "plain", "tags": [], "spindle_use": 1, "nics": []}]}));
    says(
        &batch,
        &["Instance a:\n", "Instance b:\n", "the memory is 99999 MiB, the policy wants 128 to 32768"],
    );
    let mut groups = ask(json!({"type": "change-group", "instances": ["web"], "target_groups": []}));
    groups["nodegroups"]["v"] = groups["nodegroups"]["u"].clone();
    groups["nodegroups"]["v"]["name"] = "h".into();
    groups["nodes"]["m1"] = node(0);
    groups["nodes"]["m1"]["group"] = "v".into();
    says(&groups, &["Instance web:\n", "Group h: ", "Not enough online nodes"]);
}

#[test]
fn requests_that_try_no_move_are_explained() {
    let instances = json!({
        "web": instance(&["n1", "n2"], 1024, "drbd"),
        "local": instance(&["n1"], 1024, "plain"),
    });
    let ask = |request: Value| message(&three(), &instances, &request);
    let relocate = |name: &str, count: i64, from: &str| {
        told(&ask(json!({"type": "relocate", "name": name, "required_nodes": count, "relocate_from": [from],
                         "disk_space_total": 1024})))
    };
    assert_eq!(
        relocate("local", 1, "n1"),
        "Instance local (plain, n1):\n  stays: its data is on one node only (gnt-instance modify -t drbd makes a \
         mirror)\n"
    );
    assert_eq!(
        relocate("web", 1, "n1"),
        "Instance web (drbd, n1:n2):\n  stays: only its secondary node can be exchanged, n2\n"
    );
    assert_eq!(relocate("web", 2, "n2"), "Only one node of an instance can be exchanged, not 2\n");
    let secondary = ask(json!({"type": "allocate-secondary", "name": "web"}));
    assert_eq!(told(&secondary), "Instance web (drbd, n1:n2):\n  stays: it has a secondary node, n2\n");
    let change = |targets: Value| {
        let mut change = ask(json!({"type": "change-group", "instances": ["web"], "target_groups": targets}));
        if targets != json!([]) {
            change["nodegroups"]["v"] = change["nodegroups"]["u"].clone();
            change["nodegroups"]["v"]["name"] = "h".into();
        }
        told(&change)
    };
    assert_eq!(
        change(json!([])),
        "Instance web (drbd, n1:n2):\n  stays: there is no group to go to but those of the instances of the request\n"
    );
    assert_eq!(
        change(json!(["v"])),
        "Instance web (drbd, n1:n2):\n  stays: no group that it may go to has nodes\n"
    );
    let group = |name: &str| {
        let mut wanted = ask(wanted(1024, 2048, "plain"));
        wanted["nodegroups"]["v"] = wanted["nodegroups"]["u"].clone();
        wanted["nodegroups"]["v"]["name"] = "h".into();
        wanted["request"]["group_name"] = name.into();
        told(&wanted)
    };
    assert_eq!(group("h"), "Instance new:\n  group h has no nodes\n");
    assert_eq!(group("k"), "Instance new:\n  there is no group k; did you mean g or h?\n");
}

#[test]
fn balancing_says_why_nothing_moves() {
    let cluster = |template: &str, secondary: &str| {
        format!(
            "g|u|preferred||\n\n\
             n1|65536|2048|47104|1000000|900000|16|M|u|4||N|0|1|1.0\n\
             n2|65536|2048|63488|1000000|1000000|16|N|u|4||N|0|1|1.0\n\n\
             p1|8192|50000|4|running|Y|n1|{secondary}|{template}||1|-|N\n\
             p2|8192|50000|4|running|Y|n1|{secondary}|{template}||1|-|N\n\n\n"
        )
    };
    let ran = hbal(&cluster("plain", ""), &["--explain"]);
    let why = "No solution found\n  2 instances cannot be moved: plain disks are on one node only (gnt-instance modify -t \
               drbd makes a mirror)\n";
    assert!(ran.out.contains(why), "{}", ran.out);
    let limited = hbal(&cluster("drbd", "n2"), &["--explain", "-g100", "--min-gain-limit=1000"]);
    assert!(
        limited.out.contains("would gain ") && limited.out.contains("less than --min-gain 100"),
        "{}",
        limited.out
    );
    for options in [&["-l0"][..], &["-l0", "--search=deep"], &["-l0", "--no-disk-moves"], &["-l0", "--json"]]
    {
        let ran = hbal(&cluster("drbd", "n2"), &[&["--explain"][..], options].concat());
        let (_, best) =
            ran.out.split_once("would gain ").unwrap_or_else(|| panic!("{options:?}: {}", ran.out));
        let (gain, rest) = best.split_at(best.find(['\n', '"', ',']).expect("the end of the sentence"));
        assert!(gain.parse::<f64>().is_ok_and(|gain| gain > 0.01), "{options:?}: {gain}");
        assert!(!rest.contains("--min-gain"), "{options:?}: {rest}");
        assert!(rest.contains("--max-length=0 allows no move"), "{options:?}: {rest}");
    }
    let close = hbal(&cluster("drbd", "n2"), &["--explain", "-eNaN"]);
    let why = "the score is not more than --min-score NaN above the best possible";
    assert!(close.out.contains(why) && !close.out.contains("--min-gain"), "{}", close.out);
    let ran = hbal(&cluster("plain", ""), &["--explain", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("a document");
    assert_eq!(document["reasons"].as_array().map(Vec::len), Some(1), "{document}");
    // Without the option, the output is the reference's.
    assert!(hbal(&cluster("plain", ""), &[]).out.ends_with("No solution found\nSolution length=0\n"));
}
