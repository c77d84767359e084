//! What runs the machines, as the configuration says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambient::{Clock, RandomIds};
use fleet::Fleet;
use fleet::hooks::{HookConfig, HooksConfig, HooksFleet, Moment, PowerConfig, PowerHooks, unusable_programs};
use fleet::simulated::{BackgroundLoad, Layout, SimulatedFleet, Timing};
use fleet_openstack::{Fence, OpenStackFleet};
use leases::preemption::{Mark, PreemptionRules, ProjectPattern};
use openstack::Session;
use serde::de::DeserializeOwned;

use super::error::{AssemblyError, read};
use super::files::malformed;
use super::keystone;
use crate::config::{Configuration, DatabaseChoice, FenceChoice, FleetChoice};

/// The most projects that the metadata of the free pool's aggregate names: each round reads it.
const MOST_TENANTS: usize = 1000;

/// The most patterns of preemptible projects with the fence allot-filter: each look compares every server with them.
const MOST_PATTERNS: usize = 100;

/// The longest identifier of a project that Keystone has.
const LONGEST_PROJECT: usize = 64;

/// What a simulated fleet is like.
pub(crate) struct Machines {
    pub layout: Layout,
    pub timing: Timing,
    pub background_load: BackgroundLoad,
}

/// The fleet that the settings name; `machines` says what a simulated one is like.
pub(super) fn fleet(
    configuration: &Configuration,
    clock: &Arc<dyn Clock>,
    machines: &Machines,
) -> Result<Arc<dyn Fleet>, AssemblyError> {
    let clock = clock.clone();
    match &configuration.fleet {
        FleetChoice::Hooks(path) => {
            let config: HooksConfig = hooks(path, "docs/machines.md")?;
            warn_of_programs(&config.hooks);
            Ok(Arc::new(HooksFleet::open(&config, clock)?))
        }
        FleetChoice::OpenStack => {
            let fleet = cloud(configuration, clock)?;
            let Some(path) = &configuration.openstack.power_file else { return Ok(Arc::new(fleet)) };
            let config: PowerConfig = hooks(path, "docs/openstack.md")?;
            warn_of_programs(&config.by_moment());
            Ok(Arc::new(fleet.with_power(PowerHooks::new(&config)?)))
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

/// Logs programs that can't be started. The service starts without them: they may be installed later.
fn warn_of_programs(hooks: &BTreeMap<Moment, HookConfig>) {
    for reason in unusable_programs(hooks) {
        tracing::warn!(%reason, "hook program unusable");
    }
}

/// What is in a file of hooks; `example` has one that works.
pub(super) fn hooks<T: DeserializeOwned>(path: &Path, example: &str) -> Result<T, AssemblyError> {
    let text = read(path)?;
    toml::from_str(&text).map_err(|error| AssemblyError::Form {
        path: path.to_owned(),
        reason: format!("{} ({example} has a file of hooks that works)", malformed(&text, &error)),
    })
}

/// The compute hosts of the cloud that the settings name.
pub(crate) fn cloud(
    configuration: &Configuration,
    clock: Arc<dyn Clock>,
) -> Result<OpenStackFleet, AssemblyError> {
    let session = Session::new(keystone::nova(configuration)?, Arc::new(RandomIds))?;
    let fence = fence(configuration)?;
    let hints = fence.marks().contains(&Mark::Hint);
    let PreemptionRules { allowed, marks, projects, .. } = &configuration.service.preemption;
    // With a hint a server also opts out of its project.
    let reads_hints = *allowed && (marks.contains(&Mark::Hint) || !projects.is_empty());
    let settings = fleet_openstack::Settings {
        fence,
        hints: hints && reads_hints,
        ..configuration.openstack.driver.clone()
    };
    Ok(OpenStackFleet::new(Arc::new(session), settings, clock))
}

/// What keeps others off the hosts of a lease in a cloud. What it cannot see is refused here, where it is asked for.
fn fence(configuration: &Configuration) -> Result<Fence, AssemblyError> {
    let Configuration { openstack, .. } = configuration;
    let PreemptionRules { marks, projects, .. } = &configuration.service.preemption;
    let (fence, name) = match openstack.fence {
        FenceChoice::BlazarFilter => (Fence::BlazarFilter, "blazar-filter"),
        FenceChoice::AllotFilter => {
            let projects = preemptible_patterns(configuration)?;
            (Fence::AllotFilter { open_pool: openstack.open_pool, projects }, "allot-filter")
        }
        FenceChoice::Tenant => (Fence::Tenant { preemptible: preemptible_tenants(configuration)? }, "tenant"),
        FenceChoice::Traits => {
            let images = marks_by_image(&configuration.service.preemption)?;
            (Fence::Traits { flavors: openstack.lease_flavors.clone(), images }, "traits")
        }
    };
    if openstack.open_pool && !matches!(fence, Fence::AllotFilter { .. }) {
        return Err(AssemblyError::Missing(format!(
            "openstack.open_pool needs openstack.fence = allot-filter: the fence {name} lets only preemptible servers on hosts \
             of the free pool"
        )));
    }
    if !openstack.lease_flavors.is_empty() && !matches!(fence, Fence::Traits { .. }) {
        return Err(AssemblyError::Missing(format!(
            "openstack.lease_flavors needs openstack.fence = traits: with the fence {name} hosts of leases take servers of any flavor"
        )));
    }
    let unseen = marks.iter().find(|mark| !fence.marks().contains(mark));
    if let Some(mark) = unseen.filter(|_| are_chosen(marks)) {
        let seen: Vec<&str> = fence.marks().iter().map(|mark| mark.name()).collect();
        let seen =
            if seen.is_empty() { "projects only (preemptible.projects)".to_owned() } else { seen.join(", ") };
        return Err(AssemblyError::Missing(format!(
            "preemptible.marks has {mark}, which the fence {name} cannot see: it sees {seen}"
        )));
    }
    if !projects.is_empty() && !matches!(fence, Fence::AllotFilter { .. } | Fence::Tenant { .. }) {
        return Err(AssemblyError::Missing(format!(
            "preemptible.projects cannot be used with the fence {name}, which cannot tell projects apart: servers are \
             preemptible by what marks them"
        )));
    }
    Ok(fence)
}

/// Whether the operator has named marks. By default those are meant that the fence can see in each server.
fn are_chosen(marks: &BTreeSet<Mark>) -> bool {
    marks.len() < Mark::ALL.len()
}

/// Whether images and volumes mark servers with the fence traits. All servers in the free pool are preemptible then, so this is
/// never meant by default.
fn marks_by_image(preemption: &PreemptionRules) -> Result<bool, AssemblyError> {
    let PreemptionRules { allowed, marks, .. } = preemption;
    match [Mark::Image, Mark::Volume].map(|mark| are_chosen(marks) && marks.contains(&mark)) {
        [true, true] => Ok(*allowed),
        [false, false] => Ok(false),
        _ => Err(AssemblyError::Contradiction(
            "preemptible.marks needs image and volume, or neither, with the fence traits: Nova doesn't say which of them let a \
             server in",
        )),
    }
}

/// The projects whose servers are preemptible where the filter asks the service.
fn preemptible_patterns(configuration: &Configuration) -> Result<Vec<ProjectPattern>, AssemblyError> {
    let PreemptionRules { allowed, projects, .. } = &configuration.service.preemption;
    if configuration.openstack.open_pool && !projects.is_empty() {
        return Err(AssemblyError::Contradiction(
            "preemptible.projects cannot be used with openstack.open_pool: regular servers that these projects have in the free \
             pool would become preemptible",
        ));
    }
    if projects.len() > MOST_PATTERNS {
        return Err(AssemblyError::Missing(format!(
            "preemptible.projects has {} patterns: with the fence allot-filter there may be {MOST_PATTERNS}",
            projects.len()
        )));
    }
    Ok(if *allowed { projects.clone() } else { Vec::new() })
}

/// The projects whose servers are preemptible where the fence goes by projects. They are written into the cloud one by one.
fn preemptible_tenants(configuration: &Configuration) -> Result<BTreeSet<String>, AssemblyError> {
    let preemption = &configuration.service.preemption;
    let projects: BTreeSet<String> = preemption.projects.iter().map(ToString::to_string).collect();
    if preemption.allowed && projects.is_empty() {
        return Err(AssemblyError::Contradiction(
            "preemptible.enabled needs preemptible.projects with the fence tenant, which cannot see what else marks servers",
        ));
    }
    if projects.len() > MOST_TENANTS {
        return Err(AssemblyError::Missing(format!(
            "preemptible.projects has {} projects: with the fence tenant there may be {MOST_TENANTS}",
            projects.len()
        )));
    }
    let plain = |project: &String| {
        project.len() <= LONGEST_PROJECT
            && project.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    if let Some(project) = projects.iter().find(|project| !plain(project)) {
        return Err(AssemblyError::Missing(format!(
            "preemptible.projects has {project}: with the fence tenant write the identifiers of projects, without * and ?"
        )));
    }
    Ok(if preemption.allowed { projects } else { BTreeSet::new() })
}

/// Where a simulated fleet is kept: as long as the leases are.
fn state_file(configuration: &Configuration) -> Option<PathBuf> {
    let beside = || match &configuration.database {
        DatabaseChoice::Sqlite(path) => Some(state_file_beside(path)),
        // Machines that several services share cannot be simulated in the memory of each.
        DatabaseChoice::Postgres(_) | DatabaseChoice::Memory => None,
    };
    configuration.simulated.state_file.clone().or_else(beside)
}

/// The file beside a database.
pub(crate) fn state_file_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".fleet.json");
    PathBuf::from(name)
}
