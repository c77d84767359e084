//! Room for instances: a private flavor, an aggregate and a class of resources for each reservation, as Blazar's users
//! know them. Each server of the flavor uses one of the class, of which a provider below the host has as many as the
//! reservation has slots there. That number is noted in the aggregate once all else is done.

use std::collections::BTreeMap;

use fleet::{FleetError, Outcome, ReservationFacts};
use leases::ids::{HostId, LeaseId, ReservationId};

use crate::cloud::NewFlavor;
use crate::ids::{resource_class, slots_provider};
use crate::pools::{self, Pool};
use crate::sight::{FLAVOR, Names};
use crate::wire::Provider;
use crate::{Look, OpenStackFleet};

type Answer = Result<Outcome, FleetError>;

impl OpenStackFleet {
    pub(crate) async fn grant_slots(
        &self,
        host: HostId,
        reservation: ReservationId,
        slots: u32,
        lease: Option<LeaseId>,
        facts: Option<&ReservationFacts>,
    ) -> Answer {
        let look = self.look_at(host).await?;
        if look.place.is_none() || granted(&look, reservation) == Some(slots) {
            return Ok(Outcome::Done);
        }
        let Some(facts) = facts else {
            return Err(FleetError::Refused(format!("reservation {reservation} is not known any more")));
        };
        let class = resource_class(reservation);
        self.cloud.ensure_class(&class).await?;
        let project = &facts.project.0;
        let metadata = pools::instances(reservation, project, lease);
        let pool = self.ensure_pool(&look, reservation, None, &metadata).await?;
        let id = reservation.to_string();
        let flavor = NewFlavor {
            id: &id,
            name: &format!("{FLAVOR}{id}"),
            vcpus: facts.size.vcpus,
            memory_mib: facts.size.memory_mib,
            disk_gib: facts.size.disk_gib,
        };
        let specs = [
            ("aggregate_instance_extra_specs:reservation".to_owned(), id.clone()),
            (format!("resources:{class}"), "1".to_owned()),
        ];
        self.cloud.ensure_flavor(flavor, &specs.into()).await?;
        self.cloud.allow_flavor(&id, project).await?;
        let parent = self.host_provider(&look.names).await?;
        let provider = self.cloud.ensure_provider(&slots_provider(&parent.name), &parent).await?;
        self.cloud.set_inventory(&provider.uuid, &class, slots).await?;
        self.join(&pool, look.host()).await?;
        self.note_slots(pool.id, look.host(), Some(slots)).await?;
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
        let class = resource_class(reservation);
        if let Some(provider) = self.cloud.provider(&slots_provider(&look.names.hypervisor)).await? {
            self.cloud.delete_inventory(&provider.uuid, &class).await?;
        }
        self.cloud.remove_host(pool.aggregate.id, look.host()).await?;
        self.note_slots(pool.aggregate.id, look.host(), None).await?;
        // Other hosts may have left meanwhile: whoever is the last sees that nobody is left.
        let aggregates = self.cloud.aggregates().await?;
        let now = aggregates.iter().filter(|other| other.id == pool.aggregate.id).find_map(Pool::of);
        if now.is_some_and(|pool| pool.slot_hosts().next().is_none()) {
            self.cloud.delete_flavor(&reservation.to_string()).await?;
            self.cloud.delete_aggregate(pool.aggregate.id).await?;
            self.cloud.delete_class(&class).await?;
        }
        Ok(Outcome::Done)
    }

    /// The provider that has slots on a host goes with the host.
    pub(crate) async fn delete_slots_provider(&self, names: &Names) -> Result<(), FleetError> {
        if let Some(provider) = self.cloud.provider(&slots_provider(&names.hypervisor)).await? {
            self.cloud.delete_provider(&provider.uuid).await?;
        }
        Ok(())
    }

    /// The provider of a host in Placement.
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
