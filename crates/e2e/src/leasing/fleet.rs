//! The parts of a new service's simulated fleet that checks refer to by name.

/// Names of machines that can be registered as hosts.
pub const MACHINES: [&str; 3] = ["r1-h01", "r1-h02", "r1-h03"];
/// A network with floating IPs.
pub const NETWORK: &str = "public";
/// Addresses of the network that aren't allocated to anyone else.
pub const ADDRESSES: [&str; 3] = ["203.0.113.110", "203.0.113.111", "203.0.113.112"];
