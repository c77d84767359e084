//! A ledger of copies that replays moves with its own sums. It doesn't read the figures that planners keep.

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, Move, NodeIdx};
use placement::balance::Step;

pub type Place = (NodeIdx, Option<NodeIdx>);

/// Nodes of every instance, and no derived state.
#[derive(Clone)]
pub struct Ledger<'a> {
    pub cluster: &'a Cluster,
    /// Record of added instances. In `places`, they follow the cluster's instances.
    shape: Option<&'a Instance>,
    pub places: Vec<Place>,
}

/// Limits on moves. Each includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limits {
    /// Disks are copied only from readable nodes, to nodes that take instances.
    Data,
    /// Memory and disk suffice.
    Room,
    /// No rule is newly broken.
    Rules,
    /// No figure that a planner might consider gets worse.
    Everything,
}

/// Permissions of a plan.
pub struct Permissions<'a> {
    pub leaving: &'a [NodeIdx],
    pub limits: Limits,
}

/// Sums over the copies on a node.
pub struct Sums {
    pub free_memory: i64,
    booked_memory: i64,
    reserve: i64,
    pub free_disk: i64,
    pub free_spindles: i64,
    vcpus: i64,
    spindle_use: f64,
}

impl Sums {
    fn fails_n1(&self) -> bool {
        self.free_memory <= self.reserve
    }
}

impl<'a> Ledger<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let places = cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect();
        Self { cluster, shape: None, places }
    }

    /// A ledger to which instances of `shape` can be added.
    pub fn for_shape(cluster: &'a Cluster, shape: &'a Instance) -> Self {
        Self { shape: Some(shape), ..Self::new(cluster) }
    }

    /// Existing instances with their current and original places. The original place is `None` for added
    /// ones.
    fn real(&self) -> impl Iterator<Item = (&'a Instance, Place, Option<Place>)> + '_ {
        let known = self.cluster.instances.iter().map(|i| (i, Some((i.primary, i.secondary))));
        let added = self.shape.into_iter().cycle().map(|shape| (shape, None));
        let all = known.chain(added).zip(&self.places);
        all.map(|((instance, first), place)| (instance, *place, first)).filter(|(i, ..)| !i.forthcoming)
    }

    pub fn sums(&self, node: NodeIdx) -> Sums {
        let record = self.cluster.node(node);
        let figures = self.cluster.figures(node);
        let copies = |place: Place| {
            [Some(place.0), place.1].into_iter().flatten().filter(|n| *n == node).count() as i64
        };
        let mut sums = Sums {
            free_memory: record.total_memory as i64 - record.node_memory - record.missing_memory.max(0),
            booked_memory: figures.booked_free_memory,
            reserve: 0,
            free_disk: figures.free_disk,
            free_spindles: figures.free_spindles,
            vcpus: record.node_cpus,
            spindle_use: 0.0,
        };
        let mut reserved = vec![0; self.cluster.nodes.len()];
        for (instance, now, first) in self.real() {
            let demand = instance.demand();
            let was_primary = first.is_some_and(|first| first.0 == node);
            sums.booked_memory += demand.memory * (i64::from(was_primary) - i64::from(now.0 == node));
            if now.0 == node {
                sums.free_memory -= demand.used_memory;
                sums.vcpus += demand.vcpus;
            }
            if now.1 == Some(node) {
                reserved[now.0.at()] += demand.reserved_memory;
            }
            let left = first.map_or(0, copies) - copies(now);
            // Figures count spindles of all templates, but only local disks are refused for a lack of
            // spindles.
            if has_local_disks(instance) || left > 0 {
                sums.free_spindles += instance.total_spindles().unwrap_or(0) * left;
            }
            if has_local_disks(instance) {
                sums.free_disk += instance.disk * left;
                sums.spindle_use += instance.spindle_use as f64 * copies(now) as f64;
            }
        }
        sums.reserve = reserved.into_iter().max().unwrap_or(0);
        sums
    }

    /// Makes a step. The error names the broken rule.
    pub fn make(&mut self, step: &Step, may: &Permissions<'_>) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {step:?}"));
        if step.from != self.places[step.instance.at()] {
            return wrong("it is elsewhere");
        }
        match self.destination(step.instance, step.mov, may.leaving) {
            Ok(to) if to == step.to => {}
            Ok(_) => return wrong("the move leads elsewhere"),
            Err(what) => return wrong(what),
        }
        self.put(step.instance, step.to, may).or_else(wrong)
    }

    /// Destination of a move, if it copies from readable disks to a node that takes instances.
    pub fn destination(
        &self,
        index: InstanceIdx,
        mov: Move,
        leaving: &[NodeIdx],
    ) -> Result<Place, &'static str> {
        let cluster = self.cluster;
        let (p, s) = self.places[index.at()];
        let template = cluster.instance(index).template;
        let is_shared = !matches!(template, DiskTemplate::Drbd | DiskTemplate::Plain | DiskTemplate::File);
        let to = match (mov, s) {
            (Move::FailoverTo(t), s) if is_shared => (t, s),
            _ if template != DiskTemplate::Drbd => return Err("its data is on this node only"),
            (Move::Failover, Some(s)) => (s, Some(p)),
            (Move::ReplaceSecondary(t), Some(_)) => (p, Some(t)),
            (Move::ReplaceAndFailover(t), Some(_)) => (t, Some(p)),
            (Move::ReplacePrimary(t), Some(s)) => (t, Some(s)),
            (Move::FailoverAndReplace(t), Some(s)) => (s, Some(t)),
            _ => return Err("it has no mirror"),
        };
        if s.is_some_and(|s| !is_shared && cluster.node(s).group != cluster.node(p).group) {
            return Err("its nodes are in different groups");
        }
        let reads_primary = matches!(mov, Move::ReplaceSecondary(_) | Move::ReplaceAndFailover(_));
        if reads_primary && !cluster.node(p).readable() {
            return Err("disks are copied from a dead node");
        }
        let runs_on_mirror =
            matches!(mov, Move::Failover | Move::ReplacePrimary(_) | Move::FailoverAndReplace(_));
        if runs_on_mirror && s.is_none_or(|s| cluster.node(s).offline) {
            return Err("the mirror's node takes no instances");
        }
        if let Some(target) = mov.target() {
            let node = cluster.node(target);
            if node.offline || node.group != cluster.node(p).group || target == p || Some(target) == s {
                return Err("no such target");
            }
            if leaving.contains(&target) {
                return Err("the target is to be emptied");
            }
        }
        Ok(to)
    }

    /// Moves an instance. The error names the exceeded limit.
    pub fn put(&mut self, index: InstanceIdx, to: Place, may: &Permissions<'_>) -> Result<(), &'static str> {
        let (cluster, (p, s)) = (self.cluster, self.places[index.at()]);
        let touched: Vec<NodeIdx> = [Some(to.0), to.1].into_iter().flatten().collect();
        let before: Vec<Sums> = touched.iter().map(|n| self.sums(*n)).collect();
        self.places[index.at()] = to;
        let is_forced = cluster.node(p).offline || s.is_some_and(|s| cluster.node(s).offline);
        for (node, before) in touched.into_iter().zip(before) {
            let after = self.sums(node);
            let record = cluster.node(node);
            if may.limits >= Limits::Room {
                if node == to.0 && node != p && after.free_memory <= 0 {
                    return Err("no memory");
                }
                let is_mirrored = cluster.instance(index).template == DiskTemplate::Drbd;
                if is_mirrored && after.free_disk <= 0 && after.free_disk < before.free_disk {
                    return Err("no disk");
                }
            }
            if is_forced || may.leaving.contains(&node) {
                continue;
            }
            if may.limits >= Limits::Rules {
                self.keeps_rules(node, &before, &after)?;
            }
            let shortage = |sums: &Sums| sums.reserve - sums.free_memory;
            let is_short = after.fails_n1() && shortage(&after) > shortage(&before);
            let is_booked = after.booked_memory <= 0 && after.booked_memory < before.booked_memory;
            let is_full = after.free_disk < record.min_free_disk.max(1);
            if may.limits >= Limits::Everything && (is_short || is_booked || is_full) {
                return Err("memory or disk is short");
            }
        }
        Ok(())
    }

    fn keeps_rules(&self, node: NodeIdx, before: &Sums, after: &Sums) -> Result<(), &'static str> {
        let record = self.cluster.node(node);
        let ratio = |sums: &Sums| sums.vcpus as f64 / record.total_cpus;
        if ratio(after) > record.max_vcpu_ratio && ratio(after) > ratio(before) {
            return Err("too many virtual CPUs");
        }
        let spindles = (after.spindle_use, before.spindle_use);
        if !record.exclusive_storage && spindles.0 > record.max_spindles && spindles.0 > spindles.1 {
            return Err("too many spindles in use");
        }
        if after.fails_n1() && !before.fails_n1() && !self.cluster.figures(node).fails_n1 {
            return Err("the node fails N+1");
        }
        Ok(())
    }

    /// Adds an instance of the shape, which has no tags. Returns whether its nodes have the capacity and keep
    /// the rules.
    pub fn add(&mut self, place: Place) -> bool {
        let Some(shape) = self.shape else { return false };
        let nodes: Vec<NodeIdx> = std::iter::once(place.0).chain(place.1).collect();
        let before: Vec<Sums> = nodes.iter().map(|n| self.sums(*n)).collect();
        self.places.push(place);
        nodes.iter().zip(&before).all(|(node, before)| {
            let (record, after) = (self.cluster.node(*node), self.sums(*node));
            let is_primary = *node == place.0;
            let memory = if is_primary { after.free_memory } else { before.free_memory - shape.memory };
            let booked = if is_primary { after.booked_memory } else { before.booked_memory - shape.memory };
            let has_spindles = !record.exclusive_storage || after.free_spindles >= 0;
            let has_disk =
                !has_local_disks(shape) || (after.free_disk >= record.min_free_disk.max(1) && has_spindles);
            memory > 0 && booked > 0 && has_disk && self.keeps_rules(*node, before, &after).is_ok()
        })
    }
}

/// Whether the instance uses disk space of its nodes.
pub fn has_local_disks(instance: &Instance) -> bool {
    matches!(instance.template, DiskTemplate::Drbd | DiskTemplate::Plain)
}
