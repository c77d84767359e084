//! Creates the fleet that the configuration selects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambient::{Clock, RandomIds};
use fleet::Fleet;
use fleet::hooks::{HooksConfig, HooksError, HooksFleet, PowerConfig, PowerHooks};
use fleet::simulated::{BackgroundLoad, Layout, SimulatedFleet, Timing};
use fleet_openstack::{Fence, OpenStackFleet};
use leases::preemption::{Mark, PreemptionRules, ProjectPattern};
use openstack::Session;

use super::error::AssemblyError;
use super::hooks_file::HooksFile;
use super::keystone;
use crate::config::{Configuration, DatabaseChoice, FenceChoice, FleetChoice};

/// Maximum number of projects in the metadata of the free pool's aggregate, which each round of observations
/// reads.
const MOST_TENANTS: usize = 1000;

/// Maximum number of patterns of preemptible projects with the fence allot-filter. Each observation compares
/// every server with them.
const MOST_PATTERNS: usize = 100;

/// Maximum length of a project's identifier in Keystone.
const LONGEST_PROJECT: usize = 64;

/// Key of the setting that names the hooks for switching compute hosts on and off.
pub(super) const POWER_FILE: &str = "openstack.power_file";

/// Properties of a simulated fleet.
pub(crate) struct Machines {
    pub layout: Layout,
    pub timing: Timing,
    pub background_load: BackgroundLoad,
}

/// The fleet that the settings select. `machines` only matters for a simulated one.
pub(super) fn fleet(
    configuration: &Configuration,
    clock: &Arc<dyn Clock>,
    machines: &Machines,
) -> Result<Arc<dyn Fleet>, AssemblyError> {
    let clock = clock.clone();
    match &configuration.fleet {
        FleetChoice::Hooks(path) => {
            let file: HooksFile<'_, HooksConfig> =
                HooksFile::read("fleet", path, "docs/tutorials/own-machines.md")?;
            warn_of_hooks(&file.config.missing());
            let fleet = HooksFleet::open(&file.config, clock).map_err(|error| file.located(&error))?;
            Ok(Arc::new(fleet))
        }
        FleetChoice::OpenStack => {
            let fleet = cloud(configuration, clock)?;
            let Some(path) = &configuration.openstack.power_file else { return Ok(Arc::new(fleet)) };
            let file: HooksFile<'_, PowerConfig> =
                HooksFile::read(POWER_FILE, path, "docs/how-to/openstack.md")?;
            warn_of_hooks(&file.config.missing());
            let hooks = PowerHooks::new(&file.config).map_err(|error| file.located(&error))?;
            Ok(Arc::new(fleet.with_power(hooks)))
        }
        FleetChoice::Simulated => {
            let seed = configuration.simulated.seed;
            let fleet = match state_file(configuration) {
                Some(path) => SimulatedFleet::persistent(&path, clock, seed, &machines.layout)?,
                None => SimulatedFleet::new(clock, seed, &machines.layout),
            };
            let fleet = fleet.with_timing(machines.timing).with_grace(configuration.service.plan_rules.grace);
            Ok(Arc::new(fleet.with_background_load(machines.background_load)))
        }
    }
}

/// Logs requirements of hooks that are missing. The service starts without them: they may exist when the
/// hooks are called.
fn warn_of_hooks(missing: &[HooksError]) {
    for reason in missing {
        tracing::warn!(%reason, "hook unusable");
    }
}

/// Fails if power saving is enabled for a fleet that can't switch hosts.
pub(super) fn check_power(configuration: &Configuration, switches_hosts: bool) -> Result<(), AssemblyError> {
    let reason = "energy.enabled: the fleet cannot switch hosts; one of hooks needs on_power_on and on_power_off, \
                  OpenStack needs openstack.power_file";
    let wrong = configuration.energy.enabled && !switches_hosts;
    AssemblyError::check(wrong.then(|| reason.to_owned()).into_iter().collect())
}

/// The compute hosts of the configured cloud.
pub(crate) fn cloud(
    configuration: &Configuration,
    clock: Arc<dyn Clock>,
) -> Result<OpenStackFleet, AssemblyError> {
    let session = Session::new(keystone::nova(configuration)?, Arc::new(RandomIds))?;
    let fence = fence(configuration)?;
    let hints = fence.marks().contains(&Mark::Hint);
    let PreemptionRules { allowed, marks, projects, .. } = &configuration.service.preemption;
    // A server can also opt out of its project with a hint.
    let reads_hints = *allowed && (marks.contains(&Mark::Hint) || !projects.is_empty());
    let settings = fleet_openstack::Settings {
        fence,
        hints: hints && reads_hints,
        ..configuration.openstack.driver.clone()
    };
    Ok(OpenStackFleet::new(Arc::new(session), settings, clock))
}

/// The fence, which keeps other tenants off the hosts of a lease in a cloud. Fails if a setting depends on
/// something that the fence can't see.
pub(super) fn fence(configuration: &Configuration) -> Result<Fence, AssemblyError> {
    let Configuration { openstack, .. } = configuration;
    let PreemptionRules { marks, projects, .. } = &configuration.service.preemption;
    let mut mistakes = Vec::new();
    let (fence, name) = match openstack.fence {
        FenceChoice::BlazarFilter => (Fence::BlazarFilter, "blazar-filter"),
        FenceChoice::AllotFilter => {
            let projects = preemptible_patterns(configuration, &mut mistakes);
            (Fence::AllotFilter { open_pool: openstack.open_pool, projects }, "allot-filter")
        }
        FenceChoice::Tenant => {
            (Fence::Tenant { preemptible: preemptible_tenants(configuration, &mut mistakes) }, "tenant")
        }
        FenceChoice::Traits => {
            let images = marks_by_image(&configuration.service.preemption, &mut mistakes);
            (Fence::Traits { flavors: openstack.lease_flavors.clone(), images }, "traits")
        }
    };
    if openstack.open_pool && !matches!(fence, Fence::AllotFilter { .. }) {
        mistakes.push(format!(
            "openstack.open_pool: needs openstack.fence = allot-filter: the fence {name} lets only preemptible servers on \
             hosts of the free pool"
        ));
    }
    if !openstack.lease_flavors.is_empty() && !matches!(fence, Fence::Traits { .. }) {
        mistakes.push(format!(
            "openstack.lease_flavors: needs openstack.fence = traits: with the fence {name} hosts of leases take servers of \
             any flavor"
        ));
    }
    let unseen = marks.iter().find(|mark| !fence.marks().contains(mark));
    if let Some(mark) = unseen.filter(|_| are_chosen(marks)) {
        let seen: Vec<&str> = fence.marks().iter().map(|mark| mark.name()).collect();
        let seen =
            if seen.is_empty() { "projects only (preemptible.projects)".to_owned() } else { seen.join(", ") };
        mistakes.push(format!(
            "preemptible.marks: has {mark}, which the fence {name} cannot see: it sees {seen}"
        ));
    }
    if !projects.is_empty() && !matches!(fence, Fence::AllotFilter { .. } | Fence::Tenant { .. }) {
        mistakes.push(format!(
            "preemptible.projects: cannot be used with the fence {name}, which cannot tell projects apart: servers are \
             preemptible by what marks them"
        ));
    }
    AssemblyError::check(mistakes)?;
    Ok(fence)
}

/// Whether the operator has named marks. The default means the marks that the fence can see in each server.
fn are_chosen(marks: &BTreeSet<Mark>) -> bool {
    marks.len() < Mark::ALL.len()
}

/// Whether images and volumes mark servers with the fence traits. All servers in the free pool are preemptible then, so the
/// operator must name both marks.
fn marks_by_image(preemption: &PreemptionRules, mistakes: &mut Vec<String>) -> bool {
    let PreemptionRules { allowed, marks, .. } = preemption;
    let [image, volume] = [Mark::Image, Mark::Volume].map(|mark| are_chosen(marks) && marks.contains(&mark));
    if image != volume {
        let reason = "needs image and volume, or neither, with the fence traits: Nova doesn't say which of them let a server in";
        mistakes.push(format!("preemptible.marks: {reason}"));
    }
    *allowed && image && volume
}

/// Patterns of preemptible projects for the fence allot-filter, whose filter asks the service.
fn preemptible_patterns(configuration: &Configuration, mistakes: &mut Vec<String>) -> Vec<ProjectPattern> {
    let PreemptionRules { allowed, projects, .. } = &configuration.service.preemption;
    if configuration.openstack.open_pool && !projects.is_empty() {
        let reason = "cannot be used with openstack.open_pool: regular servers that these projects have in the free pool would \
                      become preemptible";
        mistakes.push(format!("preemptible.projects: {reason}"));
    }
    if projects.len() > MOST_PATTERNS {
        mistakes.push(format!(
            "preemptible.projects: has {} patterns: the fence allot-filter allows at most {MOST_PATTERNS}",
            projects.len()
        ));
    }
    if let Some(long) = projects.iter().find(|pattern| pattern.to_string().len() > LONGEST_PROJECT) {
        mistakes.push(format!(
            "preemptible.projects: has {long}: at most {LONGEST_PROJECT} characters are allowed"
        ));
    }
    if *allowed { projects.clone() } else { Vec::new() }
}

/// Preemptible projects for the fence tenant. They're written into the cloud one by one.
fn preemptible_tenants(configuration: &Configuration, mistakes: &mut Vec<String>) -> BTreeSet<String> {
    let preemption = &configuration.service.preemption;
    let projects: BTreeSet<String> = preemption.projects.iter().map(ToString::to_string).collect();
    if preemption.allowed && projects.is_empty() {
        let reason =
            "needs preemptible.projects with the fence tenant, which cannot see what else marks servers";
        mistakes.push(format!("preemptible.enabled: {reason}"));
    }
    if projects.len() > MOST_TENANTS {
        mistakes.push(format!(
            "preemptible.projects: has {} projects: the fence tenant allows at most {MOST_TENANTS}",
            projects.len()
        ));
    }
    let plain = |project: &String| {
        project.len() <= LONGEST_PROJECT
            && project.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if let Some(project) = projects.iter().find(|project| !plain(project)) {
        mistakes.push(format!(
            "preemptible.projects: has {project}: with the fence tenant write the identifiers of projects, without * and ?"
        ));
    }
    if preemption.allowed { projects } else { BTreeSet::new() }
}

/// File with the state of a simulated fleet. It lasts as long as the leases.
pub(super) fn state_file(configuration: &Configuration) -> Option<PathBuf> {
    let beside = || match &configuration.database {
        DatabaseChoice::Sqlite(path) => Some(state_file_beside(path)),
        // Machines that several services share can't be simulated in the memory of each.
        DatabaseChoice::Postgres(_) | DatabaseChoice::Memory => None,
    };
    configuration.simulated.state_file.clone().or_else(beside)
}

/// State file next to a database.
pub(crate) fn state_file_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".fleet.json");
    PathBuf::from(name)
}
