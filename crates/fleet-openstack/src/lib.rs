//! Fleet driver for `OpenStack` clouds. It implements the traits of the crate `fleet` with Nova, Placement,
//! Neutron and Glance.
//!
//! ```text
//!            services, hypervisors, aggregates, servers      one look, by lists
//! Nova ────────────────────────────────────────────────────► Sight ──► machines, observed hosts
//!      ◄──────────────────────────────────────────────────── reservations, handover, slots, guests
//!            aggregates, service on or off, delete, ...       one host, one step
//! ```
//!
//! - [`OpenStackFleet`] is the driver, with the operator's [`Settings`].
//! - [`Fence`] is the mechanism that keeps other projects off leased hosts. `BlazarFilter` of blazar-nova and
//!   Nova's own isolation, by tenant or by trait, read the driver's aggregates. Our own filter in
//!   `contrib/nova` asks the service and falls back to the aggregates while it gets no answer.
//! - [`Notifications`] extracts the affected hosts from Nova's notifications.
//! - [`BlazarReservation`] and [`BlazarTraces`] describe reservations to take over from Blazar.
//!
//! A handover fences a host by disabling its compute service, verifies that the host has no servers of other
//! leases or projects, and moves it from the free pool through the reservation's gate into the reservation's
//! aggregate. Releasing it disables the service again, moves the host back to the free pool and enables the
//! service there. Nova's schedulers use cached aggregates for a moment. So the driver waits for them to
//! [settle](Settings::settle) and looks again before it considers a host empty or enables its service.
//!
//! The driver stores nothing: Nova's aggregates and compute services hold the place of each host and the
//! progress of a handover. After a crash, the driver, a second service and an operator all see the same
//! state. The memory in `memory` is only a cache, and losing it costs requests and time.
//!
//! Start reading at `pools`, which has the table of places, then `handover` for the steps. `driver` has the
//! implementations of the traits, and `cloud` has one function for each request.

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

/// Number of providers read concurrently when their hosts are seen for the first time.
const DETAILS_AT_ONCE: usize = 8;

/// The fleet of a cloud's compute hosts.
#[derive(Debug)]
pub struct OpenStackFleet {
    cloud: Cloud,
    settings: Settings,
    clock: Arc<dyn Clock>,
    /// Switches hosts on and off. `None` if that isn't configured.
    power: Option<PowerHooks>,
    memory: Mutex<Memory>,
    turns: Turns<Turn>,
}

/// State of a host at the start of a step.
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

    fn has_slots(&self) -> bool {
        self.aggregates().iter().filter_map(Pool::of).any(|pool| pool.slots(self.host()).is_some())
    }
}

impl OpenStackFleet {
    /// Sends no requests until the first call.
    pub fn new(session: Arc<Session>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let cloud = Cloud::new(session, settings.hints);
        Self { cloud, settings, clock, power: None, memory: Mutex::default(), turns: Turns::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other step works on the host.
    async fn turn(&self, host: HostId) -> OwnedMutexGuard<()> {
        self.turns.of(Turn::Host(host)).await
    }

    /// Waits until schedulers have read the latest changes.
    async fn settle(&self) {
        tokio::time::sleep(self.settings.settle).await;
    }

    /// Hypervisors with distinguishable hosts.
    async fn hypervisors(&self) -> Result<Vec<Hypervisor>, FleetError> {
        let all = self.cloud.hypervisors().await?;
        Ok(self.memory().learn(all))
    }

    async fn names(&self, host: HostId) -> Result<Names, FleetError> {
        if let Some(names) = self.memory().names(host) {
            return Ok(names);
        }
        self.hypervisors().await?;
        let found = self.memory().names(host);
        found.ok_or_else(|| FleetError::Refused(format!("Nova has no hypervisor with the number {host}")))
    }

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
        // Steps don't need the destinations of live migrations.
        let under_way = self.follow_cold_moves(&mut servers, Some(&hosts)).await?;
        let sight = Sight::new(vec![service.clone()], aggregates, servers, under_way);
        let membership = Membership::of(&sight.aggregates, &self.settings.free_pool, &names.service);
        let place = membership.place(&service, sight.on(&names.service).is_empty());
        Ok(Look { names, service, sight, place })
    }

    /// All compute services. Also records which services report.
    async fn all_services(&self) -> Result<Vec<ComputeService>, FleetError> {
        let services = self.cloud.services(None).await?;
        let now = self.clock.now();
        self.memory().reports.note(&services, now, self.settings.failed_after);
        Ok(services)
    }

    /// Looks at the whole cloud. The sight's aggregates have the store's owners; the last result has the
    /// aggregates as Nova lists them.
    async fn look_at_all(&self) -> Result<(Vec<Hypervisor>, Sight, Vec<Aggregate>), FleetError> {
        let cloud = &self.cloud;
        let (hypervisors, services, aggregates, servers) =
            try_join!(self.hypervisors(), self.all_services(), cloud.aggregates(), cloud.servers(None))?;
        let stored = drift::as_stored(&self.wanted(), aggregates.clone());
        Ok((hypervisors, self.sight(services, stored, servers, None).await?, aggregates))
    }

    /// Reads Placement's data about hosts that are seen for the first time. With [`Memory::looks_closely`],
    /// also reads known hosts whose provider has a new generation.
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
