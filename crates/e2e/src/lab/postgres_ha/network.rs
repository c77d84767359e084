//! A network of its own: a bridge that services and clients are at, and a node in a name space at each port.

use std::process::Command;

use anyhow::Result;
use chores::run::{must_run, output_of};

const BRIDGE: &str = "lab";
/// Addresses of documentation (RFC 5737), since nobody else's may be meant.
const NETWORK: &str = "192.0.2";

/// Makes the bridge.
pub fn make() -> Result<()> {
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["addr", "add", &format!("{NETWORK}.1/24"), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])
}

/// The address of the node of that number.
pub fn address(number: usize) -> String {
    format!("{NETWORK}.{}", 10 + number)
}

/// Makes a name space and plugs it in.
pub fn add(name: &str, address: &str) -> Result<()> {
    let port = port(name);
    ip(&["netns", "add", name])?;
    ip(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name])?;
    ip(&["link", "set", &port, "master", BRIDGE, "up"])?;
    ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
    ip(&["-n", name, "link", "set", "eth0", "up"])?;
    ip(&["-n", name, "link", "set", "lo", "up"])
}

/// Pulls the plug of a node.
pub fn cut(name: &str) -> Result<()> {
    ip(&["link", "set", &port(name), "down"])
}

/// Plugs it in again.
pub fn heal(name: &str) -> Result<()> {
    ip(&["link", "set", &port(name), "up"])
}

/// All processes of a node.
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
