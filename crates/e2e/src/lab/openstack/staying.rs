//! Servers that keep running when their lease ends.

use anyhow::{Result, ensure};
use chores::cases::Cases;

use super::site::{FREE_POOL, Site, until};

/// Differences between fences in how servers are booted.
#[derive(Clone, Copy, Debug)]
pub struct Ways {
    /// Arguments to boot a server in that reservation.
    pub words: fn(&str) -> Vec<String>,
    /// Flavor of preemptible servers.
    pub preemptible: &'static str,
    /// Whether preemptible servers stay off a host with kept servers.
    pub alone: bool,
}

/// Leases one host until the lease's end time.
pub fn at_the_end(cases: &mut Cases, site: &Site<'_>, ways: Ways) {
    let words = |reservation: &str| (ways.words)(reservation);
    let boot = |name: &str, reservation: &str| {
        let words = words(reservation);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        site.boot("alice", "physics", name, &words)
    };
    let stayed = cases.check("servers of a lease that keeps them run on untouched when it is over", || {
        let made = ["lease", "create", "stay", "--hosts", "1", "--for", "1h", "--end-action", "keep"];
        site.allot("alice", "physics", &made)?;
        let reservation = site.until_active("stay")?;
        boot("resident", &reservation)?;
        let before = site.server("resident")?;
        site.end_soon("stay")?;
        until("the lease is not over", || Ok(site.alices("stay")?["status"] == "TERMINATED"))?;
        until("it does not name the servers that stayed", || says_who_stayed(site))?;
        let after = site.server("resident")?;
        for field in ["id", "status", "updated", "OS-EXT-SRV-ATTR:host"] {
            ensure!(before[field] == after[field], "{field}: {before} {after}");
        }
        let host = site.host_of("resident")?;
        ensure!(site.aggregate(&reservation)?.is_none(), "the lease's aggregate is still there");
        ensure!(
            site.members(&kept(&reservation))? == [host.clone()],
            "{:?}",
            site.members(&kept(&reservation))
        );
        ensure!(
            site.members(FREE_POOL)?.contains(&host) && site.closed()? == 0,
            "{host} is not in the free pool"
        );
        Ok((reservation, host))
    });
    let Some((reservation, host)) = stayed else { return };
    cases.check(
        "their project cannot start more servers, and preemptible servers run where the guide says",
        || {
            ensure!(boot("late", &reservation).is_err(), "it runs on {}", site.host_of("late")?);
            if site.is_there("late")? {
                site.client("alice", "physics", &["server", "delete", "--wait", "late"])?;
            }
            site.boot("bob", "chemistry", "elsewhere", &["--flavor", ways.preemptible])?;
            ensure!(
                !ways.alone || site.host_of("elsewhere")? != host,
                "a preemptible server runs on their host"
            );
            site.client("bob", "chemistry", &["server", "delete", "--wait", "elsewhere"]).map(drop)
        },
    );
    cases.check("once they are gone the lease does not mention them, and their host is leased again", || {
        site.client("alice", "physics", &["server", "delete", "--wait", "resident"])?;
        until("the aggregate stays", || Ok(site.aggregate(&kept(&reservation))?.is_none()))?;
        until("the lease still mentions them", || Ok(site.alices("stay")?["status_reason"].is_null()))?;
        ensure!(site.members(FREE_POOL)?.len() == 3, "{:?}", site.members(FREE_POOL)?);
        site.lease("alice", "physics", "all", "resource_type=physical:host,min=3,max=3")?;
        for name in ["all", "stay"] {
            site.client("alice", "physics", &["reservation", "lease", "delete", name])?;
        }
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
}

fn says_who_stayed(site: &Site<'_>) -> Result<bool> {
    let lease = site.alices("stay")?;
    Ok(lease["status_reason"].as_str().is_some_and(|reason| reason.contains("have stayed")))
}

/// Aggregate of the hosts that kept their servers at the end of the lease.
fn kept(reservation: &str) -> String {
    format!("{reservation} kept")
}
