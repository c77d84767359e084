//! `allot flavor` manages flavors.

use api::v1::body::FlavorCreate;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::confirm::{Act, Consent, Found};
use super::name_value::name_value;
use super::sizes::{gibibytes, mebibytes, memory};
use super::table::{Table, word};
use super::wire::{plain, read};
use super::{ClientError, Session, segment};

/// Commands for flavors.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List flavors
    List,
    /// Create a flavor, or change the one with this ID
    Create(Create),
    /// Delete flavors; leases that use them keep them
    Delete(Several),
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Name of the flavor
    name: String,
    /// ID of the flavor; by default its name
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Virtual CPUs
    #[arg(long, value_name = "N")]
    vcpus: u32,
    /// Memory: 4096, 512M, 4G
    #[arg(long, value_name = "MIB", value_parser = mebibytes)]
    memory: u32,
    /// Disk: 20, 20G, 1T
    #[arg(long, value_name = "GIB", value_parser = gibibytes)]
    disk: u32,
    /// Extra spec of Nova; can be repeated
    #[arg(long = "spec", value_name = "NAME=VALUE", value_parser = name_value)]
    specs: Vec<(String, String)>,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// IDs of the flavors
    #[arg(required = true, value_name = "FLAVOR")]
    flavors: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List => {
            let answer = session.connection.get("/v1/flavors", &[]).await?;
            session.print_answer(&answer, || Ok(table(&read::<Vec<Value>>(&answer, "flavors")?)))
        }
        Command::Create(arguments) => {
            let answer = session.connection.post("/v1/flavors", &body(&arguments)).await?;
            session.print_answer(&answer, || Ok(table(&[read(&answer, "flavor")?])))
        }
        Command::Delete(arguments) => {
            let act = Act { verb: "Delete", one: "flavor", several: "flavors" };
            arguments
                .consent
                .carry_out(
                    act,
                    &arguments.flavors,
                    session,
                    async |flavor, session: &mut Session<'_>| find(flavor, session).await,
                    async |flavor: &Found, session: &mut Session<'_>| {
                        session.connection.delete(&format!("/v1/flavors/{}", segment(&flavor.id))).await?;
                        session.done(&format!("Flavor {} is deleted.", flavor.name))
                    },
                )
                .await
        }
    }
}

/// Identifier and description of a flavor. Without a prompt, the service does the lookup.
async fn find(flavor: &str, session: &Session<'_>) -> Result<(String, String), ClientError> {
    if session.may_ask {
        let known: Vec<Value> = read(&session.connection.get("/v1/flavors", &[]).await?, "flavors")?;
        if known.iter().all(|known| known["id"] != flavor) {
            return Err(ClientError::Refused {
                status: 404,
                message: format!("there is no flavor {flavor:?}"),
                hint: Some("`allot flavor list` shows all".to_owned()),
            });
        }
    }
    Ok((flavor.to_owned(), flavor.to_owned()))
}

fn body(arguments: &Create) -> FlavorCreate {
    FlavorCreate {
        id: Some(arguments.id.as_ref().unwrap_or(&arguments.name).clone()),
        name: arguments.name.clone(),
        vcpus: arguments.vcpus,
        ram: arguments.memory,
        disk: arguments.disk,
        extra_specs: arguments.specs.iter().cloned().collect(),
        ..FlavorCreate::default()
    }
}

pub(super) fn table(found: &[Value]) -> Table {
    let columns =
        [word("ID").key(), word("NAME").hide(1), word("VCPUS"), word("MEMORY"), word("DISK").hide(2)];
    let mut table = Table::new(columns)
        .or("There are no flavors. Administrators create them with `allot flavor create`.");
    for flavor in found {
        table.add_row([
            plain(&flavor["id"]),
            plain(&flavor["name"]),
            plain(&flavor["vcpus"]),
            memory(&flavor["ram"]),
            format!("{} GiB", plain(&flavor["disk"])),
        ]);
    }
    table
}
