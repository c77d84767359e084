//! Who would be where: nodes are taken and released, guests find places, and all of it can be undone.
//!
//! Guests of nodes that are not taken never move, and nodes that are taken receive nobody. So the room of the others
//! only shrinks along a plan, and a plan whose end keeps the rules keeps them at every step, in whatever order.

use cluster::{InstanceIdx, NodeIdx};

use super::cover::{Cover, Covers, News};
use super::stand::{Stand, Status};

/// So many nodes with room are compared for a guest.
const CHOICES: usize = 8;
/// So many guests that were moved before are asked to give way to one that finds no place.
const EJECTIONS: usize = 64;
/// So many obstacles are remembered.
const SUSPECTS: usize = 4;
/// Which ranking of the stand is by the scarcest dimension.
const RANKING: usize = 0;

/// What was done, as it is undone.
#[derive(Clone, Debug)]
enum Change {
    Shift(InstanceIdx, NodeIdx),
    Status(NodeIdx, Status),
    Cover(NodeIdx, Cover),
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Arrangement<'a> {
    pub stand: Stand<'a>,
    covers: Option<Covers<'a>>,
    /// Nodes for which there was no cover after something was tried, the latest last: likely to be the obstacle again,
    /// so they are looked at first. What can be done does not depend on it.
    suspects: Vec<NodeIdx>,
    journal: Vec<Change>,
    /// Nodes considered for guests so far.
    pub looks: u64,
}

impl<'a> Arrangement<'a> {
    pub fn new(stand: Stand<'a>, covers: Option<Covers<'a>>) -> Self {
        Self { stand, covers, suspects: Vec::new(), journal: Vec::new(), looks: 0 }
    }

    /// Where [`Self::rollback`] returns to.
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

    /// Closes a node to guests since it is cleared or waited for; whether redundancy allows it.
    pub fn take(&mut self, node: NodeIdx, status: Status) -> bool {
        self.set_status(node, status);
        self.renew_around(node)
    }

    /// Opens a node that was taken, and brings its guests back; whether redundancy allows it.
    pub fn release(&mut self, node: NodeIdx) -> bool {
        let ground = self.stand.ground;
        for &guest in &ground.residents[node.at()] {
            self.shift(guest, node);
        }
        self.set_status(node, Status::Open);
        let concerned = self.covers.as_ref().is_some_and(|covers| covers.concerns(&self.stand, node));
        !concerned || self.renew(node, News::Anything)
    }

    /// Finds the guest a node that takes it, the one it fills best; if there is none, another guest that was moved
    /// gives way. Whether it worked; if not, nothing has changed.
    pub fn settle(&mut self, guest: InstanceIdx) -> bool {
        self.find_place(guest, None) || self.eject_for(guest)
    }

    /// Where the guests of lost nodes would go, for nodes for which first fit decreasing finds nothing.
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

    /// Finds a new cover for the node; whether there is one.
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

    /// Finds new covers where `changed`, which has less room than before, has spoilt them; whether there are any.
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

    /// Moves a guest to a node that takes it, if redundancy allows it.
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

    /// Of the nodes that take the guest, those with the least room in the scarcest dimension; by how much would be
    /// left on them, the least first.
    fn choices(&mut self, guest: InstanceIdx, but: Option<NodeIdx>) -> Vec<(f64, NodeIdx)> {
        let (stand, ground) = (&self.stand, self.stand.ground);
        let ranking = stand.ranking(RANKING);
        let size = ground.size(guest).get(ranking.dimension).copied().unwrap_or(0);
        let mut looks = 0;
        let mut choices: Vec<(f64, NodeIdx)> = Vec::with_capacity(CHOICES);
        // Whoever needs nothing may go where there is less than nothing.
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

    /// Whether there would be room for the guest without the other.
    fn would_do(&self, guest: InstanceIdx, other: InstanceIdx, node: NodeIdx) -> bool {
        let (stand, ground) = (&self.stand, self.stand.ground);
        let sizes = ground.size(guest).iter().zip(ground.size(other));
        guest != other
            && sizes.zip(stand.free(node)).all(|((size, theirs), free)| *size == 0 || *size <= free + theirs)
    }
}
