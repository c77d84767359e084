//! The waitlist: requests that wait for their turn (CLS-10, HK).

use std::sync::Arc;

use api::v1::body::{WaitlistBody, WaitlistEntryBody};
use api::v1::{WaitlistEntry, lease_id};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use leases::ids::LeaseId;
use leases::standing::Standing;
use store::LeaseRecord;

use super::lease_view::{seen, target};
use super::project_to_list;
use super::visible::{Find, Visible};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::listing::Listing;
use crate::policy::Rule;

/// List requests on the waitlist, in order.
///
/// Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/waitlist", tag = "waitlist", operation_id = "list_waitlist",
    params(
        ("project_id" = Option<String>, Query, description = "Only requests of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = WaitlistBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::LeasesGet)?;
    let project = project_to_list(&app, &session, &options, Rule::LeasesGet)?;
    let mut waiting = app.service().waitlist().all(project.as_ref());
    waiting.retain(|(_, record)| matches!(record.lease.standing, Standing::Waiting { .. }));
    let show = |(place, record): &(usize, Arc<LeaseRecord>)| WaitlistEntry::new(*place, record);
    Ok(Listing::new(&session, "waitlist", waiting, show).respond().await)
}

/// Show a request on the waitlist.
#[utoipa::path(
    get, path = "/v1/waitlist/{waitlist_entry_id}", tag = "waitlist", operation_id = "show_waitlist_entry",
    params(("waitlist_entry_id" = String, Path, description = "Identifier of the request")),
    responses((status = 200, body = WaitlistEntryBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Visible(record): Visible<Waiting>,
) -> Result<Json<WaitlistEntryBody>, ApiError> {
    Ok(Json(WaitlistEntryBody { waitlist_entry: entry(&app, record.lease.id)? }))
}

/// Remove a request from the waitlist.
#[utoipa::path(
    delete, path = "/v1/waitlist/{waitlist_entry_id}", tag = "waitlist", operation_id = "delete_waitlist_entry",
    params(("waitlist_entry_id" = String, Path, description = "Identifier of the request")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<Waiting>,
) -> Result<StatusCode, ApiError> {
    session.allow_on(&app, Rule::LeasesDelete, &target(&record))?;
    let (service, caller, id) = (Arc::clone(app.service()), session.caller(), record.lease.id);
    session.change(async move { service.waitlist().withdraw(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// A waiting request.
pub(crate) struct Waiting;

impl Find for Waiting {
    type Found = Arc<LeaseRecord>;

    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        let found = lease_id(id).and_then(|id| app.service().waitlist().get(id));
        seen(app, session, found, ("waitlist_entry_id", id))
    }
}

/// The request with its position in the waitlist.
pub(super) fn entry(app: &App, id: LeaseId) -> Result<WaitlistEntry, ApiError> {
    let waiting = app.service().waitlist().all(None);
    let found = waiting.iter().find(|(_, record)| record.lease.id == id);
    let entry = found.and_then(|(place, record)| WaitlistEntry::new(*place, record));
    entry.ok_or_else(|| ApiError::not_found("waitlist_entry_id", &id.to_string()))
}
