//! The claim that a driver's call belongs to, and facts of the lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, ReservationId};
use leases::plan::Action;
use leases::project::{ProjectId, UserId};
use leases::terms::ReservationTerms;
use leases::window::Window;
use serde_json::Value;

/// Facts of a lease for drivers and for the operators of machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    /// Name of the lease, chosen by its owner.
    pub name: String,
    /// Project that owns the lease.
    pub project: ProjectId,
    /// User who created the lease.
    pub user: UserId,
    pub window: Window,
    /// The action's reservation and its terms, if the action has a reservation.
    pub reservation: Option<(ReservationId, ReservationTerms)>,
    /// Fields of that reservation as the API shows them: a JSON object.
    pub properties: Option<Value>,
    /// Time that the images of its guests are made for: [`leases::lease::Lease::images_for`].
    pub images_for: Timestamp,
}

/// The claim that a call belongs to, and its lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationKey {
    /// Name of the operation. Repetitions have the same name.
    pub key: String,
    /// Increases with each claim of the operation: a call with a lower fence than an earlier call is late.
    /// The fence of a key never decreases, even after the service has deleted its records of the operation.
    pub fence: u64,
    /// The lease that the call serves, if any. [`crate::Isolation::hold`] and [`crate::Isolation::grant`]
    /// tell the driver which guests to report as [`leases::plan::GuestOwner::Lease`].
    pub lease: Option<LeaseId>,
    /// Facts of that lease; `None` if the lease is no longer known.
    pub facts: Option<Arc<LeaseFacts>>,
}

impl OperationKey {
    /// The key of an action under a claim. Starting and destroying a guest is one operation, and so is
    /// switching a host on and off: the call with the later claim wins.
    pub fn of(action: Action, fence: u64, lease: Option<LeaseId>) -> Self {
        let key = match action {
            Action::PowerOn(host) | Action::PowerOff(host) => format!("power host {host}"),
            _ => action.instance().map_or_else(|| action.to_string(), |guest| format!("guest {guest}")),
        };
        Self { key, fence, lease, facts: None }
    }

    #[must_use]
    pub fn with_facts(self, facts: Option<LeaseFacts>) -> Self {
        Self { facts: facts.map(Arc::new), ..self }
    }
}
