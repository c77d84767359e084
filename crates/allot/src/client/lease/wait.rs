//! `allot lease wait`.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use serde_json::Value;

use crate::client::dates::duration;
use crate::client::wire::{Lease, read};
use crate::client::{ClientError, Session};

/// How often the service is asked.
const POLL: Duration = Duration::from_millis(500);

/// What to wait for.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The lease's name, or its identifier
    lease: String,
    /// The status to wait for; GONE waits until the lease is deleted
    #[arg(long, value_name = "STATUS", default_value = "ACTIVE")]
    status: String,
    /// How long to wait, by the service's clock; without it, as long as it takes
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

/// What is waited for.
pub(super) struct Aim {
    status: String,
    timeout: Option<SignedDuration>,
}

impl Aim {
    pub(super) fn active() -> Self {
        Self { status: "ACTIVE".to_owned(), timeout: None }
    }
}

pub(super) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let timeout = arguments.timeout.as_deref().map(duration).transpose()?;
    let aim = Aim { status: arguments.status.to_uppercase(), timeout };
    let id = super::identify(&arguments.lease, session).await?;
    let answer = until(&id, &aim, session).await?;
    if answer.is_null() {
        return Ok(());
    }
    super::print_lease(&answer, session).await
}

/// Waits, and returns the lease as it is then; null if it is gone, as it should be.
pub(super) async fn until(id: &str, aim: &Aim, session: &Session<'_>) -> Result<Value, ClientError> {
    let deadline = match aim.timeout {
        Some(timeout) => session.now().await.checked_add(timeout).ok(),
        None => None,
    };
    loop {
        let answer = match super::get(id, session).await {
            Err(ClientError::Refused { status: 404, .. }) if aim.status == "GONE" => return Ok(Value::Null),
            answer => answer?,
        };
        let lease: Lease = read(&answer, "lease")?;
        if lease.status == aim.status {
            return Ok(answer);
        }
        if let Some(reason) = hopeless(&lease, &aim.status) {
            return Err(ClientError::InVain(reason));
        }
        if let Some(deadline) = deadline
            && session.now().await >= deadline
        {
            let because = lease.status_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let text = format!("lease {} is still {}{because}", lease.name, lease.status);
            return Err(ClientError::InVain(text));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Why a lease never comes to a status, if that is known.
fn hopeless(lease: &Lease, wanted: &str) -> Option<String> {
    let over = match lease.status.as_str() {
        "ERROR" => !matches!(wanted, "GONE" | "TERMINATED"),
        "TERMINATED" | "DELETING" => wanted != "GONE",
        "ACTIVE" | "TERMINATING" => matches!(wanted, "PENDING" | "STARTING"),
        _ => false,
    };
    over.then(|| {
        let because = lease.status_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("lease {} is {}{because}", lease.name, lease.status)
    })
}
