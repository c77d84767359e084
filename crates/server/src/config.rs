//! Settings of the server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::SignedDuration;
use secrecy::SecretString;
use service::Settings;

/// Maximum time for a response of a listener or of a message broker.
pub(crate) const LONGEST_ANSWER: Duration = Duration::from_mins(1);
/// Default time limit for a response of a listener.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Default pause after a listener's first failure.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// Minimum pause after a failure.
pub(crate) const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// URL at which clients reach the server, for catalogs and links. Defaults to the address that the client
    /// requested.
    pub public_url: Option<String>,
    /// Without it, the server speaks plain HTTP.
    pub tls: Option<TlsConfig>,
    pub auth: AuthConfig,
    /// Rules that override the default policy, as YAML in the format of oslo.policy.
    pub policy_file: Option<PathBuf>,
    pub limits: Limits,
    /// Receives all notifications by HTTP.
    pub webhook: Option<WebhookConfig>,
    /// Program that receives all notifications.
    pub exec: Option<ExecConfig>,
    /// Message bus of a cloud, on which all notifications are published.
    pub message_bus: Option<Box<MessageBusConfig>>,
    /// Placement questions about clusters.
    pub placement: PlacementConfig,
    /// Status of responses that report too little capacity.
    pub shortage_status: ShortageStatus,
    /// All settings, as shown to administrators.
    pub settings: Vec<api::v1::SettingOf>,
}

/// Status of responses that report too little capacity: 400, 409 or 500. Azimuth's operator treats 400 and
/// 500 as final, and retries forever after any other status. Blazar answers 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortageStatus(pub(crate) StatusCode);

impl Default for ShortageStatus {
    fn default() -> Self {
        Self(StatusCode::BAD_REQUEST)
    }
}

impl ShortageStatus {
    pub fn code(self) -> u16 {
        self.0.as_u16()
    }
}

impl TryFrom<u16> for ShortageStatus {
    type Error = &'static str;

    fn try_from(status: u16) -> Result<Self, Self::Error> {
        match status {
            400 => Ok(Self(StatusCode::BAD_REQUEST)),
            409 => Ok(Self(StatusCode::CONFLICT)),
            500 => Ok(Self(StatusCode::INTERNAL_SERVER_ERROR)),
            _ => Err("it may be 400, 409 or 500"),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1234),
            public_url: None,
            tls: None,
            auth: AuthConfig::default(),
            policy_file: None,
            limits: Limits::default(),
            webhook: None,
            exec: None,
            message_bus: None,
            placement: PlacementConfig::default(),
            shortage_status: ShortageStatus::default(),
            settings: Vec::new(),
        }
    }
}

/// Files for TLS.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Certificate with its chain, PEM.
    pub certificate: PathBuf,
    /// Private key of the certificate, PEM.
    pub key: PathBuf,
    /// Certificate authorities, PEM. If set, clients must have a certificate from one of them.
    pub client_ca: Option<PathBuf>,
}

/// Settings of authentication.
#[derive(Clone, Debug)]
pub struct AuthConfig {
    /// Enabled methods. The first one that accepts a request's credentials determines the caller.
    pub methods: Vec<AuthMethod>,
    /// Tokens and their owners for the method `tokens`: TOML or YAML.
    pub tokens_file: Option<PathBuf>,
    /// Users, for the methods `basic` and `local-keystone`: TOML or YAML.
    pub users_file: Option<PathBuf>,
    /// Lifetime of tokens of the method `local-keystone`.
    pub token_lifetime: SignedDuration,
    /// Signing keys, one per line, that replace the store's keys. The first one signs, and all are accepted.
    pub token_key_file: Option<PathBuf>,
    /// Duration of a console session.
    pub session_lifetime: SignedDuration,
    /// A cloud's Keystone, for the method `keystone`.
    pub keystone: Option<KeystoneConfig>,
}

/// A cloud's Keystone.
#[derive(Clone, Debug)]
pub struct KeystoneConfig {
    /// Its URL, and the credentials of the service's user. Its time limit is the maximum time that a request
    /// waits for Keystone.
    pub cloud: openstack::Cloud,
    /// URL in `WWW-Authenticate` that tells rejected clients where to get a token.
    pub www_authenticate_uri: String,
    pub validation: TokenValidation,
}

/// Caching and limits for validating a cloud's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenValidation {
    /// How long a valid token is used without asking Keystone again. A revoked token remains usable for the
    /// same time.
    pub cache_time: Duration,
    /// Maximum number of cached valid tokens, and also of cached invalid ones.
    pub cached_tokens: usize,
    /// Additional time for which a valid token remains usable while Keystone is unavailable.
    pub outage_time: Duration,
    /// Maximum number of concurrent validations.
    pub validations_at_once: usize,
}

impl Default for TokenValidation {
    fn default() -> Self {
        Self {
            cache_time: Duration::from_mins(1),
            cached_tokens: 10_000,
            outage_time: Duration::from_mins(5),
            validations_at_once: 16,
        }
    }
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            methods: vec![AuthMethod::None],
            tokens_file: None,
            users_file: None,
            token_lifetime: SignedDuration::from_secs(3600),
            token_key_file: None,
            keystone: None,
            session_lifetime: SignedDuration::from_secs(12 * 3600),
        }
    }
}

/// Authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// No authentication: every caller is the administrator. Loopback addresses only.
    None,
    /// Tokens from a file (`X-Auth-Token`).
    Tokens,
    /// User name and password (HTTP basic).
    Basic,
    /// Tokens that the service itself issues at `/identity/v3` for passwords of the users' file.
    LocalKeystone,
    /// Tokens of a cloud's Keystone.
    Keystone,
}

/// External service that approves leases, with Blazar's protocol.
#[derive(Clone, Debug)]
pub struct ExternalServiceConfig {
    /// Base URL. `check-create`, `check-update` and `on-end` are resolved against it like links: without a
    /// slash at the end, they replace its last path segment.
    pub base_endpoint: String,
    /// URL for new leases, instead of `check-create` at the base URL.
    pub check_create_endpoint: Option<String>,
    /// URL for changed leases, instead of `check-update` at the base URL.
    pub check_update_endpoint: Option<String>,
    /// URL for ended leases, instead of `on-end` at the base URL.
    pub on_end_endpoint: Option<String>,
    /// Sent as `X-Auth-Token`. `None` or an empty token sends none.
    pub token: Option<SecretString>,
    /// Time limit for a response. A timeout counts as a refusal.
    pub timeout: Duration,
    /// `auth_url` in the context of requests.
    pub auth_url: Option<String>,
    /// `region_name` in the context of requests.
    pub region_name: Option<String>,
}

impl ExternalServiceConfig {
    /// Settings without a token and without `auth_url` and `region_name`.
    pub fn new(base_endpoint: String) -> Self {
        Self {
            base_endpoint,
            check_create_endpoint: None,
            check_update_endpoint: None,
            on_end_endpoint: None,
            token: None,
            timeout: Settings::ENFORCER_TIMEOUT,
            auth_url: None,
            region_name: None,
        }
    }
}

/// A web hook that receives notifications.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    pub url: String,
    /// Secret that signs requests, in base64 after the prefix `whsec_`, otherwise used as it is. `None`
    /// leaves requests unsigned.
    pub secret: Option<SecretString>,
    /// Time limit for a response, at most one minute. After a timeout the notification is sent again.
    pub timeout: Duration,
    /// Pause after a first failure. It doubles with each further failure, up to five minutes.
    pub first_pause: Duration,
}

impl WebhookConfig {
    /// Settings without a signature.
    pub fn new(url: String) -> Self {
        Self { url, secret: None, timeout: USUAL_TIMEOUT, first_pause: USUAL_PAUSE }
    }
}

/// A program that is run for each notification.
#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// A path, or a name that is looked up in `PATH`.
    pub program: String,
    pub arguments: Vec<String>,
    /// Time limit for a run, at most one minute. After a timeout the program is killed, and run again later.
    pub timeout: Duration,
    /// Pause after a first failure. It doubles with each further failure, up to five minutes.
    pub first_pause: Duration,
}

impl ExecConfig {
    pub fn new(program: String, arguments: Vec<String>) -> Self {
        Self { program, arguments, timeout: USUAL_TIMEOUT, first_pause: USUAL_PAUSE }
    }
}

/// A message bus for notifications in the format of OpenStack's services.
#[derive(Clone, Debug)]
pub struct MessageBusConfig {
    /// Brokers and credentials: `rabbit://USER:PASSWORD@HOST:PORT,.../VIRTUAL_HOST`.
    pub url: SecretString,
    /// Whether to use TLS, if the URL doesn't say so.
    pub tls: bool,
    /// Certificate authorities for the brokers' certificates, PEM. Defaults to those of the system.
    pub ca_file: Option<PathBuf>,
    /// Exchange for publishing.
    pub exchange: String,
    /// Topics to publish each message to. Their queues are named `TOPIC.info`.
    pub topics: Vec<String>,
    /// `publisher_id` of messages.
    pub publisher_id: String,
    /// Whether new queues are durable, so that they survive a restart of their broker. Existing queues aren't
    /// changed.
    pub durable_queues: bool,
    /// Whether new queues are quorum queues, replicated to several brokers. Existing queues aren't changed.
    pub quorum_queues: bool,
    /// The exchange on which Nova's services publish notifications.
    pub nova_exchange: String,
    /// Topics of Nova to listen to. Empty to listen to none.
    pub nova_topics: Vec<String>,
    /// Time limit for a broker, from connecting to confirming a message. After a timeout the message is sent
    /// again, to this broker or the next one.
    pub timeout: Duration,
    /// Pause after a first failure. It doubles with each further failure, up to five minutes.
    pub first_pause: Duration,
}

impl MessageBusConfig {
    /// Settings with Blazar's default names and queues.
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            tls: false,
            ca_file: None,
            exchange: "openstack".to_owned(),
            topics: vec!["notifications".to_owned()],
            publisher_id: "blazar.lease".to_owned(),
            durable_queues: false,
            quorum_queues: false,
            nova_exchange: "nova".to_owned(),
            nova_topics: Vec::new(),
            timeout: USUAL_TIMEOUT,
            first_pause: USUAL_PAUSE,
        }
    }

    /// Time limit for a broker to accept a connection or a message.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.min(LONGEST_ANSWER)
    }
}

/// Limits on placement questions, and the clusters that can be referred to by name.
#[derive(Clone, Debug)]
pub struct PlacementConfig {
    /// Program that computes answers. Without it, questions are rejected.
    pub program: Option<PathBuf>,
    /// Command-line options that select each cluster, by cluster name.
    pub clusters: BTreeMap<String, String>,
    /// Maximum length of a body that contains a cluster.
    pub cluster_bytes: usize,
    /// Maximum CPU time of a question, in whole seconds.
    pub compute_time: Duration,
    /// Maximum memory of a question.
    pub memory_mib: u32,
    /// Maximum number of long questions computed concurrently.
    pub at_once: usize,
}

impl Default for PlacementConfig {
    fn default() -> Self {
        Self {
            program: None,
            clusters: BTreeMap::new(),
            cluster_bytes: 8 << 20,
            compute_time: Duration::from_secs(20),
            memory_mib: 1024,
            at_once: 1,
        }
    }
}

/// Limits on requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum length of a request's body.
    pub body_bytes: usize,
    /// Time limit for a client to send a request. The time for the response is unlimited: a change that has
    /// begun is completed, and its client gets the result.
    pub read_time: Duration,
    /// Maximum page size of lists, if the client requests pages.
    pub page: u32,
    /// Maximum time that a client can wait for notifications.
    pub wait: Duration,
    /// Time for running requests to finish when the server stops.
    pub stop_time: Duration,
    /// Time for clients to finish sending requests when the server stops.
    pub stop_read_time: Duration,
    pub rate: RateLimit,
    /// Maximum number of concurrent requests of a client.
    pub requests_at_once: usize,
    /// Maximum number of change streams in total.
    pub streams: usize,
    /// Maximum number of change streams of a user.
    pub streams_per_user: usize,
    /// Duration of a change stream.
    pub stream_time: Duration,
    /// Maximum number of connections in total.
    pub connections: usize,
    /// Maximum number of connections of an address.
    pub connections_per_address: usize,
    /// Limits on the size of parts of a request.
    pub parts: api::v1::Limits,
    /// Burst of failed logins of a user at an address; after it, one more is allowed every ten seconds. An
    /// address as a whole is allowed ten times as many. 0 is unlimited.
    pub failed_logins: u32,
}

/// Maximum rate of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second of a user, and of an address that fails to log in; 0 is unlimited. If unset and
    /// authentication is on, users have [`Self::USUAL`], users with the role `admin` or `service` have ten
    /// times that rate and ten times the burst, and addresses are unlimited.
    pub per_second: Option<u32>,
    /// Maximum number of requests in a burst, after a pause.
    pub burst: u32,
}

impl RateLimit {
    /// Default number of requests per second of a user.
    pub const USUAL: u32 = 20;
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_second: None, burst: 100 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            read_time: Duration::from_secs(30),
            page: 1000,
            wait: Duration::from_mins(1),
            stop_time: Duration::from_secs(30),
            stop_read_time: Duration::from_secs(1),
            rate: RateLimit::default(),
            requests_at_once: 256,
            streams: 512,
            streams_per_user: 8,
            stream_time: Duration::from_mins(10),
            connections: 4096,
            connections_per_address: 1024,
            parts: api::v1::Limits::default(),
            failed_logins: 10,
        }
    }
}
