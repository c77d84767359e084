//! Allocations of hosts and addresses over time: nothing is given away twice.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId};
use leases::lease::Allocation;
use leases::resources::Resources;
use leases::terms::ReservationTerms;
use leases::window::Window;
use store::Snapshot;

use crate::verdict::Verdict;

/// Part of a host that one reservation takes.
struct Use<'a> {
    lease: LeaseId,
    window: Window,
    /// Number of slots and their terms. `None` is the whole host.
    slots: Option<(u32, &'a ReservationTerms)>,
}

/// No host or floating IP is in two leases at once, and no host's capacity is exceeded. The past isn't
/// judged: a lease that got another host later didn't have it before.
pub(super) fn check_bookings(contents: &Snapshot, cleaning_time: SignedDuration, now: Timestamp) -> Verdict {
    let mut uses: BTreeMap<HostId, Vec<Use<'_>>> = BTreeMap::new();
    let mut addresses = Vec::new();
    for lease in contents.leases.iter().map(|record| &record.lease).filter(|lease| lease.keeps_resources()) {
        for reservation in &lease.reservations {
            let (lease, window) = (lease.id, lease.window);
            match &reservation.allocation {
                Allocation::Hosts(hosts) => {
                    for host in hosts {
                        uses.entry(*host).or_default().push(Use { lease, window, slots: None });
                    }
                }
                Allocation::Slots(slots) => {
                    for (host, count) in slots {
                        let slots = Some((*count, &reservation.terms));
                        uses.entry(*host).or_default().push(Use { lease, window, slots });
                    }
                }
                Allocation::FloatingIps(ips) => addresses.extend(ips.iter().map(|ip| (*ip, lease, window))),
            }
        }
    }
    for (position, (ip, lease, window)) in addresses.iter().enumerate() {
        let clash =
            addresses[..position].iter().find(|(other, _, times)| other == ip && times.overlaps(window));
        if let Some((_, other, _)) = clash {
            return Err(format!("leases {lease} and {other} both have floating IP {ip}"));
        }
    }
    for (host, uses) in &uses {
        check_whole_host(*host, uses, cleaning_time, now)?;
        if let Some(record) = contents.hosts.iter().find(|record| record.host.id == *host) {
            check_room(*host, uses, &record.host.capacity(), now)?;
        }
    }
    Ok(())
}

fn check_whole_host(
    host: HostId,
    uses: &[Use<'_>],
    cleaning_time: SignedDuration,
    now: Timestamp,
) -> Verdict {
    for (position, own) in uses.iter().enumerate() {
        for other in &uses[..position] {
            let both_slots = own.slots.is_some() && other.slots.is_some();
            let over = own.window.end().min(other.window.end()) + cleaning_time <= now;
            if !both_slots && !over && own.window.widened(cleaning_time).overlaps(&other.window) {
                let (a, b) = (own.lease, other.lease);
                return Err(format!(
                    "leases {a} ({:?}) and {b} ({:?}) both have host {host}",
                    own.window, other.window
                ));
            }
        }
    }
    Ok(())
}

fn check_room(host: HostId, uses: &[Use<'_>], capacity: &Resources, now: Timestamp) -> Verdict {
    for instant in uses.iter().map(|own| own.window.start().max(now)) {
        let mut used = Resources::default();
        for own in uses.iter().filter(|own| own.window.contains(instant)) {
            if let Some((count, terms)) = own.slots {
                used.add(count, &terms.slots().map(|slots| slots.size).unwrap_or_default());
            }
        }
        let fits = used.vcpus <= capacity.vcpus
            && used.memory_mib <= capacity.memory_mib
            && used.disk_gib <= capacity.disk_gib;
        if !fits {
            return Err(format!("host {host} has {capacity:?}, but at {instant} {used:?} is given away"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use leases::terms::HostsTerms;
    use store::LeaseRecord;

    use crate::testing::{at, lease};

    fn record(id: u128, window: (i64, i64)) -> LeaseRecord {
        let asked = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
        LeaseRecord::new(lease(id, asked, 1, window), BTreeMap::new(), at(0))
    }

    /// Checks, at that minute, leases of host 1 with ten minutes of cleaning.
    fn found(leases: &[(i64, i64)], minute: i64) -> Verdict {
        let leases = (1..).zip(leases).map(|(id, window)| record(id, *window)).collect();
        let contents = Snapshot { leases, ..Snapshot::default() };
        check_bookings(&contents, SignedDuration::from_mins(10), at(minute))
    }

    #[test]
    fn a_host_in_two_leases_is_noticed_and_so_is_one_that_is_not_cleaned() {
        assert_eq!(found(&[(0, 60), (70, 90)], 0), Ok(()));
        assert!(found(&[(0, 60), (30, 90)], 0).is_err());
        assert!(found(&[(0, 60), (65, 90)], 0).is_err());
        assert!(found(&[(0, 60), (65, 90)], 69).is_err(), "it would still be cleaned");
    }

    #[test]
    fn a_lease_that_is_given_a_host_later_has_had_none_of_it_before() {
        assert_eq!(found(&[(0, 60), (65, 90)], 70), Ok(()));
        assert_eq!(found(&[(0, 60), (30, 90)], 70), Ok(()));
    }
}
