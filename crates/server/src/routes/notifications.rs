//! Notifications, to be read one after the other (API-notifications). Not in Blazar, which sends them to a message bus.

use std::time::Duration;

use api::v1::Notification;
use api::v1::body::NotificationsBody;
use axum::Json;
use axum::extract::State;
use store::NewNotification;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// Most notifications of an answer.
const MOST: u32 = 1000;

/// How many an answer has unless it is said.
const USUAL: u32 = 100;

/// Notifications about leases of the caller's project; an administrator sees those of all. A client that follows
/// them asks for those after the `last` of the answer before, and waits if there are none yet.
#[utoipa::path(
    get, path = "/v1/notifications", tag = "notifications", operation_id = "list_notifications",
    params(
        ("after" = Option<u64>, Query, description = "Those after this number"),
        ("limit" = Option<u32>, Query, description = "At most so many", minimum = 1, maximum = 2_147_483_647),
        ("wait" = Option<u32>, Query, description = "Wait so many seconds for one if there is none"),
    ),
    responses((status = 200, body = NotificationsBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<NotificationsBody>, ApiError> {
    session.allow(&app, Rule::NotificationsGet)?;
    let mut last = options.parsed("after", |text| text.parse().ok())?.unwrap_or(0);
    let limit = options.limit()?;
    let limit = limit.unwrap_or(USUAL).min(MOST);
    let wait: u32 = options.parsed("wait", |text| text.parse().ok())?.unwrap_or(0);
    let wait = Duration::from_secs(wait.into()).min(app.inner.config.limits.wait);
    // The time is up at one instant, however often others' notifications wake us.
    let time_up = tokio::time::sleep(wait);
    tokio::pin!(time_up);
    loop {
        let notifications = next(&app, &session, &mut last, limit).await?;
        if !notifications.is_empty() {
            return Ok(Json(NotificationsBody { notifications, last }));
        }
        tokio::select! {
            () = app.service().notifications().wait_after(last) => {}
            // Whoever waits is answered, so that the server can end; what it asks next, another one is asked.
            () = app.stopping() => return Ok(Json(NotificationsBody { notifications, last })),
            () = &mut time_up => return Ok(Json(NotificationsBody { notifications, last })),
        }
    }
}

/// The next that the caller may see; `last` becomes the last that was looked at.
async fn next(
    app: &App,
    session: &Session,
    last: &mut u64,
    limit: u32,
) -> Result<Vec<Notification>, ApiError> {
    let all = session.is_admin(app);
    loop {
        let batch = app.service().notifications().after(*last, limit).await?;
        let Some(newest) = batch.last() else { return Ok(Vec::new()) };
        *last = newest.number;
        // What is about a host is nobody's, and has no project.
        let own =
            |told: &NewNotification| !told.project.0.is_empty() && told.project == session.identity.project;
        let seen = batch.iter().filter(|one| all || own(&one.content));
        let seen: Vec<_> = seen.map(Notification::from).collect();
        if !seen.is_empty() {
            return Ok(seen);
        }
    }
}
