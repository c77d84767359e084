//! The scenarios of `contrib/tempest` with each fence: preemptible servers leave when a reservation starts.

use anyhow::{Result, ensure};
use chores::cases::Cases;

use super::cloud::{OF_ALL, People};
use super::scheduler;
use super::site::{FREE_POOL, Site, ends_well, until};
use super::tempest::Tempest;
use super::{ALLOT_FILTER, TENANT, TRAITS, filter, tenant, traits};
use crate::leasing::server::Launch;

/// Number of scenarios: one with a lease of hosts, one with a lease of instances.
const SCENARIOS: usize = 2;

/// Seconds: the grace time of the lab's services, their default margins, and some slack.
const NOTICE: u64 = 10 + 30 + 5 + 5;

/// Runs the scenarios against a service with that fence. The hosts must be in the free pool; an earlier
/// service can have used another fence.
pub fn with_fence(
    cases: &mut Cases,
    site: &Site<'_>,
    people: &People,
    launch: Launch,
    fence: &str,
) -> Result<()> {
    site.lab.tell(&format!("scenarios with the fence {fence}"));
    site.delete_all_servers()?;
    let (launch, marks) = match fence {
        ALLOT_FILTER => {
            filter::install(site.lab)?;
            (launch.with(filter::OPTIONS), "preemptible_hints = preemptible:true".to_owned())
        }
        TENANT => {
            tenant::isolate(site.lab)?;
            let user = format!("preemptible_username = bob\npreemptible_password = {OF_ALL}");
            (launch.with(tenant::options(people)), format!("{user}\npreemptible_project_name = chemistry"))
        }
        TRAITS => {
            traits::isolate(site.lab)?;
            // A separate flavor, because the part `traits` expects the flavor `preempt` without the trait.
            let words = ["flavor", "create", "--id", "spot", "--vcpus", "1", "--ram", "512", "--disk", "1"];
            let (mark, free) = ("blazar:preemptible=true", format!("{}=required", traits::FREE));
            let properties = ["--property", mark, "--property", &free, "spot"];
            site.admin_client(&[&words[..], &properties].concat())?;
            (launch.with(traits::OPTIONS), "preemptible_flavor_ref = spot".to_owned())
        }
        _ => {
            scheduler::set(site.lab, &[])?;
            (launch.with(["--preemptible-enabled", "true"]), "preemptible_flavor_ref = preempt".to_owned())
        }
    };
    let tempest = Tempest::install(site.lab)?.with_ours()?;
    tempest.configure(&format!("[allot]\nleased_hosts = 2\nnotice = {NOTICE}\n{marks}\n"))?;
    let server = launch.start()?;
    let sentence = format!("preemptible servers leave when reservations start with the fence {fence}");
    cases.check(&sentence, || {
        until("hosts are missing in the free pool", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        let log = site.lab.root.join(format!("scenario-{fence}.txt"));
        tempest.run("allot_tempest_plugin", SCENARIOS, &log)
    });
    cases.check(&format!("the scenarios with the fence {fence} leave nothing behind"), || {
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3 && site.closed()? == 0))?;
        let left = site.nova("servers?all_tenants=1")?;
        ensure!(left["servers"].as_array().is_some_and(Vec::is_empty), "{left}");
        Ok(())
    });
    if fence == TRAITS {
        site.admin_client(&["flavor", "delete", "spot"])?;
    }
    cases.check(&format!("the service shuts down cleanly after the scenarios with {fence}"), || {
        ends_well(server)
    });
    Ok(())
}
