//! A cloud with a service that drives it, as its users and its administrator see the two.

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

/// Placement and Nova, counted from Keystone's port.
const PLACEMENT: u16 = 1;
const NOVA: u16 = 3;

/// How long anything in the cloud may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The free pool's aggregate.
pub const FREE_POOL: &str = "freepool";

/// A user and her project.
const ALICE: (&str, &str) = ("alice", "physics");

/// One host.
pub const HOST_LEASE: &str = "resource_type=physical:host,min=1,max=1";

/// The cloud, and a service that drives it.
pub struct Site<'a> {
    pub lab: &'a Lab,
    pub ours: &'a Executable,
    pub cloud: &'a Cloud,
    pub launch: Launch,
    /// A token of the administrator.
    pub admin: String,
}

/// The service that drives the cloud, with these ways to log in.
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
    /// The stock client as that user for that project.
    pub fn command(&self, user: &str, project: &str, words: &[&str]) -> Command {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        let mut command = self.lab.client(&self.lab.program("openstack"), user, password, project);
        command.args(["--os-compute-api-version", "2.79"]).args(words);
        command
    }

    /// What the stock client says to that.
    pub fn client(&self, user: &str, project: &str, words: &[&str]) -> Result<String> {
        output_of(&mut self.command(user, project, words))
    }

    /// The same, asked by the administrator.
    pub fn admin_client(&self, words: &[&str]) -> Result<String> {
        self.client("admin", "admin", words)
    }

    /// The names of a project's servers.
    pub fn servers(&self, user: &str, project: &str) -> Result<String> {
        self.client(user, project, &["server", "list", "-f", "value", "-c", "Name"])
    }

    /// Starts a server, and waits until it runs; an error if it does not.
    pub fn boot(&self, user: &str, project: &str, name: &str, words: &[&str]) -> Result<()> {
        let fixed = ["server", "create", "--image", "fake", "--nic", "none", "--wait", name];
        self.client(user, project, &[&fixed[..], words].concat())?;
        let status = self.client(user, project, &["server", "show", "-f", "value", "-c", "status", name])?;
        ensure!(status.trim() == "ACTIVE", "server {name} is {status}");
        Ok(())
    }

    /// How the stock client is told to make a lease from now on.
    pub fn lease_words<'w>(name: &'w str, reservation: &'w str) -> [&'w str; 6] {
        ["reservation", "lease", "create", "--reservation", reservation, name]
    }

    /// Has somebody make a lease from now on, and waits until it is active; its reservation.
    pub fn lease(&self, user: &str, project: &str, name: &str, reservation: &str) -> Result<String> {
        self.client(user, project, &Self::lease_words(name, reservation))?;
        self.until_active_of((user, project), name)
    }

    /// The reservation in the answer to alice's request for a lease from now on.
    pub fn answer_to(&self, name: &str, reservation: &str) -> Result<Value> {
        let words = [&Self::lease_words(name, reservation)[..], &["-f", "json"]].concat();
        first_reservation(&self.client("alice", "physics", &words)?)
    }

    /// That lease of alice's.
    pub fn alices(&self, name: &str) -> Result<Value> {
        self.lease_of(ALICE, name)
    }

    fn lease_of(&self, owner: (&str, &str), name: &str) -> Result<Value> {
        let answer = self.ask_as(owner, &Method::GET, "leases", None)?;
        let leases = answer["leases"].as_array().cloned().unwrap_or_default();
        let found = leases.into_iter().find(|lease| lease["name"] == name);
        found.with_context(|| format!("there is no lease {name}: {answer}"))
    }

    /// Has that lease of alice's end with the present minute.
    pub fn end_soon(&self, name: &str) -> Result<()> {
        let id = text_of(&self.alices(name)?["id"]);
        let wanted = json!({"end_date": Minute::now().plus(1).sent()});
        let answer = self.ask_as(ALICE, &Method::PUT, &format!("leases/{id}"), Some(&wanted))?;
        ensure!(answer["lease"].is_object(), "{answer}");
        Ok(())
    }

    /// Asks the service as that user for that project.
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

    /// Waits until that lease of alice's is active; its reservation.
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

    /// Runs `allot` as that user for that project.
    pub fn allot(&self, user: &str, project: &str, words: &[&str]) -> Result<String> {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        output_of(self.lab.client(self.ours.path(), user, password, project).args(words))
    }

    /// What the doctor finds, or what is left once it has repaired what it can.
    pub fn doctor(&self, words: &[&str]) -> Result<String> {
        let mut command = self.lab.client(self.ours.path(), "admin", PASSWORD, "admin");
        let output = command.arg("doctor").args(words).output().context("cannot run it")?;
        // Its status says whether anything is left.
        ensure!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A server must find no host; it is deleted.
    pub fn refused(&self, user: &str, project: &str, name: &str, words: &[&str]) -> Result<()> {
        let Err(error) = self.boot(user, project, name, words) else {
            bail!("server {name} runs on {}", self.server(name)?["OS-EXT-SRV-ATTR:host"]);
        };
        let server = self.server(name).with_context(|| format!("{error:#}"))?;
        let fault = server["fault"]["message"].as_str().unwrap_or_default();
        ensure!(server["status"] == "ERROR" && fault.contains("No valid host"), "{server}");
        self.client(user, project, &["server", "delete", "--wait", name]).map(drop)
    }

    /// That server of anybody's, as the administrator sees it.
    pub fn server(&self, name: &str) -> Result<Value> {
        let found = self.servers_named(name)?.into_iter().next();
        found.with_context(|| format!("there is no server {name}"))
    }

    /// The host of a server, which must run.
    pub fn host_of(&self, name: &str) -> Result<String> {
        let server = self.server(name)?;
        ensure!(server["status"] == "ACTIVE", "{server}");
        Ok(server["OS-EXT-SRV-ATTR:host"].as_str().context("no host")?.to_owned())
    }

    /// Whether there is such a server.
    pub fn is_there(&self, name: &str) -> Result<bool> {
        Ok(!self.servers_named(name)?.is_empty())
    }

    fn servers_named(&self, name: &str) -> Result<Vec<Value>> {
        let mut found = self.nova(&format!("servers/detail?all_tenants=1&name={name}"))?;
        let servers = found["servers"].as_array_mut().with_context(|| format!("no servers of {name}"))?;
        // The name is a pattern for Nova.
        Ok(std::mem::take(servers).into_iter().filter(|server| server["name"] == name).collect())
    }

    /// Deletes the servers of all projects.
    pub fn delete_all_servers(&self) -> Result<()> {
        self.delete_servers(&self.admin, "servers?all_tenants=1")
    }

    /// Deletes those of the project that the token is for.
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

    /// What Nova answers to the administrator.
    pub fn nova(&self, path: &str) -> Result<Value> {
        Ok(self.cloud.ask(&Method::GET, &self.nova_url(path), &self.admin, None)?.body)
    }

    /// What Placement answers to the administrator.
    pub fn placement(&self, path: &str) -> Result<Value> {
        Ok(self.ask_placement(&Method::GET, path, None)?.body)
    }

    /// Has the administrator change something in Placement.
    pub fn change_placement(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<()> {
        let answer = self.ask_placement(method, path, body)?;
        ensure!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        Ok(())
    }

    fn ask_placement(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        let url = format!("http://127.0.0.1:{}/{path}", self.lab.port + PLACEMENT);
        self.cloud.ask_version(method, &url, &self.admin, body, "placement 1.36")
    }

    /// The aggregate of that name.
    pub fn aggregate(&self, name: &str) -> Result<Option<Value>> {
        let all = self.nova("os-aggregates")?;
        let all = all["aggregates"].as_array().with_context(|| format!("no aggregates: {all}"))?;
        Ok(all.iter().find(|aggregate| aggregate["name"] == name).cloned())
    }

    /// The hosts in an aggregate.
    pub fn members(&self, aggregate: &str) -> Result<Vec<String>> {
        let found = self.aggregate(aggregate)?;
        let hosts = found.as_ref().and_then(|found| found["hosts"].as_array()).cloned().unwrap_or_default();
        Ok(hosts.iter().filter_map(|host| host.as_str().map(str::to_owned)).collect())
    }

    /// How many compute services are disabled.
    pub fn closed(&self) -> Result<usize> {
        let all = self.nova("os-services?binary=nova-compute")?;
        let all = all["services"].as_array().context("no services")?;
        Ok(all.iter().filter(|service| service["status"] == "disabled").count())
    }
}

/// The first reservation of a lease as the client prints it: after a line of words, and with JSON inside of JSON.
pub fn first_reservation(shown: &str) -> Result<Value> {
    let start = shown.find('{').with_context(|| shown.to_owned())?;
    let lease: Value = serde_json::from_str(&shown[start..]).with_context(|| shown.to_owned())?;
    let text = lease["reservations"].as_str().with_context(|| shown.to_owned())?;
    let mut reservations = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    Ok(reservations.next().context("no reservation")??)
}

/// The identifier of a host's provider in Placement.
pub fn provider(site: &Site<'_>, host: &str) -> Result<String> {
    let found = site.placement(&format!("resource_providers?name={host}"))?;
    Ok(found["resource_providers"][0]["uuid"].as_str().with_context(|| found.to_string())?.to_owned())
}

/// Placement's provider of a host has that trait, or has it not.
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
    // Nova and the service change providers as well: once more if somebody was faster.
    change().or_else(|_| change())
}

/// Tells the service to stop, which it must do without complaint.
pub fn ends_well(server: Server) -> Result<()> {
    let said = server.last_lines();
    let status = server.stop()?;
    ensure!(status.success(), "{status}:\n{said}");
    Ok(())
}

/// The text of a value; empty if it is none.
pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Waits until that is so.
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
