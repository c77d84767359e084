//! Tests of the simulated fleet's own features. [`crate::conformance`] has the promises of all drivers.

use std::collections::BTreeSet;
use std::sync::Arc;

use ambient::ManualClock;
use jiff::Timestamp;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{GuestOwner, Place};

use super::*;
use crate::OperationKey;
use crate::{Guests as _, Inventory as _, Isolation as _};

const HOST: HostId = HostId(1);
const LEASE: LeaseId = LeaseId(10);
const RESERVATION: ReservationId = ReservationId(100);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

fn key(key: &str) -> OperationKey {
    OperationKey { key: key.to_owned(), fence: 1, lease: Some(LEASE), facts: None }
}

async fn fleet() -> (Arc<ManualClock>, SimulatedFleet) {
    let clock = Arc::new(ManualClock::new(at(0)));
    let fleet = SimulatedFleet::new(clock.clone(), 1, &Layout::of_machines(3));
    for host in 1..=2 {
        assert_eq!(fleet.adopt(HostId(host)).await, Ok(Outcome::Done));
    }
    (clock, fleet)
}

async fn hand_over(fleet: &SimulatedFleet) {
    assert_eq!(fleet.fence(HOST, &key("fence")).await, Ok(Outcome::Done));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Done));
    assert_eq!(fleet.hold(HOST, RESERVATION, &key("hold")).await, Ok(Outcome::Done));
}

#[tokio::test]
async fn a_guest_in_flight_is_waited_for_and_seen_once_it_has_landed() {
    let (clock, fleet) = fleet().await;
    let fleet = fleet.with_timing(Timing { boot: Between::secs(30, 30), ..Timing::IMMEDIATE });
    let guest = fleet.start_guest(HOST, GuestOwner::Preemptible, None).expect("free pool");
    assert_eq!(fleet.fence(HOST, &key("fence")).await, Ok(Outcome::Done));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Pending));
    assert!(fleet.look(HOST).expect("taken on").guests.is_empty());
    assert_eq!(fleet.next_event(), Some(at(30)));
    clock.set(at(30));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Done));
    let seen = fleet.look(HOST).expect("taken on");
    assert_eq!(seen.place, Place::Fenced { verified_for: None });
    assert_eq!(seen.guests[0].id, guest);
    assert!(fleet.violations().is_empty());
}

#[tokio::test]
async fn guests_of_a_lease_start_on_what_it_holds_and_nobody_elses_do() {
    let (_, fleet) = fleet().await;
    hand_over(&fleet).await;
    assert!(fleet.start_guest(HOST, GuestOwner::Lease(LEASE), None).is_some());
    for owner in [GuestOwner::Preemptible, GuestOwner::Other, GuestOwner::Lease(LeaseId(11))] {
        assert_eq!(fleet.start_guest(HOST, owner, None), None);
    }
    assert_eq!(fleet.start_guest(HostId(2), GuestOwner::Lease(LEASE), None), None);
    assert_eq!(fleet.grant(HostId(2), RESERVATION, 2, &key("grant")).await, Ok(Outcome::Done));
    assert!(fleet.start_guest(HostId(2), GuestOwner::Lease(LEASE), None).is_some());
}

#[tokio::test]
async fn hosts_that_were_not_taken_on_are_not_observed() {
    let (_, fleet) = fleet().await;
    let hosts: BTreeSet<HostId> = (1..=9).map(HostId).collect();
    let seen = fleet.observe(&hosts, &[]).await.expect("an answer");
    assert_eq!(seen.hosts.into_keys().collect::<Vec<_>>(), [HostId(1), HostId(2)]);
    assert_eq!(fleet.machines().await.expect("an answer").len(), 3);
}

#[tokio::test]
async fn each_fault_does_what_it_says() {
    // Whether the caller gets an error, whether the call takes effect at once, and whether it takes effect
    // later (again).
    let cases = [
        (Fault::Refuse, true, false, false),
        (Fault::TimeOutBefore, true, false, false),
        (Fault::TimeOutAfter, true, true, false),
        (Fault::Late, true, false, true),
        (Fault::Duplicate, false, true, true),
    ];
    for (fault, fails, at_once, later) in cases {
        let (clock, fleet) = fleet().await;
        fleet.set_faults(Faults { late_by: Between::secs(60, 60), ..Faults::NONE });
        fleet.plan_fault(PlannedFault::next(Verb::Fence, HOST, fault));
        let fenced =
            |fleet: &SimulatedFleet| fleet.look(HOST).map(|host| host.place) != Some(Place::FreePool);
        assert_eq!(fleet.fence(HOST, &key("fence")).await.is_err(), fails, "{fault:?}");
        assert_eq!(fenced(&fleet), at_once, "{fault:?}");
        fleet.unfence(HOST, &key("unfence")).await.expect("only the fence fails");
        assert!(!fenced(&fleet));
        assert_eq!(fleet.next_event(), later.then(|| at(60)), "{fault:?}");
        clock.set(at(60));
        assert_eq!(fenced(&fleet), later, "{fault:?}");
    }
}

#[tokio::test]
async fn a_planned_fault_happens_to_the_calls_it_says_and_to_no_others() {
    let (_, fleet) = fleet().await;
    fleet.plan_fault(PlannedFault {
        verb: Some(Verb::Fence),
        host: Some(HOST),
        after: 2,
        times: 1,
        fault: Fault::Refuse,
    });
    let mut went_well = Vec::new();
    for number in 0..4 {
        assert!(fleet.fence(HostId(2), &key(&format!("other {number}"))).await.is_ok());
        assert!(fleet.verify(HOST, RESERVATION, &key(&format!("verify {number}"))).await.is_ok());
        went_well.push(fleet.fence(HOST, &key(&format!("fence {number}"))).await.is_ok());
    }
    assert_eq!(went_well, [true, true, false, true]);
}

#[tokio::test]
async fn a_late_duplicate_of_a_call_that_was_claimed_again_has_no_effect() {
    let (clock, fleet) = fleet().await;
    fleet.set_faults(Faults { late_by: Between::secs(60, 60), ..Faults::NONE });
    fleet.plan_fault(PlannedFault::next(Verb::Fence, HOST, Fault::Late));
    let claim = |fence| OperationKey { fence, ..key("fence") };
    assert!(fleet.fence(HOST, &claim(1)).await.is_err());
    assert!(fleet.fence(HOST, &claim(2)).await.is_ok());
    assert!(fleet.unfence(HOST, &key("unfence")).await.is_ok());
    clock.set(at(60));
    assert_eq!(fleet.look(HOST).expect("taken on").place, Place::FreePool);
}

#[tokio::test]
async fn a_call_whose_caller_gives_up_takes_effect_all_the_same() {
    let (clock, fleet) = fleet().await;
    let fleet = fleet.with_timing(Timing { call: Between::secs(5, 5), ..Timing::IMMEDIATE });
    {
        let claim = key("fence");
        let call = fleet.fence(HOST, &claim);
        tokio::pin!(call);
        tokio::select! {
            biased;
            _ = &mut call => panic!("it takes five seconds"),
            () = std::future::ready(()) => {}
        }
    }
    assert_eq!(fleet.look(HOST).expect("taken on").place, Place::FreePool);
    clock.set(at(5));
    assert_eq!(fleet.look(HOST).expect("taken on").place, Place::Fenced { verified_for: None });
}

#[tokio::test]
async fn a_guest_shuts_down_in_its_time_and_is_deleted_only_after_its_grace() {
    let (clock, fleet) = fleet().await;
    let timing = Timing { shut_down: Between::secs(90, 90), ..Timing::IMMEDIATE };
    let fleet = fleet.with_timing(timing).with_grace(SignedDuration::from_secs(60));
    let guests: Vec<GuestId> =
        (0..3).filter_map(|_| fleet.start_guest(HOST, GuestOwner::Preemptible, None)).collect();
    fleet.stop(HOST, guests[0], false, &key("stop 0")).await.expect("done");
    fleet.stop(HOST, guests[1], false, &key("stop 1")).await.expect("done");
    clock.set(at(60));
    fleet.delete(HOST, guests[0], false, &key("delete 0")).await.expect("done");
    assert!(fleet.violations().is_empty());
    fleet.delete(HOST, guests[2], false, &key("delete 2")).await.expect("done");
    let violation =
        Violation::DeletedBeforeGrace { host: HOST, guest: guests[2], asked_at: None, at: at(60) };
    assert_eq!(fleet.violations(), [violation]);
    clock.set(at(90));
    assert!(fleet.look(HOST).expect("taken on").guests.is_empty(), "the other has shut down");
}

#[tokio::test]
async fn touching_somebody_elses_guest_is_a_violation() {
    let (_, fleet) = fleet().await;
    let guest = fleet.start_guest(HOST, GuestOwner::Other, None).expect("a free host");
    assert!(matches!(fleet.delete(HOST, guest, false, &key("delete")).await, Err(FleetError::Refused(_))));
    assert_eq!(fleet.violations(), [Violation::TouchedForeignGuest { host: HOST, guest, at: at(0) }]);
    assert_eq!(fleet.look(HOST).expect("taken on").guests.len(), 1);
}

#[tokio::test]
async fn a_failed_host_does_nothing_and_has_everything_when_it_recovers() {
    let (clock, fleet) = fleet().await;
    hand_over(&fleet).await;
    fleet.schedule(at(10), Happening::HostFails(HOST));
    fleet.schedule(at(20), Happening::HostRecovers(HOST));
    clock.set(at(10));
    assert_eq!(fleet.look(HOST).expect("taken on").health, leases::host::Health::Failed);
    let released = fleet.release(HOST, RESERVATION, &key("release")).await;
    assert!(matches!(released, Err(FleetError::Unavailable(_))), "{released:?}");
    clock.set(at(20));
    assert_eq!(fleet.look(HOST).expect("taken on").place, Place::Held(RESERVATION));
    assert!(fleet.release(HOST, RESERVATION, &key("release")).await.is_ok());
}

#[tokio::test]
async fn a_snapshot_takes_its_time_and_is_made_again_for_a_later_claim_only() {
    let (clock, fleet) = fleet().await;
    let fleet = fleet.with_timing(Timing { snapshot: Between::secs(10, 10), ..Timing::IMMEDIATE });
    hand_over(&fleet).await;
    for _ in 0..2 {
        fleet.start_guest(HOST, GuestOwner::Lease(LEASE), None).expect("the lease's host");
    }
    let claim = |fence| OperationKey { fence, ..key("snapshot") };
    assert_eq!(fleet.snapshot(HOST, RESERVATION, &claim(1)).await, Ok(Outcome::Pending));
    clock.set(at(19));
    assert_eq!(fleet.snapshot(HOST, RESERVATION, &claim(2)).await, Ok(Outcome::Pending));
    clock.set(at(20));
    for _ in 0..2 {
        assert_eq!(fleet.snapshot(HOST, RESERVATION, &claim(2)).await, Ok(Outcome::Done));
    }
    assert_eq!(fleet.images(), 2);
    assert_eq!(fleet.snapshot(HOST, RESERVATION, &claim(3)).await, Ok(Outcome::Pending));
    assert_eq!(fleet.images(), 4);
}

#[tokio::test]
async fn a_guest_that_migrates_is_on_its_old_host_until_its_memory_is_copied() {
    let (clock, fleet) = fleet().await;
    let fleet = fleet.with_timing(Timing { migration_mib_per_second: 1024, ..Timing::IMMEDIATE });
    let guest = fleet.start_guest(HOST, GuestOwner::Other, None).expect("a free host");
    let on = |host| fleet.look(host).expect("taken on").guests.len();
    let away = fleet.migrate(HOST, guest, HostId(2), &key("migrate")).await;
    assert_eq!((away, on(HOST)), (Ok(Outcome::Done), 1), "nobody has fenced its host");
    assert!(fleet.fence(HOST, &key("fence")).await.is_ok());
    assert_eq!(fleet.migrate(HOST, guest, HostId(2), &key("migrate")).await, Ok(Outcome::Pending));
    assert_eq!((on(HOST), on(HostId(2))), (1, 0));
    assert_eq!(fleet.look(HOST).expect("taken on").guests[0].moving_to, Some(HostId(2)));
    clock.set(fleet.next_event().expect("its arrival"));
    assert_eq!(fleet.migrate(HOST, guest, HostId(2), &key("migrate")).await, Ok(Outcome::Done));
    assert_eq!((on(HOST), on(HostId(2))), (0, 1));
    assert!(fleet.fence(HostId(2), &key("fence 2")).await.is_ok());
    let refused = fleet.migrate(HostId(2), guest, HOST, &key("back")).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "the host is fenced");
}

#[tokio::test]
async fn a_guest_does_not_migrate_where_there_is_no_room() {
    let (_, fleet) = fleet().await;
    let refused = |answer| matches!(answer, Err(FleetError::Refused(why)) if why.contains("no room"));
    while fleet.start_guest(HostId(2), GuestOwner::Other, None).is_some() {}
    while fleet.start_guest(HOST, GuestOwner::Other, None).is_some() {}
    assert!(fleet.fence(HOST, &key("fence")).await.is_ok());
    let guests = fleet.look(HOST).expect("taken on").guests;
    let largest = guests.iter().max_by_key(|guest| guest.size.memory_mib).expect("a guest");
    assert!(refused(fleet.migrate(HOST, largest.id, HostId(2), &key("migrate")).await));
}

/// Observations of the first hosts, hour by hour, with a background load.
async fn hours(seed: u64) -> Vec<String> {
    let clock = Arc::new(ManualClock::new(at(0)));
    let fleet = SimulatedFleet::new(clock.clone(), seed, &Layout::of_machines(3))
        .with_timing(Timing { call: Between::ZERO, question: Between::ZERO, ..Timing::LIFELIKE })
        .with_background_load(BackgroundLoad::LIVELY);
    fleet.adopt(HOST).await.expect("nothing is there yet");
    fleet.adopt(HostId(2)).await.expect("nothing is there yet");
    hand_over(&fleet).await;
    fleet.grant(HostId(2), RESERVATION, 2, &key("grant")).await.expect("done");
    let hosts = BTreeSet::from([HOST, HostId(2)]);
    let mut seen = Vec::new();
    for hour in 1..=12 {
        clock.set(at(hour * 3600));
        seen.push(format!("{:?}", fleet.observe(&hosts, &[]).await.expect("an answer")));
    }
    assert!(fleet.violations().is_empty());
    seen
}

#[tokio::test]
async fn the_same_seed_gives_the_same_background_load() {
    let seen = hours(7).await;
    assert_eq!(seen, hours(7).await);
    assert_ne!(seen, hours(8).await);
    assert!(seen.iter().any(|seen| seen.contains("Preemptible")), "{seen:?}");
    assert!(seen.iter().any(|seen| seen.contains("Lease")), "{seen:?}");
}

#[tokio::test]
async fn w4_machines_do_not_notice_that_the_process_ends() {
    let directory = std::env::temp_dir().join(format!("allot-simulated-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("fleet.json");
    let clock = Arc::new(ManualClock::new(at(0)));
    let layout = Layout::of_machines(3);
    let open = || {
        let fleet = SimulatedFleet::persistent(&file, clock.clone(), 1, &layout).expect("a fleet");
        fleet.with_timing(Timing { boot: Between::secs(30, 30), ..Timing::IMMEDIATE })
    };
    let address = crate::conformance::address();
    let ip = address.id;
    let fleet = open();
    for host in 1..=2 {
        fleet.adopt(HostId(host)).await.expect("done");
    }
    fleet.start_guest(HostId(2), GuestOwner::Preemptible, None).expect("a free host");
    fleet.grant(HostId(2), RESERVATION, 4, &key("grant")).await.expect("done");
    fleet.assign(&address, RESERVATION, &key("assign")).await.expect("done");
    hand_over(&fleet).await;
    drop(fleet);
    clock.set(at(30));
    let fleet = open();
    assert_eq!(fleet.look(HOST).expect("taken on").place, Place::Held(RESERVATION));
    let second = fleet.look(HostId(2)).expect("taken on");
    assert_eq!(
        (second.guests.len(), second.slots.get(&RESERVATION)),
        (1, Some(&4)),
        "it has landed meanwhile"
    );
    assert_eq!(fleet.look(HostId(3)), None);
    assert_eq!(fleet.holder_of(ip), Some(RESERVATION));
    let of_a_new_store = OperationKey { fence: 0, ..key("grant") };
    fleet.grant(HostId(2), RESERVATION, 9, &of_a_new_store).await.expect("done");
    assert_eq!(fleet.look(HostId(2)).expect("taken on").slots.get(&RESERVATION), Some(&9));
    std::fs::write(&file, "{").expect("a file");
    let refused = SimulatedFleet::persistent(&file, clock.clone(), 1, &layout);
    assert!(matches!(refused, Err(StateError::Corrupt { .. })));
    std::fs::remove_dir_all(&directory).expect("it was there");
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_read() {
    let directory = std::env::temp_dir().join(format!("allot-simulated-earlier-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("fleet.json");
    let clock = Arc::new(ManualClock::new(at(0)));
    let open = || SimulatedFleet::persistent(&file, clock.clone(), 1, &Layout::of_machines(1));
    let fleet = open().expect("there is none").with_background_load(BackgroundLoad::LIVELY);
    fleet.adopt(HOST).await.expect("done");
    drop(fleet);
    let text = std::fs::read_to_string(&file).expect("it was written");
    assert!(text.contains("\"background_load\""), "{text}");
    std::fs::write(&file, text.replace("\"background_load\"", "\"chatter\"")).expect("a file");
    open().expect("what it says is known by its former name");
    std::fs::remove_dir_all(&directory).expect("it was there");
}
