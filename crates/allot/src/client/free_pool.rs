//! `allot freepool` manages free pools.

use api::v1::FreePool;
use api::v1::body::{FreePoolChange, FreePoolCreate};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::confirm::{Act, Consent};
use super::host::{all, new_host, remove, table_of};
use super::identify::Listed;
use super::lease::EndAction;
use super::name_value::name_value;
use super::table::{Table, id, prose, word};
use super::wire::{Host, read};
use super::{ClientError, Session, segment, with_each};

/// Commands for free pools.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List free pools
    List,
    /// Show a free pool and its hosts
    Show(One),
    /// Create a free pool
    Create(Create),
    /// Rename a free pool; its leases stay unchanged
    Rename(Rename),
    /// Change the capabilities or the end action of a free pool
    Update(Update),
    /// Delete free pools without hosts
    Delete(Several),
    /// Add machines of the fleet to a free pool, or move hosts there
    #[command(name = "add-host")]
    AddHost(AddHost),
    /// Remove hosts from a free pool; leases that haven't started get other hosts
    #[command(name = "remove-host")]
    RemoveHost(RemoveHost),
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Name of the pool
    name: String,
    /// Capability of hosts that don't have their own value; can be repeated
    #[arg(long = "spec", value_name = "NAME=VALUE", value_parser = name_value)]
    specs: Vec<(String, String)>,
    /// Default end action for leases of its hosts
    #[arg(long, value_name = "ACTION")]
    end_action: Option<EndAction>,
}

#[derive(Args, Debug)]
pub(crate) struct Rename {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// New name
    name: String,
}

#[derive(Args, Debug)]
pub(crate) struct Update {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// Capability to add or change; can be repeated
    #[arg(long = "spec", value_name = "NAME=VALUE", value_parser = name_value)]
    specs: Vec<(String, String)>,
    /// Capability to remove; can be repeated
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    /// Default end action for leases of its hosts
    #[arg(long, value_name = "ACTION", conflicts_with = "default_end_action")]
    end_action: Option<EndAction>,
    /// Reset the end action to the service's default
    #[arg(long)]
    default_end_action: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// IDs or names of the pools
    #[arg(required = true, value_name = "POOL")]
    pools: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Args, Debug)]
pub(crate) struct AddHost {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// Names of the machines
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Capability to set on each; can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_value)]
    set: Vec<(String, String)>,
    /// Move hosts that are in another free pool; they keep their ID, capabilities and leases
    #[arg(long = "move", conflicts_with = "set")]
    moves: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveHost {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// IDs or names of the hosts
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List => {
            let answer = session.connection.get("/v1/freepools", &[]).await?;
            let found: Vec<FreePool> = read(&answer, "freepools")?;
            session.print_answer(&answer, || Ok(table(&found)))
        }
        Command::Show(arguments) => show(&arguments.pool, session).await,
        Command::Create(arguments) => {
            let body = FreePoolCreate {
                name: arguments.name,
                extra_specs: arguments.specs.into_iter().collect(),
                end_action: arguments.end_action.map(|action| action.name().to_owned()),
            };
            let answer = session.connection.post("/v1/freepools", &body).await?;
            print_one(&answer, session)
        }
        Command::Rename(arguments) => {
            let body = FreePoolChange { name: Some(arguments.name), ..FreePoolChange::default() };
            let answer = session.connection.put(&path(&arguments.pool, session).await?, &body).await?;
            print_one(&answer, session)
        }
        Command::Update(arguments) => update(arguments, session).await,
        Command::Delete(arguments) => {
            let act = Act { verb: "Delete", one: "free pool", several: "free pools" };
            let done = |pool: &str| format!("Free pool {pool} is removed.");
            arguments.consent.delete(act, &POOLS, &arguments.pools, session, done).await
        }
        Command::AddHost(arguments) => add_hosts(&arguments, session).await,
        Command::RemoveHost(arguments) => {
            let pool = path(&arguments.pool, session).await?;
            remove(&arguments.consent, &arguments.hosts, &format!("{pool}/hosts"), session).await
        }
    }
}

async fn add_hosts(arguments: &AddHost, session: &mut Session<'_>) -> Result<(), ClientError> {
    let address = format!("{}/hosts", path(&arguments.pool, session).await?);
    // Machines that aren't hosts yet are added instead of moved.
    let known = if arguments.moves { all(session).await? } else { Vec::new() };
    with_each(&arguments.hosts, session, async |host, session: &mut Session<'_>| {
        let answer = if known.iter().any(|known| known.hypervisor_hostname == host || known.id == host) {
            session.connection.put(&format!("{address}/{}", segment(host)), &json!({})).await?
        } else {
            session.connection.post(&address, &new_host(host, &arguments.set)).await?
        };
        if session.wants_document() {
            return session.print_json(&answer);
        }
        session.done(&format!("Host {host} is in free pool {}.", arguments.pool))
    })
    .await
}

async fn show(pool: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let path = path(pool, session).await?;
    let mut answer = session.connection.get(&path, &[]).await?;
    let hosts = session.connection.get(&format!("{path}/hosts"), &[]).await?;
    if session.wants_document() {
        answer["hosts"] = hosts["hosts"].clone();
        return session.print_json(&answer);
    }
    let found: FreePool = read(&answer, "freepool")?;
    let hosts: Vec<Host> = read(&hosts, "hosts")?;
    session.print_table(&table(&[found]))?;
    if hosts.is_empty() { Ok(()) } else { session.print_table(&table_of(&hosts)) }
}

async fn update(arguments: Update, session: &mut Session<'_>) -> Result<(), ClientError> {
    let path = path(&arguments.pool, session).await?;
    let mut change = FreePoolChange::default();
    if !arguments.specs.is_empty() || !arguments.unset.is_empty() {
        let known: FreePool = read(&session.connection.get(&path, &[]).await?, "freepool")?;
        let mut specs = known.extra_specs;
        specs.retain(|name, _| !arguments.unset.contains(name));
        specs.extend(arguments.specs);
        change.extra_specs = Some(specs);
    }
    if arguments.end_action.is_some() || arguments.default_end_action {
        change.end_action = Some(arguments.end_action.map(|action| action.name().to_owned()));
    }
    if change == FreePoolChange::default() {
        return Err(ClientError::Usage("no changes requested: use --spec, --unset or --end-action".into()));
    }
    let answer = session.connection.put(&path, &change).await?;
    print_one(&answer, session)
}

const POOLS: Listed = Listed {
    noun: "free pool",
    path: "/v1/freepools",
    key: "freepools",
    id: "/id",
    name: "/name",
    details: &[],
    hint: "`allot freepool list` shows all",
};

/// URL path of a pool, given its name or identifier.
async fn path(pool: &str, session: &Session<'_>) -> Result<String, ClientError> {
    Ok(format!("{}/{}", POOLS.path, segment(&POOLS.find(pool, session).await?)))
}

fn print_one(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.print_answer(answer, || Ok(table(&[read(answer, "freepool")?])))
}

pub(super) fn table(found: &[FreePool]) -> Table {
    let mut table = Table::new([
        id("ID").hide(1),
        word("NAME").key(),
        word("HOSTS"),
        prose("EXTRA SPECS").hide(3),
        word("END ACTION").hide(2),
    ]);
    for pool in found {
        let specs: Vec<String> =
            pool.extra_specs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.add_row([
            pool.id.clone(),
            pool.name.clone(),
            pool.hosts.to_string(),
            specs.join(", "),
            pool.end_action.clone().unwrap_or_else(|| "default".to_owned()),
        ]);
    }
    table
}
