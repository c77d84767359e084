//! Client of an external service that approves leases, with Blazar's protocol (API-enforcement).

use std::fmt::Display;

use api::v1::{FloatingIp, Host, Lease, date};
use async_trait::async_trait;
use leases::lease::{Allocation, Reservation};
use reqwest::{Client, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use service::{Caller, Enforcer, EnforcerVerdict, GrantedLease};

use crate::config::ExternalServiceConfig;
use crate::config_error::ConfigError;

/// Reason for a denial if the service gives none.
const DENIED: &str = "External service enforcement filter denied the request.";

/// Maximum length of the service's response in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// An external service that can reject leases.
#[derive(Debug)]
pub struct ExternalService {
    client: Client,
    check_create: Url,
    check_update: Url,
    on_end: Url,
    token: Option<SecretString>,
    auth_url: Option<String>,
    region_name: Option<String>,
}

impl ExternalService {
    /// Checks the settings. Doesn't connect yet.
    pub fn new(config: &ExternalServiceConfig) -> Result<Self, ConfigError> {
        const URL: &str = "enforcement.url";
        let wrong = |setting, reason: &dyn Display| ConfigError::for_setting(setting, reason.to_string());
        let base = Url::parse(&config.base_endpoint).map_err(|error| wrong(URL, &error))?;
        let endpoint = |given: Option<&String>, setting, name: &str| match given {
            Some(url) => Url::parse(url).map_err(|error| wrong(setting, &error)),
            None => base.join(name).map_err(|error| wrong(URL, &error)),
        };
        let (create, update) = (config.check_create_endpoint.as_ref(), config.check_update_endpoint.as_ref());
        // Fails only if the process already has a default provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Blazar doesn't follow redirects of a POST either: any status other than 204 is a refusal.
        let client =
            Client::builder().timeout(config.timeout).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self {
            client: client.map_err(|error| wrong(URL, &error))?,
            check_create: endpoint(create, "enforcement.check_create_url", "check-create")?,
            check_update: endpoint(update, "enforcement.check_update_url", "check-update")?,
            on_end: endpoint(config.on_end_endpoint.as_ref(), "enforcement.on_end_url", "on-end")?,
            token: config.token.clone().filter(|token| !token.expose_secret().is_empty()),
            auth_url: config.auth_url.clone(),
            region_name: config.region_name.clone(),
        })
    }

    fn context(&self, user: &str, project: &str) -> Value {
        json!({
            "user_id": user,
            "project_id": project,
            "auth_url": self.auth_url,
            "region_name": self.region_name,
        })
    }

    async fn ask(&self, url: &Url, body: &Value) -> Result<EnforcerVerdict, reqwest::Error> {
        let mut request = self.client.post(url.clone()).header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("x-auth-token", token.expose_secret());
        }
        let mut answer = request.body(body.to_string()).send().await?;
        match answer.status() {
            StatusCode::NO_CONTENT => Ok(EnforcerVerdict::Allow),
            StatusCode::FORBIDDEN => {
                let mut text = Vec::new();
                while let Some(chunk) = answer.chunk().await? {
                    text.extend_from_slice(&chunk);
                    if text.len() > MAX_ANSWER {
                        return Ok(EnforcerVerdict::Deny(DENIED.to_owned()));
                    }
                }
                let message = serde_json::from_slice::<Value>(&text).ok();
                let message = message.as_ref().and_then(|body| body.get("message")).and_then(Value::as_str);
                Ok(EnforcerVerdict::Deny(message.unwrap_or(DENIED).to_owned()))
            }
            status => {
                tracing::warn!(%url, %status, "external service answer unexpected");
                Ok(EnforcerVerdict::Deny(DENIED.to_owned()))
            }
        }
    }

    /// The service's verdict. If it doesn't respond, the request is denied, so that an outage can't be used
    /// to get around a limit.
    async fn verdict(&self, url: &Url, body: &Value) -> EnforcerVerdict {
        self.ask(url, body).await.unwrap_or_else(|error| {
            tracing::warn!(%url, error = %error.without_url(), "external service unreachable");
            EnforcerVerdict::Deny(DENIED.to_owned())
        })
    }
}

#[async_trait]
impl Enforcer for ExternalService {
    async fn check_create(&self, caller: &Caller, lease: &GrantedLease) -> EnforcerVerdict {
        let body = json!({
            "context": self.context(&caller.user.0, &caller.project.0),
            "lease": new_lease(lease),
        });
        self.verdict(&self.check_create, &body).await
    }

    async fn check_update(
        &self,
        caller: &Caller,
        now: &GrantedLease,
        then: &GrantedLease,
    ) -> EnforcerVerdict {
        let body = json!({
            "context": self.context(&caller.user.0, &caller.project.0),
            "current_lease": full_lease(now),
            "lease": changed_lease(now, then),
        });
        self.verdict(&self.check_update, &body).await
    }

    async fn on_end(&self, lease: &GrantedLease) {
        let owner = &lease.lease.lease.owner;
        let body = json!({
            "context": self.context(&owner.user.0, &owner.project.0),
            "lease": full_lease(lease),
        });
        if let Err(error) = self.ask(&self.on_end, &body).await {
            tracing::warn!(error = %error.without_url(), "external service not told of lease end");
        }
    }
}

/// A date in Python's format without a fraction of a second.
fn plain_date(instant: jiff::Timestamp) -> String {
    let mut text = date(instant);
    text.truncate("2030-01-02T10:00:00".len());
    text
}

/// A requested lease: reservations as in the request, with the allocations that they would get.
fn new_lease(granted: &GrantedLease) -> Value {
    let lease = &granted.lease.lease;
    json!({
        "name": lease.name,
        "start_date": plain_date(lease.window.start()),
        "end_date": plain_date(lease.window.end()),
        "user_id": lease.owner.user.0,
        "project_id": lease.owner.project.0,
        "status": "CREATING",
        "reservations": reservations(granted, &["id", "lease_id", "resource_id", "status", "missing_resources",
            "resources_changed", "created_at", "updated_at"]),
    })
}

/// The changed fields of a lease. Both dates and the resulting reservations are always included.
fn changed_lease(now: &GrantedLease, then: &GrantedLease) -> Value {
    let (before, lease) = (&now.lease.lease, &then.lease.lease);
    let mut changed = Map::new();
    if lease.name != before.name {
        changed.insert("name".to_owned(), json!(lease.name));
    }
    if let Some(at) = lease.before_end.filter(|at| before.before_end != Some(*at)) {
        changed.insert("before_end_date".to_owned(), json!(plain_date(at)));
    }
    changed.insert("start_date".to_owned(), json!(plain_date(lease.window.start())));
    changed.insert("end_date".to_owned(), json!(plain_date(lease.window.end())));
    changed.insert("reservations".to_owned(), reservations(then, &[]));
    Value::Object(changed)
}

/// The lease as in API responses, with the allocations of its reservations.
fn full_lease(granted: &GrantedLease) -> Value {
    let lease = &granted.lease.lease;
    let mut full = serde_json::to_value(Lease::from(granted.lease.as_ref())).unwrap_or_default();
    if let Some(fields) = full.as_object_mut() {
        fields.insert("start_date".to_owned(), json!(plain_date(lease.window.start())));
        fields.insert("end_date".to_owned(), json!(plain_date(lease.window.end())));
        fields.insert("reservations".to_owned(), reservations(granted, &[]));
    }
    full
}

/// Reservations without some fields, each with its own allocations. Blazar mixes up the allocations of
/// reservations with the same type (W27).
fn reservations(granted: &GrantedLease, without: &[&str]) -> Value {
    let shown = Lease::from(granted.lease.as_ref()).reservations;
    let pairs = shown.iter().zip(&granted.lease.lease.reservations);
    let reservations = pairs.map(|(shown, reservation)| {
        let mut shown = serde_json::to_value(shown).unwrap_or_default();
        if let Some(fields) = shown.as_object_mut() {
            fields.retain(|name, _| !without.contains(&name.as_str()));
            fields.insert("allocations".to_owned(), allocations(granted, reservation));
        }
        shown
    });
    Value::Array(reservations.collect())
}

fn allocations(granted: &GrantedLease, reservation: &Reservation) -> Value {
    let hosts = reservation.allocation.hosts();
    let hosts = granted.hosts.iter().filter(|record| hosts.contains(&record.host.id));
    let hosts = hosts.map(|record| json!(Host::from(record.as_ref())));
    let ips = granted.floating_ips.iter().filter(|record| match &reservation.allocation {
        Allocation::FloatingIps(ips) => ips.contains(&record.floating_ip.id),
        Allocation::Hosts(_) | Allocation::Slots(_) => false,
    });
    let ips = ips.map(|record| json!(FloatingIp::from(record.as_ref())));
    Value::Array(hosts.chain(ips).collect())
}
