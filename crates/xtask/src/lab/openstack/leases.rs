//! Leases on a real Nova, made and used with the stock clients.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::{Cloud, OF_ALL, People, administrator, of_project};
use super::{Lab, PASSWORD, RESERVATION, empty};
use crate::leasing::cases::Cases;
use crate::leasing::server::Launch;
use crate::run::{Executable, must_run, output_of};

/// Nova, counted from Keystone's port.
const NOVA: u16 = 3;

/// How long anything in the cloud may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// The free pool's aggregate.
const FREE_POOL: &str = "freepool";

/// The tests of the driver that need a cloud.
pub fn tests_of_the_driver(cases: &mut Cases, lab: &Lab) {
    cases.check("the driver keeps the promises of all drivers", || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["test", "--offline", "--workspace", "--test", "cloud", "--", "--ignored"]);
        command.args(["--test-threads", "1"]);
        command.env("ALLOT_LAB_KEYSTONE", format!("http://127.0.0.1:{}/v3", lab.port));
        must_run(command.env("ALLOT_LAB_PASSWORD", PASSWORD))
    });
}

/// The cloud, and a service that drives it.
struct Site<'a> {
    lab: &'a Lab,
    cloud: &'a Cloud,
    launch: Launch,
    admin: String,
}

/// Leases of hosts and of instances, with everything that fails meanwhile.
pub fn on_nova(
    cases: &mut Cases,
    lab: &Lab,
    ours: &Executable,
    cloud: &Cloud,
    people: &People,
) -> Result<()> {
    let directory = lab.root.join("allot-nova");
    empty(&directory)?;
    let launch = launch(lab, ours, &directory, people)?;
    let mut server = launch.start()?;
    let admin = cloud.log_in(&administrator(), Some(&of_project("admin")))?.0;
    let site = Site { lab, cloud, launch, admin };
    cases.check("hosts are taken on, and are in the free pool of Nova", || {
        for host in ["host1", "host2", "host3"] {
            site.admin_client(&["reservation", "host", "create", host])?;
        }
        ensure!(site.members(FREE_POOL)?.len() == 3, "{:?}", site.members(FREE_POOL)?);
        let shown = site.admin_client(&["reservation", "host", "list", "-f", "value"])?;
        ensure!(shown.contains("host3") && shown.contains("8192"), "{shown}");
        Ok(())
    });
    cases.check("a preemptible server runs in the free pool, any other nowhere", || {
        site.boot("bob", "chemistry", "spot", &["--flavor", "preempt"])?;
        match site.boot("bob", "chemistry", "refused", &["--flavor", "small"]) {
            Ok(()) => bail!("it runs"),
            Err(_) => site.client("bob", "chemistry", &["server", "delete", "refused"]).map(drop),
        }
    });
    let mine = cases.check("a lease of all hosts starts once the preemptible server has left", || {
        let reservation =
            site.lease("alice", "physics", "mine", "resource_type=physical:host,min=3,max=3")?;
        let pool = site.aggregate(&reservation)?.context("no aggregate")?;
        ensure!(pool["availability_zone"] == format!("blazar_{reservation}"), "{pool}");
        ensure!(pool["metadata"]["blazar:owner"] == people.physics.as_str(), "{pool}");
        ensure!(site.members(&reservation)?.len() == 3 && site.members(FREE_POOL)?.is_empty(), "{pool}");
        ensure!(!site.servers("bob", "chemistry")?.contains("spot"), "the preemptible server is still there");
        Ok(reservation)
    });
    if let Some(reservation) = mine {
        let hint = format!("reservation={reservation}");
        let words = ["--flavor", "small", "--hint", hint.as_str()];
        cases.check("the owner's server runs there, somebody else's with the same hint does not", || {
            site.boot("alice", "physics", "guest", &words)?;
            match site.boot("bob", "chemistry", "foreign", &words) {
                Ok(()) => bail!("a foreign server runs in the lease"),
                Err(_) => site.client("bob", "chemistry", &["server", "delete", "foreign"]).map(drop),
            }
        });
        let killed = cases.check("it ends although the service is killed in the middle", || {
            let mut deleting = site.command("alice", "physics", &["reservation", "lease", "delete", "mine"]);
            let mut deleting = deleting.spawn().context("cannot run the client")?;
            until("nothing is taken back", || Ok(site.closed()? > 0))?;
            let ended = server.kill();
            deleting.wait()?;
            ended?;
            let started = site.launch.start()?;
            until("hosts do not come back", || Ok(site.members(FREE_POOL)?.len() == 3))?;
            until("services stay disabled", || Ok(site.closed()? == 0))?;
            ensure!(site.aggregate(&reservation)?.is_none(), "the aggregate is still there");
            ensure!(!site.servers("alice", "physics")?.contains("guest"), "the server is still there");
            Ok(started)
        });
        server = match killed {
            Some(server) => server,
            None => site.launch.start()?,
        };
    }
    cases.check("a lease that is made while Nova is away starts when it is back", || {
        lab.stop("nova-api")?;
        let make = site.command("alice", "physics", &Site::lease_words("late", HOST_LEASE));
        output_of(&mut { make })?;
        sleep(Duration::from_secs(5));
        lab.up()?;
        site.until_active("late")?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "late"])?;
        until("the host does not come back", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    cases.check("a lease of instances has a flavor that starts as many servers as were leased", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=None";
        let reservation = site.lease("alice", "physics", "room", wanted)?;
        for name in ["room-1", "room-2"] {
            site.boot("alice", "physics", name, &["--flavor", &reservation])?;
        }
        if site.boot("alice", "physics", "room-3", &["--flavor", &reservation]).is_ok() {
            bail!("a third server runs in room for two");
        }
        site.client("alice", "physics", &["server", "delete", "room-3"])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "room"])?;
        until("the aggregate stays", || Ok(site.aggregate(&reservation)?.is_none()))?;
        let left = site.servers("alice", "physics")?;
        ensure!(!left.contains("room"), "{left}");
        Ok(())
    });
    what_nova_has_for_reservations(cases, &site);
    cases.check("no password and no token is in the log", || {
        let log = fs::read(directory.join("serve.log"))?;
        for secret in cloud.secrets().iter().map(String::as_str).chain([PASSWORD]) {
            ensure!(!log.windows(secret.len()).any(|part| part == secret.as_bytes()), "there is one");
        }
        Ok(())
    });
    cases.check("the service on Nova ends as it should", || server.stop().map(|status| status.success()));
    Ok(())
}

/// Aggregates, flavors and server groups, as answers name them.
fn what_nova_has_for_reservations(cases: &mut Cases, site: &Site<'_>) {
    cases.check(
        "the answer to a request for instances names what Nova has for them, for its owner to use",
        || {
            let wanted =
                "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=False";
            let answer = site.answer_to("spread", wanted)?;
            let text = |field: &str| answer[field].as_str().with_context(|| format!("no {field}: {answer}"));
            let (flavor, group) = (text("flavor_id")?, text("server_group_id")?);
            let aggregate = site.aggregate(flavor)?.context("no aggregate")?;
            ensure!(aggregate["id"] == answer["aggregate_id"], "{aggregate} {answer}");
            site.until_active("spread")?;
            let mut hosts = Vec::new();
            for name in ["spread-1", "spread-2"] {
                site.boot("alice", "physics", name, &["--flavor", flavor])?;
                let words = [
                    "server",
                    "list",
                    "--all-projects",
                    "--long",
                    "--name",
                    name,
                    "-f",
                    "value",
                    "-c",
                    "Host",
                ];
                hosts.push(site.admin_client(&words)?);
            }
            ensure!(hosts[0] != hosts[1], "{hosts:?}");
            let made = site.nova(&format!("os-server-groups/{group}"))?;
            ensure!(made["server_group"]["policies"] == json!(["anti-affinity"]), "{made}");
            site.client("alice", "physics", &["reservation", "lease", "delete", "spread"])?;
            until("the aggregate stays", || Ok(site.aggregate(flavor)?.is_none()))?;
            let left = site.nova(&format!("os-server-groups/{group}"))?;
            ensure!(left["itemNotFound"].is_object(), "{left}");
            let left = site.nova(&format!("flavors/{flavor}"))?;
            ensure!(left["itemNotFound"].is_object(), "{left}");
            Ok(())
        },
    );
    cases.check("a flavor of Nova's can be leased, and one that is not there cannot", || {
        let answer = site.answer_to("small", "resource_type=flavor:instance,flavor_id=small,amount=1")?;
        let flavor = answer["flavor_id"].as_str().with_context(|| answer.to_string())?;
        let made = site.nova(&format!("flavors/{flavor}"))?;
        let small = site.nova("flavors/small")?;
        ensure!(made["flavor"]["ram"] == small["flavor"]["ram"], "{made} {small}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "small"])?;
        match site.answer_to("none", "resource_type=flavor:instance,flavor_id=nowhere,amount=1") {
            Ok(made) => bail!("{made}"),
            Err(error) => ensure!(error.to_string().contains("nowhere"), "{error}"),
        }
        Ok(())
    });
    cases.check("a lease that starts later has its aggregate within two seconds", || {
        site.client("alice", "physics", &[&Site::lease_words("later", HOST_LEASE)[..], &LATER].concat())?;
        sleep(Duration::from_secs(2));
        let shown =
            site.client("alice", "physics", &["reservation", "lease", "show", "later", "-f", "json"])?;
        let reservation = first_reservation(&shown)?;
        let aggregate = site.aggregate(reservation["id"].as_str().context("no reservation")?)?;
        let aggregate = aggregate.with_context(|| format!("no aggregate: {reservation}"))?;
        ensure!(reservation["aggregate_id"] == aggregate["id"] && aggregate["id"].is_u64(), "{reservation}");
        site.client("alice", "physics", &["reservation", "lease", "delete", "later"])?;
        until("the aggregate stays", || Ok(site.aggregate(&text_of(&aggregate["name"]))?.is_none()))
    });
}

const HOST_LEASE: &str = "resource_type=physical:host,min=1,max=1";

/// A time far ahead.
const LATER: [&str; 4] = ["--start-date", "2040-01-01 10:00", "--end-date", "2040-01-01 12:00"];

/// The first reservation of a lease as the client prints it: after a line of words, and with JSON inside of JSON.
fn first_reservation(shown: &str) -> Result<Value> {
    let start = shown.find('{').with_context(|| shown.to_owned())?;
    let lease: Value = serde_json::from_str(&shown[start..]).with_context(|| shown.to_owned())?;
    let text = lease["reservations"].as_str().with_context(|| shown.to_owned())?;
    let mut reservations = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    Ok(reservations.next().context("no reservation")??)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The service that drives the cloud.
pub fn launch(lab: &Lab, ours: &Executable, directory: &Path, people: &People) -> Result<Launch> {
    let (of_service, of_nova) = (directory.join("keystone.password"), directory.join("nova.password"));
    crate::run::write(&of_service, people.secret.as_bytes())?;
    crate::run::write(&of_nova, PASSWORD.as_bytes())?;
    let options = [
        ("--keystone-auth-url", format!("http://127.0.0.1:{}", lab.port)),
        ("--keystone-username", people.user.clone()),
        ("--keystone-secret-file", of_service.display().to_string()),
        ("--openstack-username", "allot".to_owned()),
        ("--openstack-secret-file", of_nova.display().to_string()),
        ("--leases-grace", "10s".to_owned()),
        ("--region", "RegionOne".to_owned()),
    ];
    Ok(Launch::new(ours, directory)
        .at(&format!("127.0.0.1:{}", lab.port + RESERVATION))
        .with_openstack()
        .with_auth("keystone")
        .with(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value])))
}

impl Site<'_> {
    fn command(&self, user: &str, project: &str, words: &[&str]) -> Command {
        let password = if user == "admin" { PASSWORD } else { OF_ALL };
        let mut command = self.lab.client(&self.lab.program("openstack"), user, password, project);
        command.args(["--os-compute-api-version", "2.79"]).args(words);
        command
    }

    fn client(&self, user: &str, project: &str, words: &[&str]) -> Result<String> {
        output_of(&mut self.command(user, project, words))
    }

    fn admin_client(&self, words: &[&str]) -> Result<String> {
        self.client("admin", "admin", words)
    }

    fn servers(&self, user: &str, project: &str) -> Result<String> {
        self.client(user, project, &["server", "list", "-f", "value", "-c", "Name"])
    }

    /// Starts a server, and waits until it runs; an error if it does not.
    fn boot(&self, user: &str, project: &str, name: &str, words: &[&str]) -> Result<()> {
        let fixed = ["server", "create", "--image", "fake", "--nic", "none", "--wait", name];
        self.client(user, project, &[&fixed[..], words].concat())?;
        let status = self.client(user, project, &["server", "show", "-f", "value", "-c", "status", name])?;
        ensure!(status.trim() == "ACTIVE", "server {name} is {status}");
        Ok(())
    }

    fn lease_words<'w>(name: &'w str, reservation: &'w str) -> [&'w str; 6] {
        ["reservation", "lease", "create", "--reservation", reservation, name]
    }

    /// Makes a lease from now on, and waits until it is active; its reservation.
    fn lease(&self, user: &str, project: &str, name: &str, reservation: &str) -> Result<String> {
        self.client(user, project, &Self::lease_words(name, reservation))?;
        self.until_active(name)
    }

    /// The reservation in the answer to alice's request for a lease from now on.
    fn answer_to(&self, name: &str, reservation: &str) -> Result<Value> {
        let words = [&Self::lease_words(name, reservation)[..], &["-f", "json"]].concat();
        first_reservation(&self.client("alice", "physics", &words)?)
    }

    /// Waits until that lease of alice's is active; its reservation.
    fn until_active(&self, name: &str) -> Result<String> {
        let alice = self.cloud.token("alice", "physics")?;
        let url = format!("http://127.0.0.1:{}/v1/leases", self.lab.port + RESERVATION);
        let find = || -> Result<Value> {
            let answer = self.cloud.ask(&Method::GET, &url, &alice, None)?;
            let leases = answer.body["leases"].as_array().cloned().unwrap_or_default();
            let found = leases.into_iter().find(|lease| lease["name"] == name);
            found.with_context(|| format!("there is no lease {name}: {}", answer.status))
        };
        let mut lease = json!(null);
        let active = until("the lease does not start", || {
            lease = find()?;
            Ok(lease["status"] == "ACTIVE")
        });
        active.with_context(|| format!("{} {}", lease["status"], lease["status_reason"]))?;
        Ok(lease["reservations"][0]["id"].as_str().context("no reservation")?.to_owned())
    }

    fn nova(&self, path: &str) -> Result<Value> {
        let url = format!("http://127.0.0.1:{}/v2.1/{path}", self.lab.port + NOVA);
        Ok(self.cloud.ask(&Method::GET, &url, &self.admin, None)?.body)
    }

    fn aggregate(&self, name: &str) -> Result<Option<Value>> {
        let all = self.nova("os-aggregates")?;
        let all = all["aggregates"].as_array().with_context(|| format!("no aggregates: {all}"))?;
        Ok(all.iter().find(|aggregate| aggregate["name"] == name).cloned())
    }

    /// The hosts in an aggregate.
    fn members(&self, aggregate: &str) -> Result<Vec<String>> {
        let found = self.aggregate(aggregate)?;
        let hosts = found.as_ref().and_then(|found| found["hosts"].as_array()).cloned().unwrap_or_default();
        Ok(hosts.iter().filter_map(|host| host.as_str().map(str::to_owned)).collect())
    }

    /// How many compute services are disabled.
    fn closed(&self) -> Result<usize> {
        let all = self.nova("os-services?binary=nova-compute")?;
        let all = all["services"].as_array().context("no services")?;
        Ok(all.iter().filter(|service| service["status"] == "disabled").count())
    }
}

/// Waits until that is so.
fn until(otherwise: &str, mut check: impl FnMut() -> Result<bool>) -> Result<()> {
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
