//! Invariants that must hold after any combination of faults. They are checked against the log of hooks and
//! the notifications, not against the services' own view at the end.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;

use crate::leasing::date::Minute;
use crate::leasing::hooks::{Log, Note};
use crate::leasing::http::{Caller, list, text};
use crate::leasing::span::{Millis, Span};

/// Number of notifications per request.
const PAGE: usize = 1000;

/// A service that was killed. Hooks that it had called kept running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    pub service: String,
    /// From the kill until the service answered again. A hook that it called just before can log its start
    /// when the service is already dead, and other services can act on the same host right away.
    pub dead: Span,
}

/// Checks that every host is taken back before another lease gets it, and that no two calls for a host run at
/// once. Returns the lease that holds each host at the end.
///
/// Faults allow three exceptions. Hooks of a killed service keep running, so another service can repeat them
/// concurrently. A call that was broken off counts as not done, and another call must do its work. And a
/// service records a handover before it calls the hook; if it is killed between the two, another service
/// takes back a host that was never handed over.
pub fn hosts_change_hands_in_turn(log: &Log, killed: &[Killed]) -> Result<BTreeMap<String, String>> {
    let mut hosts: BTreeMap<&str, Host<'_>> = BTreeMap::new();
    for note in log.notes.iter().filter(|note| note.host != "-") {
        let host = hosts.entry(&note.host).or_default();
        host.goes_on(note, killed, &log.broken_off).with_context(|| history(log, &note.host))?;
    }
    let held = hosts.into_iter().filter_map(|(name, host)| {
        let lease = host.lease.filter(|_| !host.taken_back)?;
        Some((name.to_owned(), lease.to_owned()))
    });
    Ok(held.collect())
}

/// Last log entries of a host, for error messages.
fn history(log: &Log, host: &str) -> String {
    const SHOWN: usize = 12;
    let notes: Vec<String> =
        log.notes.iter().filter(|note| note.host == host).map(|note| format!("{note:?}")).collect();
    format!("{host}:\n{}", notes[notes.len().saturating_sub(SHOWN)..].join("\n"))
}

/// State of a host after a prefix of the log.
#[derive(Debug, Default)]
struct Host<'a> {
    /// Lease of the last handover, even if that hasn't ended.
    lease: Option<&'a str>,
    /// Whether the host has been taken back completely since.
    taken_back: bool,
    /// Calls that haven't ended.
    running: Vec<&'a Note>,
    /// Time of its last entry.
    noted_at_millis: i64,
}

impl<'a> Host<'a> {
    fn goes_on(&mut self, note: &'a Note, killed: &[Killed], broken_off: &[Note]) -> Result<()> {
        let of_the_dead = |call: &&Note| {
            let between = |dead: Span| call.at_millis <= dead.to.0 && dead.from.0 <= note.at_millis;
            killed.iter().any(|killed| killed.service == call.service && between(killed.dead))
        };
        let before = std::mem::replace(&mut self.noted_at_millis, note.at_millis);
        if note.ends {
            let call = self.running.iter().position(|call| note.is_of(call));
            let call = self.running.remove(call.with_context(|| format!("it never began: {note:?}"))?);
            // A call that ends after a newer one has started says nothing about the current state.
            let last = self.lease == Some(&call.lease) && self.running.iter().all(of_the_dead);
            self.taken_back |= note.moment == "on_release" && last;
            return Ok(());
        }
        // Calls that were broken off have ended before any later call.
        self.running.retain(|call| !broken_off.contains(call));
        if let Some(other) = self.running.iter().find(|call| !of_the_dead(call)) {
            bail!("two calls for one host at once: {other:?} and {note:?}");
        }
        let same = self.lease == Some(note.lease.as_str());
        let free = self.lease.is_none() || self.taken_back;
        match note.moment.as_str() {
            "on_hold" => {
                ensure!(free || same, "the host is handed over while {:?} has it: {note:?}", self.lease);
                self.lease = Some(&note.lease);
                self.taken_back = false;
            }
            "on_release" => {
                let dead =
                    |killed: &Killed| before <= killed.dead.to.0 && killed.dead.from.0 <= note.at_millis;
                let never_called = free && killed.iter().any(dead);
                ensure!(same || never_called, "the host is taken back from {:?}: {note:?}", self.lease);
            }
            _ => {}
        }
        self.running.push(note);
        Ok(())
    }
}

/// Delays of lease starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    pub leases: usize,
    /// Longest delay without an outage, and longest delay with one.
    pub latest_in_peace_millis: i64,
    pub latest_millis: i64,
}

impl fmt::Display for Starts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |millis: i64| millis as f64 / 1000.0;
        let (peace, outage) = (seconds(self.latest_in_peace_millis), seconds(self.latest_millis));
        write!(
            f,
            "{} leases began, the latest {peace:.1} s late, or {outage:.1} s with an outage",
            self.leases
        )
    }
}

/// Checks that no lease started later than the margin and the outages allow.
///
/// Nothing starts during an outage. Retries double their delay, beginning with a second, so a service can
/// notice the end of an outage only after as long again. An outage ends when everything works again, as seen
/// by a client of every service. Outages don't overlap.
pub fn leases_begin_in_time(told: &[Value], outages: &[Span], margin_millis: i64) -> Result<Starts> {
    let mut due: BTreeMap<&str, Millis> = BTreeMap::new();
    let mut starts = Starts::default();
    for told in told {
        let (lease, at) = (text(told, "lease_id")?, instant(told)?);
        match text(told, "event_type")? {
            "lease.create" => {
                let start = Minute::read(text(&told["payload"], "start_date")?)?;
                due.insert(lease, at.max(Millis(start.instant().as_millisecond())));
            }
            "lease.event.start_lease" => {
                let due = *due.get(lease).with_context(|| format!("{lease} was never made"))?;
                let late = at.since(due);
                let waited = Span { from: due, to: at };
                let out: i64 = outages.iter().map(|outage| outage.in_common(waited)).sum();
                let allowed = margin_millis + if out > 0 { 2 * out + 1000 } else { 0 };
                ensure!(
                    late <= allowed,
                    "{lease} began {late} ms late, with outages of {out} ms in that time"
                );
                starts.leases += 1;
                let latest =
                    if out > 0 { &mut starts.latest_millis } else { &mut starts.latest_in_peace_millis };
                *latest = late.max(*latest);
            }
            _ => {}
        }
    }
    Ok(starts)
}

fn instant(told: &Value) -> Result<Millis> {
    let at: Timestamp = text(told, "timestamp")?.parse().context("no time")?;
    Ok(Millis(at.as_millisecond()))
}

/// All notifications, in their order.
pub fn told(caller: &Caller) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut last = 0;
    loop {
        let answer = caller.get(&format!("/v1/notifications?after={last}&limit={PAGE}"))?.expect(200)?;
        last = answer["last"].as_u64().context("no last")?;
        let page = list(answer, "notifications")?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Time, step, call, service, moment without `on_`, and lease.
    type Line = (i64, &'static str, u32, &'static str, &'static str, &'static str);

    fn log(lines: &[Line]) -> Log {
        let note = |&(at_millis, step, call, service, moment, lease): &Line| Note {
            at_millis,
            ends: step == "ends",
            call,
            service: service.to_owned(),
            moment: format!("on_{moment}"),
            host: "h1".to_owned(),
            lease: lease.to_owned(),
        };
        Log { notes: lines.iter().map(note).collect(), ..Log::default() }
    }

    const HANDED_TO_A: [Line; 2] =
        [(10, "begins", 1, "one", "hold", "A"), (20, "ends", 1, "one", "hold", "A")];

    #[test]
    fn a_host_that_is_taken_back_may_go_to_the_next() {
        let mut lines = HANDED_TO_A.to_vec();
        lines.extend([(30, "begins", 2, "two", "release", "A"), (40, "ends", 2, "two", "release", "A")]);
        assert!(hosts_change_hands_in_turn(&log(&lines), &[]).unwrap().is_empty());
        lines.extend([(50, "begins", 3, "one", "hold", "B"), (60, "ends", 3, "one", "hold", "B")]);
        assert_eq!(hosts_change_hands_in_turn(&log(&lines), &[]).unwrap()["h1"], "B");
    }

    #[test]
    fn a_host_that_somebody_has_may_not_go_to_another() {
        let mut lines = HANDED_TO_A.to_vec();
        lines.push((30, "begins", 2, "two", "hold", "B"));
        let error = format!("{:#}", hosts_change_hands_in_turn(&log(&lines), &[]).unwrap_err());
        assert!(error.contains("while Some(\"A\") has it"), "{error}");
        lines[2] = (30, "begins", 2, "two", "release", "B");
        assert!(hosts_change_hands_in_turn(&log(&lines), &[]).is_err());
    }

    #[test]
    fn what_a_killed_service_was_about_to_hand_over_may_be_taken_back() {
        let killed = |from, to| {
            [Killed { service: "one".to_owned(), dead: Span { from: Millis(from), to: Millis(to) } }]
        };
        let released = [(50, "begins", 1, "two", "release", "A"), (60, "ends", 1, "two", "release", "A")];
        assert!(hosts_change_hands_in_turn(&log(&released), &killed(40, 45)).unwrap().is_empty());
        assert!(hosts_change_hands_in_turn(&log(&released), &[]).is_err());
        assert!(hosts_change_hands_in_turn(&log(&released), &killed(55, 58)).is_err());
        // Not allowed if another lease has the host, or if it was taken back after the kill.
        let held = [(10, "begins", 2, "two", "hold", "B"), (20, "ends", 2, "two", "hold", "B")];
        let lines = [&held[..], &released[..]].concat();
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed(40, 45)).is_err());
        let taken_back = [(46, "begins", 3, "two", "release", "B"), (48, "ends", 3, "two", "release", "B")];
        let lines = [&held[..], &taken_back[..], &released[..]].concat();
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed(40, 45)).is_err());
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed(40, 49)).is_ok());
    }

    #[test]
    fn two_calls_at_once_are_one_too_many_unless_the_first_service_was_killed() {
        let lines = [
            (10, "begins", 1, "one", "hold", "A"),
            (15, "begins", 2, "two", "hold", "A"),
            (20, "ends", 1, "one", "hold", "A"),
            (25, "ends", 2, "two", "hold", "A"),
        ];
        assert!(hosts_change_hands_in_turn(&log(&lines), &[]).is_err());
        let killed = |service: &str, from, to| {
            [Killed { service: service.to_owned(), dead: Span { from: Millis(from), to: Millis(to) } }]
        };
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed("two", 12, 13)).is_err());
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed("one", 8, 9)).is_err());
        assert!(hosts_change_hands_in_turn(&log(&lines), &killed("one", 16, 30)).is_err());
        // The hook was called before the kill, or logged its start after it; and the second call started
        // before the service was restarted, or after.
        for (from, to) in [(12, 13), (8, 13), (12, 30), (8, 30)] {
            assert_eq!(
                hosts_change_hands_in_turn(&log(&lines), &killed("one", from, to)).unwrap()["h1"],
                "A"
            );
        }
    }

    #[test]
    fn what_was_broken_off_has_to_be_done_by_another_call() {
        let mut lines = HANDED_TO_A.to_vec();
        lines.push((30, "begins", 2, "two", "release", "A"));
        let judged = |lines: &[Line], broken_off: bool| {
            let mut log = log(lines);
            log.broken_off.extend(broken_off.then(|| log.notes[2].clone()));
            hosts_change_hands_in_turn(&log, &[])
        };
        assert_eq!(judged(&lines, true).unwrap()["h1"], "A", "nobody has taken it back yet");
        let handed_on = (40, "begins", 3, "one", "hold", "B");
        assert!(judged(&[&lines[..], &[handed_on]].concat(), true).is_err());
        lines.extend([(40, "begins", 3, "one", "release", "A"), (50, "ends", 3, "one", "release", "A")]);
        assert!(judged(&lines, false).is_err(), "two calls at once");
        assert!(judged(&lines, true).unwrap().is_empty());
        lines.push((60, "begins", 4, "one", "hold", "B"));
        assert_eq!(judged(&lines, true).unwrap()["h1"], "B");
    }

    #[test]
    fn a_lease_may_be_late_by_the_margin_and_what_an_outage_accounts_for() {
        let told = |event: &str, timestamp: &str| {
            json!({"lease_id": "A", "event_type": event, "timestamp": timestamp,
                   "payload": {"start_date": "2030-01-01T10:00:00.000000"}})
        };
        let told = [
            told("lease.create", "2030-01-01T09:59:00Z"),
            told("lease.event.start_lease", "2030-01-01T10:00:08Z"),
        ];
        let due = 1_893_492_000_000;
        let outage = Span { from: Millis(due - 5000), to: Millis(due + 1000) };
        assert_eq!(leases_begin_in_time(&told, &[], 8000).unwrap().latest_in_peace_millis, 8000);
        assert!(leases_begin_in_time(&told, &[], 7999).is_err());
        assert_eq!(leases_begin_in_time(&told, &[outage], 5000).unwrap().latest_millis, 8000);
        assert!(leases_begin_in_time(&told, &[outage], 4999).is_err());
    }
}
