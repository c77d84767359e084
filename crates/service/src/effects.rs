//! Effects of the loop's changes once they are committed: log lines, counters, and telling the external
//! service about leases that end.

use std::sync::Arc;

use jiff::Timestamp;
use leases::energy::Alarm;
use leases::host::Host;
use leases::lease::Lease;
use leases::reason::for_operator;
use leases::status::{EventStatus, LeaseStatus};
use store::{HostRecord, LeaseRecord};

use crate::entries::Effect;
use crate::leasing::Leases;
use crate::service::Service;

/// Carries out the effect of a committed change.
pub(crate) fn carry_out(effect: Effect, service: &Service) {
    match effect {
        Effect::Lease { before, after: Some(after), at } => lease_changed(service, &before, &after, at),
        Effect::Lease { before, after: None, .. } => {
            tracing::info!(lease = %before.lease.id, "deleted lease removed");
        }
        Effect::LeaseRepacked(lease) => tracing::info!(%lease, "lease repacked"),
        Effect::HuntReplanned(lease) => tracing::info!(%lease, "hunt replanned"),
        Effect::MovesWithdrawn(lease) => tracing::info!(%lease, "moves to leased hosts withdrawn"),
        Effect::Instance { record, preempted } => {
            tracing::info!(?record, "instance status changed");
            service.progress().preempted += u64::from(preempted);
        }
        Effect::PreemptionTime(instance) => tracing::info!(%instance, "preemption time changed"),
        Effect::InstanceRestarts(instance) => tracing::info!(%instance, "preempted instance restarted"),
        Effect::InstanceRelocates(instance) => {
            tracing::info!(%instance, "preemptible instance relocation changed");
        }
        Effect::GuestResumed(guest) => {
            service.progress().resumed.remove(&guest);
            tracing::info!(%guest, "guest resumed");
        }
        Effect::HostSeen { before, health } => {
            if let Some(health) = health {
                let Host { id: host, name, .. } = &before.host;
                tracing::info!(%host, name, ?health, "host health changed");
            }
        }
        Effect::HostPower { before, after, alarm } => power_changed(service, &before, &after, alarm),
    }
}

fn lease_changed(service: &Service, before: &Arc<LeaseRecord>, after: &Lease, at: Timestamp) {
    let (record, before, id) = (before, &before.lease, after.id);
    if before.reason != after.reason
        && let Some(reason) = &after.reason
    {
        tracing::warn!(lease = %id, reason = for_operator(reason), "lease blocked");
    }
    if before.status == after.status {
        if before.window.start() != after.window.start() {
            let (from, to) = (before.window.start(), after.window.start());
            tracing::info!(lease = %id, %from, %to, "waiting lease advanced");
        }
        return;
    }
    tracing::info!(lease = %id, from = before.status.name(), to = after.status.name(), "lease status changed");
    if after.status == LeaseStatus::Active {
        let delay = at.duration_since(after.window.start()).as_millis();
        service.progress().last_start_delay_ms = u64::try_from(delay).unwrap_or(0);
    }
    let ends = before.events.end == EventStatus::Undone && after.events.end != EventStatus::Undone;
    // A lease that couldn't start immediately. No client asked for its deletion, so its end was not reported
    // yet.
    let undone = after.status == LeaseStatus::Deleting;
    if undone || after.status == LeaseStatus::Terminating {
        service.progress().look_at_end(before);
    }
    if undone || ends {
        Leases::of(service).tell_end(record);
    }
}

fn power_changed(service: &Service, before: &HostRecord, after: &Host, alarm: Option<Alarm>) {
    let (host, name) = (after.id, &after.name);
    let (from, to) = (before.host.power.state.name(), after.power.state.name());
    tracing::info!(%host, name, from, to, "host power changed");
    match alarm {
        Some(alarm @ Alarm::BootFailed) => {
            service.progress().boots_failed += 1;
            tracing::error!(%host, name, %alarm, "host failed");
        }
        Some(alarm) => tracing::warn!(%host, name, %alarm, "host power unexpected"),
        None => {}
    }
}
