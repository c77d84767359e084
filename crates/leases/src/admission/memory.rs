//! Which hosts meet which expressions, for as long as one decision takes: it asks each host once, however many starts,
//! numbers or pools it tries.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Admission;
use crate::host::Host;
use crate::ids::HostId;
use crate::requirement::Requirement;

/// Expressions that cost less than this are asked again: to remember what they said would take as long.
const WORTH_IT: u64 = 16;

/// What hosts said. Copies of an expression are the same one.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<usize, Answers>>);

#[derive(Debug)]
struct Answers {
    /// It is kept, so that no other expression comes to be where it is.
    _asked: Requirement,
    of_hosts: HashMap<HostId, bool>,
}

impl Memory {
    fn meets(
        &self,
        requirement: &Requirement,
        place: usize,
        host: &Host,
        ask: impl FnOnce() -> bool,
    ) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Answers { _asked: requirement.clone(), of_hosts: HashMap::new() };
        let answers = known.entry(place).or_insert_with(new);
        *answers.of_hosts.entry(host.id).or_insert_with(ask)
    }
}

impl Admission<'_> {
    /// Whether the host is as required. It is asked once in a decision that [remembers](Self::remembering).
    pub(super) fn meets(&self, requirement: &Requirement, host: &Host) -> bool {
        let Some(place) = requirement.identity() else { return true };
        let ask = || self.budget.spend(requirement.work()) && requirement.matches(host);
        match self.memory.filter(|_| requirement.work() >= WORTH_IT) {
            Some(memory) => memory.meets(requirement, place, host, ask),
            None => ask(),
        }
    }

    /// Decides while what hosts are like is remembered. Inside of another such decision it is remembered for all of it.
    pub(super) fn remembering<T>(&self, decide: impl FnOnce(Admission<'_>) -> T) -> T {
        if self.memory.is_some() {
            return decide(*self);
        }
        let memory = Memory::default();
        decide(Admission { memory: Some(&memory), ..*self })
    }
}
