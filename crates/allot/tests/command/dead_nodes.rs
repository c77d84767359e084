//! Instances on dead nodes: nothing is copied from these nodes, and lost instances aren't reported as saved.

use serde_json::Value;

use crate::shell::{allot, file};

const POLICY: &str = "\
|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|drbd,plain|4.0|32.0
";

/// Nodes n1, n2, ... with 32 GiB of memory. `offline` has the numbers of the offline nodes.
fn cluster(nodes: usize, offline: &[usize], instances: &str) -> String {
    let mut text = "g|u1|preferred||\n\n".to_owned();
    for number in 1..=nodes {
        let role = match number {
            1 => "M",
            n if offline.contains(&n) => "Y",
            _ => "N",
        };
        text.extend([format!("n{number}|32768|1024|31744|409600|409600|16|{role}|u1|1||N|0|1|1.0\n")]);
    }
    file("cluster", &format!("{text}\n{instances}\n\n{POLICY}"))
}

fn json(arguments: &[&str], status: i32) -> Value {
    let ran = allot(&[arguments, &["--json"]].concat());
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("the answer is JSON")
}

const BOTH: &str = "both its nodes are offline, nothing can read its data";

#[test]
fn an_instance_of_two_dead_nodes_is_not_saved_by_any_command() {
    let instances = "dead|1024|10240|1|ERROR_nodeoffline|Y|n3|n4|drbd||1|-|N\n";
    let path = cluster(4, &[3, 4], instances);
    for question in [
        &["drain", "-t", &path, "n3", "n4"][..],
        &["drain", "-t", &path, "n3"],
        &["drain", "-t", &path, "n4"],
        &["drain", "-t", &path, "n3", "--reboot"],
        &["drain", "-t", &path, "n3", "--no-disk-moves"],
        &["drain", "-t", &path, "n3", "--ignore-soft-errors"],
    ] {
        let document = json(question, 1);
        assert_eq!(document["stays"][0]["reason"], BOTH, "{document}");
        assert_eq!(document["steps"], Value::Array(Vec::new()), "{document}");
    }
    // The same nodes, marked offline by the command line.
    let path = cluster(4, &[], &instances.replace("ERROR_nodeoffline", "running"));
    assert_eq!(json(&["drain", "-t", &path, "n3", "n4", "-On3", "-On4"], 1)["stays"][0]["reason"], BOTH);
    assert_eq!(json(&["drain", "-t", &path, "n3", "n4"], 0)["possible"], true);
    let path = cluster(4, &[3, 4], instances);
    let ran = allot(&["hbal", "-t", &path, "--repair-only"]);
    assert!(ran.out.contains(BOTH) && !ran.out.contains(" a="), "{}", ran.out);
}

#[test]
fn with_one_dead_node_the_other_copy_is_used() {
    let path = cluster(5, &[3], "half|1024|10240|1|ERROR_nodeoffline|Y|n3|n4|drbd||1|-|N\n");
    for nodes in [&["n3"][..], &["n4"], &["n3", "n4"]] {
        let document = json(&[&["drain", "-t", &path], nodes].concat(), 0);
        let first = &document["steps"][0];
        assert!(first["action"].as_str().is_some_and(|action| action.starts_with('f')), "{document}");
        // Migration from a dead node is impossible.
        let command = first["commands"][0].as_str().expect("a command");
        assert!(command.starts_with("gnt-instance failover "), "{document}");
    }
    // The mirror is lost instead of the primary.
    let path = cluster(5, &[4], "half|1024|10240|1|running|Y|n3|n4|drbd||1|-|N\n");
    let document = json(&["drain", "-t", &path, "n3", "n4"], 0);
    let action = document["steps"][0]["action"].as_str().expect("an action");
    assert!(action.starts_with("r:"), "{document}");
}

#[test]
fn balancing_does_not_revive_what_was_lost() {
    let instances: String = (0..4)
        .map(|n| format!("l{n}|7500|10240|1|running|Y|n1||plain||1|-|N\n"))
        .chain(["x|8000|10240|1|running|Y|n3|n1|drbd||1|-|N\n".to_owned()])
        .collect();
    let path = cluster(4, &[], &instances);
    let document = json(&["whatif", "-t", &path, "--lose", "n3", "--rebalance"], 0);
    assert_eq!(document["rescue"]["lost"][0]["instance"], "x", "{document}");
    let moves = document["moves"].as_array().expect("a list");
    assert!(moves.iter().all(|step| step["instance"] != "x"), "{document}");
    assert_eq!(document["after"]["instances"], 4);
}

#[test]
fn a_lost_mirror_of_an_instance_that_is_down_is_told_as_it_is() {
    let instances = "a|1024|10240|1|running|Y|n3|n1|drbd||1|-|N\nd|1024|10240|1|running|Y|n3||rbd||1|-|N\n";
    let path = cluster(3, &[3], instances);
    let ran = allot(&["whatif", "-t", &path, "--lose", "n1", "--add-nodes", "2,400g,32g,16", "--rebalance"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains(&format!("a: {BOTH}")), "{}", ran.out);
    assert!(!ran.out.contains("  a n3:n1"), "{}", ran.out);
}

#[test]
fn figures_of_a_refusal_show_the_gap() {
    let instances = "\
big|16384|10240|1|running|Y|n1|n2|drbd||1|-|N
l2|16384|10240|1|running|Y|n2||plain||1|-|N
l3|15360|10240|1|running|Y|n3||plain||1|-|N
";
    // n3 has exactly as much free memory as the instance needs.
    let path = cluster(3, &[], instances);
    let document = json(&["drain", "-t", &path, "n1"], 1);
    let reason = document["stays"][0]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("it needs more than 16384 MiB of memory, the most available is 16384"),
        "{reason}"
    );
    assert_eq!(document["stays"][0]["remedy"], "make room in its group, or add a node to it");
    let ran = allot(&["drain", "-t", &path, "n1"]);
    assert!(ran.out.contains(" (make room in its group, or add a node to it)\n"), "{}", ran.out);
}

#[test]
fn data_on_a_dead_node_has_no_remedy_but_the_node() {
    let path = cluster(4, &[3], "log|1024|10240|1|ERROR_nodeoffline|Y|n3||plain||1|-|N\n");
    for purpose in [&[][..], &["--reboot"]] {
        let document = json(&[&["drain", "-t", &path, "n3"], purpose].concat(), 1);
        assert_eq!(document["stays"][0]["remedy"], "bring the node back", "{document}");
    }
}

#[test]
fn a_node_that_is_only_drained_can_be_copied_from() {
    let request = crate::shell::request_with("drbd", crate::shell::ALLOCATE);
    let mut message: Value = serde_json::from_str(&request).expect("JSON");
    let free = message["nodes"]["n2"].clone();
    message["instances"]["i1"]["nodes"] = serde_json::json!(["n1", "n2"]);
    for name in ["n3", "n4"] {
        message["nodes"][name] = free.clone();
    }
    message["nodes"]["n2"]["offline"] = true.into();
    let drained = |message: &Value, status: i32| {
        json(&["drain", "-I", &file("request", &message.to_string()), "n1", "n2"], status)
    };
    message["nodes"]["n1"]["drained"] = true.into();
    assert_eq!(drained(&message, 0)["possible"], true);
    message["nodes"]["n1"]["offline"] = true.into();
    assert_eq!(drained(&message, 1)["stays"][0]["reason"], BOTH);
}
