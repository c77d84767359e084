//! `hcheck` in cases for which the reference has no answer to compare with.

use crate::program::hcheck;

/// An instance with its secondary in another group.
const SPLIT: &str = "\
g1|u1|preferred||
g2|u2|preferred||

n1|16384|0|15360|100000|98976|8|M|u1|1||N|0|0|1.0
n2|16384|0|16384|100000|98976|8|N|u2|1||N|0|0|1.0

i1|1024|1024|1|running|Y|n1|n2|drbd||1|-|N


";

#[test]
fn a_node_whose_instance_has_its_mirror_in_another_group_cannot_be_emptied() {
    // The reference fails here with a runtime error of its language.
    let ran = hcheck(SPLIT, &["--machine-readable"]);
    let value = |key: &str| ran.out.lines().find_map(|line| line.strip_prefix(key));
    assert_eq!(value("HCHECK_INIT_GROUP_0_GN1_FAIL="), Some("1"));
    assert_eq!(value("HCHECK_INIT_GROUP_1_GN1_FAIL="), Some("0"));
    assert_eq!((value("HCHECK_OK="), ran.status), (Some("1"), 1));
}

#[test]
fn the_nodes_that_fail_are_named_on_request() {
    let ran = hcheck(SPLIT, &["--json", "-O", "n2", "--no-simulation"]);
    let document: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((ran.status, &document["healthy"]), (0, &false.into()));
    let [first, second] = [0, 1].map(|at| &document["groups"][at]);
    assert_eq!((&first["group"], &first["uuid"]), (&"g1".into(), &"u1".into()));
    assert_eq!(first["initial"]["not_evacuable"], serde_json::json!(["n1"]));
    assert_eq!(second["initial"]["offline_nodes"], serde_json::json!(["n2"]));
    assert_eq!(first["initial"]["failing_n1"], serde_json::json!([]));
    assert!(first.get("final").is_none(), "{document}");
    let balanced: serde_json::Value = serde_json::from_str(&hcheck(SPLIT, &["--json"]).out).expect("JSON");
    assert!(balanced["groups"][1]["final"]["score"].is_number(), "{balanced}");
}

#[test]
fn without_capacity_checks_that_is_no_fault() {
    let ran = hcheck(SPLIT, &["--no-capacity-checks"]);
    assert!(ran.out.starts_with("No need to rebalance cluster, no problems found.\n"), "{}", ran.out);
    assert_eq!(ran.status, 0);
}
