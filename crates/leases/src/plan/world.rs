//! What a plan is made from.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::observed::Observed;
use super::rules::PlanRules;
use super::step::History;
use crate::host::Inventory;
use crate::ids::{GuestId, HostId};
use crate::instance::Instance;

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// What was seen.
    pub observed: &'a Observed,
    /// What became of earlier steps.
    pub history: &'a History,
    /// Operator settings.
    pub rules: &'a PlanRules,
    /// Instances that are to run, or to be destroyed.
    pub instances: &'a [&'a Instance],
    /// When leases of room start that need the place of others: of preemptible guests that are no instances on record
    /// ([`crate::admission::Elsewhere`]), which are preempted, and of instances that [go
    /// anyway](Instance::goes_anyway).
    pub others_leaving: &'a BTreeMap<GuestId, Timestamp>,
    /// Those instances whose guests are certain to be nowhere: they were looked for on hosts that work.
    pub gone: &'a BTreeSet<GuestId>,
    /// Hosts that are switched off, or on their way there or back: what is to be done to them waits until they are on.
    pub asleep: &'a BTreeSet<HostId>,
    /// Whether the fleet makes something for reservations as a whole ([`super::Prepared`]), without which they get nothing.
    pub prepares: bool,
    /// What operators can do about a guest that the fleet doesn't delete; `{guest}` stands for its identifier.
    pub remedy: Option<&'a str>,
    /// What hosts are called, for what leases say; their numbers are said if absent.
    pub names: Option<&'a Inventory>,
    /// The present, to the second.
    pub now: Timestamp,
}

/// No guests.
static NOBODY: BTreeSet<GuestId> = BTreeSet::new();
/// No guests that leave.
static NOBODY_LEAVES: BTreeMap<GuestId, Timestamp> = BTreeMap::new();
/// No hosts.
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
