//! Instances that look alike to the search.
//!
//! A *class* is a set of instances with equal demands on a node. A *shape* is a class without its
//! utilization; it decides where such instances fit.

use std::collections::HashMap;

use cluster::{Cluster, Demand, InstanceIdx, NodeIdx, TagEffect, Utilisation};

/// Whether a node takes instances of a shape, by role and force. A node that refuses here refuses every such
/// instance. A node that accepts can still refuse one because of its tags or existing reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fits {
    /// As primary: strict, forced.
    pub primary: [bool; 2],
    /// As secondary: strict, forced.
    pub secondary: [bool; 2],
}

/// Demand of a class without utilization, and the nodes where it fits.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    demand: Demand,
    /// By position among the online nodes.
    pub fits: Vec<Fits>,
}

/// Instances with equal demands.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub demand: Demand,
    /// Index into [`Classes::shapes`].
    pub shape: usize,
    /// Index into [`Classes::loads`].
    pub load: usize,
    /// Ascending.
    pub instances: Vec<InstanceIdx>,
}

/// All classes and shapes of a run.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    /// In order of their first instance.
    pub all: Vec<Class>,
    pub shapes: Vec<Shape>,
    /// Loads that instances add to a node, each combination once.
    pub loads: Vec<Utilisation>,
}

type ShapeKey = ([i64; 6], u64, u8);
type ClassKey = (ShapeKey, [u64; 4]);

fn shape_key(demand: &Demand) -> ShapeKey {
    let numbers = [
        demand.memory,
        demand.disk,
        demand.vcpus,
        demand.spindles.unwrap_or(i64::MIN),
        demand.used_memory,
        demand.reserved_memory,
    ];
    let flags =
        u8::from(demand.local_storage) | u8::from(demand.drbd) << 1 | u8::from(demand.forthcoming) << 2;
    (numbers, demand.spindle_use.to_bits(), flags)
}

impl Classes {
    /// Classifies `instances`. `online` are the possible target nodes, ascending.
    pub fn new(cluster: &Cluster, instances: &[InstanceIdx], online: &[NodeIdx]) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let mut shapes: Vec<Shape> = Vec::new();
        let mut known_classes: HashMap<ClassKey, usize> = HashMap::new();
        let mut known_shapes: HashMap<ShapeKey, usize> = HashMap::new();
        let mut loads: Vec<Utilisation> = Vec::new();
        let mut known_loads: HashMap<[u64; 4], usize> = HashMap::new();
        for &index in instances {
            let demand = cluster.instance(index).demand();
            let key = shape_key(&demand);
            let shape = *known_shapes.entry(key).or_insert_with(|| {
                let demand = Demand { utilisation: [0.0; 4], ..demand };
                let fits = online.iter().map(|n| fits(cluster, &demand, *n)).collect();
                shapes.push(Shape { demand, fits });
                shapes.len() - 1
            });
            let class =
                *known_classes.entry((key, demand.utilisation.map(f64::to_bits))).or_insert_with(|| {
                    let added = if demand.forthcoming { [0.0; 4] } else { demand.utilisation };
                    let load = *known_loads.entry(added.map(f64::to_bits)).or_insert_with(|| {
                        loads.push(added);
                        loads.len() - 1
                    });
                    classes.push(Class { demand, shape, load, instances: Vec::new() });
                    classes.len() - 1
                });
            classes[class].instances.push(index);
        }
        Self { all: classes, shapes, loads }
    }

    /// Adopts changes of the online nodes at `positions`.
    pub fn update(&mut self, cluster: &Cluster, online: &[NodeIdx], positions: &[usize]) {
        for shape in &mut self.shapes {
            for &position in positions {
                shape.fits[position] = fits(cluster, &shape.demand, online[position]);
            }
        }
    }
}

fn fits(cluster: &Cluster, demand: &Demand, index: NodeIdx) -> Fits {
    let (node, figures) = (cluster.node(index), cluster.figures(index));
    let primary = |force| figures.add_primary(node, demand, TagEffect::default(), 0, force).is_ok();
    // The more a node already reserves for the same primary, the sooner it refuses. 0 is the most lenient
    // case.
    let secondary = |force| figures.add_secondary(node, demand, 0, force, false).is_ok();
    Fits { primary: [primary(false), primary(true)], secondary: [secondary(false), secondary(true)] }
}
