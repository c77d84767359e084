//! Operations of a service, grouped by subject.
//!
//! Each group is a type that borrows the [`Service`], which doesn't depend on its groups. They share the
//! service's parts and the way in which it decides and commits. A group that needs another one names its
//! type.

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
    /// Audit records.
    pub fn audit(&self) -> Audit<'_> {
        Audit::of(self)
    }

    /// Bookings and gaps by host and time.
    pub fn calendar(&self) -> CalendarView<'_> {
        CalendarView::of(self)
    }

    /// Refused requests, and the capacity that would have satisfied them.
    pub fn capacity(&self) -> Capacity<'_> {
        Capacity::of(self)
    }

    /// Cycles of the loop, and the tasks that they hand out.
    pub fn execution(&self) -> Execution<'_> {
        Execution::of(self)
    }

    /// Flavors for which instance capacity can be reserved.
    pub fn flavors(&self) -> Flavors<'_> {
        Flavors::of(self)
    }

    /// Floating IPs that can be leased.
    pub fn floating_ips(&self) -> FloatingIps<'_> {
        FloatingIps::of(self)
    }

    /// Free pools and their hosts.
    pub fn free_pools(&self) -> FreePools<'_> {
        FreePools::of(self)
    }

    /// Hosts that can be leased, and their properties.
    pub fn hosts(&self) -> Hosts<'_> {
        Hosts::of(self)
    }

    /// Instances started through the service or placed by an external scheduler.
    pub fn instances(&self) -> Instances<'_> {
        Instances::of(self)
    }

    /// Reservations as pools of hosts that grow and shrink.
    pub fn lease_pools(&self) -> LeasePools<'_> {
        LeasePools::of(self)
    }

    pub fn leases(&self) -> Leases<'_> {
        Leases::of(self)
    }

    /// Maintenance of hosts: its own leases, and other hosts for the leases in its way.
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance::of(self)
    }

    /// Stored notifications, and each listener's position in them.
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications::of(self)
    }

    /// Alternatives to refused requests.
    pub fn offers(&self) -> CounterOffers<'_> {
        CounterOffers::of(self)
    }

    pub fn power_saving(&self) -> PowerSaving<'_> {
        PowerSaving::of(self)
    }

    /// Projects whose instances are preemptible unless a request says otherwise.
    pub fn preemptible_projects(&self) -> PreemptibleProjects<'_> {
        PreemptibleProjects::of(self)
    }

    /// Differences between store and fleet, and their remedies.
    pub fn repairs(&self) -> Repairs<'_> {
        Repairs::of(self)
    }

    /// Signing keys of tokens, and revocations.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens::of(self)
    }

    /// Usage of projects and leases, and its price.
    pub fn usage(&self) -> Usage<'_> {
        Usage::of(self)
    }

    /// Requests that wait for capacity.
    pub fn waitlist(&self) -> Waitlist<'_> {
        Waitlist::of(self)
    }

    /// Runs the loop. Returns when `stop` becomes true, after running steps have ended or timed out.
    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        crate::execution::run(self, stop).await;
    }
}
