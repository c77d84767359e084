#![no_main]
//! Reads arbitrary reports of monitoring daemons. They must not crash the parser or the scoring of a cluster
//! with these loads.

use cluster::LoadOptions;
use htools::mond::{self, Collector};
use libfuzzer_sys::fuzz_target;
use placement::board::Board;

const CLUSTER: &str = "g|u|preferred|\n\nn1|1000|0|900|1000|900|4|M|u\nn2|1000|0|900|1000|900|4|N|u\n\n\
    i1|100|100|1|running|Y|n1|n2|drbd|\ni2|100|100|1|running|Y|n2|n1|drbd|\n\n\n";

fuzz_target!(|text: &str| {
    let Ok(answers) = mond::parse(text) else { return };
    for collector in [Collector::Cpu, Collector::XenCpu] {
        let data = htools::text::parse(CLUSTER).expect("a valid cluster");
        let (mut cluster, _) = data.load(&LoadOptions::default()).expect("valid options");
        let _ = mond::apply(&mut cluster, &answers, collector);
        let nodes: Vec<_> = cluster.node_indices().collect();
        Board::new(&cluster, &nodes).score();
    }
});
