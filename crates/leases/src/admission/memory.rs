//! Results of expressions on hosts, remembered during one decision. It evaluates each expression once per
//! host, however many starts, numbers or pools it tries.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::host::Host;
use crate::ids::HostId;
use crate::requirement::Requirement;

/// Remembered results.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Results by the address of an expression, which its copies share.
    expressions: Mutex<HashMap<usize, Answers>>,
}

#[derive(Debug)]
struct Answers {
    /// Keeps the expression alive, so that no other one gets the same address.
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
