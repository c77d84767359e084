//! Leases that have not started make room for others (CLS-10).

use proptest::prelude::*;

use super::*;

impl Cloud {
    /// A lease on these hosts, even if others fit better.
    fn pinned(&mut self, number: u128, window: Window, on: &[u64]) -> Lease {
        let lease = crate::testing::lease(number, window, on);
        self.calendar.put(&lease, at(0)).expect("free");
        lease
    }

    fn extended(
        &self,
        lease: &Lease,
        end: i64,
        others: &[&Lease],
        settled: i64,
    ) -> Option<(Lease, Vec<Lease>)> {
        let changes = Changes { end: Some(at(end)), ..Changes::default() };
        let admission = self.admission(0);
        let lack = admission.update(lease, &changes).expect_err("there is room without it");
        let decide = |admission: &Admission<'_>| admission.update(lease, &changes);
        let replanned = admission.replan(
            others.iter().copied(),
            at(settled),
            (&admission.wanted_by(lease, &changes).expect("a change"), &lack),
            decide,
            |updated| &updated.lease,
        )?;
        Some((replanned.decided.lease, replanned.moved))
    }
}

fn for_new(terms: &Terms) -> Wanted {
    Wanted::for_new(&owner().project, terms)
}

fn hosts_of(lease: &Lease) -> Vec<u64> {
    lease.reservations[0].allocation.hosts().iter().map(|host| host.0).collect()
}

fn active(lease: &mut Lease) {
    lease.status = LeaseStatus::Active;
    lease.reservations[0].status = ReservationStatus::Active;
}

#[test]
fn cls_10_d_a_running_lease_is_extended_by_moving_one_that_waits() {
    let mut cloud = Cloud::new(2);
    let mut running = cloud.pinned(1, window(0, 60), &[1]);
    active(&mut running);
    let waiting = cloud.pinned(2, window(60, 120), &[1]);
    let (extended, moved) = cloud.extended(&running, 90, &[&waiting], 30).expect("room");
    assert_eq!((extended.window, hosts_of(&extended)), (window(0, 90), vec![1]));
    assert_eq!((moved.len(), hosts_of(&moved[0]), moved[0].window), (1, vec![2], window(60, 120)));
}

#[test]
fn cls_10_d_no_lease_is_moved_that_has_started_or_is_about_to_or_has_nowhere_to_go() {
    let mut cloud = Cloud::new(2);
    let mut running = cloud.pinned(1, window(0, 60), &[1]);
    active(&mut running);
    let mut waiting = cloud.pinned(2, window(60, 120), &[1]);
    assert_eq!(cloud.extended(&running, 90, &[&waiting], 61), None, "it is about to start");
    active(&mut waiting);
    assert_eq!(cloud.extended(&running, 90, &[&waiting], 30), None, "it has started");
    waiting.status = LeaseStatus::Pending;
    cloud.pinned(3, window(60, 120), &[2]);
    assert_eq!(cloud.extended(&running, 90, &[&waiting], 30), None, "the other host is taken");
}

#[test]
fn cls_10_d_a_lease_that_is_moved_keeps_what_does_not_stand_in_the_way() {
    let mut cloud = Cloud::new(4);
    let mut running = cloud.pinned(1, window(0, 60), &[2]);
    active(&mut running);
    let far = cloud.pinned(2, window(60, 120), &[4]);
    let waiting = cloud.pinned(3, window(60, 120), &[1, 2]);
    let (_, moved) = cloud.extended(&running, 90, &[&waiting, &far], 30).expect("room");
    let moved: Vec<_> = moved.iter().map(|lease| (lease.id, hosts_of(lease))).collect();
    assert_eq!(moved, [(LeaseId(3), vec![1, 3])]);
}

#[test]
fn cls_10_d_cleaning_time_is_left_between_what_is_moved() {
    let mut cloud = Cloud::new(2);
    cloud.calendar = Calendar::new(minutes(10));
    let mut running = cloud.pinned(1, window(0, 60), &[1]);
    active(&mut running);
    let waiting = cloud.pinned(2, window(100, 120), &[1]);
    let next = cloud.pinned(3, window(60, 95), &[2]);
    assert_eq!(cloud.extended(&running, 95, &[&waiting], 30), None, "host 2 is not clean by then");
    assert_eq!(
        cloud.extended(&running, 95, &[&waiting, &next], 30),
        None,
        "nor is it if the other one moves"
    );
}

#[test]
fn cls_10_d_a_new_lease_is_made_room_for_as_well() {
    let mut cloud = Cloud::new(2);
    let first = cloud.pinned(1, window(30, 60), &[1]);
    let second = cloud.pinned(2, window(60, 90), &[2]);
    let wanted = Terms::new(window(30, 90), None, vec![hosts(1, 1)]).expect("terms");
    let admission = cloud.admission(0);
    let lack = admission.grant(&owner().project, &wanted).expect_err("too few");
    let decide = |admission: &Admission<'_>| {
        let grant = admission.grant(&owner().project, &wanted)?;
        Ok(Lease::new(new_lease(9, 1), grant.terms, grant.allocations, None))
    };
    let replanned =
        admission.replan([&first, &second], at(20), (&for_new(&wanted), &lack), decide, |lease| lease);
    let replanned = replanned.expect("room");
    let mut all = replanned.moved.clone();
    all.push(replanned.decided);
    assert_eq!(replanned.moved.len(), 1);
    let stays = [first, second].into_iter().filter(|lease| lease.id != replanned.moved[0].id);
    all.extend(stays);
    Calendar::default().with_leases(&all, at(0)).expect("nobody has a host twice");
}

#[test]
fn cls_10_d_that_there_are_too_few_hosts_is_known_without_trying() {
    let mut cloud = Cloud::new(3);
    let waiting = [cloud.pinned(1, window(30, 60), &[1]), cloud.pinned(2, window(60, 90), &[2])];
    let others: Vec<&Lease> = waiting.iter().collect();
    let too_few = |number: u32, settled: i64| {
        let lack = cloud.decide(window(0, 90), vec![hosts(number, number)]).expect_err("too few");
        cloud.admission(0).too_few_hosts(&others, at(settled), &window(0, 90), &lack)
    };
    assert!(!too_few(2, 0), "one of them at a time");
    assert!(too_few(3, 0));
    assert!(too_few(3, 90), "the same if they may not be moved");
}

/// Leases: start, length, and number of hosts, chosen among those free then.
fn crowds() -> impl Strategy<Value = Vec<(i64, i64, usize)>> {
    prop::collection::vec((0_i64..8, 1_i64..5, 1_usize..4), 0..9)
}

/// Start, length and number of hosts of a request that comes after a crowd.
fn asked_for() -> impl Strategy<Value = (i64, i64, u32)> {
    (0_i64..8, 1_i64..6, 1_u32..6)
}

proptest! {
    #[test]
    fn cls_10_d_whoever_is_told_that_there_are_too_few_hosts_would_find_none(
        leases in crowds(),
        (start, length, count) in asked_for(),
        settled in 0_i64..4,
    ) {
        let mut cloud = Cloud::new(5);
        let mut others = Vec::new();
        for (number, (start, length, count)) in (1..).zip(leases) {
            let window = window(10 * start, 10 * (start + length));
            let free = (1..=5).filter(|host| cloud.calendar.host_free(HostId(*host), &window, None));
            let free: Vec<u64> = free.take(count).collect();
            if !free.is_empty() {
                others.push(cloud.pinned(number, window, &free));
            }
        }
        let terms = Terms::new(window(10 * start, 10 * (start + length)), None, vec![hosts(count, count)]);
        let terms = terms.expect("terms");
        let admission = cloud.admission(0);
        if let Err(lack) = admission.grant(&owner().project, &terms) {
            let decide = |admission: &Admission<'_>| {
                let grant = admission.grant(&owner().project, &terms)?;
                Ok(Lease::new(new_lease(99, 1), grant.terms, grant.allocations, None))
            };
            let (others, settled): (Vec<&Lease>, _) = (others.iter().collect(), at(10 * settled));
            if admission.too_few_hosts(&others, settled, &terms.window(), &lack) {
                prop_assert_eq!(admission.replan_without(others, settled, decide, |lease| lease), None);
            }
        }
    }
}
