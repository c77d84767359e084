//! `allot floatingip`.

use std::net::IpAddr;

use api::v1::body::FloatingIpCreate;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::table::text;
use super::wire::{FloatingIp, read};
use super::{ClientError, Session, segment, with_each};

/// What to do with addresses.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List addresses
    List,
    /// Show an address
    Show(One),
    /// Take addresses of a network on, so that they can be leased
    Create(Create),
    /// Take addresses away
    Delete(Several),
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// The address, or its identifier
    #[arg(value_name = "IP")]
    address: String,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// The addresses, or their identifiers
    #[arg(required = true, value_name = "IP")]
    addresses: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// The network's identifier
    network: String,
    /// The addresses
    #[arg(required = true, value_name = "IP")]
    addresses: Vec<IpAddr>,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List => {
            let answer = session.connection.get("/v1/floatingips", &[]).await?;
            let found: Vec<FloatingIp> = read(&answer, "floatingips")?;
            print(&answer, &found, session)
        }
        Command::Show(arguments) => {
            let id = identify(&arguments.address, session).await?;
            let answer = session.connection.get(&format!("/v1/floatingips/{id}"), &[]).await?;
            print(&answer, &[read(&answer, "floatingip")?], session)
        }
        Command::Create(arguments) => create(&arguments, session).await,
        Command::Delete(arguments) => {
            with_each(&arguments.addresses, session, async |address, session: &mut Session<'_>| {
                let id = identify(address, session).await?;
                session.connection.delete(&format!("/v1/floatingips/{id}")).await?;
                if session.json {
                    Ok(())
                } else {
                    session.print(&format!("Address {address} is taken away."))
                }
            })
            .await
        }
    }
}

async fn create(arguments: &Create, session: &mut Session<'_>) -> Result<(), ClientError> {
    let addresses: Vec<String> = arguments.addresses.iter().map(ToString::to_string).collect();
    with_each(&addresses, session, async |address, session: &mut Session<'_>| {
        let network = arguments.network.clone();
        let body = FloatingIpCreate { floating_network_id: network, floating_ip_address: address.to_owned() };
        let answer = session.connection.post("/v1/floatingips", &body).await?;
        if session.json {
            session.print_json(&answer)
        } else {
            session.print(&format!("Address {address} can be leased."))
        }
    })
    .await
}

fn print(answer: &Value, found: &[FloatingIp], session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.json {
        return session.print_json(answer);
    }
    if found.is_empty() {
        return session.print("There are no addresses. `allot floatingip create NETWORK IP` takes one on.");
    }
    let mut table = session.style.table(&["ADDRESS", "NETWORK", "RESERVABLE", "ID"]);
    for ip in found {
        let reservable = if ip.reservable { "yes" } else { "no" };
        table.add_row([&ip.address, &ip.network, reservable, &ip.id]);
    }
    session.print(&text(&table)?)
}

/// The identifier of the address that is meant.
async fn identify(address: &str, session: &Session<'_>) -> Result<String, ClientError> {
    if address.parse::<IpAddr>().is_err() {
        return Ok(segment(address));
    }
    let answer = session.connection.get("/v1/floatingips", &[]).await?;
    let found: Vec<FloatingIp> = read(&answer, "floatingips")?;
    let found = found.into_iter().find(|ip| ip.address == address);
    found.map(|ip| ip.id).ok_or_else(|| ClientError::Refused {
        status: 404,
        message: format!("there is no address {address} that may be leased"),
        hint: None,
    })
}
