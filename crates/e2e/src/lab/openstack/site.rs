//! A cloud and the service that drives it, from the perspective of users and of the administrator.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chores::run::{Executable, output_of};
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::{Answer, Cloud, OF_ALL, OF_NOVA, PASSWORD, People};
use super::{Lab, RESERVATION};
use crate::leasing::date::Minute;
use crate::leasing::server::{Launch, Server};

/// Ports of Placement and Nova, as offsets from Keystone's.
const PLACEMENT: u16 = 1;
const NOVA: u16 = 3;

/// Maximum wait for any change in the cloud.
const PATIENCE: Duration = Duration::from_mins(2);

/// Name of the free pool's aggregate.
pub const FREE_POOL: &str = "freepool";

const ALICE: (&str, &str) = ("alice", "physics");

/// Reservation of a single host.
pub const HOST_LEASE: &str = "resource_type=physical:host,min=1,max=1";

/// A cloud, and the launch options of a service that drives it.
pub struct Site<'a> {
    pub lab: &'a Lab,
    pub ours: &'a Executable,
    pub cloud: &'a Cloud,
    pub launch: Launch,
    /// The administrator's token.
    pub admin: String,
}

/// Launch options of a service that drives the cloud; `auth` is its authentication setting.
pub fn launch(lab: &Lab, ours: &Executable, directory: &Path, people: &People, auth: &str) -> Result<Launch> {
    let (of_service, of_nova) = (directory.join("keystone.password"), directory.join("nova.password"));
    chores::run::write(&of_service, people.secret.as_bytes())?;
    chores::run::write(&of_nova, OF_ALL.as_bytes())?;
    let options = [
        ("--keystone-auth-url", format!("http://127.0.0.1:{}", lab.port)),
        ("--keystone-username", people.user.clone()),
        ("--keystone-secret-file", of_service.display().to_string()),
        ("--openstack-username", OF_NOVA.to_owned()),
        ("--openstack-secret-file", of_nova.display().to_string()),
        ("--leases-grace", "10s".to_owned()),
        ("--region", "RegionOne".to_owned()),
    ];
    Ok(Launch::new(ours, directory)
        .at(&format!("127.0.0.1:{}", lab.port + RESERVATION))
        .with_openstack()
        .with_auth(auth)
        .with(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value])))
}

impl Site<'_> {
    /// A command of the stock client, as a user of a project.
    pub fn command(&self, user: &str, project: &str, words: &[&str]) -> Command {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        let mut command = self.lab.client(&self.lab.program("openstack"), user, password, project);
        command.args(["--os-compute-api-version", "2.79"]).args(words);
        command
    }

    /// Runs the stock client, and returns its output.
    pub fn client(&self, user: &str, project: &str, words: &[&str]) -> Result<String> {
        output_of(&mut self.command(user, project, words))
    }

    /// Runs the stock client as administrator, and returns its output.
    pub fn admin_client(&self, words: &[&str]) -> Result<String> {
        self.client("admin", "admin", words)
    }

    /// Names of a project's servers, one per line.
    pub fn servers(&self, user: &str, project: &str) -> Result<String> {
        self.client(user, project, &["server", "list", "-f", "value", "-c", "Name"])
    }

    /// Boots a server, and waits until it is ACTIVE. Any other outcome is an error.
    pub fn boot(&self, user: &str, project: &str, name: &str, words: &[&str]) -> Result<()> {
        let fixed = ["server", "create", "--image", "fake", "--nic", "none", "--wait", name];
        self.client(user, project, &[&fixed[..], words].concat())?;
        let status = self.client(user, project, &["server", "show", "-f", "value", "-c", "status", name])?;
        ensure!(status.trim() == "ACTIVE", "server {name} is {status}");
        Ok(())
    }

    /// The stock client's arguments to create a lease that starts now.
    pub fn lease_words<'w>(name: &'w str, reservation: &'w str) -> [&'w str; 6] {
        ["reservation", "lease", "create", "--reservation", reservation, name]
    }

    /// Creates a lease that starts now, waits until it is ACTIVE, and returns the reservation's identifier.
    pub fn lease(&self, user: &str, project: &str, name: &str, reservation: &str) -> Result<String> {
        self.client(user, project, &Self::lease_words(name, reservation))?;
        self.until_active_of((user, project), name)
    }

    /// Creates a lease of alice's that starts now, and returns the reservation from the response.
    pub fn answer_to(&self, name: &str, reservation: &str) -> Result<Value> {
        let words = [&Self::lease_words(name, reservation)[..], &["-f", "json"]].concat();
        first_reservation(&self.client("alice", "physics", &words)?)
    }

    /// Alice's lease with that name.
    pub fn alices(&self, name: &str) -> Result<Value> {
        self.lease_of(ALICE, name)
    }

    fn lease_of(&self, owner: (&str, &str), name: &str) -> Result<Value> {
        let answer = self.ask_as(owner, &Method::GET, "leases", None)?;
        let leases = answer["leases"].as_array().cloned().unwrap_or_default();
        let found = leases.into_iter().find(|lease| lease["name"] == name);
        found.with_context(|| format!("there is no lease {name}: {answer}"))
    }

    /// Changes the end of a lease of alice's to the end of the current minute.
    pub fn end_soon(&self, name: &str) -> Result<()> {
        let id = text_of(&self.alices(name)?["id"]);
        let wanted = json!({"end_date": Minute::now().plus(1).sent()});
        let answer = self.ask_as(ALICE, &Method::PUT, &format!("leases/{id}"), Some(&wanted))?;
        ensure!(answer["lease"].is_object(), "{answer}");
        Ok(())
    }

    /// Sends a request to the service as a user of a project, and returns the body.
    fn ask_as(
        &self,
        (user, project): (&str, &str),
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let token = self.cloud.token(user, project)?;
        let url = format!("http://127.0.0.1:{}/v1/{path}", self.lab.port + RESERVATION);
        Ok(self.cloud.ask(method, &url, &token, body)?.body)
    }

    /// Waits until a lease of alice's is ACTIVE, and returns its reservation's identifier.
    pub fn until_active(&self, name: &str) -> Result<String> {
        self.until_active_of(ALICE, name)
    }

    fn until_active_of(&self, owner: (&str, &str), name: &str) -> Result<String> {
        let mut lease = json!(null);
        let active = until("the lease does not start", || {
            lease = self.lease_of(owner, name)?;
            Ok(lease["status"] == "ACTIVE")
        });
        active.with_context(|| format!("{} {}", lease["status"], lease["status_reason"]))?;
        Ok(lease["reservations"][0]["id"].as_str().context("no reservation")?.to_owned())
    }

    /// Runs `allot` as a user of a project, and returns its output.
    pub fn allot(&self, user: &str, project: &str, words: &[&str]) -> Result<String> {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        output_of(self.lab.client(self.ours.path(), user, password, project).args(words))
    }

    /// Runs `allot doctor`, and returns its findings. With `--repair`, these are the findings that remain.
    pub fn doctor(&self, words: &[&str]) -> Result<String> {
        let mut command = self.lab.client(self.ours.path(), "admin", PASSWORD, "admin");
        let output = command.arg("doctor").args(words).output().context("cannot run it")?;
        // The exit status can't tell a failure from remaining findings.
        ensure!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Boots a server that no host can accept, then deletes it.
    pub fn refused(&self, user: &str, project: &str, name: &str, words: &[&str]) -> Result<()> {
        let Err(error) = self.boot(user, project, name, words) else {
            bail!("server {name} runs on {}", self.server(name)?["OS-EXT-SRV-ATTR:host"]);
        };
        let server = self.server(name).with_context(|| format!("{error:#}"))?;
        let fault = server["fault"]["message"].as_str().unwrap_or_default();
        ensure!(server["status"] == "ERROR" && fault.contains("No valid host"), "{server}");
        self.client(user, project, &["server", "delete", "--wait", name]).map(drop)
    }

    /// Server with that name of any project, as the administrator sees it.
    pub fn server(&self, name: &str) -> Result<Value> {
        let found = self.servers_named(name)?.into_iter().next();
        found.with_context(|| format!("there is no server {name}"))
    }

    /// Host of a server, which must be ACTIVE.
    pub fn host_of(&self, name: &str) -> Result<String> {
        let server = self.server(name)?;
        ensure!(server["status"] == "ACTIVE", "{server}");
        Ok(server["OS-EXT-SRV-ATTR:host"].as_str().context("no host")?.to_owned())
    }

    /// Whether a server with that name exists in any project.
    pub fn is_there(&self, name: &str) -> Result<bool> {
        Ok(!self.servers_named(name)?.is_empty())
    }

    fn servers_named(&self, name: &str) -> Result<Vec<Value>> {
        let mut found = self.nova(&format!("servers/detail?all_tenants=1&name={name}"))?;
        let servers = found["servers"].as_array_mut().with_context(|| format!("no servers of {name}"))?;
        // Nova treats the name as a pattern.
        Ok(std::mem::take(servers).into_iter().filter(|server| server["name"] == name).collect())
    }

    pub fn delete_all_servers(&self) -> Result<()> {
        self.delete_servers(&self.admin, "servers?all_tenants=1")
    }

    /// Deletes the servers of the token's project.
    pub fn delete_servers_of(&self, token: &str) -> Result<()> {
        self.delete_servers(token, "servers")
    }

    fn delete_servers(&self, token: &str, which: &str) -> Result<()> {
        let left = || -> Result<Vec<Value>> {
            let mut all = self.cloud.ask(&Method::GET, &self.nova_url(which), token, None)?.body;
            Ok(std::mem::take(all["servers"].as_array_mut().context("no servers")?))
        };
        for server in left()? {
            let url = self.nova_url(&format!("servers/{}", text_of(&server["id"])));
            self.cloud.ask(&Method::DELETE, &url, token, None)?;
        }
        until("servers stay", || Ok(left()?.is_empty()))
    }

    pub fn nova_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/v2.1/{path}", self.lab.port + NOVA)
    }

    /// Body of Nova's response to a GET request of the administrator.
    pub fn nova(&self, path: &str) -> Result<Value> {
        Ok(self.cloud.ask(&Method::GET, &self.nova_url(path), &self.admin, None)?.body)
    }

    /// Body of Placement's response to a GET request of the administrator.
    pub fn placement(&self, path: &str) -> Result<Value> {
        Ok(self.ask_placement(&Method::GET, path, None)?.body)
    }

    /// Sends a request of the administrator to Placement, which must succeed.
    pub fn change_placement(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<()> {
        let answer = self.ask_placement(method, path, body)?;
        ensure!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        Ok(())
    }

    fn ask_placement(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        let url = format!("http://127.0.0.1:{}/{path}", self.lab.port + PLACEMENT);
        self.cloud.ask_version(method, &url, &self.admin, body, "placement 1.36")
    }

    pub fn aggregate(&self, name: &str) -> Result<Option<Value>> {
        let all = self.nova("os-aggregates")?;
        let all = all["aggregates"].as_array().with_context(|| format!("no aggregates: {all}"))?;
        Ok(all.iter().find(|aggregate| aggregate["name"] == name).cloned())
    }

    /// Hosts of an aggregate; empty if the aggregate doesn't exist.
    pub fn members(&self, aggregate: &str) -> Result<Vec<String>> {
        let found = self.aggregate(aggregate)?;
        let hosts = found.as_ref().and_then(|found| found["hosts"].as_array()).cloned().unwrap_or_default();
        Ok(hosts.iter().filter_map(|host| host.as_str().map(str::to_owned)).collect())
    }

    /// Number of disabled compute services.
    pub fn closed(&self) -> Result<usize> {
        let all = self.nova("os-services?binary=nova-compute")?;
        let all = all["services"].as_array().context("no services")?;
        Ok(all.iter().filter(|service| service["status"] == "disabled").count())
    }
}

/// First reservation in the stock client's output, which has a line of text before the JSON, and JSON in a
/// string inside it.
pub fn first_reservation(shown: &str) -> Result<Value> {
    let start = shown.find('{').with_context(|| shown.to_owned())?;
    let lease: Value = serde_json::from_str(&shown[start..]).with_context(|| shown.to_owned())?;
    let text = lease["reservations"].as_str().with_context(|| shown.to_owned())?;
    let mut reservations = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    Ok(reservations.next().context("no reservation")??)
}

/// UUID of a host's resource provider in Placement.
pub fn provider(site: &Site<'_>, host: &str) -> Result<String> {
    let found = site.placement(&format!("resource_providers?name={host}"))?;
    Ok(found["resource_providers"][0]["uuid"].as_str().with_context(|| found.to_string())?.to_owned())
}

/// Adds a trait to a host's resource provider, or removes it if `has` is false.
pub fn set_trait(site: &Site<'_>, host: &str, name: &str, has: bool) -> Result<()> {
    site.change_placement(&Method::PUT, &format!("traits/{name}"), None)?;
    let path = format!("resource_providers/{}/traits", provider(site, host)?);
    let change = || {
        let now = site.placement(&path)?;
        let mut traits: Vec<String> = serde_json::from_value(now["traits"].clone()).context("no traits")?;
        traits.retain(|known| known != name);
        traits.extend(has.then(|| name.to_owned()));
        let wanted =
            json!({"traits": traits, "resource_provider_generation": now["resource_provider_generation"]});
        site.change_placement(&Method::PUT, &path, Some(&wanted))
    };
    // Nova and the service update providers too, so retry once after a conflict.
    change().or_else(|_| change())
}

/// Stops the service, which must exit successfully.
pub fn ends_well(server: Server) -> Result<()> {
    let said = server.last_lines();
    let status = server.stop()?;
    ensure!(status.success(), "{status}:\n{said}");
    Ok(())
}

/// The string in a value; empty if the value isn't a string.
pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Waits until `check` returns true, at most [`PATIENCE`]. Errors of `check` count as false until then.
pub fn until(otherwise: &str, mut check: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    let mut last = Ok(false);
    while started.elapsed() < PATIENCE {
        last = check();
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        sleep(Duration::from_millis(200));
    }
    last?;
    bail!("{otherwise} within {} s", PATIENCE.as_secs())
}
