#![no_main]
//! A master daemon's answers, one after the other: none may crash what reads them, nor what derives a cluster.

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
