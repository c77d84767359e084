//! Scavenger hunts (CLS-03).

use std::collections::BTreeMap;

use super::*;
use crate::failure_domain::FailureDomain;
use crate::host_facts::Guests;
use crate::hunt::{Hunt, Hunting, Move, follow_moves};
use crate::ids::GuestId;
use crate::lease::EndAction;
use crate::offer::OfferKind;
use crate::plan::{Action, Guest, GuestOwner, GuestSize, History, Mobility, Observed, ObservedHost, Place};
use crate::project::{Owner, ProjectId};
use crate::testing::lease;

/// A free pool of hosts with 64 GiB, and their guests.
struct Pool {
    cloud: Cloud,
    observed: Observed,
    history: History,
    hunting: Vec<Lease>,
    /// Hosts that are off.
    waking: BTreeMap<HostId, Timestamp>,
}

/// A movable guest of this project with `gib` GiB of memory.
fn tenant(id: u128, project: &str, gib: u32) -> Guest {
    Guest {
        project: Some(ProjectId(project.to_owned())),
        size: GuestSize { vcpus: 1, memory_mib: gib * 1024, disk_gib: 10 },
        mobility: Some(Mobility::default()),
        ..Guest::new(GuestId(id), GuestOwner::Other)
    }
}

impl Pool {
    /// One host per list, with guests of these sizes in GiB. Their identifiers start from ten times the
    /// host's.
    fn new(guests: &[&[u32]]) -> Self {
        let mut cloud = Cloud::new(guests.len() as u64);
        cloud.rules.hunting = Hunting { n_plus_one: false, ..Hunting::default() };
        let mut observed = Observed::default();
        for (number, guests) in (1..).zip(guests) {
            let guests = guests.iter().enumerate();
            let guests = guests.map(|(position, gib)| tenant(number * 10 + position as u128, "tenant", *gib));
            let host = ObservedHost { guests: guests.collect(), ..ObservedHost::free() };
            observed.hosts.insert(HostId(number as u64), host);
        }
        Self { cloud, observed, history: History::default(), hunting: Vec::new(), waking: BTreeMap::new() }
    }

    fn host(&mut self, id: u64) -> &mut ObservedHost {
        self.observed.hosts.get_mut(&HostId(id)).expect("there")
    }

    fn with<T>(&self, now: i64, decide: impl FnOnce(&Admission<'_>) -> T) -> T {
        let occupied = self.observed.hosts.iter().filter(|(_, host)| !host.guests.is_empty());
        let occupied: BTreeSet<HostId> = occupied.map(|(id, _)| *id).collect();
        let facts = HostFacts {
            occupied: occupied.into(),
            guests: Guests::from(self.observed.clone()).into(),
            history: &self.history,
            hunting: self.hunting.iter().collect(),
            waking: (!self.waking.is_empty()).then(|| self.waking.clone()).into(),
            ..HostFacts::nothing()
        };
        decide(&self.cloud.knowing(&facts, now))
    }

    fn grant(&self, min: u32, max: u32) -> Result<Grant, Refusal> {
        let terms = Terms::new(window(0, 60), None, vec![hosts(min, max)]).expect("terms");
        let terms = terms.of_type(LeaseType::BestEffort { deadline: at(50) });
        self.with(0, |admission| admission.grant(&owner().project, &terms))
    }

    /// Enters a lease that hunts for `count` hosts.
    fn hunt(&mut self, number: u128, count: u32) -> Lease {
        let grant = self.grant(count, count).expect("enough");
        let lease =
            Lease::new(new_lease(number, 1), grant.terms, grant.allocations, None).hunting(grant.hunt);
        let lease = Lease { status: LeaseStatus::Starting, ..lease };
        self.cloud.calendar.put(&lease, at(0)).expect("free");
        for host in lease.reservations[0].allocation.hosts() {
            self.host(host.0).place = Place::Fenced { verified_for: None };
        }
        self.hunting.push(lease.clone());
        lease
    }

    /// Switches a host off before anyone observes it.
    fn off(&mut self, host: u64) {
        let power = &mut self.cloud.inventory.host_mut(HostId(host)).expect("there").power;
        *power = power.switched_off(at(0));
        self.waking.insert(HostId(host), at(1000));
    }

    fn replanned(&self, lease: &Lease) -> Option<Lease> {
        self.with(1, |admission| admission.replan_hunt(lease))
    }

    fn lost(&self, lease: &Lease) -> Option<Lease> {
        self.with(1, |admission| admission.without_lost_destinations(lease, &self.observed))
    }
}

fn moved(guest: u128, from: u64, to: u64) -> Move {
    Move { guest: GuestId(guest), from: HostId(from), to: HostId(to) }
}

fn given(allocations: &[Allocation]) -> Vec<u64> {
    allocations[0].hosts().iter().map(|host| host.0).collect()
}

#[test]
fn cls_03_a_every_guest_has_a_destination_with_room_before_the_answer() {
    let grant = Pool::new(&[&[30, 30], &[20], &[10]]).grant(1, 1).expect("a plan");
    let hunt = grant.hunt.expect("guests are moved");
    assert_eq!((given(&grant.allocations), hunt.moves), (vec![3], vec![moved(30, 3, 2)]));
    assert_eq!(hunt.cost.memory_mib, 10 * 1024);
    let full = Pool::new(&[&[60], &[60], &[60]]).grant(1, 1).expect_err("there is no room");
    let Refusal::NoHunt { .. } = &full else { panic!("{full:?}") };
    assert_eq!(full.to_string(), "Not enough hosts available");
    let hint = full.hint().expect("it says why");
    assert!(
        hint.contains("3 with guests of others") && hint.contains("moving guests of others away"),
        "{hint}"
    );
}

#[test]
fn a_hunt_that_would_take_longer_than_the_timeout_says_how_long_it_takes() {
    let pool = Pool::new(&[&[30, 30], &[20], &[10]]);
    let terms = Terms::new(window(0, 60), None, vec![hosts(1, 1)]).expect("terms");
    let granted = |timeout: i64| {
        let terms = terms.clone().of_type(LeaseType::BestEffort { deadline: at(timeout) });
        pool.with(0, |admission| admission.grant(&owner().project, &terms))
    };
    let hint = granted(1).expect_err("too short").hint().expect("it says why");
    assert!(
        hint.ends_with("moving guests away takes 2m, the timeout is 1m; ask for a timeout of 2m or more"),
        "{hint}"
    );
    assert!(granted(2).expect("what was said").hunt.is_some());
    // The same result as an offer.
    let offers = |timeout: i64, longest: i64| {
        let terms = terms.clone().of_type(LeaseType::BestEffort { deadline: at(timeout) });
        let mut rules = pool.cloud.rules.clone();
        rules.deadlines.longest = minutes(longest);
        let offers = pool.with(0, |admission| {
            Admission { rules: &rules, ..*admission }.offers(&owner().project, &terms, at(10_000))
        });
        offers.into_iter().filter(|offer| offer.kind == OfferKind::LongerTimeout).collect::<Vec<_>>()
    };
    let offered = offers(1, 60);
    let [offer] = offered.as_slice() else { panic!("{offered:?}") };
    assert_eq!(offer.grant, granted(2).expect("what was said"));
    assert_eq!((offers(2, 60), offers(1, 1)), (Vec::new(), Vec::new()));
}

#[test]
fn cls_03_a_room_is_left_for_a_host_that_is_lost() {
    // 100 GiB fit on two hosts of 64 GiB, but not after a failure.
    let mut pool = Pool::new(&[&[40], &[40], &[20]]);
    assert!(pool.grant(1, 1).is_ok());
    pool.cloud.rules.hunting.n_plus_one = true;
    assert!(pool.grant(1, 1).is_err());
    let mut roomy = Pool::new(&[&[20], &[20], &[10], &[]]);
    roomy.cloud.rules.hunting.n_plus_one = true;
    assert!(roomy.grant(2, 2).is_ok());
}

#[test]
fn cls_03_a_guests_go_only_where_they_may() {
    let mut pool = Pool::new(&[&[10], &[20], &[20]]);
    pool.host(1).guests[0].mobility.as_mut().expect("it moves").apart.insert("quorum".to_owned());
    pool.host(2).guests[0].mobility.as_mut().expect("it moves").apart.insert("quorum".to_owned());
    let grant = pool.grant(1, 1).expect("a plan");
    assert_eq!(grant.hunt.expect("a hunt").moves, [moved(10, 1, 3)]);
    pool.host(1).guests[0].mobility.as_mut().expect("it moves").requires.insert("HW_CPU_X86_AVX2".to_owned());
    let mut with_trait = pool.cloud.inventory.host(HostId(2)).expect("there").clone();
    with_trait.traits.insert("HW_CPU_X86_AVX2".to_owned());
    pool.cloud.inventory = Inventory::new(
        pool.cloud
            .inventory
            .hosts()
            .map(|host| if host.id == with_trait.id { &with_trait } else { host })
            .cloned(),
        [],
    );
    let grant = pool.grant(1, 1).expect("another plan");
    assert!(!given(&grant.allocations).contains(&1), "its guest has nowhere to go");
    for id in 1..=3 {
        pool.host(id).guests[0].mobility = None;
    }
    assert!(pool.grant(1, 1).is_err(), "nobody knows how to move them");
}

#[test]
fn cls_03_h_guests_of_its_own_project_and_on_leased_hosts_are_not_moved() {
    let mut pool = Pool::new(&[&[1], &[20], &[20], &[]]);
    pool.host(1).guests[0].project = Some(owner().project);
    pool.cloud.calendar.put(&lease(5, window(0, 90), &[2]), at(0)).expect("free");
    pool.cloud.calendar.put(&lease(6, window(80, 90), &[4]), at(0)).expect("free");
    let grant = pool.grant(2, 2).expect("host 4 is free for so long, but may not receive anybody");
    assert_eq!(
        (given(&grant.allocations), grant.hunt.expect("a hunt").moves),
        (vec![3, 4], vec![moved(30, 3, 1)])
    );
}

#[test]
fn cls_03_i_the_cheapest_plan_is_taken_and_it_is_always_the_same() {
    let pool = Pool::new(&[&[30], &[8, 8], &[12], &[]]);
    let grant = pool.grant(2, 3).expect("a plan");
    assert_eq!(given(&grant.allocations), [3, 4]);
    assert_eq!(pool.grant(2, 3), Ok(grant));
    let idle = pool.grant(1, 2).expect("one is free");
    assert_eq!((given(&idle.allocations), idle.hunt), (vec![4], None), "nobody is moved without need");
}

#[test]
fn cls_03_j_it_waits_if_that_is_cheaper_than_moving_guests() {
    // A minute of waiting costs as much as 60 GB of memory.
    let mut pool = Pool::new(&[&[60], &[], &[]]);
    pool.cloud.calendar.put(&lease(5, window(0, 1), &[2]), at(0)).expect("free");
    let grant = pool.grant(2, 2).expect("soon");
    assert_eq!((grant.terms.window(), grant.hunt), (window(1, 61), None));
    let mut pool = Pool::new(&[&[30], &[], &[]]);
    pool.cloud.calendar.put(&lease(5, window(0, 40), &[2]), at(0)).expect("free");
    let grant = pool.grant(1, 1).expect("now");
    assert_eq!(grant.hunt, None, "host 3 is free");
    let grant = pool.grant(2, 2).expect("later");
    assert_eq!((grant.terms.window(), grant.hunt), (window(40, 100), None), "there is nowhere to go");
    let mut pool = Pool::new(&[&[30], &[], &[], &[1]]);
    pool.cloud.calendar.put(&lease(5, window(0, 40), &[2]), at(0)).expect("free");
    let grant = pool.grant(2, 2).expect("at once");
    assert_eq!(grant.hunt.expect("a hunt").moves, [moved(40, 4, 1)]);
    assert_eq!(grant.terms.window(), window(0, 62), "with two minutes for the hunt");
}

#[test]
fn cls_03_k_two_hunts_never_plan_on_the_same_host_or_room() {
    let mut pool = Pool::new(&[&[20], &[20], &[40], &[40]]);
    let first = pool.hunt(1, 1);
    assert_eq!(first.hunt.as_ref().expect("a hunt").moves, [moved(10, 1, 3)]);
    let second = pool.hunt(2, 1);
    assert_eq!(second.hunt.as_ref().expect("a hunt").moves, [moved(20, 2, 4)]);
    assert_eq!((pool.replanned(&first), pool.replanned(&second)), (None, None), "they are content");
    assert!(pool.grant(1, 1).is_err());
}

#[test]
fn cls_03_k_of_two_hunts_that_count_on_one_room_the_later_one_is_planned_again() {
    let mut pool = Pool::new(&[&[20], &[20], &[40], &[40]]);
    let first = pool.hunt(1, 1);
    let mut second = pool.hunt(2, 1);
    second.hunt.as_mut().expect("a hunt").moves[0].to = HostId(3);
    pool.hunting[1] = second.clone();
    assert_eq!(pool.replanned(&first), None);
    let replanned = pool.replanned(&second).expect("there is room elsewhere").hunt.expect("a hunt");
    assert_eq!(replanned.moves, [moved(20, 2, 4)]);
}

#[test]
fn cls_03_d_what_a_move_counts_on_is_looked_at_again() {
    let mut pool = Pool::new(&[&[10], &[30], &[30]]);
    let hunting = pool.hunt(1, 1);
    assert_eq!(hunting.hunt.as_ref().expect("a hunt").moves, [moved(10, 1, 2)]);
    let moves_of = |lease: Option<Lease>| lease.and_then(|lease| lease.hunt).map(|hunt| hunt.moves);
    assert_eq!(pool.replanned(&hunting), None);
    // The destination fills up.
    pool.host(2).guests.push(tenant(29, "other", 30));
    assert_eq!(moves_of(pool.replanned(&hunting)), Some(vec![moved(10, 1, 3)]));
    pool.host(2).guests.pop();
    // The destination fails.
    pool.host(2).health = Health::Failed;
    assert_eq!(moves_of(pool.replanned(&hunting)), Some(vec![moved(10, 1, 3)]));
    pool.host(2).health = Health::Up;
    // The fleet can't move the guest there.
    let action = Action::MoveGuest(HostId(1), GuestId(10), HostId(2));
    for _ in 0..2 {
        pool.history.failed(action, at(0), "no");
        assert_eq!(pool.replanned(&hunting), None, "it is tried again first");
    }
    pool.history.failed(action, at(0), "no");
    assert_eq!(moves_of(pool.replanned(&hunting)), Some(vec![moved(10, 1, 3)]));
    // A guest was started just before the fence.
    pool.history = History::default();
    pool.host(1).guests.push(tenant(11, "other", 1));
    let replanned = moves_of(pool.replanned(&hunting)).expect("another plan");
    assert_eq!(replanned.len(), 2, "{replanned:?}");
    // A guest that is already moving keeps going.
    pool.host(1).guests.pop();
    pool.host(1).guests[0].moving_to = Some(HostId(3));
    assert_eq!(pool.replanned(&hunting), None);
}

#[test]
fn where_a_guest_could_not_be_moved_it_can_still_be_started_if_a_host_is_lost() {
    let mut pool = Pool::new(&[&[10], &[10], &[10]]);
    pool.cloud.rules.hunting.n_plus_one = true;
    let hunting = pool.hunt(1, 1);
    let first = hunting.hunt.as_ref().expect("a hunt").moves[0];
    (0..3).for_each(|_| pool.history.failed(first.action(), at(0), "no"));
    let second = pool.replanned(&hunting).expect("there is one other host").hunt.expect("a hunt").moves[0];
    assert!(second.guest == first.guest && second.to != first.to, "{second:?}");
}

#[test]
fn a_hunt_that_is_replanned_remembers_whom_it_has_moved() {
    let mut pool = Pool::new(&[&[10], &[10], &[50], &[20], &[20]]);
    let hunting = pool.hunt(1, 2);
    let planned = hunting.hunt.clone().expect("a hunt");
    assert_eq!(planned.moves.iter().map(|mov| mov.from.0).collect::<Vec<_>>(), [1, 2]);
    let done = planned.moves[0];
    // The first guest has arrived. The second can't reach its destination.
    let guest = pool.host(1).guests.remove(0);
    pool.host(done.to.0).guests.push(guest);
    for _ in 0..3 {
        pool.history.failed(planned.moves[1].action(), at(0), "no");
    }
    let replanned = pool.replanned(&hunting).expect("another destination");
    let again = replanned.hunt.clone().expect("a hunt");
    assert_eq!((again.moves.len(), again.moves[0]), (2, done), "{again:?}");
    assert_eq!(
        (again.moves[1].guest, again.cost, again.allowance),
        (GuestId(20), planned.cost, planned.allowance)
    );
    assert_eq!(replanned.reservations, hunting.reservations, "the host that was cleared stays");
    // The first guest has left its destination, but its move stays in the record.
    pool.host(done.to.0).guests.retain(|guest| guest.id != done.guest);
    let again = pool.replanned(&hunting).expect("another destination").hunt.expect("a hunt");
    assert_eq!((again.moves.len(), again.moves[0]), (2, done));
    // The destination of the first guest is booked now, but its move is done and stays.
    pool.cloud.calendar.put(&lease(5, window(300, 360), &[done.to.0]), at(0)).expect("free");
    let waits = pool.lost(&replanned);
    assert!(waits.is_none_or(|waits| waits.hunt.expect("a hunt").moves.contains(&done)));
}

#[test]
fn a_guest_that_is_seen_where_it_was_and_where_it_is_has_arrived() {
    let mut pool = Pool::new(&[&[10], &[20], &[20]]);
    let hunting = pool.hunt(1, 1);
    let mov = hunting.hunt.as_ref().expect("a hunt").moves[0];
    let guest = pool.host(1).guests[0].clone();
    pool.host(mov.to.0).guests.push(guest);
    let mut seen = pool.observed.clone();
    follow_moves(&mut seen, [&mov], |_| true);
    let on = |id: u64| seen.hosts[&HostId(id)].guests.iter().any(|guest| guest.id == mov.guest);
    assert_eq!((on(1), on(mov.to.0)), (false, true));
    // A guest on its old host after its move has begun is moving.
    pool.host(mov.to.0).guests.retain(|guest| guest.id != mov.guest);
    let mut seen = pool.observed.clone();
    follow_moves(&mut seen, [&mov], |_| false);
    assert_eq!(seen.hosts[&HostId(1)].guests[0].moving_to, None);
    follow_moves(&mut seen, [&mov], |_| true);
    assert_eq!(seen.hosts[&HostId(1)].guests[0].moving_to, Some(mov.to));
}

#[test]
fn nobody_is_moved_to_a_host_that_another_lease_was_given_meanwhile() {
    let mut pool = Pool::new(&[&[10], &[60], &[20]]);
    let hunting = pool.hunt(1, 1);
    assert_eq!(hunting.hunt.as_ref().expect("a hunt").moves, [moved(10, 1, 3)]);
    pool.cloud.calendar.put(&lease(5, window(300, 360), &[3]), at(0)).expect("free");
    assert_eq!(pool.replanned(&hunting), None, "there is no other plan");
    let waits = pool.lost(&hunting).expect("that host is lost");
    assert_eq!(waits.hunt.as_ref().expect("a hunt").moves, []);
    assert_eq!(waits.reservations, hunting.reservations, "it goes on with its hosts");
    assert_eq!(pool.lost(&waits), None);
}

#[test]
fn nobody_is_moved_to_a_host_that_the_lease_itself_was_given_meanwhile() {
    let mut pool = Pool::new(&[&[10], &[60], &[20]]);
    let mut hunting = pool.hunt(1, 1);
    // One of its hosts has failed, and the replacement is the destination of its guests.
    hunting.reservations[0].allocation = ids([1, 3]);
    pool.cloud.calendar.put(&hunting, at(0)).expect("free");
    assert!(pool.with(1, |admission| admission.obstructed(&hunting)));
    let waits = pool.lost(&hunting).expect("that host is lost");
    assert_eq!(waits.hunt.expect("a hunt").moves, []);
}

#[test]
fn a_hunt_that_is_planned_again_takes_no_host_that_is_kept_for_other_projects() {
    let mut pool = Pool::new(&[&[10], &[10], &[]]);
    let hosts = pool.cloud.inventory.hosts().cloned().map(|mut host| {
        let tenant = if host.id == HostId(2) { "others" } else { "" };
        host.capabilities.insert("filter_tenant_id".to_owned(), tenant.to_owned());
        host
    });
    pool.cloud.inventory = Inventory::new(hosts.collect::<Vec<_>>(), []);
    let hunting = pool.hunt(1, 2);
    assert_eq!(given(&[hunting.reservations[0].allocation.clone()]), [1, 3]);
    pool.host(1).guests[0].mobility = None;
    assert_eq!(pool.replanned(&hunting), None, "host 2 is not for this project");
}

#[test]
fn a_lease_that_finds_somebody_in_its_way_when_it_starts_hunts_as_well() {
    let mut pool = Pool::new(&[&[10], &[30]]);
    let best_effort = LeaseType::BestEffort { deadline: at(50) };
    let starting = Lease { status: LeaseStatus::Starting, ..lease(1, window(0, 60), &[1]) };
    pool.cloud.calendar.put(&starting, at(0)).expect("free");
    pool.host(1).place = Place::Fenced { verified_for: None };
    assert_eq!(pool.replanned(&starting), None, "not if it has a date");
    let starting = Lease { lease_type: best_effort, ..starting };
    let replanned = pool.replanned(&starting).expect("a hunt");
    assert_eq!(
        replanned.hunt,
        Some(Hunt { allowance: minutes(0), ..replanned.hunt.clone().expect("a hunt") })
    );
    assert_eq!(replanned.hunt.expect("a hunt").moves, [moved(10, 1, 2)]);
    let own = Owner { project: ProjectId("tenant".into()), ..owner() };
    assert_eq!(pool.replanned(&Lease { owner: own, ..starting }), None, "its own guests stay");
}

#[test]
fn hosts_that_must_be_alike_are_cleared_of_the_kind_that_is_cheapest() {
    let mut pool = Pool::new(&[&[30], &[1], &[1], &[2], &[]]);
    let kinds = ["a", "b", "a", "b", "c"];
    let hosts = pool.cloud.inventory.hosts().zip(kinds);
    let hosts = hosts.map(|(host, kind)| Host { cpu_info: kind.to_owned(), ..host.clone() });
    pool.cloud.inventory = Inventory::new(hosts.collect::<Vec<_>>(), []);
    let mut asked = HostsTerms::new(2, 2).expect("a range");
    let grant = |asked: &HostsTerms| {
        let terms =
            Terms::new(window(0, 60), None, vec![ReservationTerms::Hosts(asked.clone())]).expect("terms");
        let terms = terms.of_type(LeaseType::BestEffort { deadline: at(50) });
        pool.with(0, |admission| admission.grant(&owner().project, &terms)).expect("a plan").allocations
    };
    assert_eq!(given(&grant(&asked)), [2, 5]);
    std::sync::Arc::make_mut(&mut asked.properties).homogeneous = true;
    assert_eq!(given(&grant(&asked)), [2, 4]);
    let properties = std::sync::Arc::make_mut(&mut asked.properties);
    (properties.homogeneous, properties.alike) = (false, BTreeSet::from(["cpu_info".to_owned()]));
    assert_eq!(given(&grant(&asked)), [2, 4]);
}

#[test]
fn fb_e_a_hunt_clears_one_more_host_for_a_lease_that_survives_the_loss_of_one() {
    let pool = Pool::new(&[&[30], &[1], &[2], &[3], &[]]);
    let mut asked = HostsTerms::new(2, 2).expect("a range");
    let grant = |asked: &HostsTerms| {
        let terms =
            Terms::new(window(0, 60), None, vec![ReservationTerms::Hosts(asked.clone())]).expect("terms");
        let terms = terms.of_type(LeaseType::BestEffort { deadline: at(50) });
        pool.with(0, |admission| admission.grant(&owner().project, &terms))
    };
    assert_eq!(given(&grant(&asked).expect("a plan").allocations), [2, 5]);
    std::sync::Arc::make_mut(&mut asked.properties).survives = Some(FailureDomain::Host);
    assert_eq!(given(&grant(&asked).expect("a plan").allocations), [2, 3, 5]);
    // A hunt doesn't spread hosts over places, so the lease waits.
    std::sync::Arc::make_mut(&mut asked.properties).survives =
        Some(FailureDomain::Place("hypervisor_hostname".to_owned()));
    let waits = grant(&asked);
    assert!(!matches!(waits, Ok(Grant { hunt: Some(_), .. })), "{waits:?}");
}

/// A lease that is over and holds these hosts. All guests on them are its own and must leave.
fn departing(pool: &mut Pool, hosts: &[u64]) -> Lease {
    let lease = lease(1, window(0, 1), hosts);
    let lease =
        Lease { end_action: EndAction::MoveGuests, status: LeaseStatus::Terminating, ..lease }.hunting(None);
    for host in hosts {
        let host = pool.host(*host);
        host.place = Place::Held(lease.reservations[0].id);
        host.guests.iter_mut().for_each(|guest| guest.owner = GuestOwner::Lease(lease.id));
    }
    lease
}

impl Pool {
    fn departure(&self, lease: &Lease) -> Option<Lease> {
        self.with(1, |admission| admission.departure(lease))
    }
}

fn moves(lease: Option<Lease>) -> Vec<Move> {
    lease.and_then(|lease| lease.hunt).expect("a plan").moves
}

#[test]
fn cls_09_guests_go_where_there_is_room_and_no_lease_will_be() {
    let mut pool = Pool::new(&[&[10], &[60], &[], &[20]]);
    let over = departing(&mut pool, &[1]);
    pool.cloud.calendar.put(&lease(9, window(30, 60), &[3]), at(0)).expect("free");
    let planned = pool.departure(&over).expect("a plan");
    assert_eq!(planned.hunt.as_ref().expect("a plan").moves, [moved(10, 1, 4)]);
    assert_eq!(pool.departure(&planned), None, "it holds");
    pool.cloud.calendar.put(&lease(8, window(30, 60), &[4]), at(0)).expect("free");
    assert_eq!(moves(pool.departure(&planned)), [], "nobody can go anywhere any more");
}

#[test]
fn cls_09_as_many_hosts_are_cleared_as_can_be() {
    let mut pool = Pool::new(&[&[30], &[40, 10], &[10, 20], &[14]]);
    let over = departing(&mut pool, &[1, 2, 3]);
    let planned = moves(pool.departure(&over));
    let cleared: BTreeSet<HostId> = planned.iter().map(|mov| mov.from).collect();
    assert_eq!((planned.len(), cleared.len()), (1, 1), "the first, or both of the third: {planned:?}");
    // A guest that can't move keeps its host from being cleared, so no guest of this host moves.
    pool.host(1).guests[0].mobility = None;
    assert_eq!(moves(pool.departure(&over)).iter().map(|mov| mov.from.0).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn cls_09_a_move_that_fails_for_good_goes_elsewhere() {
    let mut pool = Pool::new(&[&[10], &[], &[]]);
    let over = departing(&mut pool, &[1]);
    let planned = pool.departure(&over).expect("a plan");
    let mov = planned.hunt.as_ref().expect("a plan").moves[0];
    (0..3).for_each(|_| pool.history.failed(mov.action(), at(1), "no route"));
    let elsewhere = moves(pool.departure(&planned));
    assert!(elsewhere.len() == 1 && elsewhere[0].to != mov.to, "{elsewhere:?}");
}

#[test]
fn energy_h_hunts_move_no_guest_to_a_host_that_is_off() {
    let mut pool = Pool::new(&[&[30, 30], &[20], &[]]);
    pool.off(3);
    assert!(
        pool.grant(1, 1).is_err_and(|refusal| matches!(refusal, Refusal::NoHunt { .. })),
        "there is no room"
    );
    let mut pool = Pool::new(&[&[30, 30], &[20], &[], &[40]]);
    pool.off(3);
    let hunt = pool.grant(1, 1).expect("a plan").hunt.expect("guests are moved");
    assert_eq!(hunt.moves, [moved(20, 2, 4)]);
}

#[test]
fn energy_h_hunts_leave_room_for_a_lost_host_on_hosts_that_are_on() {
    // If the host with 60 GiB failed, its guests would only fit on the host that is off.
    let mut pool = Pool::new(&[&[40], &[40], &[20], &[]]);
    pool.off(4);
    assert!(pool.grant(1, 1).is_ok());
    pool.cloud.rules.hunting.n_plus_one = true;
    assert!(pool.grant(1, 1).is_err());
    let mut roomy = Pool::new(&[&[20], &[20], &[20], &[]]);
    roomy.off(4);
    roomy.cloud.rules.hunting.n_plus_one = true;
    let hunt = roomy.grant(1, 1).expect("40 GiB and 20 fit on one").hunt.expect("guests are moved");
    assert!(hunt.moves.iter().all(|mov| mov.to != HostId(4)), "{hunt:?}");
}

#[test]
fn energy_h_a_hunt_whose_destination_is_to_be_off_is_planned_again() {
    let mut pool = Pool::new(&[&[10], &[20], &[20]]);
    let lease = pool.hunt(1, 1);
    let first = lease.hunt.as_ref().expect("it hunts").moves[0];
    assert_eq!((first.guest, pool.replanned(&lease)), (GuestId(10), None));
    pool.off(first.to.0);
    let replanned = pool.replanned(&lease).expect("another one").hunt.expect("guests are moved");
    assert_eq!(replanned.moves.len(), 1);
    assert!(replanned.moves[0].to != first.to && replanned.moves[0].to != first.from, "{replanned:?}");
}

#[test]
fn another_plan_keeps_hosts_whose_preemptible_guests_were_asked_to_leave() {
    let mut pool = Pool::new(&[&[10], &[12], &[20], &[22]]);
    let hunting = pool.hunt(1, 1);
    assert_eq!(given(&[hunting.reservations[0].allocation.clone()]), [1]);
    let hosts = |lease: Option<Lease>| given(&[lease.expect("a plan").reservations[0].allocation.clone()]);
    pool.host(1).guests.push(tenant(11, "other", 40));
    assert_eq!(hosts(pool.replanned(&hunting)), [2], "that costs less");
    let asked = Guest { stopping_since: Some(at(0)), ..Guest::new(GuestId(12), GuestOwner::Preemptible) };
    pool.host(1).guests.push(asked);
    assert_eq!(hosts(pool.replanned(&hunting)), [1], "nobody is asked needlessly");
}
