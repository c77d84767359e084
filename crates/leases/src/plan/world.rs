//! Input of the planner.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::observed::Observed;
use super::rules::PlanRules;
use super::step::History;
use crate::host::Inventory;
use crate::ids::{GuestId, HostId};
use crate::instance::Instance;

/// Inputs of [`plan`].
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    pub observed: &'a Observed,
    /// Outcome of earlier steps.
    pub history: &'a History,
    pub rules: &'a PlanRules,
    /// Instances that should run or be destroyed.
    pub instances: &'a [&'a Instance],
    /// Guests that occupy a place needed by a slot lease, with the start of that lease: preemptible guests
    /// without an instance on record ([`crate::admission::Elsewhere`]), which are preempted, and instances
    /// that [go anyway](Instance::goes_anyway).
    pub others_leaving: &'a BTreeMap<GuestId, Timestamp>,
    /// Instances without a guest on any host, as a search of working hosts has established.
    pub gone: &'a BTreeSet<GuestId>,
    /// Hosts that are off, or being switched off or on. Their steps wait until they are on.
    pub asleep: &'a BTreeSet<HostId>,
    /// Whether the fleet makes something for reservations as a whole ([`super::Prepared`]). If so, an
    /// unprepared reservation gets nothing.
    pub prepares: bool,
    /// Advice to operators about a guest that the fleet doesn't delete. `{guest}` stands for its identifier.
    pub remedy: Option<&'a str>,
    /// Host names for reasons shown on leases. `None` shows numbers.
    pub names: Option<&'a Inventory>,
    /// The current time, to the second.
    pub now: Timestamp,
}

static NOBODY: BTreeSet<GuestId> = BTreeSet::new();
static NOBODY_LEAVES: BTreeMap<GuestId, Timestamp> = BTreeMap::new();
static NOWHERE: BTreeSet<HostId> = BTreeSet::new();

impl<'a> World<'a> {
    /// A world without instances.
    pub fn new(observed: &'a Observed, history: &'a History, rules: &'a PlanRules, now: Timestamp) -> Self {
        Self {
            observed,
            history,
            rules,
            instances: &[],
            others_leaving: &NOBODY_LEAVES,
            gone: &NOBODY,
            asleep: &NOWHERE,
            prepares: false,
            remedy: None,
            names: None,
            now,
        }
    }
}
