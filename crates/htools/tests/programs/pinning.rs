//! Seed 001: instances with a desired location. Also pinned instances, which stay on their nodes.

use serde_json::json;

use crate::failure_tags::{request, text, with_instance};
use crate::program::{answer, chosen, explained, hbal, hroller, hsqueeze, moves};

const SITES: [(&str, &[&str]); 3] = [("n1", &["site:x"]), ("n2", &["site:y"]), ("n3", &["site:y"])];
const LOCATIONS: &str = "htools:nlocation:site";
/// Cluster tag that declares a prefix of desired locations, as Ganeti reads it.
const DECLARED: &str = "htools:desiredlocation:site:";
/// Cluster tag that enables desired locations as instance tags, spelled like in the seed.
const SPELLED_OUT: &str = "allot:desiredlocation";

/// Node chosen for a new instance on nodes that differ only in their location. The last node wins ties.
fn placed(cluster_tags: &[&str], tags: &[&str]) -> String {
    chosen(&request(cluster_tags, &SITES, "plain", tags)).remove(0)
}

#[test]
fn hail_places_an_instance_where_it_wishes_to_be() {
    assert_eq!(placed(&[LOCATIONS, DECLARED], &["site:x"]), "n1");
    assert_eq!(placed(&[LOCATIONS, SPELLED_OUT], &["htools:desiredlocation:site:x"]), "n1");
}

#[test]
fn without_a_cluster_tag_wishes_mean_nothing() {
    assert_eq!(placed(&[LOCATIONS], &["site:x"]), "n3");
    assert_eq!(placed(&[LOCATIONS], &["htools:desiredlocation:site:x"]), "n3");
    assert_eq!(placed(&[LOCATIONS, DECLARED], &[]), "n3");
}

#[test]
fn a_wish_that_cannot_be_met_is_no_obstacle() {
    assert_eq!(placed(&[LOCATIONS, DECLARED], &["site:z"]), "n3");
}

#[test]
fn of_contradictory_wishes_any_may_be_met() {
    assert_eq!(placed(&[LOCATIONS, DECLARED], &["site:x", "site:y"]), "n3");
    assert_eq!(placed(&[LOCATIONS, DECLARED], &["site:x", "site:z"]), "n1");
}

#[test]
fn hbal_moves_an_instance_where_it_wishes_to_be() {
    let nodes = [("n1", "site:x"), ("n2", "site:y")];
    let cluster = |cluster_tags: &[&str], wish: &str| {
        text(cluster_tags, &nodes, &[("i1", "n1", "", ""), ("i2", "n2", "", wish), ("i3", "n2", "", "")])
    };
    for (tag, wish) in [(DECLARED, "site:x"), (SPELLED_OUT, "htools:desiredlocation:site:x")] {
        let ran = hbal(&cluster(&[LOCATIONS, tag], wish), &[]);
        assert!(moves(&ran).iter().any(|line| line.contains("i2") && line.contains("fa:n1")), "{}", ran.out);
    }
    assert!(moves(&hbal(&cluster(&[LOCATIONS], "site:x"), &[])).is_empty());
}

#[test]
fn wishes_are_counted_among_the_locations_in_the_metric_with_weight_1() {
    let nodes = [("n1", "site:x"), ("n2", "site:y")];
    let instances = [("i1", "n2", "", "site:x,site:z"), ("i2", "n1", "", "site:x")];
    let ran = hbal(&text(&[LOCATIONS, DECLARED], &nodes, &instances), &["-v", "-v", "-v", "-l", "0"]);
    let line = ran.out.lines().find(|l| l.contains("location_score")).expect("the component is shown");
    assert!(line.contains("2.00000000"), "{line}");
}

/// Tag of instances that stay on their nodes.
const PINNED: &str = "allot:pinned";

const NODES: [(&str, &str); 3] = [("n1", ""), ("n2", ""), ("n3", "")];

/// Three nodes, with four instances on the first. All instances have these tags.
fn crowded(tags: &str) -> String {
    text(&[], &NODES, &["i1", "i2", "i3", "i4"].map(|name| (name, "n1", "", tags)))
}

#[test]
fn hbal_leaves_pinned_instances_alone_however_it_searches() {
    for options in [&[][..], &["--search=deep", "--search-rounds=2"], &["--repair-only", "-O", "n1"]] {
        assert!(!moves(&hbal(&crowded(""), options)).is_empty(), "{options:?}");
        let ran = hbal(&crowded(PINNED), options);
        assert!(moves(&ran).is_empty(), "{options:?}: {}", ran.out);
    }
    let explained = hbal(&crowded(PINNED), &["--explain"]);
    let why = "  4 instances may not be moved: pinned by the tag allot:pinned (gnt-instance remove-tags takes it \
               away)\n";
    assert!(explained.out.contains(why), "{}", explained.out);
    let repaired = hbal(&crowded(PINNED), &["--repair-only", "-O", "n1"]);
    let why = "instance i1 has its primary on offline node n1: no instance concerned can be moved: pinned by the tag \
               allot:pinned (gnt-instance remove-tags takes it away)";
    assert!(repaired.out.contains(why), "{}", repaired.out);
    // Other instances still move.
    let one = crowded("").replacen("|sharedfile||", "|sharedfile|allot:pinned|", 1);
    let ran = hbal(&one, &[]);
    assert!(!moves(&ran).is_empty() && !moves(&ran).iter().any(|line| line.contains(" i1 ")), "{}", ran.out);
}

#[test]
fn hail_moves_no_pinned_instance_and_says_why() {
    let nodes: [(&str, &[&str]); 3] = [("n1", &[]), ("n2", &[]), ("n3", &[])];
    let ask = |tags: &[&str], question: serde_json::Value| {
        let mut message = with_instance(request(&[], &nodes, "drbd", &[]), "i1", &["n1", "n2"], tags);
        message["request"] = question;
        message
    };
    let evacuation = json!({"type": "node-evacuate", "instances": ["i1"], "evac_mode": "primary-only"});
    let free = answer(&ask(&[], evacuation.clone()));
    assert_eq!(free["result"][1], json!([]), "{free}");
    let reason = "Instance is pinned by the tag allot:pinned";
    let change = json!({"type": "change-group", "instances": ["i1"], "target_groups": []});
    for question in [evacuation.clone(), change] {
        let pinned = answer(&ask(&[PINNED], question));
        assert_eq!(pinned["result"][1], json!([["i1", reason]]), "{pinned}");
    }
    let relocation = json!({"type": "relocate", "name": "i1", "required_nodes": 1, "relocate_from": ["n2"],
        "disk_space_total": 1024});
    let pinned = answer(&ask(&[PINNED], relocation));
    assert_eq!(
        (&pinned["success"], &pinned["info"]),
        (&json!(false), &json!(format!("Request failed: {reason}")))
    );
    let said = explained(&ask(&[PINNED], evacuation)).err;
    let why = "  stays: it is pinned by the tag allot:pinned (gnt-instance remove-tags takes it away)\n";
    assert!(said.contains(why), "{said}");
}

#[test]
fn hroller_leaves_out_nodes_on_which_pinned_instances_run_and_names_them() {
    let cluster = |status: &str| {
        let text = text(&[], &NODES, &[("i1", "n2", "", PINNED)]);
        text.replace("|running|", &format!("|{status}|"))
    };
    let warning = "Warning: node n2 is left out, instance i1 is pinned by the tag allot:pinned (gnt-instance \
                   remove-tags takes it away)\n";
    for search in ["--search=exact", "--search=deep"] {
        let ran = hroller(&cluster("running"), &["--force", "--print-moves", search]);
        assert_eq!(ran.out, "'Node Reboot Groups'\nn1,n3\n", "{search}");
        assert!(ran.err.contains(warning), "{}", ran.err);
        for (status, more) in [("ADMIN_down", &[][..]), ("running", &["--offline-maintenance"])] {
            let options = [&["--force", "--print-moves", search][..], more].concat();
            let ran = hroller(&cluster(status), &options);
            assert_eq!(ran.out, "'Node Reboot Groups'\nn1,n2,n3\n", "{search} {status}");
            assert!(!ran.err.contains("left out"), "{}", ran.err);
        }
    }
}

#[test]
fn hroller_names_pinned_instances_that_stay_during_an_offline_maintenance() {
    let pair = text(&[], &NODES, &[("i1", "n1", "n2", PINNED), ("i2", "n1", "n2", "")]);
    let whole = ["--force", "--print-moves", "--offline-maintenance", "--full-evacuation"];
    for search in ["--search=exact", "--search=deep"] {
        let ran = hroller(&pair, &[&whole[..], &[search]].concat());
        assert!(!ran.out.contains("  i1 "), "{}", ran.out);
        for node in ["n1", "n2"] {
            let stays =
                format!("Warning: instance i1 stays on node {node}, it is pinned by the tag allot:pinned\n");
            assert!(ran.err.contains(&stays), "{}", ran.err);
        }
        // Mirrored instances don't move without the option.
        let ran = hroller(&pair, &[&whole[..3], &[search]].concat());
        assert_eq!(ran.err, "Warning: No master node found (maybe not supported by backend).\n");
    }
}

#[test]
fn hsqueeze_switches_off_no_node_of_a_pinned_instance() {
    let squeezed = |tags: &str| {
        let text = text(&[], &NODES[..2], &[("i1", "n2", "", tags)]);
        // n1 is the master, so it stays on.
        hsqueeze(&text.replace("100000|8|N|u|1||N|0|0|1.0\nn2", "100000|8|M|u|1||N|0|0|1.0\nn2"), &[]).out
    };
    assert!(squeezed("").starts_with("'Nodes to offline'\nn2\n"), "{}", squeezed(""));
    assert!(!squeezed(PINNED).contains("n2"), "{}", squeezed(PINNED));
}
