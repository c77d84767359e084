//! What an address names by an identifier, for those who may see it.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Session};
use crate::error::ApiError;

/// Something that has an identifier, and that not everybody may see.
pub(crate) trait Find {
    /// What is found.
    type Found;

    /// Finds it by its identifier, if it is there and the caller may see it.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError>;
}

/// What the last part of an address names: a handler that takes it is not called unless the caller may see it. What else the
/// caller may do with it, the handler asks.
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
