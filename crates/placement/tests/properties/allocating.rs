//! Allocation must find the same result as trying every node, or pair of nodes, by the formulas' definitions.

use std::collections::BTreeMap;

use cluster::{Cluster, Figures, Instance, InstanceIdx, NodeIdx, TagId};
use placement::allocate::{AllocOptions, Allocator, Scope, Targets};
use placement::board::Board;
use placement::redundancy::{Tentative, by_simulation};
use placement::score::{COMPONENTS, Counts, DEVIATIONS, LANE_COMPONENT, row};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{Recipe, cases, recipes};

/// Sums and variances, updated by exchanging one value after another (HT-score).
#[derive(Clone)]
struct Incremental {
    n: f64,
    sums: [f64; DEVIATIONS],
    variances: [f64; DEVIATIONS],
    counts: Counts,
    located: BTreeMap<(TagId, TagId), i64>,
}

impl Incremental {
    fn new(cluster: &Cluster) -> Self {
        let online: Vec<NodeIdx> = cluster.node_indices().filter(|n| cluster.node(*n).online()).collect();
        let n = online.len() as f64;
        let (mut sums, mut variances) = ([0.0; DEVIATIONS], [0.0; DEVIATIONS]);
        for lane in 0..DEVIATIONS {
            let values: Vec<f64> =
                online.iter().map(|i| row(cluster.node(*i), cluster.figures(*i))[lane]).collect();
            sums[lane] = values.iter().fold(0.0, |sum, x| sum + x);
            let mean = sums[lane] / n;
            variances[lane] = values.iter().fold(0.0, |sum, x| sum + (x - mean) * (x - mean)) / n;
        }
        let mut counts = Counts::default();
        let mut located = BTreeMap::new();
        for index in cluster.node_indices() {
            counts =
                counts.replace(&Counts::default(), &Counts::of(cluster.node(index), cluster.figures(index)));
            for (pair, count) in &cluster.state(index).located_tags {
                if cluster.node(index).online() {
                    *located.entry(*pair).or_insert(0) += count;
                }
            }
        }
        Self { n, sums, variances, counts, located }
    }

    fn exchange(&mut self, cluster: &Cluster, index: NodeIdx, new: &Figures) {
        let (node, old) = (cluster.node(index), cluster.figures(index));
        self.counts = self.counts.replace(&Counts::of(node, old), &Counts::of(node, new));
        if node.offline {
            return;
        }
        let (old, new) = (row(node, old), row(node, new));
        for lane in 0..DEVIATIONS {
            let (x, y, n) = (old[lane], new[lane], self.n);
            let ds = y - x;
            let dss = y * y - x * x;
            let dnn = (n * dss - 2.0 * self.sums[lane] * ds) - ds * ds;
            self.sums[lane] += ds;
            self.variances[lane] = f64::max(0.0, self.variances[lane] + dnn / (n * n));
        }
    }

    fn locate(&mut self, cluster: &Cluster, instance: &Instance, primary: NodeIdx) {
        for location in &cluster.node(primary).locations {
            for tag in instance.exclusion_tags.iter().filter(|_| !instance.forthcoming) {
                *self.located.entry((*location, *tag)).or_insert(0) += 1;
            }
        }
    }

    fn score(&self) -> f64 {
        let c = &self.counts;
        let mut values = [0.0; 20];
        for (lane, component) in LANE_COMPONENT.into_iter().enumerate() {
            values[component] = self.variances[lane].sqrt();
        }
        let located: i64 = self.located.values().map(|count| count - 1).sum();
        for (component, count) in [
            (2, c.n1),
            (4, c.offline_all),
            (5, c.offline_primaries),
            (11, c.tag_conflicts),
            (17, c.location),
            (18, located),
        ] {
            values[component] = count as f64;
        }
        values[19] = self.sums[2];
        COMPONENTS.iter().zip(values).fold(0.0, |total, (component, value)| total + component.weight * value)
    }
}

/// A possible placement: score and nodes.
type Found = (f64, Vec<NodeIdx>);

/// All ordered pairs of online nodes of the same group.
fn pairs_of(cluster: &Cluster) -> Vec<(NodeIdx, NodeIdx)> {
    let usable = || cluster.node_indices().filter(|n| cluster.node(*n).online());
    let suits = |p: NodeIdx, s: NodeIdx| p != s && cluster.node(p).group == cluster.node(s).group;
    usable().flat_map(|p| usable().filter(move |s| suits(p, *s)).map(move |s| (p, s))).collect()
}

fn all_pairs(cluster: &mut Cluster, instance: &Instance, check: bool) -> Option<Found> {
    let demand = instance.demand();
    let start = Incremental::new(cluster);
    let mut best: Option<Found> = None;
    for (p, s) in pairs_of(cluster) {
        let (primary, node) = (cluster.state(p), cluster.node(p));
        if cluster.group(node.group).policy.check(instance, node.exclusive_storage).is_err() {
            continue;
        }
        let tags = primary.tag_effect(&instance.exclusion_tags);
        let shared = cluster.shared_locations(p, s);
        let location = cluster.unmet_wishes(instance, p) + shared;
        let Ok(first) = primary.figures.add_primary(node, &demand, tags, location, false) else {
            continue;
        };
        let reserved = cluster.state(s).reserved_for(p);
        let other = cluster.figures(s);
        let Ok(second) = other.add_secondary(cluster.node(s), &demand, reserved, false, false) else {
            continue;
        };
        let mut statistics = start.clone();
        statistics.exchange(cluster, p, &first);
        statistics.exchange(cluster, s, &second);
        statistics.locate(cluster, instance, p);
        let changes =
            [cluster::Change { node: p, figures: first }, cluster::Change { node: s, figures: second }];
        let outcome = cluster::Outcome::two(changes, p, Some(s), shared);
        if check && !all_evacuable(cluster, instance, &outcome) {
            continue;
        }
        let score = statistics.score();
        if best.as_ref().is_none_or(|(least, _)| score <= *least) {
            best = Some((score, vec![p, s]));
        }
    }
    best
}

fn all_evacuable(cluster: &mut Cluster, instance: &Instance, outcome: &cluster::Outcome) -> bool {
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    let number = InstanceIdx::from_usize(cluster.instances.len());
    let undo = cluster.add(instance.clone(), outcome);
    let tentative = Some(Tentative { instance: number, hidden: None, existing: None });
    let all = nodes.iter().all(|n| by_simulation(cluster, &nodes, *n, tentative));
    cluster.undo(undo);
    all
}

/// Scores each target by adding the instance and building a new board.
fn all_singles(cluster: &mut Cluster, instance: &Instance, targets: &[NodeIdx]) -> Option<Found> {
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    let mut best: Option<Found> = None;
    for &index in targets {
        let (state, node) = (cluster.state(index), cluster.node(index));
        if cluster.group(node.group).policy.check(instance, node.exclusive_storage).is_err() {
            continue;
        }
        let tags = state.tag_effect(&instance.exclusion_tags);
        let location = cluster.unmet_wishes(instance, index);
        let added = state.figures.add_primary(node, &instance.demand(), tags, location, false);
        let Ok(figures) = added else { continue };
        let outcome = cluster::Outcome::one(cluster::Change { node: index, figures }, index, None, 0);
        let undo = cluster.add(instance.clone(), &outcome);
        let score = Board::new(cluster, &nodes).score();
        cluster.undo(undo);
        if best.as_ref().is_none_or(|(least, _)| score <= *least) {
            best = Some((score, vec![index]));
        }
    }
    best
}

/// A cluster and a new instance like one of its own.
fn request(recipe: &Recipe, pick: Index, drbd: bool) -> (Cluster, Instance) {
    let cluster = recipe.build();
    let mut instance = cluster.instances[pick.index(cluster.instances.len())].clone();
    instance.location_score = 0;
    instance.secondary = None;
    if drbd {
        instance.template = cluster::DiskTemplate::Drbd;
    } else if instance.template == cluster::DiskTemplate::Drbd {
        instance.template = cluster::DiskTemplate::Plain;
    }
    instance.spindle_use = instance.spindle_use.max(1);
    (cluster, instance)
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn the_best_pair_is_that_of_trying_all_pairs(recipe in recipes(), pick: Index, check: bool, tie: bool) {
        let recipe = if tie { recipe.alike() } else { recipe };
        let (mut cluster, instance) = request(&recipe, pick, true);
        let options = AllocOptions { ignore_soft_errors: false, capacity_checks: check };
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        if let Ok(targets) = Targets::new(&cluster, &nodes, 2, None) {
            let scope = Scope::cluster(&cluster);
            let allocator = Allocator::new(&mut cluster, &scope, options);
            let trials = allocator.try_all(&mut cluster, &instance, &targets);
            let expected = all_pairs(&mut cluster, &instance, check);
            let tried = pairs_of(&cluster).len();
            let found = trials.best.map(|best| (best.score.to_bits(), best.nodes()));
            prop_assert_eq!(found, expected.map(|(score, nodes)| (score.to_bits(), nodes)));
            if !check {
                prop_assert_eq!(trials.successes + trials.failures.total(), tried as u64);
            }
        }
    }

    #[test]
    fn the_best_node_is_that_of_trying_all_nodes(recipe in recipes(), pick: Index, tie: bool) {
        let recipe = if tie { recipe.alike() } else { recipe };
        let (mut cluster, instance) = request(&recipe, pick, false);
        let options = AllocOptions { ignore_soft_errors: false, capacity_checks: false };
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        if let Ok(targets) = Targets::new(&cluster, &nodes, 1, None) {
            let scope = Scope::cluster(&cluster);
            let allocator = Allocator::new(&mut cluster, &scope, options);
            let trials = allocator.try_all(&mut cluster, &instance, &targets);
            let Targets::Single(single) = &targets else { panic!("one node makes single targets") };
            let expected = all_singles(&mut cluster, &instance, single);
            let found = trials.best.map(|best| (best.score.to_bits(), best.nodes()));
            prop_assert_eq!(found, expected.map(|(score, nodes)| (score.to_bits(), nodes)));
            prop_assert_eq!(trials.successes + trials.failures.total(), single.len() as u64);
        }
    }
}
