//! Hosts that are off, and hosts that draw little power (EN).

use std::collections::BTreeMap;

use super::*;
use crate::energy::{BUSY_WATTS, PowerState};
use crate::filters::HostFilter;
use crate::hints::InstanceHints;
use crate::host::MFLOPS;
use crate::ids::LeaseId;
use crate::plan::{Observed, ObservedHost};
use crate::testing::lease;

/// A cloud where power is saved.
struct Thrifty {
    cloud: Cloud,
}

impl Thrifty {
    /// A cloud in which these hosts draw this many watts.
    fn new(hosts: u64, watts: &[(u64, u32)]) -> Self {
        let mut cloud = Cloud::new(hosts);
        for (host, watts) in watts {
            let host = cloud.inventory.host_mut(HostId(*host)).expect("there");
            host.capabilities.insert(BUSY_WATTS.to_owned(), watts.to_string());
        }
        cloud.facts.waking = Some(BTreeMap::new()).into();
        Self { cloud }
    }

    fn off(&mut self, host: u64, ready: i64) {
        let power = &mut self.cloud.inventory.host_mut(HostId(host)).expect("there").power;
        power.state = PowerState::Off { since: at(0) };
        let mut waking = self.cloud.facts.waking.clone().expect("power is saved");
        waking.insert(HostId(host), at(ready));
        self.cloud.facts.waking = Some(waking).into();
    }

    fn admission(&self) -> Admission<'_> {
        self.cloud.admission(0)
    }

    fn given(&self, window: Window, asked: ReservationTerms) -> Result<Vec<u64>, Refusal> {
        let terms = Terms::new(window, None, vec![asked]).expect("terms");
        let given = self.admission().decide(&owner().project, &terms)?;
        Ok(given[0].hosts().iter().map(|host| host.0).collect())
    }
}

fn hosts(count: u32) -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(count, count).expect("a range"))
}

fn slots(amount: u32) -> ReservationTerms {
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(4, 1024, 1).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    })
}

#[test]
fn energy_d_leases_have_the_hosts_first_that_draw_least() {
    let thrifty = Thrifty::new(4, &[(1, 400), (2, 300), (4, 200)]);
    assert_eq!(thrifty.given(window(10, 20), hosts(1)), Ok(vec![4]));
    assert_eq!(thrifty.given(window(10, 20), hosts(2)), Ok(vec![2, 4]));
    assert_eq!(thrifty.given(window(10, 20), slots(5)), Ok(vec![2, 4]), "and slots");
    let elsewhere = Cloud { facts: HostFacts::nothing(), ..thrifty.cloud };
    let elsewhere = elsewhere.decide(window(10, 20), vec![hosts(1)]).expect("free");
    assert_eq!(elsewhere, vec![Allocation::Hosts(BTreeSet::from([HostId(1)]))], "elsewhere nothing changes");
}

#[test]
fn energy_d_hosts_with_most_mflops_per_watt_come_first() {
    let mut thrifty = Thrifty::new(4, &[(1, 400), (2, 300), (3, 200), (4, 100)]);
    let mut computes = |host, mflops: &str| {
        let host = thrifty.cloud.inventory.host_mut(HostId(host)).expect("there");
        host.capabilities.insert(MFLOPS.to_owned(), mflops.to_owned());
    };
    for (host, mflops) in [(1, "2e3"), (2, "3000"), (3, "500")] {
        computes(host, mflops);
    }
    let given = |thrifty: &Thrifty, count| thrifty.given(window(10, 20), hosts(count)).expect("free");
    assert_eq!([1, 2, 3].map(|count| given(&thrifty, count)), [vec![2], vec![1, 2], vec![1, 2, 3]]);
    for unknown in ["", "fast", "-1", "0", "0.4", "inf", "NaN", "2e12"] {
        let host = thrifty.cloud.inventory.host_mut(HostId(2)).expect("there");
        host.capabilities.insert(MFLOPS.to_owned(), unknown.to_owned());
        let order = [1, 2, 3].map(|count| given(&thrifty, count));
        assert_eq!(order, [vec![1], vec![1, 3], vec![1, 3, 4]], "{unknown}");
    }
    let elsewhere = Cloud { facts: HostFacts::nothing(), ..thrifty.cloud };
    assert_eq!(elsewhere.decide(window(10, 20), vec![hosts(1)]).expect("free"), [ids([1])]);
}

#[test]
fn energy_d_of_hosts_that_draw_alike_one_that_is_on_comes_first() {
    let mut thrifty = Thrifty::new(3, &[]);
    thrifty.off(1, 5);
    assert_eq!(thrifty.given(window(10, 20), hosts(1)), Ok(vec![2]));
    assert_eq!(thrifty.given(window(10, 20), hosts(3)), Ok(vec![1, 2, 3]));
}

#[test]
fn energy_b_nobody_is_promised_a_host_that_cannot_be_there_in_time() {
    let mut thrifty = Thrifty::new(2, &[]);
    thrifty.off(1, 12);
    for asked in [hosts(2), slots(8)] {
        let refused = thrifty.given(window(10, 20), asked).expect_err("one is off");
        let Refusal::NotEnough { resource: Resource::Hosts(report) | Resource::Slots(report), .. } = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(report.removed.get(&HostFilter::Power), Some(&1));
    }
    assert_eq!(thrifty.given(window(12, 20), hosts(2)), Ok(vec![1, 2]));
}

#[test]
fn energy_b_a_host_that_is_off_is_available_from_the_start_for_which_it_is_granted() {
    let mut thrifty = Thrifty::new(3, &[]);
    thrifty.off(1, 12);
    thrifty.cloud.facts.waking = {
        let mut waking = thrifty.cloud.facts.waking.clone().expect("power is saved");
        waking.insert(HostId(3), Timestamp::MAX);
        Some(waking).into()
    };
    for (asked, each) in [(hosts(1), 1), (slots(1), 4)] {
        let found = thrifty.admission().availability(&owner().project, &asked, window(0, 60));
        let found = found.expect("cheap");
        assert_eq!(found.total, 3 * each);
        assert_eq!(found.steps, [(window(0, 12), each), (window(12, 60), 2 * each)]);
        for (step, free) in found.steps {
            let all = |number: u64| asked.with_number(u32::try_from(number).expect("few")).expect("terms");
            assert!(thrifty.given(step, all(free)).is_ok(), "{free} from {}", step.start());
            assert!(thrifty.given(step, all(free + 1)).is_err(), "{free} from {}", step.start());
        }
    }
}

#[test]
fn energy_b_a_best_effort_lease_starts_when_its_hosts_can_be_on() {
    let mut thrifty = Thrifty::new(2, &[]);
    thrifty.off(1, 12);
    let terms = Terms::new(window(0, 60), None, vec![hosts(2)]).expect("terms");
    let best_effort = terms.clone().of_type(LeaseType::BestEffort { deadline: at(100) });
    let grant = thrifty.admission().grant(&owner().project, &best_effort).expect("in time");
    assert_eq!(grant.terms.window(), window(12, 72));
    let immediate = terms.of_type(LeaseType::Immediate { deadline: at(1) });
    assert!(thrifty.admission().grant(&owner().project, &immediate).is_err());
}

#[test]
fn energy_b_a_lease_keeps_its_own_host_that_is_off() {
    let mut thrifty = Thrifty::new(2, &[]);
    let own = lease(1, window(10, 20), &[1]);
    thrifty.cloud.calendar.put(&own, at(0)).expect("free");
    thrifty.off(1, 12);
    let changes = Changes { end: Some(at(30)), ..Changes::default() };
    let longer = thrifty.admission().update(&own, &changes).expect("free");
    assert_eq!(longer.lease.reservations[0].allocation, own.reservations[0].allocation);
    let changes = Changes { start: Some(at(5)), ..Changes::default() };
    let sooner = thrifty.admission().update(&own, &changes).expect("free");
    let hosts = sooner.lease.reservations[0].allocation.hosts();
    assert_eq!(hosts, BTreeSet::from([HostId(2)]), "it would not be there");
}

#[test]
fn energy_g_a_lease_whose_host_does_not_come_up_gets_another_before_it_starts() {
    let mut thrifty = Thrifty::new(4, &[(1, 100), (2, 100), (3, 300)]);
    let ours = lease(1, window(10, 20), &[1]);
    thrifty.cloud.calendar.put(&ours, at(0)).expect("free");
    thrifty.cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Failed;
    thrifty.off(2, 12);
    thrifty.off(4, 5);
    let heal = |thrifty: &Thrifty| {
        let mut calendar = thrifty.cloud.calendar.clone();
        let (inventory, rules) = (&thrifty.cloud.inventory, &thrifty.cloud.rules);
        let interval = HealingInterval(None);
        let facts = &thrifty.cloud.facts;
        let healed = heal_all(&mut calendar, inventory, rules, facts, [&ours], interval, at(9));
        healed[0].reservations[0].allocation.hosts()
    };
    assert_eq!(heal(&thrifty), BTreeSet::from([HostId(3)]), "2 draws less, but is not there in time");
    for host in [3, 4] {
        thrifty.cloud.inventory.host_mut(HostId(host)).expect("there").health = Health::Failed;
    }
    assert_eq!(heal(&thrifty), BTreeSet::from([HostId(2)]), "late is better than never");
}

#[test]
fn energy_h_no_instance_is_started_on_a_host_that_is_off() {
    let mut thrifty = Thrifty::new(2, &[]);
    thrifty.off(1, 12);
    let observed = (1..=2).map(|id| (HostId(id), ObservedHost::free())).collect();
    let observed = Observed { hosts: observed, ..Observed::default() };
    let size = crate::plan::GuestSize { vcpus: 10, memory_mib: 1024, disk_gib: 1 };
    let owner = owner();
    let within = Within::FreePool(&owner.project);
    assert_eq!(
        thrifty.admission().host_for(within, size, &InstanceHints::default(), &observed),
        Ok(HostId(2))
    );
    thrifty.off(2, 12);
    assert!(thrifty.admission().host_for(within, size, &InstanceHints::default(), &observed).is_err());
}

/// Leases with any start, if a move saves a watt for an hour.
const REPACK: RepackRules =
    RepackRules { settled: Timestamp::UNIX_EPOCH, least_milliwatt_seconds: 3_600_000 };

impl Thrifty {
    fn repacked(&self, now: i64, leases: &[&Lease], rules: RepackRules) -> Option<(LeaseId, Vec<u64>, u128)> {
        let admission = self.cloud.admission(now);
        let (lease, saved) = admission.repack(leases.iter().copied(), None, &rules).repacked?;
        assert_eq!(lease.marks.repacked_at, Some(at(now)));
        let hosts = lease.reservations.iter().flat_map(|r| r.allocation.hosts()).map(|host| host.0).collect();
        Some((lease.id, hosts, saved))
    }
}

#[test]
fn energy_d_a_lease_that_waits_gets_hosts_that_draw_less() {
    let mut thrifty = Thrifty::new(4, &[(1, 400), (2, 300), (3, 200), (4, 100)]);
    let first = lease(1, window(100, 160), &[1, 2]);
    let second = lease(2, window(100, 160), &[4]);
    thrifty.cloud.calendar.put(&first, at(0)).expect("free");
    thrifty.cloud.calendar.put(&second, at(0)).expect("free");
    let saved = 200_000 * 3600;
    assert_eq!(thrifty.repacked(0, &[&first, &second], REPACK), Some((LeaseId(1), vec![2, 3], saved)));
    let dearer = RepackRules { least_milliwatt_seconds: saved + 1, ..REPACK };
    assert_eq!(thrifty.repacked(0, &[&first, &second], dearer), None, "it does not save enough");
    let settled = RepackRules { settled: at(101), ..REPACK };
    assert_eq!(thrifty.repacked(0, &[&first, &second], settled), None, "it is about to start");
    let mut running = first.clone();
    running.status = LeaseStatus::Active;
    assert_eq!(thrifty.repacked(0, &[&running], REPACK), None, "it has started");
    thrifty.off(3, 101);
    assert_eq!(thrifty.repacked(0, &[&first, &second], REPACK), None, "3 would not be there in time");
    thrifty.off(3, 100);
    assert!(thrifty.repacked(0, &[&first, &second], REPACK).is_some());
    let facts = HostFacts::nothing();
    let unsaving = thrifty.cloud.knowing(&facts, 0).repack([&first], None, &REPACK);
    assert_eq!(unsaving, Repacking::default(), "nothing changes where no power is saved");
}

#[test]
fn energy_e_a_lease_is_given_hosts_that_draw_less_once_a_day() {
    let mut thrifty = Thrifty::new(2, &[(1, 400), (2, 300)]);
    let mut waits = lease(1, window(3000, 3060), &[1]);
    waits.marks.repacked_at = Some(at(0));
    thrifty.cloud.calendar.put(&waits, at(0)).expect("free");
    assert_eq!(thrifty.repacked(24 * 60 - 1, &[&waits], REPACK), None);
    assert_eq!(thrifty.repacked(24 * 60, &[&waits], REPACK), Some((LeaseId(1), vec![2], 100_000 * 3600)));
}

#[test]
fn energy_d_a_lease_keeps_hosts_of_which_nobody_knows_what_they_draw() {
    let mut thrifty = Thrifty::new(3, &[(2, 400), (3, 300)]);
    let waits = lease(1, window(100, 160), &[1, 2]);
    thrifty.cloud.calendar.put(&waits, at(0)).expect("free");
    assert_eq!(thrifty.repacked(0, &[&waits], REPACK), None);
}
