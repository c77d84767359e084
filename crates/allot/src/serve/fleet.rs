//! What runs the machines, as the configuration says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambient::{Clock, RandomIds};
use fleet::Fleet;
use fleet::hooks::{HooksConfig, HooksFleet};
use fleet::simulated::SimulatedFleet;
use fleet_openstack::{Fence, OpenStackFleet};
use leases::preemption::Mark;
use openstack::Session;

use super::assembly::{AssemblyError, Machines, read};
use super::files::malformed;
use super::keystone;
use crate::config::{Configuration, DatabaseChoice, FenceChoice, FleetChoice};

/// The fleet that the settings name; `machines` says what a simulated one is like.
pub(super) fn fleet(
    configuration: &Configuration,
    clock: &Arc<dyn Clock>,
    machines: &Machines,
) -> Result<Arc<dyn Fleet>, AssemblyError> {
    let clock = clock.clone();
    match &configuration.fleet {
        FleetChoice::Hooks(path) => {
            let text = read(path)?;
            let config: HooksConfig = toml::from_str(&text).map_err(|error| AssemblyError::Form {
                path: path.clone(),
                reason: format!(
                    "{} (docs/machines.md has a file of hooks that works)",
                    malformed(&text, &error)
                ),
            })?;
            Ok(Arc::new(HooksFleet::open(&config, clock)?))
        }
        FleetChoice::OpenStack => {
            let session = Session::new(keystone::nova(configuration)?, Arc::new(RandomIds))?;
            let fence = fence(configuration)?;
            let hints = fence.marks().contains(&Mark::Hint);
            let settings = fleet_openstack::Settings {
                fence,
                hints: hints
                    && configuration.preemptible
                    && configuration.preemptible_marks.contains(&Mark::Hint),
                free_pool: configuration.openstack_free_pool.clone(),
                settle: configuration.openstack_settle.unsigned(),
            };
            Ok(Arc::new(OpenStackFleet::new(Arc::new(session), settings, clock)))
        }
        FleetChoice::Simulated => {
            let seed = configuration.simulated_seed;
            let fleet = match state_file(configuration) {
                Some(path) => SimulatedFleet::persistent(&path, clock, seed, &machines.layout)?,
                None => SimulatedFleet::new(clock, seed, &machines.layout),
            };
            let fleet = fleet.with_timing(machines.timing).with_grace(configuration.grace.0);
            Ok(Arc::new(fleet.with_chatter(machines.chatter)))
        }
    }
}

/// What keeps others off the hosts of a lease in a cloud. What it cannot see is refused here, where it is asked for.
fn fence(configuration: &Configuration) -> Result<Fence, AssemblyError> {
    let (fence, name) = match configuration.openstack_fence {
        FenceChoice::BlazarFilter if configuration.openstack_open_pool => {
            return Err(AssemblyError::Contradiction(
                "openstack.open_pool needs openstack.fence = allot-filter: BlazarFilter lets only preemptible servers on \
                 hosts of the free pool",
            ));
        }
        FenceChoice::BlazarFilter => (Fence::BlazarFilter, "blazar-filter"),
        FenceChoice::AllotFilter => {
            (Fence::AllotFilter { open_pool: configuration.openstack_open_pool }, "allot-filter")
        }
    };
    let unseen = configuration.preemptible_marks.iter().find(|mark| !fence.marks().contains(mark));
    // By default all are meant that the fence can see.
    let chosen = configuration.preemptible_marks.len() < Mark::ALL.len();
    if let Some(mark) = unseen.filter(|_| chosen) {
        let seen: Vec<&str> = fence.marks().iter().map(|mark| mark.name()).collect();
        return Err(AssemblyError::Missing(format!(
            "preemptible.marks has {mark}, which the fence {name} cannot see: it sees {}",
            seen.join(", ")
        )));
    }
    if !configuration.preemptible_projects.is_empty() {
        return Err(AssemblyError::Contradiction(
            "preemptible.projects cannot be used with fleet = openstack: servers are preemptible by what marks them",
        ));
    }
    Ok(fence)
}

/// Where a simulated fleet is kept: as long as the leases are.
fn state_file(configuration: &Configuration) -> Option<PathBuf> {
    let beside = || match &configuration.database {
        DatabaseChoice::Sqlite(path) => Some(state_file_beside(path)),
        // Machines that several services share cannot be simulated in the memory of each.
        DatabaseChoice::Postgres(_) | DatabaseChoice::Memory => None,
    };
    configuration.simulated_state_file.clone().or_else(beside)
}

/// The file beside a database.
pub(crate) fn state_file_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".fleet.json");
    PathBuf::from(name)
}
