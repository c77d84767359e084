//! Assembles the service from its configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ambient::{Clock, RandomIds};
use fleet::simulated::{BackgroundLoad, Layout, Timing};
use jiff::SignedDuration;
use leases::hints::Hint;
use leases::preemption::Class;
use leases::quota::{LeaseQuota, UsageLimit};
use server::{App, AuthConfig, AuthMethod, ExternalService, TlsConfig};
use service::{EnergyMode, EnergySettings, Enforcer, Parts, Service, Settings};
use store::memory::MemoryStore;
use store::{Holder, Store};
use store_postgres::PostgresStore;
use store_sqlite::SqliteStore;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::error::{AssemblyError, ServeError};
use super::files::Connections;
use super::fleet::{Machines, check_power, fleet};
use super::keystone;
use super::listeners;
use crate::config::{AuthChoice, Configuration, DatabaseChoice, Energy, FleetChoice, TimingChoice, Tls};

/// Maximum number of hosts or steps that a log line names.
const SHOWN: usize = 12;

/// The service with everything that it needs to run.
pub(crate) struct Assembly {
    service: Arc<Service>,
    /// Closed when the service stops.
    database: Database,
    app: App,
    listener: std::net::TcpListener,
    address: SocketAddr,
    encrypted: bool,
    machines: Vec<String>,
}

impl Assembly {
    /// Creates all parts and binds the address. Nothing runs yet.
    pub(crate) async fn new(
        configuration: &Configuration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        let simulated = &configuration.simulated;
        let machines = Machines {
            layout: Layout::varied(simulated.racks, simulated.hosts_per_rack),
            timing: match simulated.timing {
                TimingChoice::Lifelike => Timing::LIFELIKE,
                TimingChoice::Immediate => Timing::IMMEDIATE,
            },
            background_load: if simulated.background_load {
                BackgroundLoad::LIVELY
            } else {
                BackgroundLoad::SILENCE
            },
        };
        Self::with_machines(configuration, clock, &machines).await
    }

    /// Like [`Self::new`], but with these machines if the fleet is simulated.
    pub(crate) async fn with_machines(
        configuration: &Configuration,
        clock: Arc<dyn Clock>,
        machines: &Machines,
    ) -> Result<Self, ServeError> {
        let config = server_config(configuration)?;
        check_lifetime(configuration)?;
        let external_service = listeners::external_service(configuration)?;
        let enforcer = external_service.as_ref().map(ExternalService::new).transpose();
        let enforcer =
            enforcer.map_err(AssemblyError::from)?.map(|asked| Arc::new(asked) as Arc<dyn Enforcer>);
        let (store, database) = store(&configuration.database).await?;
        let fleet = fleet(configuration, &clock, machines)?;
        check_power(configuration, fleet.switches_hosts())?;
        let names = match fleet.machines().await {
            Ok(machines) => machines.into_iter().map(|machine| machine.name).collect(),
            Err(error) => {
                tracing::warn!(%error, "fleet unreachable, retrying");
                Vec::new()
            }
        };
        if quotas_are_missing(configuration) {
            let hint = "one member may lease everything: set quota.leases, quota.hosts and quota.host_hours";
            tracing::warn!(hint, "no quotas set");
        }
        let ids = Arc::new(RandomIds);
        let settings = settings(configuration);
        let parts = Parts { store, fleet, clock, ids: ids.clone(), enforcer };
        let service = Service::open(parts, settings).await.map_err(AssemblyError::from)?;
        let encrypted = config.tls.is_some();
        let app = App::new(service.clone(), ids, config).map_err(AssemblyError::from)?;
        let listener = server::bind(&app)?;
        let address = listener.local_addr()?;
        Ok(Self { service, database, app, listener, address, encrypted, machines: names })
    }

    /// The server without its socket.
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    pub(crate) fn url(&self) -> String {
        format!("http{}://{}", if self.encrypted { "s" } else { "" }, self.address)
    }

    /// Logs the URL and, while no host can be leased, the machines that could be added.
    pub(crate) fn announce(&self) {
        let url = self.url();
        tracing::info!(url, "serving leases");
        if self.service.hosts().all().is_empty() && !self.machines.is_empty() {
            let names = self.machines.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(" ");
            let more = self.machines.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            tracing::info!("no host can be leased yet; `allot host create NAME` adds one: {names}{more}");
        }
    }

    /// Serves requests and carries out leases until it's told to stop. Tasks that the service depends on
    /// continue after their own failures. If one ends anyway, the service ends with an error, so that it's
    /// started again.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) -> Result<(), ServeError> {
        let (ended, loop_stop) = watch::channel(false);
        let app = self.app.clone();
        tokio::spawn(async move { app.look_at_keystone().await });
        tokio::spawn(log_last_steps(self.service.clone(), stop.clone()));
        let work = self.service.clone().run(loop_stop);
        let pushes = server::push_notifications(self.app.clone(), stop.clone());
        let mut notifications = fleet_openstack::Notifications::default();
        let read = move |message: &[u8]| notifications.services(message);
        let news = server::hear_the_cloud(self.app.clone(), read, stop.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            work.await;
            TaskEnd::Loop
        });
        tasks.spawn(async {
            tokio::join!(pushes, news);
            TaskEnd::Other
        });
        let served = tokio::select! {
            served = server::serve(self.app, self.listener, stop) => served.map_err(ServeError::from),
            () = task_lost(&mut tasks) => Err(ServeError::TaskLost),
        };
        // The last requests may have given the loop work, so it's told to stop after them.
        ended.send_replace(true);
        while served.is_ok()
            && let Some(ended) = tasks.join_next().await
        {
            if let Err(error) = ended {
                tracing::error!(%error, "task panicked");
            }
        }
        self.database.close().await;
        served
    }
}

/// Logs the steps that the service still waits for after it's told to stop.
async fn log_last_steps(service: Arc<Service>, mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        return;
    }
    let steps = service.execution().under_way();
    let Some(until) = steps.iter().map(|step| step.until).max() else { return };
    let steps = shortened(steps.into_iter().map(|step| step.action).collect());
    let hooks = service.execution().running_hooks().into_iter();
    let hooks: Vec<String> = hooks.map(|hook| format!("{} until {}", hook.name, hook.until)).collect();
    let hooks = (!hooks.is_empty()).then(|| shortened(hooks));
    let hint =
        "SIGTERM or Ctrl-C again ends the service and its hooks at once; the next start repeats the steps";
    tracing::warn!(steps, hooks, %until, hint, "waiting for steps");
}

/// The first names, and the number of the remaining ones.
fn shortened(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

/// A task that has returned.
#[derive(Debug, PartialEq)]
enum TaskEnd {
    /// The loop that carries out leases. It only returns when it's told to.
    Loop,
    /// A task that returns early if it has nothing to do.
    Other,
}

/// Returns when a task panics, or the loop ends.
async fn task_lost(tasks: &mut JoinSet<TaskEnd>) {
    while let Some(Ok(TaskEnd::Other)) = tasks.join_next().await {}
}

/// Handle to close the store with.
enum Database {
    File(Arc<SqliteStore>),
    Server(Arc<PostgresStore>),
    Nothing,
}

impl Database {
    async fn close(self) {
        match self {
            Self::File(store) => {
                if let Err(error) = store.close().await {
                    tracing::warn!(%error, "database not closed");
                }
            }
            Self::Server(store) => store.close(),
            Self::Nothing => {}
        }
    }
}

/// Opens the store. Also returns the handle to close it with.
async fn store(choice: &DatabaseChoice) -> Result<(Arc<dyn Store>, Database), AssemblyError> {
    match choice {
        DatabaseChoice::Sqlite(path) => {
            let store = Arc::new(SqliteStore::open(path).await?);
            for (path, mode) in store_sqlite::open_to_others(path) {
                let (path, mode) = (path.display(), format!("{mode:04o}"));
                tracing::warn!(%path, mode, "database readable by others; `chmod 600` keeps it private");
            }
            Ok((store.clone(), Database::File(store)))
        }
        DatabaseChoice::Postgres(servers) => {
            let store = Arc::new(PostgresStore::open(servers.clone()).await?);
            tracing::info!(database = %store.servers(), "database is PostgreSQL");
            Ok((store.clone(), Database::Server(store)))
        }
        DatabaseChoice::Memory => {
            tracing::warn!("database in memory only, lost when the service stops");
            Ok((Arc::new(MemoryStore::new()), Database::Nothing))
        }
    }
}

/// Name of the machine, which is the default name of its service. When a service starts, it gives up the
/// claims of services with the same name, so services on different machines need different names.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(super) fn settings(configuration: &Configuration) -> Settings {
    let mut settings = configuration.service.clone();
    settings.usual_leases = authenticates(configuration).then_some(Settings::USUAL_LEASES);
    settings.holder = Holder(configuration.name.clone().unwrap_or_else(machine));
    settings.steps_at_once = steps_at_once(configuration).max(1);
    settings.decisions_at_once = decisions_at_once(configuration);
    settings.writes.lease_text = 4 * configuration.server.limits.parts.expression_length as u64;
    settings.enforcer_timeout = configuration.external_service.timeout;
    settings.metered =
        configuration.message_bus_url_file.is_some() && !configuration.message_bus.topics.is_empty();
    plan_rules(&mut settings, configuration.preemptible.margin);
    energy(&mut settings.energy, &configuration.energy);
    let window = configuration.preemptible.usage_window;
    let usage_limit = |core_hours| UsageLimit { core_hours, window };
    settings.quotas.preemptible_usage = configuration.preemptible.usage_limit.map(usage_limit);
    match configuration.fleet {
        FleetChoice::OpenStack => {
            // Servers aren't started through this service, so it can't spread them.
            settings.rules.hints.enabled.remove(&Hint::Group);
            settings.open_pool = configuration.openstack.open_pool;
            settings.preemptible_by_project = false;
        }
        FleetChoice::Hooks(_) | FleetChoice::Simulated => {}
    }
    settings
}

/// Fails if preemptible instances would be asked to leave as soon as they run.
pub(super) fn check_lifetime(configuration: &Configuration) -> Result<(), AssemblyError> {
    let Settings { plan_rules, preemption, .. } = &configuration.service;
    let notices = preemption.classes.iter().map(Class::notice);
    let longest = notices.fold(plan_rules.grace, SignedDuration::max);
    let reason =
        "preemptible.max_lifetime: must be longer than leases.grace and every notice of preemptible.classes";
    let is_wrong = plan_rules.max_lifetime.is_some_and(|most| most <= longest);
    AssemblyError::check(is_wrong.then(|| reason.to_owned()).into_iter().collect())
}

/// Derives rules of the handover from other settings.
fn plan_rules(settings: &mut Settings, margin: SignedDuration) {
    let (rules, preemption) = (&mut settings.plan_rules, &settings.preemption);
    let notices = preemption.classes.iter().map(Class::notice);
    rules.longest_notice = notices.max().unwrap_or_default().max(rules.grace);
    let ahead = [margin, rules.moving_time, settings.longest_clock_skew];
    let ahead = ahead.into_iter().fold(rules.longest_notice, SignedDuration::saturating_add);
    rules.clear_ahead = preemption.allowed.then_some(ahead);
    rules.backfill &= preemption.allowed;
    rules.longest_departure = settings.rules.hunting.longest;
}

fn energy(settings: &mut EnergySettings, energy: &Energy) {
    settings.mode = match (energy.enabled, energy.dry_run) {
        (false, _) => EnergyMode::Off,
        (true, true) => EnergyMode::DryRun,
        (true, false) => EnergyMode::On,
    };
    settings.repack_watt_hours = energy.repack.then_some(energy.repack_watt_hours);
}

/// By default, one less than there are processors: the loop and the write lock need one.
fn decisions_at_once(configuration: &Configuration) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    configuration.decisions_at_once.unwrap_or_else(|| processors() - 1).max(1)
}

/// Maximum number of steps at once. The default is as high as the fleet can bear.
fn steps_at_once(configuration: &Configuration) -> usize {
    configuration.steps_at_once.unwrap_or(match configuration.fleet {
        FleetChoice::Hooks(_) => 256,
        // Each step takes about ten requests, and Nova's API has few workers.
        FleetChoice::OpenStack => 32,
        FleetChoice::Simulated => 1024,
    })
}

pub(super) fn server_config(configuration: &Configuration) -> Result<server::Config, AssemblyError> {
    let mut config = configuration.server.clone();
    config.tls = tls(&configuration.tls)?;
    config.auth.keystone = keystone::of(configuration)?;
    methods(&mut config.auth, configuration)?;
    let Connections { most, per_address } =
        Connections { most: config.limits.connections, per_address: config.limits.connections_per_address }
            .that_fit();
    (config.limits.connections, config.limits.connections_per_address) = (most, per_address);
    config.webhook = listeners::webhook(configuration)?;
    config.exec = listeners::exec(configuration);
    config.message_bus = listeners::message_bus(configuration)?.map(Box::new);
    config.placement.program = program();
    Ok(config)
}

pub(super) fn tls(tls: &Tls) -> Result<Option<TlsConfig>, AssemblyError> {
    let incomplete = |reason: &str| Err(AssemblyError::Settings(vec![reason.to_owned()]));
    match (&tls.certificate, &tls.key, &tls.client_ca) {
        (Some(certificate), Some(key), client_ca) => {
            let client_ca = client_ca.clone();
            Ok(Some(TlsConfig { certificate: certificate.clone(), key: key.clone(), client_ca }))
        }
        (Some(_), None, _) => incomplete("tls.certificate: set tls.key as well"),
        (None, Some(_), _) => incomplete("tls.key: set tls.certificate as well"),
        (None, None, Some(_)) => incomplete("tls.client_ca: set tls.certificate and tls.key as well"),
        (None, None, None) => Ok(None),
    }
}

/// Path of this program. Separate processes of it answer questions about clusters, and act as helpers of
/// child processes.
pub(super) fn program() -> Option<PathBuf> {
    // This link leads to the running program, even if its file has been replaced.
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Some(link) } else { std::env::current_exe().ok() }
}

/// Whether clients authenticate.
fn authenticates(configuration: &Configuration) -> bool {
    !configuration.auth.iter().all(|choice| matches!(choice, AuthChoice::None))
}

/// Whether clients authenticate, but only the default number of leases limits them.
fn quotas_are_missing(configuration: &Configuration) -> bool {
    let Settings { rules, quotas, .. } = &configuration.service;
    let LeaseQuota { leases, hosts, host_hours, instances } = rules.enforcement.quota;
    let quotas =
        [leases, hosts, host_hours, instances, quotas.regular.instances, quotas.preemptible.instances];
    let asked = !configuration.external_service.base_endpoint.is_empty();
    authenticates(configuration) && quotas.iter().all(Option::is_none) && !asked
}

/// Sets the chosen methods of authentication, and the files that they need.
pub(super) fn methods(config: &mut AuthConfig, configuration: &Configuration) -> Result<(), AssemblyError> {
    config.methods.clear();
    let mut mistakes = Vec::new();
    for choice in &configuration.auth {
        let (method, file) = match choice {
            AuthChoice::None => (AuthMethod::None, None),
            AuthChoice::Keystone => (AuthMethod::Keystone, None),
            AuthChoice::Tokens(path) => (AuthMethod::Tokens, Some((&mut config.tokens_file, path))),
            AuthChoice::Basic(path) => (AuthMethod::Basic, Some((&mut config.users_file, path))),
            AuthChoice::LocalKeystone(path) => {
                (AuthMethod::LocalKeystone, Some((&mut config.users_file, path)))
            }
        };
        if let Some((place, path)) = file
            && *place.get_or_insert_with(|| path.clone()) != *path
        {
            let reason = match method {
                AuthMethod::Tokens => "auth: tokens can have one file",
                _ => "auth: basic and local-keystone must have the same file",
            };
            mistakes.push(reason.to_owned());
        }
        config.methods.push(method);
    }
    AssemblyError::check(mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_and_a_loop_that_returns_are_lost_and_others_may_return() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { TaskEnd::Other });
        tasks.spawn(std::future::pending());
        while tasks.len() > 1 {
            tokio::select! {
                biased;
                () = task_lost(&mut tasks) => panic!("none is lost"),
                () = tokio::task::yield_now() => {}
            }
        }
        tasks.spawn(async { TaskEnd::Loop });
        task_lost(&mut tasks).await;
        tasks.spawn(async { panic!("a task panics") });
        task_lost(&mut tasks).await;
    }
}
