//! Checks that settings which aren't given have the defaults of the crates that use them, except for computed
//! ones.
#![cfg(test)]

use std::fmt::Debug;

use jiff::SignedDuration;
use service::Settings;

use super::assembly::{server_config, settings};
use crate::config::Configuration;

fn unsaid() -> Configuration {
    Configuration::given([]).expect("defaults")
}

#[test]
fn an_empty_file_is_the_default() {
    let mut read = unsaid();
    assert!(!std::mem::take(&mut read.server.settings).is_empty());
    same(&read, &Configuration::default());
}

/// Asserts that both are equal, and names the lines that differ.
fn same(read: &impl Debug, usual: &impl Debug) {
    let (read, usual) = (format!("{read:#?}"), format!("{usual:#?}"));
    let other = |(read, usual): &(&str, &str)| read != usual;
    let others: Vec<_> = read.lines().zip(usual.lines()).filter(other).collect();
    assert!(others.is_empty(), "read and usual: {others:#?}");
    assert_eq!(read.len(), usual.len());
}

#[test]
fn the_server_has_its_own_defaults() {
    let usual = server::Config::default();
    let mut read = server_config(&unsaid()).expect("defaults");
    assert!(!read.settings.is_empty() && read.placement.program.is_some());
    (read.settings, read.placement.program) = (Vec::new(), None);
    // Lowered to the number of files that the process can open.
    let connections = (read.limits.connections, read.limits.connections_per_address);
    assert!(connections <= (usual.limits.connections, usual.limits.connections_per_address));
    (read.limits.connections, read.limits.connections_per_address) =
        (usual.limits.connections, usual.limits.connections_per_address);
    same(&read, &usual);
}

#[test]
fn the_service_has_its_own_defaults() {
    let usual = Settings::default();
    let mut read = settings(&unsaid());
    // These depend on the machine and on the fleet.
    read.holder = usual.holder.clone();
    (read.steps_at_once, read.decisions_at_once) = (usual.steps_at_once, usual.decisions_at_once);
    // These are derived from other settings.
    read.plan_rules.longest_notice = usual.plan_rules.longest_notice;
    read.plan_rules.clear_ahead = usual.plan_rules.clear_ahead;
    // Rules alone don't move guests, but a service does.
    assert_eq!(std::mem::take(&mut read.plan_rules.moving_time), SignedDuration::from_mins(5));
    same(&read, &usual);
}
