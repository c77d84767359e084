//! Records that changed in each revision.

use std::collections::{BTreeSet, VecDeque};

use crate::{Advance, KEPT_REVISIONS, RecordKey, Revision};

/// The last revisions, oldest first, and the records that each changed. There is only one history, so marks
/// are zero.
#[derive(Debug, Default)]
pub(super) struct Log {
    last: u64,
    changed: VecDeque<BTreeSet<RecordKey>>,
}

impl Log {
    pub(super) fn revision(&self) -> Revision {
        Revision { number: self.last, mark: 0 }
    }

    pub(super) fn enter(&mut self, keys: BTreeSet<RecordKey>) -> Advance {
        let from = self.revision();
        self.last += 1;
        self.changed.push_back(keys);
        if self.changed.len() as u64 > KEPT_REVISIONS {
            self.changed.pop_front();
        }
        Advance { from, to: self.revision() }
    }

    /// Records that changed since then; `None` if that isn't known.
    pub(super) fn since(&self, revision: Revision) -> Option<BTreeSet<RecordKey>> {
        let count = self.last.checked_sub(revision.number).filter(|_| revision.mark == 0)?;
        let first = self.changed.len().checked_sub(usize::try_from(count).ok()?)?;
        Some(self.changed.range(first..).flatten().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_ago_is_not_known_any_more() {
        let mut log = Log::default();
        let first = log.revision();
        for _ in 0..KEPT_REVISIONS {
            log.enter(BTreeSet::new());
        }
        assert_eq!(log.since(first), Some(BTreeSet::new()));
        let second = Revision { number: 1, ..first };
        log.enter([RecordKey::Document(crate::DocumentKind::Property.key("p"))].into());
        assert_eq!(log.since(first), None);
        assert_eq!(log.since(second).map(|keys| keys.len()), Some(1));
    }
}
