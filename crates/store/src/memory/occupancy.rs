//! Occupancy of leased hosts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::occupants::{Changes, Interval};
use leases::project::ProjectId;

use crate::encoding::occupancy::{instance, instance_project};
use crate::write_size::ROW;
use crate::{WriteSize, to_remove};

/// Host, lease, fact and instance. At most one interval of each key is open.
type Key = (HostId, LeaseId, &'static str, u128);

#[derive(Debug, Default)]
pub(super) struct Occupancy {
    intervals: BTreeMap<u64, Interval>,
    open: BTreeMap<Key, u64>,
    last_number: u64,
    pub(super) seen_until: Option<Timestamp>,
}

fn key(interval: &Interval) -> Key {
    (interval.host, interval.lease, interval.fact.name(), instance(&interval.fact))
}

fn bytes(interval: &Interval) -> u64 {
    let texts = [interval.project.0.as_str(), instance_project(&interval.fact).unwrap_or_default()];
    ROW + texts.iter().map(|text| text.len() as u64).sum::<u64>()
}

impl Occupancy {
    pub(super) fn record(&mut self, changes: &Changes) {
        for closed in &changes.closed {
            let number = self.open.remove(&key(closed));
            if let Some(interval) = number.and_then(|number| self.intervals.get_mut(&number)) {
                interval.end = closed.end.map(|end| end.max(interval.start));
            }
        }
        for interval in &changes.opened {
            if interval.end.is_none() && self.open.contains_key(&key(interval)) {
                continue;
            }
            self.last_number += 1;
            if interval.end.is_none() {
                self.open.insert(key(interval), self.last_number);
            }
            self.intervals.insert(self.last_number, interval.clone());
        }
        self.seen_until = changes.seen_until.or(self.seen_until);
    }

    pub(super) fn intervals(&self) -> impl Iterator<Item = (u64, &Interval)> {
        self.intervals.iter().map(|(number, interval)| (*number, interval))
    }

    pub(super) fn open(&self) -> Vec<Interval> {
        let mut numbers: Vec<u64> = self.open.values().copied().collect();
        numbers.sort_unstable();
        numbers.iter().filter_map(|number| self.intervals.get(number).cloned()).collect()
    }

    /// Removes old intervals, and the oldest ones of projects that have more than `most` bytes.
    pub(super) fn prune(&mut self, before: Option<Timestamp>, most: u64, limit: usize) -> bool {
        let is_old = |interval: &Interval| interval.end.zip(before).is_some_and(|(end, before)| end < before);
        let old: Vec<u64> = self
            .intervals()
            .filter(|(_, interval)| is_old(interval))
            .map(|(number, _)| number)
            .take(limit)
            .collect();
        self.intervals.retain(|number, _| old.binary_search(number).is_err());
        let mut sizes: BTreeMap<ProjectId, u64> = BTreeMap::new();
        for (_, interval) in self.intervals() {
            *sizes.entry(interval.project.clone()).or_default() += bytes(interval);
        }
        let mut left = limit;
        for (project, size) in sizes.into_iter().filter(|(_, size)| *size > most) {
            let closed = self.intervals().filter(|(_, one)| one.project == project && one.end.is_some());
            let records: Vec<(u64, u64)> =
                closed.map(|(number, one)| (number, bytes(one))).take(left).collect();
            let part = WriteSize { rows: left as u64, bytes: u64::MAX };
            let removed = to_remove(&records, size - most, part);
            left -= removed.len();
            for (number, _) in removed {
                self.intervals.remove(number);
            }
        }
        old.len() == limit || left == 0
    }
}
