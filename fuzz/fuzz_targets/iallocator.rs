#![no_main]
//! The iallocator protocol: no input may crash the parser, nor what derives a cluster from what it read.

use cluster::LoadOptions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    if let Ok(message) = htools::iallocator::parse(json) {
        let _ = message.data.load(&LoadOptions::default());
    }
});
