//! Arrangement: a tentative placement of guests. Nodes are taken and released, guests find places, and all of
//! it can be undone.
//!
//! Guests of nodes that aren't taken never move, and taken nodes receive no guests. So the free capacity of
//! all other nodes only shrinks along a plan. If the rules hold at the end of a plan, they hold at every
//! step, in any order of moves.

use cluster::{InstanceIdx, NodeIdx};

use super::cover::{Cover, Covers, News};
use super::stand::{Stand, Status};

/// Number of nodes with enough capacity that are compared for a guest.
const CHOICES: usize = 8;
/// Maximum number of moved guests that are asked to give way to a guest without a place.
const EJECTIONS: usize = 64;
/// Number of obstacles remembered.
const SUSPECTS: usize = 4;
/// Index of the stand's ranking by the scarcest dimension.
const RANKING: usize = 0;

/// Journal entry with the state to restore.
#[derive(Clone, Debug)]
enum Change {
    Shift(InstanceIdx, NodeIdx),
    Status(NodeIdx, Status),
    Cover(NodeIdx, Cover),
}

/// A tentative placement of guests with a journal; see the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Arrangement<'a> {
    pub stand: Stand<'a>,
    covers: Option<Covers<'a>>,
    /// Nodes that had no cover after some attempt, the latest last. They are likely to be the obstacle again,
    /// so they are checked first. This doesn't affect which placements are possible.
    suspects: Vec<NodeIdx>,
    journal: Vec<Change>,
    /// Number of nodes considered for guests so far.
    pub looks: u64,
}

impl<'a> Arrangement<'a> {
    pub fn new(stand: Stand<'a>, covers: Option<Covers<'a>>) -> Self {
        Self { stand, covers, suspects: Vec::new(), journal: Vec::new(), looks: 0 }
    }

    /// Position in the journal for [`Self::rollback`].
    pub fn mark(&self) -> usize {
        self.journal.len()
    }

    pub fn rollback(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some(Change::Shift(guest, from)) => self.stand.shift(guest, from),
                Some(Change::Status(node, was)) => self.stand.status[node.at()] = was,
                Some(Change::Cover(node, was)) => {
                    if let Some(covers) = &mut self.covers {
                        covers.set(&self.stand, node, was);
                    }
                }
                None => return,
            }
        }
    }

    /// Closes a node to guests because it is cleared or waited for. Returns whether redundancy allows it.
    pub fn take(&mut self, node: NodeIdx, status: Status) -> bool {
        self.set_status(node, status);
        self.renew_around(node)
    }

    /// Reopens a taken node and brings its guests back. Returns whether redundancy allows it.
    pub fn release(&mut self, node: NodeIdx) -> bool {
        let ground = self.stand.ground;
        for &guest in &ground.residents[node.at()] {
            self.shift(guest, node);
        }
        self.set_status(node, Status::Open);
        let concerned = self.covers.as_ref().is_some_and(|covers| covers.concerns(&self.stand, node));
        !concerned || self.renew(node, News::Anything)
    }

    /// Moves the guest to the node that it fills best. If no node takes it, another moved guest gives way.
    /// Returns whether it worked; if not, nothing has changed.
    pub fn settle(&mut self, guest: InstanceIdx) -> bool {
        self.find_place(guest, None) || self.eject_for(guest)
    }

    /// Covers of the nodes for which first fit decreasing finds none.
    pub fn hard_covers(&self) -> Vec<(NodeIdx, Cover)> {
        self.covers.as_ref().map(|covers| covers.hard_covers(&self.stand)).unwrap_or_default()
    }

    fn set_status(&mut self, node: NodeIdx, status: Status) {
        let was = std::mem::replace(&mut self.stand.status[node.at()], status);
        self.journal.push(Change::Status(node, was));
    }

    fn shift(&mut self, guest: InstanceIdx, to: NodeIdx) {
        let from = self.stand.place(guest);
        if from != to {
            self.stand.shift(guest, to);
            self.journal.push(Change::Shift(guest, from));
        }
    }

    /// Finds a new cover for the node. Returns whether there is one.
    fn renew(&mut self, node: NodeIdx, news: News) -> bool {
        let Some(covers) = &mut self.covers else { return true };
        if let Some(cover) = covers.find(&self.stand, node, news, &mut self.looks) {
            let was = covers.set(&self.stand, node, cover);
            self.journal.push(Change::Cover(node, was));
            return true;
        }
        self.suspects.retain(|other| *other != node);
        self.suspects.push(node);
        if self.suspects.len() > SUSPECTS {
            self.suspects.remove(0);
        }
        false
    }

    /// Replaces the covers that `changed` spoiled by losing free capacity. Returns whether that worked for
    /// all of them.
    fn renew_around(&mut self, changed: NodeIdx) -> bool {
        let Some(covers) = &self.covers else { return true };
        let suspects = self.suspects.iter().rev().copied();
        let spoilt: Vec<NodeIdx> =
            suspects.filter(|node| covers.is_spoilt(&self.stand, *node, changed)).collect();
        if !spoilt.into_iter().all(|node| self.renew(node, News::Around(changed))) {
            return false;
        }
        let Some(covers) = &self.covers else { return true };
        self.looks += self.stand.ground.nodes.len() as u64;
        let spoilt = covers.spoilt_by(&self.stand, changed);
        spoilt.into_iter().all(|node| self.renew(node, News::Around(changed)))
    }

    /// Moves a guest to a node that takes it, if redundancy allows it. Returns whether it moved.
    fn try_shift(&mut self, guest: InstanceIdx, to: NodeIdx) -> bool {
        let mark = self.mark();
        self.shift(guest, to);
        let Some(covers) = &self.covers else { return true };
        let concerns = covers.concerns(&self.stand, to);
        let untouched = covers.is_untouched_by(&self.stand, guest, to);
        let allowed =
            (!concerns || self.renew(to, News::Arrival(guest))) && (untouched || self.renew_around(to));
        if !allowed {
            self.rollback(mark);
        }
        allowed
    }

    fn find_place(&mut self, guest: InstanceIdx, but: Option<NodeIdx>) -> bool {
        self.choices(guest, but).into_iter().any(|(_, node)| self.try_shift(guest, node))
    }

    /// Nodes that take the guest: those with the least free capacity in the scarcest dimension, ordered by
    /// the capacity left after the move, least first.
    fn choices(&mut self, guest: InstanceIdx, but: Option<NodeIdx>) -> Vec<(f64, NodeIdx)> {
        let (stand, ground) = (&self.stand, self.stand.ground);
        let ranking = stand.ranking(RANKING);
        let size = ground.size(guest).get(ranking.dimension).copied().unwrap_or(0);
        let mut looks = 0;
        let mut choices: Vec<(f64, NodeIdx)> = Vec::with_capacity(CHOICES);
        // A guest that needs nothing can go to an overcommitted node.
        for node in ranking.from(if size == 0 { i64::MIN } else { size }) {
            looks += 1;
            if Some(node) != but && stand.takes(guest, node) {
                let left = stand.free(node).iter().zip(ground.size(guest)).enumerate();
                let left = left.map(|(dimension, (free, size))| ground.worth(dimension, free - size)).sum();
                choices.push((left, node));
                if choices.len() == CHOICES {
                    break;
                }
            }
        }
        self.looks += looks;
        choices.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        choices
    }

    fn eject_for(&mut self, guest: InstanceIdx) -> bool {
        let mut asked = 0;
        let ground = self.stand.ground;
        for node in ground.node_indices() {
            let stand = &self.stand;
            let possible = stand.is_open(node) && stand.receives[node.at()] && ground.may_move(guest, node);
            if !possible || stand.arrivals(node).is_empty() {
                continue;
            }
            let mut others = stand.arrivals(node).to_vec();
            others.sort_unstable();
            for other in others {
                self.looks += 1;
                if !self.would_do(guest, other, node) {
                    continue;
                }
                asked += 1;
                if asked > EJECTIONS {
                    return false;
                }
                let mark = self.mark();
                if self.find_place(other, Some(node))
                    && self.stand.takes(guest, node)
                    && self.try_shift(guest, node)
                {
                    return true;
                }
                self.rollback(mark);
            }
        }
        false
    }

    /// Whether the node would have capacity for the guest without the other one.
    fn would_do(&self, guest: InstanceIdx, other: InstanceIdx, node: NodeIdx) -> bool {
        let (stand, ground) = (&self.stand, self.stand.ground);
        let sizes = ground.size(guest).iter().zip(ground.size(other));
        guest != other
            && sizes.zip(stand.free(node)).all(|((size, theirs), free)| *size == 0 || *size <= free + theirs)
    }
}
