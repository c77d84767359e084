//! The compute hosts of an `OpenStack` cloud as a fleet: Nova, Placement, Neutron and Glance behind the
//! traits of drivers.
//!
//! ```text
//!            services, hypervisors, aggregates, servers      one round, by lists
//! Nova ────────────────────────────────────────────────────► Sight ──► machines, what is on hosts
//!      ◄──────────────────────────────────────────────────── reservations, handover, slots, guests
//!            aggregates, service on or off, delete, ...       one host, one step
//! ```
//!
//! The driver keeps nothing: where a host is and how far a handover is, Nova's aggregates and compute services say (the
//! table is in `pools`), so a crash, a second service and an operator who looks all see the same. The [fence](Fence) is what
//! Nova's scheduler goes by: `BlazarFilter` of blazar-nova and Nova's own isolation, of tenants or by traits, read these aggregates, our filter
//! asks the service, and goes by the aggregates while it has no answer. Schedulers keep what they have read of
//! aggregates for a moment, so a host's compute service is disabled while it changes hands, and the driver lets them
//! [settle](Settings::settle) and looks again before it believes that a host is empty or opens it.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod addresses;
mod closure;
mod cloud;
mod drift;
mod driver;
mod fence;
mod guests;
mod handover;
mod ids;
mod images;
mod imaging;
mod isolation;
mod memory;
mod moves;
mod moving;
mod notifications;
mod over_committing;
mod pools;
mod power;
mod ratios;
mod reports;
mod reservations;
mod settings;
mod sight;
mod slots;
mod take_over;
mod turns;
mod watch;
mod watching;
mod wire;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ambient::Clock;
use fleet::FleetError;
use fleet::hooks::PowerHooks;
use futures::{StreamExt as _, TryStreamExt as _, stream, try_join};
use leases::ids::HostId;
use leases::plan::Place;
use openstack::Session;
use tokio::sync::OwnedMutexGuard;

use self::cloud::Cloud;
pub use self::fence::Fence;
use self::memory::Memory;
pub use self::notifications::Notifications;
use self::pools::{Membership, Pool};
pub use self::settings::Settings;
use self::sight::{Details, Names, Sight};
pub use self::take_over::{BlazarReservation, BlazarTraces};
use self::turns::{Turn, Turns};
use self::wire::{Aggregate, ComputeService, Hypervisor};

/// How many providers Placement is asked about at once when their hosts are seen for the first time.
const DETAILS_AT_ONCE: usize = 8;

/// The fleet.
#[derive(Debug)]
pub struct OpenStackFleet {
    cloud: Cloud,
    settings: Settings,
    clock: Arc<dyn Clock>,
    /// What switches hosts, if anything does.
    power: Option<PowerHooks>,
    memory: Mutex<Memory>,
    turns: Turns<Turn>,
}

/// A look at one host.
struct Look {
    names: Names,
    service: ComputeService,
    sight: Sight,
    place: Option<Place>,
}

impl Look {
    fn host(&self) -> &str {
        &self.names.service
    }

    fn aggregates(&self) -> &[Aggregate] {
        &self.sight.aggregates
    }

    /// Whether any reservation has slots of the host.
    fn has_slots(&self) -> bool {
        self.aggregates().iter().filter_map(Pool::of).any(|pool| pool.slots(self.host()).is_some())
    }
}

impl OpenStackFleet {
    /// The compute hosts of that cloud. Nothing is asked before it is needed.
    pub fn new(session: Arc<Session>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let cloud = Cloud::new(session, settings.hints);
        Self { cloud, settings, clock, power: None, memory: Mutex::default(), turns: Turns::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other step is at work on the host.
    async fn turn(&self, host: HostId) -> OwnedMutexGuard<()> {
        self.turns.of(Turn::Host(host)).await
    }

    /// Lets schedulers read what was changed.
    async fn settle(&self) {
        tokio::time::sleep(self.settings.settle).await;
    }

    /// All hypervisors whose hosts can be told apart.
    async fn hypervisors(&self) -> Result<Vec<Hypervisor>, FleetError> {
        let all = self.cloud.hypervisors().await?;
        Ok(self.memory().learn(all))
    }

    /// What a host is called.
    async fn names(&self, host: HostId) -> Result<Names, FleetError> {
        if let Some(names) = self.memory().names(host) {
            return Ok(names);
        }
        self.hypervisors().await?;
        let found = self.memory().names(host);
        found.ok_or_else(|| FleetError::Refused(format!("Nova has no hypervisor with the number {host}")))
    }

    /// Looks at a host.
    async fn look_at(&self, host: HostId) -> Result<Look, FleetError> {
        let names = self.names(host).await?;
        let of_host = Some(names.service.as_str());
        let (services, aggregates, mut servers) =
            try_join!(self.cloud.services(of_host), self.aggregates(), self.cloud.servers(of_host))?;
        let service = services.into_iter().find(|service| service.host == names.service);
        let service = service.ok_or_else(|| {
            FleetError::Unavailable(format!("Nova has no compute service on host {} any more", names.service))
        })?;
        let hosts = BTreeSet::from([names.service.as_str()]);
        // Where those go that are moved while they run no step asks.
        let under_way = self.follow_cold_moves(&mut servers, Some(&hosts)).await?;
        let sight = Sight::new(vec![service.clone()], aggregates, servers, under_way);
        let membership = Membership::of(&sight.aggregates, &self.settings.free_pool, &names.service);
        let place = membership.place(&service, sight.on(&names.service).is_empty());
        Ok(Look { names, service, sight, place })
    }

    /// All compute services; which of them report is noted.
    async fn all_services(&self) -> Result<Vec<ComputeService>, FleetError> {
        let services = self.cloud.services(None).await?;
        let now = self.clock.now();
        self.memory().reports.note(&services, now, self.settings.failed_after);
        Ok(services)
    }

    /// Looks at the whole cloud, and at its hypervisors; its aggregates are also as they were seen.
    async fn look_at_all(&self) -> Result<(Vec<Hypervisor>, Sight, Vec<Aggregate>), FleetError> {
        let cloud = &self.cloud;
        let (hypervisors, services, aggregates, servers) =
            try_join!(self.hypervisors(), self.all_services(), cloud.aggregates(), cloud.servers(None))?;
        let stored = drift::as_stored(&self.wanted(), aggregates.clone());
        Ok((hypervisors, self.sight(services, stored, servers, None).await?, aggregates))
    }

    /// Asks Placement about hosts that are seen for the first time, and of all others about those that it says have changed,
    /// if somebody wants to know.
    async fn learn_details(&self, hypervisors: &[Hypervisor]) -> Result<(), FleetError> {
        let names: BTreeSet<&str> =
            hypervisors.iter().map(|hypervisor| hypervisor.hostname.as_str()).collect();
        let closely = {
            let memory = self.memory();
            if !memory.looks_closely && names.iter().all(|name| memory.details(name).is_some()) {
                return Ok(());
            }
            memory.looks_closely
        };
        let mut providers = self.cloud.providers().await?;
        {
            let memory = self.memory();
            providers.retain(|provider| {
                let known = memory.details(&provider.name);
                let is_new = known.is_none_or(|known| closely && known.generation != provider.generation);
                is_new && names.contains(provider.name.as_str())
            });
        }
        let details = stream::iter(providers.into_iter().map(async |provider| {
            let (inventories, traits) =
                try_join!(self.cloud.inventories(&provider.uuid), self.cloud.traits(&provider.uuid))?;
            Ok::<_, FleetError>((provider.name, Details::new(provider.generation, &inventories, traits)))
        }));
        let found: Vec<(String, Details)> = details.buffer_unordered(DETAILS_AT_ONCE).try_collect().await?;
        let mut memory = self.memory();
        memory.note_details(found);
        memory.looks_closely &= !closely;
        Ok(())
    }
}
