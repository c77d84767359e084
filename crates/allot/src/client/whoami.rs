//! `allot whoami` shows the user, the project, its roles and the service.

use api::v1::SessionOf;
use serde::Deserialize;

use super::wire::read;
use super::{ClientError, Session};
use crate::shown::broken;

/// Indentation of the continuation lines of a value.
const INDENT: &str = "          ";

#[derive(Debug, Deserialize)]
struct Project {
    name: String,
}

pub(crate) async fn run(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/session", &[]).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    let own: SessionOf = read(&answer, "session")?;
    let called = |id: String, name: Option<String>| match name {
        Some(name) if name != id => format!("{name} ({id})"),
        _ => id,
    };
    let login = match own.authentication.as_str() {
        "none" => "none: everyone is an administrator here",
        how => how,
    };
    let projects = match own.projects {
        Some(projects) => projects,
        None => keystone_projects(session).await,
    };
    let projects = (projects.len() > 1).then(|| ("projects", projects.join(", ")));
    let rows =
        [("user", called(own.user, own.user_name)), ("project", called(own.project_id, own.project_name))];
    let more = [
        ("roles", own.roles.join(", ")),
        ("login", login.to_owned()),
        ("service", session.connection.url().to_owned()),
    ];
    let room = session.style.columns_of_terminal().saturating_sub(INDENT.len());
    for (label, value) in rows.into_iter().chain(projects).chain(more) {
        let value = broken(&value, room).replace('\n', &format!("\n{INDENT}"));
        session.print(&format!("{label:<8}  {value}"))?;
    }
    Ok(())
}

/// Names of the user's projects in Keystone, if the user has logged in there. Empty if Keystone doesn't
/// answer.
async fn keystone_projects(session: &Session<'_>) -> Vec<String> {
    let answer = session.connection.keystone_projects().await;
    let listed = answer.and_then(|answer| read::<Vec<Project>>(&answer, "projects").ok());
    listed.unwrap_or_default().into_iter().map(|project| project.name).collect()
}
