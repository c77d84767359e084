//! Checks a fence under load: `bob` boots servers continuously while a lease of another project starts, runs
//! and ends. A watcher polls Nova for servers of his on the lease's hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::site::{FREE_POOL, Site, text_of, until};

/// Pause between requests, of both the watcher and the starter.
const PAUSE: Duration = Duration::from_millis(200);

/// Duration of the lease, counted from its status ACTIVE.
const LASTS: Duration = Duration::from_secs(20);

/// Maximum time of a foreign server on a leased host, for fences that reach schedulers with a delay.
pub const STAYS: Duration = Duration::from_secs(30);

/// Number of servers that `bob` keeps at a time.
const SERVERS: usize = 8;

/// Maximum time that a foreign server can be on a host of an active lease.
#[derive(Clone, Copy, Debug)]
pub enum Stay {
    Never,
    AtMost(Duration),
}

/// Checks the fence of the site's service. `bob` must be able to boot preemptible servers with `flavor`.
pub fn check(cases: &mut Cases, site: &Site<'_>, flavor: &str, stay: Stay) {
    let sentence = match stay {
        Stay::Never => {
            "servers that another project keeps starting are never seen on the host of a lease".to_owned()
        }
        Stay::AtMost(time) => {
            format!(
                "servers that another project keeps starting stay less than {} s on a host of a lease",
                time.as_secs()
            )
        }
    };
    cases.check(&sentence, || {
        let seen = watched(site, flavor)?;
        let longest = seen.stays.values().map(|(first, last)| last.duration_since(*first)).max();
        println!(
            "    {} looks, {} at hosts of the lease; {} servers asked for, {} seen in the free pool, {} there ({longest:?})",
            seen.looks,
            seen.of_lease,
            seen.asked,
            seen.ran,
            seen.stays.len()
        );
        ensure!(seen.looks > 50 && seen.ran > 0 && seen.of_lease > 10, "too little was seen: {seen:?}");
        match stay {
            Stay::Never => ensure!(seen.stays.is_empty(), "{:?}", seen.stays.keys()),
            Stay::AtMost(time) => ensure!(longest.is_none_or(|longest| longest < time), "{longest:?}"),
        }
        Ok(())
    });
}

/// The watcher's observations.
#[derive(Debug, Default)]
struct Seen {
    looks: usize,
    /// Number of looks in which a lease had hosts.
    of_lease: usize,
    /// Foreign servers on hosts of the lease, with the first and the last time each was seen there.
    stays: BTreeMap<String, (Instant, Instant)>,
    /// Number of servers that were requested, and number of servers seen on a host that no lease held.
    asked: usize,
    ran: usize,
}

fn watched(site: &Site<'_>, flavor: &str) -> Result<Seen> {
    let stop = Arc::new(AtomicBool::new(false));
    let starter = start_servers(site, flavor, Arc::clone(&stop))?;
    let watcher = watch(site, Arc::clone(&stop));
    let leased = || -> Result<()> {
        until("no server runs", || Ok(!site.servers("bob", "chemistry")?.trim().is_empty()))?;
        site.lease("alice", "physics", "watched", "resource_type=physical:host,min=2,max=2")?;
        sleep(LASTS);
        site.client("alice", "physics", &["reservation", "lease", "delete", "watched"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() >= 2 && site.closed()? == 0))
    };
    let leased = leased();
    stop.store(true, Ordering::Relaxed);
    let asked = starter.join().map_err(|_| anyhow::anyhow!("no servers are started anymore"))??;
    let mut seen = watcher.join().map_err(|_| anyhow::anyhow!("the watcher has ended"))??;
    site.delete_servers_of(&site.cloud.token("bob", "chemistry")?)?;
    leased?;
    seen.asked = asked;
    Ok(seen)
}

/// Boots servers and deletes the oldest ones until `stop` is set. Returns the number of servers booted.
fn start_servers(site: &Site<'_>, flavor: &str, stop: Arc<AtomicBool>) -> Result<JoinHandle<Result<usize>>> {
    let id = |kind: &str, name: &str| -> Result<String> {
        let shown = site.admin_client(&[kind, "show", "-f", "value", "-c", "id", name])?;
        Ok(shown.trim().to_owned())
    };
    let (image, flavor) = (id("image", "fake")?, id("flavor", flavor)?);
    let (token, port, url) = (site.cloud.token("bob", "chemistry")?, site.lab.port, site.nova_url("servers"));
    Ok(spawn(move || {
        let cloud = Cloud::new(port)?;
        let mut there = Vec::new();
        let mut asked = 0;
        while !stop.load(Ordering::Relaxed) {
            let name = format!("intruder-{asked}");
            let server = json!({"name": name, "imageRef": image, "flavorRef": flavor, "networks": "none"});
            let body = json!({"server": server});
            let answer = cloud.ask_compute(&Method::POST, &url, &token, Some(&body))?;
            if let Some(id) = answer.body["server"]["id"].as_str() {
                there.push(id.to_owned());
                asked += 1;
            }
            if there.len() > SERVERS {
                cloud.ask_compute(&Method::DELETE, &format!("{url}/{}", there.remove(0)), &token, None)?;
            }
            sleep(PAUSE);
        }
        Ok(asked)
    }))
}

fn watch(site: &Site<'_>, stop: Arc<AtomicBool>) -> JoinHandle<Result<Seen>> {
    let (admin, port) = (site.admin.clone(), site.lab.port);
    let urls = [site.nova_url("os-aggregates"), site.nova_url("servers/detail?all_tenants=1")];
    spawn(move || {
        let cloud = Cloud::new(port)?;
        let ask = |url: &str| cloud.ask(&Method::GET, url, &admin, None).map(|answer| answer.body);
        let (mut seen, mut ran) = (Seen::default(), BTreeSet::new());
        while !stop.load(Ordering::Relaxed) {
            // A host that the lease holds before and after the look was held during the look too.
            let before = held(&ask(&urls[0])?)?;
            let servers = ask(&urls[1])?;
            let after = held(&ask(&urls[0])?)?;
            let now = Instant::now();
            seen.looks += 1;
            seen.of_lease += usize::from(before.keys().any(|host| after.contains_key(host)));
            let servers = servers["servers"].as_array().with_context(|| servers.to_string())?;
            for server in servers {
                let (id, host) = (text_of(&server["id"]), text_of(&server["OS-EXT-SRV-ATTR:host"]));
                match before.get(&host).filter(|owner| after.get(&host) == Some(owner)) {
                    Some(owner) if server["tenant_id"] != owner.as_str() => {
                        seen.stays.entry(id).or_insert((now, now)).1 = now;
                    }
                    None if server["status"] == "ACTIVE" => {
                        ran.insert(id);
                    }
                    _ => {}
                }
            }
            sleep(PAUSE);
        }
        seen.ran = ran.len();
        Ok(seen)
    })
}

/// Owner (project) of each host that a lease holds as a whole.
fn held(aggregates: &Value) -> Result<BTreeMap<String, String>> {
    let Some(all) = aggregates["aggregates"].as_array() else { bail!("no aggregates: {aggregates}") };
    let hosts = |aggregate: &Value| -> Vec<String> {
        aggregate["hosts"].as_array().into_iter().flatten().map(text_of).collect()
    };
    let free: BTreeSet<String> = all.iter().filter(|one| one["name"] == FREE_POOL).flat_map(hosts).collect();
    let owned = all.iter().filter_map(|one| Some((one, one["metadata"]["blazar:owner"].as_str()?)));
    let held =
        owned.flat_map(|(one, owner)| hosts(one).into_iter().map(move |host| (host, owner.to_owned())));
    Ok(held.filter(|(host, _)| !free.contains(host)).collect())
}
