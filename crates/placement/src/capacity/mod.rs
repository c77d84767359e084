//! How many more instances fit on a cluster (HT-hspace).
//!
//! [`Ground::survey`] says where instances may go at all; [`fill`] and [`tiered`] then place as many as fit, one
//! after another, each where `hail` would put it. The cluster that is handed in keeps what was placed.

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

/// What filling a cluster came to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Filled {
    /// The instances placed, in order; the cluster holds them under the names `new-0`, `new-1`, ...
    pub placed: Vec<Placement>,
    /// What refused one instance more; nothing if none was tried.
    pub failures: Option<Failures>,
}

impl Filled {
    /// Nothing is placed where nodes fail N+1 already.
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

/// Places instances of each shape in turn, as many as fit, then smaller ones of the same kind.
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
