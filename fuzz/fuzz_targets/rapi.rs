#![no_main]
//! Reads arbitrary documents of the remote API, separated by bytes of value 3. They must not crash the
//! parsers or the loading of the cluster.

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
