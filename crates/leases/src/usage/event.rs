//! Events of leases and instances, in order, for accounting.

use jiff::Timestamp;

use super::PREEMPTIBLE;
use crate::ids::{GuestId, HostId, LeaseId};
use crate::instance::{Instance, InstanceKind, InstanceStatus};
use crate::lease::Lease;
use crate::lease_type::LeaseState;
use crate::project::Owner;
use crate::reason::for_owner;
use crate::status::{EventStatus, LeaseStatus};
use crate::window::Window;

macro_rules! occurrences {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Occurrence { $($(#[$doc])* $variant),* }

        impl Occurrence {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|occurrence| occurrence.name() == name)
            }
        }
    };
}

occurrences! {
    Created "lease.created";
    /// The lease is waiting for its start again.
    Waiting "lease.waiting";
    /// Its hosts are being handed over.
    Starting "lease.starting";
    /// It holds its allocation. Usage counts from here.
    Started "lease.started";
    Updating "lease.updating";
    /// Its start changed.
    Rescheduled "lease.rescheduled";
    /// Its end is later now.
    Extended "lease.extended";
    /// Its end is earlier now.
    Shortened "lease.shortened";
    /// Its hosts, slots or addresses changed.
    Reallocated "lease.reallocated";
    /// It has less than it was promised.
    Degraded "lease.degraded";
    /// It has everything it was promised again.
    Healed "lease.healed";
    /// It missed its deadline to start.
    TimedOut "lease.timed_out";
    Failed "lease.failed";
    /// Its hosts are being taken back.
    Ending "lease.ending";
    Ended "lease.ended";
    /// Its hosts are being taken back before it is forgotten.
    Deleting "lease.deleting";
    /// It was forgotten.
    Deleted "lease.deleted";
    /// An instance was requested.
    InstanceCreated "instance.created";
    /// It runs.
    InstanceStarted "instance.started";
    /// It is on another host now.
    InstanceMoved "instance.moved";
    /// It failed to start.
    InstanceFailed "instance.failed";
    InstanceDeleting "instance.deleting";
    /// It is gone.
    InstanceDeleted "instance.deleted";
    /// It was preempted for a lease and is gone. The event's window is the time it ran.
    InstancePreempted "instance.preempted";
}

/// Something that happened to a lease or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    pub what: Occurrence,
    /// The lease, or the instance's lease.
    pub lease: Option<LeaseId>,
    pub instance: Option<GuestId>,
    pub owner: Owner,
    /// Name of the lease type; [`PREEMPTIBLE`] for a preemptible instance.
    pub lease_type: Option<String>,
    /// Name of the status after the event.
    pub status: String,
    /// Window of the lease after the event; for a preempted instance, the time it ran.
    pub window: Option<Window>,
    /// Hosts of the lease after the event, whole or shared; or the instance's host.
    pub hosts: Vec<HostId>,
    /// The owner's part of the reason, if known.
    pub reason: Option<String>,
}

/// Events in a change of a lease.
pub(super) fn of_lease(before: Option<&Lease>, after: Option<&Lease>, now: Timestamp) -> Vec<Event> {
    let Some(lease) = after.or(before) else { return Vec::new() };
    let hosts = || {
        let all = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        let mut all: Vec<HostId> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let what = match (before, after) {
        (None, _) => vec![Occurrence::Created],
        (Some(_), None) => vec![Occurrence::Deleted],
        (Some(before), Some(after)) => occurrences_of(before, after),
    };
    let event = |what| Event {
        at: now,
        what,
        lease: Some(lease.id),
        instance: None,
        owner: lease.owner.clone(),
        lease_type: Some(lease.lease_type.name().to_owned()),
        status: lease.status.name().to_owned(),
        window: Some(lease.window),
        hosts: hosts(),
        reason: lease.reason.as_deref().map(|reason| for_owner(reason).to_owned()),
    };
    what.into_iter().map(event).collect()
}

fn occurrences_of(before: &Lease, after: &Lease) -> Vec<Occurrence> {
    let mut what = Vec::new();
    let start_fails = before.events.start != EventStatus::Error && after.events.start == EventStatus::Error;
    if start_fails {
        let in_time = after.lease_type.deadline().is_none();
        what.push(if in_time { Occurrence::Failed } else { Occurrence::TimedOut });
    }
    let deleting = after.status == LeaseStatus::Deleting;
    let (was, is) = (before.window, after.window);
    if was.start() != is.start() {
        what.push(Occurrence::Rescheduled);
    }
    // Deletion implies the end, and a new start usually implies a new end.
    if !deleting && (was.start() == is.start() || was.length() != is.length()) && was.end() != is.end() {
        what.push(if was.end() < is.end() { Occurrence::Extended } else { Occurrence::Shortened });
    }
    let pairs = || before.reservations.iter().zip(&after.reservations);
    if before.reservations.len() != after.reservations.len()
        || pairs().any(|(was, is)| was.allocation != is.allocation)
    {
        what.push(Occurrence::Reallocated);
    }
    match (before.degraded(), after.degraded()) {
        (false, true) => what.push(Occurrence::Degraded),
        (true, false) => what.push(Occurrence::Healed),
        _ => {}
    }
    if before.status != after.status {
        let step = match after.status {
            LeaseStatus::Creating | LeaseStatus::Pending => Some(Occurrence::Waiting),
            LeaseStatus::Starting => Some(Occurrence::Starting),
            LeaseStatus::Active => Some(Occurrence::Started),
            LeaseStatus::Updating => Some(Occurrence::Updating),
            LeaseStatus::Terminating => Some(Occurrence::Ending),
            LeaseStatus::Terminated => Some(Occurrence::Ended),
            LeaseStatus::Deleting => Some(Occurrence::Deleting),
            LeaseStatus::Error if start_fails => None,
            LeaseStatus::Error if after.state() == LeaseState::TimedOut => Some(Occurrence::Ended),
            LeaseStatus::Error => Some(Occurrence::Failed),
        };
        what.extend(step);
    } else if before.events.end != EventStatus::Done && after.events.end == EventStatus::Done {
        // A failed lease with nothing left to take back.
        what.push(Occurrence::Ended);
    }
    what
}

/// The event in a change of an instance.
pub(super) fn of_instance(
    before: Option<&Instance>,
    after: Option<&Instance>,
    now: Timestamp,
) -> Option<Event> {
    let instance = after.or(before)?;
    let what = match (before, after) {
        (None, _) => Occurrence::InstanceCreated,
        (Some(before), None) if before.gone_as_preempted(now) => Occurrence::InstancePreempted,
        (Some(_), None) => Occurrence::InstanceDeleted,
        (Some(before), Some(after)) if before.status != after.status => match after.status {
            InstanceStatus::Building | InstanceStatus::Queued => Occurrence::InstanceCreated,
            InstanceStatus::Active => Occurrence::InstanceStarted,
            InstanceStatus::Deleting => Occurrence::InstanceDeleting,
            InstanceStatus::Error => Occurrence::InstanceFailed,
            InstanceStatus::Shelved if before.gone_as_preempted(now) => Occurrence::InstancePreempted,
            InstanceStatus::Shelved => Occurrence::InstanceDeleted,
        },
        (Some(before), Some(after)) if before.host != after.host => Occurrence::InstanceMoved,
        _ => return None,
    };
    Some(Event {
        at: now,
        what,
        lease: instance.kind.lease(),
        instance: Some(instance.id),
        owner: instance.owner.clone(),
        lease_type: (instance.kind == InstanceKind::Preemptible).then(|| PREEMPTIBLE.to_owned()),
        status: instance.status.name().to_owned(),
        // An instance that is kept has no launch time after the change.
        window: before
            .unwrap_or(instance)
            .launched_at
            .filter(|_| what == Occurrence::InstancePreempted)
            .and_then(|launched_at| Window::new(launched_at, now).ok()),
        hosts: vec![instance.host],
        reason: instance.reason.as_deref().map(|reason| for_owner(reason).to_owned()),
    })
}
