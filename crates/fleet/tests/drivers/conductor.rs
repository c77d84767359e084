//! A minimal loop that runs leases on a fleet: observe, plan, perform.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use fleet::conformance;
use fleet::{About, Fleet, OperationKey, Outcome, perform};
use jiff::Timestamp;
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, EndAction, Lease, NewLease};
use leases::plan::{Action, History, LeaseChange, Observed, PlanRules, World, plan};
use leases::project::{Owner, ProjectId, UserId};
use leases::requirement::Requirement;
use leases::terms::{
    Affinity, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms,
};
use leases::window::Window;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

/// A lease with these reservations. `from` and `to` are in minutes. Reservations are numbered from `10 *
/// number`.
pub(crate) fn lease(number: u128, from: i64, to: i64, given: Vec<(ReservationTerms, Allocation)>) -> Lease {
    let window = Window::new(at(from * 60), at(to * 60)).expect("a window");
    let (asked, given): (Vec<_>, Vec<_>) = given.into_iter().unzip();
    let new = NewLease {
        id: LeaseId(number),
        name: format!("lease {number}"),
        owner: Owner { project: ProjectId("project".to_owned()), user: UserId("user".to_owned()) },
        end_action: EndAction::DeleteGuests,
        reservations: (0..given.len() as u128)
            .map(|position| ReservationId(number * 10 + position))
            .collect(),
    };
    Lease::new(new, Terms::new(window, None, asked).expect("terms"), given, None)
}

/// A reservation of whole hosts.
pub(crate) fn hosts(ids: &[u64]) -> (ReservationTerms, Allocation) {
    let number = ids.len() as u32;
    let terms = HostsTerms::new(number, number).expect("terms");
    (ReservationTerms::Hosts(terms), Allocation::Hosts(ids.iter().copied().map(HostId).collect()))
}

/// A reservation of slots on one host.
pub(crate) fn slots(host: u64, count: u32) -> (ReservationTerms, Allocation) {
    let terms = InstancesTerms {
        size: InstanceSize::new(1, 1024, 0).expect("a size"),
        amount: NonZeroU32::new(count).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    };
    (ReservationTerms::Instances(terms), Allocation::Slots([(HostId(host), count)].into()))
}

/// A reservation of one floating IP.
pub(crate) fn address(id: u128) -> (ReservationTerms, Allocation) {
    let terms = FloatingIpsTerms::new(NetworkId("public".to_owned()), 1, []).expect("terms");
    (ReservationTerms::FloatingIps(terms), Allocation::FloatingIps([FloatingIpId(id)].into()))
}

/// Runs leases on a fleet.
pub(crate) struct Conductor {
    pub(crate) leases: Vec<Lease>,
    pub(crate) rules: PlanRules,
    hosts: BTreeSet<HostId>,
    history: History,
    fences: BTreeMap<Action, u64>,
}

impl Conductor {
    pub(crate) fn new(hosts: impl IntoIterator<Item = HostId>, leases: Vec<Lease>) -> Self {
        Self {
            leases,
            rules: PlanRules::default(),
            hosts: hosts.into_iter().collect(),
            history: History::default(),
            fences: BTreeMap::new(),
        }
    }

    /// Runs one cycle. `None` if the observation failed.
    pub(crate) async fn turn(&mut self, fleet: &dyn Fleet, now: Timestamp) -> Option<Observed> {
        let observed = fleet.observe(&self.hosts, &[]).await.ok()?;
        let world = World::new(&observed, &self.history, &self.rules, now);
        let plan = plan(&self.leases, world);
        for change in &plan.changes {
            match change {
                LeaseChange::Becomes(after) => {
                    self.leases.iter_mut().filter(|lease| lease.id == after.id).for_each(|lease| {
                        lease.clone_from(after);
                    });
                }
                LeaseChange::Forgotten(id) => self.leases.retain(|lease| lease.id != *id),
            }
        }
        for step in plan.due(now) {
            let fence = self.fences.entry(step.action).or_default();
            *fence += 1;
            let key = OperationKey::of(step.action, *fence, step.lease);
            let address = step.action.floating_ip().map(|id| FloatingIp { id, ..conformance::address() });
            let about = About { address: address.as_ref(), ..About::default() };
            match perform(fleet, step.action, about, &key).await {
                Ok(Outcome::Done) => self.history.succeeded(step.action, now),
                Ok(Outcome::Pending) => {}
                Err(error) => self.history.failed(step.action, now, error.to_string()),
            }
        }
        Some(observed)
    }
}
