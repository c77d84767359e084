//! Seed 002: the protocol's example messages and their answers.

use htools::io::{FAILURE, SUCCESS};
use serde_json::{Value, json};

use crate::program::{answer, hail};

/// The cluster in the examples. Two of its instances' nodes are not listed, because the document misspells
/// their names.
fn message(request: &Value) -> Value {
    let disk = |size: i64| json!({"mode": "w", "size": size});
    let nic = |mac: &str| json!({"ip": null, "mac": mac, "bridge": "xen-br0"});
    let node = |octet: u8, tags: Value, total_disk: i64, free_disk: i64| {
        json!({"total_disk": total_disk, "primary_ip": format!("198.51.100.{octet}"),
            "secondary_ip": format!("192.0.2.{octet}"), "tags": tags, "free_memory": 3505,
            "free_disk": free_disk, "total_memory": 4095})
    };
    json!({
        "cluster_tags": [],
        "request": request,
        "cluster_name": "cluster1.example.com",
        "instances": {
            "instance1.example.com": {"tags": [], "should_run": false, "disks": [disk(64), disk(512)],
                "nics": [nic("aa:00:00:00:60:bf")], "vcpus": 1, "disk_template": "plain", "memory": 128,
                "nodes": ["nodee1.com"], "os": "debootstrap+default"},
            "instance2.example.com": {"tags": [], "should_run": false, "disks": [disk(512), disk(256)],
                "nics": [nic("aa:00:00:55:f8:38")], "vcpus": 1, "disk_template": "drbd", "memory": 512,
                "nodes": ["node2.example.com", "node3.example.com"], "os": "debootstrap+default"},
        },
        "version": 1,
        "nodes": {
            "node1.example.com": node(1, json!([]), 858_276, 856_740),
            "node2.example.com": node(2, json!(["test"]), 858_240, 848_320),
            "node3.example.com.com": node(3, json!([]), 572_184, 570_648),
        },
    })
}

fn allocation(template: &str, required_nodes: usize, memory: i64) -> Value {
    json!({"required_nodes": required_nodes, "name": "instance3.example.com",
        "tags": ["type:test", "owner:foo"], "type": "allocate",
        "disks": [{"mode": "w", "size": 1024}, {"mode": "w", "size": 2048}],
        "nics": [{"ip": null, "mac": "00:11:22:33:44:55", "bridge": null}], "vcpus": 1,
        "disk_template": template, "memory": memory, "disk_space_total": 3328, "os": "debootstrap+default"})
}

/// The answer, with a check that it has exactly the protocol's three keys.
fn checked(request: &Value) -> Value {
    let answer = answer(&message(request));
    let mut keys: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["info", "result", "success"]);
    assert!(answer["info"].is_string());
    answer
}

/// Names in the result of a successful answer.
fn granted(request: &Value) -> Vec<String> {
    let answer = checked(request);
    assert_eq!(answer["success"], json!(true), "{answer}");
    let result = answer["result"].as_array().expect("a list");
    result.iter().map(|n| n.as_str().expect("a name").to_owned()).collect()
}

fn refused(request: &Value) {
    let answer = checked(request);
    assert_eq!(answer["success"], json!(false), "{answer}");
    // The protocol requires an empty list even if the algorithm fails.
    assert_eq!(answer["result"], json!([]), "{answer}");
}

#[test]
fn the_result_of_an_allocation_has_as_many_nodes_as_required() {
    for (template, required) in [("drbd", 2), ("plain", 1)] {
        let nodes = granted(&allocation(template, required, 2048));
        assert_eq!(nodes.len(), required);
        let listed = ["node1.example.com", "node2.example.com", "node3.example.com.com"];
        assert!(nodes.iter().all(|n| listed.contains(&n.as_str())), "{nodes:?}");
        assert!(nodes.first() != nodes.get(1));
    }
}

#[test]
fn an_allocation_that_fits_nowhere_fails_with_an_empty_list() {
    refused(&allocation("plain", 1, 3505 + 4096));
    refused(&allocation("drbd", 2, 3505 + 4096));
}

#[test]
fn no_allocations_are_made_on_drained_or_offline_nodes() {
    for flag in ["drained", "offline"] {
        let mut message = message(&allocation("drbd", 2, 2048));
        // Such nodes have no run-time data.
        message["nodes"]["node1.example.com"] = json!({"tags": [], flag: true});
        let answer = answer(&message);
        assert_eq!(answer["success"], json!(true), "{answer}");
        assert!(!answer["result"].to_string().contains("node1"), "{answer}");
        message["nodes"]["node2.example.com"] = json!({"tags": [], flag: true});
        let answer = crate::program::answer(&message);
        assert_eq!((&answer["success"], &answer["result"]), (&json!(false), &json!([])), "{answer}");
    }
}

#[test]
fn a_relocation_names_one_new_node() {
    let request = json!({"relocate_from": ["node3.example.com"], "required_nodes": 1, "type": "relocate",
        "name": "instance2.example.com", "disk_space_total": 832});
    let nodes = granted(&request);
    assert_eq!(nodes.len(), 1);
    assert!(["node1.example.com", "node3.example.com.com"].contains(&nodes[0].as_str()), "{nodes:?}");
}

#[test]
fn a_relocation_of_an_instance_without_mirror_fails_with_an_empty_list() {
    refused(&json!({"relocate_from": ["nodee1.com"], "required_nodes": 1, "type": "relocate",
        "name": "instance1.example.com", "disk_space_total": 576}));
}

#[test]
fn an_evacuation_lists_instances_with_their_new_secondaries() {
    // The protocol's example uses the key `evac_nodes`, its text `nodes`.
    for key in ["evac_nodes", "nodes"] {
        let answer = checked(&json!({key: ["node3.example.com"], "type": "multi-evacuate"}));
        assert_eq!(answer["success"], json!(true), "{answer}");
        let result = answer["result"].as_array().expect("a list");
        assert_eq!(result.len(), 1, "{answer}");
        assert_eq!(result[0][0], json!("instance2.example.com"));
        let new = result[0][1].as_str().expect("a name");
        assert!(["node1.example.com", "node3.example.com.com"].contains(&new), "{new}");
        assert_eq!(result[0].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn an_evacuation_of_a_node_without_secondaries_moves_nothing() {
    for key in ["evac_nodes", "nodes"] {
        let answer = checked(&json!({key: ["node2"], "type": "multi-evacuate"}));
        assert_eq!((&answer["success"], &answer["result"]), (&json!(true), &json!([])), "{answer}");
    }
}

#[test]
fn an_evacuation_that_is_impossible_fails_with_an_empty_list() {
    refused(&json!({"evac_nodes": ["node3.example.com", "node1", "node3.example.com.com"],
        "type": "multi-evacuate"}));
}

#[test]
fn a_message_that_cannot_be_read_is_an_error_without_an_answer() {
    for request in [json!({"type": "allocate"}), json!({"type": "nonsense"}), json!({})] {
        let ran = hail(&message(&request));
        assert_eq!((ran.status, ran.out.as_str()), (FAILURE, ""), "{request}");
        assert!(!ran.err.is_empty());
    }
    assert_eq!(hail(&message(&allocation("drbd", 2, 2048))).status, SUCCESS);
}
