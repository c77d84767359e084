//! allot
fn main() {}
