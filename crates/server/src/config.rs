//! Settings of the server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::SignedDuration;
use secrecy::SecretString;
use service::Settings;

/// The longest time that a listener, or a broker of a message bus, is given to answer.
pub(crate) const LONGEST_ANSWER: Duration = Duration::from_mins(1);
/// How long a listener may take to answer, if nothing else is set.
const USUAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a listener is left alone after a first failure, if nothing else is set.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// The shortest time that one is left alone.
pub(crate) const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where requests are taken.
    pub listen: SocketAddr,
    /// The address that clients reach the server at, for catalogues and links; by default what they asked for.
    pub public_url: Option<String>,
    /// Certificate and key; without them, HTTP is spoken unencrypted.
    pub tls: Option<TlsConfig>,
    /// Who may come in.
    pub auth: AuthConfig,
    /// Rules that differ from the default policy: YAML, as oslo.policy writes it.
    pub policy_file: Option<PathBuf>,
    /// Limits on requests.
    pub limits: Limits,
    /// Who is told of everything that happens.
    pub webhook: Option<WebhookConfig>,
    /// A program that is told as well.
    pub exec: Option<ExecConfig>,
    /// The message bus of a cloud, where everything that happens is told.
    pub message_bus: Option<Box<MessageBusConfig>>,
    /// Questions about clusters.
    pub placement: PlacementConfig,
    /// The status of answers that say that there is not enough of what is asked for.
    pub shortage_status: ShortageStatus,
    /// What is shown to administrators of all settings.
    pub settings: Vec<api::v1::SettingOf>,
}

/// The status of answers that say that there is not enough of what is asked for: 400, 409 or 500. Azimuth's operator
/// takes 400 and 500 as final and asks again forever after any other; Blazar answers 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortageStatus(pub(crate) StatusCode);

impl Default for ShortageStatus {
    fn default() -> Self {
        Self(StatusCode::BAD_REQUEST)
    }
}

impl ShortageStatus {
    /// The status as a number.
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

/// Where certificate and key are.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// The certificate and those that vouch for it, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Authorities, PEM: clients have to have a certificate of one of them. Without it they need none.
    pub client_ca: Option<PathBuf>,
}

/// Who may come in.
#[derive(Clone, Debug)]
pub struct AuthConfig {
    /// How requests are authenticated; the first method that knows the caller counts.
    pub methods: Vec<AuthMethod>,
    /// Tokens and whose they are, for the method `tokens`: TOML or YAML.
    pub tokens_file: Option<PathBuf>,
    /// Users, for the methods `basic` and `local-keystone`: TOML or YAML.
    pub users_file: Option<PathBuf>,
    /// How long a token of the method `local-keystone` is valid.
    pub token_lifetime: SignedDuration,
    /// Keys that these tokens are signed with, a line each, instead of those that the store holds. The first signs, all
    /// are accepted.
    pub token_key_file: Option<PathBuf>,
    /// How long a session of the console lasts.
    pub session_lifetime: SignedDuration,
    /// A cloud's Keystone, for the method `keystone`.
    pub keystone: Option<KeystoneConfig>,
}

/// A cloud's Keystone.
#[derive(Clone, Debug)]
pub struct KeystoneConfig {
    /// Where it is, and whom the service logs in as. Its time limit is how long a request waits for Keystone.
    pub cloud: openstack::Cloud,
    /// Where clients that are not let in are told to get a token.
    pub www_authenticate_uri: String,
    /// How tokens are validated.
    pub validation: TokenValidation,
}

/// How tokens of a cloud's Keystone are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenValidation {
    /// How long a valid token is not asked about again: so long a token that is revoked goes on.
    pub cache_time: Duration,
    /// How many valid tokens are remembered, and how many wrong ones.
    pub cached_tokens: usize,
    /// How much longer tokens that were valid go on while Keystone cannot be reached.
    pub outage_time: Duration,
    /// How many tokens Keystone is asked about at once.
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

/// How requests are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// Not at all: everybody is the administrator. Loopback addresses only.
    None,
    /// By tokens from a file (`X-Auth-Token`).
    Tokens,
    /// By name and password (HTTP basic).
    Basic,
    /// By tokens that the service itself issues for passwords of the users' file, at `/identity/v3`.
    LocalKeystone,
    /// By tokens of a cloud's Keystone.
    Keystone,
}

/// A service that is asked about every lease, with Blazar's protocol.
#[derive(Clone, Debug)]
pub struct ExternalServiceConfig {
    /// Its address. `check-create`, `check-update` and `on-end` are joined to it as links are: without a slash
    /// at the end, its last part is replaced.
    pub base_endpoint: String,
    /// Where to ask about new leases, if not there.
    pub check_create_endpoint: Option<String>,
    /// Where to ask about changes, if not there.
    pub check_update_endpoint: Option<String>,
    /// Where to tell of ends, if not there.
    pub on_end_endpoint: Option<String>,
    /// Sent as `X-Auth-Token`, if there is one.
    pub token: Option<SecretString>,
    /// How long it may take to answer; then it counts as a refusal.
    pub timeout: Duration,
    /// The `auth_url` of the context that it is told.
    pub auth_url: Option<String>,
    /// The `region_name` of the context that it is told.
    pub region_name: Option<String>,
}

impl ExternalServiceConfig {
    /// A service that is asked without a token, and told no context.
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

/// A listener that notifications are pushed to.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// Its address.
    pub url: String,
    /// The secret that requests are signed with; without one they are not. After `whsec_` it is base64.
    pub secret: Option<SecretString>,
    /// How long it may take to answer; then it is told again.
    pub timeout: Duration,
    /// How long it is left alone after a first failure; each time twice as long, up to five minutes.
    pub first_pause: Duration,
}

impl WebhookConfig {
    /// A listener that is told without signature.
    pub fn new(url: String) -> Self {
        Self { url, secret: None, timeout: USUAL_TIMEOUT, first_pause: USUAL_PAUSE }
    }
}

/// A program that is run for each notification.
#[derive(Clone, Debug)]
pub struct ExecConfig {
    /// The program: a path, or a name that is searched in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How long it may take, a minute at most; then it is killed, and told again.
    pub timeout: Duration,
    /// How long it is left alone after a first failure; each time twice as long, up to five minutes.
    pub first_pause: Duration,
}

impl ExecConfig {
    /// That program, with these arguments.
    pub fn new(program: String, arguments: Vec<String>) -> Self {
        Self { program, arguments, timeout: USUAL_TIMEOUT, first_pause: USUAL_PAUSE }
    }
}

/// A message bus that notifications are published on, as OpenStack's services do.
#[derive(Clone, Debug)]
pub struct MessageBusConfig {
    /// Its brokers and whom to log in as: `rabbit://USER:PASSWORD@HOST:PORT,.../VIRTUAL_HOST`.
    pub url: SecretString,
    /// Whether TLS is spoken, if the address does not say so.
    pub tls: bool,
    /// Authorities, PEM, that the brokers' certificates are of; without it, those of the system.
    pub ca_file: Option<PathBuf>,
    /// The exchange that messages are published on.
    pub exchange: String,
    /// Topics that each message is published to; their queues are called `TOPIC.info`.
    pub topics: Vec<String>,
    /// Who messages are said to be of.
    pub publisher_id: String,
    /// Whether queues that do not exist yet are made to outlive a restart of their broker.
    pub durable_queues: bool,
    /// Whether queues that do not exist yet are made to be on several brokers.
    pub quorum_queues: bool,
    /// The exchange on which Nova's services publish notifications.
    pub nova_exchange: String,
    /// Topics of theirs that are heard; none if it is empty.
    pub nova_topics: Vec<String>,
    /// How long a broker may take, from connecting to its confirmation; then it, or the next, is told again.
    pub timeout: Duration,
    /// How long it is left alone after a first failure; each time twice as long, up to five minutes.
    pub first_pause: Duration,
}

impl MessageBusConfig {
    /// One with the names and queues that Blazar has by default.
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

    /// How long a broker may take for a message, and to let us in.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.min(LONGEST_ANSWER)
    }
}

/// Questions about clusters: what is allowed, and which clusters have names.
#[derive(Clone, Debug)]
pub struct PlacementConfig {
    /// The program that has the commands; without it no question is answered.
    pub program: Option<PathBuf>,
    /// The options of the commands that say where each cluster is, by its name.
    pub clusters: BTreeMap<String, String>,
    /// The longest body with a cluster.
    pub cluster_bytes: usize,
    /// Processor time of a question, in full seconds.
    pub compute_time: Duration,
    /// Memory of a question.
    pub memory_mib: u32,
    /// How many questions are computed at once.
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
    /// The longest body of a request.
    pub body_bytes: usize,
    /// How long a client may take to send a request. How long the answer takes is not limited: a change that
    /// was begun is brought to its end, and its client is told.
    pub read_time: Duration,
    /// The longest list that is answered at once, if a client asks for a limited one.
    pub page: u32,
    /// How long a client may wait for notifications.
    pub wait: Duration,
    /// How long running requests may take when the server stops.
    pub stop_time: Duration,
    /// How long a client may go on sending a request when the server stops.
    pub stop_read_time: Duration,
    /// How often a client may ask.
    pub rate: RateLimit,
    /// How many requests of a client may be under way at once.
    pub requests_at_once: usize,
    /// How many streams of changes there may be.
    pub streams: usize,
    /// How many of them of one user.
    pub streams_per_user: usize,
    /// How long one lasts.
    pub stream_time: Duration,
    /// How many connections there may be.
    pub connections: usize,
    /// How many of them from one address.
    pub connections_per_address: usize,
    /// How large the parts of a request may be.
    pub parts: api::v1::Limits,
    /// How many passwords of a user may be wrong at once from one address; then one every ten seconds. 0 for no
    /// limit. Of all users of an address, ten times as many.
    pub failed_logins: u32,
}

/// How often a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second of a user, and of an address that fails to log in; 0 for no limit. If it is not set and there
    /// is authentication, users have [`Self::USUAL`], those with the role `admin` or `service` ten times that and ten
    /// times the burst, and addresses have no limit.
    pub per_second: Option<u32>,
    /// So many at once, after a silence.
    pub burst: u32,
}

impl RateLimit {
    /// Requests per second of a user unless it is set.
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
