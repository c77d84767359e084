//! The cluster model: nodes, instances, node groups, policies and tags, with every derived figure kept
//! incrementally.
//!
//! This crate is pure: it performs no input or output, reads no clock and no environment, and knows no file
//! format. Formats build the plain values ([`Group`], [`Node`], [`Instance`]) and hand them to
//! [`Cluster::load`], which derives the rest (HT-model).
//!
//! Sizes are MiB. Sums and ratios are IEEE binary64 with the reference's order of operations, because the
//! decisions built on them depend on the last bit.

mod figures;
mod group;
mod ids;
mod instance;
mod load;
mod moves;
mod names;
mod node;
mod outcome;
mod policy;
mod state;
mod tags;

pub use figures::{Demand, FailMode, Figures, TagEffect};
pub use group::{AllocPolicy, Group};
pub use ids::{GroupIdx, InstanceIdx, NodeIdx, TagId};
pub use instance::{Disk, DiskTemplate, Instance, InstanceStatus, MirrorClass, Utilisation};
pub use load::{Inconsistency, InitialN1, LoadError, LoadOptions};
pub use moves::{Move, Probe};
pub use names::{LookupError, common_suffix};
pub use node::{Node, Outage};
pub use outcome::{Change, Outcome};
pub use policy::{ISpec, MinMax, Policy};
pub use state::{Cluster, NodeState, Undo};
pub use tags::{Migration, PINNED, TagRules};
