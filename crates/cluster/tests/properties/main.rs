//! Properties of the cluster model on random clusters.

mod figures;
mod generate;
mod states;
