//! Removing an instance from a node's figures is the inverse of adding it.

use cluster::{Cluster, Figures, Instance, NodeIdx};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{Recipe, cases, recipes};

/// A cluster, one of its instances, and a node that the instance doesn't use. `None` if the node is one of
/// its own, or its spindles are unknown.
fn guest(recipe: &Recipe, instance: Index, node: Index) -> Option<(Cluster, Instance, NodeIdx)> {
    let cluster = recipe.recorded().build();
    let instance = cluster.instances[instance.index(cluster.instances.len())].clone();
    let node = NodeIdx::from_usize(node.index(cluster.nodes.len()));
    let known = instance.total_spindles().is_some();
    (node != instance.primary && Some(node) != instance.secondary && known)
        .then_some((cluster, instance, node))
}

/// Figures without the load, whose sums are rounded.
fn without_load(figures: Figures) -> Figures {
    Figures { load: [0.0; 4], ..figures }
}

fn compare(recipe: &Recipe, before: Figures, after: Figures) -> Result<(), TestCaseError> {
    if recipe.style.decimal {
        prop_assert_eq!(without_load(after), without_load(before));
        for (new, old) in after.load.iter().zip(before.load) {
            prop_assert!((new - old).abs() <= 1e-12, "{new} for {old}");
        }
    } else {
        prop_assert_eq!(after, before);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn removing_a_primary_undoes_adding_it(
        recipe in recipes(),
        picks in any::<(Index, Index)>(),
        force: bool,
        location in 0..3_i64,
    ) {
        if let Some((cluster, instance, index)) = guest(&recipe, picks.0, picks.1) {
            let (node, state, demand) = (cluster.node(index), cluster.state(index), instance.demand());
            let tags = state.tag_effect(&instance.exclusion_tags);
            if let Ok(with) = state.figures.add_primary(node, &demand, tags, location, force) {
                let without = with.remove_primary(node, &demand, tags.conflicts, location);
                compare(&recipe, state.figures, without)?;
            }
        }
    }

    #[test]
    fn removing_a_secondary_undoes_adding_it(
        recipe in recipes(),
        picks in any::<(Index, Index)>(),
        force: bool,
        ignore_disk: bool,
    ) {
        if let Some((cluster, instance, index)) = guest(&recipe, picks.0, picks.1) {
            let (node, state, demand) = (cluster.node(index), cluster.state(index), instance.demand());
            let reserved = state.reserved_for(instance.primary);
            let added = state.figures.add_secondary(node, &demand, reserved, force, ignore_disk);
            if let Ok(with) = added && demand.drbd {
                let without = with.remove_secondary(node, &demand, state.figures.reserved_memory);
                compare(&recipe, state.figures, without)?;
            }
        }
    }

    #[test]
    fn what_is_accepted_strictly_is_accepted_by_force(
        recipe in recipes(),
        picks in any::<(Index, Index)>(),
    ) {
        if let Some((cluster, instance, index)) = guest(&recipe, picks.0, picks.1) {
            let (node, state, demand) = (cluster.node(index), cluster.state(index), instance.demand());
            let tags = state.tag_effect(&instance.exclusion_tags);
            if let Ok(strict) = state.figures.add_primary(node, &demand, tags, 0, false) {
                prop_assert_eq!(state.figures.add_primary(node, &demand, tags, 0, true), Ok(strict));
                prop_assert!(!strict.fails_n1 || state.figures.fails_n1);
            }
            let reserved = state.reserved_for(instance.primary);
            let secondary = |force| state.figures.add_secondary(node, &demand, reserved, force, false);
            if let Ok(strict) = secondary(false) {
                prop_assert_eq!(secondary(true), Ok(strict));
            }
        }
    }

    #[test]
    fn conflicts_that_an_instance_makes_go_away_with_it(recipe in recipes()) {
        let cluster = recipe.build();
        for index in cluster.node_indices() {
            let state = cluster.state(index);
            let beyond: i64 = state.exclusion_tags.iter().map(|(_, count)| count - 1).sum();
            prop_assert_eq!(state.figures.tag_conflicts, beyond);
        }
    }
}
