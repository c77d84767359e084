//! What hosts are like, for as long as one decision takes: it asks each host once, however many starts, numbers or pools it
//! tries.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::host::Host;
use crate::ids::HostId;
use crate::requirement::Requirement;

/// What hosts said.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Which of them meet an expression. Copies of an expression are the same one.
    expressions: Mutex<HashMap<usize, Answers>>,
}

#[derive(Debug)]
struct Answers {
    /// It is kept, so that no other expression comes to be where it is.
    _asked: Requirement,
    of_hosts: HashMap<HostId, bool>,
}

impl Memory {
    pub(super) fn meets(
        &self,
        requirement: &Requirement,
        place: usize,
        host: &Host,
        ask: impl FnOnce() -> bool,
    ) -> bool {
        let mut known = self.expressions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Answers { _asked: requirement.clone(), of_hosts: HashMap::new() };
        let answers = known.entry(place).or_insert_with(new);
        *answers.of_hosts.entry(host.id).or_insert_with(ask)
    }
}
