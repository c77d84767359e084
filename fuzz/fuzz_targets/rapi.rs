#![no_main]
//! The remote API's documents, one after the other: none may crash what reads them, nor what derives a cluster.

use cluster::LoadOptions;
use htools::rapi::Documents;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|byte| *byte == 3).map(<[u8]>::to_vec);
    let mut next = || parts.next().unwrap_or_default();
    let documents = Documents { groups: next(), nodes: next(), instances: next(), info: next() };
    if let Ok(data) = documents.load() {
        let _ = data.load(&LoadOptions { static_kvm_node_memory: 4096, ..LoadOptions::default() });
    }
});
