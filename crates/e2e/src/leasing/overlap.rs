//! Invariants of host allocations: no host is in two leases at once, and every lease has its promised number
//! of hosts.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::date::Minute;
use super::http::{Caller, list, text};

/// Checks that no host is in two leases of whole hosts at the same time, and that every lease has at least
/// the `min` hosts it was promised.
pub fn no_overlap(caller: &Caller) -> Result<()> {
    let allocations = list(caller.get("/v1/os-hosts/allocations")?.expect(200)?, "allocations")?;
    let mut leases = caller.leases()?;
    // Skip leases after their end. They have no claim to their hosts anymore, even if these are still being
    // taken back.
    let now = Minute::now().shown();
    leases.retain(|lease| lease["end_date"].as_str().is_some_and(|end| *end > *now));
    let reservations = leases.iter().flat_map(|lease| lease["reservations"].as_array().into_iter().flatten());
    let mut held = vec![Vec::new(); allocations.len()];
    let of_hosts = |reservation: &&Value| reservation["resource_type"] == "physical:host";
    for reservation in reservations.filter(of_hosts) {
        let mut found = 0;
        for (host, windows) in allocations.iter().zip(&mut held) {
            let of_host = host["reservations"].as_array().context("no reservations")?;
            for held in of_host.iter().filter(|held| held["id"] == reservation["id"]) {
                let start = Minute::read(text(held, "start_date")?)?;
                windows.push((start, Minute::read(text(held, "end_date")?)?));
                found += 1;
            }
        }
        let min = reservation["min"].as_u64().context("no min")?;
        ensure!(found >= min, "{found} hosts instead of {min}: {reservation}");
    }
    for (host, windows) in allocations.iter().zip(&mut held) {
        windows.sort_unstable();
        let overlap = windows.windows(2).find(|pair| pair[1].0 < pair[0].1);
        ensure!(overlap.is_none(), "host {} is in two leases at once: {host}", host["resource_id"]);
    }
    Ok(())
}
