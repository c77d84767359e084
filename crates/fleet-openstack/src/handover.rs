//! Handovers of hosts. Each step observes the host first, does the remaining work, and can be repeated after
//! a crash at any point.

use std::collections::BTreeMap;

use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease_pool::Ratios;
use leases::plan::{GuestOwner, Place};

use crate::closure::Closure;
use crate::fence::{FREE, Whole, trait_of};
use crate::pools::{self, Kept, Pool};
use crate::sight::is_off;
use crate::wire::{Aggregate, Server};
use crate::{Look, OpenStackFleet};

type Answer = Result<Outcome, FleetError>;

impl OpenStackFleet {
    pub(crate) async fn adopt_host(&self, host: HostId) -> Answer {
        let look = self.look_at(host).await?;
        if look.place.is_some() {
            return Ok(Outcome::Done);
        }
        // The host might have changed since the service first saw it.
        self.memory().forget_details(&look.names.hypervisor);
        if let Some(zone) = pools::zone(look.aggregates(), look.host()) {
            return Err(FleetError::Refused(format!(
                "host {} is in an aggregate with the availability zone {zone}, so Nova would not let it join the zone of a \
                 reservation; take it out of that aggregate first",
                look.host()
            )));
        }
        self.refuse_servers(&look).await?;
        let free = self.free_pool(look.aggregates()).await?;
        self.give_trait(&look.names, FREE).await?;
        self.join(&free, &look).await?;
        // Servers scheduled before schedulers knew about the free pool appear within this time.
        self.settle().await;
        let checked = match self.look_at(host).await {
            Ok(look) => self.refuse_servers(&look).await,
            Err(error) => Err(error),
        };
        if let Err(refused) = checked {
            // The aggregate comes first: while the host is in it, its servers can count as preemptible.
            self.cloud.remove_host(free.id, look.host()).await?;
            self.take_trait(&look.names, FREE).await?;
            return Err(refused);
        }
        Ok(Outcome::Done)
    }

    /// Refuses a host with servers that aren't allowed in the free pool. A server's place doesn't make it
    /// preemptible here, because the host was open to all projects until now.
    async fn refuse_servers(&self, look: &Look) -> Result<(), FleetError> {
        if self.settings.fence.opens_pool() {
            return Ok(());
        }
        let found = self.others(look, |server| {
            look.sight.owner(server, &self.settings) == GuestOwner::Preemptible
                && self.settings.fence.is_preemptible(server)
        });
        let found = found.await?;
        let Some(first) = found.first() else { return Ok(()) };
        Err(FleetError::Refused(format!(
            "{} servers are on host {}, the first is {first}",
            found.len(),
            look.host()
        )))
    }

    pub(crate) async fn abandon_host(&self, host: HostId) -> Answer {
        let look = self.look_at(host).await?;
        let mut kept = look.aggregates().iter().filter_map(Kept::of);
        if let Some(kept) = kept.find(|kept| kept.aggregate.hosts.contains(look.host())) {
            return Err(FleetError::Refused(format!(
                "servers that stayed after reservation {} are on host {}: Nova lets it leave the zone {} once they are gone",
                kept.reservation,
                look.host(),
                pools::zone_of(kept.reservation)
            )));
        }
        match look.place {
            None => return Ok(Outcome::Done),
            Some(Place::FreePool) if !look.has_slots() => {}
            Some(_) => {
                let name = look.host();
                return Err(FleetError::Refused(format!("host {name} is not in the free pool")));
            }
        }
        self.clear_leftovers(&look).await?;
        self.take_trait(&look.names, FREE).await?;
        for free in look.aggregates().iter().filter(|pool| pool.name == self.settings.free_pool) {
            self.cloud.remove_host(free.id, look.host()).await?;
        }
        Ok(Outcome::Done)
    }

    pub(crate) async fn fence_host(&self, host: HostId) -> Answer {
        let look = self.look_at(host).await?;
        if look.place != Some(Place::FreePool) {
            return Ok(Outcome::Done);
        }
        if !look.service.is_enabled() {
            return Err(FleetError::Unavailable(format!(
                "the compute service on host {} was disabled by another user or program ({})",
                look.host(),
                look.service.disabled_reason.as_deref().unwrap_or("no reason is given")
            )));
        }
        self.close(&look, Closure::Changing).await
    }

    pub(crate) async fn unfence_host(&self, host: HostId) -> Answer {
        let look = self.look_at(host).await?;
        if matches!(look.place, Some(Place::Fenced { .. })) {
            if is_off(&look.service) {
                let name = look.host();
                return Err(FleetError::Unavailable(format!("host {name} is switched off")));
            }
            self.enter_free_pool(&look).await?;
            self.open(&look).await?;
        }
        self.clear_kept(look.aggregates()).await
    }

    pub(crate) async fn verify_host(
        &self,
        host: HostId,
        reservation: ReservationId,
        lease: Option<LeaseId>,
    ) -> Answer {
        let look = self.look_at(host).await?;
        if !matches!(look.place, Some(Place::Fenced { .. })) {
            return Ok(Outcome::Done);
        }
        if !look.service.is_up() {
            let name = look.host();
            return Err(FleetError::Unavailable(format!("the compute service on host {name} is down")));
        }
        // A server that was scheduled just before the fence appears within this time.
        self.settle().await;
        let look = self.look_at(host).await?;
        if !matches!(look.place, Some(Place::Fenced { .. }))
            || !self.strangers(&look, lease).await?.is_empty()
        {
            return Ok(Outcome::Done);
        }
        self.close(&look, Closure::EmptyFor(reservation)).await
    }

    pub(crate) async fn hold_host(
        &self,
        host: HostId,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        let look = self.look_at(host).await?;
        if look.place == Some(Place::Held(reservation)) {
            // The last request might have failed.
            return self.leave_ways_in(&look).await;
        }
        if look.place != Some(Place::Fenced { verified_for: Some(reservation) }) {
            return Ok(Outcome::Done);
        }
        if !self.strangers(&look, key.lease).await?.is_empty() {
            return self.close(&look, Closure::Changing).await;
        }
        let pool = self.ensured(look.aggregates(), Whole::Hosts, reservation, key).await?;
        let gate = self.gate(look.aggregates(), reservation).await?;
        let elsewhere = |aggregate: &Aggregate| {
            let zone = pools::zone_holder(aggregate).is_some_and(|other| other != reservation);
            zone && aggregate.hosts.contains(look.host())
        };
        let look = if look.aggregates().iter().any(elsewhere) {
            // A crash left the host on the way to another reservation, or that reservation is over. It must
            // leave that reservation's zone first.
            let free = self.free_pool(look.aggregates()).await?;
            self.join(&free, &look).await?;
            for aggregate in look.aggregates().iter().filter(|aggregate| elsewhere(aggregate)) {
                self.leave(aggregate, &look).await?;
            }
            self.look_at(host).await?
        } else {
            look
        };
        self.join(&gate, &look).await?;
        self.leave_pools(&look, &gate).await?;
        // Schedulers must know that the host has left the free pool before its service is enabled.
        self.settle().await;
        let look = self.look_at(host).await?;
        if !self.strangers(&look, key.lease).await?.is_empty() {
            return self.close(&look, Closure::Changing).await;
        }
        // The gate admits no project, so the owner can start servers as soon as the host is seen in the
        // lease's aggregate.
        self.open(&look).await?;
        self.let_owner_in(&pool, &look).await?;
        self.cloud.tell_schedulers(pool.id).await?;
        self.leave_ways_in(&look).await
    }

    /// Removes a held host from its gate, and from the aggregate that it was in for servers kept after an
    /// earlier lease.
    async fn leave_ways_in(&self, look: &Look) -> Answer {
        let ways = look.aggregates().iter().filter(|way| Pool::of(way).is_none());
        for way in ways.filter(|way| pools::zone_holder(way).is_some() && way.hosts.contains(look.host())) {
            self.leave(way, look).await?;
        }
        Ok(Outcome::Done)
    }

    /// The aggregate through which a reservation receives hosts. It is in the reservation's zone, but admits
    /// no project.
    async fn gate(&self, known: &[Aggregate], reservation: ReservationId) -> Result<Aggregate, FleetError> {
        let (name, zone) = (pools::gate_of(reservation), pools::zone_of(reservation));
        let gate = self.ensure_aggregate(known, &name, Some(&zone)).await?;
        let of_nobody = self.settings.fence.of_nobody();
        self.mark(&gate, of_nobody.into_iter().map(|(key, value)| (key, Some(value))).collect()).await?;
        Ok(gate)
    }

    pub(crate) async fn release_host(&self, host: HostId, reservation: ReservationId) -> Answer {
        let look = self.look_at(host).await?;
        if ![Some(Place::Held(reservation)), Some(Place::Releasing(reservation))].contains(&look.place) {
            return Ok(Outcome::Done);
        }
        // From now on, the owner can't start servers on the host.
        if look.service.is_enabled() {
            self.close(&look, Closure::TakingBack(reservation)).await?;
        }
        let servers = look.sight.on(look.host());
        let (strays, stay): (Vec<_>, Vec<_>) = servers
            .iter()
            .partition(|server| look.sight.owner(server, &self.settings) == GuestOwner::Preemptible);
        for stray in &strays {
            // It slipped in between two schedulers, and isn't allowed there.
            self.cloud.delete_server(&stray.id).await?;
        }
        if !stay.is_empty() {
            self.keep_servers(&look, reservation).await?;
            self.enter_free_pool(&self.look_at(host).await?).await?;
        } else if let Some(first) = strays.first() {
            return Err(FleetError::Unavailable(format!(
                "{} preemptible servers on host {} are being deleted, the first is {}",
                strays.len(),
                look.host(),
                first.id
            )));
        }
        self.enter_free_pool(&look).await?;
        self.settle().await;
        self.open(&self.look_at(host).await?).await
    }

    /// Lets the host leave the reservation although servers stay on it. It remains in the reservation's zone,
    /// in an aggregate that admits no project.
    async fn keep_servers(&self, look: &Look, reservation: ReservationId) -> Result<(), FleetError> {
        let mut pools = look.aggregates().iter().filter_map(Pool::of);
        let held = |pool: &Pool<'_>| {
            pool.whole && pool.reservation == reservation && pool.aggregate.hosts.contains(look.host())
        };
        let Some(pool) = pools.find(held) else { return Ok(()) };
        let (name, zone) = (pools::kept_of(reservation), pools::zone_of(reservation));
        let kept = self.ensure_aggregate(look.aggregates(), &name, Some(&zone)).await?;
        let mut keys = pools::kept_servers(pool.project, pool.lease);
        if self.settings.fence.marks_by_place() {
            // Servers marked by their image would not count as preemptible here, so keep them out.
            keys.extend(self.settings.fence.of_nobody().into_iter().map(|(key, value)| (key, Some(value))));
        }
        self.mark(&kept, keys).await?;
        self.join(&kept, look).await
    }

    /// [Servers on a host](Self::others) that don't belong to that lease.
    async fn strangers(&self, look: &Look, lease: Option<LeaseId>) -> Result<Vec<String>, FleetError> {
        let own = |server: &Server| {
            lease.is_some_and(|lease| look.sight.owner(server, &self.settings) == GuestOwner::Lease(lease))
        };
        self.others(look, own).await
    }

    /// Servers on a host for which `own` is false. They are listed by Nova, or known to Placement before Nova
    /// lists them.
    pub(crate) async fn others(
        &self,
        look: &Look,
        own: impl Fn(&Server) -> bool,
    ) -> Result<Vec<String>, FleetError> {
        let servers = look.sight.on(look.host());
        let (own, others): (Vec<_>, Vec<_>) = servers.iter().partition(|server| own(server));
        if !others.is_empty() {
            return Ok(others.into_iter().map(|server| server.id.clone()).collect());
        }
        let provider = self.host_provider(&look.names).await?;
        let mut consumers = self.cloud.consumers(&provider.uuid).await?;
        consumers.retain(|consumer| own.iter().all(|server| server.id != *consumer));
        Ok(consumers.into_iter().collect())
    }

    /// Disables the host's compute service, or changes the reason.
    pub(crate) async fn close(&self, look: &Look, closure: Closure) -> Answer {
        self.cloud.set_service(&look.service.id, Some(&closure.text())).await?;
        Ok(Outcome::Done)
    }

    /// Enables the host's compute service if the driver disabled it.
    async fn open(&self, look: &Look) -> Answer {
        if pools::closure(&look.service).is_some() {
            self.cloud.set_service(&look.service.id, None).await?;
        }
        Ok(Outcome::Done)
    }

    /// Adds the host to the free pool, then removes it from the pools of reservations.
    async fn enter_free_pool(&self, look: &Look) -> Result<(), FleetError> {
        let free = self.free_pool(look.aggregates()).await?;
        self.join(&free, look).await?;
        self.leave_pools(look, &free).await?;
        self.cloud.tell_schedulers(free.id).await
    }

    /// Removes the host from the free pool and from all pools of whole hosts and their gates, except `but`. A
    /// host with servers stays in an aggregate of kept servers.
    async fn leave_pools(&self, look: &Look, but: &Aggregate) -> Result<(), FleetError> {
        let occupied = !look.sight.on(look.host()).is_empty();
        let others = look.aggregates().iter().filter(|pool| pool.id != but.id);
        for aggregate in others.filter(|pool| pool.hosts.contains(look.host())) {
            let stays = occupied && Kept::of(aggregate).is_some();
            let of_reservation = pools::zone_holder(aggregate).is_some() && !stays;
            if of_reservation || aggregate.name == self.settings.free_pool {
                self.leave(aggregate, look).await?;
            }
        }
        Ok(())
    }

    /// Deletes empty aggregates of kept servers. A crash leaves them behind, or two hosts that leave at the
    /// same time.
    async fn clear_kept(&self, known: &[Aggregate]) -> Answer {
        for left in known.iter().filter(|pool| pool.hosts.is_empty() && Kept::of(pool).is_some()) {
            self.cloud.delete_aggregate(left.id).await?;
        }
        Ok(Outcome::Done)
    }

    /// Removes the host from an aggregate. An aggregate of kept servers is deleted with its last host.
    async fn leave(&self, aggregate: &Aggregate, look: &Look) -> Result<(), FleetError> {
        let host = look.host();
        if let Some(pool) = Pool::of(aggregate).filter(|pool| pool.whole) {
            self.over_commit(look, &pool, Ratios::default()).await?;
            self.take_trait(&look.names, &trait_of(aggregate)).await?;
        }
        self.cloud.remove_host(aggregate.id, host).await?;
        if Kept::of(aggregate).is_some() && aggregate.hosts.iter().all(|other| other == host) {
            self.cloud.delete_aggregate(aggregate.id).await?;
        }
        Ok(())
    }

    /// The free pool's aggregate, created if necessary, with the fence's metadata.
    pub(crate) async fn free_pool(&self, aggregates: &[Aggregate]) -> Result<Aggregate, FleetError> {
        let free = self.ensure_aggregate(aggregates, &self.settings.free_pool, None).await?;
        let mut keys = self.settings.fence.of_free_pool(&free.metadata);
        if let Some(store) = &self.wanted().store
            && !free.metadata.contains_key(pools::STORE)
        {
            keys.insert(pools::STORE.to_owned(), Some(store.clone()));
        }
        self.mark(&free, keys).await?;
        Ok(free)
    }

    /// Sets these keys of an aggregate's metadata, if any key differs.
    pub(crate) async fn mark(
        &self,
        aggregate: &Aggregate,
        metadata: BTreeMap<String, Option<String>>,
    ) -> Result<(), FleetError> {
        if metadata.iter().any(|(key, value)| aggregate.metadata.get(key) != value.as_ref()) {
            self.cloud.set_metadata(aggregate.id, &metadata).await?;
        }
        Ok(())
    }

    async fn ensure_aggregate(
        &self,
        known: &[Aggregate],
        name: &str,
        zone: Option<&str>,
    ) -> Result<Aggregate, FleetError> {
        let in_zone =
            |aggregate: &Aggregate| zone.is_none() || aggregate.availability_zone.as_deref() == zone;
        if let Some(found) = known.iter().find(|aggregate| aggregate.name == name && in_zone(aggregate)) {
            return Ok(found.clone());
        }
        let (found, _) = self.cloud.ensure_aggregate(name, zone).await?;
        match zone {
            Some(zone) if !in_zone(&found) => Err(FleetError::Refused(format!(
                "aggregate {name} exists, but not in the availability zone {zone}: delete or rename it"
            ))),
            _ => Ok(found),
        }
    }

    /// Adds the host to an aggregate.
    pub(crate) async fn join(&self, aggregate: &Aggregate, look: &Look) -> Result<(), FleetError> {
        let host = look.host();
        if aggregate.hosts.contains(host) {
            return Ok(());
        }
        if self.settings.fence.reads_placement() {
            let provider = self.host_provider(&look.names).await?;
            self.cloud.ensure_member(&provider.uuid, &aggregate.uuid).await?;
        }
        let Err(error) = self.cloud.add_host(aggregate.id, host).await else { return Ok(()) };
        // Nova answers with the same error whether the host is already a member or is rejected.
        let now = self.cloud.aggregates().await?;
        let member = now.iter().any(|other| other.id == aggregate.id && other.hosts.contains(host));
        if member { Ok(()) } else { Err(error) }
    }
}
