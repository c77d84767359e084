//! Floating IPs that can be leased.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use fleet::{Network, Subnet};
use leases::host::FloatingIp;
use leases::ids::FloatingIpId;
use leases::text::Quoted;
use store::{Commit, CommitError, FloatingIpRecord, Write};

use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, NewFloatingIp, NotFound, ServiceError};
use crate::writing::{audit, conflict_error, retry_on_conflict};

/// Access to floating IPs that can be leased.
#[derive(Clone, Copy, Debug)]
pub struct FloatingIps<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> FloatingIps<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    pub fn all(self) -> Vec<Arc<FloatingIpRecord>> {
        self.service.state().floating_ips.values().cloned().collect()
    }

    /// Floating IPs sorted by identifier: at most `limit` after `after`.
    pub fn after(self, after: Option<FloatingIpId>, limit: usize) -> Vec<Arc<FloatingIpRecord>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.service.state();
        let rest = state.floating_ips.range((from, Bound::Unbounded));
        rest.take(limit).map(|(_, record)| Arc::clone(record)).collect()
    }

    pub fn get(self, id: FloatingIpId) -> Option<Arc<FloatingIpRecord>> {
        self.service.state().floating_ips.get(&id).cloned()
    }

    /// Adds a floating IP that can be leased.
    pub async fn add(
        self,
        caller: &Caller,
        new: NewFloatingIp,
    ) -> Result<Arc<FloatingIpRecord>, ServiceError> {
        let networks = self.service.in_time(self.service.parts.fleet.networks()).await?;
        let subnet = subnet_of(&networks, &new)?;
        let ip = FloatingIp {
            id: FloatingIpId(self.service.parts.ids.uuid()),
            network: new.network.clone(),
            address: new.address,
            reservable: true,
        };
        // An address in use is rejected: its current user would lose it when it is leased.
        let no_hosts = BTreeSet::new();
        let seen = self.service.parts.fleet.observe(&no_hosts, std::slice::from_ref(&ip));
        if self.service.in_time(seen).await?.floating_ips.contains_key(&ip.id) {
            return Err(somebody_has(new.address));
        }
        let writer = self.service.writer().await?;
        let there = |ip: &FloatingIp| ip.network == new.network && ip.address == new.address;
        if self.service.state().inventory.floating_ips().any(there) {
            return Err(exists(new.address));
        }
        let now = self.service.now();
        let record = FloatingIpRecord { floating_ip: ip, subnet, created_at: now };
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, "floatingip.create", &record.floating_ip.id));
        commit.writes.push(Write::AddFloatingIp(record.clone()));
        match writer.commit(commit).await {
            Ok(()) => {
                // A lease that waits for an address or lacks one might get it.
                self.service.wake.notify_one();
                Ok(Arc::new(record))
            }
            Err(CommitError::Exists { .. }) => Err(exists(new.address)),
            Err(error) => Err(retry_on_conflict(error).err().unwrap_or_else(conflict_error)),
        }
    }

    /// Removes a floating IP. Fails if a lease has it.
    pub async fn remove(self, caller: &Caller, id: FloatingIpId) -> Result<(), ServiceError> {
        let remove = |state: &State, now| {
            let ip = state.floating_ips.get(&id).ok_or(ServiceError::NotFound(NotFound::FloatingIp(id)))?;
            if leased(state, id) {
                return Err(in_use(&ip.floating_ip));
            }
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "floatingip.delete", &id));
            commit.writes.push(Write::RemoveFloatingIp(id));
            Ok(Transaction::of(commit, ()).or_in_use(in_use(&ip.floating_ip)))
        };
        self.service.transact(remove).await
    }
}

fn leased(state: &State, id: FloatingIpId) -> bool {
    let keeps = |lease| state.leases.get(lease).is_some_and(|record| record.lease.keeps_resources());
    state.calendar.floating_ip_bookings(id).any(|(_, booking)| keeps(booking.lease))
}

/// Subnet of the address. Fails if the address is the gateway or in an allocation pool, because the cloud
/// then assigns it (API-hosts).
fn subnet_of(networks: &[Network], new: &NewFloatingIp) -> Result<String, ServiceError> {
    let (network, address) = (&new.network.0, new.address);
    let Some(found) = networks.iter().find(|known| known.id == new.network) else {
        let known: Vec<&str> =
            networks.iter().take(MOST_LISTED).map(|network| network.id.0.as_str()).collect();
        let known = if known.is_empty() {
            "the fleet has none".to_owned()
        } else {
            format!("there is {}", known.join(", "))
        };
        return Err(ServiceError::Invalid(format!("Failed to find network {}: {known}", Quoted(network))));
    };
    let Some(subnet) = found.subnets.iter().find(|subnet| lies_in(address, subnet.cidr)) else {
        let known: Vec<String> = found.subnets.iter().take(MOST_LISTED).map(described).collect();
        return Err(ServiceError::NotFound(NotFound::Subnet { address, known: known.join(", ") }));
    };
    if given_out_elsewhere(address, subnet) {
        return Err(ServiceError::Invalid(format!(
            "The floating IP {address} is used in allocation_pools or gateway_ip in subnet {}",
            described(subnet)
        )));
    }
    Ok(subnet.id.clone())
}

fn given_out_elsewhere(address: IpAddr, subnet: &Subnet) -> bool {
    let pools = &subnet.allocation_pools;
    subnet.gateway == Some(address) || pools.iter().any(|(first, last)| *first <= address && address <= *last)
}

/// Maximum number of networks, subnets or ranges in an error message.
const MOST_LISTED: usize = 8;

/// Describes a subnet with its addresses that can be leased.
fn described(subnet: &Subnet) -> String {
    let (first, bits) = subnet.cidr;
    let free = free_ranges(subnet);
    let free: Vec<String> = free
        .iter()
        .take(MOST_LISTED)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
        .collect();
    let free = if free.is_empty() { "nothing".to_owned() } else { free.join(", ") };
    format!("{} ({first}/{bits}; free: {free})", subnet.id)
}

/// First and last addresses of the subnet's ranges that can be leased. Excludes the gateway and the
/// allocation pools, and for IPv4 the network and broadcast addresses.
fn free_ranges(subnet: &Subnet) -> Vec<(IpAddr, IpAddr)> {
    let (network, bits) = subnet.cidr;
    let (width, number) = match network {
        IpAddr::V4(address) => (32, u128::from(u32::from(address))),
        IpAddr::V6(address) => (128, u128::from(address)),
    };
    let hosts = width - u32::from(bits).min(width);
    let mask = if hosts == 128 { u128::MAX } else { (1 << hosts) - 1 };
    let (mut first, mut last) = (number & !mask, number | mask);
    if network.is_ipv4() && hosts > 1 {
        (first, last) = (first + 1, last - 1);
    }
    let same_kind = |address: &IpAddr| address.is_ipv4() == network.is_ipv4();
    let numbered = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let mut taken: Vec<(u128, u128)> = subnet
        .allocation_pools
        .iter()
        .filter(|(from, _)| same_kind(from))
        .map(|(from, to)| (numbered(*from), numbered(*to)))
        .collect();
    taken.extend(subnet.gateway.filter(same_kind).map(|gateway| (numbered(gateway), numbered(gateway))));
    taken.sort_unstable();
    let address = |number: u128| match network {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    };
    let mut free = Vec::new();
    let mut next = Some(first);
    for (from, to) in taken {
        let Some(begin) = next else { break };
        if from > begin && begin <= last {
            free.push((address(begin), address((from - 1).min(last))));
        }
        if to >= begin {
            next = to.checked_add(1);
        }
    }
    if let Some(begin) = next.filter(|begin| *begin <= last) {
        free.push((address(begin), address(last)));
    }
    free
}

fn lies_in(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let leading =
        |number: u128, width: u32| number.checked_shr(width - u32::from(bits).min(width)).unwrap_or(0);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => {
            leading(u32::from(a).into(), 32) == leading(u32::from(n).into(), 32)
        }
        (IpAddr::V6(a), IpAddr::V6(n)) => leading(a.into(), 128) == leading(n.into(), 128),
        _ => false,
    }
}

fn exists(address: IpAddr) -> ServiceError {
    ServiceError::Conflict(format!("Floating IP {address} already exists"))
}

fn somebody_has(address: IpAddr) -> ServiceError {
    ServiceError::Conflict(format!(
        "Somebody has the floating IP {address} already: it can be leased once it is deleted there"
    ))
}

/// Message of Blazar (API-hosts).
fn in_use(ip: &FloatingIp) -> ServiceError {
    let (address, id) = (ip.address, ip.id);
    ServiceError::Conflict(format!(
        "Can't delete floating IP {address}. Floating IP id {id} is allocated by reservations."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_lies_in_a_network_with_the_same_leading_bits() {
        let network = (address("203.0.113.0"), 24);
        assert!(lies_in(address("203.0.113.7"), network));
        assert!(!lies_in(address("203.0.114.7"), network));
        assert!(!lies_in(address("2001:db8::7"), network));
        assert!(lies_in(address("198.51.100.1"), (address("0.0.0.0"), 0)));
        assert!(lies_in(address("2001:db8::7"), (address("2001:db8::"), 64)));
        assert!(!lies_in(address("2001:db9::7"), (address("2001:db8::"), 32)));
    }

    #[test]
    fn free_ranges_are_what_nobody_else_gives_out() {
        let subnet = |cidr: &str, bits, gateway: Option<&str>, pools: &[(&str, &str)]| Subnet {
            id: "s".to_owned(),
            cidr: (address(cidr), bits),
            gateway: gateway.map(address),
            allocation_pools: pools.iter().map(|(from, to)| (address(from), address(to))).collect(),
        };
        for (subnet, wanted) in [
            (
                subnet("203.0.113.0", 24, Some("203.0.113.1"), &[("203.0.113.2", "203.0.113.101")]),
                "s (203.0.113.0/24; free: 203.0.113.102 to 203.0.113.254)",
            ),
            (subnet("192.0.2.0", 30, Some("192.0.2.1"), &[]), "s (192.0.2.0/30; free: 192.0.2.2)"),
            (subnet("192.0.2.0", 30, None, &[("192.0.2.0", "192.0.2.9")]), "s (192.0.2.0/30; free: nothing)"),
            (
                subnet("0.0.0.0", 0, Some("0.0.0.1"), &[("255.255.255.0", "255.255.255.255")]),
                "s (0.0.0.0/0; free: 0.0.0.2 to 255.255.254.255)",
            ),
            (
                subnet("2001:db8::", 64, Some("2001:db8::1"), &[("2001:db8::100", "2001:db8::1ff")]),
                "s (2001:db8::/64; free: 2001:db8::, 2001:db8::2 to 2001:db8::ff, 2001:db8::200 to 2001:db8::ffff:ffff:ffff:ffff)",
            ),
            (
                subnet("::", 0, None, &[("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]),
                "s (::/0; free: nothing)",
            ),
        ] {
            assert_eq!(described(&subnet), wanted);
            for (first, last) in free_ranges(&subnet) {
                assert!(!given_out_elsewhere(first, &subnet) && !given_out_elsewhere(last, &subnet));
                assert!(lies_in(first, subnet.cidr) && lies_in(last, subnet.cidr));
            }
        }
    }

    #[test]
    fn addresses_that_others_give_out_are_not_taken_on() {
        let subnet = Subnet {
            id: "s".to_owned(),
            cidr: (address("203.0.113.0"), 24),
            gateway: Some(address("203.0.113.1")),
            allocation_pools: vec![(address("203.0.113.10"), address("203.0.113.20"))],
        };
        assert!(given_out_elsewhere(address("203.0.113.1"), &subnet));
        assert!(given_out_elsewhere(address("203.0.113.10"), &subnet));
        assert!(given_out_elsewhere(address("203.0.113.20"), &subnet));
        assert!(!given_out_elsewhere(address("203.0.113.21"), &subnet));
    }
}
