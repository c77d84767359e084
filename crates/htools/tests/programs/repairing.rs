//! `hbal --repair-only`: ends violations, and lists those that remain.

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

/// Lines that list remaining violations.
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
fn what_is_on_an_offline_node_starts_then_leaves_it_and_nothing_else_moves() {
    let cluster = text(
        &[],
        &NODES,
        &[("i1", "n1", "n2", ""), ("i2", "n2", "n1", ""), ("i3", "n3", "n4", ""), ("i4", "n3", "n4", "")],
    );
    let ran = repair(&cluster, &["-O", "n1"]);
    let moved = moves(&ran);
    assert_eq!(moved.len(), 3, "{}", ran.out);
    assert!(moved[0].starts_with("1. i1 n1:n2 => n2:n1 ") && moved[0].ends_with("a=f"), "{}", ran.out);
    for (instance, line) in ["i1", "i2"].iter().zip(&moved[1..]) {
        let to =
            line.split_once(&format!(". {instance} n2:n1 => ")).and_then(|(_, rest)| rest.split(' ').next());
        assert!(to.is_some_and(|to| !to.contains("n1")) && line.contains("a=r:"), "{line}");
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
    // Besides its own seven instances, n2 has exactly the memory that the nine of n1 need, which fails N+1.
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
            "instance i2 has its primary on offline node n3: no instance concerned can be moved: options leave instances out",
            "node n1 has several primaries with exclusion tag svc:a: no possible move helps",
        ]
    );
    let ran = repair(&cluster, &["-O", "n3", "-l", "0"]);
    assert!(remaining(&ran)[0].ends_with("the limit of moves is reached (--max-length)"), "{}", ran.out);
    let ran = repair(&cluster, &["-O", "n3", "--no-instance-moves"]);
    assert!(remaining(&ran)[0].ends_with("leave no move to try"), "{}", ran.out);
}

#[test]
fn refused_moves_have_their_reason_and_remedy() {
    // The other nodes have exactly as much memory as the instance needs, and a node never gives its last MiB.
    let names: Vec<String> = (0..30).map(|i| format!("i{i}")).collect();
    let mut instances: Vec<(&str, &str, &str, &str)> = vec![("down", "n1", "", "")];
    instances.extend(names[..15].iter().map(|name| (name.as_str(), "n2", "", "")));
    instances.extend(names[15..].iter().map(|name| (name.as_str(), "n3", "", "")));
    let ran = repair(&text(&[], &NODES[..3], &instances), &["-O", "n1"]);
    let reason = "instance down has its primary on offline node n1: every move is refused: too little memory";
    let found = remaining(&ran).into_iter().find(|line| line.starts_with(reason));
    let remedy = "; make room in the group, or add a node to it";
    assert!(found.is_some_and(|line| line.ends_with(remedy)), "{}", ran.out);
}

#[test]
fn what_may_not_move_has_its_reason_and_remedy() {
    let cluster =
        text(&["htools:iextags:svc"], &NODES, &[("i1", "n1", "n2", "svc:a"), ("i2", "n1", "", "svc:a")]);
    let plain = |name: &str, cluster: &str| {
        let line = cluster.lines().find(|line| line.starts_with(name)).expect("the instance");
        let plain = line.replace("|sharedfile|", "|plain|").replace("|n2|drbd|", "||plain|");
        cluster.replace(line, &plain)
    };
    let off = |cluster: &str| cluster.replace("|running|Y|", "|running|N|");
    let conflict =
        "node n1 has several primaries with exclusion tag svc:a: no instance concerned can be moved: ";
    let auto_balance = "auto_balance is off (gnt-instance modify -B auto_balance=true)";
    let mirror = "plain disks are on one node only (gnt-instance modify -t drbd makes a mirror)";
    for (cluster, options, wanted) in [
        (off(&cluster), &[][..], format!("{conflict}{auto_balance}")),
        (plain("i2", &off(&cluster)), &[], format!("{conflict}{auto_balance}; {mirror}")),
        (plain("i1", &plain("i2", &cluster)), &[], format!("{conflict}{mirror}")),
        (
            plain("i2", &cluster.replace("svc:a", "")),
            &["-O", "n1", "--no-disk-moves"],
            "instance i2 has its primary on offline node n1: no instance concerned can be moved: plain disks are on \
             one node only (bring that node back)"
                .to_owned(),
        ),
        (
            cluster.replace("svc:a", "").replace("|n2|drbd|", "||drbd|"),
            &["-O", "n1"],
            "instance i1 has its primary on offline node n1: no instance concerned can be moved: there is no \
             secondary node (bring that node back)"
                .to_owned(),
        ),
    ] {
        let ran = repair(&cluster, options);
        assert!(remaining(&ran).contains(&wanted.as_str()), "{wanted:?} is not in:\n{}", ran.out);
    }
}

#[test]
fn the_document_lists_what_remains() {
    let cluster = text(&[], &NODES, &[("i1", "n1", "n2", ""), ("i2", "n1", "", "")]);
    let ran = repair(&cluster, &["-O", "n1", "--exclude-instances=i2", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(document["moves"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        document["remaining_violations"],
        json!([{"violation": "instance i2 has its primary on offline node n1",
            "reason": "no instance concerned can be moved: options leave instances out"}])
    );
}

/// n1 is offline, so i4 and i5 are down. Their secondary, n2, has capacity for one of them after i11 moves to
/// n0.
const DEAD_AND_CROWDED: &str = "\
g0|u0|preferred||

n0.x|65536|1024|37888|1000000|640576|16|M|u0|2||N|0|1|1.0
n1.x|32768|1024|23552|200000|14912|16|Y|u0|8||N|0|1|1.0
n2.x|8192|1024|3072|1000000|876608|16|N|u0|1||N|0|1|1.0
n3.x|16384|1024|14336|400000|204928|8|N|u0|4||N|0|1|1.0

i0.x|1024|5120|1|running|Y|n0.x|n3.x|drbd||1|-|N
i1.x|1024|51328|1|running|Y|n0.x|n3.x|drbd||1|-|N
i2.x|6144|51328|4|running|N|n0.x|n1.x|drbd||1|-|N
i3.x|1024|51328|1|running|Y|n3.x|n1.x|drbd||1|-|N
i4.x|4096|10368|1|ERROR_nodeoffline|Y|n1.x|n2.x|drbd||2|-|N
i5.x|4096|10368|1|ERROR_nodeoffline|Y|n1.x|n2.x|drbd||1|-|N
i6.x|2048|51328|1|running|Y|n0.x|n1.x|drbd||2|-|N
i7.x|1024|5120|1|running|Y|n0.x|n3.x|drbd||2|-|N
i8.x|1024|20608|4|running|Y|n0.x|n3.x|drbd||1|-|N
i9.x|512|10368|1|running|Y|n0.x|n1.x|drbd||1|-|N
i10.x|1024|5120|2|running|Y|n0.x|n3.x|drbd||1|-|N
i11.x|4096|51328|1|running|Y|n2.x|n0.x|drbd||1|-|N
i12.x|512|5120|1|running|Y|n0.x|n3.x|drbd||1|-|N
i13.x|6144|51328|1|running|Y|n0.x|n2.x|drbd||2|-|N
i14.x|6144|51328|1|running|Y|n0.x|n3.x|drbd||2|-|N


";

#[test]
fn what_is_down_starts_before_copies_even_where_others_make_room_first() {
    let ran = hbal(DEAD_AND_CROWDED, &["--repair-only", "--n1-initial=recorded"]);
    let moves = moves(&ran);
    let position = |instance: &str| moves.iter().position(|line| line.contains(&format!(" {instance} ")));
    let first_copy = moves.iter().position(|line| line.contains("r:")).unwrap_or(moves.len());
    assert!(position("i4").is_some_and(|at| at < first_copy), "{}", ran.out);
    assert!(position("i11").is_some_and(|at| at < first_copy), "{}", ran.out);
    // There is no memory for i5, and the output says so.
    assert!(ran.out.contains("instance i5 has its primary on offline node n1: "), "{}", ran.out);
}
