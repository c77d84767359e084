//! Leases, and properties in requests, as the caller can see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::v1::limits::NAME;
use api::v1::{Cost, Lease, LeaseUsage, Names, lease_id};
use axum::http::StatusCode;
use leases::ids::{FloatingIpId, HostId, ReservationId};
use leases::plan::Prepared;
use leases::unseen::Unseen;
use leases::usage::Decimal;
use service::{Asked, Property, ServiceError, Shown};
use store::{FlavorRecord, LeaseRecord};

use super::hosts::may_know;
use super::visible::Find;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::policy::{Rule, Target};

/// Marks properties in the request that the caller can't see, so they are treated like properties that no
/// host has.
pub(super) fn mark_unseen(app: &App, session: &Session, mark: impl FnOnce(Unseen<'_>)) {
    if !session.is_admin(app) {
        mark(Unseen(&|name| app.service().calendar().is_hidden(name)));
    }
}

/// If the request was rejected for lack of hosts, lists its properties and values that no host has.
pub(super) async fn unknown_properties<'n>(
    app: &App,
    session: &Session,
    error: &ServiceError,
    asked: impl FnOnce() -> Asked<'n>,
) -> Option<String> {
    if !matches!(error, ServiceError::Refused(refusal) if refusal.is_lack()) {
        return None;
    }
    let capability = capability(app, session);
    let shown = Shown { capability: &capability, hosts: session.may(Rule::HostsGet) };
    let unknown = app.service().hosts().unknown_properties(asked(), shown);
    // An error means that the client has disconnected.
    session.client.clone().scope(unknown).await.ok().flatten()
}

/// Rejects comparisons by size whose value has another type than the property, because no host could match.
/// Also rejects properties in `alike` that no host has.
pub(super) async fn check_properties(app: &App, session: &Session, asked: Asked<'_>) -> Result<(), ApiError> {
    let capability = capability(app, session);
    let shown = Shown { capability: &capability, hosts: session.may(Rule::HostsGet) };
    refuse_requirements(session.client.clone().scope(app.service().hosts().malformed(asked, shown)).await?)
}

/// Rejects properties that no host has. The error lists those that exist.
pub(super) async fn check_names(app: &App, session: &Session, asked: Asked<'_>) -> Result<(), ApiError> {
    let capability = capability(app, session);
    let shown = Shown { capability: &capability, hosts: session.may(Rule::HostsGet) };
    let unknown = app.service().hosts().unknown_properties(asked.only_names(), shown);
    refuse_requirements(session.client.clone().scope(unknown).await?)
}

fn refuse_requirements(wrong: Option<String>) -> Result<(), ApiError> {
    wrong.map_or(Ok(()), |why| {
        Err(ApiError::new(StatusCode::BAD_REQUEST, format!("Malformed requirements: {why}")))
    })
}

/// Selects the properties whose names and values the caller can list. Hidden ones are for administrators.
fn capability(app: &App, session: &Session) -> impl Fn(&Property) -> bool + use<> {
    let (lists, admin) = (session.may(Rule::HostsGetProperties), session.is_admin(app));
    move |property| lists && may_know(property, admin)
}

/// The flavors among `asked` that the caller can use, by identifier. The service's own flavors are public or
/// for administrators; others come from the cloud.
pub(super) async fn usable_flavors(
    app: &App,
    session: &Session,
    asked: impl Iterator<Item = &str>,
) -> Result<BTreeMap<String, FlavorRecord>, ApiError> {
    let mut usable = BTreeMap::new();
    for id in asked.filter(|id| id.len() <= NAME).collect::<BTreeSet<_>>() {
        let found = match app.service().flavors().get(id) {
            Some(own) => (own.public || session.is_admin(app)).then(|| own.as_ref().clone()),
            None => app.service().flavors().of_cloud(&session.identity.project, id).await?,
        };
        usable.extend(found.map(|flavor| (id.to_owned(), flavor)));
    }
    Ok(usable)
}

impl Find for LeaseRecord {
    type Found = Arc<Self>;

    /// A lease of another owner is forbidden rather than not found, as in Blazar (API-policy). Only Blazar's
    /// paths use this.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        let found = lease_id(id).and_then(|id| app.service().leases().get(id));
        let record = found.ok_or_else(|| ApiError::not_found("lease_id", id))?;
        session.allow_on(app, Rule::LeasesGet, &target(&record))?;
        Ok(record)
    }
}

/// Returns `found` (a lease, an offer or a waitlist entry) if it exists and the caller can see it. The error
/// names the parameter and its value. Objects of other projects look as if they didn't exist.
pub(super) fn seen(
    app: &App,
    session: &Session,
    found: Option<Arc<LeaseRecord>>,
    (name, id): (&str, &str),
) -> Result<Arc<LeaseRecord>, ApiError> {
    session.allow(app, Rule::LeasesGet)?;
    let visible = |record: &Arc<LeaseRecord>| session.allow_on(app, Rule::LeasesGet, &target(record)).is_ok();
    found.filter(visible).ok_or_else(|| ApiError::not_found(name, id))
}

/// The lease with its usage (requirement CLS-12).
pub(super) async fn with_usage(app: &App, session: &Session, record: &LeaseRecord) -> Lease {
    let usage = app.service().usage().of_lease(record).await;
    // Show the lease even if its usage is unknown.
    let usage = usage.inspect_err(|error| tracing::warn!(%error, "lease usage unknown"));
    let cost = usage.as_ref().ok().and_then(|usage| cost(app, usage.cost));
    let usage = usage.ok().map(|usage| LeaseUsage::new(&usage.whole, &usage.so_far));
    Lease { usage, cost, ..viewed(app, session, record) }
}

/// A lease that doesn't exist yet, with its expected cost.
pub(super) async fn foreseen(app: &App, record: &LeaseRecord) -> Lease {
    let usage = app.service().usage().of_lease(record).await.ok();
    Lease { cost: usage.and_then(|usage| cost(app, usage.cost)), ..Lease::from(record) }
}

/// The amount in the operator's currency.
fn cost(app: &App, amount: Option<Decimal>) -> Option<Cost> {
    let currency = app.service().usage().prices().currency.clone();
    amount.map(|amount| Cost { amount: amount.to_string(), currency })
}

/// Looks up names of hosts and addresses for responses.
struct Known<'a>(&'a App);

impl Names for Known<'_> {
    fn host(&self, id: HostId) -> Option<String> {
        Some(self.0.service().hosts().get(id)?.host.name.clone())
    }

    fn floating_ip(&self, id: FloatingIpId) -> Option<String> {
        Some(self.0.service().floating_ips().get(id)?.floating_ip.address.to_string())
    }

    fn prepared(&self, id: ReservationId) -> Option<Prepared> {
        self.0.service().leases().prepared_for(id)
    }
}

/// The lease as the caller can see it, with its resources. The reason of its status is worded for the
/// caller's role.
pub(super) fn viewed(app: &App, session: &Session, record: &LeaseRecord) -> Lease {
    let lease = Lease::from(record).with_resources(record, &Known(app));
    let operator = session.may(Rule::HostsGet);
    let mut lease = if operator { lease.for_operator(record) } else { lease };
    if let Some(changed) = app.service().repairs().changed_in_cloud(&record.lease, operator) {
        lease.degraded = true;
        lease.status_reason.get_or_insert(changed);
    }
    lease
}

/// Owner of the lease, as a policy target.
pub(super) fn target(record: &LeaseRecord) -> Target<'_> {
    Target { project: &record.lease.owner.project, user: &record.lease.owner.user }
}
