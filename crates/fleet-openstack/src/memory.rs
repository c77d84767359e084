//! The driver's memory. If it is lost, data is read again, and servers that were asked to shut down get
//! another grace period.

use std::collections::{BTreeMap, BTreeSet};

use fleet::{Fences, OperationKey};
use jiff::Timestamp;
use leases::host::FloatingIp;
use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::text::quoted;

use crate::imaging::Imaging;
use crate::moves::Moves;
use crate::reports::Reports;
use crate::sight::{Details, Names};
use crate::watch::Watch;
use crate::wire::Hypervisor;

/// Number of addresses, in excess of twice the current ones, that can be remembered before old ones are
/// forgotten.
const FORGOTTEN_FROM: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    names: BTreeMap<HostId, Names>,
    /// By name of the compute service.
    hosts: BTreeMap<String, HostId>,
    /// By name of the provider.
    details: BTreeMap<String, Details>,
    /// Whether the next look compares `details` with Placement's generations.
    pub(crate) looks_closely: bool,
    fences: Fences,
    /// Servers that were asked to shut down, with the time of the first request.
    pub(crate) stopping: BTreeMap<GuestId, Timestamp>,
    /// Servers in `stopping` that were running when they were asked.
    pub(crate) stopped_running: BTreeSet<GuestId>,
    /// Hosts that their hook has switched off while Nova still considers them up.
    pub(crate) switched_off: BTreeSet<HostId>,
    /// Compute services that no longer report.
    pub(crate) reports: Reports,
    pub(crate) moves: Moves,
    pub(crate) imaging: BTreeMap<HostId, Imaging>,
    /// Reservations that held addresses when Neutron last answered. `None` for addresses without a holder.
    addresses: BTreeMap<FloatingIpId, Option<ReservationId>>,
    /// Whether it was logged that Neutron doesn't answer.
    pub(crate) addresses_unseen: bool,
    pub(crate) watch: Watch,
    /// Hosts that can't be told apart and were logged.
    said: BTreeSet<String>,
}

impl Memory {
    /// Records the names of hosts. Hosts that share a compute service, as Ironic's do, or a number, as hosts
    /// of different cells can, are left out: a step on one would affect another.
    pub(crate) fn learn(&mut self, all: Vec<Hypervisor>) -> Vec<Hypervisor> {
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        let mut services: BTreeMap<String, usize> = BTreeMap::new();
        for hypervisor in &all {
            *numbers.entry(hypervisor.id).or_default() += 1;
            *services.entry(hypervisor.service.host.clone()).or_default() += 1;
        }
        let unique =
            |hypervisor: &Hypervisor| numbers[&hypervisor.id] == 1 && services[&hypervisor.service.host] == 1;
        let (known, unclear): (Vec<Hypervisor>, Vec<Hypervisor>) = all.into_iter().partition(unique);
        let unclear: BTreeSet<String> = unclear.into_iter().map(|other| other.hostname).collect();
        for host in unclear.difference(&self.said) {
            let reason = "another hypervisor has the same number or the same compute service";
            tracing::warn!(host = quoted(host), reason, "host left out");
        }
        self.said = unclear;
        let names = |hypervisor: &Hypervisor| Names {
            service: hypervisor.service.host.clone(),
            hypervisor: hypervisor.hostname.clone(),
        };
        self.names = known.iter().map(|hypervisor| (HostId(hypervisor.id), names(hypervisor))).collect();
        self.hosts = self.names.iter().map(|(id, names)| (names.service.clone(), *id)).collect();
        self.imaging.retain(|host, _| self.names.contains_key(host));
        self.switched_off.retain(|host| self.names.contains_key(host));
        self.details.retain(|name, _| known.iter().any(|other| other.hostname == *name));
        known
    }

    pub(crate) fn names(&self, host: HostId) -> Option<Names> {
        self.names.get(&host).cloned()
    }

    pub(crate) fn all_names(&self) -> &BTreeMap<HostId, Names> {
        &self.names
    }

    pub(crate) fn hosts(&self) -> &BTreeMap<String, HostId> {
        &self.hosts
    }

    pub(crate) fn details(&self, provider: &str) -> Option<&Details> {
        self.details.get(provider)
    }

    /// Makes Placement be asked again about a host that might have changed.
    pub(crate) fn forget_details(&mut self, provider: &str) {
        self.details.remove(provider);
    }

    pub(crate) fn note_details(&mut self, found: Vec<(String, Details)>) {
        self.details.extend(found);
    }

    pub(crate) fn note_addresses(
        &mut self,
        all: &[FloatingIp],
        seen: &BTreeMap<FloatingIpId, ReservationId>,
    ) {
        let now = all.iter().map(|ip| (ip.id, seen.get(&ip.id).copied()));
        self.addresses.extend(now);
        // An address can be refused after it was asked about, and addresses that were given up are not asked
        // about again.
        if self.addresses.len() > 2 * all.len() + FORGOTTEN_FROM {
            let asked: BTreeSet<FloatingIpId> = all.iter().map(|ip| ip.id).collect();
            self.addresses.retain(|id, _| asked.contains(id));
        }
    }

    /// Reservations that hold these addresses, by Neutron's last answer. `None` if the answer lacked some
    /// addresses.
    pub(crate) fn addresses(&self, all: &[FloatingIp]) -> Option<BTreeMap<FloatingIpId, ReservationId>> {
        let mut seen = BTreeMap::new();
        for ip in all {
            seen.extend(self.addresses.get(&ip.id)?.map(|holder| (ip.id, holder)));
        }
        Some(seen)
    }

    pub(crate) fn is_late(&mut self, key: &OperationKey) -> bool {
        self.fences.is_late(key)
    }

    /// From now on, calls that stop or delete the server under older claims are late.
    pub(crate) fn resume(&mut self, host: HostId, guest: GuestId, key: &OperationKey) {
        self.fences.resume(host, guest, key);
    }

    pub(crate) fn note_stopping(&mut self, guest: GuestId, ran: bool, now: Timestamp) {
        self.stopping.insert(guest, now);
        if ran {
            self.stopped_running.insert(guest);
        }
    }

    /// The server no longer has to leave.
    pub(crate) fn forget_stopping(&mut self, guest: GuestId) {
        self.stopping.remove(&guest);
        self.stopped_running.remove(&guest);
    }
}
