//! The text format of clusters (`-t FILE`, and what `-S` writes): HT-text.
//!
//! Sections of `|`-separated rows, one blank line between sections: groups, nodes, instances, cluster tags,
//! policies.

mod error;
mod read;
mod write;

pub use error::{RowError, TextError};
pub use read::parse;
pub use write::serialize;

#[cfg(test)]
mod tests;
