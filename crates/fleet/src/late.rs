//! Detects late calls.
//!
//! The drivers of this crate keep fences in memory only. Their calls end with the process, so no call is late
//! after a restart. If a file with fences outlived the store, every claim of a new store would be late.

use std::collections::{BTreeMap, VecDeque};

use leases::ids::{GuestId, HostId};
use leases::plan::Action;

use crate::operation_key::OperationKey;

/// Maximum number of remembered operations. Forgetting one is usually harmless: a call that late no longer
/// applies.
const REMEMBERED: usize = 10_000;

/// The highest known fence of each operation.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    seen: BTreeMap<String, u64>,
    /// Operations, oldest first.
    order: VecDeque<String>,
}

impl Fences {
    /// Whether the call is late: there was a call with a newer claim of the same operation.
    pub fn is_late(&mut self, key: &OperationKey) -> bool {
        if let Some(seen) = self.seen.get_mut(&key.key) {
            let late = key.fence < *seen;
            *seen = key.fence.max(*seen);
            return late;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert(key.key.clone(), key.fence);
        self.order.push_back(key.key.clone());
        false
    }

    /// Records that a guest is resumed under this claim, which makes older stop and delete calls late.
    pub fn resume(&mut self, host: HostId, guest: GuestId, key: &OperationKey) {
        for action in [Action::StopGuest(host, guest), Action::DeleteGuest(host, guest)] {
            self.is_late(&OperationKey::of(action, key.fence, key.lease));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str, fence: u64) -> OperationKey {
        OperationKey { key: key.to_owned(), fence, ..OperationKey::default() }
    }

    #[test]
    fn a_repetition_is_not_late_and_a_call_under_an_older_claim_is() {
        let mut fences = Fences::default();
        assert!(!fences.is_late(&key("fence 1", 3)));
        assert!(!fences.is_late(&key("fence 1", 3)));
        assert!(fences.is_late(&key("fence 1", 2)));
        assert!(!fences.is_late(&key("fence 2", 1)));
        assert!(!fences.is_late(&key("fence 1", 4)));
        assert!(fences.is_late(&key("fence 1", 3)));
    }

    #[test]
    fn the_oldest_operations_are_forgotten() {
        let mut fences = Fences::default();
        for number in 0..=REMEMBERED {
            assert!(!fences.is_late(&key(&number.to_string(), 2)));
        }
        assert_eq!((fences.seen.len(), fences.order.len()), (REMEMBERED, REMEMBERED));
        assert!(!fences.is_late(&key("0", 1)));
        assert!(fences.is_late(&key("2", 1)));
    }
}
