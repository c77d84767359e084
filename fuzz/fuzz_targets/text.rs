#![no_main]
//! The text format: no input may crash the parser, nor what derives a cluster from what it read.

use cluster::LoadOptions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(data) = htools::text::parse(text) {
        let _ = data.load(&LoadOptions::default());
    }
});
