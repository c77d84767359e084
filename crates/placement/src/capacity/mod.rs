//! Capacity: how many more instances fit on a cluster (HT-hspace).
//!
//! [`Ground::survey`] finds the possible targets. [`fill`] and [`tiered`] then place as many instances as
//! fit, one after another, each where `hail` would put it. The placed instances stay in the cluster that was
//! passed in.

mod fill;
mod ground;
mod options;
mod shape;
mod tiered;

use cluster::{Cluster, FailMode};

use crate::allocate::{Failures, NoTargets};

use fill::Filler;
pub use fill::Placement;
pub use ground::{Ground, groups_not_redundant};
pub use options::{CapacityOptions, Rule};
pub use shape::Shape;

/// Result of filling a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Filled {
    /// Placed instances in order. The cluster holds them under the names `new-0`, `new-1`, ...
    pub placed: Vec<Placement>,
    /// Reasons that refused one more instance; `None` if none was tried.
    pub failures: Option<Failures>,
}

impl Filled {
    /// Result if nodes already fail N+1: nothing is placed.
    fn blocked() -> Self {
        let mut failures = Failures::default();
        failures.add(FailMode::N1);
        Self { placed: Vec::new(), failures: Some(failures) }
    }
}

/// Places instances of one shape until no more fit.
pub fn fill(
    cluster: &mut Cluster,
    ground: &Ground,
    shape: &Shape,
    options: &CapacityOptions,
) -> Result<Filled, NoTargets> {
    if ground.blocked() {
        return Ok(Filled::blocked());
    }
    let mut filler = Filler::new(cluster, ground, options)?;
    let failures = filler.fill(shape, options.limit);
    Ok(Filled { placed: filler.placed, failures: Some(failures) })
}

/// For each shape in turn, places as many instances as fit, then smaller ones of the same kind.
pub fn tiered(
    cluster: &mut Cluster,
    ground: &Ground,
    shapes: &[Shape],
    options: &CapacityOptions,
) -> Result<Filled, NoTargets> {
    if ground.blocked() {
        return Ok(Filled::blocked());
    }
    if shapes.is_empty() || options.limit == Some(0) {
        return Ok(Filled::default());
    }
    let mut filler = Filler::new(cluster, ground, options)?;
    let mut failures = None;
    for shape in shapes {
        let placed = filler.placed.len();
        if options.limit.is_some_and(|limit| limit <= placed) {
            break;
        }
        failures = Some(tiered::tiered(&mut filler, shape, options.limit.map(|limit| limit - placed)));
    }
    Ok(Filled { placed: filler.placed, failures })
}
