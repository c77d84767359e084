//! Seed 001: instances that wish for a location.

use crate::failure_tags::{request, text};
use crate::program::{chosen, hbal, moves};

const SITES: [(&str, &[&str]); 3] = [("n1", &["site:x"]), ("n2", &["site:y"]), ("n3", &["site:y"])];
const LOCATIONS: &str = "htools:nlocation:site";
/// The cluster declares a prefix of wishes, as Ganeti reads it.
const DECLARED: &str = "htools:desiredlocation:site:";
/// The cluster lets instances spell their wishes out, as the seed writes them.
const SPELLED_OUT: &str = "allot:desiredlocation";

/// Where a new instance goes if nodes differ in nothing but their location; the last one wins ties.
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
