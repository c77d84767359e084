//! Allocation ratios of a lease's hosts in Placement.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use reqwest::Method;
use serde_json::{Value, json};

use super::site::{FREE_POOL, HOST_LEASE, Site, provider, until};

/// A host has memory for one server of this flavor, or for two at an allocation ratio of 2.
const LARGE: [&str; 9] = ["flavor", "create", "--ram", "6000", "--disk", "1", "--vcpus", "1", "large"];

/// Leases one host of the free pool.
pub fn of_placement(cases: &mut Cases, site: &Site<'_>) {
    let set = |pool: &str, ratio: &str| {
        site.allot("alice", "physics", &["leasepool", "set", pool, "--ram-ratio", ratio])
    };
    let boot = |name: &str, pool: &str| {
        let hint = format!("reservation={pool}");
        site.boot("alice", "physics", name, &["--flavor", "large", "--hint", &hint])
    };
    let grown = cases.check("a lease that over-commits its host's memory runs more servers there", || {
        site.admin_client(&LARGE)?;
        let pool = site.lease("alice", "physics", "dense", HOST_LEASE)?;
        let host = site.members(&pool)?.pop().context("no host")?;
        let before = memory(site, &host)?;
        boot("first", &pool)?;
        ensure!(boot("second", &pool).is_err(), "it runs on {host}, with {before}");
        site.client("alice", "physics", &["server", "delete", "--wait", "second"])?;
        set(&pool, "2")?;
        until("Placement is not told", || Ok(memory(site, &host)?["allocation_ratio"] == json!(2.0)))?;
        boot("second", &pool)?;
        ensure!(site.host_of("second")? == host, "it runs elsewhere");
        Ok((pool, host, before))
    });
    let Some((pool, host, before)) = grown else { return };
    cases.check("less than its servers use is refused, and changes nothing", || {
        let refused = set(&pool, "1").err().context("it is not refused")?;
        ensure!(refused.to_string().contains("more than it would have to give"), "{refused:#}");
        ensure!(memory(site, &host)?["allocation_ratio"] == json!(2.0), "{}", memory(site, &host)?);
        Ok(())
    });
    cases.check(
        "a ratio that nova-compute overwrites is found by the doctor, repaired, and found no more",
        || {
            // nova-compute does the same if nova.conf sets `ram_allocation_ratio`.
            overwrite(site, &host, 1.0)?;
            let found = site.doctor(&[])?;
            ensure!(
                found.contains("1 for MEMORY_MB") && found.contains("initial_ram_allocation_ratio"),
                "{found}"
            );
            let left = site.doctor(&["--repair"])?;
            ensure!(!left.contains("MEMORY_MB"), "{left}");
            ensure!(memory(site, &host)?["allocation_ratio"] == json!(2.0), "{}", memory(site, &host)?);
            Ok(())
        },
    );
    cases.check("after the lease the host has its own ratio and its full inventory again", || {
        site.client("alice", "physics", &["reservation", "lease", "delete", "dense"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        let after = memory(site, &host)?;
        for field in ["allocation_ratio", "total", "reserved", "min_unit", "max_unit", "step_size"] {
            ensure!(before[field] == after[field], "{field}: {before} {after}");
        }
        Ok(())
    });
}

/// A host's memory inventory in Placement.
fn memory(site: &Site<'_>, host: &str) -> Result<Value> {
    site.placement(&format!("resource_providers/{}/inventories/MEMORY_MB", provider(site, host)?))
}

/// Sets the ratio of a host's memory in Placement, bypassing the service.
fn overwrite(site: &Site<'_>, host: &str, ratio: f64) -> Result<()> {
    let mut inventory = memory(site, host)?;
    inventory["allocation_ratio"] = json!(ratio);
    let path = format!("resource_providers/{}/inventories/MEMORY_MB", provider(site, host)?);
    site.change_placement(&Method::PUT, &path, Some(&inventory))
}
