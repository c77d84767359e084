//! Looks at the fleet: which of them are under way, and what they have seen.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleet::Difference;
use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::HostId;
use leases::plan::Observed;
use leases::window::Window;

use super::{LookUnderWay, Progress};
use crate::execution::dirty_set::DirtySet;
use crate::execution::heard::Heard;
use crate::execution::look::Look;

impl Progress {
    /// Begins a look at some of the hosts named in notifications, if it is time. There is one such look at a
    /// time. Nothing waits for it, since no step has changed these hosts.
    pub fn begin_look_at_heard(&mut self, time: (Timestamp, Timestamp)) -> Option<Look> {
        if self.looks.values().any(|under_way| under_way.heard) {
            return None;
        }
        let hosts = self.heard.take_turn()?;
        let look = self.begin_look(false, hosts, time);
        self.looks.entry(look.number).and_modify(|under_way| under_way.heard = true);
        Some(look)
    }

    /// Begins a look at these hosts and at all addresses. The last argument has its start and its time limit.
    pub fn begin_look(
        &mut self,
        all: bool,
        hosts: BTreeSet<HostId>,
        (began, until): (Timestamp, Timestamp),
    ) -> Look {
        if all {
            // The look covers everything that was reported before.
            self.heard = Heard::default();
        }
        // Objects touched from here on were touched after the look began. Work that waits for one host
        // doesn't wait for a look at all hosts, unless the fleet isn't observed otherwise.
        let dirty = if all && self.sees() { DirtySet::default() } else { self.dirty.take(&hosts) };
        self.enter_look(Look { number: 0, all, for_decisions: false, hosts, began, until }, dirty)
    }

    /// Begins a look at all hosts for decisions, if one waits for it and no look at all hosts is in progress.
    pub fn begin_look_for_decisions(
        &mut self,
        hosts: impl FnOnce() -> BTreeSet<HostId>,
        (began, until): (Timestamp, Timestamp),
    ) -> Option<Look> {
        if !std::mem::take(&mut self.sight.wanted) || self.looks_at_hosts_since().is_some() {
            return None;
        }
        let look = Look { number: 0, all: false, for_decisions: true, hosts: hosts(), began, until };
        // Steps wait for the shorter looks at their own hosts.
        Some(self.enter_look(look, DirtySet::default()))
    }

    fn enter_look(&mut self, look: Look, dirty: DirtySet) -> Look {
        self.looks_begun += 1;
        let look = Look { number: self.looks_begun, ..look };
        self.looks.insert(look.number, LookUnderWay { look: look.clone(), dirty, heard: false });
        look
    }

    /// Start of the latest look in progress that decisions wait for. Looks at the whole fleet can take longer
    /// than a decision waits, so they only count until the first one succeeds.
    pub fn looks_at_hosts_since(&self) -> Option<Timestamp> {
        let looks = self.looks.values().map(|under_way| &under_way.look);
        let is_first_round = |look: &Look| look.all && self.saw_all == 0;
        looks.filter(|look| look.for_decisions || is_first_round(look)).map(|look| look.began).max()
    }

    /// Whether a look at the whole fleet is in progress.
    pub fn looks_at_all(&self) -> bool {
        self.looks.values().any(|under_way| under_way.look.all)
    }

    /// When the first look began that is under way.
    pub fn looks_began(&self) -> Option<Timestamp> {
        self.looks.values().map(|under_way| under_way.look.began).min()
    }

    /// What a look saw that has ended now. Whatever a later one saw already stays, and hosts that are none of ours any more
    /// are left out. Says whether what there is of reservations as a whole is not what it was.
    pub fn saw(
        &mut self,
        look: &Look,
        mut seen: Observed,
        ours: impl Fn(HostId) -> bool,
        now: Timestamp,
    ) -> bool {
        self.looks.remove(&look.number);
        let time = Window::starting(look.began, now.duration_since(look.began));
        let known = Arc::make_mut(&mut self.observed);
        for &host in look.hosts.iter().filter(|host| ours(**host)) {
            let last = self.seen_by.entry(host).or_default();
            if *last > look.number {
                // Which of them saw the host last isn't known, and doesn't matter if both saw the same.
                if known.hosts.get(&host) == seen.hosts.get(&host) {
                    self.sighted.insert(host, time);
                }
                continue;
            }
            *last = look.number;
            self.unrecorded.insert(host);
            self.sighted.insert(host, time);
            match seen.hosts.remove(&host) {
                Some(observed) => {
                    self.taken_on.insert(host);
                    known.hosts.insert(host, observed)
                }
                None => known.hosts.remove(&host),
            };
        }
        let mut changed = false;
        if look.number > self.rest_seen_by {
            self.rest_seen_by = look.number;
            known.floating_ips = seen.floating_ips;
            changed = known.reservations != seen.reservations;
            known.reservations = seen.reservations;
        }
        if look.all {
            self.saw_all = self.saw_all.max(look.number);
            self.lost_sight = false;
            // Hosts added since the look began are missing from its result, and hosts removed since then can
            // be in it.
            known.hosts.retain(|host, _| ours(*host));
            self.seen_by.retain(|host, _| ours(*host));
            self.sighted.retain(|host, _| ours(*host));
            self.taken_on.retain(|host| ours(*host));
            self.dirty.hosts.retain(|host, _| ours(*host));
        }
        changed
    }

    /// Keeps the first difference of each reservation.
    pub fn note_differences(&mut self, differences: Vec<Difference>) {
        let of_reservations =
            differences.into_iter().rev().filter_map(|found| Some((found.reservation?, found)));
        self.differences = of_reservations.collect();
    }

    /// Notes a failed look. Its objects wait for the next one.
    pub fn saw_nothing(&mut self, number: u64) {
        if let Some(under_way) = self.looks.remove(&number) {
            self.dirty.merge(under_way.dirty);
        }
    }

    /// Gives up looks that were aborted, so their time limit has passed. Also gives up looks begun before the
    /// clock was set back, which would be waited for too long. A look lasts at most `longest`.
    pub fn give_up_looks(&mut self, now: Timestamp, longest: SignedDuration) {
        let patience = SignedDuration::from_secs(1);
        let given_up = |look: &&Look| look.until + patience <= now || look.until > now + longest;
        let looks = self.looks.values().map(|under_way| &under_way.look);
        let numbers: Vec<u64> = looks.filter(given_up).map(|look| look.number).collect();
        for number in numbers {
            self.saw_nothing(number);
        }
    }

    /// Marks the health of all hosts as unknown because the fleet was not observed for too long.
    pub fn lose_sight(&mut self) {
        if std::mem::replace(&mut self.lost_sight, true) {
            return;
        }
        for (id, host) in &mut Arc::make_mut(&mut self.observed).hosts {
            host.health = Health::Unknown;
            self.unrecorded.insert(*id);
        }
    }
}
