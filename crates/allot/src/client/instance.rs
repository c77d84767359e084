//! `allot instance` manages instances.

use std::collections::BTreeMap;
use std::time::Duration;

use api::v1::body::{HostsQuestion, InstanceCreate, LeaseHints};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::confirm::{Act, Consent};
use super::identify::Listed;
use super::lease::{by_id, identify};
use super::name_value::name_value;
use super::sizes::{gibibytes, mebibytes, memory};
use super::table::{Table, date, id, prose, time, word};
use super::wire::{Lease, plain, read};
use super::{ClientError, Session, segment};

/// Interval between checks of an instance that is being started.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Commands for instances.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List instances
    List(List),
    /// Show an instance
    Show(One),
    /// Start an instance in a lease, or on an unreserved host
    Create(Create),
    /// Start a stored instance again after preemption; a new one continues from the stored disk
    Start(One),
    /// Delete instances
    Delete(Several),
    /// Show which hosts can run an instance, and how long
    Filter(Filter),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only instances of this lease: its ID or name
    #[arg(long, value_name = "LEASE")]
    lease: Option<String>,
    /// Only instances of this project; for administrators
    #[arg(long, value_name = "PROJECT")]
    of_project: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct One {
    /// ID or name of the instance
    instance: String,
}

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// Name of the instance
    name: String,
    #[command(flatten)]
    placing: Placing,
    /// Start a replacement after preemption, as soon as capacity allows
    #[arg(long)]
    requeue: bool,
    /// Wait until it runs
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Filter {
    /// Name of a host to check; can be repeated; by default all hosts of the service
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Project of the instance
    #[arg(long, value_name = "PROJECT")]
    for_project: Option<String>,
    #[command(flatten)]
    placing: Placing,
}

/// Conditions on the host of an instance.
#[derive(Args, Debug)]
struct Placing {
    /// Lease for the instance: its ID or name
    #[arg(long, value_name = "LEASE", conflicts_with = "reservation")]
    lease: Option<String>,
    /// Reservation of a lease for the instance
    #[arg(long, value_name = "ID")]
    reservation: Option<String>,
    /// Whether it can be preempted for leases: true or false, where the operator allows it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    preemptible: Option<bool>,
    /// Class of the preemptible instance, which sets its notice before preemption
    #[arg(long, value_name = "CLASS")]
    preemptible_class: Option<String>,
    /// Property of its flavor, such as blazar:preemptible=true; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    flavor_property: Vec<(String, String)>,
    /// Property of its image; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    image_property: Vec<(String, String)>,
    /// Property of a volume; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    volume_property: Vec<(String, String)>,
    /// Run on the host of this instance: its ID or name; can be repeated
    #[arg(long, value_name = "INSTANCE")]
    same_host: Vec<String>,
    /// Don't run on the host of this instance; can be repeated
    #[arg(long, value_name = "INSTANCE")]
    different_host: Vec<String>,
    /// Virtual CPUs; the size can be omitted if the reservation has one
    #[arg(long, value_name = "N", requires = "memory")]
    vcpus: Option<u32>,
    /// Memory: 4096, 512M, 4G
    #[arg(long, value_name = "MIB", value_parser = mebibytes, requires = "vcpus")]
    memory: Option<u32>,
    /// Disk: 20, 20G, 1T
    #[arg(long, value_name = "GIB", value_parser = gibibytes, requires = "vcpus")]
    disk: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct Several {
    /// IDs or names of the instances
    #[arg(required = true, value_name = "INSTANCE")]
    instances: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(command: Command, session: &mut Session<'_>) -> Result<(), ClientError> {
    match command {
        Command::List(arguments) => {
            let mut parameters = Vec::new();
            if let Some(lease) = &arguments.lease {
                parameters.push(("lease_id", identify(lease, session).await?));
            }
            parameters.extend(arguments.of_project.map(|project| ("project_id", project)));
            let answer = session.connection.get("/v1/instances", &parameters).await?;
            let mut found: Vec<Value> = read(&answer, "instances")?;
            if session.style.is_brief() && found.iter().any(|instance| instance["lease_id"].is_string()) {
                name_leases(&mut found, &by_id(session).await);
            }
            print(&answer, &found, session)
        }
        Command::Show(arguments) => {
            let id = INSTANCES.find(&arguments.instance, session).await?;
            let answer = session.connection.get(&format!("/v1/instances/{id}"), &[]).await?;
            print(&answer, &[read(&answer, "instance")?], session)
        }
        Command::Start(arguments) => {
            let id = INSTANCES.find(&arguments.instance, session).await?;
            let path = format!("/v1/instances/{id}/start");
            let answer = session.connection.post(&path, &Value::Null).await?;
            print(&answer, &[read(&answer, "instance")?], session)
        }
        Command::Create(arguments) => {
            let Asked { hints, flavor, image, volumes } = Asked::of(&arguments.placing, session).await?;
            let body = InstanceCreate {
                name: arguments.name,
                vcpus: arguments.placing.vcpus,
                memory_mb: arguments.placing.memory,
                disk_gb: arguments.placing.disk,
                scheduler_hints: hints,
                flavor_properties: flavor,
                image_properties: image,
                volume_properties: volumes,
                requeue: arguments.requeue,
            };
            let answer = session.connection.post("/v1/instances", &body).await;
            let in_lease = arguments.placing.lease.is_some() || arguments.placing.reservation.is_some();
            let mut answer = answer.map_err(|error| with_advice(error, in_lease))?;
            if arguments.wait {
                answer = built(answer, session).await?;
            }
            print(&answer, &[read(&answer, "instance")?], session)
        }
        Command::Delete(arguments) => {
            let act = Act { verb: "Destroy", one: "instance", several: "instances" };
            let done = |instance: &str| format!("Instance {instance} is being deleted.");
            arguments.consent.delete(act, &INSTANCES, &arguments.instances, session, done).await
        }
        Command::Filter(arguments) => {
            let Asked { hints, flavor, image, volumes } = Asked::of(&arguments.placing, session).await?;
            let body = HostsQuestion {
                hosts: (!arguments.host.is_empty()).then_some(arguments.host),
                instance_id: None,
                project_id: arguments.for_project,
                vcpus: arguments.placing.vcpus,
                memory_mb: arguments.placing.memory,
                disk_gb: arguments.placing.disk,
                scheduler_hints: hints,
                flavor_properties: flavor,
                image_properties: image,
                volume_properties: volumes,
            };
            let answer = session.connection.post("/v1/instances/filter", &body).await?;
            print_hosts(&answer, session)
        }
    }
}

/// Adds advice to a refusal that has none.
fn with_advice(error: ClientError, in_lease: bool) -> ClientError {
    let ClientError::Refused { status, message, hint: None } = error else { return error };
    let is_about = |text: &str| message.starts_with(text);
    let hint = if is_about("No host has room") && in_lease {
        "choose a smaller size, or request more for the lease: `allot lease update LEASE --help`"
    } else if is_about("No host has room") {
        "choose a smaller size, start it in a lease with --lease, or see `allot availability --vcpus N --memory SIZE`"
    } else if is_about("All ") && message.ends_with("instances of the reservation are running") {
        "delete one with `allot instance delete`, or request more: `allot lease update LEASE --amount N`"
    } else if is_about("No host is as the hint") {
        "leave out --same-host and --different-host, or name other instances"
    } else if is_about("--vcpus, --memory and --disk are missing") {
        "set --vcpus and --memory, such as --vcpus 2 --memory 4G, or name a lease of instances with --lease"
    } else if is_about("Preemptible instances are not allowed") {
        "start it in a lease with --lease, or ask the operator"
    } else {
        return ClientError::Refused { status, message, hint: None };
    };
    ClientError::Refused { status, message, hint: Some(hint.to_owned()) }
}

/// Waits until the instance is no longer being started, and fails if it doesn't run.
async fn built(mut answer: Value, session: &Session<'_>) -> Result<Value, ClientError> {
    let path = format!("/v1/instances/{}", segment(&plain(&answer["instance"]["id"])));
    while answer["instance"]["status"] == "BUILD" {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        answer = session.connection.get(&path, &[]).await?;
    }
    match answer["instance"]["status_reason"].as_str() {
        Some(why) => Err(ClientError::WithoutResult(format!("the instance isn't running: {why}"))),
        None => Ok(answer),
    }
}

/// Request parameters other than the size.
struct Asked {
    hints: Option<LeaseHints>,
    flavor: BTreeMap<String, String>,
    image: BTreeMap<String, String>,
    volumes: Vec<BTreeMap<String, String>>,
}

impl Asked {
    /// Resolves the names of the lease and of instances to identifiers.
    async fn of(arguments: &Placing, session: &Session<'_>) -> Result<Self, ClientError> {
        let lease = match &arguments.lease {
            Some(lease) => Some(identify(lease, session).await?),
            None => None,
        };
        let hints = LeaseHints {
            lease,
            reservation: arguments.reservation.clone(),
            preemptible: arguments.preemptible,
            preemptible_class: arguments.preemptible_class.clone(),
            same_host: identify_all(&arguments.same_host, session).await?,
            different_host: identify_all(&arguments.different_host, session).await?,
        };
        Ok(Self {
            hints: (hints != LeaseHints::default()).then_some(hints),
            flavor: arguments.flavor_property.iter().cloned().collect(),
            image: arguments.image_property.iter().cloned().collect(),
            volumes: arguments.volume_property.iter().cloned().map(|property| [property].into()).collect(),
        })
    }
}

async fn identify_all(instances: &[String], session: &Session<'_>) -> Result<Vec<String>, ClientError> {
    let mut ids = Vec::new();
    for instance in instances {
        ids.push(INSTANCES.find(instance, session).await?);
    }
    Ok(ids)
}

pub(super) const INSTANCES: Listed = Listed {
    noun: "instance",
    path: "/v1/instances",
    key: "instances",
    id: "/id",
    name: "/name",
    details: &["/status"],
    hint: "`allot instance list` shows all",
};

fn print_hosts(answer: &Value, session: &mut Session<'_>) -> Result<(), ClientError> {
    session.print_answer(answer, || hosts_table(answer))?;
    session.note_to_people(&format!("The instance would be {}.", plain(&answer["kind"])));
    Ok(())
}

pub(super) fn hosts_table(answer: &Value) -> Result<Table, ClientError> {
    let mut table = Table::new([word("HOST").key(), word("ALLOWED"), date("UNTIL"), prose("REASON")]);
    for host in read::<Vec<Value>>(answer, "hosts")? {
        let allowed = if host["allowed"] == true { "yes" } else { "no" };
        table.add_row([
            plain(&host["host"]),
            allowed.to_owned(),
            plain(&host["until"]),
            plain(&host["reason"]),
        ]);
    }
    Ok(table)
}

fn print(answer: &Value, found: &[Value], session: &mut Session<'_>) -> Result<(), ClientError> {
    session.print_answer(answer, || Ok(table(found)))?;
    for instance in found.iter().filter(|instance| instance["status_reason"].is_string()) {
        session.note_to_people(&format!(
            "{}: {}",
            plain(&instance["name"]),
            plain(&instance["status_reason"])
        ));
    }
    Ok(())
}

/// Replaces identifiers of leases by their names.
pub(super) fn name_leases(found: &mut [Value], leases: &BTreeMap<String, Lease>) {
    for lease in found.iter_mut().filter_map(|instance| instance.get_mut("lease_id")) {
        let name = lease.as_str().and_then(|id| leases.get(id)).map(|lease| lease.name.clone());
        if let Some(name) = name {
            *lease = Value::String(name);
        }
    }
}

pub(super) fn table(found: &[Value]) -> Table {
    // Most operators don't limit how long preemptible instances run.
    let deadlines = found.iter().any(|instance| instance["deadline"].is_string());
    let mut columns = vec![
        id("ID").hide(1).key(),
        word("NAME"),
        word("STATUS"),
        word("KIND").hide(2),
        id("LEASE").hide(4),
        time("SAFE UNTIL").hide(5),
    ];
    columns.extend(deadlines.then(|| time("DEADLINE").hide(3)));
    columns.extend(["HOST", "VCPUS", "MEMORY", "DISK"].map(word));
    let mut table = Table::new(columns).or("There are no instances. `allot instance create` starts one.");
    for instance in found {
        let mut row: Vec<String> = ["id", "name", "status", "kind", "lease_id", "safe_until"]
            .map(|name| plain(&instance[name]))
            .into();
        row.extend(deadlines.then(|| plain(&instance["deadline"])));
        row.extend([
            plain(&instance["host"]),
            plain(&instance["vcpus"]),
            memory(&instance["memory_mb"]),
            format!("{} GiB", plain(&instance["disk_gb"])),
        ]);
        table.add_row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leases_of_instances_are_named_if_they_are_known() {
        let lease = json!({"id": "1", "name": "web", "start_date": "", "end_date": ""});
        let lease: Lease = serde_json::from_value(lease).expect("a lease");
        let leases = BTreeMap::from([("1".to_owned(), lease)]);
        let mut found =
            [json!({"lease_id": "1"}), json!({"lease_id": "2"}), json!({"lease_id": null}), json!(3)];
        name_leases(&mut found, &leases);
        assert_eq!(
            found,
            [json!({"lease_id": "web"}), json!({"lease_id": "2"}), json!({"lease_id": null}), json!(3)]
        );
    }

    #[test]
    fn refusals_of_an_instance_say_what_to_do() {
        let advice = |message: &str, in_lease| {
            let error = ClientError::Refused { status: 409, message: message.to_owned(), hint: None };
            with_advice(error, in_lease).hint().map(str::to_owned).unwrap_or_default()
        };
        let full = leases::admission::NoHost::AllThere(3).to_string();
        for (message, in_lease, wanted) in [
            ("No host has room for 2 vCPUs", true, "lease update"),
            ("No host has room for 2 vCPUs", false, "--lease"),
            (&*full, true, "instance delete"),
            ("--vcpus, --memory and --disk are missing", false, "--memory 4G"),
            ("Preemptible instances are not allowed here", false, "operator"),
        ] {
            let told = advice(message, in_lease);
            assert!(told.contains(wanted), "{message}: {told}");
        }
        assert_eq!(advice("The quota is exceeded", false), "");
    }

    #[test]
    fn deadlines_have_a_column_if_an_instance_has_one() {
        let deadline = "2030-01-02T10:00:30Z";
        let instance = |deadline| json!({"name": "job", "memory_mb": 4096, "deadline": deadline});
        let shown = table(&[instance(Some(deadline)), instance(None)]).in_pipe();
        assert!(shown.contains("SAFE UNTIL  DEADLINE") && shown.contains("2030-01-02"), "{shown}");
        assert!(!table(&[instance(None)]).in_pipe().contains("DEADLINE"));
    }
}
