//! `allot host` manages hosts.

use std::collections::BTreeMap;

use api::v1::body::{HostChange, HostCreate, PropertyChange};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::confirm::{Act, Consent, Found};
use super::identify::Listed;
use super::lease::by_id;
use super::name_value::name_value;
use super::sizes::memory;
use super::table::{Table, date, id, prose, word};
use super::wire::{Allocation, Host, Lease, plain, read};
use super::{ClientError, Session, segment, with_each};

/// Commands for hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List hosts
    List,
    /// Show a host with its capabilities
    Show(One),
    /// Add machines of the fleet as hosts for leases
    Create(Create),
    /// Set or remove capabilities of hosts
    Update(Update),
    /// Close hosts for new leases; leases that haven't started get other hosts if possible, running leases
    /// continue
    Close(Several),
    /// Open hosts for new leases again
    Open(Several),
    /// Return hosts to the fleet
    Delete(Deleted),
    /// List names and values of properties for requirements
    Properties(Properties),
    /// List reservations of every host, or of one
    Allocations(Allocations),
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// Name or ID of the host
    #[arg(value_name = "HOST")]
    host: String,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// Names or IDs of the hosts
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Deleted {
    #[command(flatten)]
    several: Several,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Names of the machines
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Capability; can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_value)]
    set: Vec<(String, String)>,
}

#[derive(Args, Debug)]
pub(crate) struct Update {
    /// Names or IDs of the hosts
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Capability to set; can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_value, required_unless_present = "unset")]
    set: Vec<(String, String)>,
    /// Capability to remove; can be repeated
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Properties {
    /// Include hidden properties
    #[arg(long)]
    all: bool,
    /// Hide this property from lists
    #[arg(long, value_name = "NAME", conflicts_with = "unhide")]
    hide: Option<String>,
    /// Show this property in lists again
    #[arg(long, value_name = "NAME")]
    unhide: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Allocations {
    /// Only this host
    #[arg(value_name = "HOST")]
    host: Option<String>,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List => list(session).await,
        Command::Show(arguments) => show(&arguments.host, session).await,
        Command::Create(arguments) => create(&arguments, session).await,
        Command::Update(arguments) => update(&arguments, session).await,
        Command::Close(arguments) => set_reservable(&arguments.hosts, false, session).await,
        Command::Open(arguments) => set_reservable(&arguments.hosts, true, session).await,
        Command::Delete(arguments) => {
            remove(&arguments.consent, &arguments.several.hosts, HOSTS.path, session).await
        }
        Command::Properties(arguments) => properties(&arguments, session).await,
        Command::Allocations(arguments) => allocations(&arguments, session).await,
    }
}

pub(super) async fn all(session: &Session<'_>) -> Result<Vec<Host>, ClientError> {
    read(&session.connection.get("/v1/os-hosts", &[]).await?, "hosts")
}

/// Names of hosts by their numbers, as far as the caller is allowed to see them.
pub(super) async fn names_by_number(session: &Session<'_>) -> BTreeMap<String, String> {
    let hosts = all(session).await.unwrap_or_default();
    hosts.into_iter().map(|host| (host.id, host.hypervisor_hostname)).collect()
}

async fn list(session: &mut Session<'_>) -> Result<(), ClientError> {
    let answer = session.connection.get("/v1/os-hosts", &[]).await?;
    session.print_answer(&answer, || Ok(table_of(&read::<Vec<Host>>(&answer, "hosts")?)))
}

async fn show(host: &str, session: &mut Session<'_>) -> Result<(), ClientError> {
    let id = identify(host, session).await?;
    let answer = session.connection.get(&format!("/v1/os-hosts/{id}"), &[]).await?;
    print_host(&answer, session)
}

fn print_host(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    if session.wants_document() {
        return session.print_json(answer);
    }
    let host: Host = read(answer, "host")?;
    if session.is_for_people() && session.style.columns.is_none() {
        session.print(&one(&host))
    } else {
        session.print_table(&table_of(&[host]))
    }
}

/// Request that adds a machine as a host with these capabilities.
pub(super) fn new_host(name: &str, capabilities: &[(String, String)]) -> HostCreate {
    let mut capabilities: BTreeMap<_, _> = capabilities.iter().cloned().collect();
    // The machine's name is set separately.
    capabilities.remove("name");
    HostCreate { name: Some(name.to_owned()), id: None, capabilities }
}

async fn create(arguments: &Create, session: &mut Session<'_>) -> Result<(), ClientError> {
    with_each(&arguments.hosts, session, async |host, session: &mut Session<'_>| {
        let answer = session.connection.post("/v1/os-hosts", &new_host(host, &arguments.set)).await?;
        if arguments.hosts.len() == 1 || !session.is_for_people() {
            print_host(&answer, session)
        } else {
            session.done(&format!("Host {host} can be leased."))
        }
    })
    .await
}

/// Opens or closes hosts for new leases.
async fn set_reservable(
    hosts: &[String],
    reservable: bool,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    let verb = if reservable { "open" } else { "close" };
    with_each(hosts, session, async |host, session: &mut Session<'_>| {
        let id = identify(host, session).await.map_err(|error| match error {
            // The name lookup lists hosts, which the user isn't allowed to do either.
            ClientError::Refused { status: 403, message, .. } => {
                let hint = Some(message);
                ClientError::Refused {
                    status: 403,
                    message: format!("not allowed to {verb} host {host}"),
                    hint,
                }
            }
            error => error,
        })?;
        let body = HostChange { reservable: Some(reservable), ..HostChange::default() };
        let answer = session.connection.put(&format!("/v1/os-hosts/{id}"), &body).await?;
        if session.wants_document() {
            return session.print_json(&answer);
        }
        let now = if reservable { "open" } else { "closed" };
        session.done(&format!("Host {host} is {now} for new leases."))
    })
    .await
}

async fn update(arguments: &Update, session: &mut Session<'_>) -> Result<(), ClientError> {
    let set = arguments.set.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let unset = arguments.unset.iter().map(|name| (name.clone(), None));
    let body = HostChange { reservable: None, capabilities: set.chain(unset).collect() };
    with_each(&arguments.hosts, session, async |host, session: &mut Session<'_>| {
        let id = identify(host, session).await?;
        let answer = session.connection.put(&format!("/v1/os-hosts/{id}"), &body).await?;
        if arguments.hosts.len() == 1 || !session.is_for_people() {
            print_host(&answer, session)
        } else {
            session.done(&format!("Host {host} is changed."))
        }
    })
    .await
}

/// Removes hosts from the collection at `path`: all hosts of the service, or those of a free pool.
pub(super) async fn remove(
    consent: &Consent,
    hosts: &[String],
    path: &str,
    session: &mut Session<'_>,
) -> Result<(), ClientError> {
    let act = Act { verb: "Remove", one: "host", several: "hosts" };
    consent
        .carry_out(
            act,
            hosts,
            session,
            async |host, session: &mut Session<'_>| find_described(host, session).await,
            async |host: &Found, session: &mut Session<'_>| {
                let address = format!("{path}/{}", segment(&host.id));
                if let Err(error) = session.connection.delete(&address).await {
                    return Err(not_removed(host, error, session).await);
                }
                session.done(&format!("Host {} is returned to the fleet.", host.name))
            },
        )
        .await
}

/// Rewrites the refusal to remove a host, with the name that the user gave and the leases that hold it.
async fn not_removed(host: &Found, error: ClientError, session: &Session<'_>) -> ClientError {
    let ClientError::Refused { status: 409, message, hint } = error else { return error };
    let message = message.replace(&format!("host {}.", host.id), &format!("host {}.", host.name));
    let path = format!("/v1/os-hosts/{}/allocation", host.id);
    let answer = session.connection.get(&path, &[]).await.unwrap_or_default();
    let Ok(allocation) = read::<Allocation>(&answer, "allocation") else {
        return ClientError::Refused { status: 409, message, hint };
    };
    let names = by_id(session).await;
    let mut having: Vec<&str> = allocation
        .reservations
        .iter()
        .map(|one| names.get(&one.lease_id).map_or(one.lease_id.as_str(), |lease| &lease.name))
        .collect();
    having.dedup();
    let hint =
        if having.is_empty() { hint } else { Some(format!("leases of this host: {}", having.join(", "))) };
    ClientError::Refused { status: 409, message, hint }
}

async fn properties(arguments: &Properties, session: &mut Session<'_>) -> Result<(), ClientError> {
    let hide = arguments.hide.as_ref().map(|name| (name, true));
    if let Some((name, private)) = hide.or_else(|| arguments.unhide.as_ref().map(|name| (name, false))) {
        let path = format!("/v1/os-hosts/properties/{}", segment(name));
        let answer = session.connection.patch(&path, &PropertyChange { private }).await?;
        if session.wants_document() {
            return session.print_json(&answer);
        }
        let now = if private { "hidden" } else { "shown" };
        return session.done(&format!("Property {name} is {now} in lists."));
    }
    let mut query = vec![("detail", "True".to_owned())];
    if arguments.all {
        query.push(("all", "True".to_owned()));
    }
    let answer = session.connection.get("/v1/os-hosts/properties", &query).await?;
    session.print_answer(&answer, || properties_table(&answer))
}

pub(super) fn properties_table(answer: &Value) -> Result<Table, ClientError> {
    let mut table = Table::new([word("PROPERTY").key(), prose("VALUES"), word("HIDDEN").hide(1)])
        .or("No host has capabilities.");
    for property in read::<Vec<Value>>(answer, "resource_properties")? {
        let hidden = if property["private"] == true { "yes" } else { "" };
        table.add_row([plain(&property["property"]), plain(&property["values"]), hidden.to_owned()]);
    }
    Ok(table)
}

async fn allocations(arguments: &Allocations, session: &mut Session<'_>) -> Result<(), ClientError> {
    let (path, key) = match &arguments.host {
        Some(host) => (format!("/v1/os-hosts/{}/allocation", identify(host, session).await?), "allocation"),
        None => ("/v1/os-hosts/allocations".to_owned(), "allocations"),
    };
    let answer = session.connection.get(&path, &[]).await?;
    if session.wants_document() {
        return session.print_json(&answer);
    }
    let entries: Vec<Allocation> =
        if key == "allocation" { vec![read(&answer, key)?] } else { read(&answer, key)? };
    let hosts = all(session).await?;
    let leases = by_id(session).await;
    session.print_table(&allocated(&entries, &hosts, &leases))
}

/// Number of a host, and its description for a prompt.
async fn find_described(host: &str, session: &Session<'_>) -> Result<(String, String), ClientError> {
    if session.may_ask {
        HOSTS.find_described(host, session).await
    } else {
        Ok((identify(host, session).await?, host.to_owned()))
    }
}

/// Number of a host, given its name or number.
async fn identify(host: &str, session: &Session<'_>) -> Result<String, ClientError> {
    if !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(host.to_owned());
    }
    HOSTS.find(host, session).await
}

pub(super) const HOSTS: Listed = Listed {
    noun: "host",
    path: "/v1/os-hosts",
    key: "hosts",
    id: "/id",
    name: "/hypervisor_hostname",
    details: &[],
    hint: "`allot host list` shows all, `allot host create` adds one",
};

/// Fields of every host that aren't capabilities (API-hosts).
const COLUMNS: [&str; 10] = [
    "service_name",
    "hypervisor_type",
    "hypervisor_version",
    "cpu_info",
    "status",
    "availability_zone",
    "trust_id",
    "created_at",
    "updated_at",
    "disabled",
];

fn capabilities(host: &Host) -> String {
    let own = host.fields.iter().filter(|(name, _)| !COLUMNS.contains(&name.as_str()));
    own.map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
}

pub(super) fn table_of(hosts: &[Host]) -> Table {
    let columns = [
        word("ID").hide(1),
        word("NAME").key(),
        word("VCPUS"),
        word("MEMORY").hide(3),
        word("DISK").hide(2),
        word("RESERVABLE"),
        prose("CAPABILITIES"),
    ];
    let mut table =
        Table::new(columns).or("There are no hosts. `allot host create NAME` adds a machine of the fleet.");
    for host in hosts {
        table.add_row([
            host.id.clone(),
            host.hypervisor_hostname.clone(),
            host.vcpus.to_string(),
            memory(&json!(host.memory_mb)),
            format!("{} GiB", host.local_gb),
            (if host.reservable { "yes" } else { "no" }).to_owned(),
            capabilities(host),
        ]);
    }
    table
}

fn one(host: &Host) -> String {
    let memory = memory(&json!(host.memory_mb));
    let size = format!("{} vCPU, {memory} memory, {} GiB disk", host.vcpus, host.local_gb);
    let reservable = (if host.reservable { "yes" } else { "no" }).to_owned();
    let mut lines = vec![("size", size), ("reservable", reservable)];
    let others = host.fields.iter().map(|(name, value)| (name.as_str(), plain(value)));
    lines.extend(others.filter(|(name, value)| !value.is_empty() && *name != "trust_id"));
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = lines.iter().map(|(name, value)| format!("  {name:<width$}  {value}")).collect();
    format!("Host {} (number {})\n{}", host.hypervisor_hostname, host.id, lines.join("\n"))
}

pub(super) fn allocated(entries: &[Allocation], hosts: &[Host], leases: &BTreeMap<String, Lease>) -> Table {
    let mut table = Table::new([
        word("HOST"),
        id("LEASE"),
        word("PROJECT").hide(1),
        word("STATUS").hide(2),
        date("START"),
        date("END"),
    ]);
    for entry in entries {
        let name = hosts.iter().find(|host| host.id == entry.resource_id);
        let name = name.map_or(entry.resource_id.as_str(), |host| &host.hypervisor_hostname);
        if entry.reservations.is_empty() {
            table.add_row([name, "-"]);
        }
        for reservation in &entry.reservations {
            let lease = leases.get(&reservation.lease_id);
            table.add_row([
                name,
                lease.map_or(reservation.lease_id.as_str(), |lease| &lease.name),
                lease.map_or("", |lease| &lease.project_id),
                lease.map_or("", |lease| &lease.status),
                &reservation.start_date,
                &reservation.end_date,
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<Host> {
        let hosts = json!([
            {"id": "1", "hypervisor_hostname": "node1", "vcpus": 16, "memory_mb": 65536, "local_gb": 1000,
             "reservable": true, "status": null, "trust_id": "t", "cpu_info": "{}", "rack": "r1", "gpu": "True"},
            {"id": "2", "hypervisor_hostname": "node2", "vcpus": 8, "memory_mb": 1024, "local_gb": 10,
             "reservable": false},
        ]);
        serde_json::from_value(hosts).expect("hosts")
    }

    #[test]
    fn hosts_are_listed_with_their_capabilities() {
        let wanted = [
            " ID  NAME   VCPUS  MEMORY  DISK      RESERVABLE  CAPABILITIES",
            " 1   node1  16     64 GiB  1000 GiB  yes         gpu=True rack=r1",
            " 2   node2  8      1 GiB   10 GiB    no",
        ];
        assert_eq!(table_of(&hosts()).in_pipe().lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn allocations_name_hosts_and_leases_where_they_are_known() {
        let entries = json!([
            {"resource_id": "1", "reservations": [
                {"id": "r", "lease_id": "l1", "start_date": "2030-01-02T10:00:00.000000",
                 "end_date": "2030-01-02T11:00:00.000000"},
                {"id": "r", "lease_id": "l2", "start_date": "2030-01-02T11:00:00.000000",
                 "end_date": "2030-01-02T12:00:00.000000"}]},
            {"resource_id": "2", "reservations": []},
        ]);
        let entries: Vec<Allocation> = serde_json::from_value(entries).expect("allocations");
        let lease = json!({"id": "l1", "name": "web", "project_id": "p", "status": "PENDING",
            "start_date": "", "end_date": ""});
        let lease: Lease = serde_json::from_value(lease).expect("a lease");
        let leases = BTreeMap::from([("l1".to_owned(), lease)]);
        let wanted = [
            " HOST   LEASE  PROJECT  STATUS   START             END",
            " node1  web    p        PENDING  2030-01-02 10:00  2030-01-02 11:00",
            " node1  l2                       2030-01-02 11:00  2030-01-02 12:00",
            " node2  -",
        ];
        assert_eq!(allocated(&entries, &hosts(), &leases).in_pipe().lines().collect::<Vec<_>>(), wanted);
    }
}
