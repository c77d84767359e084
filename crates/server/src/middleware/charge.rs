//! Charges each request of a client for its body and its answer, limits the bytes of both in memory, and tells the
//! service when the client has gone. What is decided, written and read of the store in between is charged by the service.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::TryStreamExt;
use leases::project::Owner;
use service::{Client, Service, cost};

use crate::app::{App, Session};
use crate::auth::Identity;
use crate::error::ApiError;
use crate::held::{Received, Sent};
use crate::rate::is_privileged;

/// The client of a request, as the service knows it.
pub(super) fn client(identity: &Identity, request: &Request) -> Client {
    let Identity { user, project, .. } = identity;
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    Client::new(service::Request {
        owner: Owner { project: project.clone(), user: user.clone() },
        operation: format!("{} {route}", request.method()).into(),
        body: length.unwrap_or(0),
        privileged: is_privileged(identity),
    })
}

/// Serves the request on behalf of its client.
pub(super) async fn serve(app: &App, session: Session, mut request: Request, next: Next) -> Response {
    let service = app.service();
    let client = session.client.clone();
    let owner = session.asked.client().clone();
    let _leaving = Leaving(client.clone());
    service.charge_beside(&client, cost::FLAT);
    let received = Arc::new(app.inner.held.share(owner.clone()));
    let ends_session = request.method() == Method::DELETE && request.uri().path() == "/v1/session";
    // The response would not fit. A user can sign out nevertheless.
    if !ends_session && !received.add(0) {
        return ApiError::too_many_bytes().into_response();
    }
    request.extensions_mut().insert(session);
    let request = request.map(|body| {
        let body = counted(service, &client, cost::of_body, body);
        Body::new(Received { body, share: Arc::clone(&received) })
    });
    let response = client.clone().scope(next.run(request)).await;
    if received.was_refused() {
        return ApiError::too_many_bytes().into_response();
    }
    drop(received);
    let response = response.map(|body| counted(service, &client, cost::of_answer, body));
    let Some(length) = response.body().size_hint().exact() else { return response };
    let share = app.inner.held.share(owner);
    if client.has_committed() {
        // Otherwise the client would take the change for one that failed.
        share.add_anyway(length);
    } else if !share.add(length) {
        return ApiError::too_many_bytes().into_response();
    }
    response.map(|body| Body::new(Sent::new(body, share)))
}

/// The body, charged at once if its length is known, and piece by piece otherwise.
fn counted(service: &Arc<Service>, client: &Client, of: fn(u64) -> u64, body: Body) -> Body {
    if let Some(length) = body.size_hint().exact() {
        service.charge_beside(client, of(length));
        return body;
    }
    let (service, client) = (Arc::clone(service), client.clone());
    let charge = move |piece: &axum::body::Bytes| service.charge_beside(&client, of(piece.len() as u64));
    Body::from_stream(body.into_data_stream().inspect_ok(charge))
}

/// Says that the client has gone when the answer is not waited for any more.
struct Leaving(Client);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}
