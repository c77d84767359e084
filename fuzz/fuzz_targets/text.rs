#![no_main]
//! Reads arbitrary files in the text format. They must not crash the parser, or the loading, balancing and
//! serializing of the cluster.

use cluster::LoadOptions;
use libfuzzer_sys::fuzz_target;
use placement::balance::{BalanceOptions, Balancer};

fuzz_target!(|text: &str| {
    let Ok(data) = htools::text::parse(text) else { return };
    let Ok((mut cluster, _)) = data.load(&LoadOptions::default()) else { return };
    let nodes: Vec<_> = cluster.node_indices().collect();
    let instances: Vec<_> = cluster.instance_indices().collect();
    let options = BalanceOptions { max_moves: Some(3), ..BalanceOptions::default() };
    let mut run = Balancer::new(&mut cluster, &nodes, &instances, options);
    while run.step().is_some() {}
    htools::text::serialize(run.cluster(), &nodes, &instances);
});
