//! Leases of floating IPs of an external network, made and used with the stock clients.

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;

use super::site::{FREE_POOL, HOST_LEASE, Site, until};

/// An address to lease, and an address that is already allocated.
const LEASED: &str = "203.0.113.210";
const TAKEN: &str = "203.0.113.211";

/// Runs all checks of floating IPs.
pub fn of_neutron(cases: &mut Cases, site: &Site<'_>) {
    let network = cases.check("there is an external network", || external_network(site));
    let Some(network) = network else { return };
    cases.check("an allocated address cannot be leased", || {
        let words = ["floating", "ip", "create", "--floating-ip-address", TAKEN, &network];
        site.admin_client(&words)?;
        let refused = site.admin_client(&["reservation", "floatingip", "create", &network, TAKEN]);
        site.admin_client(&["floating", "ip", "delete", TAKEN])?;
        match refused {
            Ok(made) => bail!("{made}"),
            Err(error) => ensure!(error.to_string().contains("Somebody has"), "{error:#}"),
        }
        Ok(())
    });
    cases.check("an address belongs to its owner as long as it is leased, even if its tags change", || {
        site.admin_client(&["reservation", "floatingip", "create", &network, LEASED])?;
        let wanted = format!("resource_type=virtual:floatingip,network_id={network},amount=1");
        let reservation = site.lease("alice", "physics", "ip", &wanted)?;
        let tag = format!("reservation:{reservation}");
        let tagged = || -> Result<bool> {
            let words =
                ["floating", "ip", "list", "--tags", &tag, "-f", "value", "-c", "Floating IP Address"];
            Ok(site.client("alice", "physics", &words)?.trim() == LEASED)
        };
        ensure!(tagged()?, "it is not the owner's");
        site.client("alice", "physics", &["floating", "ip", "unset", "--all-tag", LEASED])?;
        ensure!(!tagged()?, "the tags are still there");
        until("it is not made again", tagged)?;
        site.client("alice", "physics", &["floating", "ip", "delete", LEASED])?;
        until("it is not made again", tagged)
    });
    cases.check("hosts are leased while Neutron is away", || {
        site.lab.stop("neutron")?;
        let made = site.lease("alice", "physics", "dry", HOST_LEASE);
        site.lab.up()?;
        made?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "dry"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    cases.check("an address is taken back at the end of its lease", || {
        site.client("alice", "physics", &["reservation", "lease", "delete", "ip"])?;
        let words = ["floating", "ip", "list", "-f", "value", "-c", "Floating IP Address"];
        until("it stays", || Ok(!site.admin_client(&words)?.contains(LEASED)))?;
        let known = ["reservation", "floatingip", "list", "-f", "value", "-c", "id"];
        let id = site.admin_client(&known)?;
        site.admin_client(&["reservation", "floatingip", "delete", id.trim()]).map(drop)
    });
}

/// Returns the external network, and creates it if it doesn't exist. Its allocation pool ends at
/// 203.0.113.101, so higher addresses stay free for leases.
pub fn external_network(site: &Site<'_>) -> Result<String> {
    let list = || site.admin_client(&["network", "list", "--external", "-f", "value", "-c", "ID"]);
    if list()?.trim().is_empty() {
        site.admin_client(&["network", "create", "--external", "public"])?;
        let range = "start=203.0.113.2,end=203.0.113.101";
        let subnet =
            ["subnet", "create", "--network", "public", "--subnet-range", "203.0.113.0/24", "--no-dhcp"];
        site.admin_client(&[&subnet[..], &["--allocation-pool", range, "public-v4"]].concat())?;
    }
    Ok(list()?.split_whitespace().next().context("no network")?.to_owned())
}
