#![no_main]
//! Reads arbitrary answers of a master daemon, separated by bytes of value 3. They must not crash the parser
//! or the loading of the cluster.

use cluster::LoadOptions;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|byte| *byte == 3);
    let mut next = || serde_json::from_slice(parts.next().unwrap_or_default()).unwrap_or(Value::Null);
    let (nodes, instances, info, groups) = (next(), next(), next(), next());
    if let Ok(data) = htools::luxi::cluster_from(&nodes, &instances, &info, &groups) {
        let _ = data.load(&LoadOptions { static_kvm_node_memory: 4096, ..LoadOptions::default() });
    }
});
