//! A cluster and the instances on its nodes. Placements are applied and undone here.

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

/// Location tag of a node and exclusion tag of an instance.
type LocatedTag = (TagId, TagId);

/// The instances on a node, and all figures and counts that follow from them.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeState {
    /// Numbers that placements are judged by.
    pub figures: Figures,
    /// Primaries, most recent *last*. Forthcoming instances are not listed.
    pub primaries: Vec<InstanceIdx>,
    /// Secondaries, most recent *last*. Forthcoming instances are not listed.
    pub secondaries: Vec<InstanceIdx>,
    /// Memory reserved on this node by primary node, MiB.
    pub peers: Vec<(NodeIdx, i64)>,
    /// Exclusion tags of primaries, including forthcoming instances, with counts above 0.
    pub exclusion_tags: Vec<(TagId, i64)>,
    /// Pairs of the node's location tags and the primaries' exclusion tags, with counts above 0.
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

    /// Memory reserved for instances whose primary is `primary`, MiB.
    #[inline]
    pub fn reserved_for(&self, primary: NodeIdx) -> i64 {
        self.peers.iter().find(|(peer, _)| *peer == primary).map_or(0, |(_, memory)| *memory)
    }

    /// The node's reserve without an instance of `primary` that reserves `memory`. All in MiB.
    #[inline]
    pub fn reserve_without(&self, primary: NodeIdx, memory: i64) -> i64 {
        let before = self.reserved_for(primary);
        if before < self.figures.reserved_memory {
            return self.figures.reserved_memory;
        }
        let others = self.peers.iter().filter(|(peer, _)| *peer != primary).map(|(_, memory)| *memory);
        others.max().unwrap_or(0).max(before - memory).max(0)
    }

    /// Effect of adding a primary with these exclusion tags.
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

    /// Number of conflicts freed by removing a primary with these exclusion tags.
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

    /// Reserves memory for another secondary whose instance runs on `primary`, MiB.
    pub fn reserve_for(&mut self, primary: NodeIdx, memory: i64) {
        match self.peers.iter_mut().find(|(peer, _)| *peer == primary) {
            Some((_, reserved)) => *reserved += memory,
            None => self.peers.push((primary, memory)),
        }
    }

    /// Releases memory reserved with [`Self::reserve_for`].
    pub fn release_for(&mut self, primary: NodeIdx, memory: i64) {
        if let Some(position) = self.peers.iter().position(|(peer, _)| *peer == primary) {
            self.peers[position].1 -= memory;
            if self.peers[position].1 <= 0 {
                self.peers.remove(position);
            }
        }
    }

    /// Adds `step` to the counts of a primary's exclusion tags. Forthcoming instances, which are not `real`,
    /// don't count by location.
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

/// State before a change; see [`Cluster::undo`].
#[derive(Debug)]
pub struct Undo {
    nodes: Vec<(NodeIdx, NodeState)>,
    instance: InstanceIdx,
    /// Old primary, secondary and location score; `None` if the change added the instance.
    before: Option<(NodeIdx, Option<NodeIdx>, i64)>,
}

/// A cluster: groups, nodes, instances, and the state of each node.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub groups: Vec<Group>,
    pub nodes: Vec<Node>,
    pub instances: Vec<Instance>,
    /// Cluster tags.
    pub tags: Vec<String>,
    /// The cluster's policy, which is the default of new groups.
    pub policy: Policy,
    /// State of each node, in node order.
    pub states: Vec<NodeState>,
    /// Suffix of all names, which aliases omit.
    pub suffix: String,
    pub(crate) rules: TagRules,
    pub(crate) table: TagTable,
}

impl Cluster {
    /// A cluster with nothing derived; [`Cluster::load`] does the rest.
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

    #[inline]
    pub fn node(&self, index: NodeIdx) -> &Node {
        &self.nodes[index.at()]
    }

    #[inline]
    pub fn state(&self, index: NodeIdx) -> &NodeState {
        &self.states[index.at()]
    }

    #[inline]
    pub fn figures(&self, index: NodeIdx) -> &Figures {
        &self.states[index.at()].figures
    }

    #[inline]
    pub fn instance(&self, index: InstanceIdx) -> &Instance {
        &self.instances[index.at()]
    }

    #[inline]
    pub fn group(&self, index: GroupIdx) -> &Group {
        &self.groups[index.at()]
    }

    /// All nodes in input order.
    pub fn node_indices(&self) -> impl DoubleEndedIterator<Item = NodeIdx> + use<> {
        (0..self.nodes.len()).map(NodeIdx::from_usize)
    }

    /// All instances in input order.
    pub fn instance_indices(&self) -> impl DoubleEndedIterator<Item = InstanceIdx> + use<> {
        (0..self.instances.len()).map(InstanceIdx::from_usize)
    }

    /// All groups in input order.
    pub fn group_indices(&self) -> impl DoubleEndedIterator<Item = GroupIdx> + use<> {
        (0..self.groups.len()).map(GroupIdx::from_usize)
    }

    /// Nodes of a group in input order.
    pub fn nodes_of(&self, group: GroupIdx) -> Vec<NodeIdx> {
        self.node_indices().filter(|n| self.node(*n).group == group).collect()
    }

    /// Instances with their primary in the group, in input order.
    pub fn instances_of(&self, group: GroupIdx) -> Vec<InstanceIdx> {
        self.instance_indices().filter(|i| self.node(self.instance(*i).primary).group == group).collect()
    }

    /// Group of the instance's primary.
    pub fn group_of(&self, instance: InstanceIdx) -> GroupIdx {
        self.node(self.instance(instance).primary).group
    }

    /// The name without the common suffix.
    pub fn alias<'a>(&self, name: &'a str) -> &'a str {
        name.strip_suffix(self.suffix.as_str()).unwrap_or(name)
    }

    /// The tag's text; empty if the identifier belongs to another cluster.
    pub fn tag_name(&self, tag: TagId) -> &str {
        self.table.name(tag).unwrap_or_default()
    }

    /// The group with this name or UUID.
    ///
    /// # Errors
    ///
    /// No group matches, or several do.
    pub fn find_group(&self, name: &str) -> Result<GroupIdx, LookupError> {
        let mut matches =
            self.group_indices().filter(|g| self.group(*g).name == name || self.group(*g).uuid == name);
        match (matches.next(), matches.next()) {
            (Some(group), None) => Ok(group),
            _ => Err(LookupError(name.to_owned())),
        }
    }

    #[inline]
    pub fn shared_locations(&self, a: NodeIdx, b: NodeIdx) -> i64 {
        let (a, b) = (&self.node(a).locations, &self.node(b).locations);
        if a.is_empty() { 0 } else { common(a, b) }
    }

    /// Number of the instance's desired locations that the node lacks.
    #[inline]
    pub fn unmet_wishes(&self, instance: &Instance, node: NodeIdx) -> i64 {
        if instance.desired_locations.is_empty() {
            return 0;
        }
        instance.desired_locations.len() as i64
            - common(&instance.desired_locations, &self.node(node).locations)
    }

    /// Whether migration tags allow an instance to migrate between two nodes.
    #[inline]
    pub fn migration_allowed(&self, from: NodeIdx, to: NodeIdx) -> bool {
        self.node(from).migration.allows(&self.node(to).migration)
    }

    /// Derives the exclusion tags and desired locations of a new instance. `rules` are those of the requested
    /// cluster, which options can have replaced with this one.
    pub fn derive_tags(&mut self, instance: &mut Instance, rules: &TagRules) {
        instance.exclusion_tags = rules.exclusion_tags(&instance.tags, &mut self.table);
        instance.desired_locations = rules.desired_locations(&instance.tags, &mut self.table);
    }

    /// Adds a node without instances. Its derived fields must be set, for example because it's a copy.
    pub fn add_node(&mut self, node: Node) -> NodeIdx {
        let index = NodeIdx::from_usize(self.nodes.len());
        self.states.push(NodeState::empty(&node));
        self.nodes.push(node);
        index
    }

    /// Adds an instance as judged with `outcome`, at the end of the list.
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

    /// Restores the state before a change. Changes must be undone in reverse order.
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

    /// Takes an instance off its primary but keeps its record, to convert its disk template.
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

    /// Replaces a detached instance with `record` and places it as `outcome` says.
    pub fn reattach(&mut self, index: InstanceIdx, record: Instance, outcome: &Outcome) {
        self.instances[index.at()] = record;
        self.enter(index, outcome);
    }

    fn save(&self, outcome: &Outcome) -> Vec<(NodeIdx, NodeState)> {
        outcome.changes().iter().map(|c| (c.node, self.states[c.node.at()].clone())).collect()
    }

    /// Removes the instance from lists, peers and tag counts of the nodes that `outcome` changes.
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

    /// Adds the instance to lists, peers and tag counts, and stores the new figures.
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

    /// Counts an instance on the nodes where it was found at load. Their reported figures already include it.
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
