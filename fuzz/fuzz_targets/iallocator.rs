#![no_main]
//! Sends arbitrary messages to `hail`. They must not crash the parser or the allocator.

use htools::io::Io;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let mut stdin = json;
    let mut io = Io { stdin: &mut stdin, out: &mut std::io::sink(), err: &mut std::io::sink() };
    htools::hail::run(&["-".to_owned()], &mut io);
});
