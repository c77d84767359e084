//! `hbal --repair-only`: ends violations, and says which it cannot end.

use htools::io::SUCCESS;
use serde_json::{Value, json};

use crate::failure_tags::text;
use crate::program::{Ran, hbal, moves};

const NODES: [(&str, &str); 4] = [("n1", ""), ("n2", ""), ("n3", ""), ("n4", "")];

fn repair(cluster: &str, options: &[&str]) -> Ran {
    let ran = hbal(cluster, &[&["--repair-only"], options].concat());
    assert_eq!(ran.status, SUCCESS, "{}", ran.err);
    ran
}

/// The lines that list what remains.
fn remaining(ran: &Ran) -> Vec<&str> {
    let lines = ran.out.lines().skip_while(|line| *line != "Remaining violations:").skip(1);
    lines.map(str::trim).collect()
}

#[test]
fn a_healthy_cluster_is_left_alone_however_unbalanced() {
    let cluster = text(&[], &NODES, &[("i1", "n1", "", ""), ("i2", "n1", "", ""), ("i3", "n1", "", "")]);
    assert!(!moves(&hbal(&cluster, &[])).is_empty());
    let ran = repair(&cluster, &[]);
    assert!(moves(&ran).is_empty());
    assert!(ran.out.ends_with("No violations found.\nNothing to do, exiting\n"), "{}", ran.out);
}

#[test]
fn what_is_on_an_offline_node_leaves_it_with_one_move_and_nothing_else_moves() {
    let cluster = text(
        &[],
        &NODES,
        &[("i1", "n1", "n2", ""), ("i2", "n2", "n1", ""), ("i3", "n3", "n4", ""), ("i4", "n3", "n4", "")],
    );
    let ran = repair(&cluster, &["-O", "n1"]);
    let moved = moves(&ran);
    assert_eq!(moved.len(), 2, "{}", ran.out);
    for (line, start) in moved.iter().zip(["1. i1 n1:n2 => ", "2. i2 n2:n1 => "]) {
        let to = line.strip_prefix(start).and_then(|rest| rest.split(' ').next());
        assert!(to.is_some_and(|to| !to.contains("n1")), "{line}");
    }
    assert!(remaining(&ran).is_empty());
}

#[test]
fn instances_with_the_same_exclusion_tag_part_without_copying_disks() {
    let instances = [("i1", "n1", "n2", "svc:a"), ("i2", "n1", "n3", "svc:a"), ("i3", "n3", "n1", "")];
    let ran = repair(&text(&["htools:iextags:svc"], &NODES, &instances), &[]);
    assert_eq!(moves(&ran).len(), 1, "{}", ran.out);
    assert!(moves(&ran)[0].ends_with("a=f"), "{}", ran.out);
}

#[test]
fn mirrors_leave_the_location_of_their_primaries() {
    let nodes = [("n1", "rack:a"), ("n2", "rack:a"), ("n3", "rack:b")];
    let ran = repair(&text(&["htools:nlocation:rack"], &nodes, &[("i1", "n1", "n2", "")]), &[]);
    assert_eq!(moves(&ran).len(), 1, "{}", ran.out);
    assert!(moves(&ran)[0].contains("n3"), "{}", ran.out);
}

#[test]
fn a_node_that_fails_n1_is_relieved() {
    // With its own seven instances, n2 has no MiB more than the nine of n1 need.
    let names: Vec<String> = (0..16).map(|i| format!("i{i}")).collect();
    let mut instances: Vec<(&str, &str, &str, &str)> =
        names[..9].iter().map(|name| (name.as_str(), "n1", "n2", "")).collect();
    instances.extend(names[9..].iter().map(|name| (name.as_str(), "n2", "n3", "")));
    let ran = repair(&text(&[], &NODES, &instances), &["--n1-initial=recorded"]);
    assert_eq!(moves(&ran).len(), 1, "{}", ran.out);
    assert!(remaining(&ran).is_empty(), "{}", ran.out);
}

#[test]
fn what_cannot_be_repaired_is_listed_with_the_reason() {
    let cluster =
        text(&["htools:iextags:svc"], &NODES, &[("i1", "n1", "n2", "svc:a,svc:a"), ("i2", "n3", "", "")]);
    let ran = repair(&cluster, &["-O", "n3", "--exclude-instances=i2"]);
    assert_eq!(
        remaining(&ran),
        [
            "instance i2 has its primary on offline node n3: no instance concerned may be moved",
            "node n1 has several primaries with exclusion tag svc:a: the moves that are possible end no violation \
         without another",
        ]
    );
    let ran = repair(&cluster, &["-O", "n3", "-l", "0"]);
    assert!(remaining(&ran)[0].ends_with("the limit of moves is reached"), "{}", ran.out);
    let ran = repair(&cluster, &["-O", "n3", "--no-instance-moves"]);
    assert!(remaining(&ran)[0].ends_with("leave no move to try"), "{}", ran.out);
}

#[test]
fn the_document_lists_what_remains() {
    let cluster = text(&[], &NODES, &[("i1", "n1", "n2", ""), ("i2", "n1", "", "")]);
    let ran = repair(&cluster, &["-O", "n1", "--exclude-instances=i2", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["moves"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        document["remaining_violations"],
        json!([{"violation": "instance i2 has its primary on offline node n1",
            "reason": "no instance concerned may be moved"}])
    );
}
