//! `allot whoami`.

use api::v1::SessionOf;

use super::wire::read;
use super::{ClientError, Session};

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
    for (label, value) in [
        ("user", called(own.user, own.user_name)),
        ("project", called(own.project_id, own.project_name)),
        ("roles", own.roles.join(", ")),
        ("login", login.to_owned()),
        ("service", session.connection.url().to_owned()),
    ] {
        session.print(&format!("{label:<8}  {value}"))?;
    }
    Ok(())
}
