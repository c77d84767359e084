//! What the simulated fleet of an empty service is made of, as far as checks name it.

/// Machines that may be taken on, by name.
pub const MACHINES: [&str; 3] = ["node1", "node2", "node3"];
/// A network that addresses may come from.
pub const NETWORK: &str = "net";
/// Addresses of it that nobody else hands out.
pub const ADDRESSES: [&str; 3] = ["203.0.113.10", "203.0.113.11", "203.0.113.12"];
