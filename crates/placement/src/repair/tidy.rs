//! Shortens a plan: no instance moves twice without need.

use cluster::{Instance, InstanceIdx, MirrorClass, Move, NodeIdx};

use super::Site;
use super::violations::Measure;

/// Instances and their moves, in order.
type Plan = Vec<(InstanceIdx, Move)>;

/// Primary and secondary of an instance.
type Place = (NodeIdx, Option<NodeIdx>);

/// Shortens a plan that leads from `start` to `reached` without ending up worse.
///
/// Of two moves of the same instance, either one is dropped, both are merged into one, or both are dropped.
pub(super) fn tidy(start: &Site, plan: &mut Plan, reached: Measure) {
    let mut reached = reached;
    while let Some((shorter, measure)) = shortened(start, plan, reached) {
        *plan = shorter;
        reached = measure;
    }
}

fn shortened(start: &Site, plan: &Plan, reached: Measure) -> Option<(Plan, Measure)> {
    let mut again = pairs(plan);
    again.find_map(|(first, second)| {
        let mut variants = variants(start, plan, first, second);
        if starts_instance(start, plan, first) {
            // Only the later move may be dropped.
            variants.truncate(1);
        }
        variants.into_iter().find_map(|variant| {
            let measure = replay(start, &variant)?;
            (measure <= reached && (start.options.ignore_soft_errors || measure.worsens_nothing(&reached)))
                .then_some((variant, measure))
        })
    })
}

/// Whether a move starts an instance that is down. Such a start must not wait for a copy.
fn starts_instance(start: &Site, plan: &Plan, position: usize) -> bool {
    let index = plan[position].0;
    let earlier = plan[..position].iter().filter(|(other, _)| *other == index).count();
    let places = places(start, plan, index);
    places.and_then(|places| places.get(earlier).copied()).is_some_and(|(p, _)| start.cluster.node(p).offline)
}

/// Positions of each move and the next move of the same instance.
fn pairs(plan: &Plan) -> impl Iterator<Item = (usize, usize)> + '_ {
    plan.iter().enumerate().filter_map(|(first, (instance, _))| {
        let next = plan[first + 1..].iter().position(|(other, _)| other == instance)?;
        Some((first, first + 1 + next))
    })
}

/// Plans without one of the two moves, with one direct move in place of both (early or late), or, if they
/// cancel out, without both.
fn variants(start: &Site, plan: &Plan, first: usize, second: usize) -> Vec<Plan> {
    let without = |left_out: usize, kept: usize, instead: Option<Move>| {
        let mut variant = plan.clone();
        if let Some(mov) = instead {
            variant[kept].1 = mov;
        }
        variant.remove(left_out);
        variant
    };
    let mut all = vec![without(second, first, None), without(first, second, None)];
    let instance = start.cluster.instance(plan[first].0);
    let places = places(start, plan, plan[first].0);
    if let Some((from, to)) = places.and_then(|places| {
        let earlier = plan[..first].iter().filter(|(i, _)| *i == plan[first].0).count();
        Some((*places.get(earlier)?, *places.get(earlier + 2)?))
    }) {
        if let Some(direct) = direct(instance, from, to) {
            all.push(without(second, first, Some(direct)));
            all.push(without(first, second, Some(direct)));
        } else if from == to {
            let mut variant = plan.clone();
            variant.remove(second);
            variant.remove(first);
            all.push(variant);
        }
    }
    all
}

/// Places of an instance: at the start, and after each of its moves.
fn places(start: &Site, plan: &Plan, index: InstanceIdx) -> Option<Vec<Place>> {
    let instance = start.cluster.instance(index);
    let mut place = (instance.primary, instance.secondary);
    let mut all = vec![place];
    for (_, mov) in plan.iter().filter(|(i, _)| *i == index) {
        place = match (*mov, place) {
            (Move::Failover, (p, Some(s))) => (s, Some(p)),
            (Move::ReplaceSecondary(t), (p, _)) => (p, Some(t)),
            (Move::ReplaceAndFailover(t), (p, _)) => (t, Some(p)),
            (Move::FailoverTo(t) | Move::ReplacePrimary(t), (_, s)) => (t, s),
            (Move::FailoverAndReplace(t), (_, Some(s))) => (s, Some(t)),
            (Move::Failover | Move::FailoverAndReplace(_), (_, None)) => return None,
        };
        all.push(place);
    }
    Some(all)
}

/// The single move from one place to another, if one exists.
fn direct(instance: &Instance, from: Place, to: Place) -> Option<Move> {
    if from == to {
        return None;
    }
    if instance.template.mirror() == MirrorClass::External {
        return Some(Move::FailoverTo(to.0));
    }
    let ((p, Some(s)), (new_p, Some(new_s))) = (from, to) else { return None };
    if (new_p, new_s) == (s, p) {
        Some(Move::Failover)
    } else if new_p == p {
        Some(Move::ReplaceSecondary(new_s))
    } else if new_s == p {
        Some(Move::ReplaceAndFailover(new_p))
    } else if new_s == s {
        Some(Move::ReplacePrimary(new_p))
    } else if new_p == s {
        Some(Move::FailoverAndReplace(new_s))
    } else {
        None
    }
}

/// Final measure of a plan, if every move is allowed, possible and an improvement.
fn replay(start: &Site, plan: &Plan) -> Option<Measure> {
    let mut site = start.clone();
    for &(instance, mov) in plan {
        let allowed = site.moves(instance).any(|m| m == mov);
        let before = site.gauge.measure();
        if !allowed || site.make(instance, mov).is_none() {
            return None;
        }
        let now = site.gauge.measure();
        if now >= before || !(site.options.ignore_soft_errors || now.worsens_nothing(&before)) {
            return None;
        }
    }
    Some(site.gauge.measure())
}

#[cfg(test)]
mod tests {
    use cluster::{Cluster, DiskTemplate, Group, GroupIdx, LoadOptions, Node, Policy};

    use super::*;
    use crate::balance::BalanceOptions;

    /// One node per list of tags, of which the first `offline` nodes are offline, and a mirrored instance on
    /// the first two.
    fn site(tags: &[&[&str]], offline: usize) -> Site {
        let node = |(position, tags): (usize, &&[&str])| Node {
            total_memory: 16384.0,
            reported_free_memory: if position == 0 { 15360 } else { 16384 },
            total_disk: 100_000.0,
            reported_free_disk: 90_000,
            total_cpus: 8.0,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            offline: position < offline,
            ..Node::new(format!("n{position}"), GroupIdx(0))
        };
        let instance = Instance {
            memory: 1024,
            disk: 1024,
            vcpus: 1,
            secondary: Some(NodeIdx(1)),
            ..Instance::new("i", DiskTemplate::Drbd, NodeIdx(0))
        };
        let nodes: Vec<Node> = tags.iter().enumerate().map(node).collect();
        let indices: Vec<NodeIdx> = (0..nodes.len()).map(NodeIdx::from_usize).collect();
        let rules = vec!["htools:nlocation:rack".to_owned()];
        let policy = Policy::default();
        let loaded = Cluster::load(
            vec![Group::new("g", "u")],
            nodes,
            vec![instance],
            rules,
            policy,
            &LoadOptions::default(),
        );
        let (cluster, _) = loaded.expect("the options select nothing");
        Site::new(cluster, &indices, &[InstanceIdx(0)], BalanceOptions::default())
    }

    fn tidied(start: &Site, moves: &[Move]) -> Vec<Move> {
        let mut plan: Plan = moves.iter().map(|mov| (InstanceIdx(0), *mov)).collect();
        let reached = replay(start, &plan).expect("every move makes something better");
        tidy(start, &mut plan, reached);
        plan.into_iter().map(|(_, mov)| mov).collect()
    }

    #[test]
    fn what_is_down_starts_before_its_mirror_is_made() {
        let start = site(&[&[], &[], &[]], 1);
        let moves = [Move::Failover, Move::ReplaceSecondary(NodeIdx(2))];
        assert_eq!(tidied(&start, &moves), moves);
    }

    #[test]
    fn a_detour_is_left_out() {
        let start = site(&[&["rack:a", "rack:b"], &["rack:a", "rack:b"], &["rack:a"], &[]], 0);
        let moves = [Move::ReplaceSecondary(NodeIdx(2)), Move::ReplaceSecondary(NodeIdx(3))];
        assert_eq!(tidied(&start, &moves), [Move::ReplaceSecondary(NodeIdx(3))]);
    }

    #[test]
    fn two_moves_stay_where_no_single_one_changes_both_nodes() {
        let start = site(&[&[], &[], &[], &[]], 2);
        let moves = [Move::ReplaceSecondary(NodeIdx(2)), Move::ReplacePrimary(NodeIdx(3))];
        assert_eq!(tidied(&start, &moves), moves);
    }

    #[test]
    fn the_single_move_between_two_places_is_found_again() {
        let start = site(&[&[], &[], &[]], 0);
        let instance = start.cluster.instance(InstanceIdx(0));
        let target = NodeIdx(2);
        for mov in [
            Move::Failover,
            Move::ReplaceSecondary(target),
            Move::ReplaceAndFailover(target),
            Move::ReplacePrimary(target),
            Move::FailoverAndReplace(target),
        ] {
            let places =
                places(&start, &vec![(InstanceIdx(0), mov)], InstanceIdx(0)).expect("it is mirrored");
            assert_eq!(direct(instance, places[0], places[1]), Some(mov));
        }
    }
}
