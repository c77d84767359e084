//! The cluster's score: its components and how they add up (HT-score).
//!
//! Lower is better. Thirteen components are population standard deviations over the online nodes. They are
//! stored as the lanes of a [`Row`] per node, so that a single pass over the nodes covers all components.

use cluster::{Figures, Node};

/// Number of standard-deviation components.
pub const DEVIATIONS: usize = 13;

/// One node's values of the standard-deviation components, padded to whole vector registers.
pub type Row = [f64; 14];

/// Lane of the reserved memory ratio, which also enters the score as a sum.
pub const RESERVED_MEMORY_LANE: usize = 2;

/// A component of the score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// Name shown in metric tables.
    pub name: &'static str,
    pub weight: f64,
}

/// All components, in the order in which they are added.
pub const COMPONENTS: [Component; 20] = [
    Component { name: "free_mem_cv", weight: 0.5 },
    Component { name: "free_disk_cv", weight: 0.5 },
    Component { name: "n1_cnt", weight: 1.0 },
    Component { name: "reserved_mem_cv", weight: 1.0 },
    Component { name: "offline_all_cnt", weight: 4.0 },
    Component { name: "offline_pri_cnt", weight: 16.0 },
    Component { name: "vcpu_ratio_cv", weight: 0.5 },
    Component { name: "cpu_load_cv", weight: 1.0 },
    Component { name: "mem_load_cv", weight: 1.0 },
    Component { name: "disk_load_cv", weight: 1.0 },
    Component { name: "net_load_cv", weight: 1.0 },
    Component { name: "pri_tags_score", weight: 2.0 },
    Component { name: "spindles_cv", weight: 0.5 },
    Component { name: "free_mem_cv_forth", weight: 0.5 },
    Component { name: "free_disk_cv_forth", weight: 0.5 },
    Component { name: "vcpu_ratio_cv_forth", weight: 0.5 },
    Component { name: "spindles_cv_forth", weight: 0.5 },
    Component { name: "location_score", weight: 1.0 },
    Component { name: "location_exclusion_score", weight: 1.0 },
    Component { name: "reserved_mem_rtotal", weight: 0.25 },
];

/// Position in [`COMPONENTS`] of each lane of a [`Row`].
pub const LANE_COMPONENT: [usize; DEVIATIONS] = [0, 1, 3, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16];

/// Weight of each lane; 0 for padding.
pub const LANE_WEIGHT: Row = {
    let mut weights = [0.0; 14];
    let mut lane = 0;
    while lane < DEVIATIONS {
        weights[lane] = COMPONENTS[LANE_COMPONENT[lane]].weight;
        lane += 1;
    }
    weights
};

/// A node's values of the standard-deviation components.
#[inline]
pub fn row(node: &Node, figures: &Figures) -> Row {
    [
        figures.free_memory_ratio(node),
        figures.free_disk_ratio(node),
        figures.reserved_memory_ratio(node),
        figures.vcpu_ratio(node) / node.cpu_speed,
        figures.load[0],
        figures.load[1],
        figures.load[2],
        figures.load[3],
        figures.instance_spindles / node.max_spindles,
        figures.booked_free_memory_ratio(node),
        figures.booked_free_disk_ratio(node),
        figures.booked_vcpu_ratio(node) / node.cpu_speed,
        figures.booked_instance_spindles / node.max_spindles,
        0.0,
    ]
}

/// Components that are plain counts. They are exact in any order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instances on online nodes that fail N+1.
    pub n1: i64,
    /// Instances on offline nodes.
    pub offline_all: i64,
    /// Primaries on offline nodes.
    pub offline_primaries: i64,
    /// Primaries beyond the first per exclusion tag and node.
    pub tag_conflicts: i64,
    /// Shared location tags and unmet wishes.
    pub location: i64,
    /// Instances beyond the first per pair of location tag and exclusion tag.
    pub located_exclusion: i64,
}

impl Counts {
    /// Counts of one node, without [`Self::located_exclusion`], which isn't a sum over nodes.
    #[inline]
    pub fn of(node: &Node, figures: &Figures) -> Self {
        let all = figures.primaries + figures.secondaries;
        if node.offline {
            Self { offline_all: all, offline_primaries: figures.primaries, ..Self::default() }
        } else {
            Self {
                n1: if figures.fails_n1 { all } else { 0 },
                tag_conflicts: figures.tag_conflicts,
                location: figures.location_score,
                ..Self::default()
            }
        }
    }

    #[inline]
    pub fn weighted(&self) -> f64 {
        let sum = self.n1
            + 4 * self.offline_all
            + 16 * self.offline_primaries
            + 2 * self.tag_conflicts
            + self.location
            + self.located_exclusion;
        sum as f64
    }

    /// Component-wise `self + added - removed`.
    #[inline]
    #[must_use]
    pub fn replace(&self, removed: &Self, added: &Self) -> Self {
        Self {
            n1: self.n1 + added.n1 - removed.n1,
            offline_all: self.offline_all + added.offline_all - removed.offline_all,
            offline_primaries: self.offline_primaries + added.offline_primaries - removed.offline_primaries,
            tag_conflicts: self.tag_conflicts + added.tag_conflicts - removed.tag_conflicts,
            location: self.location + added.location - removed.location,
            located_exclusion: self.located_exclusion + added.located_exclusion - removed.located_exclusion,
        }
    }
}

/// Values of all components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// Standard deviations, by lane.
    pub deviations: Row,
    pub counts: Counts,
    /// Sum of the reserved memory ratios.
    pub reserved_total: f64,
}

impl Values {
    /// Component values in the order of [`COMPONENTS`].
    pub fn in_order(&self) -> [f64; 20] {
        let d = &self.deviations;
        let c = &self.counts;
        [
            d[0],
            d[1],
            c.n1 as f64,
            d[2],
            c.offline_all as f64,
            c.offline_primaries as f64,
            d[3],
            d[4],
            d[5],
            d[6],
            d[7],
            c.tag_conflicts as f64,
            d[8],
            d[9],
            d[10],
            d[11],
            d[12],
            c.location as f64,
            c.located_exclusion as f64,
            self.reserved_total,
        ]
    }

    /// The score: weighted components, added in order starting from 0.
    #[inline]
    pub fn score(&self) -> f64 {
        let values = self.in_order();
        let mut total = 0.0;
        for (component, value) in COMPONENTS.iter().zip(values) {
            total += component.weight * value;
        }
        total
    }
}

/// Lowest score that any arrangement can reach, given the memory that must be reserved (HT-score).
///
/// `nodes` yields, for each node of the list (including offline ones), its total memory and the sum of its
/// reservations for its peers.
pub fn optimal_score(nodes: impl Iterator<Item = (f64, i64)> + Clone) -> f64 {
    if nodes.clone().count() < 2 {
        return 0.0;
    }
    let total = nodes.clone().fold(0.0, |sum, (memory, _)| sum + memory);
    let largest = nodes.clone().map(|(memory, _)| memory).fold(f64::NEG_INFINITY, f64::max);
    let without_largest = total - largest;
    if without_largest <= 0.0 {
        return 0.0;
    }
    let reserved = nodes.map(|(_, reserved)| reserved).sum::<i64>() as f64;
    COMPONENTS[19].weight * (reserved / without_largest - reserved / total)
}
