//! `allot floatingip` manages floating IPs.

use std::net::IpAddr;

use api::v1::body::FloatingIpCreate;
use clap::{Args, Subcommand};

use super::confirm::{Act, Consent};
use super::identify::Listed;
use super::table::{Table, id, word};
use super::wire::{FloatingIp, read};
use super::{ClientError, Session, with_each};

/// Commands for floating IPs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List floating IPs
    List,
    /// Show a floating IP
    Show(One),
    /// Add floating IPs of a network for leases
    Create(Create),
    /// Remove floating IPs
    Delete(Several),
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// Address or ID of the floating IP
    #[arg(value_name = "IP")]
    address: String,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// Addresses or IDs of the floating IPs
    #[arg(required = true, value_name = "IP")]
    addresses: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// ID of the network
    network: String,
    /// Addresses
    #[arg(required = true, value_name = "IP")]
    addresses: Vec<IpAddr>,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List => {
            let answer = session.connection.get("/v1/floatingips", &[]).await?;
            let found: Vec<FloatingIp> = read(&answer, "floatingips")?;
            session.print_answer(&answer, || Ok(table(&found)))
        }
        Command::Show(arguments) => {
            let id = ADDRESSES.find(&arguments.address, session).await?;
            let answer = session.connection.get(&format!("/v1/floatingips/{id}"), &[]).await?;
            session.print_answer(&answer, || Ok(table(&[read(&answer, "floatingip")?])))
        }
        Command::Create(arguments) => create(&arguments, session).await,
        Command::Delete(arguments) => {
            let act = Act { verb: "Remove", one: "floating IP", several: "floating IPs" };
            let done = |address: &str| format!("Address {address} is removed.");
            arguments.consent.delete(act, &ADDRESSES, &arguments.addresses, session, done).await
        }
    }
}

async fn create(arguments: &Create, session: &mut Session<'_>) -> Result<(), ClientError> {
    let addresses: Vec<String> = arguments.addresses.iter().map(ToString::to_string).collect();
    with_each(&addresses, session, async |address, session: &mut Session<'_>| {
        let network = arguments.network.clone();
        let body = FloatingIpCreate { floating_network_id: network, floating_ip_address: address.to_owned() };
        let answer = session.connection.post("/v1/floatingips", &body).await?;
        if session.wants_document() {
            return session.print_json(&answer);
        }
        session.done(&format!("Address {address} can be leased."))
    })
    .await
}

pub(super) fn table(found: &[FloatingIp]) -> Table {
    let columns = [word("ADDRESS").key(), word("NETWORK").hide(2), word("RESERVABLE"), id("ID").hide(1)];
    let mut table = Table::new(columns)
        .or("There are no addresses. Administrators add them with `allot floatingip create NETWORK IP`.");
    for ip in found {
        let reservable = if ip.reservable { "yes" } else { "no" };
        table.add_row([&ip.address, &ip.network, reservable, &ip.id]);
    }
    table
}

const ADDRESSES: Listed = Listed {
    noun: "floating IP",
    path: "/v1/floatingips",
    key: "floatingips",
    id: "/id",
    name: "/floating_ip_address",
    details: &[],
    hint: "`allot floatingip list` shows all",
};
