//! `allot doctor`.

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use super::wire::read;
use super::{ClientError, Session};

/// Whether to change anything.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Set right what can be; without it, nothing is changed
    #[arg(long)]
    repair: bool,
    /// Say that the clock of the service's machine is right, or that the fleet belongs to this database
    #[arg(long, value_name = "WHAT", conflicts_with = "repair")]
    accept: Option<Accepted>,
}

/// What is right as it is.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Accepted {
    /// The clock of the service's machine
    Clock,
    /// The fleet: what it holds for leases that the database does not know is taken back
    Fleet,
}

#[derive(Debug, Deserialize)]
struct Entry {
    message: String,
    #[serde(default)]
    repairable: bool,
}

/// It is no success if a difference is left, so that whatever runs it notices.
pub(crate) async fn run(arguments: &Arguments, session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = match arguments.accept {
        Some(Accepted::Clock) => session.connection.post("/v1/drift/accept-clock", &json!({})).await?,
        Some(Accepted::Fleet) => session.connection.post("/v1/drift/accept-fleet", &json!({})).await?,
        None if arguments.repair => session.connection.post("/v1/drift/repair", &json!({})).await?,
        None => session.connection.get("/v1/drift", &[]).await?,
    };
    let left: Vec<Entry> = read(&answer, "drift")?;
    if session.json {
        session.print_json(&answer)?;
    } else if left.is_empty() {
        session.print("What is stored and what the fleet shows agree.")?;
    } else {
        for entry in &left {
            session.print(&format!("- {}", entry.message))?;
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let count = match left.len() {
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    let hint = if !arguments.repair && left.iter().any(|entry| entry.repairable) {
        "; `allot doctor --repair` sets right what can be"
    } else {
        ""
    };
    Err(ClientError::WithoutResult(format!("{count} between what is stored and what the fleet shows{hint}")))
}
