//! `allot import blazar`: reads the hosts and leases of a running Blazar through its API, and imports them
//! into an empty database of ours.
//!
//! Blazar's own records and the cloud's servers are never changed. The only changes in the cloud are keys in
//! the metadata of aggregates, by which our driver recognizes reservations
//! ([`fleet_openstack::BlazarReservation`]).

mod records;
mod saved;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use ambient::{Clock, Ids as _, RandomIds, SystemClock};
use clap::{ArgMatches, Args};
use fleet::{FleetError, Inventory as _};
use fleet_openstack::{BlazarTraces, OpenStackFleet};
use jiff::Timestamp;
use leases::host::FloatingIp;
use leases::lease::EventKind;
use leases::status::LeaseStatus;
use leases::text::{Quoted, counted, escaped};
use store::Store as _;
use store::memory::MemoryStore;
use thiserror::Error;

use self::records::{Given, Records, read_address};
use self::saved::{Saved, SavedError};
use crate::client::{self, ClientError, Connection};
use crate::config::{self, ConfigError, Configuration, FenceChoice, FleetChoice};
use crate::database::{self, DatabaseError};
use crate::serve::{AssemblyError, cloud};

/// Settings that have flags here. All others come from the settings file or the environment.
pub(super) const SETTINGS: [&str; 1] = ["database"];

/// Maximum number of entries in a printed list.
const SHOWN: usize = 50;

/// Step of the import.
#[derive(Args, Debug)]
pub(super) struct BlazarArguments {
    /// File with Blazar's data, kept between these steps
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read all data of a running Blazar as administrator, and write it to FILE
    #[arg(long, conflicts_with_all = ["take_over", "undo"])]
    read: bool,
    /// Import FILE: write it to the configured database, and mark its aggregates as managed by this service
    #[arg(long, conflicts_with = "undo")]
    take_over: bool,
    /// Remove our keys from Blazar's aggregates, before anything has been changed
    #[arg(long)]
    undo: bool,
    /// Import the rest if a part can't be imported
    #[arg(long, requires = "take_over")]
    leave_out: bool,
    /// Confirm that Blazar's manager is stopped, if its API can't be asked
    #[arg(long, requires = "take_over")]
    manager_stopped: bool,
    #[command(flatten)]
    target: client::Target,
    #[command(flatten)]
    login: client::LoginArguments,
}

/// Failure of a step of the import.
#[derive(Debug, Error)]
pub(super) enum BlazarError {
    #[error(transparent)]
    Saved(#[from] SavedError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("openstack: {0}")]
    Assembly(#[from] AssemblyError),
    #[error(
        "the settings need fleet = \"openstack\" and a section [openstack]; `allot import blazar-conf` generates them"
    )]
    NoCloud,
    #[error(
        "openstack.fence must be blazar-filter or allot-filter: other fences don't use the aggregates of Blazar's leases"
    )]
    OtherFence,
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("cannot query the cloud: {0}")]
    Fleet(#[from] FleetError),
    #[error("no changes were made: {0}")]
    Refused(String),
    #[error(
        "no changes were made: Blazar at {url} still responds; stop blazar-manager, not its API, and try again. Changes \
         made since FILE was written are lost, so block other clients of its API before reading FILE"
    )]
    Running { url: String },
    #[error(
        "no changes were made: cannot tell whether Blazar's manager still runs, since its API at {url} doesn't \
         respond ({reason}); start the API alone, or use --manager-stopped if you are sure"
    )]
    Unclear { url: String, reason: String },
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
}

impl BlazarError {
    /// Whether the command line or the settings are wrong.
    pub(super) fn is_of_usage(&self) -> bool {
        matches!(
            self,
            Self::Config(_) | Self::NoCloud | Self::OtherFence | Self::Client(ClientError::Usage(_))
        )
    }
}

/// Text to print, and whether the step found no problems.
pub(super) struct Told {
    pub text: String,
    pub well: bool,
}

pub(super) fn run(arguments: BlazarArguments, settings: &ArgMatches) -> Result<Told, BlazarError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if arguments.read {
            return read(arguments).await;
        }
        let saved = Saved::read(&arguments.file)?;
        let configuration = config::load(settings, &|name| std::env::var_os(name))?;
        if !matches!(configuration.fleet, FleetChoice::OpenStack) {
            return Err(BlazarError::NoCloud);
        }
        if matches!(configuration.openstack.fence, FenceChoice::Tenant | FenceChoice::Traits) {
            return Err(BlazarError::OtherFence);
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let fleet = cloud(&configuration, clock)?;
        let addresses = saved.floating_ips.iter().filter_map(|value| read_address(value, saved.read_at).ok());
        let addresses: Vec<FloatingIp> = addresses.map(|record| record.floating_ip).collect();
        let given = fleet.observe(&BTreeSet::new(), &addresses).await?.floating_ips;
        let step = Step {
            records: Records::of(&saved, &given, || RandomIds.uuid()),
            fleet,
            given,
            saved,
            configuration,
            now: SystemClock.now(),
        };
        if arguments.undo {
            step.undo().await
        } else if arguments.take_over {
            step.take_over(arguments).await
        } else {
            step.compare().await
        }
    })
}

async fn read(arguments: BlazarArguments) -> Result<Told, BlazarError> {
    let login = client::Login::new(arguments.login)?;
    let blazar = Connection::open(arguments.target, login, true).await?;
    let saved = Saved::ask(&blazar, || SystemClock.now()).await?;
    saved.write(&arguments.file)?;
    let records = Records::of(&saved, &Given::new(), || RandomIds.uuid());
    let file = arguments.file.display();
    let mut text = counts(&saved, &records) + &left_out(&records);
    let _ = writeln!(
        text,
        "Written to {file}. No changes were made: `allot import blazar {file}` compares it with the cloud."
    );
    Ok(Told { text, well: records.left_out.is_empty() })
}

/// Input of the steps after `--read`.
struct Step {
    saved: Saved,
    records: Records,
    given: Given,
    configuration: Configuration,
    fleet: OpenStackFleet,
    now: Timestamp,
}

impl Step {
    /// Reports the records that would be imported, and all obstacles.
    async fn compare(&self) -> Result<Told, BlazarError> {
        let traces = self.traces().await?;
        let database = database::refuse_filled(&self.configuration.database).await;
        let database = database.map_err(|error| error.to_string());
        let in_the_way: Vec<String> =
            [self.contradiction().await, database].into_iter().filter_map(Result::err).collect();
        let mut text = counts(&self.saved, &self.records);
        text += &(left_out(&self.records) + &differences(&traces) + &self.due());
        text += &listed("Obstacles", &in_the_way);
        let well = in_the_way.is_empty() && traces.differences.is_empty() && self.records.left_out.is_empty();
        text += "No changes were made.";
        if well {
            text += " Stop blazar-manager, and import with --take-over.";
        }
        text.push('\n');
        Ok(Told { text, well })
    }

    async fn take_over(&self, arguments: BlazarArguments) -> Result<Told, BlazarError> {
        if !self.records.left_out.is_empty() && !arguments.leave_out {
            let text = left_out(&self.records);
            return Err(BlazarError::Refused(format!(
                "some records can't be imported; continue without them with --leave-out:\n{text}"
            )));
        }
        self.refuse_running(&arguments).await?;
        let traces = self.traces().await?;
        if !traces.differences.is_empty() {
            return Err(BlazarError::Refused(differences(&traces)));
        }
        self.contradiction().await.map_err(BlazarError::Refused)?;
        database::refuse_filled(&self.configuration.database).await?;
        // Keys first: they have no effect without the database, and setting them can be repeated.
        self.fleet.take_over(&traces).await?;
        let to = database::take_in(&self.records.archive, &self.configuration.database).await?;
        let mut text = counts(&self.saved, &self.records) + &self.due();
        let _ = writeln!(
            text,
            "Imported into {to}. Start `allot serve`, and change the catalog's endpoint to it. Until then, and until \
             a lease starts, ends or is changed, `allot import blazar {file} --undo` gives everything back to Blazar.",
            file = arguments.file.display()
        );
        Ok(Told { text, well: true })
    }

    async fn undo(&self) -> Result<Told, BlazarError> {
        database::refuse_used(&self.configuration.database).await?;
        let traces = self.traces().await?;
        if !traces.differences.is_empty() {
            return Err(BlazarError::Refused(format!(
                "Blazar wouldn't find its leases as it left them.\n{}",
                differences(&traces)
            )));
        }
        self.fleet.give_back(&traces).await?;
        let database = database::name(&self.configuration.database);
        let text = format!(
            "The aggregates are Blazar's again; start blazar-manager. {database} still has the imported records: remove it.\n"
        );
        Ok(Told { text, well: true })
    }

    /// Compares the cloud with the records to import.
    async fn traces(&self) -> Result<BlazarTraces, BlazarError> {
        let hosts = self.records.archive.snapshot.hosts.iter();
        let hosts: BTreeMap<_, _> = hosts.map(|record| (record.host.id, record.host.name.clone())).collect();
        let mut traces = self.fleet.compare_with_blazar(&self.records.reservations, &hosts).await?;
        traces.differences.extend(self.records.addresses_of_others(&self.given));
        Ok(traces)
    }

    /// Tries the import on a store in memory.
    async fn contradiction(&self) -> Result<(), String> {
        MemoryStore::new().import(&self.records.archive).await.map_err(|error| error.to_string())
    }

    /// Fails if Blazar's manager runs, or if that is unclear: both services would change the cloud.
    async fn refuse_running(&self, arguments: &BlazarArguments) -> Result<(), BlazarError> {
        let url = self.saved.url.clone();
        let target = client::Target { url: Some(url.clone()), ..arguments.target.clone() };
        let login = client::Login::new(arguments.login.clone())?;
        let blazar = Connection::open(target, login, true).await?;
        match blazar.get("/v1/leases", &[]).await {
            Ok(_) => Err(BlazarError::Running { url }),
            // Blazar's API timed out waiting for its manager.
            Err(ClientError::Refused { status: 500, .. }) => Ok(()),
            Err(_) if arguments.manager_stopped => Ok(()),
            Err(error) => Err(BlazarError::Unclear { url, reason: error.to_string() }),
        }
    }

    /// Starts and ends of leases that are due but that Blazar hasn't carried out.
    fn due(&self) -> String {
        let due = self.records.due(self.now).map(|undone| {
            let what = if undone.kind == EventKind::StartLease { "start" } else { "end" };
            format!("{what} of lease {} ({}), at {}", undone.lease, Quoted(&undone.name), undone.at)
        });
        listed("Due when `allot serve` starts", &due.collect::<Vec<_>>())
    }
}

fn differences(traces: &BlazarTraces) -> String {
    listed("The cloud differs from Blazar's records", &traces.differences)
}

fn left_out(records: &Records) -> String {
    let entries = records.left_out.iter().map(|left| format!("{}: {}", left.what, left.why));
    listed("Cannot be imported", &entries.collect::<Vec<_>>())
}

/// A heading with at most `SHOWN` entries below it. Empty if there are no entries.
fn listed(heading: &str, entries: &[String]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = format!("{heading}:\n");
    for entry in entries.iter().take(SHOWN) {
        // A name with a line break would look like another entry.
        let _ = writeln!(text, "  {}", escaped(entry));
    }
    if entries.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", entries.len() - SHOWN);
    }
    text
}

/// Blazar's URL, the time of reading, and the number of records.
fn counts(saved: &Saved, records: &Records) -> String {
    let snapshot = &records.archive.snapshot;
    let of = |status| snapshot.leases.iter().filter(|record| record.lease.status == status).count() as u64;
    let statuses = [
        (LeaseStatus::Pending, "pending"),
        (LeaseStatus::Active, "active"),
        (LeaseStatus::Terminated, "terminated"),
        (LeaseStatus::Error, "failed"),
    ];
    let statuses =
        statuses.map(|(status, name)| (of(status), name)).into_iter().filter(|(count, _)| *count > 0);
    let statuses: Vec<String> = statuses.map(|(count, name)| format!("{count} {name}")).collect();
    let statuses = if statuses.is_empty() { String::new() } else { format!(" ({})", statuses.join(", ")) };
    let addresses = match snapshot.floating_ips.len() as u64 {
        0 => String::new(),
        count => format!(", {}", counted(count, "address", "addresses")),
    };
    format!(
        "Blazar at {}, read at {}: {}, {}{statuses}{addresses}\n",
        escaped(&saved.url),
        saved.read_at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        counted(snapshot.hosts.len() as u64, "host", "hosts"),
        counted(snapshot.leases.len() as u64, "lease", "leases"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_and_each_entry_is_one_line() {
        let entries: Vec<String> = (0..60).map(|number| format!("lease {number} (a\nb\u{202e})")).collect();
        let text = listed("Cannot be imported", &entries);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[51]), (52, "Cannot be imported:", "  and 10 more"));
        assert_eq!(lines[1], "  lease 0 (a\\u{a}b\\u{202e})");
    }
}
