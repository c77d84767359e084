//! Every plan, replayed with sums of its own: what the planners believe of a node is not asked for.

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, LoadOptions, Move, NodeIdx};
use placement::balance::{BalanceOptions, Step};
use placement::deep::{self, DeepOptions};
use placement::drain::{DrainOptions, Purpose, drain};
use placement::repair::repair;
use placement::whatif::Changes;
use proptest::prelude::*;

use crate::generate::{cases, recipes, recipes_of};

type Place = (NodeIdx, Option<NodeIdx>);

/// Where everything is, and nothing else.
#[derive(Clone)]
struct Ledger<'a> {
    cluster: &'a Cluster,
    places: Vec<Place>,
}

/// What a plan may do.
struct Permissions<'a> {
    leaving: &'a [NodeIdx],
    /// Rules may be broken, not only physics.
    force: bool,
    /// Nothing may become worse that a planner might mind.
    strict: bool,
}

/// Sums over what is on a node.
struct Sums {
    free_memory: i64,
    booked_memory: i64,
    reserve: i64,
    free_disk: i64,
    vcpus: i64,
    spindle_use: f64,
}

impl<'a> Ledger<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, places: cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect() }
    }

    fn real(&self) -> impl Iterator<Item = (&'a Instance, Place, Place)> + '_ {
        let instances = self.cluster.instances.iter().zip(&self.places);
        let all =
            instances.map(|(instance, place)| (instance, *place, (instance.primary, instance.secondary)));
        all.filter(|(instance, ..)| !instance.forthcoming)
    }

    fn sums(&self, node: NodeIdx) -> Sums {
        let record = self.cluster.node(node);
        let is_local = |i: &Instance| matches!(i.template, DiskTemplate::Drbd | DiskTemplate::Plain);
        let copies = |place: Place| {
            [Some(place.0), place.1].into_iter().flatten().filter(|n| *n == node).count() as i64
        };
        let mut sums = Sums {
            free_memory: record.total_memory as i64 - record.node_memory - record.missing_memory.max(0),
            booked_memory: self.cluster.figures(node).booked_free_memory,
            reserve: 0,
            free_disk: self.cluster.figures(node).free_disk,
            vcpus: record.node_cpus,
            spindle_use: 0.0,
        };
        let mut reserved = vec![0; self.cluster.nodes.len()];
        for (instance, now, first) in self.real() {
            let demand = instance.demand();
            sums.booked_memory += demand.memory * (i64::from(first.0 == node) - i64::from(now.0 == node));
            if now.0 == node {
                sums.free_memory -= demand.used_memory;
                sums.vcpus += demand.vcpus;
            }
            if now.1 == Some(node) {
                reserved[now.0.at()] += demand.reserved_memory;
            }
            if is_local(instance) {
                sums.free_disk += instance.disk * (copies(first) - copies(now));
                sums.spindle_use += instance.spindle_use as f64 * copies(now) as f64;
            }
        }
        sums.reserve = reserved.into_iter().max().unwrap_or(0);
        sums
    }

    /// Makes a step; what is wrong with it, if anything is.
    fn make(&mut self, step: &Step, may: &Permissions<'_>) -> Result<(), String> {
        let cluster = self.cluster;
        let instance = cluster.instance(step.instance);
        let from = self.places[step.instance.at()];
        let wrong = |what: &str| Err(format!("{what}: {step:?}"));
        if step.from != from {
            return wrong("it is elsewhere");
        }
        let (p, s) = from;
        let expected = match (step.mov, s) {
            (Move::FailoverTo(t), s) => (t, s),
            (Move::Failover, Some(s)) => (s, Some(p)),
            (Move::ReplaceSecondary(t), Some(_)) => (p, Some(t)),
            (Move::ReplaceAndFailover(t), Some(_)) => (t, Some(p)),
            (Move::ReplacePrimary(t), Some(s)) => (t, Some(s)),
            (Move::FailoverAndReplace(t), Some(s)) => (s, Some(t)),
            _ => return wrong("it has no mirror"),
        };
        if step.to != expected {
            return wrong("the move leads elsewhere");
        }
        let is_dead = |n: NodeIdx| !cluster.node(n).readable();
        let reads_primary = matches!(step.mov, Move::ReplaceSecondary(_) | Move::ReplaceAndFailover(_));
        if reads_primary && is_dead(p) {
            return wrong("disks are copied from a dead node");
        }
        let runs_on_mirror =
            matches!(step.mov, Move::Failover | Move::ReplacePrimary(_) | Move::FailoverAndReplace(_));
        if runs_on_mirror && s.is_none_or(|s| cluster.node(s).offline) {
            return wrong("the mirror's node takes no instances");
        }
        if let Some(target) = step.mov.target() {
            let node = cluster.node(target);
            if node.offline || node.group != cluster.node(p).group || target == p || Some(target) == s {
                return wrong("no such target");
            }
            if may.leaving.contains(&target) {
                return wrong("the target is to be emptied");
            }
        }
        let touched: Vec<NodeIdx> = [Some(step.to.0), step.to.1].into_iter().flatten().collect();
        let before: Vec<Sums> = touched.iter().map(|n| self.sums(*n)).collect();
        self.places[step.instance.at()] = step.to;
        let is_forced = may.force || cluster.node(p).offline || s.is_some_and(|s| cluster.node(s).offline);
        for (node, before) in touched.into_iter().zip(before) {
            let after = self.sums(node);
            let record = cluster.node(node);
            if node == step.to.0 && node != p && after.free_memory <= 0 {
                return wrong("no memory");
            }
            if instance.template == DiskTemplate::Drbd
                && after.free_disk <= 0
                && after.free_disk < before.free_disk
            {
                return wrong("no disk");
            }
            if is_forced || may.leaving.contains(&node) {
                continue;
            }
            let ratio = |sums: &Sums| sums.vcpus as f64 / record.total_cpus;
            if ratio(&after) > record.max_vcpu_ratio && ratio(&after) > ratio(&before) {
                return wrong("too many virtual CPUs");
            }
            let spindles = (after.spindle_use, before.spindle_use);
            if !record.exclusive_storage && spindles.0 > record.max_spindles && spindles.0 > spindles.1 {
                return wrong("too many spindles in use");
            }
            let fails = |sums: &Sums| sums.free_memory <= sums.reserve;
            if fails(&after) && !fails(&before) && !cluster.figures(node).fails_n1 {
                return wrong("the node fails N+1");
            }
            let shortage = |sums: &Sums| sums.reserve - sums.free_memory;
            let is_short = fails(&after) && shortage(&after) > shortage(&before);
            let is_booked = after.booked_memory <= 0 && after.booked_memory < before.booked_memory;
            if may.strict && (is_short || is_booked || after.free_disk <= 0) {
                return wrong("memory or disk is short");
            }
        }
        Ok(())
    }
}

/// Replays a plan; the ledger in the end.
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

fn no_force() -> Permissions<'static> {
    Permissions { leaving: &[], force: false, strict: false }
}

/// Whether everything leaves a node by one move for each copy, in some order.
fn can_be_emptied(ledger: &Ledger<'_>, leaving: &[NodeIdx], budget: &mut usize) -> bool {
    let cluster = ledger.cluster;
    let is_there = |place: Place| leaving.contains(&place.0) || place.1.is_some_and(|s| leaving.contains(&s));
    let pending: Vec<usize> = (0..ledger.places.len())
        .filter(|at| !cluster.instances[*at].forthcoming && is_there(ledger.places[*at]))
        .collect();
    if pending.is_empty() {
        return true;
    }
    let may = Permissions { leaving, force: false, strict: true };
    for at in pending {
        let instance = InstanceIdx::from_usize(at);
        let (p, s) = ledger.places[at];
        let targets = cluster.node_indices().filter(|t| !leaving.contains(t));
        let moves = targets.flat_map(|t| match cluster.instances[at].template {
            DiskTemplate::Drbd => vec![
                (Move::ReplaceSecondary(t), (p, Some(t))),
                (Move::FailoverAndReplace(t), (s.unwrap_or(p), Some(t))),
            ],
            _ => vec![(Move::FailoverTo(t), (t, s))],
        });
        let moves: Vec<(Move, Place)> = moves.filter(|(_, to)| !is_there(*to)).collect();
        for (mov, to) in moves {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut next = ledger.clone();
            let step = Step { instance, mov, from: (p, s), to, score: 0.0 };
            if next.make(&step, &may).is_ok() && can_be_emptied(&next, leaving, budget) {
                return true;
            }
        }
    }
    false
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
        let may = Permissions { leaving: &leaving, force, strict: false };
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
        let may = Permissions { leaving: &changes.lose, force: false, strict: false };
        replayed(&before, plan.steps.iter().map(|s| &s.step), &may)?;
    }

    #[test]
    fn plans_to_repair(recipe in recipes(), force: bool) {
        let cluster = recipe.recorded().build();
        let (nodes, instances) = scope(&cluster);
        let options = BalanceOptions { ignore_soft_errors: force, ..BalanceOptions::default() };
        let found = repair(&mut cluster.clone(), &nodes, &instances, &options);
        replayed(&cluster, &found.steps, &Permissions { leaving: &[], force, strict: false })?;
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
        replayed(&cluster, &found.plan.steps, &no_force())?;
    }

    #[test]
    fn a_no_is_no_in_any_order(recipe in recipes_of(4, 6), pick in 0..4_usize) {
        let mut recipe = recipe.recorded().online();
        // Sums don't know of these.
        (recipe.style.tagged, recipe.style.exclusive) = (false, false);
        let cluster = recipe.build();
        prop_assume!(cluster.instances.iter().all(|instance| !instance.forthcoming));
        let leaving = vec![NodeIdx::from_usize(pick % cluster.nodes.len())];
        let options = DrainOptions { purpose: Purpose::Retire, ignore_soft_errors: false, disk_moves: true };
        let plan = drain(&mut cluster.clone(), &leaving, options);
        let refused = plan.refused();
        prop_assume!(!refused.is_empty() && refused.len() == plan.stays.len());
        let mut budget = 200_000;
        prop_assert!(!can_be_emptied(&Ledger::new(&cluster), &leaving, &mut budget), "{:?}", plan.stays);
    }
}
