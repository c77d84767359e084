//! Telling calls that come late from those that count.
//!
//! Drivers of this crate keep this in memory only: their calls end with the process, so none is late after a
//! restart. A file that outlived the store would call everything late that a new store claims.

use std::collections::{BTreeMap, VecDeque};

use leases::ids::{GuestId, HostId};
use leases::plan::Action;

use crate::operation_key::OperationKey;

/// So many operations are remembered. Forgotten ones do no harm as a rule: what comes so late does not apply.
const REMEMBERED: usize = 10_000;

/// The highest fence that was seen of each operation.
#[derive(Clone, Debug, Default)]
pub struct Fences {
    seen: BTreeMap<String, u64>,
    /// Operations in the order in which they were first seen.
    order: VecDeque<String>,
}

impl Fences {
    /// Whether the call is late, that is, one under a newer claim of the same operation was seen.
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

    /// A guest is resumed under that claim: calls under older ones that stop or delete it are late from now on.
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
