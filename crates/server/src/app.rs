//! What every request needs: the service, who may come in, who may do what.

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
    /// Who may come in, and who may do what. Replaced whole.
    pub access: RwLock<Arc<Access>>,
    /// Held by who replaces it.
    pub reloading: Mutex<()>,
    /// What people call users and projects.
    pub names: NameBook,
    pub permanent: Permanent,
    pub failures: Arc<Failures>,
    /// What TLS is spoken with, once it is.
    pub certificates: OnceLock<Certificates>,
    pub config: Config,
    pub metrics: Metrics,
    /// Who is told of everything that happens.
    pub listeners: Vec<Box<dyn Listener>>,
    /// Where the services of a cloud say what happens there.
    pub cloud_news: Option<CloudNews>,
    pub limiters: Limiters,
    /// What each client has asked for and not been answered.
    pub unanswered: Arc<Unanswered>,
    /// Bytes of requests and responses in memory.
    pub held: Arc<Held>,
    /// Streams of changes, by client, and of all together.
    pub streams: Arc<Unanswered>,
    pub all_streams: Arc<Semaphore>,
    /// Questions about clusters.
    pub placement: Placement,
    /// What tells the states of this run of the service from those of another, once that is asked for.
    pub run: OnceLock<String>,
    /// What connections take.
    pub places: Arc<Places>,
    /// The server is about to end.
    pub stopping: watch::Sender<bool>,
}

impl App {
    /// Whether browsers reach the service by TLS, here or at a proxy.
    pub(crate) fn is_encrypted(&self) -> bool {
        let config = &self.inner.config;
        config.tls.is_some() || config.public_url.as_ref().is_some_and(|url| url.starts_with("https:"))
    }

    /// Reads the files that the settings name.
    pub fn new(service: Arc<Service>, ids: Arc<dyn Ids>, config: Config) -> Result<Self, ConfigError> {
        // Clients compare the end of a token with the time of their own machine.
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

    /// Logs in at the cloud's Keystone, if there is one, and says in the log what is found.
    pub async fn look_at_keystone(&self) {
        let keystone = self.access().authentication.keystone.clone();
        if let Some(keystone) = keystone {
            keystone.look().await;
        }
    }

    /// Who knows which projects there are: a cloud's Keystone, if nobody comes in otherwise. The projects of others would be
    /// none to it.
    pub(crate) fn projects(&self) -> Option<Arc<dyn Projects>> {
        let only = self.inner.config.auth.methods.iter().all(|method| *method == AuthMethod::Keystone);
        let keystone = self.inner.permanent.keystone.clone().filter(|_| only)?;
        Some(keystone)
    }

    /// Whether the server may listen there.
    pub(crate) fn check_address(&self, address: SocketAddr) -> Result<(), ConfigError> {
        check_address(&self.inner.config.auth.methods, address)
    }

    /// Who may come in, and who may do what, as of now: a request goes by one of them from its beginning to its end.
    pub(crate) fn access(&self) -> Arc<Access> {
        Arc::clone(&self.inner.access.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The service.
    pub fn service(&self) -> &Arc<Service> {
        &self.inner.service
    }

    /// Logs, counts and, now and then, enters into the audit log that somebody was not let in. The name is what the
    /// client gave, whoever that is.
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
        // Nobody waits for it: the answer is to come as fast as another.
        tokio::spawn(async move {
            if let Err(error) = service.audit().note(&caller, "login.fail", &object).await {
                tracing::warn!(%error, "audit record lost");
            }
        });
    }

    /// Returns when the server is about to end.
    pub(crate) async fn stopping(&self) {
        // The sender is ours, so it is there.
        let _ = self.inner.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// Whether a server with these methods may listen there: not everywhere, if everybody is the administrator.
pub(crate) fn check_address(methods: &[AuthMethod], address: SocketAddr) -> Result<(), ConfigError> {
    if methods.contains(&AuthMethod::None) && !address.ip().to_canonical().is_loopback() {
        return Err(ConfigError::OpenToTheWorld(address));
    }
    Ok(())
}

/// The cloud's Keystone, if its tokens are to be good here.
fn keystone(
    config: &Config,
    ids: &Arc<dyn Ids>,
    checks: TokenChecks,
) -> Result<Option<Arc<Keystone>>, ConfigError> {
    let named = config.auth.keystone.as_ref().filter(|_| config.auth.methods.contains(&AuthMethod::Keystone));
    // Ends of tokens are times of the machine, whatever clock leases go by.
    let make = |named| Keystone::new(named, Arc::clone(ids), Arc::new(SystemClock), checks).map(Arc::new);
    named.map(make).transpose()
}

/// That somebody was not let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginFailure<'a> {
    /// How it was tried: `basic`, `local-keystone`, `session`, `token`.
    pub method: &'static str,
    /// The user's name or identifier, as the client gave it.
    pub name: Option<&'a str>,
    /// What was wrong, for the log only.
    pub reason: &'static str,
    /// Where the request came from.
    pub peer: Option<IpAddr>,
    /// `req-...`.
    pub request_id: &'a str,
}

/// Who sent the request, and which one it is.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Who.
    pub identity: Identity,
    /// `req-...`.
    pub request_id: String,
    /// What was in force when the request came.
    pub access: Arc<Access>,
    /// That it is not answered yet.
    pub asked: Arc<Asked>,
    /// The cookie of the session that it was sent with, if any.
    pub cookie: Option<SecretString>,
    /// The client as the service knows it: who pays, and whether they still wait.
    pub client: Client,
}

impl Session {
    /// Carries out a change to its end even if the client goes away meanwhile: one that is broken off halfway would
    /// leave nobody knowing what became of it (W7). Only while nothing is committed, what waits for its turn or takes
    /// long is canceled. Until its end it counts as a request of the client's.
    pub(crate) async fn change<T, F>(&self, change: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.on_behalf(change).await
    }

    /// Has something decided that changes nothing. If the client goes away meanwhile, that is canceled.
    pub(crate) async fn consider<T, F>(&self, decide: F) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.on_behalf(decide).await
    }

    /// Works for the client in a task of its own, so that it is noticed meanwhile that the client has gone.
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

    /// On whose behalf the service acts.
    pub fn caller(&self) -> Caller {
        Caller {
            user: self.identity.user.clone(),
            project: self.identity.project.clone(),
            request_id: self.request_id.clone(),
            administrator: self.access.policy.is_admin(&self.identity),
        }
    }

    /// The same user acting for that project, which must be the user's own unless the user is an administrator. What is
    /// done then is recorded as done by the user for that project.
    pub fn for_project(self, app: &App, project: ProjectId, rule: Rule) -> Result<Self, ApiError> {
        if project != self.identity.project && !self.is_admin(app) {
            return Err(ApiError::forbidden(rule));
        }
        Ok(Self { identity: Identity { project, ..self.identity }, ..self })
    }

    /// Refuses unless the policy allows the caller to do that.
    pub fn allow(&self, app: &App, rule: Rule) -> Result<(), ApiError> {
        self.allow_on(app, rule, &Target::caller(&self.identity))
    }

    /// Refuses unless the policy allows the caller to do that with something of this owner.
    pub fn allow_on(&self, _: &App, rule: Rule, target: &Target<'_>) -> Result<(), ApiError> {
        if self.access.policy.allows(rule, &self.identity, target) {
            return Ok(());
        }
        tracing::info!(rule = rule.name(), "refused by policy");
        Err(ApiError::forbidden(rule))
    }

    /// Whether the policy allows the caller to do that.
    pub fn may(&self, rule: Rule) -> bool {
        self.access.policy.allows(rule, &self.identity, &Target::caller(&self.identity))
    }

    /// Whether the caller sees what belongs to others.
    pub fn is_admin(&self, _: &App) -> bool {
        self.access.policy.is_admin(&self.identity)
    }
}
