//! Hosts that are closed for new leases: only leases that already had such a host keep it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId};
use leases::standing::Standing;
use store::{LeaseRecord, Snapshot};

use crate::verdict::Verdict;

/// Maximum time until services that share a store learn of each other's changes.
const KNOWN_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// Remembers closed hosts and allocations between checks.
#[derive(Debug, Default)]
pub(super) struct ClosedWatch {
    /// Closed hosts, and since when.
    closed: BTreeMap<HostId, Timestamp>,
    /// Hosts that leases had, or were offered, at the last check.
    had: BTreeSet<(LeaseId, HostId)>,
    /// Offered hosts. Accepting an offer can allocate a host that was closed after the offer was made.
    offered: BTreeSet<(LeaseId, HostId)>,
}

impl ClosedWatch {
    /// Sets the current offers. Must be called before [`Self::follow`].
    pub fn offers<'a>(&mut self, proposals: impl Iterator<Item = &'a LeaseRecord>) {
        let offered = proposals.filter_map(|record| match record.lease.standing {
            // Once an offered change is accepted, the changed lease has what was offered.
            Standing::Offered { of, .. } => Some((of.unwrap_or(record.lease.id), record)),
            _ => None,
        });
        self.offered =
            offered.flat_map(|(id, record)| hosts_of(record).map(move |host| (id, host))).collect();
    }

    /// No lease was given or offered something of a closed host.
    pub fn follow(&mut self, contents: &Snapshot, several: bool, now: Timestamp) -> Verdict {
        let known_within = if several { KNOWN_WITHIN } else { SignedDuration::ZERO };
        let mut has = self.offered.clone();
        // Failed leases included: when one ends, it counts as having its hosts again.
        for record in &contents.leases {
            has.extend(hosts_of(record).map(|host| (record.lease.id, host)));
        }
        for (lease, host) in has.difference(&self.had) {
            let known =
                self.closed.get(host).is_some_and(|closed| now.duration_since(*closed) >= known_within);
            if known {
                return Err(format!("lease {lease} was given host {host}, which is closed for new leases"));
            }
        }
        let closed =
            contents.hosts.iter().filter(|record| !record.host.reservable).map(|record| record.host.id);
        self.closed = closed.map(|host| (host, self.closed.get(&host).copied().unwrap_or(now))).collect();
        self.had = has;
        Ok(())
    }
}

fn hosts_of(record: &LeaseRecord) -> impl Iterator<Item = HostId> {
    record.lease.reservations.iter().flat_map(|own| own.allocation.hosts())
}

#[cfg(test)]
mod tests {
    use super::*;

    use leases::host::Host;
    use leases::ids::OffersId;
    use leases::offer::OfferKind;
    use leases::terms::{HostsTerms, ReservationTerms};
    use store::{HostRecord, Version};

    use crate::testing::{at, lease};

    fn contents(closed: bool, leases: &[u128]) -> Snapshot {
        let at = at(0);
        let mut contents = Snapshot::default();
        let host = Host { reservable: !closed, ..Host::new(HostId(1), "h", 1, 1, 1) };
        contents.hosts.push(HostRecord { host, version: Version::FIRST, created_at: at, updated_at: None });
        for id in leases {
            let asked = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
            let lease = lease(*id, asked, 1, (0, 60));
            contents.leases.push(LeaseRecord::new(lease, BTreeMap::new(), at));
        }
        contents
    }

    #[test]
    fn a_lease_that_is_given_a_closed_host_is_noticed_and_one_that_has_it_is_not() {
        let mut watch = ClosedWatch::default();
        assert_eq!(watch.follow(&contents(false, &[1]), false, at(0)), Ok(()));
        assert_eq!(watch.follow(&contents(true, &[1]), false, at(1)), Ok(()));
        assert_eq!(watch.follow(&contents(true, &[1, 2]), true, at(2)), Ok(()), "the other did not know yet");
        assert!(watch.follow(&contents(true, &[1, 2, 3]), true, at(3)).is_err());
        assert!(watch.follow(&contents(true, &[1, 3]), false, at(1)).is_err());
        assert_eq!(watch.follow(&contents(false, &[]), false, at(4)), Ok(()));
        assert_eq!(watch.follow(&contents(false, &[4]), false, at(5)), Ok(()), "it is open again");
    }
    #[test]
    fn a_lease_has_the_host_that_it_was_offered_before_it_was_closed() {
        let offers = |ids: &[u128], of: Option<u128>| -> Vec<LeaseRecord> {
            let standing = Standing::Offered {
                group: OffersId(1),
                until: at(9),
                kind: OfferKind::LaterStart,
                of: of.map(LeaseId),
            };
            let offered = contents(false, ids).leases.into_iter();
            offered
                .map(|record| LeaseRecord { lease: record.lease.clone().standing(standing), ..record })
                .collect()
        };
        let mut watch = ClosedWatch::default();
        watch.offers(offers(&[1], None).iter().chain(&offers(&[2], Some(3))));
        assert_eq!(watch.follow(&contents(false, &[]), false, at(0)), Ok(()));
        assert_eq!(watch.follow(&contents(true, &[]), false, at(1)), Ok(()));
        watch.offers([].iter());
        assert_eq!(watch.follow(&contents(true, &[1, 3]), false, at(2)), Ok(()), "both were accepted");
        watch.offers(offers(&[4], None).iter());
        assert!(watch.follow(&contents(true, &[1, 3]), false, at(3)).is_err(), "offered after it was closed");
    }
}
