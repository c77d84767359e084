//! In which order the reservations of a lease are given what they ask for.

use super::Search;
use crate::terms::ReservationTerms;

/// How hard a reservation is to serve; less is harder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hardness {
    /// Whole hosts first: slots find room on hosts that are in use anyway.
    kind: Kind,
    /// How many hosts could serve it; the choosy go first.
    candidates: usize,
    /// Settles ties.
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Hosts,
    Slots,
    FloatingIps,
}

/// Positions of the reservations, the hardest to serve first: what takes anything must not take the only host
/// that another reservation of the same lease could have.
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
                ReservationTerms::FloatingIps(terms) => (Kind::FloatingIps, terms.required().len()),
            };
            Hardness { kind, candidates, position }
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|hardness| hardness.position).collect()
}
