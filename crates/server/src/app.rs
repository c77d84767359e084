//! State shared by all requests: the service, authentication, policy and limits.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use ambient::{Clock, Ids, SystemClock};
use leases::project::{ProjectId, UserId};
use secrecy::SecretString;
use service::{Caller, Client, Projects, Service};
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::auth::keystone::Keystone;
use crate::auth::{Failures, Hashing, Identity, Keyring, Permanent, shown};
use crate::certificates::Certificates;
use crate::cloud_news::CloudNews;
use crate::config::{AuthMethod, Config};
use crate::config_error::ConfigError;
use crate::connections::Places;
use crate::error::ApiError;
use crate::held::Held;
use crate::listeners::{self, Listener};
use crate::metrics::{Metrics, TokenChecks};
use crate::names::NameBook;
use crate::placement::Placement;
use crate::policy::{Rule, Target};
use crate::rate::Limiters;
use crate::unanswered::{Asked, Unanswered};

/// The server without its sockets.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub service: Arc<Service>,
    pub ids: Arc<dyn Ids>,
    /// Authentication and policy. A reload replaces both at once.
    pub access: RwLock<Arc<Access>>,
    /// Held during a reload.
    pub reloading: Mutex<()>,
    /// Display names of users and projects.
    pub names: NameBook,
    pub permanent: Permanent,
    pub failures: Arc<Failures>,
    /// Set when TLS is served.
    pub certificates: OnceLock<Certificates>,
    pub config: Config,
    pub metrics: Metrics,
    /// Receivers of notifications.
    pub listeners: Vec<Box<dyn Listener>>,
    /// Subscription to notifications of the cloud's own services.
    pub cloud_news: Option<CloudNews>,
    pub limiters: Limiters,
    /// Concurrent requests of each client.
    pub unanswered: Arc<Unanswered>,
    /// Bytes of requests and responses in memory.
    pub held: Arc<Held>,
    /// Change streams of each client; `all_streams` limits their total.
    pub streams: Arc<Unanswered>,
    pub all_streams: Arc<Semaphore>,
    /// Placement questions about clusters.
    pub placement: Placement,
    /// Identifies this run of the service in the states that it hands out. Generated on first use.
    pub run: OnceLock<String>,
    /// Connection limits.
    pub places: Arc<Places>,
    /// True once the server is shutting down.
    pub stopping: watch::Sender<bool>,
}

impl App {
    /// Whether browsers reach the service over TLS, terminated here or at a proxy.
    pub(crate) fn is_encrypted(&self) -> bool {
        let config = &self.inner.config;
        config.tls.is_some() || config.public_url.as_ref().is_some_and(|url| url.starts_with("https:"))
    }

    /// Reads users, tokens and rules from the files named in the settings. Certificates are read later, when
    /// serving starts.
    pub fn new(service: Arc<Service>, ids: Arc<dyn Ids>, config: Config) -> Result<Self, ConfigError> {
        // Clients compare a token's expiry with their own machine's clock.
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let lifetime = config.auth.token_lifetime;
        let longest = lifetime.max(config.auth.session_lifetime);
        let keyring = Keyring::new(Arc::clone(&service), Arc::clone(&ids), clock, lifetime, longest);
        let keyring = Arc::new(keyring);
        let failures = Arc::new(Failures::new(config.limits.failed_logins));
        let hashing = Arc::new(Hashing::new(ids.as_ref(), Arc::clone(&failures))?);
        let limits = config.limits;
        let places = Places::new(limits.connections, limits.connections_per_address);
        let metrics = Metrics::new(&service, &places, &listeners::NAMES);
        let keystone = keystone(&config, &ids, metrics.token_checks())?;
        let permanent = Permanent { keyring, hashing, keystone };
        let access = Access::read(&config, &permanent)?;
        access.warn();
        let access = RwLock::new(Arc::new(access));
        let listeners = listeners::of(&config)?;
        let cloud_news = config.message_bus.as_deref().map(CloudNews::new).transpose()?.flatten();
        let open = config.auth.methods.contains(&AuthMethod::None);
        let limiters = Limiters::new(limits.rate, open);
        let unanswered = Unanswered::new(limits.requests_at_once);
        let streams = Unanswered::new(limits.streams_per_user);
        let all_streams = Arc::new(Semaphore::new(limits.streams.min(Semaphore::MAX_PERMITS)));
        let placement = Placement::new(config.placement.clone());
        let stopping = watch::Sender::new(false);
        let inner = Inner {
            service,
            ids,
            access,
            reloading: Mutex::default(),
            names: NameBook::default(),
            permanent,
            failures,
            certificates: OnceLock::new(),
            config,
            metrics,
            listeners,
            cloud_news,
            limiters,
            unanswered,
            held: Arc::default(),
            streams,
            all_streams,
            placement,
            run: OnceLock::new(),
            places,
            stopping,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Logs in to the cloud's Keystone, if one is configured, and logs the findings.
    pub async fn look_at_keystone(&self) {
        let keystone = self.access().authentication.keystone.clone();
        if let Some(keystone) = keystone {
            keystone.look().await;
        }
    }

    /// The cloud's Keystone, if it is the only authentication method. Otherwise it would report the projects
    /// of other methods as deleted, because it doesn't know them.
    pub(crate) fn projects(&self) -> Option<Arc<dyn Projects>> {
        let only = self.inner.config.auth.methods.iter().all(|method| *method == AuthMethod::Keystone);
        let keystone = self.inner.permanent.keystone.clone().filter(|_| only)?;
        Some(keystone)
    }

    /// Fails if the server must not listen on the address.
    pub(crate) fn check_address(&self, address: SocketAddr) -> Result<(), ConfigError> {
        check_address(&self.inner.config.auth.methods, address)
    }

    /// Current authentication and policy. A request must use one snapshot from start to end.
    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.inner.access.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn service(&self) -> &Arc<Service> {
        &self.inner.service
    }

    /// Logs and counts a failed login, and records it in the audit log now and then. The name is the client's
    /// claim and may not belong to any user.
    pub(crate) fn login_failed(&self, failure: &LoginFailure<'_>) {
        let LoginFailure { method, name, reason, peer, request_id } = *failure;
        let user = name.map(shown).unwrap_or_default();
        let address = peer.map(|peer| peer.to_string()).unwrap_or_default();
        self.inner.metrics.login_failed(method);
        tracing::warn!(method, user, peer = address, reason, "login failed");
        let Some(count) = self.inner.failures.note(peer, &user) else { return };
        let caller = Caller {
            user: UserId(user),
            project: ProjectId(String::new()),
            request_id: request_id.to_owned(),
            administrator: false,
        };
        let object = format!("{address} {count}").trim_start().to_owned();
        let service = Arc::clone(self.service());
        // Not awaited, so that failures with an audit record are answered as fast as those without.
        tokio::spawn(async move {
            if let Err(error) = service.audit().note(&caller, "login.fail", &object).await {
                tracing::warn!(%error, "audit record lost");
            }
        });
    }

    /// Waits until the server shuts down.
    pub(crate) async fn stopping(&self) {
        // Can't fail: the sender is in `self`.
        let _ = self.inner.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// Restricts servers without authentication to loopback addresses, because every client is an administrator
/// there.
pub(crate) fn check_address(methods: &[AuthMethod], address: SocketAddr) -> Result<(), ConfigError> {
    if methods.contains(&AuthMethod::None) && !address.ip().to_canonical().is_loopback() {
        return Err(ConfigError::OpenToTheWorld(address));
    }
    Ok(())
}

/// The cloud's Keystone, if the method `keystone` is enabled.
fn keystone(
    config: &Config,
    ids: &Arc<dyn Ids>,
    checks: TokenChecks,
) -> Result<Option<Arc<Keystone>>, ConfigError> {
    let named = config.auth.keystone.as_ref().filter(|_| config.auth.methods.contains(&AuthMethod::Keystone));
    // Tokens expire by the machine's clock, even if leases use another one.
    let make = |named| Keystone::new(named, Arc::clone(ids), Arc::new(SystemClock), checks).map(Arc::new);
    named.map(make).transpose()
}

/// A failed login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginFailure<'a> {
    /// Login method: `basic`, `local-keystone`, `session` or `token`.
    pub method: &'static str,
    /// User name or identifier, as sent by the client.
    pub name: Option<&'a str>,
    /// For the log only.
    pub reason: &'static str,
    pub peer: Option<IpAddr>,
    /// `req-...`.
    pub request_id: &'a str,
}

/// An authenticated request: its sender, its identifier, and the access rules in force when it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub identity: Identity,
    /// `req-...`.
    pub request_id: String,
    /// Snapshot taken when the request arrived.
    pub access: Arc<Access>,
    /// Counts the request as under way until it is dropped.
    pub asked: Arc<Asked>,
    /// Session cookie that authenticated the request, if any.
    pub cookie: Option<SecretString>,
    /// The client for the service's accounting: which owner to charge, and whether the client is still
    /// connected.
    pub client: Client,
}

impl Session {
    /// Runs a change to completion even if the client disconnects, because an interrupted change would leave
    /// its outcome unknown (W7). Until something is committed, queued and slow work is canceled on
    /// disconnect. The request counts against the client's limit until the change ends.
    pub(crate) async fn change<T, F>(&self, change: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.on_behalf(change).await
    }

    /// Runs a decision that changes nothing. It is canceled if the client disconnects.
    pub(crate) async fn consider<T, F>(&self, decide: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.on_behalf(decide).await
    }

    /// Runs the work in its own task, so that a disconnect is noticed while the work runs.
    async fn on_behalf<T, F>(&self, work: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        use tracing::Instrument;
        let asked = Arc::clone(&self.asked);
        let work = self.client.clone().scope(async move {
            let done = work.await;
            drop(asked);
            done
        });
        tokio::spawn(work.in_current_span()).await.map_err(|error| {
            tracing::error!(%error, "request task panicked");
            ApiError::internal()
        })
    }

    /// The caller for use cases of the service.
    pub fn caller(&self) -> Caller {
        Caller {
            user: self.identity.user.clone(),
            project: self.identity.project.clone(),
            request_id: self.request_id.clone(),
            administrator: self.access.policy.is_admin(&self.identity),
        }
    }

    /// The same user acting for `project`. Only administrators may choose a project other than their own.
    /// Actions are recorded under this user and `project`.
    pub fn for_project(self, app: &App, project: ProjectId, rule: Rule) -> Result<Self, ApiError> {
        if project != self.identity.project && !self.is_admin(app) {
            return Err(ApiError::forbidden(rule));
        }
        Ok(Self { identity: Identity { project, ..self.identity }, ..self })
    }

    /// Fails unless the policy allows the caller to apply the rule to the caller's own project.
    pub fn allow(&self, app: &App, rule: Rule) -> Result<(), ApiError> {
        self.allow_on(app, rule, &Target::caller(&self.identity))
    }

    /// Fails unless the policy allows the caller to apply the rule to an object of this owner.
    pub fn allow_on(&self, _: &App, rule: Rule, target: &Target<'_>) -> Result<(), ApiError> {
        if self.access.policy.allows(rule, &self.identity, target) {
            return Ok(());
        }
        tracing::info!(rule = rule.name(), "refused by policy");
        Err(ApiError::forbidden(rule))
    }

    pub fn may(&self, rule: Rule) -> bool {
        self.access.policy.allows(rule, &self.identity, &Target::caller(&self.identity))
    }

    /// Whether the caller can see objects of other projects.
    pub fn is_admin(&self, _: &App) -> bool {
        self.access.policy.is_admin(&self.identity)
    }
}
