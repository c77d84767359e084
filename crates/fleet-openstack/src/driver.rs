//! Implements the traits of drivers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fleet::hooks::{PowerHooks, RunningHook};
use fleet::{
    CloudFlavor, Difference, FleetError, Guests, HookedCall, Inventory, Isolation, Keeper, Machine, Network,
    OperationKey, Outcome, Power, Wanted,
};
use futures::{future::try_join_all, try_join};
use leases::host::FloatingIp;
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::instance::Instance;
use leases::lease_pool::Ratios;
use leases::plan::{Observed, Prepared};
use leases::project::ProjectId;

use crate::OpenStackFleet;
use crate::ids::FLAVOR;
use crate::pools;
use crate::sight::{Known, Names, Sight};
use crate::wire::Hypervisor;

type Answer = Result<Outcome, FleetError>;

/// Up to this many hosts are read with requests of their own, so the effect of a step is seen soon and at
/// little cost. More hosts are read from lists of the whole cloud.
const FEW: usize = 4;

impl OpenStackFleet {
    fn observed(
        &self,
        sight: &Sight,
        hosts: &BTreeSet<HostId>,
        floating_ips: BTreeMap<FloatingIpId, ReservationId>,
    ) -> Observed {
        let mut memory = self.memory();
        let named: Vec<(HostId, Names)> =
            hosts.iter().filter_map(|host| Some((*host, memory.names(*host)?))).collect();
        let known = Known {
            settings: &self.settings,
            stopping: &memory.stopping,
            failed: memory.reports.failed(),
            hosts: memory.hosts(),
        };
        let mut seen = sight.observed(named.iter().map(|(host, names)| (*host, names)), known);
        // Forget servers that were asked to leave and are gone.
        let there: BTreeSet<GuestId> =
            seen.values().flat_map(|host| &host.guests).map(|guest| guest.id).collect();
        let all = memory.hosts().len() <= hosts.len();
        memory.stopping.retain(|guest, _| !all || there.contains(guest));
        memory.stopped_running.retain(|guest| !all || there.contains(guest));
        memory.watch.doubt(&mut seen);
        drop(memory);
        Observed { hosts: seen, floating_ips, reservations: self.reservations(sight) }
    }

    fn reservations(&self, sight: &Sight) -> BTreeMap<ReservationId, Prepared> {
        let mut prepared = sight.reservations(&self.settings.fence);
        self.memory().watch.doubt_reservations(sight, &mut prepared);
        prepared
    }

    async fn machines_in(
        &self,
        hypervisors: &[Hypervisor],
        sight: &Sight,
    ) -> Result<Vec<Machine>, FleetError> {
        self.learn_details(hypervisors).await?;
        let (memory, zones) = (self.memory(), sight.zones());
        let failed = memory.reports.failed();
        let machine = |hypervisor: &Hypervisor| {
            sight.machine(hypervisor, memory.details(&hypervisor.hostname), &zones, failed)
        };
        Ok(hypervisors.iter().filter_map(machine).collect())
    }
}

#[async_trait]
impl Inventory for OpenStackFleet {
    async fn machines(&self) -> Result<Vec<Machine>, FleetError> {
        let (hypervisors, sight, _) = self.look_at_all().await?;
        self.machines_in(&hypervisors, &sight).await
    }

    fn running_hooks(&self) -> Vec<RunningHook> {
        self.power.as_ref().map(PowerHooks::running_hooks).unwrap_or_default()
    }

    fn hooks_time(&self, call: HookedCall) -> Duration {
        self.power.as_ref().map(|power| power.time_for(call)).unwrap_or_default()
    }

    async fn look_closely(&self) {
        self.memory().looks_closely = true;
    }

    async fn networks(&self) -> Result<Vec<Network>, FleetError> {
        self.external_networks().await
    }

    async fn flavor(&self, project: &ProjectId, id: &str) -> Result<Option<CloudFlavor>, FleetError> {
        let Some(flavor) = self.cloud.flavor(id).await? else { return Ok(None) };
        // Flavors of reservations require resources that only the reservation's hosts have.
        if flavor.name.starts_with(FLAVOR) {
            return Ok(None);
        }
        if !flavor.public && !self.cloud.projects_of_flavor(id).await?.contains(&project.0) {
            return Ok(None);
        }
        Ok(Some(CloudFlavor {
            id: flavor.id,
            name: flavor.name,
            vcpus: flavor.vcpus,
            memory_mib: flavor.ram,
            disk_gib: flavor.disk,
            ephemeral_gib: flavor.ephemeral,
            swap_mib: flavor.swap,
            public: flavor.public,
            extra_specs: flavor.extra_specs,
        }))
    }

    async fn observe(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<Observed, FleetError> {
        if hosts.is_empty() {
            let (aggregates, floating_ips) = try_join!(self.aggregates(), self.who_has(addresses))?;
            let reservations = self.reservations(&Sight { aggregates, ..Sight::default() });
            return Ok(Observed { floating_ips, reservations, ..Observed::default() });
        }
        if hosts.iter().any(|host| self.memory().names(*host).is_none()) {
            self.hypervisors().await?;
        }
        if hosts.len() > FEW {
            let ((_, sight, _), floating_ips) = try_join!(self.look_at_all(), self.who_has(addresses))?;
            return Ok(self.observed(&sight, hosts, floating_ips));
        }
        let names: Vec<Names> = hosts.iter().filter_map(|host| self.memory().names(*host)).collect();
        let servers = try_join_all(names.iter().map(|names| self.cloud.servers(Some(&names.service))));
        let (services, aggregates, servers, floating_ips) =
            try_join!(self.all_services(), self.aggregates(), servers, self.who_has(addresses))?;
        let servers: Vec<_> = servers.into_iter().flatten().collect();
        let looked_at = names.iter().map(|names| names.service.as_str()).collect();
        let sight = self.sight(services, aggregates, servers, Some(&looked_at)).await?;
        Ok(self.observed(&sight, hosts, floating_ips))
    }

    async fn locate(&self, guest: GuestId) -> Result<Option<HostId>, FleetError> {
        let Some(server) = self.cloud.server(&guest.to_string()).await? else { return Ok(None) };
        let Some(name) = server.host else { return Ok(None) };
        let known = |fleet: &Self| fleet.memory().hosts().get(&name).copied();
        if let Some(host) = known(self) {
            return Ok(Some(host));
        }
        self.hypervisors().await?;
        Ok(known(self))
    }

    async fn survey(
        &self,
        hosts: &BTreeSet<HostId>,
        addresses: &[FloatingIp],
    ) -> Result<(Vec<Machine>, Observed), FleetError> {
        let ((hypervisors, sight, aggregates), floating_ips) =
            try_join!(self.look_at_all(), self.who_has(addresses))?;
        self.watch(&aggregates).await;
        let machines = self.machines_in(&hypervisors, &sight).await?;
        Ok((machines, self.observed(&sight, hosts, floating_ips)))
    }

    async fn expect(&self, wanted: Wanted) {
        self.memory().watch.wanted = Arc::new(wanted);
    }

    async fn differences(&self) -> Vec<Difference> {
        self.memory().watch.differences()
    }

    async fn all_differences(&self) -> Result<Vec<Difference>, FleetError> {
        self.differences_now().await
    }

    fn obstacle(&self) -> Option<&'static str> {
        self.cloud.is_login_refused().then_some("the service's own user can't log in to Keystone")
    }

    async fn keeper(&self) -> Result<Option<Keeper>, FleetError> {
        let aggregates = self.cloud.aggregates().await?;
        let free = aggregates.iter().find(|aggregate| aggregate.name == self.settings.free_pool);
        let store = free.and_then(|free| free.metadata.get(pools::STORE)).cloned().unwrap_or_default();
        // The fence of the latest claim isn't stored, since that would cost one more call for each step.
        Ok(Some(Keeper { store, fence: 0 }))
    }

    async fn set_keeper(&self, keeper: Keeper) -> Result<(), FleetError> {
        let aggregates = self.cloud.aggregates().await?;
        let free = self.free_pool(&aggregates).await?;
        let metadata = BTreeMap::from([(pools::STORE.to_owned(), Some(keeper.store))]);
        self.cloud.set_metadata(free.id, &metadata).await
    }
}

#[async_trait]
impl Isolation for OpenStackFleet {
    fn prepares(&self) -> bool {
        true
    }

    fn has_flavors_for_hosts(&self) -> bool {
        self.settings.fence.flavors().is_some()
    }

    async fn prepare(&self, reservation: ReservationId, key: &OperationKey) -> Answer {
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.prepare_reservation(reservation, key).await
    }

    async fn finish(&self, reservation: ReservationId, key: &OperationKey) -> Answer {
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.finish_reservation(reservation).await
    }

    async fn set_up(&self) -> Result<(), FleetError> {
        let aggregates = self.cloud.aggregates().await?;
        self.free_pool(&aggregates).await?;
        self.add_lease_keys(&aggregates).await;
        self.isolate_all(&aggregates).await
    }

    fn adopts_with_guests(&self) -> bool {
        self.settings.fence.opens_pool()
    }

    async fn adopt(&self, host: HostId) -> Answer {
        let _turn = self.turn(host).await;
        self.adopt_host(host).await
    }

    async fn abandon(&self, host: HostId) -> Answer {
        let _turn = self.turn(host).await;
        self.abandon_host(host).await
    }

    async fn fence(&self, host: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.fence_host(host).await }
    }

    async fn unfence(&self, host: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.unfence_host(host).await }
    }

    async fn verify(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.verify_host(host, reservation, key.lease).await
    }

    async fn hold(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.hold_host(host, reservation, key).await
    }

    async fn release(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.release_host(host, reservation).await
    }

    async fn set_ratios(
        &self,
        host: HostId,
        reservation: ReservationId,
        ratios: Ratios,
        key: &OperationKey,
    ) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.set_host_ratios(host, reservation, ratios).await
    }

    async fn overruled(&self, hosts: &BTreeSet<HostId>) -> Result<BTreeMap<HostId, String>, FleetError> {
        self.overruled_hosts(hosts).await
    }

    async fn grant(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        key: &OperationKey,
    ) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.grant_slots(host, reservation, slots, key).await
    }

    async fn withdraw(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.withdraw_slots(host, reservation).await
    }

    async fn assign(&self, ip: &FloatingIp, reservation: ReservationId, key: &OperationKey) -> Answer {
        self.assign_address(ip, reservation, key).await
    }

    async fn unassign(
        &self,
        _: FloatingIpId,
        known: Option<&FloatingIp>,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        // An address that can't be leased anymore wasn't observed either.
        let Some(ip) = known else { return Ok(Outcome::Done) };
        self.unassign_address(ip, reservation, key).await
    }
}

#[async_trait]
impl Guests for OpenStackFleet {
    fn remedy(&self) -> Option<&'static str> {
        Some("`openstack server set --state error {guest}`, then `openstack server delete {guest}`")
    }

    async fn start(&self, _: HostId, _: &Instance, _: &OperationKey) -> Answer {
        let reason = "instances on OpenStack are started in Nova: `openstack server create`";
        Err(FleetError::Refused(reason.to_owned()))
    }

    async fn destroy(&self, _: HostId, _: GuestId, _: &OperationKey) -> Answer {
        // This driver never starts instances.
        Ok(Outcome::Done)
    }

    async fn stop(&self, host: HostId, guest: GuestId, _keep: bool, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.stop_guest(host, guest).await }
    }

    async fn resume(&self, host: HostId, guest: GuestId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.memory().resume(host, guest, key);
        self.resume_guest(guest).await
    }

    async fn migrate(&self, host: HostId, guest: GuestId, to: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        self.move_guest(host, guest, to, key).await
    }

    async fn delete(&self, host: HostId, guest: GuestId, _keep: bool, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.delete_guest(host, guest).await }
    }

    async fn snapshot(&self, host: HostId, reservation: ReservationId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) {
            Ok(Outcome::Done)
        } else {
            self.make_images(host, reservation, key).await
        }
    }
}

#[async_trait]
impl Power for OpenStackFleet {
    fn switches_hosts(&self) -> bool {
        self.power.is_some()
    }

    async fn power_on(&self, host: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.switch_on(host, key).await }
    }

    async fn power_off(&self, host: HostId, key: &OperationKey) -> Answer {
        let _turn = self.turn(host).await;
        if self.memory().is_late(key) { Ok(Outcome::Done) } else { self.switch_off(host, key).await }
    }
}
