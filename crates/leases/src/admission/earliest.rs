//! As soon as possible: when a best-effort lease can start, and whether one that waits can start sooner
//! (spec CLS-03; the hosts that it then has are its own from the moment of the answer).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{Admission, Refusal, Search, order};
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::project::ProjectId;
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::window::{Window, later};

impl Admission<'_> {
    /// What a new lease of these terms would be given, one allocation per reservation; and its terms with the
    /// window that it then has, which is another one if it is to start as soon as it can.
    pub fn grant(&self, project: &ProjectId, terms: &Terms) -> Result<(Terms, Vec<Allocation>), Refusal> {
        if let Some(deadline) = terms.lease_type.deadline() {
            if deadline <= self.now {
                return Err(Refusal::DeadlineInPast);
            }
            if deadline <= terms.window().start() {
                return Err(Refusal::StartAfterDeadline);
            }
        }
        let LeaseType::BestEffort { deadline } = terms.lease_type else {
            return Ok((terms.clone(), self.decide(project, terms)?));
        };
        self.rules.enforcement.check_create(project, &terms.window())?;
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        let wish = Wish {
            asked: &asked,
            from: terms.window().start().max(self.now),
            before: deadline,
            length: terms.window().length(),
            own: None,
        };
        let (start, given) = self.earliest(&wish)?;
        Ok((terms.clone().starting(start), given))
    }

    /// The lease as it would be if it started sooner; or later, but whole, if it lacks something. None if that
    /// cannot be, or if it does not wait for hosts at all.
    pub fn sooner(&self, lease: &Lease) -> Option<Lease> {
        let LeaseType::BestEffort { deadline } = lease.lease_type else { return None };
        if lease.status != LeaseStatus::Pending || lease.window.start() <= self.now {
            return None;
        }
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        let before = if lease.degraded() { deadline } else { lease.window.start() };
        let wish = Wish {
            asked: &asked,
            from: self.now,
            before,
            length: lease.window.length(),
            own: Some(lease.id),
        };
        let (start, given) = self.earliest(&wish).ok()?;
        Some(lease.moved_to(start, given))
    }

    /// The first instant at which all that is asked for can be had, and what is given then.
    fn earliest(&self, wish: &Wish<'_>) -> Result<(Timestamp, Vec<Allocation>), Refusal> {
        let mut start = wish.from;
        let mut first_refusal = None;
        let mut changes: Option<BTreeSet<Timestamp>> = None;
        loop {
            let refusal = match self.not_before(wish, start) {
                Some(possible) => match self.at(wish, possible) {
                    Ok(given) => return Ok((possible, given)),
                    Err(refusal) => {
                        start = possible;
                        Some(refusal)
                    }
                },
                None => None,
            };
            // What stands in the way at once is more useful to know than what does at the last attempt.
            let hopeless = refusal.is_none();
            if first_refusal.is_none() {
                first_refusal = refusal.or_else(|| self.at(wish, wish.from).err());
            }
            let changes = changes.get_or_insert_with(|| self.given_back(wish));
            match changes.range(later(start, SignedDuration::from_nanos(1))..).next() {
                Some(next) if !hopeless => start = *next,
                _ => return Err(first_refusal.unwrap_or(Refusal::DeadlineInPast)),
            }
        }
    }

    /// What would be given from that instant on.
    fn at(&self, wish: &Wish<'_>, start: Timestamp) -> Result<Vec<Allocation>, Refusal> {
        let mut search = Search::new(*self, Window::starting(start, wish.length), wish.own).avoiding_guests();
        let mut given: Vec<Option<Allocation>> = vec![None; wish.asked.len()];
        for position in order::hardest_first(&search, wish.asked) {
            given[position] = Some(search.give(position, wish.asked[position])?);
        }
        Ok(given.into_iter().flatten().collect())
    }

    /// An instant from `start` on before which no reservation of hosts can be served by itself; none if there is
    /// one that cannot be served in time at all. Without this, each instant at which anything changes would have to
    /// be tried.
    fn not_before(&self, wish: &Wish<'_>, start: Timestamp) -> Option<Timestamp> {
        let mut possible = start;
        for asked in wish.asked {
            let ReservationTerms::Hosts(asked) = asked else { continue };
            let within = Window::new(start, later(wish.before, wish.length)).ok()?;
            let hosts = self.usable(asked);
            let slot =
                self.calendar.earliest_slot(&hosts, asked.min() as usize, wish.length, &within, wish.own)?;
            possible = possible.max(slot.window.start());
        }
        (possible < wish.before).then_some(possible)
    }

    /// Hosts that the reservation could have if nobody else had them.
    fn usable(&self, asked: &HostsTerms) -> Vec<HostId> {
        let search = Search::new(*self, Window::ALWAYS, None).avoiding_guests();
        search.matching(self.inventory.hosts(), asked).0.into_iter().map(|host| host.id).collect()
    }

    /// The instants before the deadline at which something is given back.
    fn given_back(&self, wish: &Wish<'_>) -> BTreeSet<Timestamp> {
        let hosts = self.inventory.hosts().flat_map(|host| self.calendar.bookings(host.id));
        let addresses =
            self.inventory.floating_ips().flat_map(|ip| self.calendar.floating_ip_bookings(ip.id));
        let cleaned = hosts.map(|(window, _)| later(window.end(), self.calendar.cleaning_time()));
        let ends = cleaned.chain(addresses.map(|(window, _)| window.end()));
        ends.filter(|end| wish.from < *end && *end < wish.before).collect()
    }
}

/// What is to be had as soon as possible.
struct Wish<'a> {
    asked: &'a [&'a ReservationTerms],
    /// Not before this instant.
    from: Timestamp,
    /// It has to begin before this one.
    before: Timestamp,
    /// For how long.
    length: SignedDuration,
    /// The lease whose bookings do not count.
    own: Option<LeaseId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Rules;
    use crate::calendar::Calendar;
    use crate::filters::HostFilter;
    use crate::host::Inventory;
    use crate::lease::NewLease;
    use crate::testing::{at, inventory, lease, minutes, new_lease, owner, window};

    /// What there is and what is taken.
    struct Cloud {
        inventory: Inventory,
        calendar: Calendar,
        occupied: BTreeSet<HostId>,
        rules: Rules,
    }

    impl Cloud {
        /// So many hosts, with these leases, and some cleaning after each.
        fn new(hosts: u64, cleaning: i64, leases: &[Lease]) -> Self {
            let calendar = Calendar::new(minutes(cleaning)).with_leases(leases, at(0)).expect("free");
            Self { inventory: inventory(hosts), calendar, occupied: BTreeSet::new(), rules: Rules::default() }
        }

        fn admission(&self, now: i64) -> Admission<'_> {
            Admission {
                calendar: &self.calendar,
                inventory: &self.inventory,
                rules: &self.rules,
                occupied: Some(&self.occupied),
                now: at(now),
            }
        }

        /// From when the hosts can be had for so many minutes, and which.
        fn grant(&self, hosts: u32, length: i64, deadline: i64) -> Result<(Window, Vec<u64>), Refusal> {
            let terms = best_effort(hosts, window(0, length), deadline);
            let (terms, given) = self.admission(0).grant(&owner().project, &terms)?;
            Ok((terms.window(), given[0].hosts().iter().map(|host| host.0).collect()))
        }
    }

    fn best_effort(hosts: u32, window: Window, deadline: i64) -> Terms {
        let asked = HostsTerms::new(hosts, hosts).expect("a range");
        let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(asked)]).expect("terms");
        terms.of_type(LeaseType::BestEffort { deadline: at(deadline) })
    }

    #[test]
    fn cls_03_a_a_best_effort_lease_has_a_whole_plan_or_is_refused() {
        let taken = [lease(1, window(0, 30), &[1, 2]), lease(2, window(0, 50), &[3])];
        let cloud = Cloud::new(3, 0, &taken);
        assert_eq!(cloud.grant(2, 60, 100), Ok((window(30, 90), vec![1, 2])));
        assert_eq!(cloud.grant(3, 60, 100), Ok((window(50, 110), vec![1, 2, 3])));
        let Err(Refusal::NotEnough { needed: 3, found: 0, .. }) = cloud.grant(3, 60, 50) else {
            panic!("at the deadline is too late");
        };
        assert!(cloud.grant(4, 60, 100).is_err());
    }

    #[test]
    fn cls_03_j_it_waits_for_hosts_that_become_free_with_their_cleaning_time() {
        let cloud = Cloud::new(2, 5, &[lease(1, window(0, 30), &[1, 2])]);
        assert_eq!(cloud.grant(1, 60, 100), Ok((window(35, 95), vec![1])));
        let between = Cloud::new(1, 0, &[lease(1, window(0, 10), &[1]), lease(2, window(40, 60), &[1])]);
        assert_eq!(between.grant(1, 30, 100), Ok((window(10, 40), vec![1])));
        assert_eq!(between.grant(1, 31, 100), Ok((window(60, 91), vec![1])));
    }

    #[test]
    fn cls_02_b_guests_of_others_keep_a_lease_from_starting_at_once() {
        let mut cloud = Cloud::new(3, 0, &[]);
        cloud.occupied.extend([HostId(1), HostId(3)]);
        assert_eq!(cloud.grant(1, 60, 100), Ok((window(0, 60), vec![2])));
        let terms = best_effort(2, window(0, 60), 100);
        let immediate = terms.clone().of_type(LeaseType::Immediate { deadline: at(1) });
        for terms in [&terms, &immediate] {
            let refused = cloud.admission(0).grant(&owner().project, terms).expect_err("one is left");
            let Refusal::NotEnough { resource: crate::admission::Resource::Hosts(report), .. } = refused
            else {
                panic!("{refused:?}");
            };
            assert_eq!(report.removed.get(&HostFilter::Guests), Some(&2));
        }
        let scheduled = terms.of_type(LeaseType::Schedule);
        assert!(cloud.admission(0).grant(&owner().project, &scheduled).is_ok(), "they may be gone by then");
    }

    #[test]
    fn it_does_not_start_before_it_is_wanted_nor_after_it_has_timed_out() {
        let cloud = Cloud::new(1, 0, &[]);
        let terms = best_effort(1, window(20, 50), 100);
        let granted = cloud.admission(5).grant(&owner().project, &terms).map(|(terms, _)| terms.window());
        assert_eq!(granted, Ok(window(20, 50)));
        let granted = cloud.admission(40).grant(&owner().project, &terms).map(|(terms, _)| terms.window());
        assert_eq!(granted, Ok(window(40, 70)), "and it lasts as long");
        let refused = cloud.admission(100).grant(&owner().project, &terms);
        assert_eq!(refused, Err(Refusal::DeadlineInPast));
        let too_late = best_effort(1, window(100, 130), 100);
        let refused = cloud.admission(5).grant(&owner().project, &too_late);
        assert_eq!(refused, Err(Refusal::StartAfterDeadline));
    }

    #[test]
    fn several_reservations_start_together() {
        let taken = [lease(1, window(0, 30), &[1]), lease(2, window(20, 80), &[2, 3])];
        let cloud = Cloud::new(3, 0, &taken);
        let one = || ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
        let terms = Terms::new(window(0, 15), None, vec![one(), one()]).expect("terms");
        let terms = terms.of_type(LeaseType::BestEffort { deadline: at(200) });
        let (now, given) = cloud.admission(0).grant(&owner().project, &terms).expect("two are free now");
        assert_eq!((now.window(), given.len()), (window(0, 15), 2));
        let later = cloud.admission(10).grant(&owner().project, &terms).expect("later");
        assert_eq!(later.0.window(), window(80, 95));
    }

    /// A lease that waits, entered in the calendar.
    fn waiting(cloud: &mut Cloud, hosts: u32, length: i64, deadline: i64) -> Lease {
        let terms = best_effort(hosts, window(0, length), deadline);
        let (terms, given) = cloud.admission(0).grant(&owner().project, &terms).expect("enough");
        let new = NewLease { name: "waiting".to_owned(), ..new_lease(9, 1) };
        let lease = Lease::new(new, terms, given, None);
        cloud.calendar.put(&lease, at(0)).expect("free");
        lease
    }

    #[test]
    fn a_lease_that_waits_moves_to_an_earlier_time_that_becomes_free() {
        let in_the_way = lease(1, window(0, 90), &[1, 2]);
        let mut cloud = Cloud::new(2, 0, std::slice::from_ref(&in_the_way));
        let waits = waiting(&mut cloud, 1, 60, 200);
        assert_eq!(waits.window, window(90, 150));
        assert_eq!(cloud.admission(10).sooner(&waits), None, "nothing has changed");
        cloud.calendar.put(&in_the_way.deleted(at(40)), at(40)).expect("shorter");
        let moved = cloud.admission(40).sooner(&waits).expect("it can start now");
        assert_eq!((moved.window, moved.status), (window(40, 100), LeaseStatus::Pending));
        let started = Lease { status: LeaseStatus::Starting, ..waits };
        assert_eq!(cloud.admission(40).sooner(&started), None);
    }

    #[test]
    fn a_lease_that_waits_and_lost_a_host_moves_to_when_it_is_whole() {
        let mut cloud = Cloud::new(2, 0, &[lease(1, window(0, 30), &[1]), lease(2, window(0, 70), &[2])]);
        let mut waits = waiting(&mut cloud, 1, 60, 200);
        assert_eq!(waits.window, window(30, 90));
        waits.reservations[0].missing_resources = true;
        cloud.inventory.remove_host(HostId(1));
        let moved = cloud.admission(10).sooner(&waits).expect("the other host");
        assert_eq!((moved.window, moved.degraded()), (window(70, 130), false));
    }
}
