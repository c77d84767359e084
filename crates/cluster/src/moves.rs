//! The six moves of an instance, judged without being applied (HT-moves).

use crate::figures::{Demand, FailMode, Figures, TagEffect};
use crate::ids::{InstanceIdx, NodeIdx};
use crate::outcome::{Change, Outcome};
use crate::state::Cluster;

/// A change of an instance's nodes. Variants are described for an instance on primary p and secondary s, and
/// target t.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// p:s becomes s:p.
    Failover,
    /// p becomes t. For storage that every node can reach.
    FailoverTo(NodeIdx),
    /// p:s becomes p:t.
    ReplaceSecondary(NodeIdx),
    /// p:s becomes t:p. Replaces the secondary, then fails over.
    ReplaceAndFailover(NodeIdx),
    /// p:s becomes t:s. Fails over, replaces the secondary, and fails over again.
    ReplacePrimary(NodeIdx),
    /// p:s becomes s:t. Fails over, then replaces the secondary.
    FailoverAndReplace(NodeIdx),
}

impl Move {
    /// The node that the instance did not use before; `None` for a plain failover.
    pub fn target(self) -> Option<NodeIdx> {
        match self {
            Self::Failover => None,
            Self::FailoverTo(t)
            | Self::ReplaceSecondary(t)
            | Self::ReplaceAndFailover(t)
            | Self::ReplacePrimary(t)
            | Self::FailoverAndReplace(t) => Some(t),
        }
    }
}

/// Figures shared by all moves of one instance, computed once.
#[derive(Clone, Debug)]
pub struct Probe<'a> {
    cluster: &'a Cluster,
    index: InstanceIdx,
    pub demand: Demand,
    pub primary: NodeIdx,
    pub secondary: Option<NodeIdx>,
    /// Figures of the primary without the instance.
    pub primary_without: Figures,
    /// Figures of the secondary without the instance.
    pub secondary_without: Option<Figures>,
}

impl<'a> Probe<'a> {
    pub fn new(cluster: &'a Cluster, index: InstanceIdx) -> Self {
        let instance = cluster.instance(index);
        let demand = instance.demand();
        let (primary, secondary) = (instance.primary, instance.secondary);
        let state = cluster.state(primary);
        let primary_without = state.figures.remove_primary(
            cluster.node(primary),
            &demand,
            state.conflicts_freed(&instance.exclusion_tags),
            instance.location_score + cluster.unmet_wishes(instance, primary),
        );
        let secondary_without = secondary.map(|s| {
            let state = cluster.state(s);
            let reserve = state.reserve_without(primary, demand.reserved_memory);
            state.figures.remove_secondary(cluster.node(s), &demand, reserve)
        });
        Self { cluster, index, demand, primary, secondary, primary_without, secondary_without }
    }

    pub fn index(&self) -> InstanceIdx {
        self.index
    }

    /// Judges a move. `force` is the global option to ignore soft errors.
    pub fn judge(&self, mov: Move, force: bool) -> Result<Outcome, FailMode> {
        match mov {
            Move::Failover => self.failover(force),
            Move::FailoverTo(t) => self.failover_to(t, force),
            Move::ReplaceSecondary(t) => self.replace_secondary(t, force),
            Move::ReplaceAndFailover(t) => self.replace_and_failover(t, force),
            Move::ReplacePrimary(t) => self.replace_primary(t, force),
            Move::FailoverAndReplace(t) => self.failover_and_replace(t, force),
        }
    }

    fn offline(&self, node: NodeIdx) -> bool {
        self.cluster.node(node).offline
    }

    fn mirror(&self) -> Result<(NodeIdx, Figures), FailMode> {
        self.secondary.zip(self.secondary_without).ok_or(FailMode::Internal)
    }

    fn may_migrate(&self, from: NodeIdx, to: NodeIdx) -> Result<(), FailMode> {
        if self.cluster.migration_allowed(from, to) { Ok(()) } else { Err(FailMode::Migration) }
    }

    /// Location score counted on the primary: shared location tags plus unmet desired locations.
    fn counted_location(&self, shared: i64, primary: NodeIdx) -> i64 {
        shared + self.cluster.unmet_wishes(self.cluster.instance(self.index), primary)
    }

    fn tag_effect(&self, node: NodeIdx) -> TagEffect {
        self.cluster.state(node).tag_effect(&self.cluster.instance(self.index).exclusion_tags)
    }

    fn as_primary(
        &self,
        node: NodeIdx,
        figures: &Figures,
        shared: i64,
        force: bool,
    ) -> Result<Figures, FailMode> {
        let location = self.counted_location(shared, node);
        figures.add_primary(self.cluster.node(node), &self.demand, self.tag_effect(node), location, force)
    }

    fn as_secondary(
        &self,
        node: NodeIdx,
        figures: &Figures,
        peer: NodeIdx,
        force: bool,
        ignore_disk: bool,
    ) -> Result<Figures, FailMode> {
        let reserved = self.cluster.state(node).reserved_for(peer);
        figures.add_secondary(self.cluster.node(node), &self.demand, reserved, force, ignore_disk)
    }

    fn failover(&self, force: bool) -> Result<Outcome, FailMode> {
        let (p, (s, without)) = (self.primary, self.mirror()?);
        let shared = self.cluster.instance(self.index).location_score;
        let dead = self.offline(p);
        self.may_migrate(p, s)?;
        let new_s = self.as_primary(s, &without, shared, dead || force)?;
        let new_p = self.as_secondary(p, &self.primary_without, s, dead || force, dead)?;
        let changes = [Change { node: p, figures: new_p }, Change { node: s, figures: new_s }];
        Ok(Outcome::two(changes, s, Some(p), shared))
    }

    fn failover_to(&self, t: NodeIdx, force: bool) -> Result<Outcome, FailMode> {
        let p = self.primary;
        let shared = self.cluster.instance(self.index).location_score;
        self.may_migrate(p, t)?;
        let new_t = self.as_primary(t, self.cluster.figures(t), shared, self.offline(p) || force)?;
        let arrived = Change { node: t, figures: new_t };
        if t == p {
            // A restart on the same node: the addition counts, the removal doesn't.
            return Ok(Outcome::one(arrived, t, self.secondary, shared));
        }
        let left = Change { node: p, figures: self.primary_without };
        Ok(Outcome::two([arrived, left], t, self.secondary, shared))
    }

    fn replace_secondary(&self, t: NodeIdx, force: bool) -> Result<Outcome, FailMode> {
        let (p, (s, without)) = (self.primary, self.mirror()?);
        let shared = self.cluster.shared_locations(p, t);
        let new_t = self.as_secondary(t, self.cluster.figures(t), p, self.offline(s) || force, false)?;
        // The tags present on the primary are the instance's own. Forced placement doesn't check them.
        let instance = self.cluster.instance(self.index);
        let freed = self.cluster.state(p).conflicts_freed(&instance.exclusion_tags);
        let tags = TagEffect { present: false, conflicts: freed };
        let location = self.counted_location(shared, p);
        let new_p =
            self.primary_without.add_primary(self.cluster.node(p), &self.demand, tags, location, true)?;
        let changes = [
            Change { node: p, figures: new_p },
            Change { node: s, figures: without },
            Change { node: t, figures: new_t },
        ];
        Ok(Outcome::three(changes, p, Some(t), shared))
    }

    fn replace_and_failover(&self, t: NodeIdx, force: bool) -> Result<Outcome, FailMode> {
        let (p, (s, without)) = (self.primary, self.mirror()?);
        let shared = self.cluster.shared_locations(t, p);
        self.may_migrate(p, t)?;
        let new_t = self.as_primary(t, self.cluster.figures(t), shared, force)?;
        let new_p = self.as_secondary(p, &self.primary_without, t, self.offline(s) || force, false)?;
        let changes = [
            Change { node: p, figures: new_p },
            Change { node: s, figures: without },
            Change { node: t, figures: new_t },
        ];
        Ok(Outcome::three(changes, t, Some(p), shared))
    }

    fn replace_primary(&self, t: NodeIdx, force: bool) -> Result<Outcome, FailMode> {
        let (p, (s, without)) = (self.primary, self.mirror()?);
        let shared = self.cluster.shared_locations(t, s);
        let force = self.offline(p) || force;
        self.may_migrate(p, s)?;
        self.may_migrate(s, t)?;
        // The instance temporarily runs on the secondary. This must be feasible, and it affects the last bits
        // of the load figures.
        let between = self.as_primary(s, &without, shared, force)?;
        let between = between.remove_primary(
            self.cluster.node(s),
            &self.demand,
            self.tag_effect(s).conflicts,
            self.counted_location(shared, s),
        );
        let new_t = self.as_primary(t, self.cluster.figures(t), shared, force)?;
        let new_s = self.as_secondary(s, &between, t, force, false)?;
        let changes = [
            Change { node: p, figures: self.primary_without },
            Change { node: s, figures: new_s },
            Change { node: t, figures: new_t },
        ];
        Ok(Outcome::three(changes, t, Some(s), shared))
    }

    fn failover_and_replace(&self, t: NodeIdx, force: bool) -> Result<Outcome, FailMode> {
        let (p, (s, without)) = (self.primary, self.mirror()?);
        let shared = self.cluster.shared_locations(s, t);
        let force = self.offline(p) || force;
        self.may_migrate(p, s)?;
        let new_s = self.as_primary(s, &without, shared, force)?;
        let new_t = self.as_secondary(t, self.cluster.figures(t), s, force, false)?;
        let changes = [
            Change { node: p, figures: self.primary_without },
            Change { node: s, figures: new_s },
            Change { node: t, figures: new_t },
        ];
        Ok(Outcome::three(changes, s, Some(t), shared))
    }
}
