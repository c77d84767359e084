//! Redundancy: where the guests of a lost node would go.
//!
//! A *cover* of a node assigns another node to each of its guests. It stays valid until a node that it uses
//! has less free capacity or receives a guest that excludes one of the cover's. During the search, covers are
//! scattered over all nodes so that a move spoils few of them, and `claim` tells when it spoils none. The
//! final criterion is first fit decreasing.

use std::cmp::Reverse;

use cluster::{InstanceIdx, NodeIdx};

use super::ground::Ground;
use super::request::NPlusOne;
use super::stand::{Stand, Status};

/// Destination of each guest of a node if the node is lost.
pub(super) type Cover = Vec<(InstanceIdx, NodeIdx)>;

/// Change relevant to a node since its cover was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum News {
    /// Any change; invalidates the whole cover.
    Anything,
    /// A node lost some or all of its free capacity.
    Around(NodeIdx),
    /// A guest arrived. If it was there before, its old place can have changed in the meantime.
    Arrival(InstanceIdx),
}

impl News {
    /// Whether the change leaves this place of a guest valid.
    fn leaves(self, (guest, to): (InstanceIdx, NodeIdx)) -> bool {
        match self {
            Self::Anything => false,
            Self::Around(changed) => to != changed,
            Self::Arrival(newcomer) => guest != newcomer,
        }
    }
}

/// Index of the stand's ranking by the first dimension of redundancy.
const RANKING: usize = 1;

/// The redundancy rule of a request.
#[derive(Clone, Debug)]
pub(super) struct Redundancy {
    dimensions: Vec<usize>,
    /// By node: whether it is one of the nodes that take over each other's guests.
    member: Vec<bool>,
    /// By node: whether it had no cover before the plan.
    exempt: Vec<bool>,
}

impl Redundancy {
    /// The rule for the given state before the plan.
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

    pub fn exempt(&self) -> &[bool] {
        &self.exempt
    }

    /// Whether the node must have a cover.
    fn concerns(&self, stand: &Stand<'_>, node: NodeIdx) -> bool {
        let there = matches!(stand.status[node.at()], Status::Open | Status::Waited);
        self.member[node.at()] && !self.exempt[node.at()] && there
    }

    /// Cover by first fit decreasing: the largest guest first, each to the node with the most free capacity
    /// that takes it in addition to the guests before it.
    fn cover(&self, stand: &Stand<'_>, node: NodeIdx, looks: &mut u64) -> Option<Cover> {
        let roomiest = |least| stand.ranking(RANKING).from(least).rev();
        self.complete(stand, (node, Cover::new()), roomiest, looks)
    }

    /// Completes a node's cover. The largest guest without a place comes first. Each guest goes to the first
    /// node that takes it in addition to the guests before it, out of the nodes with enough capacity in the
    /// first dimension, in the order given by `among`.
    fn complete<I: Iterator<Item = NodeIdx>>(
        &self,
        stand: &Stand<'_>,
        (node, mut cover): (NodeIdx, Cover),
        among: impl Fn(i64) -> I,
        looks: &mut u64,
    ) -> Option<Cover> {
        // Starting a cover costs some work too.
        *looks += 10 + 2 * stand.ground.residents[node.at()].len() as u64;
        for guest in self.displaced(stand, node, &cover) {
            let size = stand.ground.size(guest)[self.dimensions[0]];
            // A guest that needs nothing can go to an overcommitted node.
            let to = among(if size == 0 { i64::MIN } else { size }).find(|to| {
                *looks += 1;
                *to != node && self.stands_in(stand, &cover, guest, *to)
            })?;
            cover.push((guest, to));
        }
        Some(cover)
    }

    /// Guests of a node without a place in the cover, largest first.
    fn displaced(&self, stand: &Stand<'_>, node: NodeIdx, cover: &Cover) -> Vec<InstanceIdx> {
        let has_place = |guest: &InstanceIdx| cover.iter().any(|(other, _)| other == guest);
        let mut guests: Vec<InstanceIdx> = stand.guests_on(node).filter(|guest| !has_place(guest)).collect();
        guests.sort_unstable_by_key(|guest| (Reverse(stand.ground.size(*guest)[self.dimensions[0]]), *guest));
        guests
    }

    /// Completes a node's cover by trying all destinations. Returns whether one was found; `None` if the
    /// looks run out first.
    fn complete_somehow(
        &self,
        stand: &Stand<'_>,
        node: NodeIdx,
        cover: &mut Cover,
        looks: &mut impl FnMut(u64) -> bool,
    ) -> Option<bool> {
        let Some(&guest) = self.displaced(stand, node, cover).first() else { return Some(true) };
        for to in stand.ground.node_indices().filter(|to| *to != node) {
            if !looks(1) {
                return None;
            }
            if self.stands_in(stand, cover, guest, to) {
                cover.push((guest, to));
                if self.complete_somehow(stand, node, cover, looks)? {
                    return Some(true);
                }
                cover.pop();
            }
        }
        Some(false)
    }

    /// Whether a node would take the guest in addition to those that `cover` sends there.
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

    /// Whether the part of a cover that uses `changed` is valid in the current state. Guests that have left
    /// the node need no place.
    fn is_good_at(&self, stand: &Stand<'_>, node: NodeIdx, cover: &Cover, changed: NodeIdx) -> bool {
        let mut before = Cover::new();
        for &(guest, to) in cover.iter().filter(|(guest, to)| *to == changed && stand.place(*guest) == node) {
            if !self.stands_in(stand, &before, guest, to) {
                return false;
            }
            before.push((guest, to));
        }
        true
    }

    /// Nodes that must have a cover but for which first fit decreasing finds none.
    fn hard<'s>(&'s self, stand: &'s Stand<'_>, looks: &'s mut u64) -> impl Iterator<Item = NodeIdx> + 's {
        let concerned = stand.ground.node_indices().filter(|node| self.concerns(stand, *node));
        concerned.filter(|node| self.cover(stand, *node, looks).is_none())
    }

    /// Covers that first fit decreasing doesn't find, found by trying all destinations. `None` if a node has
    /// no cover or if `looks`, which is told of every look, stops the search by returning false.
    pub fn hard_covers(
        &self,
        stand: &Stand<'_>,
        mut looks: impl FnMut(u64) -> bool,
    ) -> Option<Vec<(NodeIdx, Cover)>> {
        let mut easy = 0;
        let hard: Vec<NodeIdx> = self.hard(stand, &mut easy).collect();
        looks(easy).then_some(())?;
        let mut covers = Vec::new();
        for node in hard {
            let mut cover = Cover::new();
            if !self.complete_somehow(stand, node, &mut cover, &mut looks)? {
                return None;
            }
            covers.push((node, cover));
        }
        Some(covers)
    }
}

/// A cover for each node that must have one, updated while guests move.
#[derive(Clone, Debug)]
pub(super) struct Covers<'a> {
    rule: &'a Redundancy,
    cover: Vec<Cover>,
    /// By node and dimension of the rule: upper bound on the capacity that any single cover claims there.
    claim: Vec<i64>,
}

impl<'a> Covers<'a> {
    pub fn new(rule: &'a Redundancy, stand: &Stand<'_>) -> Self {
        let nodes = stand.ground.nodes.len();
        let mut covers =
            Self { rule, cover: vec![Cover::new(); nodes], claim: vec![0; nodes * rule.dimensions.len()] };
        for node in stand.ground.node_indices().filter(|node| rule.concerns(stand, *node)) {
            // Nodes without a cover are exempt.
            let cover = covers.find(stand, node, News::Anything, &mut 0).unwrap_or_default();
            covers.set(stand, node, cover);
        }
        covers
    }

    /// Stores a cover and returns the previous one.
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

    /// Whether all covers of other nodes certainly stay valid now that the guest has come to `node`.
    pub fn is_untouched_by(&self, stand: &Stand<'_>, guest: InstanceIdx, node: NodeIdx) -> bool {
        let claims = &self.claim[node.at() * self.rule.dimensions.len()..];
        let mut pairs = self.rule.dimensions.iter().zip(claims);
        stand.ground.groups(guest).is_empty() && pairs.all(|(d, claim)| stand.free(node)[*d] >= *claim)
    }

    /// Whether the node has a cover that uses `changed` and is no longer valid.
    pub fn is_spoilt(&self, stand: &Stand<'_>, node: NodeIdx, changed: NodeIdx) -> bool {
        let cover = &self.cover[node.at()];
        node != changed
            && cover.iter().any(|(_, to)| *to == changed)
            && self.rule.concerns(stand, node)
            && !self.rule.is_good_at(stand, node, cover, changed)
    }

    /// All nodes for which [`Self::is_spoilt`] holds.
    pub fn spoilt_by(&self, stand: &Stand<'_>, changed: NodeIdx) -> Vec<NodeIdx> {
        stand.ground.node_indices().filter(|node| self.is_spoilt(stand, *node, changed)).collect()
    }

    /// Whether the node must have a cover.
    pub fn concerns(&self, stand: &Stand<'_>, node: NodeIdx) -> bool {
        self.rule.concerns(stand, node)
    }

    /// Finds a cover of the node in the current state. Keeps the places of the last cover that the news
    /// leaves valid.
    pub fn find(&self, stand: &Stand<'_>, node: NodeIdx, news: News, looks: &mut u64) -> Option<Cover> {
        // Each node starts searching at another position, so that it leaves most nodes to other covers.
        let scattered = |least| stand.ranking(RANKING).around(least, node.0);
        let mut kept = self.cover[node.at()].clone();
        kept.retain(|place| news.leaves(*place) && stand.place(place.0) == node);
        if !kept.is_empty() {
            let found = self.rule.complete(stand, (node, kept), scattered, looks);
            if found.is_some() {
                return found;
            }
        }
        let found = self.rule.complete(stand, (node, Cover::new()), scattered, looks);
        found.or_else(|| self.rule.cover(stand, node, looks))
    }

    /// Stored covers of the nodes for which first fit decreasing finds none.
    pub fn hard_covers(&self, stand: &Stand<'_>) -> Vec<(NodeIdx, Cover)> {
        let at_hand = |node: NodeIdx| {
            let here = |(guest, _): &&(InstanceIdx, NodeIdx)| stand.place(*guest) == node;
            self.cover[node.at()].iter().filter(here).copied().collect()
        };
        self.rule.hard(stand, &mut 0).map(|node| (node, at_hand(node))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clear::{CostWeights, Guest, GuestId, Node, NodeId, Request, Role};

    #[test]
    fn who_comes_back_needs_a_new_place() {
        let node = |id| Node::new(NodeId(id), Role::Receiver, vec![8]);
        let guest = |id, node| Guest::new(GuestId(id), NodeId(node), vec![4]);
        let nodes: Vec<Node> = (0..4).map(node).collect();
        let rule =
            NPlusOne { nodes: nodes.iter().take(3).map(|node| node.id).collect(), dimensions: vec![0] };
        let guests = vec![guest(0, 0), guest(1, 3), guest(2, 3)];
        let weights = CostWeights::default();
        let request = Request { nodes, guests, wanted: 0, n_plus_one: None, weights };
        let ground = Ground::new(&request).unwrap();
        let mut stand = Stand::new(&ground, &[0, 0]);
        let rule = Redundancy::new(&ground, &rule, &stand);
        let covers = Covers::new(&rule, &stand);
        let (traveller, home) = (InstanceIdx(0), NodeIdx(0));
        let [(_, place)] = covers.cover[home.at()][..] else { panic!("one guest has one place") };
        stand.shift(traveller, NodeIdx(3));
        stand.shift(InstanceIdx(1), place);
        stand.shift(InstanceIdx(2), place);
        stand.shift(traveller, home);
        let other = NodeIdx(3 - place.0);
        assert_eq!(
            covers.find(&stand, home, News::Arrival(traveller), &mut 0),
            Some(vec![(traveller, other)])
        );
    }
}
