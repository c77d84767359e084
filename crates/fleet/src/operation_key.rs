//! Under which claim a driver does something, and what it is told of the lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, ReservationId};
use leases::plan::Action;
use leases::project::{ProjectId, UserId};
use leases::terms::ReservationTerms;
use leases::window::Window;
use serde_json::Value;

/// What a driver, and those who run the machines, may need to know of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    /// Its name, which its owner has chosen.
    pub name: String,
    /// The project that has it.
    pub project: ProjectId,
    /// The user who asked for it.
    pub user: UserId,
    /// From when to when it is.
    pub window: Window,
    /// The reservation that an action is about, if it is about one, and what is asked for in it.
    pub reservation: Option<(ReservationId, ReservationTerms)>,
    /// The fields of that reservation as the API shows them: a JSON object.
    pub properties: Option<Value>,
    /// The moment that images of its guests are made for: [`leases::lease::Lease::images_for`].
    pub images_for: Timestamp,
}

/// Under which claim something is done, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationKey {
    /// Names the operation: the same for a repetition of it.
    pub key: String,
    /// Higher for each claim of it: what comes with a lower one than was seen is late. It never falls for one
    /// key, also when all that a service knew of the operation was deleted meanwhile.
    pub fence: u64,
    /// The lease that it is done for, if for one. From [`crate::Isolation::hold`] and [`crate::Isolation::grant`] a driver
    /// learns whose guests it has to report as [`leases::plan::GuestOwner::Lease`].
    pub lease: Option<LeaseId>,
    /// What is known of that lease, if it is known still.
    pub facts: Option<Arc<LeaseFacts>>,
}

impl OperationKey {
    /// The key of an action under that claim. Starting and destroying one guest is the same operation, and so is
    /// switching one host on and off: of two such calls the one of the later claim counts.
    pub fn of(action: Action, fence: u64, lease: Option<LeaseId>) -> Self {
        let key = match action {
            Action::PowerOn(host) | Action::PowerOff(host) => format!("power host {host}"),
            _ => action.instance().map_or_else(|| action.to_string(), |guest| format!("guest {guest}")),
        };
        Self { key, fence, lease, facts: None }
    }

    /// The same, with what is known of the lease.
    #[must_use]
    pub fn with_facts(self, facts: Option<LeaseFacts>) -> Self {
        Self { facts: facts.map(Arc::new), ..self }
    }
}
