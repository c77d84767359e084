//! The cluster model: nodes, instances, node groups, policies and tags, and every figure derived from them.
//!
//! Formats build plain values ([`Group`], [`Node`], [`Instance`]) and pass them to [`Cluster::load`], which
//! derives the rest (HT-model). Decisions then judge a [`Move`] with a [`Probe`], which returns an
//! [`Outcome`] without changing the cluster:
//!
//! ```text
//! parts ──Cluster::load──► Cluster ──Probe::judge──► Outcome ──Cluster::apply──► Undo
//!                             ▲                                                   │
//!                             └────────────────── Cluster::undo ──────────────────┘
//! ```
//!
//! - A [`Node`] and an [`Instance`] hold recorded facts. A [`NodeState`] lists the instances on a node, and
//!   its [`Figures`] are the numbers that placements are judged by.
//! - A [`Demand`] is an instance as a node sees it. A refused placement returns a [`FailMode`].
//! - A [`Policy`] limits instance sizes; [`TagRules`] define the meaning of tags.
//!
//! This crate is pure: no input or output, no clock, no environment, no file formats. Sizes are in MiB. Sums
//! and ratios are IEEE binary64 in the reference's order of operations, because decisions depend on the last
//! bit.
//!
//! Invariant: after any sequence of moves, the figures are those that a fresh load of the result would
//! derive, except for rounding of the utilization sums. This holds under [`InitialN1::Recorded`], if all
//! spindles are known. Undoing moves restores every figure exactly. `tests/properties` checks both.
//!
//! Start reading at `figures.rs`, which has the four operations on a node's figures, then `load.rs` and
//! `moves.rs`.

mod figures;
mod group;
mod ids;
mod instance;
mod load;
mod moves;
mod names;
mod nearest;
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
pub use nearest::{did_you_mean, nearest};
pub use node::{Node, Outage};
pub use outcome::{Change, Outcome};
pub use policy::{ISpec, MinMax, Policy};
pub use state::{Cluster, NodeState, Undo};
pub use tags::{Migration, PINNED, TagRules};
