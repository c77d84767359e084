//! The parsed settings. A part of the service defines its own settings and their defaults. The structs in
//! this module have the remaining ones: choices between parts, and values from which settings of parts are
//! computed.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use leases::plan::PlanRules;
use openstack::Interface;
use secrecy::SecretString;
use server::{ExternalServiceConfig, MessageBusConfig, TokenValidation, WebhookConfig};

use super::choice::{AuthChoice, DatabaseChoice, FenceChoice, FleetChoice, LogFormat, TimingChoice};

/// All settings, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub database: DatabaseChoice,
    pub fleet: FleetChoice,
    pub auth: Vec<AuthChoice>,
    /// Name of this service among those that share a database. `None` is the name of the machine.
    pub name: Option<String>,
    /// Settings of the service, except those computed at assembly.
    pub service: service::Settings,
    /// Settings of the server, except those computed at assembly.
    pub server: server::Config,
    pub tls: Tls,
    pub keystone: Keystone,
    pub openstack: OpenStack,
    pub simulated: Simulated,
    pub preemptible: Preemptible,
    pub energy: Energy,
    /// External service that can reject leases. It isn't asked if its address is empty.
    pub external_service: ExternalServiceConfig,
    /// File with the token for the external service.
    pub external_service_token_file: Option<PathBuf>,
    /// Web hook that receives all notifications. An empty address disables it.
    pub webhook: WebhookConfig,
    /// File with the secret for signing notifications.
    pub webhook_secret_file: Option<PathBuf>,
    /// Program that receives all notifications, with its arguments. An empty list disables it.
    pub exec: Vec<String>,
    /// Message bus of a cloud, except its address.
    pub message_bus: MessageBusConfig,
    /// File with the address of the message bus. `None` disables the bus.
    pub message_bus_url_file: Option<PathBuf>,
    /// Maximum number of concurrent steps. `None` is the fleet's default.
    pub steps_at_once: Option<usize>,
    /// Maximum number of concurrent decisions. `None` derives it from the number of processors.
    pub decisions_at_once: Option<usize>,
    pub log: Log,
}

impl Default for Configuration {
    fn default() -> Self {
        // The default rules move no instances, but a service does.
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

/// Files for TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    /// Certificate and its chain.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Authorities for client certificates. `None` requires no certificate.
    pub client_ca: Option<PathBuf>,
}

/// Login of the service in a cloud.
#[derive(Clone, Debug)]
pub(crate) struct CloudLogin {
    /// URL of the cloud's Keystone.
    pub auth_url: Option<String>,
    pub username: Option<String>,
    pub user_domain: String,
    pub project: String,
    pub project_domain: String,
    /// Identifier of an application credential, which replaces the user name.
    pub application_credential: Option<String>,
    /// File with the password, or with the secret of the application credential.
    pub secret_file: Option<PathBuf>,
    /// Authorities for the cloud's certificates.
    pub ca_file: Option<PathBuf>,
    /// Timeout of a request to the cloud.
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

/// Settings for a cloud's Keystone.
#[derive(Clone, Debug)]
pub(crate) struct Keystone {
    /// Address of Keystone, and the service's login.
    pub login: CloudLogin,
    /// URL at which clients without a valid token are told to get one. `None` is the address of Keystone.
    pub www_authenticate_uri: Option<String>,
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

/// Settings for a cloud's Nova and Placement.
#[derive(Clone, Debug)]
pub(crate) struct OpenStack {
    /// Address of Keystone, and the login for Nova and Placement.
    pub login: CloudLogin,
    /// Interface of the endpoints in the catalog.
    pub interface: Interface,
    pub fence: FenceChoice,
    /// Whether servers of all projects can run in the free pool.
    pub open_pool: bool,
    /// Flavors that are copied for each lease of hosts.
    pub lease_flavors: Vec<String>,
    /// File with hooks that switch compute hosts on and off.
    pub power_file: Option<PathBuf>,
    /// Settings of the driver, except those computed from this struct.
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

/// Settings for the simulated fleet.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    pub racks: u32,
    pub hosts_per_rack: u32,
    /// Seed for random numbers.
    pub seed: u64,
    pub timing: TimingChoice,
    /// Whether guests come and go.
    pub background_load: bool,
    /// File for the state of the machines. `None` selects a file next to the database.
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

/// Values from which limits and times of preemptible instances are computed.
#[derive(Clone, Debug)]
pub(crate) struct Preemptible {
    /// Time before the start of a lease at which its hosts must be free of preemptible instances.
    pub margin: SignedDuration,
    /// Maximum core-hours of a project's preemptible instances within the window. `None` is unlimited.
    pub usage_limit: Option<u64>,
    /// Length of the window for the usage limit.
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

/// Values from which power saving is computed.
#[derive(Clone, Debug)]
pub(crate) struct Energy {
    /// Whether unneeded hosts are switched off.
    pub enabled: bool,
    /// Whether power saving is only planned.
    pub dry_run: bool,
    /// Whether leases that haven't started get hosts that draw less power.
    pub repack: bool,
    /// Minimum saving for a change of hosts, in watt-hours.
    pub repack_watt_hours: u32,
}

impl Default for Energy {
    fn default() -> Self {
        Self { enabled: false, dry_run: false, repack: false, repack_watt_hours: 100 }
    }
}

/// Settings of the log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// A level, or levels by module.
    pub level: String,
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}
