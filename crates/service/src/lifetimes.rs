//! Departure times of preemptible instances (PRE): for a lease or at the end of their lifetime, whichever is
//! earlier.

use jiff::Timestamp;
use leases::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::PlanRules;
use leases::preemption::Class;

/// Departure of a preemptible guest of `class` at the end of its lifetime. `None` if lifetimes aren't
/// limited. `launched_at` is the time since which it runs.
pub(crate) fn expiry(
    rules: &PlanRules,
    launched_at: Option<Timestamp>,
    class: Option<&Class>,
) -> Option<Departure> {
    let gone_by = rules.lifetime_ends_at(launched_at)?;
    let asked_at = gone_by.checked_sub(rules.notice(class)).unwrap_or(Timestamp::MIN);
    Some(Departure { asked_at, gone_by, cause: Cause::Lifetime, moves_to: None })
}

/// Departure of an instance at the end of its lifetime. `None` if lifetimes aren't limited or it doesn't run
/// as a preemptible instance.
pub(crate) fn expiry_of(rules: &PlanRules, instance: &Instance) -> Option<Departure> {
    let runs = instance.kind == InstanceKind::Preemptible && instance.status == InstanceStatus::Active;
    expiry(rules, instance.launched_at.filter(|_| runs), instance.class.as_ref())
}

/// Earliest known departure of an instance, for a lease or at the end of its lifetime.
pub(crate) fn known_departure(rules: &PlanRules, instance: &Instance) -> Option<Departure> {
    if instance.leaves_anyway() {
        return instance.departure;
    }
    let known = instance.departure.into_iter().chain(expiry_of(rules, instance));
    known.min_by_key(|departure| departure.asked_at)
}
