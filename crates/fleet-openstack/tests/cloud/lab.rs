//! A real cloud, started by `cargo xtask lab openstack`. Its address is in `ALLOT_LAB_KEYSTONE` and its
//! administrator's password in `ALLOT_LAB_PASSWORD`. All of its servers, aggregates and floating IPs are
//! deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ambient::{RandomIds, SystemClock};
use async_trait::async_trait;
use fleet::Fleet;
use fleet::conformance::{self, Subject};
use fleet_openstack::{Fence, OpenStackFleet, Settings};
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;
use leases::project::ProjectId;
use openstack::{
    Answer, Api, Call, Cloud, Domain, Interface, Login, Microversion, Project, Retry, Secret, Session, User,
};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::promises::guest;
use crate::standin::{Exchange, FREE_POOL};

const PLACEMENT: Api = Api::Placement(Microversion { major: 1, minor: 36 });
const COMPUTE: Api = Api::Compute(Microversion { major: 2, minor: 79 });

/// Name of the external network.
const EXTERNAL: &str = "public";

/// Number of times that something in the cloud is looked for before a test fails, and the pause after each.
const PATIENCE: usize = 300;
const PAUSE: Duration = Duration::from_millis(200);

/// A session of the cloud's administrator.
pub fn session(keystone: &str) -> Arc<Session> {
    let password = std::env::var("ALLOT_LAB_PASSWORD").expect("ALLOT_LAB_PASSWORD");
    let default = || Domain::Name("Default".to_owned());
    let cloud = Cloud {
        identity: openstack::identity_url(keystone).expect("an address"),
        login: Login::Password {
            user: User::Name("admin".to_owned(), default()),
            password: Secret::Text(SecretString::from(password)),
            project: Project::Name("admin".to_owned(), default()),
        },
        region: Some("RegionOne".to_owned()),
        interface: Interface::Internal,
        authorities: None,
        timeout: Duration::from_mins(1),
        retry: Retry::default(),
    };
    Arc::new(Session::new(cloud, Arc::new(RandomIds)).expect("a session"))
}

/// A driver without memory.
pub fn driver(session: &Arc<Session>) -> OpenStackFleet {
    let settings = Settings {
        fence: Fence::BlazarFilter,
        hints: false,
        free_pool: FREE_POOL.to_owned(),
        settle: Duration::from_millis(300),
        failed_after: crate::standin::FAILED_AFTER,
        migration_time: crate::standin::MIGRATION_TIME,
        image_time: crate::standin::IMAGE_TIME,
    };
    OpenStackFleet::new(session.clone(), settings, Arc::new(SystemClock))
}

/// The cloud's administrator.
pub struct Admin {
    session: Arc<Session>,
    user: String,
    project: String,
    image: String,
    /// The external network, with addresses outside of its allocation pools.
    network: String,
}

/// The external network for the tests' addresses, created if it doesn't exist.
async fn external_network(session: &Session) -> String {
    let ask = async |call: Call| -> Value {
        session.call(&call).await.and_then(|answer| answer.json()).expect("an answer of Neutron")
    };
    let list = Call::get(Api::Network, "list networks", &["v2.0", "networks"]).with_query("name", EXTERNAL);
    let found = ask(list).await;
    if let Some(id) = found["networks"][0]["id"].as_str() {
        return id.to_owned();
    }
    let make = |what: &'static str| Call::new(Api::Network, "make", Method::POST, &["v2.0", what]);
    let network = json!({"name": EXTERNAL, "router:external": true});
    let made = ask(make("networks").with_body(json!({"network": network}))).await;
    let id = made["network"]["id"].as_str().expect("an identifier").to_owned();
    let subnet = json!({
        "network_id": id, "name": "public-v4", "ip_version": 4, "cidr": "203.0.113.0/24", "gateway_ip": "203.0.113.1",
        "enable_dhcp": false, "allocation_pools": [{"start": "203.0.113.2", "end": "203.0.113.101"}],
    });
    ask(make("subnets").with_body(json!({"subnet": subnet}))).await;
    id
}

impl Admin {
    pub async fn new(session: Arc<Session>) -> Self {
        let token = session.own_token().await.expect("a login");
        let images = Call::get(Api::Image, "list images", &["v2", "images"]).with_query("name", "fake");
        let images: Value = session.call(&images).await.and_then(|answer| answer.json()).expect("images");
        let image = images["images"][0]["id"].as_str().expect("an image").to_owned();
        let network = external_network(&session).await;
        Self { session, user: token.user.id, project: token.project.expect("a project").id, image, network }
    }

    async fn get(&self, path: &[&str], query: &[(&'static str, &str)]) -> Value {
        let call = Call::get(COMPUTE, "look", path);
        let call = query.iter().fold(call, |call, (name, value)| call.with_query(name, *value));
        self.session.call(&call).await.and_then(|answer| answer.json()).expect("an answer")
    }

    async fn send(&self, method: Method, path: &[&str], body: Option<Value>) -> Option<Answer> {
        let call = Call::new(COMPUTE, "change", method, path).repeatable();
        let call = if let Some(body) = body { call.with_body(body) } else { call };
        match self.session.call(&call).await {
            Ok(answer) => Some(answer),
            Err(error) if error.status().is_some() => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts a server on that host, bypassing the scheduler, and waits until it runs.
    pub async fn boot(&self, host: &str, preemptible: bool) -> String {
        self.boot_in("nova", host, preemptible).await
    }

    /// Starts a server like `boot`, in that availability zone.
    pub async fn boot_in(&self, zone: &str, host: &str, preemptible: bool) -> String {
        let body = json!({"server": {
            "name": "allot-test", "flavorRef": if preemptible { "preempt" } else { "small" }, "imageRef": self.image,
            "networks": "none", "availability_zone": format!("{zone}:{host}"),
        }});
        let made = self.send(Method::POST, &["servers"], Some(body)).await.expect("a server");
        let made: Value = made.json().expect("JSON");
        let id = made["server"]["id"].as_str().expect("an identifier").to_owned();
        for _ in 0..PATIENCE {
            let server = self.get(&["servers", &id], &[]).await;
            match server["server"]["status"].as_str() {
                Some("ACTIVE") => return id,
                Some("ERROR") => panic!("{server}"),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        panic!("the server does not start");
    }

    /// Uploads the data of images that Nova has begun. A hypervisor does that, but Nova's fake one doesn't.
    pub async fn fill_images(&self) {
        let list = Call::get(Api::Image, "list images", &["v2", "images"]).with_query("status", "queued");
        let images = self.session.call(&list).await.and_then(|answer| answer.json::<Value>());
        for image in images.expect("images")["images"].as_array().expect("a list") {
            let id = image["id"].as_str().expect("an identifier");
            let formats = json!([
                {"op": "add", "path": "/disk_format", "value": "raw"},
                {"op": "add", "path": "/container_format", "value": "bare"},
            ]);
            let patch =
                Call::new(Api::Image, "change", Method::PATCH, &["v2", "images", id]).with_body(formats);
            let patch = patch.with_header(CONTENT_TYPE, "application/openstack-images-v2.1-json-patch");
            let fill = Call::new(Api::Image, "fill", Method::PUT, &["v2", "images", id, "file"]);
            let fill = fill.with_body(json!("content")).with_header(CONTENT_TYPE, "application/octet-stream");
            for call in [patch, fill] {
                self.session.call(&call).await.expect("it is done");
            }
        }
    }

    pub async fn delete(&self, id: &str) {
        for _ in 0..PATIENCE {
            if self.send(Method::DELETE, &["servers", id], None).await.is_none() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("the server does not go");
    }

    /// Returns the cloud to its state after the first start.
    pub async fn reset(&self) {
        let servers = self.get(&["servers"], &[("all_tenants", "1")]).await;
        for server in servers["servers"].as_array().expect("a list") {
            self.delete(server["id"].as_str().expect("an identifier")).await;
        }
        let list = Call::get(Api::Network, "look", &["v2.0", "floatingips"]);
        let addresses = self.session.call(&list).await.and_then(|answer| answer.json::<Value>());
        for address in addresses.expect("an answer")["floatingips"].as_array().expect("a list") {
            let path = ["v2.0", "floatingips", address["id"].as_str().expect("an identifier")];
            let call = Call::new(Api::Network, "delete", Method::DELETE, &path);
            self.session.call(&call).await.expect("deleted");
        }
        let list = Call::get(Api::Image, "look", &["v2", "images"]).with_query("limit", "1000");
        let images = self.session.call(&list).await.and_then(|answer| answer.json::<Value>());
        for image in images.expect("an answer")["images"].as_array().expect("a list") {
            if image["name"].as_str().is_some_and(|name| name.starts_with("reserved_")) {
                let path = ["v2", "images", image["id"].as_str().expect("an identifier")];
                let call = Call::new(Api::Image, "delete", Method::DELETE, &path);
                self.session.call(&call).await.expect("deleted");
            }
        }
        let aggregates = self.get(&["os-aggregates"], &[]).await;
        for aggregate in aggregates["aggregates"].as_array().expect("a list") {
            let id = aggregate["id"].to_string();
            for host in aggregate["hosts"].as_array().expect("a list") {
                let body = json!({"remove_host": {"host": host}});
                self.send(Method::POST, &["os-aggregates", &id, "action"], Some(body)).await;
            }
            self.send(Method::DELETE, &["os-aggregates", &id], None).await;
        }
        let services = self.get(&["os-services"], &[("binary", "nova-compute")]).await;
        for service in services["services"].as_array().expect("a list") {
            let id = service["id"].as_str().expect("an identifier");
            self.send(Method::PUT, &["os-services", id], Some(json!({"status": "enabled"}))).await;
        }
        let providers = Call::get(PLACEMENT, "look", &["resource_providers"]);
        let providers = self.session.call(&providers).await.and_then(|answer| answer.json::<Value>());
        for provider in providers.expect("an answer")["resource_providers"].as_array().expect("a list") {
            if provider["name"].as_str().is_some_and(|name| name.starts_with("blazar_")) {
                // The provider itself stays: a nova-compute that knows it starts no server without it.
                let id = provider["uuid"].as_str().expect("an identifier");
                let path = ["resource_providers", id, "inventories"];
                let call = Call::new(PLACEMENT, "change", Method::DELETE, &path);
                self.session.call(&call).await.expect("it is not used");
            }
        }
        let flavors = self.get(&["flavors"], &[("is_public", "None")]).await;
        for flavor in flavors["flavors"].as_array().expect("a list") {
            if flavor["name"].as_str().is_some_and(|name| name.starts_with("reservation:")) {
                let id = flavor["id"].as_str().expect("an identifier");
                self.send(Method::DELETE, &["flavors", id], None).await;
            }
        }
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    pub fn project(&self) -> &str {
        &self.project
    }
}

/// Access to Nova and Placement that bypasses the client under test.
pub struct Direct {
    client: reqwest::Client,
    token: String,
    /// Addresses of services, by type.
    services: BTreeMap<String, String>,
}

impl Direct {
    /// Logs in as the administrator.
    pub async fn log_in(keystone: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let password = std::env::var("ALLOT_LAB_PASSWORD").expect("ALLOT_LAB_PASSWORD");
        let domain = json!({"name": "Default"});
        let user = json!({"name": "admin", "domain": domain, "password": password});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": "admin", "domain": domain}},
        }});
        let request = client.post(format!("{keystone}/auth/tokens")).body(body.to_string());
        let answer = request.header("content-type", "application/json").send().await.expect("a login");
        let token = answer.headers()["x-subject-token"].to_str().expect("a token").to_owned();
        let said: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
        let services = said["token"]["catalog"].as_array().expect("a catalog").iter().map(|service| {
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            (text(&service["type"]), text(&service["endpoints"][0]["url"]))
        });
        Self { client, token, services: services.collect() }
    }

    /// Sends that request and returns the cloud's answer.
    pub async fn ask(&self, asked: &Exchange) -> (u16, Value) {
        let (service, path) = asked.path.trim_start_matches('/').split_once('/').expect("a service");
        let url = format!("{}/{path}", self.services[service]);
        let method = Method::from_bytes(asked.method.as_bytes()).expect("a method");
        let mut request = self.client.request(method, url).header("x-auth-token", &self.token);
        request = request.header("openstack-api-version", &asked.version);
        if !asked.body.is_null() {
            request = request.header("content-type", "application/json").body(asked.body.to_string());
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.bytes().await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

struct Real {
    fleet: OpenStackFleet,
    admin: Arc<Admin>,
    names: BTreeMap<HostId, String>,
}

#[async_trait]
impl Subject for Real {
    fn fleet(&self) -> &dyn Fleet {
        &self.fleet
    }

    async fn guest_appears(&self, host: HostId, owner: GuestOwner) -> GuestId {
        guest(&self.admin.boot(&self.names[&host], owner == GuestOwner::Preemptible).await)
    }

    async fn guest_sets_out(&self, host: HostId) -> GuestId {
        // Nova starts no server on a host with a disabled service, so it must be there before.
        guest(&self.admin.boot(&self.names[&host], true).await)
    }

    async fn guests_land(&self) {}

    async fn guest_ends(&self, guest: GuestId) {
        self.admin.delete(&guest.to_string()).await;
    }

    async fn wait(&self) {
        tokio::time::sleep(PAUSE).await;
    }

    fn project(&self) -> ProjectId {
        // Servers of other projects also belong to this one. The project only matters in leases, and the
        // suite starts no such servers there.
        ProjectId(self.admin.project().to_owned())
    }

    fn address(&self) -> FloatingIp {
        FloatingIp { network: NetworkId(self.admin.network.clone()), ..conformance::address() }
    }
}

#[tokio::test]
#[ignore = "needs a cloud: `cargo xtask lab openstack` has one"]
async fn the_driver_keeps_its_promises_on_a_real_cloud() {
    let keystone = std::env::var("ALLOT_LAB_KEYSTONE").expect("ALLOT_LAB_KEYSTONE");
    let session = session(&keystone);
    let admin = Arc::new(Admin::new(session.clone()).await);
    Box::pin(conformance::all(async || {
        admin.reset().await;
        let fleet = driver(&session);
        let machines = fleet::Inventory::machines(&fleet).await.expect("machines");
        let names = machines.into_iter().map(|machine| (machine.id, machine.service_name)).collect();
        Real { fleet, admin: admin.clone(), names }
    }))
    .await;
    admin.reset().await;
}
