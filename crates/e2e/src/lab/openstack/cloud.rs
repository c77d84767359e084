//! A client of the lab's Keystone, for administration and for logins. It deals in URLs and JSON only.

use std::cell::RefCell;

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::leasing::http::{IDLE, LIMIT};

/// Password of the administrator and of all users that the lab's scripts create. They only exist for this
/// run.
pub const PASSWORD: &str = "labpw";

/// Password of all users that [`Cloud::settle`] creates.
pub const OF_ALL: &str = "only for the lab";

/// The user that drives Nova, with the password [`OF_ALL`]. It has the role `service`, and the role
/// [`LEASING`], which only Nova knows.
pub const OF_NOVA: &str = "allot-nova";
pub const LEASING: &str = "leasing";

/// A response, with the headers that concern logins.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub challenge: String,
    pub retry_after: String,
    token: String,
    pub body: Value,
}

impl Answer {
    /// The error message of the service or of Keystone, or an empty string.
    pub fn message(&self) -> &str {
        let message = self.body["error_message"].as_str().or(self.body["error"]["message"].as_str());
        message.unwrap_or_default()
    }
}

/// A client of Keystone and of services that accept its tokens.
#[derive(Debug)]
pub struct Cloud {
    runtime: Runtime,
    client: Client,
    /// URL, including `/v3`.
    keystone: String,
    /// All issued tokens. Logs and databases must not contain any of these.
    secrets: RefCell<Vec<String>>,
}

/// Identifiers of the lab's users and projects.
#[derive(Debug)]
pub struct People {
    /// The service's user and its password. The user's only role is `service`.
    pub user: String,
    pub secret: String,
    /// Identifiers of the member `alice` and of her project.
    pub alice: String,
    pub physics: String,
    /// Identifier of the project of the member `bob`.
    pub chemistry: String,
}

impl Cloud {
    /// `port` is Keystone's, on 127.0.0.1.
    pub fn new(port: u16) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let client = Client::builder().timeout(LIMIT).pool_idle_timeout(IDLE).no_proxy().build();
        Ok(Self {
            runtime: runtime.context("no runtime")?,
            client: client.context("no HTTP client")?,
            keystone: format!("http://127.0.0.1:{port}/v3"),
            secrets: RefCell::default(),
        })
    }

    /// All issued tokens.
    pub fn secrets(&self) -> Vec<String> {
        self.secrets.borrow().clone()
    }

    /// Keystone's URL, including `/v3`.
    pub fn keystone(&self) -> &str {
        &self.keystone
    }

    /// Sends a request to any service, without a token if `token` is empty.
    pub fn ask(&self, method: &Method, url: &str, token: &str, body: Option<&Value>) -> Result<Answer> {
        self.send(self.client.request(method.clone(), url), token, body)
            .with_context(|| format!("{method} {url}"))
    }

    /// Like [`Self::ask`], with a microversion in `openstack-api-version`.
    pub fn ask_version(
        &self,
        method: &Method,
        url: &str,
        token: &str,
        body: Option<&Value>,
        version: &str,
    ) -> Result<Answer> {
        let request = self.client.request(method.clone(), url).header("openstack-api-version", version);
        self.send(request, token, body).with_context(|| format!("{method} {url}"))
    }

    /// Sends a request to Nova in the microversion that the guide names.
    pub fn ask_compute(
        &self,
        method: &Method,
        url: &str,
        token: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        self.ask_version(method, url, token, body, "compute 2.79")
    }

    fn send(&self, request: RequestBuilder, token: &str, body: Option<&Value>) -> Result<Answer> {
        let mut request = request.header("accept", "application/json");
        if !token.is_empty() {
            request = request.header("x-auth-token", token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let asked = async {
            let answer = request.send().await?;
            let text = |name: &str| {
                let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let (challenge, retry_after) = (text("www-authenticate"), text("retry-after"));
            let (status, token) = (answer.status().as_u16(), text("x-subject-token"));
            let body = serde_json::from_slice(&answer.bytes().await?).unwrap_or(Value::Null);
            Ok::<_, reqwest::Error>(Answer { status, challenge, retry_after, token, body })
        };
        Ok(self.runtime.block_on(asked)?)
    }

    /// Sends a request to Keystone that must succeed, and returns the body.
    fn must(&self, method: &Method, path: &str, token: &str, body: Option<&Value>) -> Result<Value> {
        let answer = self.ask(method, &format!("{}{path}", self.keystone), token, body)?;
        if !(200..300).contains(&answer.status) {
            bail!("{method} {path} is answered {}: {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// Logs in, and returns the token and its description by Keystone.
    pub fn log_in(&self, identity: &Value, scope: Option<&Value>) -> Result<(String, Value)> {
        let mut auth = json!({"identity": identity});
        if let Some(scope) = scope {
            auth["scope"] = scope.clone();
        }
        let url = format!("{}/auth/tokens", self.keystone);
        let mut answer = self.ask(&Method::POST, &url, "", Some(&json!({"auth": auth})))?;
        if answer.status != 201 {
            bail!("a login is answered {}: {}", answer.status, answer.body);
        }
        self.secrets.borrow_mut().push(answer.token.clone());
        Ok((answer.token, answer.body["token"].take()))
    }

    /// Logs a user of the domain `Default` in to a project of that domain.
    pub fn token(&self, user: &str, project: &str) -> Result<String> {
        Ok(self.log_in(&password(user), Some(&of_project(project)))?.0)
    }

    pub fn revoke(&self, token: &str) -> Result<()> {
        let url = format!("{}/auth/tokens", self.keystone);
        let request = self.client.delete(url).header("x-auth-token", token).header("x-subject-token", token);
        let status = self.runtime.block_on(async { request.send().await })?.status();
        if status != 204 {
            bail!("Keystone does not revoke a token: {status}");
        }
        Ok(())
    }

    /// Creates an application credential for a user, with access rules if `rules` is given, and logs in with
    /// it.
    pub fn by_application_credential(
        &self,
        token: &str,
        user: &str,
        rules: Option<&Value>,
    ) -> Result<String> {
        let name = format!("lab-{}", self.secrets.borrow().len());
        let mut wanted = json!({"name": name});
        if let Some(rules) = rules {
            wanted["access_rules"] = rules.clone();
        }
        let body = json!({"application_credential": wanted});
        let made =
            self.must(&Method::POST, &format!("/users/{user}/application_credentials"), token, Some(&body))?;
        let made = &made["application_credential"];
        let credential = json!({"id": made["id"], "secret": made["secret"]});
        let identity = json!({"methods": ["application_credential"], "application_credential": credential});
        Ok(self.log_in(&identity, None)?.0)
    }

    /// Logs in through a trust: `bob` acts for the token's owner.
    pub fn by_trust(&self, token: &str, people: &People) -> Result<String> {
        let (_, bob) = self.log_in(&password("bob"), Some(&of_project("chemistry")))?;
        let trust = json!({"trust": {
            "trustor_user_id": people.alice, "trustee_user_id": bob["user"]["id"], "project_id": people.physics,
            "impersonation": true, "roles": [{"name": "member"}],
        }});
        let trust = self.must(&Method::POST, "/OS-TRUST/trusts", token, Some(&trust))?;
        let scope = json!({"OS-TRUST:trust": {"id": trust["trust"]["id"]}});
        Ok(self.log_in(&password("bob"), Some(&scope))?.0)
    }

    /// Creates the lab's users: members of three projects, a reader, a member of another domain, and the
    /// users of the service.
    pub fn settle(&self) -> Result<People> {
        let (admin, said) = self.log_in(&administrator(), Some(&of_project("admin")))?;
        let make = |kind: &str, plural: &str, body: Value| -> Result<String> {
            let made = self.must(&Method::POST, &format!("/{plural}"), &admin, Some(&json!({kind: body})))?;
            Ok(made[kind]["id"].as_str().context("no identifier")?.to_owned())
        };
        make("role", "roles", json!({"name": LEASING}))?;
        let roles = self.must(&Method::GET, "/roles", &admin, None)?;
        let role = |name: &str| -> Result<String> {
            let all = roles["roles"].as_array().context("no roles")?;
            let found =
                all.iter().find(|role| role["name"] == name).with_context(|| format!("no role {name}"))?;
            Ok(found["id"].as_str().context("no identifier")?.to_owned())
        };
        let grant = |target: &str, user: &str, name: &str| -> Result<()> {
            self.must(&Method::PUT, &format!("/{target}/users/{user}/roles/{}", role(name)?), &admin, None)
                .map(drop)
        };
        let default = said["user"]["domain"]["id"].as_str().context("no domain")?.to_owned();
        let project = |name: &str| make("project", "projects", json!({"name": name, "domain_id": default}));
        let user = |name: &str, domain: &str| {
            make("user", "users", json!({"name": name, "domain_id": domain, "password": OF_ALL}))
        };
        let (physics, chemistry) = (project("physics")?, project("chemistry")?);
        let alice = user("alice", &default)?;
        grant(&format!("projects/{physics}"), &alice, "member")?;
        grant(&format!("projects/{physics}"), &user("rita", &default)?, "reader")?;
        grant(&format!("projects/{chemistry}"), &user("bob", &default)?, "member")?;
        grant(&format!("projects/{}", project("geology")?), &user("gina", &default)?, "member")?;
        let lab = make("domain", "domains", json!({"name": "lab"}))?;
        let of_lab = make("project", "projects", json!({"name": "astronomy", "domain_id": lab}))?;
        grant(&format!("projects/{of_lab}"), &user("lars", &lab)?, "member")?;
        // The administrator of a domain can get a token for the domain, without a project.
        let root = said["user"]["id"].as_str().context("no user")?;
        grant(&format!("domains/{default}"), root, "admin")?;
        let services = self.must(&Method::GET, "/projects?name=service", &admin, None)?;
        let services = services["projects"][0]["id"].as_str().context("no project of services")?.to_owned();
        let (name, secret) = ("allot-least", OF_ALL.to_owned());
        grant(&format!("projects/{services}"), &user(name, &default)?, "service")?;
        let nova = user(OF_NOVA, &default)?;
        for name in ["service", LEASING] {
            grant(&format!("projects/{services}"), &nova, name)?;
        }
        Ok(People { user: name.to_owned(), secret, alice, physics, chemistry })
    }
}

/// Identity of a user of the domain `Default` with the password [`OF_ALL`].
pub fn password(user: &str) -> Value {
    password_in("Default", user, OF_ALL)
}

/// Identity of the cloud's administrator.
pub fn administrator() -> Value {
    password_in("Default", "admin", PASSWORD)
}

pub fn password_in(domain: &str, user: &str, password: &str) -> Value {
    let user = json!({"name": user, "domain": {"name": domain}, "password": password});
    json!({"methods": ["password"], "password": {"user": user}})
}

/// Scope of a project in the domain `Default`.
pub fn of_project(name: &str) -> Value {
    json!({"project": {"name": name, "domain": {"name": "Default"}}})
}
