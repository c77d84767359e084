//! Seed 001: tags that restrict migration, and the upgrade of a hypervisor to a new version.

use crate::failure_tags::text;
use crate::program::{hbal, moves};

/// Number of moves that balance a cluster with all instances on the two nodes tagged `busy`. The other two
/// nodes are tagged `idle`.
fn migrated(cluster_tags: &[&str], busy: &str, idle: &str) -> usize {
    let nodes = [("n1", busy), ("n2", busy), ("n3", idle), ("n4", idle)];
    let instances = [("i1", "n1", "", ""), ("i2", "n1", "", ""), ("i3", "n2", "", ""), ("i4", "n2", "", "")];
    let ran = hbal(&text(cluster_tags, &nodes, &instances), &[]);
    moves(&ran).len()
}

const RESTRICTED: &str = "htools:migration:hv";

#[test]
fn tags_that_no_cluster_tag_names_restrict_nothing() {
    assert!(migrated(&[], "hv:old", "hv:new") > 0);
    assert!(migrated(&["htools:migration:other"], "hv:old", "hv:new") > 0);
}

#[test]
fn instances_do_not_migrate_to_nodes_that_lack_the_tag() {
    assert_eq!(migrated(&[RESTRICTED], "hv:old", "hv:new"), 0);
    assert_eq!(migrated(&[RESTRICTED], "hv:old", ""), 0);
}

#[test]
fn instances_migrate_between_nodes_with_the_same_tags() {
    assert!(migrated(&[RESTRICTED], "hv:new", "hv:new") > 0);
    assert!(migrated(&[RESTRICTED], "", "") > 0);
}

#[test]
fn an_allowed_migration_is_allowed_in_one_direction_in_both_spellings() {
    for allowed in ["htools:allowmigration:hv:old::hv:new", "htools::allowmigration:hv:old::hv:new"] {
        assert!(migrated(&[RESTRICTED, allowed], "hv:old", "hv:new") > 0, "{allowed}");
        assert_eq!(migrated(&[RESTRICTED, allowed], "hv:new", "hv:old"), 0, "{allowed}");
        assert_eq!(migrated(&[RESTRICTED, allowed], "hv:old", ""), 0, "{allowed}");
    }
}

#[test]
fn for_the_hypervisor_upgrade_tagging_all_upgraded_nodes_suffices() {
    // From the old version, which has no tag, to the new one, but not back.
    assert!(migrated(&[RESTRICTED], "", "hv:new") > 0);
    assert_eq!(migrated(&[RESTRICTED], "hv:new", ""), 0);
}

#[test]
fn every_tag_of_the_node_left_must_be_there_or_allowed() {
    let both = "htools:allowmigration:hv:old::hv:new";
    assert_eq!(migrated(&[RESTRICTED, both], "hv:old,hv:beta", "hv:new"), 0);
    assert!(migrated(&[RESTRICTED, both], "hv:old,hv:beta", "hv:new,hv:beta") > 0);
    assert!(
        migrated(&[RESTRICTED, both, "htools:allowmigration:hv:beta::hv:new"], "hv:old,hv:beta", "hv:new")
            > 0
    );
}
