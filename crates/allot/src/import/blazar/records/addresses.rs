//! Assignment of floating IPs to leases, which Blazar's API doesn't show. The addresses of a running lease
//! are known from the tags that Blazar set in the cloud. Addresses for later leases are chosen again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use api::v1::floating_ip_id;
use jiff::Timestamp;
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{FloatingIpId, LeaseId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::terms::{FloatingIpsTerms, ReservationTerms};
use leases::window::Window;
use serde::Deserialize;
use serde_json::Value;
use store::FloatingIpRecord;

use super::instants::instant_or;

/// Holder of each floating IP in the cloud.
pub(in crate::import::blazar) type Given = BTreeMap<FloatingIpId, ReservationId>;

#[derive(Deserialize)]
struct BlazarAddress {
    id: String,
    floating_network_id: String,
    floating_ip_address: IpAddr,
    #[serde(default)]
    subnet_id: String,
    reservable: Option<bool>,
    created_at: Option<String>,
}

/// Reads a floating IP from Blazar's JSON.
pub(in crate::import::blazar) fn read(value: &Value, read_at: Timestamp) -> Result<FloatingIpRecord, String> {
    let read = BlazarAddress::deserialize(value).map_err(|error| error.to_string())?;
    let floating_ip = FloatingIp {
        id: floating_ip_id(&read.id).ok_or("its ID isn't a UUID")?,
        network: NetworkId(read.floating_network_id),
        address: read.floating_ip_address,
        reservable: read.reservable.unwrap_or(true),
    };
    let created_at = instant_or(read.created_at.as_ref(), read_at)?;
    Ok(FloatingIpRecord { floating_ip, subnet: read.subnet_id, created_at })
}

/// Floating IPs, the reservations that hold them, and the windows in which they're held.
#[derive(Default)]
pub(super) struct Addresses {
    all: BTreeMap<FloatingIpId, FloatingIp>,
    given: BTreeMap<ReservationId, BTreeSet<FloatingIpId>>,
    held: BTreeMap<FloatingIpId, Vec<Window>>,
}

impl Addresses {
    /// `given` has the holders in the cloud. A holder counts only if it belongs to one of `leases`, and that
    /// lease isn't over.
    pub(super) fn new(records: &[FloatingIpRecord], given: &Given, leases: &[&Lease]) -> Self {
        let all: BTreeMap<FloatingIpId, FloatingIp> =
            records.iter().map(|record| (record.floating_ip.id, record.floating_ip.clone())).collect();
        let mut this = Self { all, ..Self::default() };
        for (ip, reservation) in given.iter().filter(|(ip, _)| this.all.contains_key(ip)) {
            let lease = leases.iter().find(|lease| lease.reservation(*reservation).is_some());
            if let Some(lease) = lease.filter(|lease| lease.keeps_resources()) {
                this.given.entry(*reservation).or_default().insert(*ip);
                this.held.entry(*ip).or_default().push(lease.window);
            }
        }
        this
    }

    /// Assigns addresses to the reservations of leases that aren't over. Leases that require certain
    /// addresses go first. Returns the leases that couldn't get enough, with the reason.
    pub(super) fn give<'a>(
        &mut self,
        leases: impl Iterator<Item = &'a mut Lease>,
    ) -> BTreeMap<LeaseId, String> {
        let (asking, others): (Vec<_>, Vec<_>) =
            leases.filter(|lease| lease.keeps_resources()).partition(|lease| asks_for_certain_ones(lease));
        let mut lacking = BTreeMap::new();
        for lease in asking.into_iter().chain(others) {
            if let Err(why) = self.give_to(lease) {
                lacking.insert(lease.id, why);
            }
        }
        lacking
    }

    fn give_to(&mut self, lease: &mut Lease) -> Result<(), String> {
        let window = lease.window;
        for own in &mut lease.reservations {
            if let ReservationTerms::FloatingIps(terms) = &own.terms {
                let chosen = self.choose(own.id, terms, window);
                own.allocation =
                    Allocation::FloatingIps(chosen.map_err(|why| format!("reservation {}: {why}", own.id))?);
            }
        }
        Ok(())
    }

    /// Keeps the addresses that the reservation already holds, adds the required ones, then the first free
    /// ones.
    fn choose(
        &mut self,
        reservation: ReservationId,
        terms: &FloatingIpsTerms,
        window: Window,
    ) -> Result<BTreeSet<FloatingIpId>, String> {
        let mut chosen = self.given.get(&reservation).cloned().unwrap_or_default();
        let has = |chosen: &BTreeSet<FloatingIpId>, address: IpAddr| {
            chosen.iter().any(|id| self.all[id].address == address)
        };
        let is_free = |ip: &&FloatingIp| {
            let mut held = self.held.get(&ip.id).into_iter().flatten();
            ip.network == terms.network && ip.reservable && !held.any(|other| other.overlaps(&window))
        };
        let free: Vec<&FloatingIp> = self.all.values().filter(is_free).collect();
        let mut new = BTreeSet::new();
        for address in terms.required().iter().filter(|address| !has(&chosen, **address)) {
            let ip = free.iter().find(|ip| ip.address == *address);
            new.insert(ip.ok_or_else(|| format!("the address {address} that it asks for is not free"))?.id);
        }
        let lacking = (terms.amount() as usize).saturating_sub(chosen.len() + new.len());
        let others: Vec<FloatingIpId> =
            free.iter().map(|ip| ip.id).filter(|id| !new.contains(id)).take(lacking).collect();
        if others.len() < lacking {
            return Err(format!("not enough addresses of network {} are free for it", terms.network.0));
        }
        new.extend(others);
        for id in &new {
            self.held.entry(*id).or_default().push(window);
        }
        chosen.extend(new);
        Ok(chosen)
    }
}

fn asks_for_certain_ones(lease: &Lease) -> bool {
    lease.reservations.iter().any(|own| match &own.terms {
        ReservationTerms::FloatingIps(terms) => !terms.required().is_empty(),
        _ => false,
    })
}
