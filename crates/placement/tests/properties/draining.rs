//! Draining nodes: every step is possible, no other node suffers, and the reasons for copies that stay are
//! true.

use cluster::{Cluster, DiskTemplate, InstanceIdx, MirrorClass, Move, NodeIdx, Probe};
use placement::drain::{DrainOptions, Obstacle, Plan, Purpose, Role, drain};
use placement::watch::Health;
use proptest::prelude::*;

use crate::generate::{Recipe, cases, recipes};

/// Recipe of a cluster, bits that choose nodes, and options.
fn questions() -> impl Strategy<Value = (Recipe, u8, DrainOptions)> {
    let purpose = prop_oneof![Just(Purpose::Retire), Just(Purpose::Reboot), Just(Purpose::Lost)];
    let options = (purpose, prop::bool::weighted(0.2), prop::bool::weighted(0.8));
    (recipes(), 1..255_u8, options).prop_map(|(recipe, bits, (purpose, ignore_soft_errors, disk_moves))| {
        (recipe, bits, DrainOptions { purpose, ignore_soft_errors, disk_moves })
    })
}

fn chosen(cluster: &Cluster, bits: u8) -> Vec<NodeIdx> {
    cluster.node_indices().filter(|n| bits >> n.0 & 1 == 1).collect()
}

/// Returns the cluster before and after the drain, the nodes, and the plan.
fn drained(recipe: &Recipe, bits: u8, options: DrainOptions) -> (Cluster, Cluster, Vec<NodeIdx>, Plan) {
    let mut before = recipe.clone().recorded().build();
    let leaving = chosen(&before, bits);
    if options.purpose == Purpose::Lost {
        for node in &leaving {
            before.nodes[node.at()].offline = true;
        }
    }
    let mut after = before.clone();
    let plan = drain(&mut after, &leaving, options);
    (before, after, leaving, plan)
}

/// Whether an instance has its primary (or mirror) on one of the nodes and must leave for this purpose.
fn concerned(cluster: &Cluster, index: InstanceIdx, role: Role, nodes: &[NodeIdx], purpose: Purpose) -> bool {
    let instance = cluster.instance(index);
    if instance.forthcoming {
        return false;
    }
    match role {
        Role::Primary => {
            nodes.contains(&instance.primary) && (purpose != Purpose::Reboot || instance.uses_memory())
        }
        Role::Secondary => {
            purpose != Purpose::Reboot
                && instance.template == DiskTemplate::Drbd
                && instance.secondary.is_some_and(|s| nodes.contains(&s))
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_step_can_be_made_after_those_before_it((recipe, bits, options) in questions()) {
        let (mut replay, after, leaving, plan) = drained(&recipe, bits, options);
        for step in plan.steps.iter().map(|s| &s.step) {
            let instance = replay.instance(step.instance);
            prop_assert_eq!(step.from, (instance.primary, instance.secondary));
            // If rules are already broken, moves that make nothing worse are accepted.
            let outcome = Probe::new(&replay, step.instance).judge(step.mov, true);
            prop_assert!(outcome.is_ok(), "{:?}: {:?}", step, outcome);
            let outcome = outcome.unwrap();
            prop_assert_eq!(step.to, (outcome.primary, outcome.secondary));
            let target = step.mov.target().or(step.from.1).unwrap();
            // An instance that is down can start on a node that it has to leave later.
            let is_rescue = step.mov == Move::Failover && !replay.node(step.from.0).readable();
            prop_assert!(replay.node(target).online() && (is_rescue || !leaving.contains(&target)));
            prop_assert!(options.disk_moves || matches!(step.mov, Move::Failover | Move::FailoverTo(_)));
            replay.apply(step.instance, &outcome);
        }
        prop_assert_eq!(&replay.states, &after.states);
        prop_assert_eq!(&replay.instances, &after.instances);
    }

    #[test]
    fn what_is_left_on_the_nodes_is_what_is_said_to_stay((recipe, bits, options) in questions()) {
        let (_, after, leaving, plan) = drained(&recipe, bits, options);
        for role in [Role::Primary, Role::Secondary] {
            for index in after.instance_indices() {
                let left = concerned(&after, index, role, &leaving, options.purpose);
                let named = plan.stays.iter().filter(|s| s.instance == index && s.role == role).count();
                prop_assert_eq!(named, usize::from(left), "{:?} {:?}", index, role);
            }
        }
        for index in after.instance_indices() {
            let instance = after.instance(index);
            let there = instance.forthcoming && instance.involved_nodes().any(|n| leaving.contains(&n));
            prop_assert_eq!(plan.planned.contains(&index), there && options.purpose != Purpose::Reboot);
        }
    }

    #[test]
    fn what_stays_for_lack_of_room_is_refused_everywhere((recipe, bits, options) in questions()) {
        let (_, after, leaving, plan) = drained(&recipe, bits, options);
        for stay in &plan.stays {
            let Obstacle::Refused(refusals) = &stay.obstacle else { continue };
            let instance = after.instance(stay.instance);
            let probe = Probe::new(&after, stay.instance);
            let refused = |mov| probe.judge(mov, options.ignore_soft_errors).is_err();
            let free = |n: &NodeIdx| {
                after.node(*n).online()
                    && !leaving.contains(n)
                    && after.node(*n).group == after.node(instance.primary).group
                    && *n != instance.primary
                    && Some(*n) != instance.secondary
            };
            if let Some((secondary, mode)) = refusals.failover {
                prop_assert_eq!(Some(secondary), instance.secondary);
                prop_assert_eq!(probe.judge(Move::Failover, options.ignore_soft_errors), Err(mode));
            }
            let readable = after.node(instance.primary).readable();
            let kinds: &[fn(NodeIdx) -> Move] = match (stay.role, instance.template) {
                (Role::Primary, DiskTemplate::Drbd) if refusals.targets.total() == 0 => &[],
                // Nothing is copied from a dead node.
                (_, DiskTemplate::Drbd) if !readable => &[Move::ReplacePrimary],
                (Role::Secondary, _) => &[Move::ReplaceSecondary],
                (Role::Primary, DiskTemplate::Drbd) => &[Move::ReplaceAndFailover],
                (Role::Primary, _) => &[Move::FailoverTo],
            };
            let mut judged = 0;
            for target in after.node_indices().filter(free) {
                for kind in kinds {
                    prop_assert!(refused(kind(target)), "{:?} could go to {:?}", stay, target);
                    judged += 1;
                }
            }
            prop_assert_eq!(refusals.targets.total(), judged);
        }
    }

    #[test]
    fn draining_breaks_nothing_that_was_in_order((recipe, bits, options) in questions()) {
        prop_assume!(!options.ignore_soft_errors && options.purpose != Purpose::Lost);
        // All nodes are online, because instances on offline nodes are moved by force.
        let (before, after, leaving, _) = drained(&recipe.online(), bits, options);
        for index in after.node_indices().filter(|n| !leaving.contains(n)) {
            let (node, was, is) = (after.node(index), before.figures(index), after.figures(index));
            prop_assert!(!is.fails_n1 || was.fails_n1, "node {index:?} fails N+1 now");
            let cpus = |f: &cluster::Figures| f.vcpu_ratio(node) <= node.max_vcpu_ratio;
            prop_assert!(cpus(is) || !cpus(was), "node {index:?} has too many CPUs now");
            let spindles = |f: &cluster::Figures| f.instance_spindles <= node.max_spindles;
            prop_assert!(spindles(is) || !spindles(was), "node {index:?} has too many spindles now");
            prop_assert!(is.free_disk > 0 || was.free_disk <= 0, "node {index:?} is full now");
        }
    }

    #[test]
    fn what_is_down_and_can_start_does_before_any_disk_is_copied((recipe, bits, options) in questions()) {
        let (mut replay, _, leaving, plan) = drained(&recipe, bits, options);
        let starts = |mov: Move| matches!(mov, Move::Failover | Move::FailoverTo(_));
        for step in plan.steps.iter().map(|s| &s.step).take_while(|s| starts(s.mov)) {
            let outcome = Probe::new(&replay, step.instance).judge(step.mov, true).unwrap();
            replay.apply(step.instance, &outcome);
        }
        for index in replay.instance_indices() {
            let instance = replay.instance(index);
            let group = replay.node(instance.primary).group;
            let is_down = instance.uses_memory() && !replay.node(instance.primary).readable();
            if !is_down || !leaving.contains(&instance.primary) {
                continue;
            }
            let usable = |n: &NodeIdx| replay.node(*n).online() && replay.node(*n).group == group;
            let moves: Vec<Move> = match (instance.template.mirror(), instance.secondary) {
                (MirrorClass::Internal, s) => s.filter(usable).map(|_| Move::Failover).into_iter().collect(),
                (MirrorClass::External, _) => {
                    let targets = replay.node_indices().filter(usable).filter(|n| !leaving.contains(n));
                    targets.map(Move::FailoverTo).collect()
                }
                (MirrorClass::None, _) => Vec::new(),
            };
            for mov in moves {
                let outcome = Probe::new(&replay, index).judge(mov, true);
                prop_assert!(outcome.is_err(), "{:?} could start by {:?}", index, mov);
            }
        }
    }

    #[test]
    fn the_health_of_every_step_is_that_of_a_fresh_look((recipe, bits, options) in questions()) {
        let (mut replay, mut after, leaving, plan) = drained(&recipe, bits, options);
        prop_assume!(!leaving.is_empty());
        let group = |n: NodeIdx| replay.node(n).group;
        let concerned = |n: &NodeIdx| leaving.iter().any(|l| group(*l) == group(*n));
        let scope: Vec<NodeIdx> = replay.node_indices().filter(concerned).collect();
        let others: Vec<NodeIdx> = scope.iter().copied().filter(|n| !leaving.contains(n)).collect();
        for step in &plan.steps {
            let outcome = Probe::new(&replay, step.step.instance).judge(step.step.mov, true).unwrap();
            replay.apply(step.step.instance, &outcome);
            let fresh = Health::of(&mut replay, &scope);
            prop_assert_eq!(&step.health.stuck, &fresh.stuck);
            prop_assert_eq!(&step.health.failing_n1, &fresh.failing_n1);
            let score = Health::of(&mut replay, &others).score;
            prop_assert_eq!(step.health.score.to_bits(), score.to_bits());
        }
        prop_assert_eq!(plan.after.stuck, Health::of(&mut after, &others).stuck);
    }
}
