//! Slots for instances. The host joins the reservation's aggregate, and a provider below it gets as many of
//! the reservation's class as the reservation has slots there. That number is noted in the aggregate once all
//! else is done.
//!
//! Servers can stay when the reservation is over. They use its class as long as they exist, so the provider
//! keeps its inventory of the class. New servers can't use it, since the host has left the aggregate. The
//! rest is noted in the free pool's aggregate, and the next step on slots of the host deletes the inventories
//! that are no longer used.
//!
//! The provider itself stays, empty, even when the host is given back. Once a nova-compute has seen a
//! provider below its own, it starts no more servers after Placement loses that provider, until it is
//! restarted. Nova deletes the provider with the compute service.

use std::collections::BTreeMap;

use fleet::{FleetError, OperationKey, Outcome};
use leases::ids::{HostId, ReservationId};

use crate::drift::Remedy;
use crate::fence::Whole;
use crate::ids::{resource_class, slots_provider};
use crate::pools::{self, Pool};
use crate::sight::Names;
use crate::wire::Provider;
use crate::{Look, OpenStackFleet};

type Answer = Result<Outcome, FleetError>;

impl OpenStackFleet {
    pub(crate) async fn grant_slots(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        key: &OperationKey,
    ) -> Answer {
        let look = self.look_at(host).await?;
        if look.place.is_none() {
            return Ok(Outcome::Done);
        }
        self.clear_leftovers(&look).await?;
        let pool = self.ensured(look.aggregates(), Whole::Slots, reservation, key).await?;
        let parent = self.host_provider(&look.names).await?;
        let provider = self.cloud.ensure_provider(&slots_provider(&parent.name), &parent).await?;
        self.cloud.set_inventory(&provider.uuid, &resource_class(reservation), slots).await?;
        self.join(&pool, &look).await?;
        if granted(&look, reservation) != Some(slots) {
            self.note_slots(pool.id, look.host(), Some(slots)).await?;
        }
        self.memory().watch.undone(
            |remedy| matches!(remedy, Remedy::Grant(other, of, _) if (*other, *of) == (host, reservation)),
        );
        Ok(Outcome::Done)
    }

    pub(crate) async fn withdraw_slots(&self, host: HostId, reservation: ReservationId) -> Answer {
        let look = self.look_at(host).await?;
        let pool = look.aggregates().iter().filter_map(Pool::of);
        let mut pools = pool.filter(|pool| pool.reservation == reservation && !pool.whole);
        let Some(pool) = pools.next() else { return Ok(Outcome::Done) };
        if pool.slots(look.host()).is_none() {
            return Ok(Outcome::Done);
        }
        self.clear_leftovers(&look).await?;
        if let Some(provider) = self.cloud.provider(&slots_provider(&look.names.hypervisor)).await? {
            let gone = self.cloud.delete_inventory(&provider.uuid, &resource_class(reservation)).await?;
            if !gone {
                let free = self.free_pool(look.aggregates()).await?;
                let noted = Some("in use".to_owned());
                let noted = BTreeMap::from([(pools::leftover_key(reservation, look.host()), noted)]);
                self.cloud.set_metadata(free.id, &noted).await?;
            }
        }
        self.cloud.remove_host(pool.aggregate.id, look.host()).await?;
        self.note_slots(pool.aggregate.id, look.host(), None).await?;
        Ok(Outcome::Done)
    }

    /// Deletes the host's inventories of reservations that are over, unless servers still use them.
    pub(crate) async fn clear_leftovers(&self, look: &Look) -> Result<(), FleetError> {
        let Some(free) = look.aggregates().iter().find(|pool| pool.name == self.settings.free_pool) else {
            return Ok(());
        };
        for reservation in pools::leftovers(free, look.host()) {
            let class = resource_class(reservation);
            if let Some(provider) = self.cloud.provider(&slots_provider(&look.names.hypervisor)).await?
                && !self.cloud.delete_inventory(&provider.uuid, &class).await?
            {
                continue;
            }
            self.cloud.delete_class(&class).await?;
            let noted = BTreeMap::from([(pools::leftover_key(reservation, look.host()), None)]);
            self.cloud.set_metadata(free.id, &noted).await?;
        }
        Ok(())
    }

    /// The host's own provider in Placement.
    pub(crate) async fn host_provider(&self, names: &Names) -> Result<Provider, FleetError> {
        let name = &names.hypervisor;
        self.cloud.provider(name).await?.ok_or_else(|| {
            FleetError::Unavailable(format!("Placement has no resource provider of the name {name}"))
        })
    }

    async fn note_slots(&self, pool: u64, host: &str, slots: Option<u32>) -> Result<(), FleetError> {
        let noted = BTreeMap::from([(pools::slots_key(host), slots.map(|slots| slots.to_string()))]);
        self.cloud.set_metadata(pool, &noted).await
    }
}

fn granted(look: &Look, reservation: ReservationId) -> Option<u32> {
    let mut pools = look.aggregates().iter().filter_map(Pool::of);
    pools.find(|pool| pool.reservation == reservation)?.slots(look.host())
}
