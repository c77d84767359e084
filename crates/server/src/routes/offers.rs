//! Offers held for callers whose requests were rejected (CLS-10).

use std::sync::Arc;

use api::v1::body::{LeaseBody, OfferBody, OffersBody};
use api::v1::{Offer, lease_id};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use leases::standing::Standing;
use service::Offers;
use store::LeaseRecord;

use super::lease_view::{seen, target, viewed};
use super::project_to_list;
use super::visible::{Find, Visible};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// List held offers.
///
/// Covers offers to the caller's project; for administrators, to all projects. Offers to the caller come
/// first, sorted by rejection, newest first.
#[utoipa::path(
    get, path = "/v1/offers", tag = "offers", operation_id = "list_offers",
    params(
        ("project_id" = Option<String>, Query, description = "Only offers to this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = OffersBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<OffersBody>, ApiError> {
    session.allow(&app, Rule::LeasesGet)?;
    let project = project_to_list(&app, &session, &options, Rule::LeasesGet)?;
    let mut offers = app.service().offers().all(project.as_ref());
    let owner = session.caller().owner();
    offers.sort_by_key(|record| record.lease.owner != owner);
    Ok(Json(OffersBody { offers: said(&app, &session, &Offers { offers, held: true }) }))
}

/// Show a held offer.
#[utoipa::path(
    get, path = "/v1/offers/{offer_id}", tag = "offers", operation_id = "show_offer",
    params(("offer_id" = String, Path, description = "Identifier of the offer")),
    responses((status = 200, body = OfferBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<Offered>,
) -> Result<Json<OfferBody>, ApiError> {
    let offer = Offer::new(&record, true, shows_hosts(&app, &session))
        .ok_or_else(|| ApiError::not_found("offer_id", &record.lease.id.to_string()))?;
    let owner = session.caller().owner();
    let offers = app.service().offers().all(Some(&owner.project));
    let mut own = offers.iter().filter(|record| record.lease.owner == owner);
    let place = own.position(|own| own.lease.id == record.lease.id);
    Ok(Json(OfferBody { offer: Offer { number: place.map(|place| place as u64 + 1), ..offer } }))
}

/// Accept an offer.
///
/// Creates or changes the lease as offered. Withdraws all other offers of the same rejection.
#[utoipa::path(
    post, path = "/v1/offers/{offer_id}/accept", tag = "offers", operation_id = "accept_offer",
    params(("offer_id" = String, Path, description = "Identifier of the offer")),
    responses(
        (status = 200, body = LeaseBody),
        (status = 404, description = "The offer is no longer held", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn accept(
    State(app): State<App>,
    session: Session,
    Visible(offer): Visible<Offered>,
) -> Result<Json<LeaseBody>, ApiError> {
    match offer.lease.standing {
        Standing::Offered { of: Some(lease), .. } => {
            let record = app.service().leases().get(lease);
            let record = record.ok_or_else(|| ApiError::not_found("lease_id", &lease.to_string()))?;
            session.allow_on(&app, Rule::LeasesPut, &target(&record))?;
        }
        _ => session.allow(&app, Rule::LeasesPost)?,
    }
    let (service, caller, id) = (Arc::clone(app.service()), session.caller(), offer.lease.id);
    let lease = session.change(async move { service.offers().accept(&caller, id).await }).await?;
    let lease = lease.map_err(ApiError::of_creation)?;
    Ok(Json(LeaseBody { lease: viewed(&app, &session, &lease) }))
}

/// Decline an offer.
///
/// Also declines all offers that were made with it, and releases the capacity that is reserved for them.
#[utoipa::path(
    delete, path = "/v1/offers/{offer_id}", tag = "offers", operation_id = "decline_offer",
    params(("offer_id" = String, Path, description = "Identifier of the offer")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn decline(
    State(app): State<App>,
    session: Session,
    Visible(offer): Visible<Offered>,
) -> Result<StatusCode, ApiError> {
    session.allow_on(&app, Rule::LeasesDelete, &target(&offer))?;
    let (service, id) = (Arc::clone(app.service()), offer.lease.id);
    session.change(async move { service.offers().withdraw(id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// A held offer.
pub(crate) struct Offered;

impl Find for Offered {
    type Found = Arc<LeaseRecord>;

    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        let found = lease_id(id).and_then(|id| app.service().offers().get(id));
        seen(app, session, found, ("offer_id", id))
    }
}

/// Offers in the form of the API. Held offers to the caller are numbered.
pub(super) fn said(app: &App, session: &Session, offers: &Offers) -> Vec<Offer> {
    let shows_hosts = shows_hosts(app, session);
    let owner = session.caller().owner();
    let mut numbers = 1..;
    let numbered = offers.offers.iter().filter_map(|record| {
        let own = offers.held && record.lease.owner == owner;
        let number = if own { numbers.next() } else { None };
        Some(Offer { number, ..Offer::new(record, offers.held, shows_hosts)? })
    });
    numbered.collect()
}

/// Whether the caller can see which hosts are reserved: requires permission to see allocations.
fn shows_hosts(app: &App, session: &Session) -> bool {
    session.allow(app, Rule::HostsGetAllocations).is_ok()
}
