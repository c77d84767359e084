//! The text format of clusters, read with `-t FILE` and written with `-S` (HT-text).
//!
//! Sections of `|`-separated rows, with an empty line between sections: groups, nodes, instances, cluster
//! tags, policies.

mod error;
mod read;
mod write;

pub use error::{RowError, TextError};
pub use read::parse;
pub use write::serialize;

#[cfg(test)]
mod tests;
