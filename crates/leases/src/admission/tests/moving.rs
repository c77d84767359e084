//! Chains of moves make room for whole hosts (CLS-10).

use super::*;
use crate::hints::{Hints, Location};
use crate::hunt::Hunt;
use crate::lease_type::LeaseType;
use crate::work::Budget;

/// Hosts and their leases. The first hosts have a property.
struct Fleet {
    cloud: Cloud,
    leases: Vec<Lease>,
}

impl Fleet {
    fn new(hosts: u64, special: u64) -> Self {
        let mut cloud = Cloud::new(hosts);
        for id in 1..=special {
            let host = cloud.inventory.host_mut(HostId(id)).expect("there");
            host.capabilities.insert("gpu".to_owned(), "a".to_owned());
        }
        Self { cloud, leases: Vec::new() }
    }

    /// Adds a lease on these hosts that has not started.
    fn with(mut self, window: Window, asked: ReservationTerms, on: &[u64]) -> Self {
        let number = self.leases.len() as u128 + 1;
        let terms = Terms::new(window, None, vec![asked]).expect("terms");
        let lease = Lease::new(new_lease(number, 1), terms, vec![ids(on.iter().copied())], None);
        self.cloud.calendar.put(&lease, at(0)).expect("free");
        self.leases.push(lease);
        self
    }

    /// The new lease and the leases that move for it, if it is possible.
    fn made(&self, window: Window, asked: Vec<ReservationTerms>) -> Option<Replanned<Lease>> {
        self.made_hinting(window, asked, Hints::default())
    }

    fn made_hinting(
        &self,
        window: Window,
        asked: Vec<ReservationTerms>,
        hints: Hints,
    ) -> Option<Replanned<Lease>> {
        let terms = Terms::new(window, None, asked).expect("terms").hinting(hints);
        self.made_within(&Budget::unlimited(), &terms)
    }

    fn made_within(&self, budget: &Budget, terms: &Terms) -> Option<Replanned<Lease>> {
        let admission = self.cloud.admission(0).with_budget(budget);
        let decide = |admission: &Admission<'_>| {
            let grant = admission.grant(&owner().project, terms)?;
            let count = grant.allocations.len();
            Ok(Lease::new(new_lease(99, count), grant.terms, grant.allocations, None))
        };
        let lack = decide(&admission).expect_err("too few are free");
        let wanted = Wanted::for_new(&owner().project, terms);
        let replanned = admission.replan(&self.leases, at(0), (&wanted, &lack), decide, |lease| lease);
        if let Some(Replanned { decided, moved }) = &replanned {
            let moves = |lease: &&Lease| moved.iter().any(|moved| moved.id == lease.id);
            let stay = self.leases.iter().filter(|lease| !moves(lease));
            let all = stay.chain(moved).chain([decided]);
            let calendar = Calendar::new(self.cloud.calendar.cleaning_time());
            calendar.with_leases(all, at(0)).expect("no host is given twice");
        }
        replanned
    }

    fn others(&self, but: usize) -> impl Iterator<Item = &Lease> {
        self.leases.iter().enumerate().filter(move |(number, _)| *number != but).map(|(_, lease)| lease)
    }
}

fn special(count: u32) -> ReservationTerms {
    let requirement = Requirement::compare(Operator::Equal, "gpu", "a").expect("well formed");
    on_hosts(count, count, requirement)
}

fn moves(replanned: &Replanned<Lease>) -> Vec<(u128, Vec<u64>)> {
    let hosts = |lease: &Lease| given(lease).hosts().iter().map(|host| host.0).collect();
    replanned.moved.iter().map(|lease| (lease.id.0, hosts(lease))).collect()
}

#[test]
fn cls_10_d_the_lease_moves_that_can_whichever_host_has_the_lower_number() {
    for (bound, free) in [(1, 2), (2, 1)] {
        let day = window(10, 20);
        let fleet = Fleet::new(3, 2).with(day, special(1), &[bound]).with(day, hosts(1, 1), &[free]);
        let made = fleet.made(day, vec![special(1)]).expect("the second one moves");
        assert_eq!((moves(&made), given(&made.decided)), (vec![(2, vec![3])], &ids([free])));
    }
}

#[test]
fn cls_10_d_a_best_effort_lease_that_waits_moves_unless_it_hunts() {
    for hunt in [None, Some(Hunt::default())] {
        let day = window(10, 20);
        let mut fleet = Fleet::new(3, 2).with(day, hosts(1, 1), &[1]);
        let waits = &mut fleet.leases[0];
        (waits.lease_type, waits.hunt) = (LeaseType::BestEffort { deadline: at(300) }, hunt.clone());
        let made = fleet.made(day, vec![special(2)]);
        assert_eq!(made.map(|made| moves(&made)), hunt.is_none().then(|| vec![(1, vec![3])]));
    }
}

#[test]
fn cls_10_d_moves_form_chains_of_up_to_four() {
    let day = window(10, 20);
    for length in 1..=6_u64 {
        // Each host suits its own lease and the previous one. The last host is free.
        let mut fleet = Fleet::new(length + 1, 0);
        for host in 1..=length {
            let suits = [named(&format!("node{host}")), named(&format!("node{}", host + 1))];
            let either = Requirement::any(suits.to_vec()).expect("well formed");
            fleet = fleet.with(day, on_hosts(1, 1, either), &[host]);
        }
        let made = fleet.made(day, vec![on_hosts(1, 1, named("node1"))]);
        let possible = length <= MOVES_PER_HOST as u64;
        assert_eq!(made.map(|made| made.moved.len() as u64), possible.then_some(length));
    }
}

#[test]
fn cls_10_d_a_move_may_displace_two_shorter_leases() {
    let either = Requirement::any(vec![named("node1"), named("node2")]).expect("well formed");
    let fleet = Fleet::new(4, 1)
        .with(window(10, 20), on_hosts(1, 1, either), &[1])
        .with(window(10, 14), hosts(1, 1), &[2])
        .with(window(15, 20), hosts(1, 1), &[2])
        .with(window(15, 20), hosts(1, 1), &[3])
        .with(window(10, 14), hosts(1, 1), &[4]);
    let made = fleet.made(window(10, 20), vec![special(1)]).expect("room");
    assert_eq!(moves(&made), [(1, vec![2]), (2, vec![3]), (3, vec![4])]);
}

#[test]
fn cls_10_d_a_lease_moves_to_the_host_that_another_one_has_left_for_a_shorter_request() {
    let fleet = Fleet::new(3, 1)
        .with(window(10, 20), hosts(1, 1), &[1])
        .with(window(10, 14), hosts(1, 1), &[2])
        .with(window(15, 20), hosts(1, 1), &[2])
        .with(window(15, 20), hosts(1, 1), &[3]);
    let made = fleet.made(window(10, 14), vec![special(1)]).expect("room");
    assert_eq!(moves(&made), [(1, vec![3]), (4, vec![1])]);
}

#[test]
fn cls_10_d_a_request_that_no_moves_can_serve_is_refused_before_all_are_tried() {
    // Three hosts are free before step 67, and three others after it. The leases on these six hosts don't
    // suit any other host.
    let mut fleet = Fleet::new(18, 12);
    for id in 1..=12 {
        fleet = fleet.with(window(60, 75), hosts(1, 1), &[id]);
    }
    for id in 13..=18 {
        let name = fleet.cloud.inventory.host(HostId(id)).expect("there").name.clone();
        let taken = if id % 2 == 0 { window(60, 67) } else { window(67, 75) };
        fleet = fleet.with(taken, on_hosts(1, 1, named(&name)), &[id]);
    }
    let budget = Budget::unlimited();
    let terms = Terms::new(window(60, 90), None, vec![special(3)]).expect("terms");
    assert!(fleet.made_within(&budget, &terms).is_none());
    assert!(budget.spent() < 3_000_000, "{} units", budget.spent());
}

#[test]
fn cls_10_d_the_fewest_leases_move() {
    let day = window(10, 20);
    let fleet = Fleet::new(4, 2).with(day, special(1), &[1]).with(day, hosts(1, 1), &[2]).with(
        day,
        hosts(1, 1),
        &[3],
    );
    let made = fleet.made(day, vec![special(1)]).expect("room");
    assert_eq!(moves(&made), [(2, vec![4])]);
}

#[test]
fn cls_10_d_one_reservation_of_a_lease_makes_room_for_another_lease_by_taking_the_place_of_the_other() {
    let day = window(10, 20);
    let mut fleet = Fleet::new(3, 2);
    // The first reservation matches hosts 1 and 2, and the second one hosts 2 and 3.
    let second = Requirement::any(vec![named("node2"), named("node3")]).expect("well formed");
    let first = Requirement::any(vec![named("node1"), named("node2")]).expect("well formed");
    let asked = vec![on_hosts(1, 1, first), on_hosts(1, 1, second)];
    let terms = Terms::new(day, None, asked).expect("terms");
    let lease = Lease::new(new_lease(1, 2), terms, vec![ids([1]), ids([2])], None);
    fleet.cloud.calendar.put(&lease, at(0)).expect("free");
    fleet.leases.push(lease);
    let made = fleet.made(day, vec![on_hosts(1, 1, named("node1"))]).expect("both move");
    let hosts: Vec<_> = made.moved[0].reservations.iter().map(|r| r.allocation.clone()).collect();
    assert_eq!(hosts, [ids([2]), ids([3])]);
}

#[test]
fn cls_10_d_hosts_that_must_be_alike_stay_alike_when_they_move() {
    let day = window(10, 20);
    for names in [vec![], vec!["cpu_info".to_owned()]] {
        let mut fleet = Fleet::new(5, 1);
        for id in 1..=5 {
            let kind = if id <= 2 { "old" } else { "new" };
            fleet.cloud.inventory.host_mut(HostId(id)).expect("there").cpu_info = kind.to_owned();
        }
        let mut alike = HostsTerms::new(2, 2).expect("a range");
        let properties = std::sync::Arc::make_mut(&mut alike.properties);
        properties.homogeneous = names.is_empty();
        properties.alike = names.into_iter().collect();
        let fleet = fleet.with(day, ReservationTerms::Hosts(alike), &[1, 2]);
        let made = fleet.made(day, vec![special(1)]).expect("both move");
        assert_eq!(made.moved[0].reservations[0].allocation.amount(), 2);
        assert!(given(&made.moved[0]).hosts().iter().all(|host| host.0 > 2), "{made:?}");
    }
}

#[test]
fn cls_10_d_a_request_for_hosts_in_one_place_is_made_room_for_there() {
    let day = window(10, 20);
    let mut fleet = Fleet::new(4, 0);
    for id in 1..=4 {
        let rack = if id <= 2 { "a" } else { "b" };
        let host = fleet.cloud.inventory.host_mut(HostId(id)).expect("there");
        host.capabilities.insert("rack".to_owned(), rack.to_owned());
    }
    fleet.cloud.rules.hints.location = "rack".to_owned();
    let fleet = fleet.with(day, hosts(1, 1), &[1]).with(day, on_hosts(1, 1, named("node3")), &[3]);
    let hints = Hints { location: Some(Location::Same), ..Hints::default() };
    let made = fleet.made_hinting(day, vec![hosts(2, 2)], hints).expect("the first lease moves");
    assert_eq!((moves(&made), given(&made.decided)), (vec![(1, vec![4])], &ids([1, 2])));
}

#[test]
fn cls_10_d_leases_that_wait_move_for_each_reservation_of_a_lease() {
    let day = window(10, 20);
    let fleet = Fleet::new(5, 2).with(day, hosts(1, 1), &[1]).with(day, hosts(1, 1), &[2]);
    let made = fleet.made(day, vec![hosts(1, 1), special(2)]).expect("both move");
    assert_eq!(made.moved.len(), 2);
}

#[test]
fn cls_10_d_the_latest_possible_end_is_the_one_that_moves_allow() {
    let fleet = Fleet::new(2, 1)
        .with(window(0, 60), special(1), &[1])
        .with(window(60, 90), hosts(1, 1), &[1])
        .with(window(90, 120), special(1), &[1]);
    let own = &fleet.leases[0];
    let admission = fleet.cloud.admission(0);
    let changes = ends(150);
    let refusal = admission.update(own, &changes).expect_err("others come after it");
    assert!(matches!(refusal, Refusal::EndsTooLate { latest, .. } if latest == at(60)));
    let others: Vec<&Lease> = fleet.others(0).collect();
    let refusal = admission.ends_later_by_moves(own, &changes, (&others, at(30)), refusal);
    assert!(matches!(refusal, Refusal::EndsTooLate { latest, .. } if latest == at(90)), "{refusal:?}");
}

#[test]
fn cls_10_d_a_lease_leaves_a_closed_host_by_moves_of_others() {
    let day = window(10, 20);
    let mut fleet = Fleet::new(3, 2).with(day, special(1), &[1]).with(day, hosts(1, 1), &[2]);
    fleet.cloud.inventory.host_mut(HostId(1)).expect("there").reservable = false;
    let own = &fleet.leases[0];
    let admission = fleet.cloud.admission(0);
    assert!(admission.heal(own, HealingInterval(None)).is_none(), "there is no free host");
    let left = admission
        .heal_by_moves(own, HealingInterval(None), fleet.others(0), at(0))
        .expect("the other lease moves");
    assert_eq!((moves(&left), given(&left.decided)), (vec![(2, vec![3])], &ids([2])));
    assert!(
        admission.heal_by_moves(own, HealingInterval(None), fleet.others(0), at(15)).is_none(),
        "it is about to start"
    );
}

#[test]
fn cls_10_d_a_lease_that_waits_or_runs_gets_another_host_for_a_failed_one_by_moves_of_others() {
    let (day, later) = (window(10, 20), window(15, 25));
    for now in [5, 12] {
        let mut fleet = Fleet::new(4, 3).with(day, special(2), &[1, 3]).with(later, hosts(1, 1), &[2]);
        fleet.cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Failed;
        let own = if now < 10 { fleet.leases[0].clone() } else { started(&fleet.leases[0]) };
        let admission = fleet.cloud.admission(now);
        let healed = admission.heal(&own, HealingInterval(None)).expect("it does without the host");
        assert_eq!((given(&healed), healed.lacks_hosts()), (&ids([3]), true));
        // It makes no difference whether the lease has already lost the host.
        for lease in [own, healed] {
            let healed = admission.heal_by_moves(&lease, HealingInterval(None), fleet.others(0), at(13));
            let healed = healed.expect("the other lease moves");
            assert_eq!((moves(&healed), given(&healed.decided)), (vec![(2, vec![4])], &ids([2, 3])));
            assert!(!healed.decided.degraded());
            let others = fleet.others(0);
            assert!(
                admission.heal_by_moves(&lease, HealingInterval(None), others, at(16)).is_none(),
                "settled"
            );
        }
    }
}

#[test]
fn a_lease_leaves_a_closed_host_if_its_reservations_exchange_hosts() {
    let day = window(10, 20);
    let mut fleet = Fleet::new(3, 2);
    let terms = Terms::new(day, None, vec![special(1), hosts(1, 1)]).expect("terms");
    let lease = Lease::new(new_lease(1, 2), terms, vec![ids([1]), ids([2])], None);
    fleet.cloud.calendar.put(&lease, at(0)).expect("free");
    fleet.cloud.inventory.host_mut(HostId(1)).expect("there").reservable = false;
    let healed = fleet.cloud.admission(0).heal(&lease, HealingInterval(None)).expect("there is a way");
    let hosts: Vec<_> = healed.reservations.iter().map(|r| r.allocation.clone()).collect();
    assert_eq!(hosts, [ids([2]), ids([3])]);
}

#[test]
fn cls_10_i_the_order_of_reservations_does_not_matter() {
    let mut cloud = Cloud::new(3);
    for (id, property) in [(1, "p"), (2, "p"), (1, "q"), (3, "q")] {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        host.capabilities.insert(property.to_owned(), "yes".to_owned());
    }
    let with = |property| Requirement::compare(Operator::Equal, property, "yes").expect("well formed");
    let [p, q] = [on_hosts(1, 1, with("p")), on_hosts(2, 2, with("q"))];
    let first = cloud.decide(window(10, 20), vec![p.clone(), q.clone()]).expect("host 2 for the first");
    let second = cloud.decide(window(10, 20), vec![q, p]).expect("host 2 for the second");
    assert_eq!((first, second), (vec![ids([2]), ids([1, 3])], vec![ids([1, 3]), ids([2])]));
}

#[test]
fn cls_10_i_whole_hosts_leave_the_hosts_that_instances_of_the_lease_need() {
    let mut cloud = Cloud::new(3);
    let host = cloud.inventory.host_mut(HostId(1)).expect("there");
    host.capabilities.insert("q".to_owned(), "z".to_owned());
    let mut room = instances(16, 1, Affinity::Any);
    if let ReservationTerms::Instances(terms) = &mut room {
        terms.requirement = Requirement::compare(Operator::Equal, "q", "z").expect("well formed");
    }
    for asked in [vec![hosts(2, 2), room.clone()], vec![room, hosts(2, 2)]] {
        assert!(cloud.decide(window(10, 20), asked).is_ok());
    }
}

#[test]
fn cls_10_i_a_changed_lease_is_given_all_that_it_asks_for_whatever_its_order() {
    let mut cloud = Cloud::new(3);
    let lease = cloud.lease(1, window(10, 20), vec![hosts(1, 1), on_hosts(1, 1, named("node3"))]);
    let properties = HostsChange { resource: Some(named("node1")), ..HostsChange::default() };
    let min = HostsChange { min: Some(2), max: Some(2), ..HostsChange::default() };
    let reservations = vec![
        (lease.reservations[0].id, TermsChange::Hosts(min)),
        (lease.reservations[1].id, TermsChange::Hosts(properties)),
    ];
    let updated = cloud.update(&lease, &Changes { reservations, ..Changes::default() }, 0).expect("room");
    assert_eq!(updated.reservations[0].allocation, ids([2, 3]));
    assert_eq!(updated.lease_type, LeaseType::Schedule);
}
