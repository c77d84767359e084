//! The settings, read. Those of a part of the service are the part's own structs, and so are their defaults; here are
//! the others: what is chosen between parts, and what a part's settings are computed from.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use leases::plan::PlanRules;
use openstack::Interface;
use secrecy::SecretString;
use server::{ExternalServiceConfig, MessageBusConfig, TokenValidation, WebhookConfig};

use super::choice::{AuthChoice, DatabaseChoice, FenceChoice, FleetChoice, LogFormat, TimingChoice};

/// The settings, read.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// Where leases are kept.
    pub database: DatabaseChoice,
    /// What runs the machines.
    pub fleet: FleetChoice,
    /// Who may come in.
    pub auth: Vec<AuthChoice>,
    /// Name of this service among those that share a database; without it, that of the machine.
    pub name: Option<String>,
    /// Those of the service, but for what is computed when it is assembled.
    pub service: service::Settings,
    /// Those of the server, but for what is computed when it is assembled.
    pub server: server::Config,
    /// Where certificate and key are, if they are anywhere.
    pub tls: Tls,
    /// Keystone of a cloud.
    pub keystone: Keystone,
    /// Nova and Placement of a cloud.
    pub openstack: OpenStack,
    /// Simulated fleet.
    pub simulated: Simulated,
    /// What limits and times of preemptible instances are computed from.
    pub preemptible: Preemptible,
    /// What saving power is computed from.
    pub energy: Energy,
    /// External service that may refuse leases; none is asked without its address.
    pub external_service: ExternalServiceConfig,
    /// File with the token to show it.
    pub external_service_token_file: Option<PathBuf>,
    /// Listener that is told of everything that happens; there is none without its address.
    pub webhook: WebhookConfig,
    /// File with the secret that notifications are signed with.
    pub webhook_secret_file: Option<PathBuf>,
    /// Program that is told of everything that happens, and its arguments; there is none if it is empty.
    pub exec: Vec<String>,
    /// Message bus of a cloud, but for its address.
    pub message_bus: MessageBusConfig,
    /// File with its address; without it, there is none.
    pub message_bus_url_file: Option<PathBuf>,
    /// How many steps are carried out at once; without it, as the fleet bears.
    pub steps_at_once: Option<usize>,
    /// How many decisions are made at once; without it, as the processors allow.
    pub decisions_at_once: Option<usize>,
    /// The log.
    pub log: Log,
}

impl Default for Configuration {
    fn default() -> Self {
        // Rules by themselves move nobody; a service does.
        let plan_rules = PlanRules { moving_time: SignedDuration::from_mins(5), ..PlanRules::default() };
        Self {
            database: DatabaseChoice::Sqlite("allot.db".into()),
            fleet: FleetChoice::Simulated,
            auth: vec![AuthChoice::None],
            name: None,
            service: service::Settings { plan_rules, ..service::Settings::default() },
            server: server::Config::default(),
            tls: Tls::default(),
            keystone: Keystone::default(),
            openstack: OpenStack::default(),
            simulated: Simulated::default(),
            preemptible: Preemptible::default(),
            energy: Energy::default(),
            external_service: ExternalServiceConfig::new(String::new()),
            external_service_token_file: None,
            webhook: WebhookConfig::new(String::new()),
            webhook_secret_file: None,
            exec: Vec::new(),
            message_bus: MessageBusConfig::new(SecretString::from("")),
            message_bus_url_file: None,
            steps_at_once: None,
            decisions_at_once: None,
            log: Log::default(),
        }
    }
}

/// Where certificate and key are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    /// The certificate and those that vouch for it.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// Authorities of which clients have to have a certificate.
    pub client_ca: Option<PathBuf>,
}

/// How the service logs in at a cloud.
#[derive(Clone, Debug)]
pub(crate) struct CloudLogin {
    /// Address of the cloud's Keystone.
    pub auth_url: Option<String>,
    /// Name of the user.
    pub username: Option<String>,
    /// Domain of that user.
    pub user_domain: String,
    /// Project that the user logs in for.
    pub project: String,
    /// Domain of that project.
    pub project_domain: String,
    /// Identifier of an application credential to log in with instead.
    pub application_credential: Option<String>,
    /// File with the password, or with the secret of the application credential.
    pub secret_file: Option<PathBuf>,
    /// Authorities of the cloud's certificates.
    pub ca_file: Option<PathBuf>,
    /// How long a request waits for the cloud.
    pub timeout: Duration,
}

impl CloudLogin {
    fn with_timeout(timeout: Duration) -> Self {
        Self {
            auth_url: None,
            username: None,
            user_domain: "Default".to_owned(),
            project: "service".to_owned(),
            project_domain: "Default".to_owned(),
            application_credential: None,
            secret_file: None,
            ca_file: None,
            timeout,
        }
    }
}

/// Keystone of a cloud.
#[derive(Clone, Debug)]
pub(crate) struct Keystone {
    /// Where it is, and whom the service logs in as.
    pub login: CloudLogin,
    /// Where clients without a valid token are told to get one; without it, where it is.
    pub www_authenticate_uri: Option<String>,
    /// How tokens are validated.
    pub validation: TokenValidation,
}

impl Default for Keystone {
    fn default() -> Self {
        Self {
            login: CloudLogin::with_timeout(Duration::from_secs(5)),
            www_authenticate_uri: None,
            validation: TokenValidation::default(),
        }
    }
}

/// Nova and Placement of a cloud.
#[derive(Clone, Debug)]
pub(crate) struct OpenStack {
    /// Where Keystone is, and whom Nova and Placement are asked as.
    pub login: CloudLogin,
    /// Which addresses of the catalog are used.
    pub interface: Interface,
    /// What keeps others off the hosts of a lease.
    pub fence: FenceChoice,
    /// Whether servers of anybody may run in the free pool.
    pub open_pool: bool,
    /// Flavors that each lease of hosts gets copies of.
    pub lease_flavors: Vec<String>,
    /// Hooks that switch compute hosts on and off.
    pub power_file: Option<PathBuf>,
    /// Those of the driver, but for what follows from these.
    pub driver: fleet_openstack::Settings,
}

impl Default for OpenStack {
    fn default() -> Self {
        Self {
            login: CloudLogin::with_timeout(Duration::from_mins(1)),
            interface: Interface::Internal,
            fence: FenceChoice::BlazarFilter,
            open_pool: false,
            lease_flavors: Vec::new(),
            power_file: None,
            driver: fleet_openstack::Settings::default(),
        }
    }
}

/// Simulated fleet.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    /// Racks of machines.
    pub racks: u32,
    /// Machines in each rack.
    pub hosts_per_rack: u32,
    /// What chance is drawn from.
    pub seed: u64,
    /// How long things take on the machines.
    pub timing: TimingChoice,
    /// Whether guests come and go.
    pub background_load: bool,
    /// Where it is kept what is on the machines; without it, in a file beside the database.
    pub state_file: Option<PathBuf>,
}

impl Default for Simulated {
    fn default() -> Self {
        Self {
            racks: 2,
            hosts_per_rack: 4,
            seed: 1,
            timing: TimingChoice::Lifelike,
            background_load: false,
            state_file: None,
        }
    }
}

/// What limits and times of preemptible instances are computed from.
#[derive(Clone, Debug)]
pub(crate) struct Preemptible {
    /// How long before a lease starts its hosts are to be empty of them.
    pub margin: SignedDuration,
    /// How many core-hours those of a project may use within the window.
    pub usage_limit: Option<u64>,
    /// How far back that is counted.
    pub usage_window: SignedDuration,
}

impl Default for Preemptible {
    fn default() -> Self {
        Self {
            margin: SignedDuration::from_secs(30),
            usage_limit: None,
            usage_window: SignedDuration::from_hours(24),
        }
    }
}

/// What saving power is computed from.
#[derive(Clone, Debug)]
pub(crate) struct Energy {
    /// Whether hosts that nobody needs are switched off.
    pub enabled: bool,
    /// Whether it is only planned.
    pub dry_run: bool,
    /// Whether leases that have not started are given other hosts if these draw less.
    pub repack: bool,
    /// How many watt-hours that has to save.
    pub repack_watt_hours: u32,
}

impl Default for Energy {
    fn default() -> Self {
        Self { enabled: false, dry_run: false, repack: false, repack_watt_hours: 100 }
    }
}

/// The log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// What is logged.
    pub level: String,
    /// How.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}
