//! Offers: alternatives to a refused request (CLS-10), and the capacity held for them.
//!
//! Offers are made by [`crate::admission::Admission::offers`] and
//! [`crate::admission::Admission::offers_of_change`]. The offers of one refusal are alternatives: the held
//! capacity is enough for any one of them, not for all together.
//!
//! An offer that hasn't been accepted has the lowest precedence. A new lease, an extension, or an instance
//! started on such a host displaces it ([`displaced_by`]).

mod held;
pub(crate) mod kind;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

pub use self::held::{Alternatives, HeldOffers, YIELDS_AFTER, beyond_limit, find_alternatives};
pub use self::kind::OfferKind;
use crate::calendar::{Booking, Calendar};
use crate::host::Inventory;
use crate::ids::{FloatingIpId, HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::terms::ReservationTerms;
use crate::window::Window;

/// Capacity to hold in a window: allocations, each with terms of the same type.
pub type Kept = (Window, Vec<(ReservationTerms, Allocation)>);

/// A resource that a lease can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Host(HostId),
    /// Slots on a host.
    Slots(HostId),
    FloatingIp(FloatingIpId),
}

/// Windows and amounts by resource.
type Takings = BTreeMap<Subject, Vec<(Window, u32)>>;

/// Capacity to hold so that any one of the `offered` leases can be made. If they would replace `own`,
/// excludes what `own` has already. Windows of the same host don't overlap.
///
/// A lease that reserves instances must have no other reservation: such offers are made alone
/// ([`crate::admission::Admission::offers`]).
pub fn kept_free(offered: &[&Lease], own: Option<&Lease>) -> Vec<Kept> {
    let mut wanted = Takings::new();
    for lease in offered {
        take(&mut wanted, lease);
    }
    let mut had = Takings::new();
    if let Some(own) = own.filter(|own| own.keeps_resources()) {
        take(&mut had, own);
    }
    let mut by_window: BTreeMap<Window, BTreeMap<Subject, u32>> = BTreeMap::new();
    for (subject, wanted) in &wanted {
        let had = had.get(subject).map(Vec::as_slice).unwrap_or_default();
        for (window, amount) in beyond(wanted, had) {
            by_window.entry(window).or_default().insert(*subject, amount);
        }
    }
    by_window.into_iter().map(|(window, kept)| (window, reservations(offered, &kept))).collect()
}

/// Offers displaced by a lease: the leases that hold the bookings in `offered` that overlap its allocation.
/// `calendar` contains the bookings of confirmed leases. Slots that still fit once the lease has its own stay
/// reserved.
pub fn displaced_by(
    lease: &Lease,
    offered: &Calendar,
    calendar: &Calendar,
    inventory: &Inventory,
) -> BTreeSet<LeaseId> {
    let mut displaced = BTreeSet::new();
    if !lease.keeps_resources() {
        return displaced;
    }
    let cleaned = lease.window.widened(calendar.cleaning_time());
    let on_host = |host, counts: &dyn Fn(&Booking) -> bool| -> Vec<LeaseId> {
        let bookings = offered.bookings(host);
        let taken = bookings.filter(|(window, booking)| window.overlaps(&cleaned) && counts(booking));
        taken.map(|(_, booking)| booking.lease).collect()
    };
    for reservation in &lease.reservations {
        match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                displaced.extend(hosts.iter().flat_map(|host| on_host(*host, &|_| true)));
            }
            Allocation::Slots(slots) => {
                let size = reservation.terms.slots().map(|terms| terms.size).unwrap_or_default();
                for (&host, &count) in slots {
                    let mut used = calendar.peak_use(host, &lease.window, Some(lease.id));
                    used.add(1, &offered.peak_use(host, &lease.window, None));
                    let room = inventory.host(host).map_or(0, |host| host.capacity().slots(&used, &size));
                    displaced.extend(on_host(host, &|booking| booking.used.is_none() || room < count));
                }
            }
            Allocation::FloatingIps(ips) => {
                let bookings = ips.iter().flat_map(|ip| offered.floating_ip_bookings(*ip));
                let taken = bookings.filter(|(window, _)| window.overlaps(&lease.window));
                displaced.extend(taken.map(|(_, booking)| booking.lease));
            }
        }
    }
    displaced
}

fn take(takings: &mut Takings, lease: &Lease) {
    for reservation in &lease.reservations {
        let mut take = |subject, amount| takings.entry(subject).or_default().push((lease.window, amount));
        match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                for host in hosts {
                    take(Subject::Host(*host), 1);
                }
            }
            Allocation::Slots(slots) => {
                for (host, count) in slots {
                    take(Subject::Slots(*host), *count);
                }
            }
            Allocation::FloatingIps(ips) => {
                for ip in ips {
                    take(Subject::FloatingIp(*ip), 1);
                }
            }
        }
    }
}

/// Times at which `wanted` exceeds `had`, and by how much. Overlapping entries are alternatives, so the
/// largest counts, not the sum.
fn beyond(wanted: &[(Window, u32)], had: &[(Window, u32)]) -> Vec<(Window, u32)> {
    let edges = wanted.iter().chain(had).flat_map(|(window, _)| [window.start(), window.end()]);
    let edges: BTreeSet<Timestamp> = edges.collect();
    let edges: Vec<Timestamp> = edges.into_iter().collect();
    let most = |takings: &[(Window, u32)], at| {
        let amounts = takings.iter().filter(|(window, _)| window.contains(at)).map(|(_, amount)| *amount);
        amounts.max().unwrap_or(0)
    };
    let mut beyond: Vec<(Window, u32)> = Vec::new();
    for edge in edges.windows(2) {
        let amount = most(wanted, edge[0]).saturating_sub(most(had, edge[0]));
        let Ok(window) = Window::new(edge[0], edge[1]) else { continue };
        match beyond.last_mut() {
            Some((last, same)) if *same == amount && last.end() == window.start() => {
                *last = Window::new(last.start(), window.end()).unwrap_or(*last);
            }
            _ => beyond.push((window, amount)),
        }
    }
    beyond.retain(|(_, amount)| *amount > 0);
    beyond
}

/// Converts the amounts to reservations. All slots of a group of offers have the same size.
fn reservations(offered: &[&Lease], kept: &BTreeMap<Subject, u32>) -> Vec<(ReservationTerms, Allocation)> {
    let (mut hosts, mut slots, mut ips) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    for (subject, amount) in kept {
        match subject {
            Subject::Host(host) => _ = hosts.insert(*host),
            Subject::Slots(host) => _ = slots.insert(*host, *amount),
            Subject::FloatingIp(ip) => _ = ips.insert(*ip),
        }
    }
    let all = [
        (!hosts.is_empty()).then_some(Allocation::Hosts(hosts)),
        (!slots.is_empty()).then_some(Allocation::Slots(slots)),
        (!ips.is_empty()).then_some(Allocation::FloatingIps(ips)),
    ];
    let terms = |allocation: &Allocation| {
        let mut reservations = offered.iter().flat_map(|lease| &lease.reservations);
        reservations.find(|reservation| reservation.allocation.is_like(allocation)).map(|r| r.terms.clone())
    };
    all.into_iter().flatten().filter_map(|allocation| Some((terms(&allocation)?, allocation))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReservationId;
    use crate::lease::NewLease;
    use crate::terms::{Affinity, InstanceSize, InstancesTerms, Terms};
    use crate::testing::{at, lease, new_lease, window};
    use proptest::prelude::*;

    fn hosts_kept(kept: &[Kept]) -> Vec<(Window, Vec<u64>)> {
        let hosts = |all: &Vec<(ReservationTerms, Allocation)>| {
            all.iter().flat_map(|(_, allocation)| allocation.hosts()).map(|host| host.0).collect()
        };
        kept.iter().map(|(window, all)| (*window, hosts(all))).collect()
    }

    #[test]
    fn alternatives_share_what_is_kept_free() {
        let (short, long) = (lease(1, window(0, 60), &[1, 2]), lease(2, window(30, 90), &[2, 3]));
        let kept = kept_free(&[&short, &long], None);
        assert_eq!(
            hosts_kept(&kept),
            [(window(0, 60), vec![1]), (window(0, 90), vec![2]), (window(30, 90), vec![3])]
        );
    }

    #[test]
    fn what_a_lease_has_already_is_not_kept_a_second_time() {
        let (now, then) = (lease(1, window(0, 60), &[1, 2]), lease(1, window(0, 90), &[1, 2, 3]));
        let kept = kept_free(&[&then], Some(&now));
        assert_eq!(hosts_kept(&kept), [(window(0, 90), vec![3]), (window(60, 90), vec![1, 2])]);
    }

    fn slots(count: u32, window: Window) -> Lease {
        let size = InstanceSize::new(1, 1, 0).expect("a size");
        let amount = count.try_into().expect("some");
        let asked = InstancesTerms {
            size,
            amount,
            affinity: Affinity::Any,
            requirement: crate::requirement::Requirement::NONE,
            survives: None,
            extras: None,
        };
        let terms = Terms::new(window, None, vec![ReservationTerms::Instances(asked)]).expect("terms");
        let new: NewLease = new_lease(1, 1);
        Lease::new(new, terms, vec![Allocation::Slots([(HostId(1), count)].into())], None)
    }

    #[test]
    fn of_slots_the_most_that_any_offer_needs_is_kept() {
        let (few, many) = (slots(2, window(0, 90)), slots(5, window(30, 60)));
        let kept = kept_free(&[&few, &many], Some(&slots(1, window(0, 60))));
        let amounts: Vec<_> = kept.iter().map(|(window, all)| (*window, all[0].1.amount())).collect();
        assert_eq!(amounts, [(window(0, 30), 1), (window(30, 60), 4), (window(60, 90), 2)]);
    }

    proptest! {
        /// Whichever offer is accepted, the held capacity is enough, and no host is held twice at the same
        /// time.
        #[test]
        fn any_offer_fits_into_what_is_kept_for_all(
            offers in prop::collection::vec((0_i64..90, 1_i64..60, prop::collection::btree_set(1_u64..6, 1..4)), 1..5),
        ) {
            let offered: Vec<Lease> = offers
                .iter()
                .map(|(start, length, hosts)| {
                    lease(1, window(*start, start + length), &hosts.iter().copied().collect::<Vec<_>>())
                })
                .collect();
            let kept = kept_free(&offered.iter().collect::<Vec<_>>(), None);
            let mut calendar = Calendar::default();
            for (number, (window, all)) in (100..).zip(kept) {
                let mut holder = lease(number, window, &[]);
                let template = holder.reservations[0].clone();
                holder.reservations = all
                    .into_iter()
                    .map(|(terms, allocation)| crate::lease::Reservation {
                        id: ReservationId(number), terms, allocation, ..template.clone()
                    })
                    .collect();
                prop_assert!(calendar.put(&holder, at(0)).is_ok(), "kept twice");
            }
            for offer in &offered {
                for host in offer.reservations[0].allocation.hosts() {
                    prop_assert!(calendar.free_gaps(host, &offer.window, None).is_empty(), "not kept");
                }
            }
        }
    }
}
