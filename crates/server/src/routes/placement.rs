//! Questions about Ganeti clusters, which have nothing to do with the service's own fleet. Not in Blazar.

use api::v1::body::{ClustersBody, PlacementAnswer};
use api::v1::{
    AskedCluster, BalanceQuestion, DrainQuestion, ErrorBody, FitQuestion, PlacementQuestion,
    PlacementRequest, WhatifQuestion,
};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Body;
use crate::policy::Rule;
use crate::rate::Client;

/// The clusters that the operator has named.
#[utoipa::path(
    get, path = "/v1/placement/clusters", tag = "placement", operation_id = "list_clusters",
    responses((status = 200, body = ClustersBody))
)]
pub(crate) async fn clusters(
    State(app): State<App>,
    session: Session,
) -> Result<Json<ClustersBody>, ApiError> {
    session.allow(&app, Rule::PlacementClusters)?;
    Ok(Json(ClustersBody { clusters: app.inner.placement.clusters().cloned().collect() }))
}

/// Which moves balance a group, each with what it changes: what `allot hbal --json --explain` prints.
#[utoipa::path(
    post, path = "/v1/placement/balance", tag = "placement", operation_id = "balance_cluster",
    request_body = BalanceQuestion,
    responses(
        (status = 200, body = PlacementAnswer),
        (status = 404, description = "The service answers no such questions", body = ErrorBody),
    )
)]
pub(crate) async fn balance(
    State(app): State<App>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, &session, PlacementQuestion::Balance, request).await
}

/// Whether nodes can be emptied, by which moves, and what must stay: what `allot drain --json` prints.
#[utoipa::path(
    post, path = "/v1/placement/drain", tag = "placement", operation_id = "drain_cluster",
    request_body = DrainQuestion,
    responses(
        (status = 200, body = PlacementAnswer),
        (status = 404, description = "The service answers no such questions", body = ErrorBody),
    )
)]
pub(crate) async fn drain(
    State(app): State<App>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, &session, PlacementQuestion::Drain, request).await
}

/// What the cluster would be like after changes: what `allot whatif --json` prints.
#[utoipa::path(
    post, path = "/v1/placement/whatif", tag = "placement", operation_id = "change_cluster",
    request_body = WhatifQuestion,
    responses(
        (status = 200, body = PlacementAnswer),
        (status = 404, description = "The service answers no such questions", body = ErrorBody),
    )
)]
pub(crate) async fn whatif(
    State(app): State<App>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, &session, PlacementQuestion::Whatif, request).await
}

/// How many instances of a shape fit, and what would make room for more: what `allot fit --json` prints.
#[utoipa::path(
    post, path = "/v1/placement/fit", tag = "placement", operation_id = "fit_cluster",
    request_body = FitQuestion,
    responses(
        (status = 200, body = PlacementAnswer),
        (status = 404, description = "The service answers no such questions", body = ErrorBody),
    )
)]
pub(crate) async fn fit(
    State(app): State<App>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&app, &session, PlacementQuestion::Fit, request).await
}

async fn answer(
    app: &App,
    session: &Session,
    question: PlacementQuestion,
    request: Request,
) -> Result<Response, ApiError> {
    session.allow(app, Rule::PlacementPost)?;
    let placement = &app.inner.placement;
    let user = Client::User(session.identity.user.clone(), session.identity.project.clone());
    let _taken_on = placement.take_on(user)?;
    let body = Body::read(request, app, placement.cluster_bytes()).await?;
    let read = PlacementRequest::read(question, body.login()?, &app.inner.config.limits.parts)?;
    drop(body);
    if matches!(read.cluster, AskedCluster::Named(_)) {
        session.allow(app, Rule::PlacementClusters)?;
    }
    let document = placement.answer(question, &read).await?;
    let mut answer = format!("{{\"{}\":", question.name()).into_bytes();
    answer.extend_from_slice(document.trim_ascii_end());
    answer.push(b'}');
    Ok(([(CONTENT_TYPE, "application/json")], answer).into_response())
}
