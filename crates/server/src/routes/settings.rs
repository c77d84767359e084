//! The operator's settings, and display names of users and projects, for administrators. Not in Blazar.

use api::v1::KnownNames;
use api::v1::body::SettingsBody;
use axum::Json;
use axum::extract::State;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::policy::Rule;

/// List the settings that the service was started with, including limits, without secrets.
#[utoipa::path(
    get, path = "/v1/settings", tag = "settings", operation_id = "list_settings",
    responses((status = 200, body = SettingsBody))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<SettingsBody>, ApiError> {
    session.allow(&app, Rule::SettingsGet)?;
    Ok(Json(SettingsBody { settings: app.inner.config.settings.clone() }))
}

/// List known names of users and projects.
///
/// Contains names from the users file, and names from logins since the service started. For users and
/// projects that aren't listed, only identifiers are known.
#[utoipa::path(
    get, path = "/v1/names", tag = "settings", operation_id = "show_names",
    responses((status = 200, body = KnownNames))
)]
pub(crate) async fn names(State(app): State<App>, session: Session) -> Result<Json<KnownNames>, ApiError> {
    session.allow(&app, Rule::NamesGet)?;
    let mut known = app.inner.names.known();
    let users = session.access.authentication.users();
    known.users.extend(users.into_iter().map(|(id, user)| (id.to_owned(), user.name.clone())));
    Ok(Json(known))
}
