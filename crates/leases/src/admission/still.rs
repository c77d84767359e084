//! Checks a decision against bookings that were made in the meantime.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::calendar::Calendar;
use crate::host::Inventory;
use crate::lease::{Allocation, Lease};

/// Whether these leases, decided together on an earlier calendar of the same hosts, can be entered in this
/// one: their hosts and addresses are free, hosts can be cleaned before and after, and their slots fit. This
/// is much cheaper than a new decision. False doesn't mean that there are no other hosts.
pub fn still_fit(calendar: &Calendar, inventory: &Inventory, leases: &[&Lease], now: Timestamp) -> bool {
    let mut after = calendar.clone();
    after.remove_all(&leases.iter().map(|lease| lease.id).collect::<BTreeSet<_>>());
    let entered = leases.iter().all(|lease| is_clean(&after, lease, now) && after.put(lease, now).is_ok());
    entered && leases.iter().all(|lease| has_room(&after, inventory, lease, now))
}

/// Whether the lease's hosts can be cleaned between it and other leases.
fn is_clean(calendar: &Calendar, lease: &Lease, now: Timestamp) -> bool {
    let window = lease.window.since(now).widened(calendar.cleaning_time());
    lease.reservations.iter().all(|reservation| match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.iter().all(|host| calendar.host_free(*host, &window, None)),
        Allocation::Slots(slots) => {
            slots.keys().all(|host| calendar.host_open_to_slots(*host, &window, None))
        }
        Allocation::FloatingIps(_) => true,
    })
}

/// Whether all slots on the lease's hosts fit there, including slots of other leases.
fn has_room(calendar: &Calendar, inventory: &Inventory, lease: &Lease, now: Timestamp) -> bool {
    let window = lease.window.since(now);
    let shared = lease.reservations.iter().filter_map(|reservation| match &reservation.allocation {
        Allocation::Slots(slots) => Some(slots.keys()),
        Allocation::Hosts(_) | Allocation::FloatingIps(_) => None,
    });
    shared.flatten().all(|id| {
        let used = calendar.peak_use(*id, &window, None);
        inventory.host(*id).is_some_and(|host| used.fits_into(&host.capacity()))
    })
}
