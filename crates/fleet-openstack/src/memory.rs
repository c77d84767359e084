//! What the driver remembers. Losing it costs questions, and servers that were asked to shut down another grace time.

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

/// So many addresses more than there are may be remembered.
const FORGOTTEN_FROM: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    names: BTreeMap<HostId, Names>,
    /// By the name of the compute service.
    hosts: BTreeMap<String, HostId>,
    /// By the name of the provider.
    details: BTreeMap<String, Details>,
    /// The next look compares them with what Placement has.
    pub(crate) looks_closely: bool,
    fences: Fences,
    /// Since when servers are asked to shut down.
    pub(crate) stopping: BTreeMap<GuestId, Timestamp>,
    /// Those of them that ran when they were asked.
    pub(crate) stopped_running: BTreeSet<GuestId>,
    /// Hosts whose hook has switched them off, and which Nova takes for up still.
    pub(crate) switched_off: BTreeSet<HostId>,
    /// Which compute services do not report any more.
    pub(crate) reports: Reports,
    /// Moves that Nova was asked for.
    pub(crate) moves: Moves,
    /// Images that are made of servers on a host.
    pub(crate) imaging: BTreeMap<HostId, Imaging>,
    /// Who had which address when Neutron was asked last and answered; none if nobody had it.
    addresses: BTreeMap<FloatingIpId, Option<ReservationId>>,
    /// Neutron does not answer, which was said.
    pub(crate) addresses_unseen: bool,
    /// What is stored, and what is different.
    pub(crate) watch: Watch,
    /// Hosts that cannot be told apart, which were said.
    said: BTreeSet<String>,
}

impl Memory {
    /// Notes who is who. Hosts that share a compute service, as those of Ironic do, or a number, as those of different
    /// cells may, are left out: what is done to one would be done to the other.
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

    /// Placement is asked again about a host of which something may have changed.
    pub(crate) fn forget_details(&mut self, provider: &str) {
        self.details.remove(provider);
    }

    pub(crate) fn note_details(&mut self, found: Vec<(String, Details)>) {
        self.details.extend(found);
    }

    /// Notes who has these addresses.
    pub(crate) fn note_addresses(
        &mut self,
        all: &[FloatingIp],
        seen: &BTreeMap<FloatingIpId, ReservationId>,
    ) {
        let now = all.iter().map(|ip| (ip.id, seen.get(&ip.id).copied()));
        self.addresses.extend(now);
        // One that is asked about to be taken on may be refused, and those that were given up are not asked about.
        if self.addresses.len() > 2 * all.len() + FORGOTTEN_FROM {
            let asked: BTreeSet<FloatingIpId> = all.iter().map(|ip| ip.id).collect();
            self.addresses.retain(|id, _| asked.contains(id));
        }
    }

    /// Who had these addresses when they were asked about last; none if one of them never was.
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

    /// Calls that stop or delete the server under older claims are late from now on.
    pub(crate) fn resume(&mut self, host: HostId, guest: GuestId, key: &OperationKey) {
        self.fences.resume(host, guest, key);
    }

    pub(crate) fn note_stopping(&mut self, guest: GuestId, ran: bool, now: Timestamp) {
        self.stopping.insert(guest, now);
        if ran {
            self.stopped_running.insert(guest);
        }
    }

    /// Nobody waits for the server to leave any more.
    pub(crate) fn forget_stopping(&mut self, guest: GuestId) {
        self.stopping.remove(&guest);
        self.stopped_running.remove(&guest);
    }
}
