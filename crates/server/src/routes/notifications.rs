//! Notifications as a sequence that clients read and follow (API-notifications). Not in Blazar, which sends
//! them to a message bus.

use std::time::Duration;

use api::v1::Notification;
use api::v1::body::NotificationsBody;
use axum::extract::State;
use axum::response::Response;
use leases::project::ProjectId;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::listing::Listing;
use crate::policy::Rule;

/// Maximum number of notifications in a response.
const MOST: u32 = 1000;

/// Default number of notifications in a response.
const USUAL: u32 = 100;

/// List notifications about leases.
///
/// Covers the caller's project; for administrators, all projects. To follow notifications, pass `last` of the
/// previous response as `after`, and set `wait` to wait for new ones.
#[utoipa::path(
    get, path = "/v1/notifications", tag = "notifications", operation_id = "list_notifications",
    params(
        ("after" = Option<u64>, Query, description = "Only notifications with higher numbers"),
        ("limit" = Option<u32>, Query, description = "Maximum number of notifications, at most 1000. \
            Default: 100", minimum = 1, maximum = 2_147_483_647),
        ("wait" = Option<u32>, Query, description = "Maximum time to wait for a notification if the list is \
            empty, in seconds, at most `limits.notification_wait`. Default: 0"),
    ),
    responses((status = 200, body = NotificationsBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::NotificationsGet)?;
    let mut last = options.parsed("after", |text| text.parse().ok())?.unwrap_or(0);
    let limit = options.limit()?;
    let limit = limit.unwrap_or(USUAL).min(MOST);
    let wait: u32 = options.parsed("wait", |text| text.parse().ok())?.unwrap_or(0);
    let wait = Duration::from_secs(wait.into()).min(app.inner.config.limits.wait);
    // A single deadline, no matter how often notifications of other projects wake this task.
    let time_up = tokio::time::sleep(wait);
    tokio::pin!(time_up);
    let project = (!session.is_admin(&app)).then_some(&session.identity.project);
    let notifications = loop {
        let notifications = next(&app, project, &mut last, limit).await?;
        if !notifications.is_empty() {
            break notifications;
        }
        tokio::select! {
            () = app.service().notifications().wait_after(project, last) => {}
            // Answer waiting clients, so that the server can stop. Another server gets their next request.
            () = app.stopping() => break notifications,
            () = &mut time_up => break notifications,
        }
    };
    let listing = Listing::new(&session, "notifications", notifications, |one| Notification::from(one));
    Ok(listing.with("last", &last)?.respond().await)
}

/// The next notifications that the project can see, or an administrator if none is given. Advances `last` past them
/// and past those of other projects.
async fn next(
    app: &App,
    project: Option<&ProjectId>,
    last: &mut u64,
    limit: u32,
) -> Result<Vec<store::Notification>, ApiError> {
    // Read first: the search below sees at least everything up to it.
    let newest = app.service().notifications().last().await?;
    let batch = app.service().notifications().after(project, *last, limit).await?;
    if batch.len() < limit as usize {
        *last = newest.max(*last);
    }
    *last = batch.last().map_or(*last, |notification| notification.number.max(*last));
    // Notifications about hosts have an empty project. Callers without a project must not get them.
    let anonymous = project.is_some_and(|project| project.0.is_empty());
    Ok(if anonymous { Vec::new() } else { batch })
}
