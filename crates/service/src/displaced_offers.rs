//! Withdraws offers that other changes invalidate: their capacity is taken, or a host of theirs was removed
//! or no longer matches the request.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::hints::HintRules;
use leases::host::Host;
use leases::ids::HostId;
use leases::lease::{Lease, Reservation};
use leases::offer::displaced_by;
use store::Write;

use crate::hosts::required;
use crate::proposals::forget;
use crate::state::{State, stays};

/// Changed hosts before and after the writes, with the properties of their pools. `None` if the host is
/// removed.
type Changed = BTreeMap<HostId, Option<(Host, Host)>>;

impl State {
    /// Withdraws offers that don't hold after these writes, along with all other offers of their groups.
    pub fn displacing_offers(&self, writes: &[Write], rules: &HintRules, now: Timestamp) -> Vec<Write> {
        if self.proposals.offered().next().is_none() {
            return Vec::new();
        }
        let (mut forgotten, mut over) = (BTreeSet::new(), BTreeSet::new());
        let mut displaced = BTreeSet::new();
        let mut changed = Changed::new();
        for write in writes {
            match write {
                Write::ForgetLease { id, .. } => _ = forgotten.insert(*id),
                Write::Lease { record, .. } if record.lease.over() => _ = over.insert(record.lease.id),
                Write::Lease { record, .. } if record.lease.standing.is_firm() => {
                    let lease = &record.lease;
                    displaced.extend(displaced_by(lease, &self.offered, &self.calendar, &self.inventory));
                }
                Write::Instance { record, .. } if stays(&record.instance) => {
                    let on_host = self.offered.bookings(record.instance.host);
                    let coming = on_host.filter(|(window, _)| now < window.end());
                    displaced.extend(coming.map(|(_, booking)| booking.lease));
                }
                write => self.change_hosts(write, &mut changed),
            }
        }
        let offered = self.proposals.offered().map(|record| &record.lease);
        displaced.extend(offered.filter(|lease| relies_on(lease, rules, &changed)).map(|lease| lease.id));
        // Offers to change a lease end with the lease.
        over.extend(&forgotten);
        let mut groups = self.proposals.changing(&over);
        let of_displaced = displaced.iter().filter_map(|id| self.proposals.get(*id)?.lease.standing.group());
        groups.extend(of_displaced);
        let of_groups = self.proposals.of_groups(&groups);
        of_groups
            .filter(|record| !forgotten.contains(&record.lease.id))
            .map(|record| forget(record))
            .collect()
    }

    /// Adds the hosts that the write changes.
    fn change_hosts(&self, write: &Write, changed: &mut Changed) {
        match write {
            Write::Host { record, .. } => {
                let Some(before) = self.hosts.get(&record.host.id) else { return };
                let [old, new] =
                    [&before.host, &record.host].map(|host| self.free_pool(host.pool).describe(host.clone()));
                changed.insert(record.host.id, Some((old, new)));
            }
            Write::FreePool { record, .. } => {
                let pool = self.free_pool(record.pool.id);
                for own in self.hosts.values().filter(|own| own.host.pool == record.pool.id) {
                    let [old, new] = [pool, &record.pool].map(|pool| pool.describe(own.host.clone()));
                    changed.insert(own.host.id, Some((old, new)));
                }
            }
            Write::RemoveHost { id, .. } => {
                changed.insert(*id, None);
            }
            _ => {}
        }
    }
}

/// Whether an offered lease has a host that was removed, or whose properties used for the choice changed.
fn relies_on(lease: &Lease, rules: &HintRules, changed: &Changed) -> bool {
    let hinted = lease.hints.names(rules);
    let relies = |reservation: &Reservation| {
        let names = &required(reservation) | &hinted;
        reservation.allocation.hosts().iter().filter_map(|host| changed.get(host)).any(
            |change| match change {
                None => true,
                Some((old, new)) => {
                    let differs = |name: &&str| old.property(name) != new.property(name);
                    names.iter().any(differs)
                }
            },
        )
    };
    !changed.is_empty() && lease.reservations.iter().any(relies)
}
