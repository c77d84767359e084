//! Records made from sequences of looks and pauses.

use super::*;
use crate::testing::{at, window};

const HOST: HostId = HostId(1);
const OWN: GuestId = GuestId(7);
const OTHER: GuestId = GuestId(8);
/// Looks are a minute apart.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(2);
const MOST: usize = 1000;

/// A watch with its records in a store.
#[derive(Default)]
struct Records {
    watch: Watch,
    intervals: Vec<Interval>,
    seen_until: Option<Timestamp>,
    written: usize,
}

impl Records {
    fn look(&mut self, minute: i64, seen: impl Into<Option<Seen>>) {
        self.watch.note(HOST, window(minute, minute), seen.into(), LONGEST_PAUSE);
        self.record();
    }

    fn record(&mut self) {
        let Some(changes) = self.watch.take_changes() else { return };
        self.written += 1;
        for closed in changes.closed {
            let mut open = self.intervals.iter_mut().filter(|interval| interval.end.is_none());
            let same = open.find(|interval| {
                (interval.host, interval.lease, &interval.fact) == (closed.host, closed.lease, &closed.fact)
            });
            same.expect("it is open").end = closed.end;
        }
        self.intervals.extend(changes.opened);
        self.seen_until = changes.seen_until.or(self.seen_until);
    }

    fn restart(&mut self) {
        self.restart_at(Timestamp::MAX);
    }

    fn restart_at(&mut self, now: Timestamp) {
        let open = self.intervals.iter().filter(|interval| interval.end.is_none()).cloned();
        self.watch = Watch::new(open, self.seen_until, now);
    }

    /// Names of facts, with the minutes at which they begin and end.
    fn facts(&self) -> Vec<(&'static str, i64, Option<i64>)> {
        let minute = |time: Timestamp| time.duration_since(at(0)).as_mins();
        let fact =
            |interval: &Interval| (interval.fact.name(), minute(interval.start), interval.end.map(minute));
        self.intervals.iter().map(fact).collect()
    }
}

fn project(name: &str) -> ProjectId {
    ProjectId(name.into())
}

/// A host of the lease with this fence and these instances.
fn seen_by(lease: u128, fence: Fence, instances: &[GuestId]) -> Seen {
    let instances = instances.iter().map(|id| (*id, (*id == OWN).then(|| project("own"))));
    Seen { lease: LeaseId(lease), project: project("own"), fence, instances: Some(instances.collect()) }
}

fn seen(fence: Fence, instances: &[GuestId]) -> Seen {
    seen_by(1, fence, instances)
}

/// A host that doesn't report instances.
fn silent() -> Seen {
    Seen { instances: None, ..seen(Fence::Held, &[]) }
}

#[test]
fn a_handover_is_recorded_from_the_fence_to_the_release() {
    let mut records = Records::default();
    records.look(0, None);
    records.look(1, seen(Fence::Fenced, &[OTHER]));
    records.look(2, seen(Fence::Fenced, &[]));
    records.look(3, seen(Fence::Verified, &[]));
    records.look(4, seen(Fence::Held, &[]));
    records.look(5, seen(Fence::Held, &[OWN]));
    records.look(6, seen(Fence::Held, &[OWN]));
    records.look(7, seen(Fence::Releasing, &[]));
    records.look(8, None);
    records.look(9, None);
    let facts = [
        ("fenced", 1, Some(2)),
        ("instance", 1, Some(1)),
        ("verified", 3, Some(3)),
        ("held", 4, Some(6)),
        ("instance", 5, Some(6)),
        ("releasing", 7, Some(7)),
        ("released", 8, Some(8)),
    ];
    assert_eq!(records.facts(), facts);
    let begins: Vec<_> = records.intervals.iter().map(|interval| interval.begins).collect();
    assert_eq!(begins, [true, false, false, false, false, false, false]);
    let instances: Vec<_> =
        records.intervals.iter().filter_map(|interval| interval.fact.instance()).collect();
    assert_eq!(instances, [(OTHER, None), (OWN, Some(&project("own")))]);
    assert!(!records.watch.has(HOST));
}

#[test]
fn a_host_goes_from_one_lease_to_the_next() {
    let mut records = Records::default();
    records.look(1, seen_by(1, Fence::Held, &[OWN]));
    records.look(2, seen_by(2, Fence::Held, &[OWN]));
    let facts = [
        ("held", 1, Some(1)),
        ("instance", 1, Some(1)),
        ("released", 2, Some(2)),
        ("held", 2, None),
        ("instance", 2, None),
    ];
    assert_eq!(records.facts(), facts);
    let leases: Vec<_> = records.intervals.iter().map(|interval| interval.lease.0).collect();
    assert_eq!(leases, [1, 1, 1, 2, 2]);
}

#[test]
fn only_changes_are_recorded_and_once_a_minute_the_time_of_the_last_look() {
    let mut records = Records::default();
    for second in 0..=300 {
        let time = at(0) + SignedDuration::from_secs(second);
        let look = Window::starting(time, SignedDuration::ZERO);
        records.watch.note(HOST, look, Some(seen(Fence::Held, &[OWN])), LONGEST_PAUSE);
        records.record();
    }
    assert_eq!(records.facts(), [("held", 0, None), ("instance", 0, None)]);
    assert_eq!((records.written, records.seen_until), (6, Some(at(5))));
    records.watch.check_pauses(at(6), LONGEST_PAUSE, MOST, |_| true);
    records.record();
    assert_eq!(records.written, 6, "no look, no record");
}

#[test]
fn a_long_look_is_no_pause_and_a_long_time_between_looks_is_one() {
    let mut records = Records::default();
    let mut look = |start, end| {
        // A cycle while the look is under way.
        let left = records.watch.check_pauses(at(start), LONGEST_PAUSE, MOST, |_| true);
        assert!(!left);
        records.record();
        records.watch.note(HOST, window(start, end), Some(seen(Fence::Held, &[OWN])), LONGEST_PAUSE);
        records.record();
    };
    look(0, 0);
    look(1, 6);
    look(8, 9);
    look(12, 12);
    let facts = [("held", 0, None), ("instance", 0, None), ("unseen", 9, Some(12))];
    assert_eq!(records.facts(), facts);
}

#[test]
fn records_of_a_host_begin_when_the_first_look_at_it_ends() {
    let mut records = Records::default();
    let mut look = |start, end, seen| {
        records.watch.note(HOST, window(start, end), Some(seen), LONGEST_PAUSE);
        records.record();
    };
    // The host may have been fenced at any time of the look.
    look(0, 5, seen(Fence::Fenced, &[OTHER]));
    look(4, 6, seen(Fence::Verified, &[]));
    look(6, 7, seen(Fence::Held, &[]));
    let facts =
        [("fenced", 5, Some(5)), ("instance", 5, Some(5)), ("verified", 5, Some(6)), ("held", 6, None)];
    assert_eq!(records.facts(), facts);
}

#[test]
fn a_host_that_does_not_report_instances_is_unseen() {
    let mut records = Records::default();
    records.look(1, seen(Fence::Held, &[OWN]));
    records.look(2, silent());
    records.look(3, silent());
    records.look(4, seen(Fence::Held, &[OTHER]));
    let facts = [("held", 1, None), ("instance", 1, Some(1)), ("unseen", 1, Some(4)), ("instance", 4, None)];
    assert_eq!(records.facts(), facts);
    let mut records = Records::default();
    records.look(1, silent());
    records.look(2, None);
    let facts = [("held", 1, Some(1)), ("unseen", 1, Some(2)), ("released", 2, Some(2))];
    assert_eq!(records.facts(), facts);
}

#[test]
fn a_service_that_starts_again_records_that_nobody_looked_meanwhile() {
    let mut records = Records::default();
    for minute in 0..=3 {
        records.look(minute, seen(Fence::Held, &[OWN]));
    }
    records.restart();
    records.look(4, seen(Fence::Held, &[OWN]));
    assert_eq!(records.facts(), [("held", 0, None), ("instance", 0, None)], "it was quick");
    records.restart();
    records.look(14, seen(Fence::Held, &[OTHER]));
    let facts =
        [("held", 0, None), ("instance", 0, Some(4)), ("unseen", 4, Some(14)), ("instance", 14, None)];
    assert_eq!(records.facts(), facts);
    assert!(records.intervals[1..].iter().all(|interval| !interval.begins));
    records.restart();
    records.look(24, None);
    let facts = [
        ("held", 0, Some(14)),
        ("instance", 0, Some(4)),
        ("unseen", 4, Some(14)),
        ("instance", 14, Some(14)),
        ("unseen", 14, Some(24)),
        ("released", 24, Some(24)),
    ];
    assert_eq!(records.facts(), facts);
}

/// Looks at other hosts continue, so the recorded time of the last look isn't that of this host.
#[test]
fn a_host_that_is_missed_by_looks_is_unseen_also_after_a_restart() {
    const BESIDE: HostId = HostId(2);
    let mut records = Records::default();
    records.look(0, seen(Fence::Held, &[OWN]));
    for minute in 0..=9 {
        records.watch.note(BESIDE, window(minute, minute), Some(seen(Fence::Held, &[])), LONGEST_PAUSE);
        records.watch.check_pauses(at(minute), LONGEST_PAUSE, MOST, |_| true);
        records.record();
    }
    assert_eq!(records.seen_until, Some(at(9)));
    records.restart();
    records.look(10, seen(Fence::Held, &[]));
    let facts = [("held", 0, None), ("instance", 0, Some(0)), ("held", 0, None), ("unseen", 0, Some(10))];
    assert_eq!(records.facts(), facts);
    // A host that was removed from the service isn't tracked any more.
    records.watch.check_pauses(at(11), LONGEST_PAUSE, MOST, |host| host == BESIDE);
    records.record();
    assert!(!records.watch.has(HOST) && records.watch.has(BESIDE));
    assert_eq!(records.facts()[0], ("held", 0, Some(10)));
}

#[test]
fn pauses_are_recorded_in_parts() {
    let mut records = Records::default();
    for host in 1..=5 {
        records.watch.note(HostId(host), window(0, 0), Some(seen(Fence::Held, &[])), LONGEST_PAUSE);
    }
    records.record();
    let known = |host: HostId| host != HostId(1);
    for (left, unseen) in [(true, 1), (true, 3), (false, 4), (false, 4)] {
        assert_eq!(records.watch.check_pauses(at(9), LONGEST_PAUSE, 2, known), left);
        assert!(records.watch.pending() <= 2);
        records.record();
        assert_eq!(records.facts().iter().filter(|(name, ..)| *name == "unseen").count(), unseen);
    }
    assert!(!records.watch.has(HostId(1)));
}

#[test]
fn a_fence_that_is_lost_is_recorded_with_the_instances_seen_without_it() {
    let mut records = Records::default();
    records.look(1, seen(Fence::Held, &[OWN]));
    records.look(2, seen(Fence::Unfenced, &[OWN, OTHER]));
    records.look(3, seen(Fence::Fenced, &[OWN, OTHER]));
    records.look(4, seen(Fence::Held, &[OWN]));
    let facts = [
        ("held", 1, Some(1)),
        ("instance", 1, None),
        ("unfenced", 2, Some(2)),
        ("instance", 2, Some(3)),
        ("fenced", 3, Some(3)),
        ("held", 4, None),
    ];
    assert_eq!(records.facts(), facts);
}

#[test]
fn an_instance_gets_a_new_interval_when_its_project_becomes_known() {
    let with = |name: Option<&str>| Seen {
        instances: Some([(OTHER, name.map(project))].into()),
        ..seen(Fence::Held, &[])
    };
    let mut records = Records::default();
    records.look(1, with(None));
    records.look(2, with(None));
    records.look(3, with(Some("own")));
    // The fleet doesn't report the project every time.
    records.look(4, with(None));
    records.look(5, with(Some("own")));
    let facts = [("held", 1, None), ("instance", 1, Some(2)), ("instance", 3, None)];
    assert_eq!(records.facts(), facts);
    let projects =
        records.intervals[1..].iter().map(|one| one.fact.instance().and_then(|(_, project)| project));
    assert_eq!(projects.collect::<Vec<_>>(), [None, Some(&project("own"))]);
}

#[test]
fn an_interval_that_ends_before_it_is_recorded_is_recorded_with_its_end() {
    let mut records = Records::default();
    records.watch.note(HOST, window(1, 1), Some(seen(Fence::Held, &[OWN])), LONGEST_PAUSE);
    records.watch.note(HOST, window(2, 2), None, LONGEST_PAUSE);
    assert_eq!(records.watch.pending(), 3);
    records.record();
    let facts = [("held", 1, Some(1)), ("instance", 1, Some(1)), ("released", 2, Some(2))];
    assert_eq!(records.facts(), facts);
}

#[test]
fn a_clock_that_is_set_back_makes_no_interval_end_before_its_start() {
    let mut records = Records::default();
    records.look(10, seen(Fence::Verified, &[OTHER]));
    records.look(3, seen(Fence::Held, &[OWN]));
    records.look(4, None);
    let ends = records.intervals.iter().map(|interval| (interval.start, interval.end));
    assert!(ends.clone().all(|(start, end)| end.is_some_and(|end| start <= end)), "{:?}", records.facts());
    assert_eq!(ends.count(), 5);
}

#[test]
fn times_that_a_wrong_clock_recorded_do_not_hide_what_is_seen_later() {
    let mut records = Records::default();
    records.look(100, seen(Fence::Held, &[OWN]));
    records.restart_at(at(3));
    records.look(4, seen(Fence::Held, &[OTHER]));
    records.look(14, seen(Fence::Held, &[OTHER]));
    assert_eq!(records.seen_until, Some(at(14)));
    assert_eq!(records.facts()[2..], [("instance", 4, None), ("unseen", 4, Some(14))]);
}

#[test]
fn facts_are_known_by_their_names() {
    let fences =
        [Fence::Fenced, Fence::Verified, Fence::Held, Fence::Unfenced, Fence::Releasing, Fence::Released];
    let facts = fences.into_iter().map(Fact::Fence);
    for fact in facts.chain([Fact::Unseen, Fact::Instance(OWN, Some(project("own")))]) {
        let again = Fact::from_parts(fact.name(), OWN, Some(project("own")));
        assert_eq!(again, Some(fact));
    }
    assert_eq!(Fact::from_parts("occupied", OWN, None), None);
}

#[test]
fn a_service_that_stops_records_its_last_look() {
    let mut watch = Watch::default();
    let look =
        |second: i64| Window::starting(at(0) + SignedDuration::from_secs(second), SignedDuration::ZERO);
    watch.note(HOST, look(0), Some(seen(Fence::Held, &[])), LONGEST_PAUSE);
    assert!(watch.take_changes().is_some());
    watch.note(HOST, look(20), Some(seen(Fence::Held, &[])), LONGEST_PAUSE);
    assert_eq!(watch.take_changes(), None, "the time of the last look is recorded once a minute");
    let last = watch.take_last_changes().expect("the last look");
    assert_eq!((last.len(), last.seen_until), (0, Some(look(20).end())));
    assert_eq!(Watch::default().take_last_changes(), None);
}
