//! `hcheck` where the reference has no answer to compare with.

use crate::program::hcheck;

/// An instance with its mirror in another group.
const SPLIT: &str = "\
g1|u1|preferred||
g2|u2|preferred||

n1|16384|0|15360|100000|98976|8|M|u1|1||N|0|0|1.0
n2|16384|0|16384|100000|98976|8|N|u2|1||N|0|0|1.0

i1|1024|1024|1|running|Y|n1|n2|drbd||1|-|N


";

#[test]
fn a_node_whose_instance_has_its_mirror_in_another_group_cannot_be_emptied() {
    // The reference ends in an error of its language here.
    let ran = hcheck(SPLIT, &["--machine-readable"]);
    let value = |key: &str| ran.out.lines().find_map(|line| line.strip_prefix(key));
    assert_eq!(value("HCHECK_INIT_GROUP_0_GN1_FAIL="), Some("1"));
    assert_eq!(value("HCHECK_INIT_GROUP_1_GN1_FAIL="), Some("0"));
    assert_eq!((value("HCHECK_OK="), ran.status), (Some("1"), 1));
}

#[test]
fn without_capacity_checks_that_is_no_fault() {
    let ran = hcheck(SPLIT, &["--no-capacity-checks"]);
    assert!(ran.out.starts_with("No need to rebalance cluster, no problems found.\n"), "{}", ran.out);
    assert_eq!(ran.status, 0);
}
