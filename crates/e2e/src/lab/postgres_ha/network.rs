//! The lab's network: services and clients are on a bridge, and each node is in a network namespace attached
//! to it.

use std::process::Command;

use anyhow::Result;
use chores::run::{must_run, output_of};

const BRIDGE: &str = "lab";
/// A range for documentation (RFC 5737), so no real address can be hit.
const NETWORK: &str = "192.0.2";

/// Creates the bridge.
pub fn make() -> Result<()> {
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["addr", "add", &format!("{NETWORK}.1/24"), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])
}

/// Address of the node with that number.
pub fn address(number: usize) -> String {
    format!("{NETWORK}.{}", 10 + number)
}

/// Creates a node's namespace and attaches it to the bridge.
pub fn add(name: &str, address: &str) -> Result<()> {
    let port = port(name);
    ip(&["netns", "add", name])?;
    ip(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name])?;
    ip(&["link", "set", &port, "master", BRIDGE, "up"])?;
    ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
    ip(&["-n", name, "link", "set", "eth0", "up"])?;
    ip(&["-n", name, "link", "set", "lo", "up"])
}

/// Disconnects a node.
pub fn cut(name: &str) -> Result<()> {
    ip(&["link", "set", &port(name), "down"])
}

/// Reconnects a node.
pub fn heal(name: &str) -> Result<()> {
    ip(&["link", "set", &port(name), "up"])
}

/// Process ids of a node.
pub fn processes(name: &str) -> Result<Vec<String>> {
    let text = output_of(Command::new("ip").args(["netns", "pids", name]))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn port(name: &str) -> String {
    format!("port-{name}")
}

fn ip(words: &[&str]) -> Result<()> {
    must_run(Command::new("ip").args(words))
}
