//! Checks the guide's table of filters: the properties that each filter reads, and their source in the cloud.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;

use super::cloud::People;
use super::site::{Site, ends_well, set_trait, until};

/// Number of hosts that the service manages.
const ALL: usize = 3;

/// Trait that is added to one host.
const TRAIT: &str = "CUSTOM_LAB_FILTERED";

/// A filter, the capability to set on the first host (if any), the options of the request, and the number of
/// hosts that pass.
struct Fact {
    filter: &'static str,
    capability: Option<&'static str>,
    words: [&'static str; 2],
    pass: usize,
}

const fn fact(
    filter: &'static str,
    capability: Option<&'static str>,
    words: [&'static str; 2],
    pass: usize,
) -> Fact {
    Fact { filter, capability, words, pass }
}

/// Sizes are chosen for Nova's fake hypervisors.
const FACTS: [Fact; 17] = [
    fact("AvailabilityZoneFilter", None, ["--zone", "nova"], ALL),
    fact("AvailabilityZoneFilter", None, ["--zone", "elsewhere"], 0),
    fact("CoreFilter", None, ["--host-vcpus", "11"], 0),
    fact("CoreFilter", Some("cpu_allocation_ratio=2"), ["--host-vcpus", "11"], 1),
    fact("RamFilter", None, ["--host-memory", "8193"], 0),
    fact("DiskFilter", None, ["--host-disk", "1029"], 0),
    fact("JsonFilter", None, ["--where", "hypervisor_type=kvm"], 0),
    fact("ComputeCapabilitiesFilter", None, ["--extra-spec", "capabilities:cpu_info:arch=x86_64"], ALL),
    fact("ComputeCapabilitiesFilter", None, ["--extra-spec", "capabilities:cpu_info:arch=aarch64"], 0),
    fact(
        "AggregateInstanceExtraSpecsFilter",
        Some("ssd=yes"),
        ["--extra-spec", "aggregate_instance_extra_specs:ssd=yes"],
        1,
    ),
    fact("PlacementFilter", None, ["--extra-spec", "trait:CUSTOM_LAB_FILTERED=required"], 1),
    fact("TrustedFilter", Some("trusted_host=trusted"), ["--extra-spec", "trust:trusted_host=trusted"], 1),
    fact("NUMATopologyFilter", Some("numa_nodes=2"), ["--extra-spec", "hw:numa_nodes=2"], 1),
    fact(
        "PciPassthroughFilter",
        Some("pci_passthrough:alias=gpu:2"),
        ["--extra-spec", "pci_passthrough:alias=gpu:2"],
        1,
    ),
    fact("ImagePropertiesFilter", None, ["--image-property", "hw_architecture=x86_64"], ALL),
    fact("ImagePropertiesFilter", None, ["--image-property", "hw_architecture=aarch64"], 0),
    fact(
        "AggregateImagePropertiesIsolation",
        Some("os_distro=debian"),
        ["--image-property", "os_distro=rhel"],
        ALL - 1,
    ),
];

/// Starts its own services.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>, people: &People) -> Result<()> {
    let isolating = site.launch.clone().with(["--filters-isolated-hosts", "host1"]).start()?;
    cases.check("IsolatedHostsFilter goes by the settings", || {
        passes(site, "IsolatedHostsFilter", &[], ALL - 1)
    });
    cases.check("the service shuts down cleanly with isolated hosts", || ends_well(isolating));
    let server = site.launch.start()?;
    set_trait(site, "host1", TRAIT, true)?;
    site.doctor(&["--repair"])?;
    for Fact { filter, capability, words, pass } in FACTS {
        let what = [capability.unwrap_or_default(), words[1]].join(" ");
        cases.check(&format!("{filter} passes the hosts that the guide documents: {}", what.trim()), || {
            with_capability(site, capability, || passes(site, filter, &words, pass))
        });
    }
    cases.check("HomogeneousHostsFilter uses the hypervisors' own reports", || {
        // The lab's hypervisors are identical.
        passes(site, "HomogeneousHostsFilter", &["--alike"], ALL)
    });
    cases.check("AggregateMultiTenancyIsolation goes by the capability of hosts", || {
        let theirs = format!("filter_tenant_id={}", people.chemistry);
        with_capability(site, Some(&theirs), || passes(site, "AggregateMultiTenancyIsolation", &[], ALL - 1))
    });
    cases.check("hints work, except for hints about servers of other projects", || {
        asked(site, 1, &["--hint", "query=[\"==\", \"$hypervisor_type\", \"fake\"]"])?;
        let refused =
            asked(site, 1, &["--hint", "group=anti-affinity"]).err().context("it is not refused")?;
        ensure!(format!("{refused:#}").contains("group"), "{refused:#}");
        Ok(())
    });
    cases.check("ComputeFilter goes by Nova's compute services", || {
        let service = |word| site.admin_client(&["compute", "service", "set", word, "host1", "nova-compute"]);
        service("--disable")?;
        let noticed = until("it is not noticed", || Ok(passes(site, "ComputeFilter", &[], ALL - 1).is_ok()));
        service("--enable")?;
        noticed?;
        until("the host did not return", || Ok(asked(site, ALL, &[]).is_ok()))
    });
    set_trait(site, "host1", TRAIT, false)?;
    cases.check("the service shuts down cleanly after all filters", || ends_well(server));
    Ok(())
}

/// Runs `check` while the first host has that capability.
fn with_capability(
    site: &Site<'_>,
    capability: Option<&str>,
    check: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let Some(capability) = capability else { return check() };
    let (name, _) = capability.split_once('=').context("no value")?;
    let update =
        |words: [&str; 2]| site.allot("admin", "admin", &[&["host", "update", "host1"][..], &words].concat());
    update(["--set", capability])?;
    let checked = check();
    update(["--unset", name])?;
    checked
}

/// Checks that `pass` hosts can be leased. If the service has more hosts, a request for one more must be
/// rejected, with that filter as the reason.
fn passes(site: &Site<'_>, filter: &str, words: &[&str], pass: usize) -> Result<()> {
    if pass > 0 {
        asked(site, pass, words)?;
    }
    if pass < ALL {
        let refused = asked(site, pass + 1, words).err().with_context(|| format!("more than {pass} pass"))?;
        let said = match filter {
            "JsonFilter" => "not matching resource_properties".to_owned(),
            filter => format!("({filter})"),
        };
        ensure!(format!("{refused:#}").contains(&said), "{refused:#}");
    }
    Ok(())
}

/// Output of a dry run for a lease of that many hosts, starting now.
fn asked(site: &Site<'_>, hosts: usize, words: &[&str]) -> Result<String> {
    let hosts = hosts.to_string();
    let fixed = ["lease", "create", "filtered", "--dry-run", "--for", "1h", "--hosts", &hosts];
    site.allot("alice", "physics", &[&fixed[..], words].concat())
}
