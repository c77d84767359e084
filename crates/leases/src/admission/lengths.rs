//! Limits on the length of leases by project, flavor and free pool.
//!
//! Limits for a project or flavor, and the general limit, are checked before hosts are chosen. If a limit
//! depends on the free pool, hosts are chosen only from pools that allow the length.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::{Admission, Refusal, Resource};
use crate::enforcement::EnforcementError;
use crate::filters::HostFilter;
use crate::free_pool::pool_of;
use crate::host::Host;
use crate::lease::{Lease, Reservation};
use crate::project::ProjectId;
use crate::scoped::Scopes;
use crate::status::LeaseStatus;
use crate::terms::ReservationTerms;
use crate::window::Window;

impl Admission<'_> {
    /// Sets how long the lease has its hosts.
    pub(super) fn lasting(self, length: SignedDuration) -> Self {
        Self { length: Some(length), ..self }
    }

    /// The limit of the host's free pool, if the lease is too long for the host, or for the flavor there.
    pub(super) fn too_long(&self, host: &Host, flavor: Option<&str>) -> Option<HostFilter> {
        let enforcement = &self.rules.enforcement;
        let (length, project) = (self.length?, self.project?);
        let scopes = Scopes { flavor, ..of_project(project) };
        if !enforcement.limits_by_pool(scopes) || enforcement.exempt_projects.contains(project) {
            return None;
        }
        let limit = enforcement.length_limit(Scopes { pool: Some(pool_of(host)), ..scopes })?;
        (length > limit.longest).then_some(HostFilter::Length(limit))
    }

    /// The time from now in which the lease has its hosts. Time for moving guests out of its way doesn't
    /// count. For a started lease, the operator's extension window doesn't count either, because extensions
    /// have their own limit then.
    pub(super) fn time_left(&self, lease: &Lease) -> SignedDuration {
        let left = lease.window.since(self.now).length();
        match lease.status {
            LeaseStatus::Pending | LeaseStatus::Starting => {
                left.saturating_sub(lease.hunt.as_ref().map(|hunt| hunt.allowance).unwrap_or_default())
            }
            _ => left.saturating_sub(self.rules.enforcement.extension_window.unwrap_or_default()),
        }
    }

    /// Checks the length of a new lease against limits that don't depend on its hosts.
    pub(super) fn check_length<'t>(
        &self,
        project: &ProjectId,
        window: &Window,
        asked: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> Result<(), EnforcementError> {
        let parts = self.parts(project, asked.into_iter().map(|terms| (terms, None)));
        self.rules.enforcement.check_create(project, parts, window)
    }

    /// Checks a new window of a lease. A started lease keeps its hosts, so the limits of their free pools
    /// count.
    pub(super) fn check_new_length(&self, lease: &Lease, after: &Window) -> Result<(), EnforcementError> {
        let project = &lease.owner.project;
        let has_started = lease.status != LeaseStatus::Pending;
        let parts = lease.reservations.iter().map(|part| (&part.terms, has_started.then_some(part)));
        let parts = self.parts(project, parts);
        self.rules.enforcement.check_update(project, parts, (&lease.window, after), self.now)
    }

    /// The scopes that limits are looked up for. Where a limit depends on the free pool, only reservations that have started
    /// have scopes, those of the pools of their hosts.
    fn parts<'p>(
        &'p self,
        project: &'p ProjectId,
        reservations: impl Iterator<Item = (&'p ReservationTerms, Option<&'p Reservation>)>,
    ) -> Vec<Scopes<'p>> {
        let mut reservations = reservations.peekable();
        let mut parts = Vec::from_iter(reservations.peek().is_none().then(|| of_project(project)));
        for (terms, started) in reservations {
            let scopes = Scopes { flavor: terms.flavor(), ..of_project(project) };
            if !is_on_hosts(terms) || !self.rules.enforcement.limits_by_pool(scopes) {
                parts.push(scopes);
            } else if let Some(started) = started {
                let hosts = started.allocation.hosts().into_iter().filter_map(|id| self.inventory.host(id));
                let pools: BTreeSet<&str> = hosts.map(pool_of).collect();
                // Without hosts, the general limit counts.
                parts.extend(pools.is_empty().then_some(scopes));
                parts.extend(pools.into_iter().map(|pool| Scopes { pool: Some(pool), ..scopes }));
            }
        }
        parts
    }
}

impl Refusal {
    /// Turns the refusal of a lease of this length into one for its length, if nothing else is in the way.
    pub(super) fn by_length(self, length: Option<SignedDuration>) -> Self {
        let limit = match &self {
            Self::NotEnough { resource: Resource::Hosts(report), needed, .. } => report.length_limit(*needed),
            // A single host can be enough for all instances.
            Self::NotEnough { resource: Resource::Slots(report), .. } => report.length_limit(1),
            _ => None,
        };
        match (length, limit) {
            (Some(length), Some(limit)) => EnforcementError::too_long(length, limit).into(),
            _ => self,
        }
    }
}

fn of_project(project: &ProjectId) -> Scopes<'_> {
    Scopes { project: Some(&project.0), ..Scopes::default() }
}

fn is_on_hosts(terms: &ReservationTerms) -> bool {
    !matches!(terms, ReservationTerms::FloatingIps(_))
}
