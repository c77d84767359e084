//! Allocation of floating IPs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{Refusal, Resource, Search};
use crate::host::FloatingIp;
use crate::ids::FloatingIpId;
use crate::terms::{FloatingIpsTerms, ReservationTerms};

/// Cost of a look at an address.
const LOOKING: u64 = 20;

impl Search<'_> {
    /// Leaves the addresses that these reservations of the lease require to them. Free addresses of a network
    /// are equal otherwise, so the order of the reservations doesn't matter.
    pub(super) fn leaving_required<'t>(
        mut self,
        asked: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> Self {
        for terms in asked {
            if let ReservationTerms::FloatingIps(terms) = terms {
                let required = terms.required().iter().map(|address| (terms.network.clone(), *address));
                self.required.extend(required);
            }
        }
        self
    }

    /// Addresses for a reservation: required ones first, then those it already holds, then free ones in
    /// inventory order, except those that other reservations of the lease require. Addresses reserved for
    /// offers come last.
    pub(super) fn floating_ips(
        &self,
        position: usize,
        asked: &FloatingIpsTerms,
        held: &BTreeSet<FloatingIpId>,
    ) -> Result<BTreeSet<FloatingIpId>, Refusal> {
        let calendar = self.admission.calendar;
        let free: Vec<&FloatingIp> = self
            .admission
            .inventory
            .floating_ips()
            .take_while(|_| self.admission.budget.spend(LOOKING))
            .filter(|ip| ip.network == asked.network && ip.reservable)
            .filter(|ip| !self.taken.floating_ips.contains(&ip.id))
            .filter(|ip| calendar.floating_ip_free(ip.id, &self.window, self.own))
            .collect();
        let mut chosen = BTreeSet::new();
        if !asked.required().is_empty() {
            let by_address: BTreeMap<IpAddr, FloatingIpId> =
                free.iter().rev().map(|ip| (ip.address, ip.id)).collect();
            for address in asked.required() {
                let ip = by_address.get(address).ok_or(Refusal::FloatingIpTaken(*address))?;
                chosen.insert(*ip);
            }
        }
        let claimed = |ip: &FloatingIp| {
            !self.required.is_empty() && self.required.contains(&(ip.network.clone(), ip.address))
        };
        let unclaimed = free.iter().filter(|ip| !claimed(ip)).map(|ip| ip.id);
        let (kept, others): (Vec<_>, Vec<_>) = unclaimed.partition(|ip| held.contains(ip));
        let amount = asked.amount() as usize;
        let offered =
            |ip: &FloatingIpId| !self.admission.facts.offered.floating_ip_free(*ip, &self.window, None);
        let (offered, others): (Vec<_>, Vec<_>) = others.into_iter().partition(offered);
        for ip in kept.into_iter().chain(others).chain(offered) {
            if chosen.len() >= amount {
                break;
            }
            chosen.insert(ip);
        }
        if chosen.len() < amount {
            return Err(Refusal::NotEnough {
                position,
                resource: Resource::FloatingIps,
                needed: amount as u64,
                found: chosen.len() as u64,
            });
        }
        Ok(chosen)
    }
}
