//! Counts of refused requests.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use leases::shortage::Shortage;

use super::State;
use crate::{REFUSAL_RECORDS, RefusalFilter, RefusalRecord, most_refused};

impl State {
    pub(super) fn add_refusals(&mut self, refusals: &[RefusalRecord]) {
        for RefusalRecord { project, day, shortage, refused } in refusals {
            let sum = self.refusals.entry((project.clone(), *day, shortage.clone())).or_default();
            *sum = sum.saturating_add(*refused);
        }
        let projects: BTreeSet<_> = refusals.iter().map(|record| &record.project).collect();
        for project in projects {
            let mut own: Vec<_> = self.refusals.keys().filter(|(of, ..)| of == project).cloned().collect();
            // Newest first. Shortages of a day stay in their order.
            own.sort_by_key(|(_, day, _)| Reverse(*day));
            for oldest in own.iter().skip(REFUSAL_RECORDS as usize) {
                self.refusals.remove(oldest);
            }
        }
    }

    pub(super) fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Vec<(Shortage, u64)> {
        let selected = self.refusals.iter().filter(|((project, day, _), _)| {
            filter.days.contains(*day) && filter.project.as_ref().is_none_or(|own| own == project)
        });
        most_refused(selected.map(|((_, _, shortage), refused)| (shortage.clone(), *refused)), kinds)
    }

    pub(super) fn refusal_records(&self) -> Vec<RefusalRecord> {
        let all = self.refusals.iter();
        all.map(|((project, day, shortage), refused)| RefusalRecord {
            project: project.clone(),
            day: *day,
            shortage: shortage.clone(),
            refused: *refused,
        })
        .collect()
    }
}
