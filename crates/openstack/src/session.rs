//! A session: one login for all calls to a cloud.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::{Ids, Stopwatch};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::call::{Answer, Api, Call};
use crate::catalog::Interface;
use crate::error::{Error, ErrorKind, hide};
use crate::login::Login;
use crate::retry::Retry;
use crate::standing::{Failures, Standing, Term};
use crate::token::{MOST_BYTES, SUBJECT, Token};
use crate::transport::Transport;

/// A cloud, and the credentials for it.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// URL of Keystone's version 3: [`crate::identity_url`].
    pub identity: Url,
    pub login: Login,
    /// Region of the services. `None` accepts any region.
    pub region: Option<String>,
    /// Interface of the services' endpoints. Keystone is always called at [`Self::identity`].
    pub interface: Interface,
    /// CA certificates (PEM) that replace the system's.
    pub authorities: Option<Vec<u8>>,
    /// Time limit of each attempt.
    pub timeout: Duration,
    pub retry: Retry,
}

/// Error of the settings of a session.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetupError {
    /// The CA certificates are invalid, or TLS isn't available.
    #[error("authorities of certificates: {0}")]
    Tls(String),
}

/// A session with a cloud, shared by concurrent tasks.
#[derive(Debug)]
pub struct Session {
    cloud: Cloud,
    transport: Transport,
    ids: Arc<dyn Ids>,
    /// Origin of the session's times.
    since: Stopwatch,
    /// The current token.
    current: Mutex<Option<Arc<Ticket>>>,
    /// Locked during a login. Has the results of earlier logins.
    login: tokio::sync::Mutex<Logins>,
    login_refused: AtomicBool,
}

/// A token of the session.
#[derive(Debug)]
struct Ticket {
    token: SecretString,
    said: Token,
    term: Term,
}

#[derive(Debug, Default)]
struct Logins {
    failures: Failures,
    last_error: Option<Error>,
}

impl Session {
    /// Creates a session that logs in when it is first used.
    pub fn new(cloud: Cloud, ids: Arc<dyn Ids>) -> Result<Self, SetupError> {
        let transport =
            Transport::new(cloud.timeout, cloud.authorities.as_deref()).map_err(SetupError::Tls)?;
        Ok(Self {
            cloud,
            transport,
            ids,
            since: Stopwatch::start(),
            current: Mutex::default(),
            login: tokio::sync::Mutex::default(),
            login_refused: AtomicBool::new(false),
        })
    }

    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// Keystone's description of the session's own token, with the catalog. Logs in if necessary.
    pub async fn own_token(&self) -> Result<Token, Error> {
        Ok(self.ticket().await?.said.clone())
    }

    /// Whether Keystone rejected a login or its secret couldn't be read, no login has succeeded since, and
    /// there is no valid token.
    pub fn is_login_refused(&self) -> bool {
        self.login_refused.load(Ordering::Relaxed) && self.standing().1 == Standing::Over
    }

    /// Whether the catalog has the service.
    pub async fn has(&self, api: Api) -> Result<bool, Error> {
        let ticket = self.ticket().await?;
        let region = self.cloud.region.as_deref();
        Ok(ticket.said.catalog.endpoint(api.service_type(), region, self.cloud.interface.name()).is_some())
    }

    /// Calls a service. Retries after a pause if the service couldn't respond, and after a new login if it
    /// rejected the token.
    pub async fn call(&self, call: &Call) -> Result<Answer, Error> {
        let ticket = self.ticket().await?;
        match self.try_with(call, &ticket).await {
            Err(error) if error.status() == Some(401) => {
                self.forget(&ticket);
                tracing::info!(service = error.service, call = error.call, "token refused, logging in again");
                self.try_with(call, &*self.ticket().await?).await
            }
            other => other,
        }
    }

    /// Calls a service with the current token, and keeps that token even if it is rejected.
    pub(crate) async fn call_once_logged_in(&self, call: &Call) -> Result<Answer, Error> {
        self.try_with(call, &*self.ticket().await?).await
    }

    /// The session's own token. Logs in if necessary.
    pub(crate) async fn secret(&self) -> Result<SecretString, Error> {
        Ok(self.ticket().await?.token.clone())
    }

    async fn try_with(&self, call: &Call, ticket: &Ticket) -> Result<Answer, Error> {
        let base = match call.api {
            Api::Identity => self.cloud.identity.clone(),
            api => {
                let region = self.cloud.region.as_deref();
                let found = ticket.said.catalog.find(api.service_type(), region, self.cloud.interface);
                found.map_err(|reason| call.error(ErrorKind::NoEndpoint(reason)))?
            }
        };
        self.send(call, &base, Some(&ticket.token)).await
    }

    /// Sends a call until there is a response, or until no further attempt is due.
    async fn send(&self, call: &Call, base: &Url, token: Option<&SecretString>) -> Result<Answer, Error> {
        let mut done = 0;
        loop {
            let (error, failure) = match self.transport.send(call, base, token).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            done += 1;
            let random = self.ids.uuid() as u64;
            let Some(pause) = self.cloud.retry.pause(done, failure, call.repeatable, random) else {
                return Err(error);
            };
            let milliseconds = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::debug!(%error, milliseconds, "call failed, retrying");
            tokio::time::sleep(pause).await;
        }
    }

    /// A valid token. If several callers need a new one, one logs in and the others wait for it.
    async fn ticket(&self) -> Result<Arc<Ticket>, Error> {
        let ending = match self.standing() {
            (Some(ticket), Standing::Good) => return Ok(ticket),
            (Some(ticket), Standing::Ending) => Some(ticket),
            _ => None,
        };
        let mut logins = match ending {
            None => self.login.lock().await,
            // Another caller is already renewing it.
            Some(ticket) => match self.login.try_lock() {
                Ok(logins) => logins,
                Err(_) => return Ok(ticket),
            },
        };
        // Another caller may have logged in, or tried to, in the meantime.
        let ending = match self.standing() {
            (Some(ticket), Standing::Good) => return Ok(ticket),
            (Some(ticket), Standing::Ending) => Some(ticket),
            _ => None,
        };
        if !logins.failures.may_try(self.since.elapsed())
            && let Some(error) = &logins.last_error
        {
            return ending.ok_or_else(|| error.clone());
        }
        let answer = self.log_in().await;
        logins.failures = match &answer {
            Ok(_) => Failures::default(),
            Err(error) => {
                let refused = matches!(error.kind, ErrorKind::LoginRefused(_) | ErrorKind::Secret(_));
                logins.failures.failed(self.since.elapsed(), refused)
            }
        };
        logins.last_error = answer.as_ref().err().cloned();
        self.login_refused.store(logins.failures.is_refused(), Ordering::Relaxed);
        match answer {
            Ok(ticket) => {
                let ticket = Arc::new(ticket);
                *self.lock() = Some(Arc::clone(&ticket));
                Ok(ticket)
            }
            Err(error) => {
                tracing::warn!(%error, "Keystone login failed");
                ending.ok_or(error)
            }
        }
    }

    /// The current token and its validity.
    fn standing(&self) -> (Option<Arc<Ticket>>, Standing) {
        let current = self.lock().clone();
        let standing = current.as_ref().map_or(Standing::Over, |ticket| ticket.term.at(self.since.elapsed()));
        (current, standing)
    }

    /// Discards a rejected token, unless it was already replaced.
    fn forget(&self, refused: &Arc<Ticket>) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|ticket| Arc::ptr_eq(ticket, refused)) {
            *current = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Ticket>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn log_in(&self) -> Result<Ticket, Error> {
        let call = Call::new(Api::Identity, "log in", Method::POST, &["auth", "tokens"]);
        // An additional token does no harm.
        let call = call.repeatable().at_most(MOST_BYTES);
        let secret = self.cloud.login.secret().clone();
        let secret = tokio::task::spawn_blocking(move || secret.read()).await;
        let secret = secret.unwrap_or_else(|_| Err("cannot read the secret".to_owned()));
        let secret = secret.map_err(|reason| call.error(ErrorKind::Secret(reason)))?;
        // Taken before the request, because the response can take a while.
        let asked = self.since.elapsed();
        let call = call.with_body(self.cloud.login.body(&secret));
        let answer =
            self.send(&call, &self.cloud.identity, None).await.map_err(|error| match error.kind {
                ErrorKind::Status { status: 401 | 403, message, .. } => {
                    let message = hide(&message, &[secret.expose_secret()]);
                    Error { kind: ErrorKind::LoginRefused(message), ..error }
                }
                _ => error,
            })?;
        let token = answer.header(SUBJECT.as_str()).filter(|token| !token.is_empty());
        let token = SecretString::from(token.ok_or_else(|| answer.malformed("there is no X-Subject-Token"))?);
        let said = Token::read(&answer.body).map_err(|error| answer.malformed(&error.to_string()))?;
        let lifetime = Duration::try_from(said.lifetime()).unwrap_or_default();
        Ok(Ticket { token, said, term: Term::new(asked, lifetime) })
    }
}
