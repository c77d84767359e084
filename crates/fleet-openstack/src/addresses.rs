//! Floating IPs of external networks. The address of a reservation is a Neutron floating IP in the lease's
//! project, with Blazar's tags: `blazar` and `reservation:ID`.
//!
//! The driver identifies a floating IP by its address, which only administrators can choose. The project can
//! change the tags and delete the floating IP. A floating IP with other tags is reclaimed and assigned again,
//! and a deleted one is assigned again, so a project can neither keep an address nor get another project's.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fleet::{FleetError, Network, OperationKey, Outcome, Subnet, UNCERTAIN};
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{FloatingIpId, ReservationId};

use crate::OpenStackFleet;
use crate::ids::parse_uuid;
use crate::turns::Turn;
use crate::wire::{self, FloatingAddress};

type Answer = Result<Outcome, FleetError>;

/// Tag of every leased floating IP.
const TAG: &str = "blazar";

/// Prefix of the tag that names the reservation.
const OF_RESERVATION: &str = "reservation:";

/// The reservation named by the tags, or [`UNCERTAIN`].
fn holder(found: &FloatingAddress) -> ReservationId {
    let named = found.tags.iter().find_map(|tag| parse_uuid(tag.strip_prefix(OF_RESERVATION)?));
    named.map_or(UNCERTAIN, ReservationId)
}

impl OpenStackFleet {
    /// External networks. Subnets that can't be parsed are omitted.
    pub(crate) async fn external_networks(&self) -> Result<Vec<Network>, FleetError> {
        let networks = self.cloud.external_networks().await?;
        let subnets = self.cloud.subnets(&networks).await?;
        let of = |network: &str| {
            let own = subnets.iter().filter(|subnet| subnet.network_id == network);
            own.filter_map(readable).collect()
        };
        let network = |id: String| Network { subnets: of(&id), id: NetworkId(id) };
        Ok(networks.into_iter().map(network).collect())
    }

    /// Reservations that hold these addresses. While Neutron doesn't answer, returns its last known answer:
    /// steps on addresses fail then, but steps on hosts don't have to wait.
    pub(crate) async fn who_has(
        &self,
        addresses: &[FloatingIp],
    ) -> Result<BTreeMap<FloatingIpId, ReservationId>, FleetError> {
        if addresses.is_empty() {
            return Ok(BTreeMap::new());
        }
        match self.look_at_addresses(addresses).await {
            Ok(seen) => {
                let mut memory = self.memory();
                memory.note_addresses(addresses, &seen);
                if std::mem::take(&mut memory.addresses_unseen) {
                    tracing::info!("addresses seen again");
                }
                Ok(seen)
            }
            Err(error) => {
                let mut memory = self.memory();
                let last = memory.addresses(addresses).ok_or_else(|| error.clone())?;
                if !std::mem::replace(&mut memory.addresses_unseen, true) {
                    tracing::warn!(%error, "addresses not seen");
                }
                Ok(last)
            }
        }
    }

    async fn look_at_addresses(
        &self,
        addresses: &[FloatingIp],
    ) -> Result<BTreeMap<FloatingIpId, ReservationId>, FleetError> {
        let networks: BTreeSet<&NetworkId> = addresses.iter().map(|ip| &ip.network).collect();
        let mut seen = BTreeMap::new();
        for network in networks {
            let own = addresses.iter().filter(|ip| ip.network == *network);
            let ids: BTreeMap<IpAddr, FloatingIpId> = own.map(|ip| (ip.address, ip.id)).collect();
            let asked: Vec<IpAddr> = ids.keys().copied().collect();
            let found = self.cloud.floating_addresses(network, &asked).await?;
            let known =
                |found: FloatingAddress| Some((*ids.get(&found.floating_ip_address)?, holder(&found)));
            seen.extend(found.into_iter().filter_map(known));
        }
        Ok(seen)
    }

    /// Assigns the address to the lease's project, unless a floating IP with this address already exists.
    pub(crate) async fn assign_address(
        &self,
        ip: &FloatingIp,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        let _turn = self.turns.of(Turn::Address(ip.id)).await;
        if self.memory().is_late(key) || self.floating_address(ip).await?.is_some() {
            return Ok(Outcome::Done);
        }
        let Some(facts) = &key.facts else {
            return Err(FleetError::Refused("the lease is not known any more".to_owned()));
        };
        let made = self.cloud.create_floating_address(&ip.network, ip.address, &facts.project.0).await?;
        // A floating IP without tags is reclaimed and assigned again.
        self.cloud.set_tags(&made.id, &[TAG.to_owned(), format!("{OF_RESERVATION}{reservation}")]).await?;
        Ok(Outcome::Done)
    }

    /// Deletes the floating IP if the reservation holds it.
    pub(crate) async fn unassign_address(
        &self,
        ip: &FloatingIp,
        reservation: ReservationId,
        key: &OperationKey,
    ) -> Answer {
        let _turn = self.turns.of(Turn::Address(ip.id)).await;
        if self.memory().is_late(key) {
            return Ok(Outcome::Done);
        }
        if let Some(found) = self.floating_address(ip).await?.filter(|found| holder(found) == reservation) {
            self.cloud.delete_floating_address(&found.id).await?;
        }
        Ok(Outcome::Done)
    }

    async fn floating_address(&self, ip: &FloatingIp) -> Result<Option<FloatingAddress>, FleetError> {
        let found = self.cloud.floating_addresses(&ip.network, &[ip.address]).await?;
        Ok(found.into_iter().find(|found| found.floating_ip_address == ip.address))
    }
}

fn readable(subnet: &wire::Subnet) -> Option<Subnet> {
    let (first, bits) = subnet.cidr.split_once('/')?;
    let pools = subnet.allocation_pools.iter();
    Some(Subnet {
        id: subnet.id.clone(),
        cidr: (first.parse().ok()?, bits.parse().ok()?),
        gateway: subnet.gateway_ip,
        allocation_pools: pools.map(|range| (range.start, range.end)).collect(),
    })
}
