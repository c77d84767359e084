//! What the simulated fleet of an empty service is made of, as far as checks name it.

/// Machines that may be taken on, by name.
pub const MACHINES: [&str; 3] = ["r1-h01", "r1-h02", "r1-h03"];
/// A network that addresses may come from.
pub const NETWORK: &str = "public";
/// Addresses of it that nobody else hands out.
pub const ADDRESSES: [&str; 3] = ["203.0.113.110", "203.0.113.111", "203.0.113.112"];
