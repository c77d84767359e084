//! Offers that do not hold once something else is committed: what is reserved for them is taken, or a host that they are
//! of is gone, or is not as it was asked for any more.

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

/// Hosts that become different, each with what its pool says of it, before and after; none if it is removed.
type Changed = BTreeMap<HostId, Option<(Host, Host)>>;

impl State {
    /// Withdraws the offers that do not hold any more after these writes, with all that were made with them.
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
        // Nothing can be changed of a lease that is over.
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

    /// Notes the hosts that the write makes different.
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

/// Whether what is offered has a host of these that is gone, or that a property of is different by which it was chosen.
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
