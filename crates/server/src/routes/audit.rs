//! The audit log. Not in Blazar.

use std::sync::Arc;

use api::v1::AuditEntry;
use api::v1::body::AuditBody;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use leases::project::UserId;
use store::AuditFilter;

use super::paging::next_link;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// Default number of entries in a response.
const USUAL: u32 = 100;

/// List changes, newest first.
///
/// Rejected requests aren't included.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit", operation_id = "list_audit",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of entries per page, at most \
            `limits.page`. Default: 100", minimum = 1, maximum = 2_147_483_647),
        ("marker" = Option<u64>, Query, description = "Only entries with lower numbers"),
        ("user_id" = Option<String>, Query, description = "Only changes by this user"),
        ("project_id" = Option<String>, Query, description = "Only changes for this project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
        ("request_id" = Option<String>, Query, description = "Only changes of this request"),
        ("action" = Option<String>, Query, description = "Only changes of this kind: `lease.create`"),
        ("object_id" = Option<String>, Query, description = "Only changes of the object with this identifier"),
    ),
    responses((status = 200, body = AuditBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Json<AuditBody>, ApiError> {
    session.allow(&app, Rule::AuditGet)?;
    let text = |name: &str| options.text(name).map(str::to_owned);
    let filter = AuditFilter {
        user: text("user_id").map(UserId),
        project: super::named_project(&options)?,
        request_id: text("request_id"),
        action: text("action"),
        object: text("object_id"),
    };
    let marker = options.parsed("marker", |text| text.parse().ok())?;
    let limit = options.limit()?;
    let limit = limit.unwrap_or(USUAL).min(app.inner.config.limits.page);
    // One more, to find out whether there is a next page.
    let service = Arc::clone(app.service());
    let page = async move { service.audit().page(&filter, marker, limit.saturating_add(1)).await };
    let mut found = session.consider(page).await??;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let audit_links = found.last().filter(|_| more).map(|(number, _)| next_link(&uri, number));
    let audit = found.into_iter().map(|(number, record)| AuditEntry::new(number, record)).collect();
    Ok(Json(AuditBody { audit, audit_links: audit_links.into_iter().collect() }))
}
