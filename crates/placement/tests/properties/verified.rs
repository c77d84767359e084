//! Replays every kind of plan with the sums of a ledger.

use cluster::{Cluster, DiskTemplate, InstanceIdx, LoadOptions, NodeIdx};
use placement::Search;
use placement::balance::{BalanceOptions, Step};
use placement::deep::{self, DeepOptions};
use placement::drain::{DrainOptions, Purpose, drain};
use placement::reboot::{Choice, Colouring, ConflictGraph, Evacuation, Heuristic, RebootGroup, plan};
use placement::repair::repair;
use placement::whatif::Changes;
use proptest::prelude::*;

use crate::generate::{cases, recipes, recipes_of};
use crate::ledger::{Ledger, Limits, Permissions, has_local_disks};

/// Replays a plan and returns the final ledger.
fn replayed<'a>(
    cluster: &'a Cluster,
    steps: impl IntoIterator<Item = &'a Step>,
    may: &Permissions<'_>,
) -> Result<Ledger<'a>, TestCaseError> {
    let mut ledger = Ledger::new(cluster);
    for step in steps {
        ledger.make(step, may).map_err(TestCaseError::fail)?;
    }
    Ok(ledger)
}

fn scope(cluster: &Cluster) -> (Vec<NodeIdx>, Vec<InstanceIdx>) {
    let group = cluster.nodes[0].group;
    (cluster.nodes_of(group), cluster.instances_of(group))
}

fn chosen(cluster: &Cluster, bits: u8) -> Vec<NodeIdx> {
    cluster.node_indices().filter(|n| bits >> n.0 & 1 == 1).collect()
}

fn rules(force: bool) -> Limits {
    if force { Limits::Room } else { Limits::Rules }
}

/// Options of `hroller`.
#[derive(Clone, Copy, Debug)]
struct Wish {
    one_group: bool,
    tag: Option<&'static str>,
    redundant_only: bool,
    instances_down: bool,
    evacuation: Evacuation,
}

fn wishes() -> impl Strategy<Value = Wish> {
    any::<[bool; 6]>().prop_map(
        |[one_group, tag, redundant_only, instances_down, non_redundant, secondaries]| Wish {
            one_group,
            tag: Some(if tag { "l:a" } else { "v:1" }),
            redundant_only,
            instances_down,
            evacuation: Evacuation { non_redundant, secondaries },
        },
    )
}

/// Checks that each node to reboot is in exactly one group, and that each group keeps the rules while its
/// nodes are down.
fn rebooted(cluster: &Cluster, wish: &Wish, groups: &[RebootGroup]) -> Result<(), String> {
    for index in cluster.node_indices() {
        let node = cluster.node(index);
        let is_plain =
            |i: &cluster::Instance| !i.forthcoming && i.primary == index && i.template != DiskTemplate::Drbd;
        let is_wanted = !node.offline
            && (!wish.one_group || node.group == cluster.nodes[0].group)
            && wish.tag.is_none_or(|tag| node.tags.iter().any(|t| t == tag))
            && !(wish.redundant_only && cluster.instances.iter().any(is_plain));
        let times = groups.iter().flat_map(|group| &group.nodes).filter(|n| **n == index).count();
        if times != usize::from(is_wanted) {
            return Err(format!("{index:?} is in {times} groups"));
        }
    }
    groups.iter().try_for_each(|group| outage(cluster, wish, group))
}

fn outage(cluster: &Cluster, wish: &Wish, group: &RebootGroup) -> Result<(), String> {
    let is_down = |node: NodeIdx| group.nodes.contains(&node);
    let mut ledger = Ledger::new(cluster);
    for relocation in &group.relocations {
        let place = &mut ledger.places[relocation.instance.at()];
        if place.0 != relocation.from.0 {
            return Err(format!("it is elsewhere: {relocation:?}"));
        }
        *place = relocation.to;
    }
    let mut relieved = vec![None; cluster.nodes.len()];
    for (index, instance) in cluster.instances.iter().enumerate() {
        let wrong = |what: &str| Err(format!("{what}: {instance:?} in {group:?}"));
        let (first, now) = ((instance.primary, instance.secondary), ledger.places[index]);
        let stays = |from: NodeIdx, to: NodeIdx| {
            let (from, node) = (cluster.node(from), cluster.node(to));
            !is_down(to) && !node.offline && from.group == node.group
        };
        if instance.template != DiskTemplate::Drbd {
            if instance.forthcoming {
                continue;
            }
            if wish.evacuation.non_redundant && is_down(now.0) {
                return wrong("it stops");
            }
            if now != first && !stays(first.0, now.0) {
                return wrong("it goes where it must not");
            }
            continue;
        }
        let Some(mirror) = first.1 else { continue };
        if is_down(first.0) && is_down(mirror) {
            return wrong("both its nodes are down");
        }
        if instance.forthcoming {
            continue;
        }
        if is_down(first.0) && !wish.instances_down {
            if relieved[mirror.at()].is_some_and(|other| other != first.0) {
                return wrong("its mirror's node takes over from two nodes");
            }
            relieved[mirror.at()] = Some(first.0);
        }
        // A primary fails over, and its old node becomes its secondary.
        let (runs, mirrored) = if is_down(first.0) { (mirror, first.0) } else { (first.0, mirror) };
        if now != first {
            // The exact search also moves some instances that could stay. Either of their nodes can run them.
            let is_on_side = now.0 == runs || (now.0 == mirrored && !is_down(mirrored));
            let left = if now.0 == mirrored { runs } else { mirrored };
            let is_safe = now.1.is_some_and(|s| s != now.0 && stays(left, s));
            if !is_on_side || !is_safe {
                return wrong("its mirror goes where it must not");
            }
        } else if wish.evacuation.secondaries && is_down(mirrored) {
            return wrong("it has no mirror");
        }
    }
    for node in cluster.node_indices().filter(|n| !is_down(*n)) {
        let (before, after, record) = (Ledger::new(cluster), ledger.sums(node), cluster.node(node));
        let was_there = |i: usize| before.places[i].0 == node || before.places[i].1 == Some(node);
        let is_there = |i: usize| ledger.places[i].0 == node || ledger.places[i].1 == Some(node);
        let all = (0..cluster.instances.len()).filter(|i| !cluster.instances[*i].forthcoming);
        let received: Vec<usize> = all.filter(|i| is_there(*i) && !was_there(*i)).collect();
        let runs_more = group.relocations.iter().any(|r| r.to.0 == node && r.from.0 != node);
        if runs_more && after.free_memory <= 0 {
            return Err(format!("{node:?} has no memory: {group:?}"));
        }
        let has_spindles = !record.exclusive_storage || after.free_spindles >= 0;
        let stores_more = received.iter().any(|i| has_local_disks(&cluster.instances[*i]));
        if stores_more && (after.free_disk <= 0 || !has_spindles) {
            return Err(format!("{node:?} has no disk: {group:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn plans_to_empty_nodes(recipe in recipes(), bits in 1..255_u8, force: bool, reboot: bool) {
        let cluster = recipe.recorded().build();
        let leaving = chosen(&cluster, bits);
        let purpose = if reboot { Purpose::Reboot } else { Purpose::Retire };
        let options = DrainOptions { purpose, ignore_soft_errors: force, disk_moves: true };
        let plan = drain(&mut cluster.clone(), &leaving, options);
        let may = Permissions { leaving: &leaving, limits: rules(force) };
        let ledger = replayed(&cluster, plan.steps.iter().map(|s| &s.step), &may)?;
        for (at, place) in ledger.places.iter().enumerate().filter(|_| !reboot) {
            let is_there = leaving.contains(&place.0) || place.1.is_some_and(|s| leaving.contains(&s));
            let index = InstanceIdx::from_usize(at);
            let told = plan.stays.iter().any(|s| s.instance == index) || plan.planned.contains(&index);
            prop_assert!(!is_there || told, "{index:?}");
        }
    }

    #[test]
    fn plans_after_the_loss_of_a_node(recipe in recipes(), bits in 1..255_u8) {
        let cluster = recipe.recorded().build();
        let changes = Changes { lose: chosen(&cluster, bits), ..Changes::default() };
        prop_assume!(!changes.lose.is_empty());
        let mut before = changes.reshape(&cluster, &LoadOptions::default()).unwrap();
        for node in &changes.lose {
            before.nodes[node.at()].lose();
        }
        let plan = changes.enact(&mut before.clone()).rescue.unwrap();
        let may = Permissions { leaving: &changes.lose, limits: Limits::Rules };
        replayed(&before, plan.steps.iter().map(|s| &s.step), &may)?;
    }

    #[test]
    fn plans_to_repair(recipe in recipes(), force: bool) {
        let cluster = recipe.recorded().build();
        let (nodes, instances) = scope(&cluster);
        let options = BalanceOptions { ignore_soft_errors: force, ..BalanceOptions::default() };
        let found = repair(&mut cluster.clone(), &nodes, &instances, &options);
        replayed(&cluster, &found.steps, &Permissions { leaving: &[], limits: rules(force) })?;
    }

    #[test]
    fn plans_of_the_deep_search(recipe in recipes_of(5, 10)) {
        let cluster = recipe.recorded().build();
        let (nodes, instances) = scope(&cluster);
        let options = BalanceOptions { readable_only: true, ..BalanceOptions::default() };
        let mut effort = deep::rounds(2);
        let found = deep::balance(
            &mut cluster.clone(),
            &nodes,
            &instances,
            &options,
            &DeepOptions::default(),
            &mut effort,
        );
        replayed(&cluster, &found.plan.steps, &Permissions { leaving: &[], limits: Limits::Rules })?;
    }

    #[test]
    fn groups_of_nodes_to_reboot(recipe in recipes(), wish in wishes(), some_nodes: bool) {
        let wish = Wish { tag: wish.tag.filter(|_| some_nodes), ..wish };
        let cluster = recipe.build();
        let tags = wish.tag.map(|tag| [tag.to_owned()]);
        let group = wish.one_group.then(|| cluster.nodes[0].group);
        let choice = Choice {
            group,
            tags: tags.as_ref().map(|tags| &tags[..]),
            redundant_only: wish.redundant_only,
        };
        let nodes = choice.nodes(&cluster);
        let Some(graph) = ConflictGraph::new(&cluster, &nodes, wish.instances_down) else { return Ok(()) };
        let colourings = Heuristic::ALL.map(|heuristic| Colouring::greedy(&graph, heuristic));
        for search in [Search::Exact, Search::Deep] {
            let Ok(groups) = plan(&cluster, &graph, &colourings, wish.evacuation, None, search) else { continue };
            // The exact search copies the reference: nodes that aren't chosen take part, and full evacuations
            // read wrong records, so its groups can break rules.
            let is_sound = nodes.len() == cluster.nodes.len() && !wish.evacuation.secondaries;
            if search == Search::Deep || is_sound {
                let checked = rebooted(&cluster, &wish, &groups);
                checked.map_err(|wrong| TestCaseError::fail(format!("{search:?}: {wrong}")))?;
            }
        }
    }
}
