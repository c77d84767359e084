//! Authentication with tokens of a cloud's Keystone.
//!
//! Keystone validates a token, and the result is cached for a short time ([`cache`]), during which a revoked
//! token remains usable. While Keystone is unavailable, recently valid tokens remain usable for a configured
//! time. Requests with any other token get 503, since it can be neither accepted nor rejected. Only probes
//! with the service's own token show whether Keystone is available ([`outage`]): an error for a client's
//! token concerns that client alone.
//!
//! Tokens are never stored. They are identified by a hash with a key that only this process has.

mod asking;
mod cache;
mod outage;
mod projects;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ambient::{Clock, Ids, Stopwatch};
use async_trait::async_trait;
use axum::http::HeaderValue;
use jiff::Timestamp;
use leases::project::{ProjectId, UserId};
use leases::text::quoted;
use openstack::{Interface, Named, Session, Token};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

use self::asking::{Asking, Sharer};
use self::cache::{Cache, CacheRules, Key, Known, Look, Moment, Refusal};
use self::outage::Outage;
use super::credentials::Asked;
use super::credentials::Credentials;
use super::failures::{network, shown};
use super::identity::{Authenticator, Denial, Identity, Names, Roles};
use crate::config::{KeystoneConfig, TokenValidation};
use crate::config_error::ConfigError;
use crate::metrics::TokenChecks;
use crate::rate::Client;
use crate::unanswered::Unanswered;

/// Type of this service in catalogs and access rules.
const SERVICE: &str = "reservation";

/// Maximum length of a token in bytes. Fernet tokens have about 200, JWS tokens up to 1,000. Longer ones are rejected
/// without asking Keystone.
const LONGEST: usize = 2048;

/// Maximum number of requests of one address waiting for Keystone, so that one address can't use up all
/// places.
const OF_ONE_ADDRESS: usize = 256;

/// Suggested time until a retry while Keystone is unavailable.
const COME_AGAIN: Duration = Duration::from_secs(5);

const UNSCOPED: &str = "The token is for no project: log in with a project, as OS_PROJECT_NAME and \
                        OS_PROJECT_DOMAIN_NAME name it.";
const AGAINST_RULES: &str = "The access rules of the application credential do not allow this request.";
const WRONG: &str = "unknown, revoked or expired token";

/// Authenticates requests by tokens of a cloud's Keystone.
#[derive(Debug)]
pub(crate) struct Keystone {
    inner: Arc<Inner>,
    challenge: HeaderValue,
    asking: Asking<Answer>,
    waiting: Arc<Unanswered>,
}

/// State shared with validations, which can outlive their requests.
#[derive(Debug)]
struct Inner {
    session: Session,
    /// Maximum time that a request waits for Keystone.
    patience: Duration,
    clock: Arc<dyn Clock>,
    since: Stopwatch,
    key: hmac::Key,
    cache: Mutex<Cache>,
    outage: Mutex<Outage>,
    /// Held by the request that is probing Keystone.
    probing: tokio::sync::Mutex<()>,
    checks: TokenChecks,
}

/// Outcome of a validation.
#[derive(Clone, Debug)]
enum Answer {
    Valid(Arc<Known>),
    Refused(Refusal),
    /// No response from Keystone, or an error.
    None,
}

impl Keystone {
    /// Checks the settings. Doesn't connect to Keystone yet.
    pub fn new(
        config: &KeystoneConfig,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        checks: TokenChecks,
    ) -> Result<Self, ConfigError> {
        let wrong = |reason: String| ConfigError::Keystone(reason);
        let challenge = format!("Keystone uri=\"{}\"", config.www_authenticate_uri);
        let challenge = HeaderValue::try_from(challenge)
            .map_err(|_| wrong("www_authenticate_uri cannot be sent in a header".to_owned()))?;
        let random = [ids.uuid(), ids.uuid()].map(u128::to_be_bytes).concat();
        let TokenValidation { cache_time, cached_tokens, outage_time, validations_at_once } =
            config.validation;
        let rules = CacheRules { fresh: cache_time, stale: outage_time, most: cached_tokens };
        let inner = Inner {
            session: Session::new(config.cloud.clone(), ids).map_err(|error| wrong(error.to_string()))?,
            patience: config.cloud.timeout,
            clock,
            since: Stopwatch::start(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &random),
            cache: Mutex::new(Cache::new(rules)),
            outage: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
            checks,
        };
        Ok(Self {
            inner: Arc::new(inner),
            challenge,
            asking: Asking::new(validations_at_once),
            waiting: Unanswered::new(OF_ONE_ADDRESS),
        })
    }

    /// Value of `WWW-Authenticate`, which tells rejected clients where to get a token.
    pub fn challenge(&self) -> &HeaderValue {
        &self.challenge
    }

    /// Logs in and logs the result, including whether clients can find this service in the catalog.
    pub async fn look(&self) {
        let session = &self.inner.session;
        let url = session.cloud().identity.as_str();
        // On failure, the session has already logged the reason.
        let Ok(said) = session.own_token().await else { return };
        let (user, project) = (shown(&said.user.name), said.project.map(|project| shown(&project.name)));
        tracing::info!(url, user, project, "Keystone login done");
        if !said
            .roles
            .iter()
            .any(|role| ["service", "admin"].iter().any(|needed| role.eq_ignore_ascii_case(needed)))
        {
            let reason = "Keystone tells only users with the role service or admin what a token stands for";
            tracing::warn!(user, roles = quoted(&said.roles.join(",")), reason, "service user without role");
        }
        match said.catalog.find(SERVICE, session.cloud().region.as_deref(), Interface::Public) {
            Ok(endpoint) => tracing::info!(endpoint = quoted(endpoint.as_str()), "catalog endpoint found"),
            Err(reason) => tracing::warn!(reason = quoted(&reason), "catalog endpoint missing"),
        }
    }

    async fn identify(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let inner = &self.inner;
        let token = credentials.token.as_ref().ok_or(Denial::Absent)?;
        let text = token.expose_secret();
        if text.len() > LONGEST {
            return Err(Denial::Wrong("token too long"));
        }
        let key = inner.key_of(text);
        let look = inner.cache().look(&key, inner.now());
        let stale = match look {
            Look::Fresh(known) => {
                inner.checks.cached();
                return admit(&known, credentials.asked.as_ref());
            }
            Look::Refused(refusal) => {
                inner.checks.cached();
                return Err(denial(refusal));
            }
            Look::Stale(known) => Some(known),
            Look::Unknown => None,
        };
        match self.ask(key, token, credentials.peer, stale.is_some()).await? {
            Answer::Valid(known) => admit(&known, credentials.asked.as_ref()),
            Answer::Refused(refusal) => Err(denial(refusal)),
            Answer::None => match stale {
                Some(known) => admit(&known, credentials.asked.as_ref()),
                None => Err(Denial::Unavailable(COME_AGAIN)),
            },
        }
    }

    /// Validates a token, once for all concurrent requests with it.
    async fn ask(
        &self,
        key: Key,
        token: &SecretString,
        peer: Option<IpAddr>,
        was_valid: bool,
    ) -> Result<Answer, Denial> {
        let _waiting = match peer {
            None => None,
            Some(peer) => {
                let waiting = self.waiting.ask(Client::Address(peer));
                Some(waiting.ok_or(Denial::TooMany(Duration::from_secs(1)))?)
            }
        };
        let (inner, token) = (Arc::clone(&self.inner), token.clone());
        let sharer = Sharer { network: peer.map(network), was_valid };
        let asked = self.asking.ask(key, sharer, async move { inner.ask(key, &token).await });
        // The validation may have to wait for a place first.
        let asked = tokio::time::timeout(self.inner.patience.saturating_mul(2), asked).await;
        Ok(asked.ok().flatten().unwrap_or(Answer::None))
    }
}

impl Inner {
    /// Validates a token and caches the result. Doesn't ask during an outage.
    async fn ask(&self, key: Key, token: &SecretString) -> Answer {
        if self.outage().is_on() && !self.available().await {
            return Answer::None;
        }
        // Time before the request, because the token can be revoked while the response is on its way.
        let asked_at = self.now();
        let mut said = self.validate(token).await;
        if let Err((status, _)) = said
            && self.available().await
            && status == Some(401)
        {
            // If the status was due to the service's own token, that has been replaced by now.
            said = self.validate(token).await;
        }
        match said {
            Ok(said) => self.learn(key, asked_at, said),
            Err((_, error)) => {
                self.checks.unchecked();
                tracing::warn!(error, "token not checked");
                Answer::None
            }
        }
    }

    /// Validates a token; `None` if Keystone doesn't know it. An error has the status of Keystone's response, if there
    /// was one, and the reason.
    async fn validate(&self, token: &SecretString) -> Result<Option<Token>, (Option<u16>, String)> {
        match tokio::time::timeout(self.patience, openstack::validate(&self.session, token)).await {
            Ok(said) => said.map_err(|error| (error.status(), error.to_string())),
            Err(_) => Err((None, self.no_answer())),
        }
    }

    /// Whether Keystone validates the service's own token, now or at a recent probe. One request at a time probes.
    /// During an outage, the other requests don't wait for it.
    async fn available(&self) -> bool {
        let turn = self.probing.try_lock();
        let _turn = match turn {
            Ok(turn) => turn,
            Err(_) if self.outage().is_on() => return false,
            Err(_) => self.probing.lock().await,
        };
        if let Some(available) = self.outage().recent(self.since.elapsed()) {
            return available;
        }
        let probed = tokio::time::timeout(self.patience, openstack::validate_own(&self.session)).await;
        let probed =
            probed.map_or_else(|_| Err(self.no_answer()), |said| said.map_err(|error| error.to_string()));
        let now = self.since.elapsed();
        match probed {
            Ok(()) => {
                if let Some(outage) = self.outage().answered(now) {
                    tracing::info!(seconds = outage.as_secs(), "Keystone available again");
                }
                true
            }
            Err(error) => {
                self.checks.failed();
                if self.outage().failed(now) {
                    tracing::error!(error, "Keystone unavailable");
                }
                false
            }
        }
    }

    fn no_answer(&self) -> String {
        format!("no answer within {} s", self.patience.as_secs_f32())
    }

    /// Caches Keystone's response.
    fn learn(&self, key: Key, asked_at: Moment, said: Option<Token>) -> Answer {
        let now = self.now();
        let known = said.ok_or(Refusal::Unknown).and_then(|said| known(said, now.wall)).map(Arc::new);
        match known {
            Ok(known) => {
                self.checks.valid();
                self.cache().accept(key, Arc::clone(&known), asked_at);
                Answer::Valid(known)
            }
            Err(refusal) => {
                self.checks.refused();
                self.cache().refuse(key, refusal, now);
                Answer::Refused(refusal)
            }
        }
    }

    fn key_of(&self, token: &str) -> Key {
        let mut key = [0; 32];
        key.copy_from_slice(hmac::sign(&self.key, token.as_bytes()).as_ref());
        key
    }

    fn now(&self) -> Moment {
        Moment { steady: self.since.elapsed(), wall: self.clock.now() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authenticator for Keystone {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        self.identify(credentials).await
    }
}

fn denial(refusal: Refusal) -> Denial {
    match refusal {
        Refusal::Unknown => Denial::Wrong(WRONG),
        Refusal::Unscoped => Denial::Told(UNSCOPED),
    }
}

/// Accepts a token. If it has access rules, one of them must allow the request.
fn admit(known: &Known, asked: Option<&Asked>) -> Result<Identity, Denial> {
    let allowed = match (&known.access_rules, asked) {
        (None, _) => true,
        (Some(rules), Some(Asked { method, path })) => {
            rules.iter().any(|rule| rule.allows(SERVICE, method.as_str(), path))
        }
        // The request isn't known here, so no rule can allow it.
        (Some(_), None) => false,
    };
    if allowed { Ok(known.identity.clone()) } else { Err(Denial::Forbidden(AGAINST_RULES)) }
}

/// The part of a token that is cached. Tokens without a user or a project, and tokens that have expired at `now`, are
/// rejected even if Keystone accepts them.
fn known(said: Token, now: Timestamp) -> Result<Known, Refusal> {
    if said.expires_at <= now || said.user.id.trim().is_empty() {
        return Err(Refusal::Unknown);
    }
    let project = said.project.filter(|project| !project.id.trim().is_empty()).ok_or(Refusal::Unscoped)?;
    let names = Names { user: name(&said.user), project: name(&project) };
    Ok(Known {
        identity: Identity {
            user: UserId(said.user.id),
            project: ProjectId(project.id),
            roles: Roles::exactly(said.roles),
            names,
        },
        expires_at: said.expires_at,
        access_rules: said.application_credential.and_then(|credential| credential.access_rules),
    })
}

/// Display name with the domain, unless that is `Default`.
fn name(named: &Named) -> String {
    match (named.name.as_str(), named.domain.as_str()) {
        ("", _) => String::new(),
        (name, "" | "Default") => shown(name),
        (name, domain) => format!("{}@{}", shown(name), shown(domain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(more: &str) -> Token {
        let text = format!(
            r#"{{"token": {{"user": {{"id": "u1", "name": "ann", "domain": {{"name": "Physics"}}}},
                "roles": [{{"name": "Member"}}, {{"name": "reader"}}],
                "issued_at": "2026-11-25T16:00:00.000000Z", "expires_at": "2026-11-25T17:00:00.000000Z"{more}}}}}"#
        );
        Token::read(text.as_bytes()).expect("a token")
    }

    fn before_its_end() -> Timestamp {
        "2026-11-25T16:59:59Z".parse().expect("a time")
    }

    const PROJECT: &str = r#", "project": {"id": "p1", "name": "web", "domain": {"name": "Default"}}"#;

    #[test]
    fn who_somebody_is_follows_from_identifiers_and_roles_are_those_of_keystone() {
        let Identity { user, project, roles, names } =
            known(said(PROJECT), before_its_end()).expect("a project").identity;
        assert_eq!((user.0.as_str(), project.0.as_str()), ("u1", "p1"));
        assert_eq!((names.user.as_str(), names.project.as_str()), ("ann@Physics", "web"));
        assert_eq!(roles.names().collect::<Vec<_>>(), ["member", "reader"]);
        let admin = Roles::exactly(["admin"]);
        assert!(admin.has("Admin") && !admin.has("member"), "which roles imply which Keystone says");
        for other in ["", r#", "domain": {"id": "d"}"#, r#", "system": {"all": true}"#] {
            assert_eq!(known(said(other), before_its_end()), Err(Refusal::Unscoped), "{other}");
        }
        for id in ["", " ", "\\t\\u00a0"] {
            let project = format!(r#", "project": {{"id": "{id}", "name": "web"}}"#);
            assert_eq!(known(said(&project), before_its_end()), Err(Refusal::Unscoped), "{id:?}");
        }
    }

    #[test]
    fn a_token_whose_end_has_passed_or_that_is_of_nobody_is_refused_whatever_keystone_says() {
        let end = "2026-11-25T17:00:00Z".parse().expect("a time");
        assert_eq!(known(said(PROJECT), end), Err(Refusal::Unknown));
        let mut nobody = said(PROJECT);
        nobody.user.id = "  ".to_owned();
        assert_eq!(known(nobody, before_its_end()), Err(Refusal::Unknown));
    }

    #[test]
    fn access_rules_are_obeyed_and_where_nobody_knows_what_is_asked_nothing_is_allowed() {
        let rules = r#", "application_credential": {"id": "c", "restricted": true, "access_rules":
            [{"id": "r", "service": "reservation", "method": "GET", "path": "/v1/leases"}]}"#;
        let known = known(said(&format!("{PROJECT}{rules}")), before_its_end()).expect("a project");
        let asked = |method: &str, path: &str| Asked {
            method: method.parse().expect("a method"),
            path: path.to_owned(),
        };
        assert!(admit(&known, Some(&asked("GET", "/v1/leases"))).is_ok());
        for other in [asked("POST", "/v1/leases"), asked("GET", "/v1/leases/7"), asked("GET", "/v1/os-hosts")]
        {
            assert_eq!(admit(&known, Some(&other)), Err(Denial::Forbidden(AGAINST_RULES)));
        }
        assert_eq!(admit(&known, None), Err(Denial::Forbidden(AGAINST_RULES)));
        let none = Known { access_rules: Some(Vec::new()), ..known.clone() };
        assert!(admit(&none, Some(&asked("GET", "/v1/leases"))).is_err(), "no rule allows nothing");
        let all = Known { access_rules: None, ..known };
        assert!(admit(&all, None).is_ok());
    }
}
