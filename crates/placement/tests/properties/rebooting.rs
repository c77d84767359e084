//! Rolling reboots: every node is rebooted, and groups keep the rules.

use cluster::{Cluster, DiskTemplate, NodeIdx};
use placement::Search;
use placement::reboot::{
    Choice, Colouring, ConflictGraph, Evacuation, Heuristic, RebootError, RebootGroup, Relocation, Rules,
    Violation, plan, verify,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{cases, recipes};

/// Options of a run.
#[derive(Clone, Copy, Debug)]
struct Wish {
    instances_down: bool,
    evacuation: Evacuation,
    one_group: bool,
}

fn wishes() -> impl Strategy<Value = Wish> {
    any::<(bool, bool, bool, bool)>().prop_map(|(instances_down, non_redundant, secondaries, one_group)| {
        Wish { instances_down, evacuation: Evacuation { non_redundant, secondaries }, one_group }
    })
}

fn chosen(cluster: &Cluster, wish: Wish) -> Vec<NodeIdx> {
    let group = wish.one_group.then(|| cluster.nodes[0].group);
    Choice { group, ..Choice::default() }.nodes(cluster)
}

fn rules(wish: Wish, nodes: &[NodeIdx]) -> Rules<'_> {
    Rules { nodes, instances_down: wish.instances_down, evacuation: wish.evacuation }
}

fn run(
    cluster: &Cluster,
    wish: Wish,
    nodes: &[NodeIdx],
    master: Option<NodeIdx>,
    search: Search,
) -> Result<Vec<RebootGroup>, RebootError> {
    let Some(graph) = ConflictGraph::new(cluster, nodes, wish.instances_down) else { return Ok(Vec::new()) };
    let colourings = Heuristic::ALL.map(|heuristic| Colouring::greedy(&graph, heuristic));
    plan(cluster, &graph, &colourings, wish.evacuation, master, search)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_chosen_node_is_rebooted_once(recipe in recipes(), wish in wishes(), master: Index) {
        let cluster = recipe.build();
        let nodes = chosen(&cluster, wish);
        let master = (!nodes.is_empty()).then(|| nodes[master.index(nodes.len())]);
        for search in [Search::Exact, Search::Deep] {
            let Ok(groups) = run(&cluster, wish, &nodes, master, search) else { continue };
            let mut rebooted: Vec<NodeIdx> = groups.iter().flat_map(|group| group.nodes.clone()).collect();
            prop_assert_eq!(rebooted.last().copied(), master);
            rebooted.sort_unstable();
            prop_assert_eq!(&rebooted, &nodes);
        }
    }

    #[test]
    fn groups_of_all_online_nodes_respect_the_rules(recipe in recipes(), wish in wishes()) {
        // Nodes that aren't rebooted would take part and break the rules. A full evacuation can break them
        // too, because it reads wrong records.
        let cluster = recipe.online().build();
        let evacuation = Evacuation { secondaries: false, ..wish.evacuation };
        let wish = Wish { one_group: false, evacuation, ..wish };
        let nodes = chosen(&cluster, wish);
        if let Ok(groups) = run(&cluster, wish, &nodes, None, Search::Exact) {
            prop_assert_eq!(verify(&cluster, &rules(wish, &nodes), &groups), Ok(()));
        }
    }

    #[test]
    fn a_deep_search_respects_the_rules_and_makes_no_more_groups(recipe in recipes(), wish in wishes()) {
        let cluster = recipe.build();
        let nodes = chosen(&cluster, wish);
        let valid = |groups: &[RebootGroup]| verify(&cluster, &rules(wish, &nodes), groups);
        let exact = run(&cluster, wish, &nodes, None, Search::Exact);
        let deep = run(&cluster, wish, &nodes, None, Search::Deep);
        match (exact, deep) {
            (Ok(mut exact), Ok(deep)) => {
                exact.retain(|group| !group.nodes.is_empty());
                prop_assert!(deep.len() <= exact.len() || valid(&exact).is_err());
                prop_assert_eq!(valid(&deep), Ok(()));
            }
            (Ok(mut exact), Err(error)) => {
                exact.retain(|group| !group.nodes.is_empty());
                prop_assert!(valid(&exact).is_err(), "only the deep search fails: {error}");
            }
            (Err(_), Ok(deep)) => prop_assert_eq!(valid(&deep), Ok(())),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn a_deep_search_always_finds_the_same(recipe in recipes(), wish in wishes()) {
        let cluster = recipe.build();
        let nodes = chosen(&cluster, wish);
        let twice = [(); 2].map(|()| run(&cluster, wish, &nodes, None, Search::Deep));
        prop_assert_eq!(&twice[0], &twice[1]);
    }

    #[test]
    fn a_broken_plan_is_noticed(recipe in recipes(), wish in wishes(), pick: Index) {
        let cluster = recipe.online().build();
        let wish = Wish { one_group: false, ..wish };
        let nodes = chosen(&cluster, wish);
        let Ok(groups) = run(&cluster, wish, &nodes, None, Search::Exact) else { return Ok(()) };
        let check = |groups: &[RebootGroup]| verify(&cluster, &rules(wish, &nodes), groups);

        let together = [RebootGroup { nodes: nodes.clone(), relocations: Vec::new() }];
        if cluster.instances.iter().any(|i| i.template == DiskTemplate::Drbd && i.secondary.is_some()) {
            prop_assert!(matches!(check(&together), Err(Violation::BothNodes(_) | Violation::SharedSecondary(..))));
        }
        let mut forgotten = groups.clone();
        let victim = pick.index(groups.len());
        forgotten[victim].nodes.pop();
        prop_assert!(matches!(check(&forgotten), Err(Violation::Membership(_))));

        // The exact search also moves some instances that could stay.
        let has_to_move = |group: &RebootGroup, relocation: &Relocation| {
            let from = [Some(relocation.from.0), relocation.from.1];
            from.into_iter().flatten().any(|node| group.nodes.contains(&node))
        };
        let first = |group: &RebootGroup| group.relocations.iter().position(|r| has_to_move(group, r));
        let found = groups.iter().enumerate().find_map(|(moved, group)| Some((moved, first(group)?)));
        let Some((moved, position)) = found else { return Ok(()) };
        let mut stranded = groups.clone();
        stranded[moved].relocations.remove(position);
        prop_assert!(check(&stranded).is_err());
        let mut lost = groups.clone();
        let down = groups[moved].nodes[0];
        let first = &mut lost[moved].relocations[position];
        *first = Relocation { to: (down, first.to.1.map(|_| down)), ..*first };
        prop_assert!(matches!(check(&lost), Err(Violation::Stranded(_))));
    }
}
