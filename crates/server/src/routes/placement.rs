//! Placement questions about Ganeti clusters and the service's own fleet. Not in Blazar.

use std::sync::Arc;

use api::v1::body::{ClustersBody, PlacementAnswer};
use api::v1::{
    AskedCluster, BalanceQuestion, DrainQuestion, ErrorBody, FitQuestion, PlacementQuestion,
    PlacementRequest, WhatifQuestion,
};
use axum::Json;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Body;
use crate::placement::fleet;
use crate::policy::Rule;

/// List clusters that the operator has configured.
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

/// Defines a handler for each question. They differ in their names and descriptions.
macro_rules! questions {
    ($( $(#[doc = $doc:literal])+ $name:ident($path:literal, $operation:literal, $body:ty): $question:ident; )+) => { $(
        $(#[doc = $doc])+
        #[utoipa::path(
            post, path = $path, tag = "placement", operation_id = $operation,
            request_body = $body,
            responses(
                (status = 200, body = PlacementAnswer),
                (status = 404, description = "Questions about clusters are disabled", body = ErrorBody),
            )
        )]
        pub(crate) async fn $name(
            State(app): State<App>,
            session: Session,
            request: Request,
        ) -> Result<Response, ApiError> {
            answer(&app, &session, PlacementQuestion::$question, request).await
        }
    )+ };
}

questions! {
    /// Find moves that balance a group, with the effect of each.
    ///
    /// Returns the output of `allot hbal --json --explain`.
    balance("/v1/placement/balance", "balance_cluster", BalanceQuestion): Balance;
    /// Check whether nodes can be emptied.
    ///
    /// Returns the moves, and the instances that must stay: the output of `allot drain --json`.
    drain("/v1/placement/drain", "drain_cluster", DrainQuestion): Drain;
    /// Predict how changes affect a cluster.
    ///
    /// Returns the output of `allot whatif --json`.
    whatif("/v1/placement/whatif", "change_cluster", WhatifQuestion): Whatif;
    /// Count instances of a shape that fit, and find changes that make room for more.
    ///
    /// Returns the output of `allot fit --json`.
    fit("/v1/placement/fit", "fit_cluster", FitQuestion): Fit;
}

async fn answer(
    app: &App,
    session: &Session,
    question: PlacementQuestion,
    request: Request,
) -> Result<Response, ApiError> {
    session.allow(app, Rule::PlacementPost)?;
    let placement = &app.inner.placement;
    let bytes = request.body().size_hint().exact();
    let taken_on =
        placement.take_on(session.identity.user.clone(), session.identity.project.clone(), bytes)?;
    let body = Body::read(request, app, placement.cluster_bytes()).await?;
    let mut read = PlacementRequest::read(question, body.passing()?, &app.inner.config.limits.parts)?;
    drop(body);
    match read.cluster {
        AskedCluster::Named(_) => session.allow(app, Rule::PlacementClusters)?,
        AskedCluster::Fleet => {
            session.allow(app, Rule::PlacementFleet)?;
            let service = Arc::clone(app.service());
            let hosts = session.consider(async move { service.hosts().seen().await }).await??;
            read = fleet::about(&hosts, question, read);
        }
        AskedCluster::Text(_) | AskedCluster::Rapi(_) => {}
    }
    let document = placement.answer(question, &read, taken_on).await?;
    let mut answer = format!("{{\"{}\":", question.name()).into_bytes();
    answer.extend_from_slice(document.trim_ascii_end());
    answer.push(b'}');
    Ok(([(CONTENT_TYPE, "application/json")], answer).into_response())
}
