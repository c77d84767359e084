//! `allot preemptible` reports on preemptible instances.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::period::Past;
use super::table::{Table, date, id, prose, time, word};
use super::wire::{plain, read};
use super::{ClientError, Session, segment};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List preemptible instances and their preemption times
    List(Whose),
    /// Report on the work of preemptible instances
    Report(Report),
    /// Manage projects whose instances are preemptible by default; for administrators
    #[command(subcommand)]
    Project(ProjectCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// List these projects
    List,
    /// Make new instances of matching projects preemptible
    Add(Pattern),
    /// Remove a pattern from the list
    Remove(Pattern),
}

#[derive(Args, Debug)]
pub(crate) struct Pattern {
    /// Project IDs, with * for any text and ? for any character
    pattern: String,
}

#[derive(Args, Debug)]
pub(crate) struct Whose {
    /// Only instances of this project; for administrators
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    #[command(flatten)]
    past: Past,
    #[command(flatten)]
    whose: Whose,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List(whose) => list(whose, session).await,
        Command::Report(wanted) => report(wanted, session).await,
        Command::Project(command) => projects(command, session).await,
    }
}

async fn projects(command: ProjectCommand, session: &mut Session<'_>) -> Result<(), ClientError> {
    let path = |wanted: &Pattern| format!("/v1/preemptible/projects/{}", segment(&wanted.pattern));
    match command {
        ProjectCommand::Add(wanted) => {
            let answer = session.connection.put(&path(&wanted), &Value::Null).await?;
            if session.wants_document() {
                return session.print_json(&answer);
            }
            session.done(&format!("New instances of projects {} are preemptible.", wanted.pattern))
        }
        ProjectCommand::Remove(wanted) => {
            session.connection.delete(&path(&wanted)).await?;
            session.done(&format!("{} is removed from the list.", wanted.pattern))
        }
        ProjectCommand::List => {
            let answer = session.connection.get("/v1/preemptible/projects", &[]).await?;
            session.print_answer(&answer, || projects_table(&answer))
        }
    }
}

pub(super) fn projects_table(answer: &Value) -> Result<Table, ClientError> {
    let mut table = Table::new([prose("PROJECTS").key(), date("SINCE")])
        .or("No projects are listed. `allot preemptible project add` lists some.");
    for project in read::<Vec<Value>>(answer, "projects")? {
        let since = project["created_at"].as_str().unwrap_or("by the settings");
        table.add_row([plain(&project["pattern"]).as_str(), since]);
    }
    Ok(table)
}

async fn list(whose: Whose, session: &mut Session<'_>) -> Result<(), ClientError> {
    let query: Vec<_> = whose.of_project.map(|project| ("project_id", project)).into_iter().collect();
    let answer = session.connection.get("/v1/instances", &query).await?;
    let mut found: Vec<Value> = read(&answer, "instances")?;
    found.retain(|instance| instance["kind"] == "preemptible");
    session.print_answer(&serde_json::json!({ "instances": found }), || Ok(table(&found)))
}

pub(super) fn table(found: &[Value]) -> Table {
    let columns = [
        id("ID").key(),
        word("NAME"),
        word("PROJECT").hide(1),
        word("STATUS").hide(3),
        time("RUNS SINCE").hide(2),
        time("ASKED TO LEAVE"),
        time("GONE BY"),
    ];
    let mut table = Table::new(columns).or(
        "There are no preemptible instances. `allot instance create --preemptible` starts one, if allowed.",
    );
    for instance in found {
        table.add_row([
            plain(&instance["id"]),
            plain(&instance["name"]),
            plain(&instance["project_id"]),
            plain(&instance["status"]),
            plain(&instance["launched_at"]),
            plain(&instance["departure"]["asked_at"]),
            plain(&instance["departure"]["gone_by"]),
        ]);
    }
    table
}

async fn report(wanted: Report, session: &mut Session<'_>) -> Result<(), ClientError> {
    let mut query = wanted.past.query(session).await?;
    query.extend(wanted.whose.of_project.map(|project| ("project_id", project)));
    let answer = session.connection.get("/v1/preemptible", &query).await?;
    session.print_answer(&answer, || Ok(report_table(&answer["preemptible"])))
}

pub(super) fn report_table(found: &Value) -> Table {
    let number = |name: &str| found[name].as_f64().unwrap_or_default();
    let mut table = Table::new([prose("WHAT"), word("AMOUNT")]);
    table.add_row(["instances begun".to_owned(), plain(&found["begun"])]);
    table.add_row(["instances preempted".to_owned(), plain(&found["preempted"])]);
    table.add_row(["hours run".to_owned(), format!("{:.2}", number("hours"))]);
    table.add_row(["core-hours used".to_owned(), format!("{:.2}", number("core_hours"))]);
    table.add_row(["hours of preempted instances".to_owned(), format!("{:.2}", number("hours_lost"))]);
    if let Some(part) = found["utilisation_gained"].as_f64() {
        table.add_row(["utilization gained".to_owned(), format!("{:.1} %", 100.0 * part)]);
    }
    table
}
