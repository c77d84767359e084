//! Instances started through the service (CLS-08).

use std::sync::Arc;

use api::v1::body::{HostsQuestion, InstanceBody, InstanceCreate, InstancesBody};
use api::v1::{
    HostAnswer, HostsAnswer, HostsQuestionRequest, Instance, InstanceRequest, PlacingRequest, instance_id,
    lease_id,
};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use leases::host::Health;
use leases::instance::{InstanceKind, InstanceStatus};
use leases::text::Quoted;
use service::{HostQuestion, NewInstance, OtherInstances, Placing, Position};
use store::InstanceRecord;

use super::paging::{Paging, Part, unknown_marker};
use super::project_to_list;
use super::visible::{Find, Visible};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::policy::{Rule, Target};

/// List instances.
///
/// Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/instances", tag = "instances", operation_id = "list_instances",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of instances per page, at most \
            `limits.page`. Default: the whole list", minimum = 1),
        ("marker" = Option<String>, Query, description = "Identifier of the instance after which the page \
            starts"),
        ("lease_id" = Option<String>, Query, description = "Only instances of this lease"),
        ("project_id" = Option<String>, Query, description = "Only instances of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = InstancesBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::InstancesGet)?;
    let project = project_to_list(&app, &session, &options, Rule::InstancesGet)?;
    let lease = options.parsed("lease_id", lease_id)?;
    let after = match options.parsed("marker", instance_id)? {
        None => None,
        Some(marker) => {
            let record = app.service().instances().get(marker);
            let own = |record: &Arc<InstanceRecord>| {
                project.as_ref().is_none_or(|project| record.instance.owner.project == *project)
            };
            let record = record.filter(own).ok_or_else(|| unknown_marker(&marker))?;
            Some(Position::from(record.as_ref()))
        }
    };
    let service = Arc::clone(app.service());
    let read =
        move |after, limit| Part::from(service.instances().page(project.as_ref(), lease, after, limit));
    let paging = Paging::new(&app, &session, &uri, &options)?;
    let (app, session) = (app.clone(), session.clone());
    paging.answer("instances", after, read, move |record| shown(&app, &session, record)).await
}

/// Start an instance in a lease or on an unreserved host.
///
/// The instance runs once its status is `ACTIVE`.
#[utoipa::path(
    post, path = "/v1/instances", tag = "instances", operation_id = "create_instance",
    request_body = InstanceCreate,
    responses(
        (status = 201, body = InstanceBody),
        (status = 404, description = "Lease not found", body = api::v1::ErrorBody),
        (status = 409, description = "The lease is not active, or no host has enough capacity",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::InstancesPost)?;
    let InstanceRequest { name, placing, requeue } = InstanceRequest::read(&body.json()?)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let new = NewInstance { name, placing: placing_of(placing), requeue };
    let record = session.change(async move { service.instances().create(&caller, new).await }).await??;
    let body = InstanceBody { instance: shown(&app, &session, &record) };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Find hosts that can accept an instance.
///
/// Returns the decision that the service would make if the instance were started now, and the time until
/// which it can stay. For external schedulers, which check many hosts in one request. Doesn't reserve
/// capacity.
#[utoipa::path(
    post, path = "/v1/instances/filter", tag = "instances", operation_id = "filter_hosts",
    request_body = HostsQuestion,
    responses(
        (status = 200, body = HostsAnswer),
        (status = 404, description = "Lease not found", body = api::v1::ErrorBody),
        (status = 409, description = "The lease is not active", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn filter(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Json<HostsAnswer>, ApiError> {
    session.allow(&app, Rule::InstancesFilter)?;
    let HostsQuestionRequest { hosts, project, instance, placing } =
        HostsQuestionRequest::read(&body.json()?)?;
    let project = project.unwrap_or_else(|| session.caller().project);
    let question = HostQuestion { project, instance, placing: placing_of(placing), hosts };
    let service = Arc::clone(app.service());
    let answer = session.consider(async move { service.instances().hosts_for(&question).await }).await??;
    let hosts = answer.hosts.into_iter().map(|(host, verdict)| HostAnswer::new(host, verdict)).collect();
    Ok(Json(HostsAnswer { kind: answer.kind.name().to_owned(), hosts }))
}

fn placing_of(request: PlacingRequest) -> Placing {
    let PlacingRequest { size, hint, marked, class, same_host, different_host } = request;
    Placing { size, hint, marked, class, others: OtherInstances { same_host, different_host } }
}

/// Show an instance.
#[utoipa::path(
    get, path = "/v1/instances/{instance_id}", tag = "instances", operation_id = "show_instance",
    params(("instance_id" = String, Path, description = "Identifier of the instance")),
    responses((status = 200, body = InstanceBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<InstanceRecord>,
) -> Result<Json<InstanceBody>, ApiError> {
    Ok(Json(InstanceBody { instance: shown(&app, &session, &record) }))
}

/// Start a kept instance again.
///
/// The instance must have been preempted and kept. A new instance resumes its work as soon as there is
/// capacity.
#[utoipa::path(
    post, path = "/v1/instances/{instance_id}/start", tag = "instances", operation_id = "start_instance",
    params(("instance_id" = String, Path, description = "Identifier of the instance")),
    responses(
        (status = 201, body = InstanceBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The instance is not kept and stopped", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn start(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<InstanceRecord>,
) -> Result<Response, ApiError> {
    session.allow_on(&app, Rule::InstancesStart, &target(&record))?;
    let (service, caller, id) = (Arc::clone(app.service()), session.caller(), record.instance.id);
    let record = session.change(async move { service.instances().start(&caller, id).await }).await??;
    let body = InstanceBody { instance: shown(&app, &session, &record) };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Delete an instance.
#[utoipa::path(
    delete, path = "/v1/instances/{instance_id}", tag = "instances", operation_id = "delete_instance",
    params(("instance_id" = String, Path, description = "Identifier of the instance")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<InstanceRecord>,
) -> Result<StatusCode, ApiError> {
    session.allow_on(&app, Rule::InstancesDelete, &target(&record))?;
    let (service, caller, id) = (Arc::clone(app.service()), session.caller(), record.instance.id);
    session.change(async move { service.instances().delete(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

impl Find for InstanceRecord {
    type Found = Arc<Self>;

    /// Instances of other projects look as if they didn't exist.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        session.allow(app, Rule::InstancesGet)?;
        let record = instance_id(id).and_then(|id| app.service().instances().get(id));
        let visible = |record: &Arc<Self>| session.allow_on(app, Rule::InstancesGet, &target(record)).is_ok();
        let missing = || ApiError::new(StatusCode::NOT_FOUND, format!("Instance {} not found", Quoted(id)));
        record.filter(visible).ok_or_else(missing)
    }
}

fn target(record: &InstanceRecord) -> Target<'_> {
    Target { project: &record.instance.owner.project, user: &record.instance.owner.user }
}

/// The instance as the caller can see it. Hosts of the free pool are visible to operators only.
fn shown(app: &App, session: &Session, record: &InstanceRecord) -> Instance {
    let leased = matches!(record.instance.kind, InstanceKind::Reserved { .. });
    let found = app.service().hosts().get(record.instance.host);
    let host = found.as_ref().map(|host| host.host.name.clone());
    // Queued and shelved instances are not on a host.
    let placed = !matches!(record.instance.status, InstanceStatus::Queued | InstanceStatus::Shelved);
    let host = host.filter(|_| placed && (leased || session.may(Rule::HostsGet)));
    let instances = app.service().instances();
    let notice = instances.notice(&record.instance);
    let departure = instances.departure(&record.instance).map(|departure| departure.for_owner(notice));
    let safe_until = instances.safe_until(&record.instance);
    let deadline = instances.deadline(&record.instance);
    let instance = Instance::of(record, departure, host, safe_until).with_deadline(deadline);
    let mut instance = if session.may(Rule::HostsGet) { instance.for_operator(record) } else { instance };
    let failed = placed && found.is_some_and(|host| host.host.health == Health::Failed);
    if failed && instance.status_reason.is_none() {
        instance.status_reason = Some("its host has failed".to_owned());
    }
    instance
}
