//! Order in which the reservations of a lease are served.

use super::Search;
use crate::terms::ReservationTerms;

/// Sort key of a reservation; less is harder to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hardness {
    /// Whole hosts come first: slots also fit on hosts that are in use anyway.
    kind: Kind,
    /// Number of hosts that could serve it, fewest first. The order of addresses doesn't matter.
    candidates: usize,
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Hosts,
    Slots,
    FloatingIps,
}

/// Positions of the reservations, hardest to serve first. An easy reservation must not take the only host
/// that another one of the same lease could use.
pub(super) fn hardest_first(search: &Search<'_>, asked: &[&ReservationTerms]) -> Vec<usize> {
    if let [_] = asked {
        return vec![0];
    }
    let mut order: Vec<Hardness> = asked
        .iter()
        .enumerate()
        .map(|(position, terms)| {
            let (kind, candidates) = match terms {
                ReservationTerms::Hosts(terms) => (Kind::Hosts, search.free_hosts(terms).0.len()),
                ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => {
                    let rooms = terms.slots().map(|slots| search.rooms(&slots).0.len());
                    (Kind::Slots, rooms.unwrap_or(0))
                }
                ReservationTerms::FloatingIps(_) => (Kind::FloatingIps, 0),
            };
            Hardness { kind, candidates, position }
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|hardness| hardness.position).collect()
}
