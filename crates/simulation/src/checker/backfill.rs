//! Preemptible instances on hosts of leases (PRE-11): only by consent, only as long as the lease doesn't use
//! the host, and without needless preemption.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use leases::host::Health;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::{Cause, InstanceStatus};
use leases::lease::Lease;
use leases::plan::{GuestOwner, ObservedHost};
use leases::status::LeaseStatus;
use store::Snapshot;

use crate::verdict::Verdict;

/// Time that calls and deletion take in addition to a guest's notice, once the service has noticed that the
/// guest must leave.
pub(super) const LEAVING_TAKES: SignedDuration = SignedDuration::from_mins(15);

/// Tracks consent, use of hosts and departures from check to check.
#[derive(Debug, Default)]
pub(super) struct BackfillWatch {
    /// Leases that consented to preemptible instances at some time.
    consented: BTreeSet<LeaseId>,
    /// Leases that withdrew their consent.
    withdrawn: BTreeSet<LeaseId>,
    /// Hosts that leases used at some time.
    used: BTreeSet<(HostId, LeaseId)>,
    /// Instances that have run on hosts of leases.
    pub(super) ran: BTreeSet<GuestId>,
    /// Instances that were asked to leave because the lease itself needed the host.
    pub(super) cleared: BTreeSet<GuestId>,
    /// Guests that must leave, and since when.
    unwelcome: BTreeMap<GuestId, Timestamp>,
    /// Maximum time until the service notices an unwelcome guest, if nothing goes wrong. `None` if anything
    /// can.
    pub(super) noticed_within: Option<SignedDuration>,
    /// An injected fault suspends the deadline until then.
    pub(super) disturbed_until: Timestamp,
}

impl BackfillWatch {
    /// Follows the records, and checks that no instance was asked to leave a host without need.
    pub fn follow(&mut self, contents: &Snapshot) -> Verdict {
        for lease in contents.leases.iter().map(|record| &record.lease) {
            if lease.backfill {
                self.consented.insert(lease.id);
            } else if self.consented.contains(&lease.id) {
                self.withdrawn.insert(lease.id);
            }
        }
        let instances = contents.instances.iter().map(|record| &record.instance);
        let in_leases =
            instances.clone().filter_map(|instance| Some((instance.host, instance.kind.lease()?)));
        self.used.extend(in_leases);
        for instance in instances {
            let Some(lease) = instance.backfills else { continue };
            if instance.status == InstanceStatus::Active {
                self.ran.insert(instance.id);
            }
            if instance.departure.is_none_or(|departure| departure.cause != Cause::Holder) {
                continue;
            }
            self.cleared.insert(instance.id);
            if !self.withdrawn.contains(&lease) && !self.used.contains(&(instance.host, lease)) {
                return Err(format!(
                    "{instance:?} is asked to leave for a lease that does not need its place"
                ));
            }
        }
        Ok(())
    }

    /// Checks one host of a lease, as observed.
    pub fn check(
        &mut self,
        contents: &Snapshot,
        (host, seen): (HostId, &ObservedHost),
        holder: &Lease,
        now: Timestamp,
    ) -> Verdict {
        if seen.health == Health::Failed {
            return Ok(());
        }
        let lease = holder.id;
        let mut in_use = contents.instances.iter().any(|record| {
            let instance = &record.instance;
            instance.kind.lease() == Some(lease) && instance.host == host && instance.needs_place()
        });
        if seen.guests.iter().any(|guest| guest.owner == GuestOwner::Lease(lease)) {
            self.used.insert((host, lease));
            in_use = true;
        }
        let active = holder.status == LeaseStatus::Active && now < holder.window.end();
        let unwelcome = active && (in_use || !holder.backfill);
        for guest in seen.guests.iter().filter(|guest| guest.owner != GuestOwner::Lease(lease)) {
            let known = contents.instances.iter().find(|record| record.instance.id == guest.id);
            let by_consent = known.is_some_and(|record| record.instance.backfills == Some(lease))
                && guest.owner == GuestOwner::Preemptible
                && self.consented.contains(&lease);
            if !by_consent {
                return Err(format!(
                    "{guest:?} runs on host {host} of lease {lease}; on record is {known:?}"
                ));
            }
            if !unwelcome {
                self.unwelcome.remove(&guest.id);
                continue;
            }
            let since = (*self.unwelcome.entry(guest.id).or_insert(now)).max(self.disturbed_until);
            let notice = known
                .and_then(|record| record.instance.class.as_ref())
                .map(leases::preemption::Class::notice);
            if let Some(noticed_within) = self.noticed_within
                && now.duration_since(since) > noticed_within + notice.unwrap_or_default() + LEAVING_TAKES
            {
                return Err(format!("{guest:?} is still on host {host} of lease {lease}, since {since}"));
            }
        }
        Ok(())
    }
}
