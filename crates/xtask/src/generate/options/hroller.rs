//! Options of `hroller`.

use super::Drawn;
use crate::generate::model::Cluster;
use crate::random::Random;

/// Mistakes.
pub(super) const WRONG: &[&str] = &["--nosuch", "-t"];

/// Draws them.
pub(super) fn draw(_random: &mut Random, _cluster: &Cluster, _drawn: &mut Drawn) {}
