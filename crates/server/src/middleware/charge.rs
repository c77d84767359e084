//! Charges the client of each request for the bodies of request and response, limits how many bytes of both
//! are in memory, and tells the service when the client disconnects. The work in between (decisions, reads
//! and writes of the store) is charged by the service.

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

/// Request as the service accounts for it: owner, method and route, declared length of the body.
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

/// Serves the request, charged to its client and within the client's limit on bytes in memory.
pub(super) async fn serve(app: &App, session: Session, mut request: Request, next: Next) -> Response {
    let service = app.service();
    let client = session.client.clone();
    let owner = session.asked.client().clone();
    let _leaving = Leaving(client.clone());
    service.charge_beside(&client, cost::FLAT);
    let received = Arc::new(app.inner.held.share(owner.clone()));
    let ends_session = request.method() == Method::DELETE && request.uri().path() == "/v1/session";
    // There is no space for the response. Signing out is allowed anyway.
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
        // The change is committed. An error would tell the client that it failed.
        share.add_anyway(length);
    } else if !share.add(length) {
        return ApiError::too_many_bytes().into_response();
    }
    response.map(|body| Body::new(Sent::new(body, share)))
}

/// Charges a body immediately if its length is known, otherwise chunk by chunk.
fn counted(service: &Arc<Service>, client: &Client, of: fn(u64) -> u64, body: Body) -> Body {
    if let Some(length) = body.size_hint().exact() {
        service.charge_beside(client, of(length));
        return body;
    }
    let (service, client) = (Arc::clone(service), client.clone());
    let charge = move |piece: &axum::body::Bytes| service.charge_beside(&client, of(piece.len() as u64));
    Body::from_stream(body.into_data_stream().inspect_ok(charge))
}

/// Drop guard: tells the service that the client no longer waits for the response.
struct Leaving(Client);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}
