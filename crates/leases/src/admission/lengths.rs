//! How long leases may last: limits by project, flavor and free pool.
//!
//! A limit for a project or a flavor, and the general one, are checked before hosts are chosen. If the limit depends on the
//! free pool, hosts are chosen of pools that allow the length.

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
    /// The same for a lease that has its hosts for that long.
    pub(super) fn lasting(self, length: SignedDuration) -> Self {
        Self { length: Some(length), ..self }
    }

    /// The limit that keeps the lease from having the host, or room for that flavor there.
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

    /// How long the lease has its hosts from now on. Time in which guests are moved out of its way doesn't count, nor does
    /// what a started lease has left when it is extended: extensions are limited by themselves then.
    pub(super) fn time_left(&self, lease: &Lease) -> SignedDuration {
        let left = lease.window.since(self.now).length();
        match lease.status {
            LeaseStatus::Pending | LeaseStatus::Starting => {
                left.saturating_sub(lease.hunt.as_ref().map(|hunt| hunt.allowance).unwrap_or_default())
            }
            _ => left.saturating_sub(self.rules.enforcement.extension_window.unwrap_or_default()),
        }
    }

    /// Whether the project may have a new lease for that window, as far as that doesn't depend on the hosts.
    pub(super) fn check_length<'t>(
        &self,
        project: &ProjectId,
        window: &Window,
        asked: impl IntoIterator<Item = &'t ReservationTerms>,
    ) -> Result<(), EnforcementError> {
        let enforcement = &self.rules.enforcement;
        let mut asked = asked.into_iter().peekable();
        let nothing = asked.peek().is_none().then(|| of_project(project));
        let parts = asked
            .map(|terms| (terms, Scopes { flavor: terms.flavor(), ..of_project(project) }))
            .filter(|(terms, scopes)| !is_on_hosts(terms) || !enforcement.limits_by_pool(*scopes));
        enforcement.check_create(project, nothing.into_iter().chain(parts.map(|(_, scopes)| scopes)), window)
    }

    /// Whether the project may change the window of a lease. One that has started keeps its hosts, so the limits of their free
    /// pools count.
    pub(super) fn check_new_length(&self, lease: &Lease, after: &Window) -> Result<(), EnforcementError> {
        let enforcement = &self.rules.enforcement;
        let project = &lease.owner.project;
        let mut parts = Vec::new();
        for reservation in &lease.reservations {
            let scopes = Scopes { flavor: reservation.terms.flavor(), ..of_project(project) };
            if !is_on_hosts(&reservation.terms) || !enforcement.limits_by_pool(scopes) {
                parts.push(scopes);
            } else if lease.status != LeaseStatus::Pending {
                let pools = self.pools_of(reservation);
                // Without hosts, the general limit counts.
                if pools.is_empty() {
                    parts.push(scopes);
                }
                parts.extend(pools.into_iter().map(|pool| Scopes { pool: Some(pool), ..scopes }));
            }
        }
        if lease.reservations.is_empty() {
            parts.push(of_project(project));
        }
        enforcement.check_update(project, parts, (&lease.window, after), self.now)
    }

    fn pools_of(&self, reservation: &Reservation) -> BTreeSet<&str> {
        let hosts = reservation.allocation.hosts();
        hosts.into_iter().filter_map(|host| self.inventory.host(host)).map(pool_of).collect()
    }
}

impl Refusal {
    /// The refusal of a lease that has its hosts for that long: if nothing else is in the way, for its length.
    pub(super) fn by_length(self, length: Option<SignedDuration>) -> Self {
        let limit = match &self {
            Self::NotEnough { resource: Resource::Hosts(report), needed, .. } => report.length_limit(*needed),
            // One host may have room for all.
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
