//! `allot demo`: a service that isn't empty. It has a simulated fleet of three racks, five projects, past,
//! current and future leases, guests that start and stop, and a clock that runs faster.
//!
//! No records are forged. The past is simulated through the service, under a clock that is set from one event
//! to the next. Then the service is opened again with a running clock.

mod history;
mod scenario;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ambient::{Clock, FastClock, ManualClock, Purpose, RandomIds, SystemClock, TemporaryDirectory};
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use fleet::StateError;
use fleet::simulated::{BackgroundLoad, Layout, SimulatedFleet, Timing};
use htools::io::{FAILURE, Io, SUCCESS};
use jiff::SignedDuration;
use secrecy::SecretString;
use server::UsersFile;
use service::{OpenError, Parts, Service, ServiceError, Settings};
use store::StoreError;
use store_sqlite::SqliteStore;
use thiserror::Error;

use crate::config::{Configuration, LogFormat};
use crate::screen::screen;
use crate::serve::{self, Assembly, Machines, ServeError};

const RACKS: u32 = 3;
const HOSTS_PER_RACK: u32 = 8;
const SEED: u64 = 7;
/// The first booking is 72 hours before the present.
const PAST: SignedDuration = SignedDuration::from_hours(73);

/// Command line of the demo.
#[derive(Debug, Parser)]
#[command(
    name = "demo",
    bin_name = "allot demo",
    about = "Run a demo of the leasing service, with example leases"
)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

#[derive(Args, Debug)]
struct Arguments {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:1234")]
    listen: SocketAddr,
    /// Speed of the service's clock, as a multiple of yours
    #[arg(long, value_name = "FACTOR", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    speed: u32,
    /// Directory for the database; without it, the database is removed at the end. An existing one is used
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Require a login, as admin or as a member of a project; without it, every client is the administrator
    #[arg(long)]
    login: bool,
    /// Log level: error, warn, info, debug or trace, or by module
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
}

/// Failure to prepare or run the demo.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("{path}: {error}")]
    Directory { path: PathBuf, error: io::Error },
    #[error("{database} is missing, but {file} exists: restore {database}, or move {file} away")]
    DatabaseMissing { database: PathBuf, file: PathBuf },
    #[error(transparent)]
    Database(#[from] store_sqlite::OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Fleet(#[from] StateError),
    #[error("cannot prepare the demo: {0}")]
    Service(#[from] ServiceError),
    #[error("cannot prepare the demo: {0}")]
    Scenario(String),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The command, for help, completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Line::command()
}

/// Runs the demo until it is stopped. Returns the exit status, or an error in the command line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let matches = screen(command(), "demo").try_get_matches_from(arguments)?;
    let line = Line::from_arg_matches(&matches)?;
    Ok(match show(&line.arguments, io) {
        Ok(()) => SUCCESS,
        Err(error) => {
            serve::finish_with(&error, io.err);
            FAILURE
        }
    })
}

fn show(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), DemoError> {
    serve::start_log(&arguments.log_level, LogFormat::Text)?;
    serve::prepare_machine();
    let place = Place::new(arguments.directory.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if arguments.login {
            write_users(&place.path.join(USERS))?;
        }
        let configuration = configuration(arguments, &place.path)?;
        let layout = Layout::varied(RACKS, HOSTS_PER_RACK);
        let new = place.path.join(DATABASE).symlink_metadata().is_err();
        if new {
            let _ = writeln!(io.err, "Letting three days pass ...");
            past(&place.path, &layout).await?;
        }
        let machines = Machines { layout, timing: Timing::LIFELIKE, background_load: BackgroundLoad::LIVELY };
        let clock = Arc::new(FastClock::new(arguments.speed));
        let assembly = Assembly::with_machines(&configuration, clock, &machines).await?;
        if new {
            tokio::spawn(history::start_instances(Arc::clone(assembly.app().service())));
        }
        let stop = serve::stop_by_signal()?;
        let text = greeting(&assembly.url(), arguments, &place, &program());
        write!(io.out, "{text}").and_then(|()| io.out.flush())?;
        assembly.run(stop).await?;
        Ok(())
    })
}

const DATABASE: &str = "allot.db";
/// File of users, if the demo requires a login.
const USERS: &str = "users.toml";
const ADMINISTRATOR: &str = "admin";
/// Password of all users.
const PASSWORD: &str = "demo";

/// Projects of the scenario, each with its user.
fn members() -> BTreeSet<(&'static str, &'static str)> {
    scenario::BOOKINGS.iter().map(|booking| (booking.project, booking.user)).collect()
}

/// Writes the users' file: the administrator, and a member of each project.
fn write_users(path: &Path) -> Result<(), DemoError> {
    let wrong = |error: &dyn std::error::Error| DemoError::Scenario(error.to_string());
    let hash = server::hash_password(&SecretString::from(PASSWORD), &RandomIds);
    let hash = hash.map_err(|error| wrong(&error))?;
    let mut users = UsersFile::parse(path, String::new()).map_err(|error| wrong(&error))?;
    let members = members().into_iter().map(|(project, user)| (user, project, "member"));
    for (user, project, role) in [(ADMINISTRATOR, ADMINISTRATOR, "admin")].into_iter().chain(members) {
        let roles = [(project.to_owned(), vec![role.to_owned()])];
        users = users.add(user, &hash, &roles).map_err(|error| wrong(&error))?;
    }
    let failed = |error| DemoError::Directory { path: path.to_owned(), error };
    let mut private = std::fs::OpenOptions::new();
    let mut file = private.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(users.text().as_bytes()).map_err(failed)
}

/// Directory of the database.
struct Place {
    path: PathBuf,
    /// Removed when this value is dropped; `None` if the user chose the directory.
    temporary: Option<TemporaryDirectory>,
}

impl Place {
    fn new(wanted: Option<&Path>) -> Result<Self, DemoError> {
        let Some(path) = wanted.map(Path::to_owned) else {
            let failed = |error| DemoError::Directory { path: std::env::temp_dir(), error };
            let temporary = TemporaryDirectory::new(Purpose::Demo).map_err(failed)?;
            return Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) });
        };
        let mut private = std::fs::DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(&path);
        made.map_err(|error| DemoError::Directory { path: path.clone(), error })?;
        Ok(Self { path, temporary: None })
    }
}

/// The service's defaults with the demo's changes.
fn configuration(arguments: &Arguments, directory: &Path) -> Result<Configuration, DemoError> {
    let standard = Configuration::default().service;
    // Work that takes real time doesn't get faster with the clock, so its share of these durations grows with
    // the speed.
    let at_least = |usual: SignedDuration, real_seconds: i64| {
        let seconds = usual.as_secs().max(real_seconds * i64::from(arguments.speed));
        format!("{seconds}s")
    };
    let file = |name: &str| {
        let path = directory.join(name);
        path.to_str().map(str::to_owned).ok_or_else(|| DemoError::Directory {
            path: directory.to_owned(),
            error: io::Error::new(io::ErrorKind::InvalidFilename, "its name is not UTF-8"),
        })
    };
    let mut settings = vec![
        ("limits.observe_interval", at_least(standard.observe_interval, 1)),
        ("limits.unknown_after", at_least(standard.unknown_after, 20)),
        ("limits.step_time", at_least(standard.step_time, 10)),
        ("listen", arguments.listen.to_string()),
        ("database", format!("sqlite://{}", file(DATABASE)?)),
        ("simulated.seed", SEED.to_string()),
        ("preemptible.enabled", true.to_string()),
        ("energy.enabled", true.to_string()),
        ("usage.currency", "EUR".to_owned()),
        ("usage.price_host_hour", "1.20".to_owned()),
        ("usage.price_core_hour", "0.03".to_owned()),
        ("usage.price_gib_hour", "0.004".to_owned()),
        ("usage.price_address_hour", "0.005".to_owned()),
    ];
    if arguments.login {
        settings.push(("auth", format!("basic:{}", file(USERS)?)));
        settings.push(("quota.leases", "50".to_owned()));
    }
    Ok(Configuration::given(settings).map_err(ServeError::from)?)
}

/// Command that runs this program: `allot` if a shell finds this binary under that name, otherwise its path.
fn program() -> String {
    let Ok(this) = std::env::current_exe() else { return "allot".to_owned() };
    let found = std::env::var_os("PATH").and_then(|path| {
        let mut candidates = std::env::split_paths(&path).map(|directory| directory.join("allot"));
        candidates.find(|candidate| candidate.is_file())
    });
    let same = found.is_some_and(|found| found.canonicalize().ok() == this.canonicalize().ok());
    if same { "allot".to_owned() } else { quoted(&this.display().to_string()) }
}

/// Quotes a path so that a shell reads it as one word.
fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if path.bytes().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Simulates the days before, in a second or two. The files are made in a temporary directory and moved when
/// they are complete, since a partial past is useless.
async fn past(directory: &Path, layout: &Layout) -> Result<(), DemoError> {
    let wrong = |error| DemoError::Directory { path: directory.to_owned(), error };
    require_no_remains(directory)?;
    let _ = ambient::remove_abandoned_in(directory);
    let unfinished = TemporaryDirectory::new_in(directory, Purpose::Demo).map_err(wrong)?;
    let present = SystemClock.now();
    let clock = Arc::new(ManualClock::new(present.checked_sub(PAST).unwrap_or(present)));
    let store = Arc::new(SqliteStore::open(unfinished.path().join(DATABASE)).await?);
    let state = serve::state_file_beside(&unfinished.path().join(DATABASE));
    let fleet = Arc::new(SimulatedFleet::persistent(&state, clock.clone(), SEED, layout)?);
    let parts = Parts {
        store: store.clone(),
        fleet: fleet.clone(),
        clock: clock.clone(),
        ids: Arc::new(RandomIds),
        enforcer: None,
    };
    // Nothing fails in this past, so the fleet can be observed rarely.
    let settings = Settings {
        observe_interval: SignedDuration::from_hours(6),
        unknown_after: PAST,
        ..Settings::default()
    };
    let service = Service::open(parts, settings).await?;
    let hosts = u64::from(RACKS * HOSTS_PER_RACK);
    history::Past { service: &service, fleet: &fleet, clock: &clock }.pass(layout, hosts, present).await?;
    store.close().await?;
    // Another demo may have created these files in the meantime.
    let database = directory.join(DATABASE);
    if database.symlink_metadata().is_ok() {
        return Err(DemoError::Directory { path: database, error: io::ErrorKind::AlreadyExists.into() });
    }
    require_no_remains(directory)?;
    std::fs::rename(&state, serve::state_file_beside(&database)).map_err(wrong)?;
    std::fs::rename(unfinished.path().join(DATABASE), &database).map_err(wrong)
}

/// Fails if a database is missing but its files exist. They could hold its last commits or the state of its
/// hosts, and would be overwritten.
fn require_no_remains(directory: &Path) -> Result<(), DemoError> {
    let database = directory.join(DATABASE);
    let journals = ["-wal", "-journal", "-shm"].map(|end| directory.join(format!("{DATABASE}{end}")));
    let mut files = journals.into_iter().chain([serve::state_file_beside(&database)]);
    match files.find(|file| file.symlink_metadata().is_ok()) {
        Some(file) => Err(DemoError::DatabaseMissing { database, file }),
        None => Ok(()),
    }
}

fn greeting(url: &str, arguments: &Arguments, place: &Place, program: &str) -> String {
    let at = if url == "http://127.0.0.1:1234" { String::new() } else { format!(" --url {url}") };
    let kept = if place.temporary.is_some() { "removed at the end" } else { "kept" };
    let members = members();
    let member = members.first().map_or(ADMINISTRATOR, |&(_, user)| user);
    let (clients, users, login, auth, energy) = if arguments.login {
        let logins: Vec<String> =
            members.iter().map(|(project, user)| format!("{user} ({project})")).collect();
        (
            "clients log in",
            format!("\n  users       {ADMINISTRATOR}, {}; each with password {PASSWORD}", logins.join(", ")),
            format!("\n  export ALLOT_USER={member} ALLOT_PASSWORD={PASSWORD}"),
            format!("http_basic --os-username {member} --os-password {PASSWORD}"),
            String::new(),
        )
    } else {
        (
            "on this machine, every client is the administrator; --login adds members",
            String::new(),
            String::new(),
            "none".to_owned(),
            format!("\n  {program} energy plan{at}"),
        )
    };
    format!(
        "
A leasing service with {hosts} simulated hosts in {RACKS} racks. Its clock runs {speed} times as fast as yours.

  console     {url}/  (in a browser)
  API         {url}/v1  ({clients}){users}
  described   {url}/openapi.json
  metrics     {url}/metrics
  database    {database} ({kept})

In another terminal, try:
{login}
  {program} calendar{at} --from -1d --to +3d --by rack
  {program} lease create{at} mine --hosts 2-3 --where 'rack=r1 or gpu=a100' --for 2h --wait
  {program} instance list{at}
  {program} preemptible list{at}
  {program} usage{at} --from -3d --by project
  {program} usage billing{at} --from -3d{energy}
  {program} events{at} --last 10 --follow

or OpenStack's client, which needs python-blazarclient:

  openstack --os-auth-type {auth} --os-endpoint {url}/v1 reservation lease list

Ctrl-C ends it.
",
        hosts = RACKS * HOSTS_PER_RACK,
        speed = arguments.speed,
        database = place.path.join(DATABASE).display(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::AuthChoice;

    #[test]
    fn the_settings_of_the_demonstration_are_those_of_the_service() {
        let line = Line::try_parse_from(["demo", "--speed", "300"]).expect("a command line");
        let configuration = configuration(&line.arguments, Path::new("/d")).expect("settings");
        assert_eq!(configuration.simulated.seed, SEED);
        assert_eq!(configuration.service.step_time, SignedDuration::from_secs(3000));
        let chosen = configuration.server.settings.iter().filter(|setting| setting.source == "flag").count();
        assert_eq!(chosen, 13, "each of them has a key of the table");
    }

    #[test]
    fn a_demo_with_a_login_has_an_administrator_and_members_who_are_told_how_to_log_in() {
        let line = Line::try_parse_from(["demo", "--login"]).expect("a command line");
        let place = Place::new(None).expect("a directory");
        write_users(&place.path.join(USERS)).expect("written");
        write_users(&place.path.join(USERS)).expect("written again");
        let settings = configuration(&line.arguments, &place.path).expect("settings");
        assert_eq!(settings.auth, [AuthChoice::Basic(place.path.join(USERS))]);
        let text = std::fs::read_to_string(place.path.join(USERS)).expect("a file");
        let users = UsersFile::parse(&place.path.join(USERS), text).expect("users");
        let found: Vec<_> = users.users().map(|(name, projects, _)| (name, projects.clone())).collect();
        let has = |user: &str, project: &str, role: &str| {
            let roles = BTreeMap::from([(project.to_owned(), vec![role.to_owned()])]);
            found.iter().any(|(name, projects)| *name == user && *projects == roles)
        };
        assert!(has("admin", "admin", "admin") && has("ann", "physics", "member"), "{found:?}");
        assert_eq!(found.len(), 6);
        let greeting = greeting("http://127.0.0.1:1234", &line.arguments, &place, "allot");
        for wanted in ["ann (physics)", "export ALLOT_USER=", "each with password demo"] {
            assert!(greeting.contains(wanted), "{greeting}");
        }
        assert!(!greeting.contains("energy plan"), "members may not see it:\n{greeting}");
    }

    #[test]
    fn a_past_replaces_no_files() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let layout = Layout::varied(RACKS, HOSTS_PER_RACK);
        let directory = tempfile::tempdir().expect("a directory");
        let names = || {
            let entries = std::fs::read_dir(directory.path()).expect("there").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        std::fs::create_dir(directory.path().join(".allot-demo-unfinished")).expect("made");
        for name in ["allot.db-wal", "allot.db-journal", "allot.db-shm", "allot.db.fleet.json"] {
            let file = directory.path().join(name);
            std::fs::write(&file, "of a database that was moved away").expect("written");
            let error = runtime.block_on(past(directory.path(), &layout)).expect_err("refused").to_string();
            assert!(error.contains(&format!("but {} exists", file.display())), "{error}");
            assert_eq!(names(), [".allot-demo-unfinished", name]);
            std::fs::remove_file(&file).expect("there");
        }
        runtime.block_on(past(directory.path(), &layout)).expect("made");
        assert_eq!(names(), [".allot-demo-unfinished", "allot.db", "allot.db.fleet.json"]);
    }

    #[test]
    fn commands_are_printed_so_that_they_work_as_printed() {
        assert_eq!(quoted("/usr/local/bin/allot"), "/usr/local/bin/allot");
        assert_eq!(quoted("/home/a b/allot"), "'/home/a b/allot'");
        assert_eq!(quoted("/o'x/allot"), "'/o'\\''x/allot'");
    }
}
