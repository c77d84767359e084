//! `cargo xtask lab openstack`: a real Keystone and the services around it, with `allot serve` as the
//! catalog's reservation service.
//!
//! Every kind of login is tried by hand and with the stock clients, with Keystone up and down. Then the
//! service drives the cloud's Nova, with compute hosts that use a fake driver:
//!
//! - The driver's own tests run.
//! - The stock clients make and use leases while services of the cloud and ours fail. This is done with each
//!   fence: `blazar-filter`, `allot-filter`, `tenant` and `traits`.
//! - Floating IPs are leased, servers are imaged before they are deleted with their lease, idle hosts are
//!   powered off, and two services with one database drive the cloud.
//! - A compute host, Placement, the database and the message bus fail.
//! - The service reacts to Nova's notifications, and Ceilometer makes samples of the service's.
//! - Heat's resources and the dashboard's API module make leases. Servers read about their leases from Nova's
//!   metadata service.
//! - The scenarios of our plugin for Tempest run with each fence.
//!
//! `--only` runs some of these parts, separated by commas. With `--import`, a real Blazar makes fifty leases
//! on six compute hosts, and `allot import blazar` takes them over. With `--tempest`, Blazar's own acceptance
//! tests run instead, on a cloud with one compute host. With `--compare`, Blazar and this service have three
//! hosts each in the same cloud, and the time that the same requests take is printed.
//!
//! The scripts that bring up the cloud belong to the reference material. Packages and empty databases stay in
//! `target/lab/openstack` for the next run; everything else is deleted at the end.

mod addresses;
mod cloud;
mod comparison;
mod configuration;
mod drift;
mod failures;
mod filter;
mod filters;
mod images;
mod leases;
mod logins;
mod metering;
mod moving_in;
mod notifications;
mod power;
mod ratios;
mod replicas;
mod scenario;
mod scheduler;
mod site;
mod staying;
mod steps;
mod tempest;
mod tenant;
mod traits;
mod vendordata;
mod watcher;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::cases::Cases;
use chores::places;
use chores::run::{Executable, must_run, output_of};

use self::cloud::{Cloud, PASSWORD, People};
use super::scripts;
use crate::leasing::server::{Launch, Server};

/// Default of the cloud's first port, which is Keystone's.
const FIRST_PORT: u16 = 25_600;

/// Port of the reservation service in the catalog, as an offset from the first port.
const RESERVATION: u16 = 5;

/// RabbitMQ's port, as an offset from the first port.
const AMQP: u16 = 12;

/// Our driver of the compute hosts, installed next to Nova's: module name and source text.
const DRIVER: (&str, &str) = ("allot_lab_driver", include_str!("../../../lab/openstack/allot_lab_driver.py"));

/// Seconds for which the service caches a valid token, and for which it keeps accepting the token while
/// Keystone is down.
const CACHE_TIME: u64 = 2;
const OUTAGE_TIME: u64 = 600;

/// The cloud and the scripts that manage it.
#[derive(Debug)]
pub struct Lab {
    scripts: PathBuf,
    /// Directory kept between runs: packages and empty databases.
    root: PathBuf,
    state: PathBuf,
    port: u16,
    /// Number of compute hosts.
    hosts: u32,
    /// Whether Blazar runs in the cloud.
    blazar: bool,
    /// Parts to run, separated by commas. `None` runs all.
    only: Option<String>,
    started: Instant,
}

/// Kind of run, chosen by the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Parts,
    Tempest,
    Import,
    Comparison,
}

impl Run {
    fn name(self) -> &'static str {
        match self {
            Self::Parts => "lab openstack",
            Self::Tempest => "lab openstack --tempest",
            Self::Import => "lab openstack --import",
            Self::Comparison => "lab openstack --compare",
        }
    }

    /// Number of compute hosts in its cloud.
    fn hosts(self) -> u32 {
        match self {
            Self::Parts => 3,
            Self::Tempest => 1,
            Self::Import => moving_in::HOSTS,
            Self::Comparison => comparison::HOSTS,
        }
    }
}

/// Names of parts, for `--only`.
const LOGINS: &str = "logins";
const BLAZAR_FILTER: &str = "blazar-filter";
const ADDRESSES: &str = "addresses";
const IMAGES: &str = "images";
const POWER: &str = "power";
const REPLICAS: &str = "replicas";
const FAILURES: &str = "failures";
const ALLOT_FILTER: &str = "allot-filter";
const TENANT: &str = "tenant";
const TRAITS: &str = "traits";
const NOTIFICATIONS: &str = "notifications";
const METERING: &str = "metering";
const CLIENTS: &str = "clients";
const VENDORDATA: &str = "vendordata";
const SCENARIO: &str = "scenario";
const DRIFT: &str = "drift";
const FILTERS: &str = "filters";
const PARTS: [&str; 17] = [
    LOGINS,
    BLAZAR_FILTER,
    ADDRESSES,
    IMAGES,
    POWER,
    REPLICAS,
    FAILURES,
    DRIFT,
    FILTERS,
    NOTIFICATIONS,
    METERING,
    CLIENTS,
    VENDORDATA,
    ALLOT_FILTER,
    TENANT,
    TRAITS,
    SCENARIO,
];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let keep = arguments.switch("--keep");
    let others = [("--tempest", Run::Tempest), ("--import", Run::Import), ("--compare", Run::Comparison)];
    let others: Vec<Run> =
        others.into_iter().filter(|(switch, _)| arguments.switch(switch)).map(|(_, run)| run).collect();
    let port = arguments.value("--port", FIRST_PORT)?;
    let ours = arguments.text("--ours")?;
    let only = arguments.text("--only")?;
    arguments.finish()?;
    let run = match others[..] {
        [] => Run::Parts,
        [run] => run,
        _ => bail!("one of --tempest, --import and --compare"),
    };
    let whole = run == Run::Parts;
    if only.as_deref().is_some_and(|only| !whole || !only.split(',').all(|part| PARTS.contains(&part))) {
        bail!("--only {}, and alone", PARTS.join(", "));
    }
    let Some(shared) = places::shared() else {
        bail!("the lab's scripts are in ../shared (or $ALLOT_SHARED), which is not there");
    };
    places::need_root()?;
    let ours = ours.map_or_else(places::ours, |path| Ok(Executable::new(path)))?.path;
    let ours = fs::canonicalize(&ours).with_context(|| format!("there is no {}", ours.display()))?;
    let ours = Executable::new(ours);
    let root = places::target().join("lab/openstack");
    let (scripts, state) = (root.join("scripts"), root.join("state"));
    let blazar = [Run::Import, Run::Comparison].contains(&run);
    let lab = Lab { scripts, state, root, port, hosts: run.hosts(), blazar, only, started: Instant::now() };
    scripts::copy(&shared.join("labs/openstack"), &lab.scripts)?;
    configuration::as_in_the_guide(&lab.scripts)?;
    let result = lab.run(run, &ours);
    if keep {
        let (down, state) = (lab.scripts.join("down"), lab.state.display());
        println!("the cloud is left running; end it with {} {state} --purge", down.display());
    } else {
        lab.down()?;
    }
    result
}

impl Lab {
    fn run(&self, run: Run, ours: &Executable) -> Result<()> {
        let (cloud, people) = self.begin()?;
        let since = SystemTime::now();
        let mut cases = Cases::new(run.name());
        match run {
            Run::Parts => self.run_parts(&mut cases, ours, &cloud, &people)?,
            Run::Tempest => tempest::run(&mut cases, self, ours, &people)?,
            Run::Import => moving_in::run(&mut cases, self, ours, &cloud, &people)?,
            Run::Comparison => comparison::run(&mut cases, self, ours, &cloud, &people)?,
        }
        steps::none_fails(&mut cases, &self.root, since);
        self.tell("done");
        cases.tally().conclude(run.name())
    }

    fn run_parts(&self, cases: &mut Cases, ours: &Executable, cloud: &Cloud, people: &People) -> Result<()> {
        if self.wants(LOGINS) {
            self.logins(cases, ours, cloud, people)?;
        }
        if self.wants(BLAZAR_FILTER) {
            self.tell("the driver's own tests");
            leases::tests_of_the_driver(cases, self);
        }
        if PARTS.iter().any(|part| *part != LOGINS && self.wants(part)) {
            self.tell("leases on Nova");
            leases::on_nova(cases, self, ours, cloud, people)?;
        }
        Ok(())
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only.split(',').any(|wanted| wanted == part))
    }

    fn logins(&self, cases: &mut Cases, ours: &Executable, cloud: &Cloud, people: &People) -> Result<()> {
        self.tell("allot serve");
        let directory = self.root.join("allot");
        empty(&directory)?;
        let server = self.serve(ours, &directory, people)?;
        self.tell("logins");
        logins::of_every_kind(cases, cloud, &server, people);
        self.tell("stock clients");
        logins::by_stock_clients(cases, self, ours, &server);
        self.tell("Keystone stops and restarts");
        logins::while_keystone_is_away(cases, self, cloud, &server);
        cases.check("no token and no password is in the log or the database", || {
            let log = fs::read(directory.join("serve.log"))?;
            let database = fs::read(directory.join("allot.db"))?;
            for secret in cloud.secrets().iter().map(String::as_str).chain([people.secret.as_str()]) {
                for (place, content) in [("log", &log), ("database", &database)] {
                    if content.windows(secret.len()).any(|part| part == secret.as_bytes()) {
                        bail!("{} is in the {place}", &secret[..secret.len().min(12)]);
                    }
                }
            }
            Ok(())
        });
        cases.check("the service shuts down cleanly", || site::ends_well(server));
        Ok(())
    }

    /// Brings up an empty cloud, and creates the lab's users.
    fn begin(&self) -> Result<(Cloud, People)> {
        self.tell("packages and empty databases");
        self.script("install", &[])?;
        self.down()?;
        self.install_driver()?;
        self.tell("the cloud");
        self.up()?;
        let cloud = Cloud::new(self.port)?;
        let people = cloud.settle()?;
        Ok((cloud, people))
    }

    /// Installs the driver of compute hosts into Nova's package, because Nova loads drivers from nowhere
    /// else.
    fn install_driver(&self) -> Result<()> {
        let mut python = Command::new(self.program("python"));
        let place = output_of(python.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))?;
        let (name, text) = DRIVER;
        chores::run::write(&Path::new(place.trim()).join(format!("nova/virt/{name}.py")), text.as_bytes())
    }

    /// Starts a service at the catalog's address, with a user that is only allowed to validate tokens.
    fn serve(&self, ours: &Executable, directory: &Path, people: &People) -> Result<Server> {
        let secret = directory.join("keystone.password");
        chores::run::write(&secret, people.secret.as_bytes())?;
        let seconds = |number: u64| format!("{number}s");
        let options = [
            ("--keystone-auth-url", format!("http://127.0.0.1:{}", self.port)),
            ("--keystone-username", people.user.clone()),
            ("--keystone-secret-file", secret.display().to_string()),
            ("--keystone-cache-time", seconds(CACHE_TIME)),
            ("--keystone-outage-time", seconds(OUTAGE_TIME)),
            ("--region", "RegionOne".to_owned()),
        ];
        let launch = Launch::new(ours, directory)
            .at(&format!("127.0.0.1:{}", self.port + RESERVATION))
            .with_auth("keystone")
            .with(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        launch.start()
    }

    fn script(&self, name: &str, arguments: &[&str]) -> Result<()> {
        must_run(&mut self.command(name, arguments))
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.scripts.join(name));
        command.args(arguments).env("LAB_ROOT", &self.root).env("LAB_PASSWORD", PASSWORD);
        command
    }

    /// Starts all services of the cloud that aren't running.
    pub fn up(&self) -> Result<()> {
        let (state, port) = (self.state.display().to_string(), self.port.to_string());
        let hosts = self.hosts.to_string();
        // Captures the output: the script prints a file name that we don't need.
        let driver = format!("{}.SlowFakeDriver", DRIVER.0);
        let mut up = self.command("up", &["-s", &state, "-p", &port, "-n", &hosts, "-r", &driver]);
        if !self.blazar {
            up.arg("--no-blazar");
        }
        output_of(&mut up).map(drop)
    }

    pub fn stop(&self, service: &str) -> Result<()> {
        self.script("svc", &[&self.state.display().to_string(), "stop", service])
    }

    /// Process id of the service's session leader.
    pub fn process(&self, service: &str) -> Result<u32> {
        let file = self.state.join("pid").join(service);
        let text = fs::read_to_string(&file).with_context(|| format!("{service} does not run"))?;
        let process = text.split_whitespace().next().and_then(|number| number.parse().ok());
        process.with_context(|| format!("{} names no process", file.display()))
    }

    /// Sends a signal to the service's session leader.
    pub fn signal(&self, service: &str, signal: &str) -> Result<()> {
        must_run(Command::new("kill").args(["-s", signal, &self.process(service)?.to_string()]))
    }

    fn down(&self) -> Result<()> {
        if self.state.join("settings").is_file() {
            self.script("down", &[&self.state.display().to_string(), "--purge"])?;
        }
        Ok(())
    }

    /// A command of the cloud's clients, with the credentials of a user for a project.
    pub fn client(&self, program: &Path, user: &str, password: &str, project: &str) -> Command {
        let mut command = Command::new(program);
        let variables = [
            ("OS_AUTH_URL", format!("http://127.0.0.1:{}/v3", self.port)),
            ("OS_IDENTITY_API_VERSION", "3".to_owned()),
            ("OS_REGION_NAME", "RegionOne".to_owned()),
            ("OS_INTERFACE", "public".to_owned()),
            ("OS_USERNAME", user.to_owned()),
            ("OS_PASSWORD", password.to_owned()),
            ("OS_PROJECT_NAME", project.to_owned()),
            ("OS_USER_DOMAIN_NAME", "Default".to_owned()),
            ("OS_PROJECT_DOMAIN_NAME", "Default".to_owned()),
            ("OS_CLIENT_CONFIG_FILE", "/dev/null".to_owned()),
            ("PYTHONWARNINGS", "ignore".to_owned()),
            ("no_proxy", "127.0.0.1".to_owned()),
        ];
        command.envs(variables).current_dir(&self.root);
        command
    }

    /// Path of a program that was installed with the cloud.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("venv/bin").join(name)
    }

    /// URL of the cloud's message bus, in the form of `transport_url`.
    pub fn bus_url(&self) -> String {
        format!("rabbit://guest:guest@127.0.0.1:{}/", self.port + AMQP)
    }

    /// Prints the next step and the elapsed time.
    fn tell(&self, what: &str) {
        println!("[{:4} s] {what}", self.started.elapsed().as_secs());
    }
}

fn empty(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}
