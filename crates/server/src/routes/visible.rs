//! Looks up the object in a path, if the caller can see it.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Session};
use crate::error::ApiError;

/// An object with an identifier that not every caller can see.
pub(crate) trait Find {
    type Found;

    /// Finds the object. Fails if it doesn't exist or the caller can't see it.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError>;
}

/// Extracts the object in the last part of a path. The handler is called only if the caller can see the
/// object, and checks all other permissions itself.
pub(crate) struct Visible<T: Find>(pub T::Found);

impl<T: Find> FromRequestParts<App> for Visible<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(id) = path.map_err(IntoResponse::into_response)?;
        let session = Session::from_request_parts(parts, app).await.map_err(IntoResponse::into_response)?;
        T::find(app, &session, &id).map(Self).map_err(IntoResponse::into_response)
    }
}
