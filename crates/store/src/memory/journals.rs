//! Expiry of journals, by age and by size.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use leases::project::ProjectId;

use super::State;
use crate::{Journal, JournalSize, Trimmed, WriteSize, to_remove};

impl State {
    pub(super) fn prune(&mut self, before: Timestamp, undelivered: Timestamp, limit: usize) -> bool {
        let told = self.told();
        let mut more = prune(&mut self.notifications, limit, |one| {
            one.at < before && (one.number <= told || one.at < undelivered)
        });
        more |= prune(&mut self.audit, limit, |(_, record)| record.at < before);
        let old = self.requests.iter().filter(|(_, record)| record.at < before).map(|(key, _)| key.clone());
        let old: Vec<_> = old.take(limit).collect();
        more |= old.len() == limit;
        for key in old {
            self.requests.remove(&key);
        }
        more
    }

    /// Number of the last notification that all listeners have received; [`u64::MAX`] without listeners.
    fn told(&self) -> u64 {
        self.delivered.values().copied().min().unwrap_or(u64::MAX)
    }

    pub(super) fn journals(&self) -> Vec<JournalSize> {
        let told = self.notifications.iter().map(|one| &one.content);
        let told = told.map(|one| (Journal::Notifications, &one.project, one.bytes()));
        let audit = self.audit.iter().map(|(_, one)| (one.journal(), &one.project, one.bytes()));
        let mut sums = BTreeMap::<_, (u64, u64)>::new();
        for (journal, project, bytes) in told.chain(audit) {
            let sum = sums.entry((journal, project.clone())).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        let size = |((journal, project), (records, bytes))| JournalSize { journal, project, records, bytes };
        sums.into_iter().map(size).collect()
    }

    pub(super) fn trim(
        &mut self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Trimmed {
        let records: Vec<(u64, u64)> = match journal {
            Journal::Audit => {
                let own = self.audit.iter().filter(|(_, one)| !one.protected && one.project == *project);
                own.map(|(number, one)| (*number, one.bytes())).collect()
            }
            Journal::Notifications => {
                let own = self.notifications.iter().filter(|one| one.content.project == *project);
                own.map(|one| (one.number, one.content.bytes())).collect()
            }
            Journal::ProtectedAudit => Vec::new(),
        };
        let excess = records.iter().map(|(_, bytes)| bytes).sum::<u64>().saturating_sub(most);
        let removed = to_remove(&records, excess, part);
        let Some((last, _)) = removed.last() else { return Trimmed::default() };
        let mut told = u64::MAX;
        if journal == Journal::Audit {
            self.audit.retain(|(number, one)| number > last || one.protected || one.project != *project);
        } else {
            told = self.told();
            self.notifications.retain(|one| one.number > *last || one.content.project != *project);
        }
        Trimmed::of(removed, excess, told)
    }
}

/// Removes the old records among the first `limit`. Returns whether there may be more.
pub(super) fn prune<T>(records: &mut VecDeque<T>, limit: usize, old: impl Fn(&T) -> bool) -> bool {
    let first = records.len().min(limit);
    let kept: Vec<T> = records.drain(..first).filter(|record| !old(record)).collect();
    let all = kept.is_empty() && first == limit;
    for record in kept.into_iter().rev() {
        records.push_front(record);
    }
    all
}
