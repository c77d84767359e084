//! Seed 001: nodes with a common cause of failure, and instances of the same service.

use std::fmt::Write as _;

use htools::io::SUCCESS;
use serde_json::{Map, Value, json};

use crate::program::{chosen, hbal, moves};

/// A request for a DRBD or plain instance on equal nodes with these tags.
pub fn request(cluster_tags: &[&str], nodes: &[(&str, &[&str])], template: &str, tags: &[&str]) -> Value {
    let spec = |memory: i64, most: i64| {
        json!({"memory-size": memory, "cpu-count": most, "disk-size": memory, "disk-count": most,
            "nic-count": most, "spindle-use": most})
    };
    let policy = json!({"std": spec(128, 1), "minmax": [{"min": spec(1, 1), "max": spec(100_000, 16)}],
        "disk-templates": ["drbd", "plain"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0});
    let records: Map<String, Value> = nodes
        .iter()
        .map(|(name, tags)| {
            let node = json!({"group": "u", "offline": false, "drained": false, "vm_capable": true,
                "ndparams": {"spindle_count": 1, "exclusive_storage": false}, "tags": tags,
                "total_memory": 16384, "reserved_memory": 0, "free_memory": 16384, "total_disk": 100_000,
                "free_disk": 100_000, "total_cpus": 8, "reserved_cpus": 0, "free_spindles": 0});
            ((*name).to_owned(), node)
        })
        .collect();
    let required = if template == "drbd" { 2 } else { 1 };
    json!({"version": 2, "cluster_name": "c", "cluster_tags": cluster_tags, "enabled_hypervisors": ["fake"],
        "nodegroups": {"u": {"name": "g", "alloc_policy": "preferred", "networks": [], "tags": [],
            "ipolicy": policy}},
        "nodes": records, "instances": {},
        "request": {"type": "allocate", "name": "new", "required_nodes": required, "memory": 1024, "vcpus": 1,
            "disk_space_total": 1024, "disks": [{"size": 1024}], "disk_template": template, "tags": tags,
            "spindle_use": 1, "nics": []}})
}

/// Adds an existing instance. Two nodes make it a DRBD instance.
pub fn with_instance(mut message: Value, name: &str, nodes: &[&str], tags: &[&str]) -> Value {
    let template = if nodes.len() == 2 { "drbd" } else { "plain" };
    message["instances"][name] = json!({"nodes": nodes, "memory": 1024, "vcpus": 1, "disk_space_total": 1024,
        "disks": [{"size": 1024}], "disk_template": template, "tags": tags, "spindle_use": 1, "nics": [],
        "admin_state": "up"});
    for (position, node) in nodes.iter().enumerate() {
        let record = &mut message["nodes"][*node];
        record["free_disk"] = json!(record["free_disk"].as_i64().unwrap_or(0) - 1024);
        if position == 0 {
            record["free_memory"] = json!(record["free_memory"].as_i64().unwrap_or(0) - 1024);
        }
    }
    message
}

const RACKS: [(&str, &[&str]); 4] =
    [("n1", &["rack:a"]), ("n2", &["rack:a"]), ("n3", &["rack:b"]), ("n4", &["rack:b"])];

/// A cluster in the text format with equal nodes (name, tags) and instances (name, primary, secondary, tags).
/// Instances with a secondary are DRBD instances.
pub fn text(tags: &[&str], nodes: &[(&str, &str)], instances: &[(&str, &str, &str, &str)]) -> String {
    let used = |name: &str| instances.iter().filter(|i| i.1 == name).count() as i64;
    let mirrored = || instances.iter().filter(|i| !i.2.is_empty());
    let disks = |name: &str| mirrored().filter(|i| i.1 == name || i.2 == name).count() as i64;
    let mut text = "g|u|preferred||\n\n".to_owned();
    for (name, tags) in nodes {
        let (memory, disk) = (16_384 - 1024 * used(name), 100_000 - 1024 * disks(name));
        let _ = writeln!(text, "{name}|16384|0|{memory}|100000|{disk}|8|N|u|1|{tags}|N|0|0|1.0");
    }
    text.push('\n');
    for (name, primary, secondary, tags) in instances {
        let template = if secondary.is_empty() { "sharedfile" } else { "drbd" };
        let _ = writeln!(text, "{name}|1024|1024|1|running|Y|{primary}|{secondary}|{template}|{tags}|1|-|N");
    }
    text + "\n" + &tags.join("\n") + "\n"
}

const LOCATIONS: &[&str] = &["htools:nlocation:rack"];

#[test]
fn hail_avoids_two_nodes_with_a_common_failure_tag() {
    // The nodes of rack b are busier: balance alone would choose the other two, which share a rack.
    let busy = |message| {
        let message = with_instance(message, "i1", &["n3"], &[]);
        with_instance(message, "i2", &["n4"], &[])
    };
    let racks = |nodes: &[String]| {
        let rack = |name: &String| RACKS.iter().find(|(n, _)| n == name).map(|(_, tags)| tags[0]);
        nodes.iter().filter_map(rack).collect::<Vec<_>>()
    };
    let with = racks(&chosen(&busy(request(LOCATIONS, &RACKS, "drbd", &[]))));
    assert_ne!(with[0], with[1]);
    // Without the cluster tag, the node tags have no effect.
    let without = racks(&chosen(&busy(request(&[], &RACKS, "drbd", &[]))));
    assert_eq!(without, ["rack:a", "rack:a"]);
}

#[test]
fn hail_still_allocates_if_the_failure_tag_cannot_be_avoided() {
    let nodes = chosen(&request(LOCATIONS, &RACKS[..2], "drbd", &[]));
    assert_eq!(nodes.len(), 2);
}

#[test]
fn hbal_separates_primary_and_secondary_with_a_common_failure_tag() {
    let nodes = [("n1", "rack:a"), ("n2", "rack:a"), ("n3", "rack:b"), ("n4", "rack:b")];
    // Perfectly balanced, except for the racks.
    let instances =
        [("i1", "n1", "n2", ""), ("i2", "n2", "n1", ""), ("i3", "n3", "n4", ""), ("i4", "n4", "n3", "")];
    let ran = hbal(&text(LOCATIONS, &nodes, &instances), &["-v", "-v", "-v"]);
    assert_eq!(ran.status, SUCCESS, "{}", ran.err);
    assert!(!moves(&ran).is_empty(), "{}", ran.out);
    let component = |after: &str| {
        let rest = &ran.out[ran.out.find(after).expect("metrics are shown")..];
        let line = rest.lines().find(|l| l.contains("location_score")).expect("the component is shown");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let (before, after) = (component("Initial coefficients"), component("Final coefficients"));
    assert!(before.contains("4.00000000") && after.contains("0.00000000"), "{before}\n{after}");
    let ran = hbal(&text(&[], &nodes, &instances), &[]);
    assert!(moves(&ran).is_empty(), "{}", ran.out);
}

#[test]
fn both_failure_components_weigh_1() {
    let instances = [("i1", "n1", "n2", "svc:x"), ("i2", "n2", "n1", "svc:x")];
    let tags = ["htools:nlocation:rack", "htools:iextags:svc"];
    let nodes = [("n1", "rack:a"), ("n2", "rack:a"), ("n3", "rack:b")];
    let ran = hbal(&text(&tags, &nodes, &instances), &["-v", "-v", "-v"]);
    let initial = ran.out.split("Trying to minimize").next().unwrap_or_default();
    for (name, value) in [("location_score", "2.00000000"), ("location_exclusion_score", "1.00000000")] {
        let words =
            |line: &str| line.split([' ', ':', '=']).filter(|w| !w.is_empty()).map(str::to_owned).collect();
        let lines: Vec<Vec<String>> = initial.lines().map(words).collect();
        let line =
            lines.iter().find(|words| words.iter().any(|w| w == name)).expect("the component is shown");
        assert!(line.iter().any(|w| w == value), "{line:?} lacks {value}");
        assert!(line.iter().any(|w| w.trim_start_matches('x').parse() == Ok(1.0)), "{line:?}: weight");
    }
}

#[test]
fn instances_of_a_service_are_spread_over_locations() {
    let tags = ["htools:nlocation:rack", "htools:iextags:svc"];
    // The service is on n3. The nodes are otherwise equal, so the last one would win, but it's in the same
    // rack.
    let taken = |tags: &[&str]| {
        let mut message =
            with_instance(request(tags, &RACKS, "plain", &["svc:x"]), "i3", &["n3"], &["svc:x"]);
        for (name, node) in [("i1", "n1"), ("i2", "n2"), ("i4", "n4")] {
            message = with_instance(message, name, &[node], &[]);
        }
        chosen(&message)
    };
    assert_eq!(taken(&tags), ["n2"]);
    assert_eq!(taken(&tags[1..]), ["n4"]);
}

#[test]
fn hbal_spreads_a_service_over_locations() {
    let tags = ["htools:nlocation:rack", "htools:iextags:svc"];
    let nodes = [("n1", "rack:a"), ("n2", "rack:a"), ("n3", "rack:b"), ("n4", "rack:b")];
    let instances =
        [("i1", "n1", "", "svc:x"), ("i2", "n2", "", "svc:x"), ("i3", "n3", "", ""), ("i4", "n4", "", "")];
    // Ignores utilization, because counting instances outweighs one violation.
    let ran = hbal(&text(&tags, &nodes, &instances), &["--ignore-dynu"]);
    let moved = moves(&ran);
    assert!(moved.iter().any(|line| line.contains("i1") || line.contains("i2")), "{}", ran.out);
    assert!(moves(&hbal(&text(&tags[1..], &nodes, &instances), &["--ignore-dynu"])).is_empty());
}
