//! A cluster and what is on its nodes; placements are applied and undone here.

use crate::figures::{Figures, TagEffect};
use crate::group::Group;
use crate::ids::{GroupIdx, InstanceIdx, NodeIdx, TagId};
use crate::instance::Instance;
use crate::names::{LookupError, common_suffix};
use crate::node::Node;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::tags::TagRules;
use crate::tags::{TagTable, common};

/// A location tag together with an exclusion tag.
type LocatedTag = (TagId, TagId);

/// What is on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    /// The numbers that placements are judged by.
    pub figures: Figures,
    /// Primaries, the most recent *last*; forthcoming ones are not listed.
    pub primaries: Vec<InstanceIdx>,
    /// Secondaries, the most recent *last*.
    pub secondaries: Vec<InstanceIdx>,
    /// Memory reserved here for the secondaries of each primary node, MiB.
    pub peers: Vec<(NodeIdx, i64)>,
    /// Exclusion tags of the primaries (forthcoming ones included), with counts above 0.
    pub exclusion_tags: Vec<(TagId, i64)>,
    /// (location tag of the node, exclusion tag of a primary), with counts above 0.
    pub located_tags: Vec<(LocatedTag, i64)>,
}

impl NodeState {
    fn empty(node: &Node) -> Self {
        Self {
            figures: Figures::empty(node),
            primaries: Vec::new(),
            secondaries: Vec::new(),
            peers: Vec::new(),
            exclusion_tags: Vec::new(),
            located_tags: Vec::new(),
        }
    }

    /// Memory reserved for the secondaries of `primary`, MiB.
    #[inline]
    pub fn reserved_for(&self, primary: NodeIdx) -> i64 {
        self.peers.iter().find(|(peer, _)| *peer == primary).map_or(0, |(_, memory)| *memory)
    }

    /// The node's reserve once an instance of `primary` that reserves `memory` is gone.
    #[inline]
    pub fn reserve_without(&self, primary: NodeIdx, memory: i64) -> i64 {
        let before = self.reserved_for(primary);
        if before < self.figures.reserved_memory {
            return self.figures.reserved_memory;
        }
        let others = self.peers.iter().filter(|(peer, _)| *peer != primary).map(|(_, memory)| *memory);
        others.max().unwrap_or(0).max(before - memory).max(0)
    }

    /// What adding a primary with these exclusion tags would do.
    #[inline]
    pub fn tag_effect(&self, tags: &[TagId]) -> TagEffect {
        if tags.is_empty() {
            return TagEffect::default();
        }
        let count = |tag| self.exclusion_tags.iter().find(|(t, _)| *t == tag).map_or(0, |(_, n)| *n);
        let mut effect = TagEffect::default();
        for (position, &tag) in tags.iter().enumerate() {
            let here = count(tag);
            effect.present |= here > 0;
            effect.conflicts += i64::from(here > 0 || tags[..position].contains(&tag));
        }
        effect
    }

    /// How many conflicts go away with a primary that has these exclusion tags.
    #[inline]
    pub fn conflicts_freed(&self, tags: &[TagId]) -> i64 {
        let mut freed = 0;
        for (position, &tag) in tags.iter().enumerate() {
            let here = self.exclusion_tags.iter().find(|(t, _)| *t == tag).map_or(0, |(_, n)| *n);
            let already = tags[..position].iter().filter(|t| **t == tag).count() as i64;
            freed += i64::from(here - already > 1);
        }
        freed
    }

    /// Reserves memory for one more mirror of an instance that runs on `primary`, MiB.
    pub fn reserve_for(&mut self, primary: NodeIdx, memory: i64) {
        match self.peers.iter_mut().find(|(peer, _)| *peer == primary) {
            Some((_, reserved)) => *reserved += memory,
            None => self.peers.push((primary, memory)),
        }
    }

    /// Takes back a reservation of [`Self::reserve_for`].
    pub fn release_for(&mut self, primary: NodeIdx, memory: i64) {
        if let Some(position) = self.peers.iter().position(|(peer, _)| *peer == primary) {
            self.peers[position].1 -= memory;
            if self.peers[position].1 <= 0 {
                self.peers.remove(position);
            }
        }
    }

    /// Counts a primary's exclusion tags `step` times; those of a forthcoming one (not `real`) are not located.
    pub fn count_tags(&mut self, node: &Node, tags: &[TagId], step: i64, real: bool) {
        for &tag in tags {
            bump(&mut self.exclusion_tags, tag, step);
            if real {
                for &location in &node.locations {
                    bump(&mut self.located_tags, (location, tag), step);
                }
            }
        }
    }
}

fn bump<K: PartialEq>(counts: &mut Vec<(K, i64)>, key: K, step: i64) {
    if let Some(position) = counts.iter().position(|(k, _)| *k == key) {
        counts[position].1 += step;
        if counts[position].1 == 0 {
            counts.swap_remove(position);
        }
    } else {
        counts.push((key, step));
    }
}

fn remove_most_recent(list: &mut Vec<InstanceIdx>, instance: InstanceIdx) {
    if let Some(position) = list.iter().rposition(|i| *i == instance) {
        list.remove(position);
    }
}

/// Everything needed to take a change back exactly; see [`Cluster::undo`].
#[derive(Debug)]
pub struct Undo {
    nodes: Vec<(NodeIdx, NodeState)>,
    instance: InstanceIdx,
    /// Primary, secondary and location score before; `None` if the change added the instance.
    before: Option<(NodeIdx, Option<NodeIdx>, i64)>,
}

/// A cluster: its parts, and what is where.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Node groups.
    pub groups: Vec<Group>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Instances.
    pub instances: Vec<Instance>,
    /// The cluster's tags.
    pub tags: Vec<String>,
    /// The cluster's policy, the default of new groups.
    pub policy: Policy,
    /// What is on each node, in node order.
    pub states: Vec<NodeState>,
    /// Suffix that aliases leave out.
    pub suffix: String,
    pub(crate) rules: TagRules,
    pub(crate) table: TagTable,
}

impl Cluster {
    /// Puts the parts together without deriving anything; [`Cluster::load`] does the rest.
    pub(crate) fn assemble(
        groups: Vec<Group>,
        nodes: Vec<Node>,
        instances: Vec<Instance>,
        tags: Vec<String>,
        policy: Policy,
    ) -> Self {
        let names = nodes.iter().map(|n| n.name.as_str()).chain(instances.iter().map(|i| i.name.as_str()));
        let suffix = common_suffix(names).to_owned();
        let states = nodes.iter().map(NodeState::empty).collect();
        Self {
            groups,
            nodes,
            instances,
            tags,
            policy,
            states,
            suffix,
            rules: TagRules::default(),
            table: TagTable::default(),
        }
    }

    /// The node.
    #[inline]
    pub fn node(&self, index: NodeIdx) -> &Node {
        &self.nodes[index.at()]
    }

    /// What is on the node.
    #[inline]
    pub fn state(&self, index: NodeIdx) -> &NodeState {
        &self.states[index.at()]
    }

    /// The node's figures.
    #[inline]
    pub fn figures(&self, index: NodeIdx) -> &Figures {
        &self.states[index.at()].figures
    }

    /// The instance.
    #[inline]
    pub fn instance(&self, index: InstanceIdx) -> &Instance {
        &self.instances[index.at()]
    }

    /// The group.
    #[inline]
    pub fn group(&self, index: GroupIdx) -> &Group {
        &self.groups[index.at()]
    }

    /// All nodes, in order.
    pub fn node_indices(&self) -> impl DoubleEndedIterator<Item = NodeIdx> + use<> {
        (0..self.nodes.len()).map(NodeIdx::from_usize)
    }

    /// All instances, in order.
    pub fn instance_indices(&self) -> impl DoubleEndedIterator<Item = InstanceIdx> + use<> {
        (0..self.instances.len()).map(InstanceIdx::from_usize)
    }

    /// All groups, in order.
    pub fn group_indices(&self) -> impl DoubleEndedIterator<Item = GroupIdx> + use<> {
        (0..self.groups.len()).map(GroupIdx::from_usize)
    }

    /// The nodes of a group, in order.
    pub fn nodes_of(&self, group: GroupIdx) -> Vec<NodeIdx> {
        self.node_indices().filter(|n| self.node(*n).group == group).collect()
    }

    /// The instances whose primary is in the group, in order.
    pub fn instances_of(&self, group: GroupIdx) -> Vec<InstanceIdx> {
        self.instance_indices().filter(|i| self.node(self.instance(*i).primary).group == group).collect()
    }

    /// The instance's group: that of its primary.
    pub fn group_of(&self, instance: InstanceIdx) -> GroupIdx {
        self.node(self.instance(instance).primary).group
    }

    /// The name without the suffix that all names share.
    pub fn alias<'a>(&self, name: &'a str) -> &'a str {
        name.strip_suffix(self.suffix.as_str()).unwrap_or(name)
    }

    /// The tag behind an identifier of this cluster; empty for a foreign one.
    pub fn tag_name(&self, tag: TagId) -> &str {
        self.table.name(tag).unwrap_or_default()
    }

    /// The group of that name or UUID.
    pub fn find_group(&self, name: &str) -> Result<GroupIdx, LookupError> {
        let mut matches =
            self.group_indices().filter(|g| self.group(*g).name == name || self.group(*g).uuid == name);
        match (matches.next(), matches.next()) {
            (Some(group), None) => Ok(group),
            _ => Err(LookupError(name.to_owned())),
        }
    }

    /// Number of location tags that two nodes share.
    #[inline]
    pub fn shared_locations(&self, a: NodeIdx, b: NodeIdx) -> i64 {
        let (a, b) = (&self.node(a).locations, &self.node(b).locations);
        if a.is_empty() { 0 } else { common(a, b) }
    }

    /// Number of the instance's wishes for a location that the node does not meet.
    #[inline]
    pub fn unmet_wishes(&self, instance: &Instance, node: NodeIdx) -> i64 {
        if instance.desired_locations.is_empty() {
            return 0;
        }
        instance.desired_locations.len() as i64
            - common(&instance.desired_locations, &self.node(node).locations)
    }

    /// Whether an instance may migrate from one node to another.
    #[inline]
    pub fn migration_allowed(&self, from: NodeIdx, to: NodeIdx) -> bool {
        self.node(from).migration.allows(&self.node(to).migration)
    }

    /// Derives what placement needs to know from a new instance's tags, by the rules of the cluster that it is
    /// asked for (which options may have exchanged for this one).
    pub fn derive_tags(&mut self, instance: &mut Instance, rules: &TagRules) {
        instance.exclusion_tags = rules.exclusion_tags(&instance.tags, &mut self.table);
        instance.desired_locations = rules.desired_locations(&instance.tags, &mut self.table);
    }

    /// Adds a node that nothing is on, and whose derived fields are set; for instance a copy of another.
    pub fn add_node(&mut self, node: Node) -> NodeIdx {
        let index = NodeIdx::from_usize(self.nodes.len());
        self.states.push(NodeState::empty(&node));
        self.nodes.push(node);
        index
    }

    /// Adds an instance that was judged with `outcome` and returns its index.
    pub fn add(&mut self, instance: Instance, outcome: &Outcome) -> Undo {
        let index = InstanceIdx::from_usize(self.instances.len());
        let nodes = self.save(outcome);
        self.instances.push(instance);
        let undo = Undo { nodes, instance: index, before: None };
        self.enter(index, outcome);
        undo
    }

    /// Moves an instance as judged with `outcome`.
    pub fn apply(&mut self, index: InstanceIdx, outcome: &Outcome) -> Undo {
        let nodes = self.save(outcome);
        let instance = &self.instances[index.at()];
        let (primary, secondary, score) = (instance.primary, instance.secondary, instance.location_score);
        self.leave(index, outcome);
        self.enter(index, outcome);
        Undo { nodes, instance: index, before: Some((primary, secondary, score)) }
    }

    /// Takes a change back; changes must be undone in reverse order.
    pub fn undo(&mut self, undo: Undo) {
        for (node, state) in undo.nodes {
            self.states[node.at()] = state;
        }
        if let Some((primary, secondary, score)) = undo.before {
            let instance = &mut self.instances[undo.instance.at()];
            instance.primary = primary;
            instance.secondary = secondary;
            instance.location_score = score;
        } else {
            self.instances.pop();
        }
    }

    /// Takes an instance off its primary, keeping its record (conversion to another disk template).
    pub fn detach(&mut self, index: InstanceIdx) -> Undo {
        let instance = &self.instances[index.at()];
        let (primary, demand) = (instance.primary, instance.demand());
        let undo = Undo {
            nodes: vec![(primary, self.states[primary.at()].clone())],
            instance: index,
            before: Some((primary, instance.secondary, instance.location_score)),
        };
        let state = &self.states[primary.at()];
        let conflicts = state.conflicts_freed(&instance.exclusion_tags);
        let location = instance.location_score + self.unmet_wishes(instance, primary);
        let figures = state.figures.remove_primary(self.node(primary), &demand, conflicts, location);
        let state = &mut self.states[primary.at()];
        state.figures = figures;
        let tags = &self.instances[index.at()].exclusion_tags;
        state.count_tags(&self.nodes[primary.at()], tags, -1, !demand.forthcoming);
        remove_most_recent(&mut state.primaries, index);
        undo
    }

    /// Puts a detached instance back as `record`, where `outcome` has it.
    pub fn reattach(&mut self, index: InstanceIdx, record: Instance, outcome: &Outcome) {
        self.instances[index.at()] = record;
        self.enter(index, outcome);
    }

    fn save(&self, outcome: &Outcome) -> Vec<(NodeIdx, NodeState)> {
        outcome.changes().iter().map(|c| (c.node, self.states[c.node.at()].clone())).collect()
    }

    /// Takes the instance out of lists, peers and tag counts of the nodes that `outcome` changes.
    fn leave(&mut self, index: InstanceIdx, outcome: &Outcome) {
        let instance = &self.instances[index.at()];
        let demand = instance.demand();
        let (primary, secondary) = (instance.primary, instance.secondary);
        let state = &mut self.states[primary.at()];
        state.count_tags(&self.nodes[primary.at()], &instance.exclusion_tags, -1, !demand.forthcoming);
        if demand.forthcoming {
            return;
        }
        remove_most_recent(&mut state.primaries, index);
        if let Some(secondary) = secondary
            && outcome.changes_node(secondary)
        {
            let state = &mut self.states[secondary.at()];
            remove_most_recent(&mut state.secondaries, index);
            state.release_for(primary, demand.reserved_memory);
        }
    }

    /// Puts the instance into lists, peers and tag counts, and the new figures in place.
    fn enter(&mut self, index: InstanceIdx, outcome: &Outcome) {
        for change in outcome.changes() {
            self.states[change.node.at()].figures = change.figures;
        }
        let instance = &mut self.instances[index.at()];
        instance.primary = outcome.primary;
        instance.secondary = outcome.secondary;
        instance.location_score = outcome.location_score;
        let demand = instance.demand();
        let state = &mut self.states[outcome.primary.at()];
        state.count_tags(&self.nodes[outcome.primary.at()], &instance.exclusion_tags, 1, !demand.forthcoming);
        if demand.forthcoming {
            return;
        }
        state.primaries.push(index);
        if let Some(secondary) = outcome.secondary
            && outcome.changes_node(secondary)
        {
            let state = &mut self.states[secondary.at()];
            state.secondaries.push(index);
            state.reserve_for(outcome.primary, demand.reserved_memory);
        }
    }

    /// Puts an instance where it was found at load; the nodes' reported figures already include it.
    pub(crate) fn load_instance(&mut self, index: InstanceIdx) {
        let instance = &self.instances[index.at()];
        let demand = instance.demand();
        let primary = instance.primary;
        let location = instance.location_score + self.unmet_wishes(instance, primary);
        let state = &mut self.states[primary.at()];
        let effect = state.tag_effect(&instance.exclusion_tags);
        state.figures.load_primary(&self.nodes[primary.at()], &demand, effect, location);
        state.count_tags(&self.nodes[primary.at()], &instance.exclusion_tags, 1, !demand.forthcoming);
        if !demand.forthcoming {
            state.primaries.push(index);
        }
        if let Some(secondary) = instance.secondary {
            let state = &mut self.states[secondary.at()];
            state.figures.load_secondary(&self.nodes[secondary.at()], &demand);
            if !demand.forthcoming {
                state.secondaries.push(index);
                state.reserve_for(primary, demand.reserved_memory);
            }
        }
    }
}
