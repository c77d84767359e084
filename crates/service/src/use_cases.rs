//! What a service can be asked for and told, by what it is about.
//!
//! Each is a type of its own that looks down at [`Service`], which knows none of them: what they share is what the service
//! is made of, and how anything is decided and committed. One that needs another names it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::audit::Audit;
use crate::calendar::CalendarView;
use crate::capacity::Capacity;
use crate::drift::Repairs;
use crate::energy::PowerSaving;
use crate::execution::Execution;
use crate::flavors::Flavors;
use crate::floating_ips::FloatingIps;
use crate::free_pools::FreePools;
use crate::hosts::Hosts;
use crate::housekeeping::Maintenance;
use crate::instances::Instances;
use crate::lease_pools::LeasePools;
use crate::leasing::Leases;
use crate::notifications::Notifications;
use crate::offers::CounterOffers;
use crate::preemptible_projects::PreemptibleProjects;
use crate::service::Service;
use crate::tokens::Tokens;
use crate::usage::Usage;
use crate::waitlist::Waitlist;

impl Service {
    /// Who did what.
    pub fn audit(&self) -> Audit<'_> {
        Audit::of(self)
    }

    /// What is booked and what is free, by host and time.
    pub fn calendar(&self) -> CalendarView<'_> {
        CalendarView::of(self)
    }

    /// Refused requests, and how much more capacity would have met them.
    pub fn capacity(&self) -> Capacity<'_> {
        Capacity::of(self)
    }

    /// The cycles of the loop, and the tasks that they hand out.
    pub fn execution(&self) -> Execution<'_> {
        Execution::of(self)
    }

    /// Flavors that instances may be reserved room for.
    pub fn flavors(&self) -> Flavors<'_> {
        Flavors::of(self)
    }

    /// Floating IPs that may be leased.
    pub fn floating_ips(&self) -> FloatingIps<'_> {
        FloatingIps::of(self)
    }

    /// Free pools, and which hosts are in them.
    pub fn free_pools(&self) -> FreePools<'_> {
        FreePools::of(self)
    }

    /// Hosts that may be leased, and their properties.
    pub fn hosts(&self) -> Hosts<'_> {
        Hosts::of(self)
    }

    /// Instances that are started through the service, or placed by an external scheduler.
    pub fn instances(&self) -> Instances<'_> {
        Instances::of(self)
    }

    /// Reservations as pools of hosts that grow and shrink.
    pub fn lease_pools(&self) -> LeasePools<'_> {
        LeasePools::of(self)
    }

    /// Leases: making, changing and deleting them, and questions about them.
    pub fn leases(&self) -> Leases<'_> {
        Leases::of(self)
    }

    /// Maintenance of hosts: its own leases, and other hosts for those that have them.
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance::of(self)
    }

    /// Notifications, and how far listeners have been told.
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications::of(self)
    }

    /// Offers of what is available instead of what was refused.
    pub fn offers(&self) -> CounterOffers<'_> {
        CounterOffers::of(self)
    }

    /// How power is saved.
    pub fn power_saving(&self) -> PowerSaving<'_> {
        PowerSaving::of(self)
    }

    /// Projects whose instances are preemptible unless a request says otherwise.
    pub fn preemptible_projects(&self) -> PreemptibleProjects<'_> {
        PreemptibleProjects::of(self)
    }

    /// Where store and fleet differ, and what can be done about it.
    pub fn repairs(&self) -> Repairs<'_> {
        Repairs::of(self)
    }

    /// Keys that tokens are signed with, and revocations.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens::of(self)
    }

    /// What projects and leases have used, and what is charged for it.
    pub fn usage(&self) -> Usage<'_> {
        Usage::of(self)
    }

    /// Requests that wait until there is enough.
    pub fn waitlist(&self) -> Waitlist<'_> {
        Waitlist::of(self)
    }

    /// The loop: returns when `stop` becomes true, after steps that are running have ended or their time is up.
    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        crate::execution::run(self, stop).await;
    }
}
