//! Idle compute hosts are powered off, and powered on again before a lease starts. Powering off is simulated
//! by suspending `nova-compute`, powering on by resuming it.

use anyhow::{Result, ensure};
use chores::cases::Cases;
use chores::run::write;
use serde_json::Value;

use super::site::{FREE_POOL, Site, ends_well, until};
use crate::leasing::date::Minute;

/// Reason for disabling the compute service of a host that is off or about to be switched off.
const SAVING: &str = "allot: saving power";

/// Minutes until the start of the lease for which all hosts are woken.
const AHEAD: i64 = 3;

/// Starts its own services: first one with power saving, then one without.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let hooks = site.lab.root.join("power.toml");
    let pids = site.lab.state.join("pid");
    let hook = |moment: &str, signal: &str| {
        let script = format!("read pid _ < {}/nova-compute-$ALLOT_HOST; kill -{signal} $pid", pids.display());
        format!("[hooks.{moment}]\nexec = [\"bash\", \"-c\", '{script}']\n")
    };
    write(&hooks, (hook("on_power_off", "STOP") + &hook("on_power_on", "CONT")).as_bytes())?;
    let hooks = hooks.display().to_string();
    let switched = site.launch.clone().with(["--openstack-power-file", hooks.as_str()]);
    let saving = [
        ["--energy-enabled", "true"],
        ["--energy-spare-hosts", "1"],
        ["--energy-boot-time", "40s"],
        ["--energy-margin", "20s"],
        ["--energy-shortest-rest", "1m"],
        ["--limits-observe-interval", "5s"],
    ];
    let server = switched.clone().with(saving.concat()).start()?;
    cases.check("unused hosts are switched off except for a spare host, and disabled in Nova", || {
        until("two are not off", || Ok(off(site)? == 2))?;
        let shown = || site.allot("admin", "admin", &["energy", "hosts"]);
        until("the service takes them for on", || {
            Ok(shown()?.lines().filter(|line| line.contains(" off ")).count() == 2)
        })
    });
    cases.check("they are on again when a lease of all hosts starts, and its servers run there", || {
        let start = Minute::now().plus(AHEAD).sent();
        let words = ["lease", "create", "all", "--hosts", "3", "--start", &start, "--for", "1h"];
        site.allot("alice", "physics", &words)?;
        until("they are not woken", || Ok(off(site)? == 0))?;
        until("the lease has not come near", || Ok(site.alices("all")?["status"] != "PENDING"))?;
        let hint = format!("reservation={}", site.until_active("all")?);
        let reason = &site.alices("all")?["status_reason"];
        ensure!(reason.is_null(), "{reason}");
        for name in ["one", "two", "three"] {
            site.boot("alice", "physics", name, &["--flavor", "medium", "--hint", &hint])?;
        }
        let mut hosts = Vec::new();
        for name in ["one", "two", "three"] {
            hosts.push(site.host_of(name)?);
        }
        hosts.sort_unstable();
        ensure!(hosts == ["host1", "host2", "host3"], "{hosts:?}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "all"]).map(drop)
    });
    cases.check("they are off again when it is over", || {
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        until("two are not off", || Ok(off(site)? == 2))
    });
    cases.check("the service shuts down cleanly while hosts are off", || ends_well(server));
    let server = switched.start()?;
    cases.check("a service that does not save power any more wakes them", || {
        until("some are off", || {
            Ok(site.closed()? == 0 && services(site, |_| true)? == services(site, is_up)?)
        })
    });
    cases.check("the service shuts down cleanly", || ends_well(server));
    Ok(())
}

/// Number of hosts that are off, according to Nova's compute services.
fn off(site: &Site<'_>) -> Result<usize> {
    services(site, |service| service["disabled_reason"] == SAVING && !is_up(service))
}

fn is_up(service: &Value) -> bool {
    service["state"] == "up"
}

/// Number of compute services that match.
fn services(site: &Site<'_>, wanted: impl Fn(&Value) -> bool) -> Result<usize> {
    let all = site.nova("os-services?binary=nova-compute")?;
    Ok(all["services"].as_array().into_iter().flatten().filter(|service| wanted(service)).count())
}
