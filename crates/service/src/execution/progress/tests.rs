//! What is known of the fleet, look by look.

use leases::instance::{Cause, Departure, InstanceKind};
use leases::plan::{Guest, GuestOwner, GuestSize, ObservedHost};
use leases::project::{Owner, ProjectId, UserId};

use super::*;

const HOST: HostId = HostId(1);
const GUEST: GuestId = GuestId(7);

fn record(status: InstanceStatus, version: u64) -> InstanceRecord {
    let owner = Owner { project: ProjectId("red".into()), user: UserId("anna".into()) };
    let (kind, size) = (InstanceKind::Regular, GuestSize::default());
    let new = Instance::new(GUEST, String::new(), owner, kind, size, HOST);
    let instance = Instance { status, ..new };
    let version = (1..version).fold(Version::FIRST, |version, _| version.next());
    InstanceRecord { instance, version, created_at: Timestamp::UNIX_EPOCH, updated_at: None }
}

fn begin(progress: &mut Progress) -> Look {
    progress.begin_look(true, [HOST].into(), (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH))
}

fn end(progress: &mut Progress, look: &Look, guests: &[GuestId]) {
    end_at(progress, look, guests, Timestamp::UNIX_EPOCH);
}

fn end_at(progress: &mut Progress, look: &Look, guests: &[GuestId], now: Timestamp) {
    let guests = guests.iter().map(|id| Guest::new(*id, GuestOwner::Other)).collect();
    let host = ObservedHost { guests, ..ObservedHost::free() };
    let seen = Observed { hosts: [(HOST, host)].into(), ..Observed::default() };
    progress.saw(look, seen, |_| true, now);
}

fn gone(progress: &mut Progress, record: &InstanceRecord) -> bool {
    !progress.gone([record].into_iter(), |_| true, Timestamp::UNIX_EPOCH).is_empty()
}

#[test]
fn what_another_has_seen_is_not_gone_because_an_older_look_did_not_see_it() {
    let mut progress = Progress::default();
    let building = record(InstanceStatus::Building, 1);
    assert!(!gone(&mut progress, &building));
    let first = begin(&mut progress);
    end(&mut progress, &first, &[]);
    assert!(gone(&mut progress, &building), "it is not there yet");
    let second = begin(&mut progress);
    // Another service sees it in the meantime and records that.
    let active = record(InstanceStatus::Active, 2);
    assert!(!gone(&mut progress, &active));
    end(&mut progress, &second, &[]);
    assert!(!gone(&mut progress, &active));
    let third = begin(&mut progress);
    end(&mut progress, &third, &[]);
    assert!(gone(&mut progress, &active), "it is not there any more");
    let fourth = begin(&mut progress);
    end(&mut progress, &fourth, &[GUEST]);
    assert!(!gone(&mut progress, &active));
}

#[test]
fn looks_are_under_way_until_they_have_seen_the_fleet_or_failed() {
    let mut progress = Progress::default();
    assert_eq!(progress.looks_began(), None);
    let first = begin(&mut progress);
    let later = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1);
    let second = progress.begin_look(false, [HOST].into(), (later, later));
    assert_eq!(progress.looks_began(), Some(Timestamp::UNIX_EPOCH));
    end(&mut progress, &first, &[]);
    assert_eq!(progress.looks_began(), Some(later));
    progress.saw_nothing(second.number);
    assert_eq!(progress.looks_began(), None);
}

#[test]
fn a_look_that_another_has_overtaken_counts_where_both_saw_the_same() {
    let at = |second| Timestamp::from_second(second).expect("in range");
    for (guests, seen_until) in [(vec![GUEST], at(90)), (vec![], at(12))] {
        let mut progress = Progress::default();
        let round = progress.begin_look(true, [HOST].into(), (at(0), at(120)));
        let own = progress.begin_look(false, [HOST].into(), (at(10), at(130)));
        end_at(&mut progress, &own, &[GUEST], at(12));
        end_at(&mut progress, &round, &guests, at(90));
        assert_eq!(progress.sighted[&HOST].end(), seen_until);
        assert_eq!(progress.observed.hosts[&HOST].guests[0].id, GUEST, "what the later look saw stays");
    }
}

#[test]
fn one_that_was_asked_to_leave_is_gone_when_its_host_was_looked_at_again() {
    let mut progress = Progress::default();
    let mut leaving = record(InstanceStatus::Active, 1);
    leaving.instance.kind = InstanceKind::Preemptible;
    let staying = leaving.clone();
    let now = Timestamp::UNIX_EPOCH;
    leaving.instance.departure = Some(Departure::at_once(Cause::Lease, now, SignedDuration::ZERO));
    let first = begin(&mut progress);
    end(&mut progress, &first, &[]);
    assert!(!gone(&mut progress, &leaving), "it may be seen elsewhere");
    assert_eq!(progress.hosts_to_look_at(), [HOST].into());
    let second = progress.begin_look(false, [HOST].into(), (now, now));
    end(&mut progress, &second, &[]);
    assert!(!gone(&mut progress, &staying), "nobody has asked it to");
    let mut progress = Progress::default();
    let first = begin(&mut progress);
    end(&mut progress, &first, &[]);
    gone(&mut progress, &leaving);
    let second = progress.begin_look(false, [HOST].into(), (now, now));
    end(&mut progress, &second, &[]);
    assert!(gone(&mut progress, &leaving));
}

/// A migration that has begun continues even if it is no longer decided and no longer polled.
#[test]
fn one_that_was_on_its_way_elsewhere_is_gone_when_both_hosts_were_looked_at_again() {
    const OTHER: HostId = HostId(2);
    let now = Timestamp::UNIX_EPOCH;
    let departure = Departure::at_once(Cause::Lease, now, SignedDuration::ZERO);
    let staying = record(InstanceStatus::Active, 1);
    let with = |moves_to, version| {
        let mut leaving = record(InstanceStatus::Active, version);
        leaving.instance.kind = InstanceKind::Preemptible;
        leaving.instance.departure = Some(Departure { moves_to, ..departure });
        leaving
    };
    // Either the move is observed, or it is decided and withdrawn before the next look.
    for (moving_to, decided) in [(Some(OTHER), None), (None, Some(OTHER))] {
        let mut progress = Progress::default();
        let first = begin(&mut progress);
        let guest = Guest { moving_to, ..Guest::new(GUEST, GuestOwner::Preemptible) };
        let host = ObservedHost { guests: vec![guest], ..ObservedHost::free() };
        let seen = Observed { hosts: [(HOST, host)].into(), ..Observed::default() };
        progress.saw(&first, seen, |_| true, now);
        assert!(!gone(&mut progress, &staying));
        assert!(!gone(&mut progress, &with(decided, 2)));
        let leaving = with(None, 3);
        let second = progress.begin_look(false, [HOST].into(), (now, now));
        end(&mut progress, &second, &[]);
        assert!(!gone(&mut progress, &leaving));
        assert_eq!(progress.hosts_to_look_at(), [HOST, OTHER].into());
        let third = progress.begin_look(false, [HOST].into(), (now, now));
        end(&mut progress, &third, &[]);
        assert!(!gone(&mut progress, &leaving), "it may have arrived");
        let fourth = progress.begin_look(false, [HOST, OTHER].into(), (now, now));
        end(&mut progress, &fourth, &[]);
        assert!(gone(&mut progress, &leaving));
    }
}
