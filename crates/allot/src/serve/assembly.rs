//! The parts of the service, made as the configuration says.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ambient::{Clock, RandomIds};
use fleet::simulated::{BackgroundLoad, Layout, Timing};
use jiff::SignedDuration;
use leases::admission::{HealingInterval, Rules};
use leases::energy::PowerRules;
use leases::filters::Filters;
use leases::hints::{Hint, HintRules};
use leases::housekeeping::HousekeepingRules;
use leases::hunt::Hunting;
use leases::lease_type::Deadlines;
use leases::plan::PlanRules;
use leases::preemption::{Class, PreemptionRules};
use leases::project::ProjectId;
use leases::quota::{LeaseQuota, Quota, Quotas, UsageLimit};
use leases::requirement::Requirement;
use leases::usage::Prices;
use secrecy::SecretString;
use server::{
    App, AuthConfig, AuthMethod, EnforcementConfig, ExternalService, ExternalServiceConfig, PlacementConfig,
    RateLimit, TlsConfig,
};
use service::{EnergyMode, EnergySettings, Enforcer, Parts, Service, Settings};
use store::memory::MemoryStore;
use store::{Holder, Store};
use store_postgres::PostgresStore;
use store_sqlite::SqliteStore;
use tokio::sync::watch;

use super::error::{AssemblyError, ServeError, read};
use super::files::Connections;
use super::fleet::{Machines, fleet};
use super::keystone;
use super::listeners;
use crate::config::{AuthChoice, Configuration, DatabaseChoice, FleetChoice, Span, TimingChoice};

/// The service with all that it needs.
pub(crate) struct Assembly {
    service: Arc<Service>,
    /// To be closed at the end.
    database: Database,
    app: App,
    listener: std::net::TcpListener,
    address: SocketAddr,
    encrypted: bool,
    machines: Vec<String>,
}

impl Assembly {
    /// Makes all parts and takes the address; nothing runs yet.
    pub(crate) async fn new(
        configuration: &Configuration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServeError> {
        let machines = Machines {
            layout: Layout::varied(configuration.simulated_racks, configuration.simulated_hosts_per_rack),
            timing: match configuration.simulated_timing {
                TimingChoice::Lifelike => Timing::LIFELIKE,
                TimingChoice::Immediate => Timing::IMMEDIATE,
            },
            background_load: if configuration.simulated_background_load {
                BackgroundLoad::LIVELY
            } else {
                BackgroundLoad::SILENCE
            },
        };
        Self::with_machines(configuration, clock, &machines).await
    }

    /// The same with a certain simulated fleet, if the fleet is one.
    pub(crate) async fn with_machines(
        configuration: &Configuration,
        clock: Arc<dyn Clock>,
        machines: &Machines,
    ) -> Result<Self, ServeError> {
        let config = server_config(configuration)?;
        let enforcer = config.enforcement.external_service.as_ref().map(ExternalService::new).transpose();
        let enforcer =
            enforcer.map_err(AssemblyError::from)?.map(|asked| Arc::new(asked) as Arc<dyn Enforcer>);
        let (store, database) = store(&configuration.database).await?;
        let fleet = fleet(configuration, &clock, machines)?;
        if configuration.energy && !fleet.switches_hosts() {
            return Err(AssemblyError::Contradiction(
                "energy.enabled: the fleet cannot switch hosts; one of hooks needs on_power_on and on_power_off, OpenStack \
                 needs openstack.power_file",
            )
            .into());
        }
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
        let settings = settings(configuration, &config);
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

    /// What clients call it.
    pub(crate) fn url(&self) -> String {
        format!("http{}://{}", if self.encrypted { "s" } else { "" }, self.address)
    }

    /// Says in the log where it can be reached, and what there is to begin with.
    pub(crate) fn announce(&self) {
        const SHOWN: usize = 12;
        let url = self.url();
        tracing::info!(url, "serving leases");
        if self.service.hosts().all().is_empty() && !self.machines.is_empty() {
            let names = self.machines.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(" ");
            let more = self.machines.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            tracing::info!("no host can be leased yet; `allot host create NAME` takes one on: {names}{more}");
        }
    }

    /// Serves requests and carries leases out until it is told to stop.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) -> Result<(), ServeError> {
        let (ended, loop_stop) = watch::channel(false);
        let work = tokio::spawn(self.service.clone().run(loop_stop));
        let app = self.app.clone();
        tokio::spawn(async move { app.look_at_keystone().await });
        let pushes = tokio::spawn(server::push_notifications(self.app.clone(), stop.clone()));
        let mut notifications = fleet_openstack::Notifications::default();
        let read = move |message: &[u8]| notifications.services(message);
        tokio::spawn(server::hear_the_cloud(self.app.clone(), read, stop.clone()));
        let served = server::serve(self.app, self.listener, stop).await;
        // Requests may still have given the loop something to do; it is told to stop after them.
        ended.send_replace(true);
        if let Err(error) = work.await {
            tracing::error!(%error, "loop panicked");
        }
        if let Err(error) = pushes.await {
            tracing::error!(%error, "notification task panicked");
        }
        self.database.close().await;
        Ok(served?)
    }
}

/// What has to be closed of a store.
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
                    tracing::warn!(%error, "database not closed, nothing lost");
                }
            }
            Self::Server(store) => store.close(),
            Self::Nothing => {}
        }
    }
}

/// The store, and once more to be closed.
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

/// The name of the machine. Services of the same name give up each other's claims when they start, so those of
/// different machines have different ones unless they are told otherwise.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Rules of leasing.
pub(super) fn settings(configuration: &Configuration, server: &server::Config) -> Settings {
    let some = |span: Span| (!span.0.is_zero()).then_some(span.0);
    let in_cloud = matches!(configuration.fleet, FleetChoice::OpenStack);
    Settings {
        holder: Holder(configuration.name.clone().unwrap_or_else(machine)),
        rules: Rules {
            before_end_lead: some(configuration.before_end_lead),
            enforcement: server.enforcement.rules(),
            deadlines: Deadlines {
                immediate: configuration.immediate_wait.0,
                best_effort: configuration.best_effort_timeout.0,
                longest: configuration.best_effort_max_timeout.0,
            },
            hunting: hunting(configuration),
            region: configuration.region.clone(),
            filters: Filters {
                enabled: configuration.filters.clone(),
                isolated_hosts: configuration.isolated_hosts.iter().cloned().collect(),
                custom: configuration.custom_filters.clone(),
            },
            hints: HintRules {
                enabled: hints(configuration, in_cloud),
                location: configuration.hint_location.clone(),
                least_hosts: configuration.least_hosts,
                single_host: configuration.single_host,
            },
        },
        plan_rules: plan_rules(configuration),
        offer_hold: configuration.offer_hold.0,
        offer_limits: service::OfferLimits {
            at_once: configuration.offers_at_once,
            hourly: configuration.offers_hourly,
        },
        offers_ahead: configuration.offers_ahead.0,
        replan_notice: configuration.replan_notice.0,
        waitlist_limit: configuration.waitlist_limit,
        housekeeping: HousekeepingRules {
            unused_warning: configuration.unused_warning.map(|span| span.0),
            unused_reclaim: configuration.unused_reclaim.map(|span| span.0),
            reminder: configuration.reminders.and_then(some),
            swaps: configuration.swaps,
            default_properties: configuration
                .default_properties
                .as_ref()
                .map_or(Requirement::NONE, |properties| properties.0.clone()),
            maintenance_project: configuration.maintenance_project.clone().map(ProjectId),
        },
        end_action: configuration.end_action,
        cleaning_time: configuration.cleaning_time.0,
        healing_interval: HealingInterval(some(configuration.healing_interval)),
        observe_interval: configuration.observe_interval.0.max(SignedDuration::from_secs(1)),
        unknown_after: configuration.unknown_after.0,
        claim_time: configuration.step_time.0,
        steps_at_once: steps_at_once(configuration).max(1),
        decision_work: configuration.decision_work.max(1),
        decisions_at_once: decisions_at_once(configuration),
        delete_wait: configuration.delete_wait.unsigned(),
        enforcer_timeout: configuration.enforcement_timeout.unsigned(),
        longest_clock_skew: configuration.longest_clock_skew.0,
        longest_absence: configuration.longest_absence.0,
        keep_records: configuration.keep_records.0,
        keep_undelivered: configuration.keep_undelivered.0,
        keep_leases: configuration.keep_leases.0,
        keep_usage: configuration.keep_usage.0,
        prices: Prices {
            currency: configuration.currency.clone(),
            lease: configuration.price_lease,
            host_hour: configuration.price_host_hour,
            core_hour: configuration.price_core_hour,
            gib_hour: configuration.price_gib_hour,
            address_hour: configuration.price_address_hour,
            instance_hour: configuration.price_instance_hour,
        },
        energy: energy(configuration),
        preemption: PreemptionRules {
            allowed: configuration.preemptible,
            projects: configuration.preemptible_projects.iter().flat_map(|project| project.parse()).collect(),
            marks: configuration.preemptible_marks.clone(),
            least_lifetime: configuration.least_lifetime.0,
            classes: configuration.preemptible_classes.clone(),
        },
        quotas: Quotas {
            regular: quota(
                configuration.instance_quota,
                configuration.instance_quota_vcpus,
                configuration.instance_quota_memory,
            ),
            preemptible: quota(
                configuration.preemptible_quota,
                configuration.preemptible_quota_vcpus,
                configuration.preemptible_quota_memory,
            ),
            preemptible_usage: configuration.preemptible_usage_limit.map(|core_hours| UsageLimit {
                core_hours,
                window: configuration.preemptible_usage_window.0,
            }),
        },
        open_pool: !in_cloud || configuration.openstack_open_pool,
        preemptible_by_project: !in_cloud,
    }
}

/// The hints that leases may give. In a cloud servers are started past this service, which cannot spread them.
fn hints(configuration: &Configuration, in_cloud: bool) -> BTreeSet<Hint> {
    configuration.hints.iter().copied().filter(|hint| !in_cloud || *hint != Hint::Group).collect()
}

fn hunting(configuration: &Configuration) -> Hunting {
    Hunting {
        enabled: configuration.hunts,
        n_plus_one: configuration.hunt_n_plus_one,
        mib_per_second: configuration.hunt_speed.max(1),
        longest: configuration.hunt_longest.0,
        ..Hunting::default()
    }
}

fn plan_rules(configuration: &Configuration) -> PlanRules {
    let notices = configuration.preemptible_classes.iter().map(Class::notice);
    let longest_notice = notices.max().unwrap_or_default().max(configuration.grace.0);
    let moving_time = configuration.preemptible_moving_time.0;
    let ahead = [configuration.preemptible_margin.0, moving_time, configuration.longest_clock_skew.0];
    let ahead = ahead.into_iter().fold(longest_notice, SignedDuration::saturating_add);
    PlanRules {
        grace: configuration.grace.0,
        longest_notice,
        clear_ahead: configuration.preemptible.then_some(ahead),
        moving_time,
        backfill: configuration.preemptible && configuration.preemptible_backfill,
        before_end: configuration.before_end_action,
        longest_departure: configuration.hunt_longest.0,
        moves_at_once: configuration.moves_at_once.max(1),
        ..PlanRules::default()
    }
}

fn quota(instances: Option<u64>, vcpus: Option<u64>, memory_gib: Option<u64>) -> Quota {
    Quota { instances, vcpus, memory_mib: memory_gib.map(|gib| gib.saturating_mul(1024)) }
}

fn energy(configuration: &Configuration) -> EnergySettings {
    let mode = match (configuration.energy, configuration.energy_dry_run) {
        (false, _) => EnergyMode::Off,
        (true, true) => EnergyMode::DryRun,
        (true, false) => EnergyMode::On,
    };
    let rules = PowerRules {
        shortest_boot: configuration.energy_boot_time.0,
        margin: configuration.energy_margin.0,
        spare_hosts: configuration.energy_spare_hosts,
        shortest_rest: configuration.energy_shortest_rest.0,
        rests_a_day: configuration.energy_rests_a_day,
        boots_at_once: configuration.energy_boots_at_once.max(1),
        horizon: configuration.energy_horizon.0.max(SignedDuration::from_hours(1)),
        ..PowerRules::default()
    };
    let repack_watt_hours = configuration.energy_repack.then_some(configuration.energy_repack_watt_hours);
    EnergySettings { mode, rules, repack_watt_hours }
}

/// One less than there are processors, unless it is configured: the loop and the write lock need one.
fn decisions_at_once(configuration: &Configuration) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    configuration.decisions_at_once.unwrap_or_else(|| processors() - 1).max(1)
}

/// As many as are due may be carried out at once, within what the fleet bears.
fn steps_at_once(configuration: &Configuration) -> usize {
    configuration.steps_at_once.unwrap_or(match configuration.fleet {
        FleetChoice::Hooks(_) => 256,
        // Each is some ten requests, and Nova's API has few workers.
        FleetChoice::OpenStack => 32,
        FleetChoice::Simulated => 1024,
    })
}

pub(super) fn server_config(configuration: &Configuration) -> Result<server::Config, AssemblyError> {
    let tls = match (&configuration.tls_certificate, &configuration.tls_key) {
        (Some(certificate), Some(key)) => {
            let client_ca = configuration.tls_client_ca.clone();
            Some(TlsConfig { certificate: certificate.clone(), key: key.clone(), client_ca })
        }
        (None, None) if configuration.tls_client_ca.is_none() => None,
        _ => {
            return Err(AssemblyError::Contradiction(
                "tls.certificate and tls.key belong together: set both, also where tls.client_ca is set",
            ));
        }
    };
    let connections = Connections {
        most: configuration.connections.max(1),
        per_address: configuration.connections_per_address.max(1),
    };
    let connections = connections.that_fit();
    Ok(server::Config {
        listen: configuration.listen,
        public_url: configuration.public_url.clone(),
        tls,
        auth: auth(configuration)?,
        policy_file: configuration.policy_file.clone(),
        enforcement: EnforcementConfig {
            max_lease_duration_seconds: configuration.max_duration.map(Span::seconds),
            exempt_projects: configuration.exempt_projects.iter().cloned().collect(),
            reservation_extension_window_seconds: configuration.extension_window.map(Span::seconds),
            max_stack_seconds: configuration.max_stack.map(Span::seconds),
            quota: LeaseQuota {
                leases: configuration.quota_leases,
                hosts: configuration.quota_hosts,
                host_hours: configuration.quota_host_hours,
                instances: configuration.quota_instances,
            },
            external_service: external_service(configuration)?,
        },
        limits: server::Limits {
            body_bytes: configuration.body_bytes,
            read_seconds: configuration.read_time.seconds(),
            page: configuration.page,
            wait_seconds: configuration.notification_wait.seconds(),
            stop_seconds: configuration.stop_time.seconds(),
            rate: RateLimit {
                per_second: configuration.requests_per_second,
                burst: configuration.requests_burst,
            },
            requests_at_once: configuration.requests_at_once.max(1),
            streams: configuration.streams,
            streams_per_user: configuration.streams_per_user,
            stream_seconds: configuration.stream_time.seconds(),
            connections: connections.most,
            connections_per_address: connections.per_address,
            parts: parts(configuration),
            failed_logins: configuration.failed_logins,
            ..server::Limits::default()
        },
        webhook: listeners::webhook(configuration)?,
        message_bus: listeners::message_bus(configuration)?.map(Box::new),
        placement: placement(configuration),
        shortage_status: configuration.shortage_status,
        settings: configuration.shown.clone(),
    })
}

/// Questions about clusters, which this program answers in processes of its own.
fn placement(configuration: &Configuration) -> PlacementConfig {
    // Where there is such a link, it stands for the program that runs even if another is in its place by now.
    let link = PathBuf::from("/proc/self/exe");
    let program = if link.exists() { Some(link) } else { std::env::current_exe().ok() };
    PlacementConfig {
        program,
        clusters: configuration.clusters.0.clone(),
        cluster_bytes: configuration.cluster_bytes,
        compute_seconds: configuration.compute_time.seconds(),
        memory_mib: configuration.placement_memory,
        at_once: configuration.placements_at_once,
    }
}

/// Whether others may come in, and nothing limits what they may have.
fn quotas_are_missing(configuration: &Configuration) -> bool {
    let open = configuration.auth.iter().all(|choice| matches!(choice, AuthChoice::None));
    let quotas = [
        configuration.quota_leases,
        configuration.quota_hosts,
        configuration.quota_host_hours,
        configuration.quota_instances,
        configuration.instance_quota,
        configuration.preemptible_quota,
    ];
    !open && quotas.iter().all(Option::is_none) && configuration.enforcement_url.is_none()
}

/// How large the parts of a request may be.
fn parts(configuration: &Configuration) -> api::v1::Limits {
    api::v1::Limits {
        expression_length: configuration.expression_length,
        value_length: configuration.value_length,
        entries: configuration.entries,
        hosts: configuration.hosts_named,
        reservations: configuration.reservations,
        series: configuration.series,
        amount: configuration.amount,
        dates_ahead: configuration.dates_ahead.0,
    }
}

fn auth(configuration: &Configuration) -> Result<AuthConfig, AssemblyError> {
    let mut config = AuthConfig {
        methods: Vec::new(),
        tokens_file: None,
        users_file: None,
        token_lifetime_seconds: configuration.token_lifetime.seconds(),
        token_key_file: configuration.token_key_file.clone(),
        keystone: keystone::of(configuration)?,
        session_lifetime_seconds: configuration.session_lifetime.seconds(),
    };
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
        if let Some((place, path)) = file {
            if place.as_ref().is_some_and(|other| other != path) {
                return Err(AssemblyError::Contradiction(
                    "auth: basic and local-keystone must have the same file",
                ));
            }
            *place = Some(path.clone());
        }
        config.methods.push(method);
    }
    Ok(config)
}

fn external_service(configuration: &Configuration) -> Result<Option<ExternalServiceConfig>, AssemblyError> {
    let Some(url) = &configuration.enforcement_url else { return Ok(None) };
    let token = configuration.enforcement_token_file.as_deref().map(read).transpose()?;
    Ok(Some(ExternalServiceConfig {
        base_endpoint: url.clone(),
        check_create_endpoint: configuration.check_create_url.clone(),
        check_update_endpoint: configuration.check_update_url.clone(),
        on_end_endpoint: configuration.on_end_url.clone(),
        token: token.map(|token| SecretString::from(token.trim())),
        timeout_seconds: configuration.enforcement_timeout.seconds(),
        auth_url: configuration.enforcement_auth_url.clone(),
        region_name: configuration.enforcement_region_name.clone(),
    }))
}
