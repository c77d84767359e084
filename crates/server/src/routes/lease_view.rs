//! What a caller may see of leases, and of what a lease asks for.

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

/// Has properties that the caller may not see be marked in what the caller asks for, so that they are like properties that
/// no host has.
pub(super) fn mark_unseen(app: &App, session: &Session, mark: impl FnOnce(Unseen<'_>)) {
    if !session.is_admin(app) {
        mark(Unseen(&|name| app.service().calendar().is_hidden(name)));
    }
}

/// Which properties and values of a request no host has, if it is refused for want of hosts.
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
    // Without an answer the client has gone.
    session.client.clone().scope(unknown).await.ok().flatten()
}

/// Rejects comparisons by size with a value of another type than the property's, which no host could meet, and properties in
/// `alike` that no host has.
pub(super) async fn check_properties(app: &App, session: &Session, asked: Asked<'_>) -> Result<(), ApiError> {
    let capability = capability(app, session);
    let shown = Shown { capability: &capability, hosts: session.may(Rule::HostsGet) };
    refuse_requirements(session.client.clone().scope(app.service().hosts().malformed(asked, shown)).await?)
}

/// Refuses properties that no host has, and names those that there are.
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

/// The names and values of properties that the caller may list; hidden ones are for administrators.
fn capability(app: &App, session: &Session) -> impl Fn(&Property) -> bool + use<> {
    let (lists, admin) = (session.may(Rule::HostsGetProperties), session.is_admin(app));
    move |property| lists && may_know(property, admin)
}

/// Of flavors that a request names, those that the caller may use, by identifier: those that the service has, which are for
/// everybody or for administrators, and the cloud's.
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

    /// A lease of somebody else is forbidden rather than not found, as in Blazar (API-policy).
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        let found = lease_id(id).and_then(|id| app.service().leases().get(id));
        seen(app, session, found, ("lease_id", id))
    }
}

/// What was found by an identifier of that name, if it was and the caller may see it: a lease, or what may become one.
pub(super) fn seen(
    app: &App,
    session: &Session,
    found: Option<Arc<LeaseRecord>>,
    (name, id): (&str, &str),
) -> Result<Arc<LeaseRecord>, ApiError> {
    let record = found.ok_or_else(|| ApiError::not_found(name, id))?;
    session.allow_on(app, Rule::LeasesGet, &target(&record))?;
    Ok(record)
}

/// The lease with its usage (requirement CLS-12).
pub(super) async fn with_usage(app: &App, session: &Session, record: &LeaseRecord) -> Lease {
    let usage = app.service().usage().of_lease(record).await;
    // The lease itself is known; that its usage is unknown is no reason not to show it.
    let usage = usage.inspect_err(|error| tracing::warn!(%error, "lease usage unknown"));
    let cost = usage.as_ref().ok().and_then(|usage| cost(app, usage.cost));
    let usage = usage.ok().map(|usage| LeaseUsage::new(&usage.whole, &usage.so_far));
    Lease { usage, cost, ..viewed(app, session, record) }
}

/// A lease as it would be, with what it would cost.
pub(super) async fn foreseen(app: &App, record: &LeaseRecord) -> Lease {
    let usage = app.service().usage().of_lease(record).await.ok();
    Lease { cost: usage.and_then(|usage| cost(app, usage.cost)), ..Lease::from(record) }
}

/// The amount in the operator's currency.
fn cost(app: &App, amount: Option<Decimal>) -> Option<Cost> {
    let currency = app.service().usage().prices().currency.clone();
    amount.map(|amount| Cost { amount: amount.to_string(), currency })
}

/// What hosts and addresses are called, for answers.
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

/// The lease as the caller may see it: with what it has, and why it does not get on in the caller's words.
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

/// Whose a lease is, for the policy.
pub(super) fn target(record: &LeaseRecord) -> Target<'_> {
    Target { project: &record.lease.owner.project, user: &record.lease.owner.user }
}
