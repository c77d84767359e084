//! Redundancy: where the guests of a lost node would go.
//!
//! A *cover* of a node gives each of its guests another node. It is found by first fit decreasing, and stays good
//! until a node that it uses has less room, or receives somebody whom a guest must not meet. So a move asks for few
//! covers anew, and `claim` tells when for none.

use std::cmp::Reverse;

use cluster::{InstanceIdx, NodeIdx};

use super::ground::Ground;
use super::request::NPlusOne;
use super::stand::{Stand, Status};

/// Where each guest of a node would go.
pub(super) type Cover = Vec<(InstanceIdx, NodeIdx)>;

/// Which ranking of the stand is by the first dimension of redundancy.
const RANKING: usize = 1;

/// The rule.
#[derive(Clone, Debug)]
pub(super) struct Redundancy {
    dimensions: Vec<usize>,
    /// By node: whether it is one of those that stand in for each other.
    member: Vec<bool>,
    /// By node: whether it had no cover before the plan.
    exempt: Vec<bool>,
}

impl Redundancy {
    /// The rule as it applies where things stand so before the plan.
    pub fn new(ground: &Ground<'_>, asked: &NPlusOne, stand: &Stand<'_>) -> Self {
        let member = ground.nodes.iter().map(|node| asked.nodes.contains(&node.id)).collect();
        let exempt = vec![false; ground.nodes.len()];
        let mut redundancy = Self { dimensions: asked.dimensions.clone(), member, exempt };
        for node in ground.node_indices() {
            redundancy.exempt[node.at()] =
                redundancy.concerns(stand, node) && redundancy.cover(stand, node, &mut 0).is_none();
        }
        redundancy
    }

    /// By node: whether it had no cover before the plan.
    pub fn exempt(&self) -> &[bool] {
        &self.exempt
    }

    /// Whether the node must have a cover.
    fn concerns(&self, stand: &Stand<'_>, node: NodeIdx) -> bool {
        let there = matches!(stand.status[node.at()], Status::Open | Status::Waited);
        self.member[node.at()] && !self.exempt[node.at()] && there
    }

    /// The cover by first fit decreasing: the largest guest first, each to the node with the most room that takes it
    /// beside those before.
    fn cover(&self, stand: &Stand<'_>, node: NodeIdx, looks: &mut u64) -> Option<Cover> {
        let ground = stand.ground;
        let first = self.dimensions[0];
        let mut guests: Vec<InstanceIdx> = stand.guests_on(node).collect();
        guests.sort_unstable_by_key(|guest| (Reverse(ground.size(*guest)[first]), *guest));
        let mut cover = Cover::with_capacity(guests.len());
        for guest in guests {
            let size = ground.size(guest)[first];
            // Whoever needs nothing may go where there is less than nothing.
            let least = if size == 0 { i64::MIN } else { size };
            let mut roomy = stand.ranking(RANKING).from(least).rev();
            let to = roomy.find(|to| {
                *looks += 1;
                *to != node && self.stands_in(stand, &cover, guest, *to)
            })?;
            cover.push((guest, to));
        }
        Some(cover)
    }

    /// Whether a node would take the guest beside those that `cover` sends there.
    fn stands_in(&self, stand: &Stand<'_>, cover: &Cover, guest: InstanceIdx, to: NodeIdx) -> bool {
        let ground = stand.ground;
        if !self.member[to.at()]
            || !stand.is_open(to)
            || !ground.allows(guest, to)
            || stand.excluded(guest, to)
        {
            return false;
        }
        let others = || cover.iter().filter(|(_, node)| *node == to).map(|(other, _)| *other);
        let fits = self.dimensions.iter().all(|dimension| {
            let size = ground.size(guest)[*dimension];
            let taken: i64 = others().map(|other| ground.size(other)[*dimension]).sum();
            size == 0 || size + taken <= stand.free(to)[*dimension]
        });
        let meets = |other| ground.groups(guest).iter().any(|group| ground.groups(other).contains(group));
        fits && !others().any(meets)
    }

    /// Whether a cover is good as things stand; who has left the node needs no cover.
    fn is_good(&self, stand: &Stand<'_>, node: NodeIdx, cover: &Cover) -> bool {
        let mut before = Cover::with_capacity(cover.len());
        for &(guest, to) in cover.iter().filter(|(guest, _)| stand.place(*guest) == node) {
            if !self.stands_in(stand, &before, guest, to) {
                return false;
            }
            before.push((guest, to));
        }
        true
    }

    /// Whether first fit decreasing finds a cover for every node that must have one.
    pub fn holds(&self, stand: &Stand<'_>, looks: &mut u64) -> bool {
        let mut nodes = stand.ground.node_indices();
        nodes.all(|node| !self.concerns(stand, node) || self.cover(stand, node, looks).is_some())
    }
}

/// A cover for each node that must have one, kept while guests move.
#[derive(Clone, Debug)]
pub(super) struct Covers<'a> {
    rule: &'a Redundancy,
    cover: Vec<Cover>,
    /// By node and dimension of the rule: no cover claims more there. May be more than any does.
    claim: Vec<i64>,
}

impl<'a> Covers<'a> {
    pub fn new(rule: &'a Redundancy, stand: &Stand<'_>) -> Self {
        let nodes = stand.ground.nodes.len();
        let mut covers =
            Self { rule, cover: vec![Cover::new(); nodes], claim: vec![0; nodes * rule.dimensions.len()] };
        for node in stand.ground.node_indices().filter(|node| rule.concerns(stand, *node)) {
            // Those that have none are exempt.
            let cover = rule.cover(stand, node, &mut 0).unwrap_or_default();
            covers.set(stand, node, cover);
        }
        covers
    }

    /// Notes a cover, and returns the former one.
    pub fn set(&mut self, stand: &Stand<'_>, node: NodeIdx, cover: Cover) -> Cover {
        for (position, dimension) in self.rule.dimensions.iter().enumerate() {
            for (_, to) in &cover {
                let there = cover.iter().filter(|(_, node)| node == to);
                let sum: i64 = there.map(|(guest, _)| stand.ground.size(*guest)[*dimension]).sum();
                let claim = &mut self.claim[to.at() * self.rule.dimensions.len() + position];
                *claim = sum.max(*claim);
            }
        }
        std::mem::replace(&mut self.cover[node.at()], cover)
    }

    /// After the guest has come to `node`: the nodes whose covers are to be found anew.
    pub fn after_arrival(&self, stand: &Stand<'_>, guest: InstanceIdx, node: NodeIdx) -> Vec<NodeIdx> {
        let claims = &self.claim[node.at() * self.rule.dimensions.len()..];
        let mut enough =
            self.rule.dimensions.iter().zip(claims).map(|(d, claim)| stand.free(node)[*d] >= *claim);
        let untouched = stand.ground.groups(guest).is_empty() && enough.all(|enough| enough);
        let mut stale = if untouched { Vec::new() } else { self.spoilt_at(stand, node) };
        if self.rule.concerns(stand, node) {
            stale.push(node);
        }
        stale
    }

    /// After `node` has changed: the nodes whose covers use it and are no longer good.
    pub fn spoilt_at(&self, stand: &Stand<'_>, node: NodeIdx) -> Vec<NodeIdx> {
        let spoilt = |other: &NodeIdx| {
            let cover = &self.cover[other.at()];
            *other != node
                && cover.iter().any(|(_, to)| *to == node)
                && self.rule.concerns(stand, *other)
                && !self.rule.is_good(stand, *other, cover)
        };
        stand.ground.node_indices().filter(spoilt).collect()
    }

    /// Whether the node must have a cover.
    pub fn concerns(&self, stand: &Stand<'_>, node: NodeIdx) -> bool {
        self.rule.concerns(stand, node)
    }

    /// A cover of the node as things stand.
    pub fn find(&self, stand: &Stand<'_>, node: NodeIdx, looks: &mut u64) -> Option<Cover> {
        self.rule.cover(stand, node, looks)
    }
}
