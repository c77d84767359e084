//! When instances are preempted because of their lifetime or for a lease, whichever is earlier (PRE).

use jiff::Timestamp;
use leases::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::PlanRules;
use leases::preemption::Class;

/// When a preemptible guest of that class that runs since then is preempted because of its lifetime, if that is limited.
pub(crate) fn expiry(
    rules: &PlanRules,
    launched_at: Option<Timestamp>,
    class: Option<&Class>,
) -> Option<Departure> {
    let gone_by = rules.lifetime_ends_at(launched_at)?;
    let asked_at = gone_by.checked_sub(rules.notice(class)).unwrap_or(Timestamp::MIN);
    Some(Departure { asked_at, gone_by, cause: Cause::Lifetime, moves_to: None })
}

/// When an instance is preempted because of its lifetime, if that is limited and it runs.
pub(crate) fn expiry_of(rules: &PlanRules, instance: &Instance) -> Option<Departure> {
    let runs = instance.kind == InstanceKind::Preemptible && instance.status == InstanceStatus::Active;
    expiry(rules, instance.launched_at.filter(|_| runs), instance.class.as_ref())
}

/// When an instance is preempted, as far as is known: for a lease, or because of its lifetime, whichever is earlier.
pub(crate) fn known_departure(rules: &PlanRules, instance: &Instance) -> Option<Departure> {
    if instance.leaves_anyway() {
        return instance.departure;
    }
    let known = instance.departure.into_iter().chain(expiry_of(rules, instance));
    known.min_by_key(|departure| departure.asked_at)
}
