//! `allot leasepool` manages the hosts of running leases as pools.

use std::collections::BTreeMap;

use api::v1::body::{LeasePoolChange, LeasePoolCreate, LeasePoolGrowth, LeasePoolSwap};
use api::v1::{LeasePool, LeasePoolHost};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::confirm::{Act, Consent};
use super::identify::Listed;
use super::lease::{EndAction, by_id};
use super::name_value::name_value;
use super::table::{Table, id, prose, word};
use super::wire::{Lease, read};
use super::{ClientError, Session};

/// Commands for lease pools.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List lease pools: the hosts of running leases
    List(List),
    /// Show a lease pool, its hosts, and the instances on them
    Show(One),
    /// Lease hosts immediately as a pool
    Create(Create),
    /// Rename a lease pool
    Rename(Rename),
    /// Set the overcommit ratios of the hosts of a lease pool
    Set(Set),
    /// Add hosts to a lease pool until its lease ends
    #[command(name = "add-host")]
    AddHost(AddHost),
    /// Swap a bad host of a lease pool for a similar one
    #[command(name = "swap-host")]
    SwapHost(SwapHost),
    /// End the leases of lease pools
    Delete(Several),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only pools of this project; for administrators
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
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
    /// Number of hosts
    #[arg(long, value_name = "N")]
    hosts: u32,
    /// Duration: 4h, 2d, P1DT4H
    #[arg(long = "for", value_name = "DURATION")]
    duration: String,
    /// Requirement on hosts; can be repeated
    #[arg(long = "extra-spec", value_name = "NAME=VALUE", value_parser = name_value)]
    specs: Vec<(String, String)>,
    /// Project of the pool; for administrators, any project
    #[arg(long, value_name = "PROJECT")]
    for_project: Option<String>,
    /// Action for its instances at the end
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
pub(crate) struct Set {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// Virtual CPUs per CPU; "default" for the hosts' own ratio
    #[arg(long, value_name = "RATIO", required_unless_present = "ram_ratio")]
    cpu_ratio: Option<Ratio>,
    /// Memory of instances per memory of hosts; "default" for the hosts' own ratio
    #[arg(long, value_name = "RATIO")]
    ram_ratio: Option<Ratio>,
}

/// Overcommit ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ratio {
    /// The ratio set on each host.
    Default,
    Of(f64),
}

impl Ratio {
    /// Ratio in requests. `None` selects the ratio set on each host.
    fn wire(self) -> Option<f64> {
        match self {
            Self::Default => None,
            Self::Of(ratio) => Some(ratio),
        }
    }
}

impl std::str::FromStr for Ratio {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "default" {
            return Ok(Self::Default);
        }
        // The service validates the range.
        let ratio = text.parse().ok().filter(|ratio: &f64| ratio.is_finite());
        ratio.map(Self::Of).ok_or("write a number such as 1.5, or default")
    }
}

#[derive(Args, Debug)]
pub(crate) struct AddHost {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// Number of hosts to add
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
    /// Additional requirement on the new hosts; can be repeated
    #[arg(long = "extra-spec", value_name = "NAME=VALUE", value_parser = name_value)]
    specs: Vec<(String, String)>,
}

#[derive(Args, Debug)]
pub(crate) struct SwapHost {
    /// ID or name of the pool
    #[arg(value_name = "POOL")]
    pool: String,
    /// ID or name of the host
    host: String,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// IDs or names of the pools
    #[arg(required = true, value_name = "POOL")]
    pools: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List(arguments) => {
            let parameters: Vec<_> =
                arguments.of_project.map(|project| ("project_id", project)).into_iter().collect();
            let answer = session.connection.get("/v1/leasepools", &parameters).await?;
            let mut found: Vec<LeasePool> = read(&answer, "leasepools")?;
            if session.style.is_brief() && !found.is_empty() {
                name_leases(&mut found, &by_id(session).await);
            }
            session.print_answer(&answer, || Ok(table(&found)))
        }
        Command::Show(arguments) => show(&arguments.pool, session).await,
        Command::Create(arguments) => {
            let body = LeasePoolCreate {
                host_count: arguments.hosts,
                name: Some(arguments.name),
                extra_specs: arguments.specs.into_iter().collect(),
                duration: Some(arguments.duration),
                end_action: arguments.end_action.map(|action| action.name().to_owned()),
                project_id: arguments.for_project,
                ..LeasePoolCreate::default()
            };
            let answer = session.connection.post("/v1/leasepools", &body).await?;
            print_one(&answer, session)
        }
        Command::Rename(Rename { pool, name }) => {
            let renamed = LeasePoolChange { name: Some(Some(name)), ..LeasePoolChange::default() };
            change(&pool, &renamed, session).await
        }
        Command::Set(arguments) => {
            let ratios = LeasePoolChange {
                name: None,
                cpu_allocation_ratio: arguments.cpu_ratio.map(Ratio::wire),
                ram_allocation_ratio: arguments.ram_ratio.map(Ratio::wire),
            };
            change(&arguments.pool, &ratios, session).await
        }
        Command::AddHost(arguments) => {
            let address = format!("{}/hosts", path(&arguments.pool, session).await?);
            let extra_specs = arguments.specs.into_iter().collect();
            let body = LeasePoolGrowth { host_count: Some(arguments.count), extra_specs };
            let answer = session.connection.post(&address, &body).await?;
            print_one(&answer, session)
        }
        Command::SwapHost(SwapHost { pool, host }) => {
            let address = path(&pool, session).await?;
            let answer = session.connection.get(&format!("{address}/hosts"), &[]).await?;
            let hosts: Vec<LeasePoolHost> = read(&answer, "hosts")?;
            let found = hosts.into_iter().find(|one| one.id == host || one.name == host);
            let message = || format!("there is no host {host:?} in the pool");
            let refused = || ClientError::Refused { status: 404, message: message(), hint: None };
            let body = LeasePoolSwap { host_id: found.ok_or_else(refused)?.id };
            let answer = session.connection.post(&format!("{address}/swap"), &body).await?;
            print_one(&answer, session)
        }
        Command::Delete(arguments) => {
            let act = Act { verb: "End", one: "lease pool", several: "lease pools" };
            let done = |pool: &str| format!("The lease of pool {pool} is ended.");
            arguments.consent.delete(act, &POOLS, &arguments.pools, session, done).await
        }
    }
}

async fn change(pool: &str, to: &LeasePoolChange, session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.put(&path(pool, session).await?, to).await?;
    print_one(&answer, session)
}

async fn show(pool: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let path = path(pool, session).await?;
    let mut answer = session.connection.get(&path, &[]).await?;
    let hosts = session.connection.get(&format!("{path}/hosts"), &[]).await?;
    if session.wants_document() {
        answer["hosts"] = hosts["hosts"].clone();
        return session.print_json(&answer);
    }
    print_one(&answer, session)?;
    session.print("")?;
    session.print_table(&hosts_table(read(&hosts, "hosts")?))
}

pub(super) fn hosts_table(hosts: Vec<LeasePoolHost>) -> Table {
    let mut table = Table::new([word("HOST").key(), prose("INSTANCES")]);
    for host in hosts {
        let instances: Vec<String> =
            host.instances.into_iter().map(|instance| instance.name.unwrap_or(instance.id)).collect();
        table.add_row([host.name, instances.join(", ")]);
    }
    table
}

const POOLS: Listed = Listed {
    noun: "lease pool",
    path: "/v1/leasepools",
    key: "leasepools",
    id: "/id",
    name: "/name",
    details: &[],
    hint: "`allot leasepool list` shows all",
};

/// URL path of a pool, given its name or identifier.
async fn path(pool: &str, session: &Session<'_>) -> Result<String, ClientError> {
    Ok(format!("{}/{}", POOLS.path, POOLS.find(pool, session).await?))
}

fn print_one(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.print_answer(answer, || Ok(table(&[read(answer, "leasepool")?])))
}

/// Replaces identifiers of leases by their names.
pub(super) fn name_leases(found: &mut [LeasePool], leases: &BTreeMap<String, Lease>) {
    for pool in found {
        if let Some(lease) = leases.get(&pool.lease_id) {
            pool.lease_id.clone_from(&lease.name);
        }
    }
}

pub(super) fn table(found: &[LeasePool]) -> Table {
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "default".to_owned(), |ratio| ratio.to_string());
    let mut table = Table::new([
        id("ID").key(),
        word("NAME"),
        id("LEASE"),
        word("HOSTS"),
        word("CPU RATIO").hide(2),
        word("RAM RATIO").hide(1),
    ])
    .or("There are no lease pools. `allot leasepool create` creates one.");
    for pool in found {
        table.add_row([
            pool.id.clone(),
            // The name of an unnamed pool is its identifier.
            if pool.name == pool.id { String::new() } else { pool.name.clone() },
            pool.lease_id.clone(),
            pool.hosts.to_string(),
            ratio(pool.cpu_allocation_ratio),
            ratio(pool.ram_allocation_ratio),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_number_or_what_hosts_say() {
        assert_eq!("default".parse(), Ok(Ratio::Default));
        assert_eq!("1.5".parse(), Ok(Ratio::Of(1.5)));
        for wrong in ["", "much", "NaN", "inf", "1.5x"] {
            assert!(wrong.parse::<Ratio>().is_err(), "{wrong}");
        }
    }
}
