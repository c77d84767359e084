//! `allot import blazar` takes over a cloud in which Blazar has leases of all kinds.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::run::{Executable, output_of};
use reqwest::Method;
use serde_json::{Value, json};

use super::addresses::external_network;
use super::cloud::{Cloud, OF_NOVA, PASSWORD, People, administrator, of_project};
use super::site::{FREE_POOL, Site, text_of, until};
use super::{Lab, RESERVATION, empty, site};
use crate::leasing::date::Minute;

/// Number of compute hosts in the cloud.
pub const HOSTS: u32 = 6;

/// Number of leases that Blazar has at the takeover.
const LEASES: usize = 50;

/// Minutes until one lease ends and another one starts. Both happen after the takeover.
const DUE: i64 = 11;

pub fn run(cases: &mut Cases, lab: &Lab, ours: &Executable, cloud: &Cloud, people: &People) -> Result<()> {
    let directory = lab.root.join("allot-import");
    empty(&directory)?;
    let launch = site::launch(lab, ours, &directory, people, "keystone")?;
    let admin = cloud.log_in(&administrator(), Some(&of_project("admin")))?.0;
    let place = Site { lab, ours, cloud, launch, admin };
    let import = Import::new(&place, directory)?;
    lab.tell("leases of Blazar");
    let Some(before) = cases.check("Blazar has leases of all kinds, with servers", || import.fill()) else {
        return Ok(());
    };
    lab.tell("reading and comparing");
    cases.check("Blazar's records are read, and the cloud agrees with them", || {
        let said = import.allot(&["--read"])?;
        ensure!(
            said.contains(&format!("{HOSTS} hosts, {LEASES} leases")) && said.contains("3 addresses"),
            "{said}"
        );
        let said = import.allot(&["--config", &import.settings()])?;
        ensure!(said.contains("No changes were made. Stop blazar-manager"), "{said}");
        Ok(())
    });
    cases.check("the import is refused while Blazar's manager runs", || {
        import.refused(&["--take-over"], "still responds")?;
        import.is_as(&before)
    });
    lab.tell("Blazar's manager is stopped");
    lab.stop("blazar-manager")?;
    cases.check("it is taken over without touching a server, and can be undone", || {
        let said = import.allot(&["--config", &import.settings(), "--take-over"])?;
        ensure!(said.contains("Imported into"), "{said}");
        let after = import.sight()?;
        ensure!(after.servers == before.servers && after.addresses == before.addresses, "{after:#?}");
        ensure!(after.aggregates_of_blazar() == before.aggregates, "{after:#?}");
        ensure!(after.aggregates != before.aggregates, "no aggregate has a key of ours");
        import.allot(&["--config", &import.settings(), "--undo"])?;
        import.is_as(&before)?;
        fs::remove_file(import.directory.join("allot.db")).context("no database")
    });
    cases.check("if it cannot be told whether the manager runs, the operator has to say so", || {
        lab.stop("blazar-api")?;
        import.refused(&["--take-over"], "cannot tell")?;
        import.allot(&["--config", &import.settings(), "--take-over", "--manager-stopped"]).map(drop)
    });
    lab.tell("allot serve");
    let server = place.launch.start()?;
    cases.check("all leases exist unchanged", || {
        let leases = import.leases()?;
        let theirs: BTreeMap<_, _> = before.leases.iter().collect();
        ensure!(leases.iter().collect::<BTreeMap<_, _>>() == theirs, "{leases:#?}");
        until("the doctor finds differences", || Ok(import.doctor()?.contains("agree")))
    });
    cases.check("servers keep running, and owners start more servers", || {
        let now = import.sight()?;
        ensure!(now.servers == before.servers && now.addresses == before.addresses, "{now:#?} {before:#?}");
        place.boot("alice", "physics", "another", &["--flavor", &before.room])?;
        let hint = format!("reservation={}", before.whole);
        place.boot("alice", "physics", "guest2", &["--flavor", "small", "--hint", &hint])?;
        place.refused("bob", "chemistry", "foreign", &["--flavor", "small", "--hint", &hint])
    });
    lab.tell("a lease ends and another one starts");
    cases.check("leases start and end at their times", || {
        let time = Minute::read(&text_of(&place.alices("short")?["end_date"]))?;
        until_late("a lease does not end", || Ok(place.alices("short")?["status"] == "TERMINATED"))?;
        ensure!(Minute::now().instant() >= time.instant(), "it ended too early");
        until_late("a lease does not start", || Ok(place.alices("soon")?["status"] == "ACTIVE"))?;
        let hint = format!("reservation={}", text_of(&place.alices("soon")?["reservations"][0]["id"]));
        place.boot("alice", "physics", "late", &["--flavor", "small", "--hint", &hint])?;
        place.refused("alice", "physics", "gone", &["--flavor", "small"])
    });
    cases.check("deleted leases leave no traces", || {
        for id in import.leases()?.keys() {
            let url = import.url(&format!("leases/{id}"));
            let answer = cloud.ask(&Method::DELETE, &url, &place.admin, None)?;
            ensure!([200, 202, 204, 404].contains(&answer.status), "{}: {}", answer.status, answer.body);
        }
        until("hosts did not return", || Ok(place.members(FREE_POOL)?.len() == HOSTS as usize))?;
        until("aggregates stay", || Ok(import.sight()?.aggregates.len() == 1))?;
        until("addresses stay", || Ok(import.sight()?.addresses.is_empty()))?;
        ensure!(place.closed()? == 0, "compute services are disabled");
        let flavors = place.nova("flavors/detail?is_public=None")?;
        ensure!(!flavors.to_string().contains("reservation:"), "{flavors}");
        Ok(())
    });
    cases.check("the service shuts down cleanly", || site::ends_well(server));
    Ok(())
}

/// Snapshot of the cloud and of Blazar's leases.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sight {
    /// By identifier, with the fields for which Blazar and we return the same values.
    leases: BTreeMap<String, Value>,
    /// By name.
    servers: BTreeMap<String, Value>,
    /// Hosts and metadata, by name.
    aggregates: BTreeMap<String, (Value, Value)>,
    /// Floating IPs by identifier, with tags and project.
    addresses: BTreeMap<String, Value>,
    /// Identifiers of a running host reservation and a running instance reservation.
    whole: String,
    room: String,
}

impl Sight {
    /// Aggregates without the metadata keys that we add.
    fn aggregates_of_blazar(&self) -> BTreeMap<String, (Value, Value)> {
        let mut same = self.aggregates.clone();
        for (_, metadata) in same.values_mut() {
            if let Value::Object(keys) = metadata {
                keys.retain(|key, _| !key.starts_with("allot:") && key != "filter_lease_id");
            }
        }
        same
    }
}

struct Import<'a> {
    site: &'a Site<'a>,
    directory: PathBuf,
}

impl<'a> Import<'a> {
    fn new(site: &'a Site<'a>, directory: PathBuf) -> Result<Self> {
        let import = Self { site, directory };
        let place = |name: &str| import.directory.join(name).display().to_string();
        let settings = format!(
            "fleet = \"openstack\"\nregion = \"RegionOne\"\ndatabase = \"sqlite://{}\"\n[openstack]\n\
             auth_url = \"http://127.0.0.1:{}\"\nusername = \"{OF_NOVA}\"\nsecret_file = \"{}\"\n",
            place("allot.db"),
            site.lab.port,
            place("nova.password"),
        );
        chores::run::write(&import.directory.join("allot.toml"), settings.as_bytes())?;
        Ok(import)
    }

    fn settings(&self) -> String {
        self.directory.join("allot.toml").display().to_string()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/v1/{path}", self.site.lab.port + RESERVATION)
    }

    /// Runs `allot import blazar` as the administrator.
    fn command(&self, words: &[&str]) -> std::process::Command {
        let file = self.directory.join("blazar.json").display().to_string();
        let mut command = self.site.lab.client(self.site.ours.path(), "admin", PASSWORD, "admin");
        command.args(["import", "blazar", &file]).args(words);
        command
    }

    fn allot(&self, words: &[&str]) -> Result<String> {
        output_of(&mut self.command(words))
    }

    /// Runs the import, which must fail with that reason.
    fn refused(&self, words: &[&str], reason: &str) -> Result<()> {
        let output = self.command(words).args(["--config", &self.settings()]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && said.contains(reason), "{}: {said}", output.status);
        Ok(())
    }

    fn doctor(&self) -> Result<String> {
        self.site.allot("admin", "admin", &["doctor"])
    }

    /// Creates hosts, leases and servers in Blazar.
    fn fill(&self) -> Result<Sight> {
        let site = self.site;
        for host in 1..=HOSTS {
            site.admin_client(&["reservation", "host", "create", &format!("host{host}")])?;
        }
        let alice = site.cloud.token("alice", "physics")?;
        let now = Minute::now();
        let lease = |name: &str, start: Option<i64>, end: i64, reservation: &Value| -> Result<()> {
            let start = start.map_or_else(|| "now".to_owned(), |minutes| now.plus(minutes).sent());
            let body = json!({
                "name": name, "start_date": start, "end_date": now.plus(end).sent(),
                "reservations": [reservation], "events": [],
            });
            // On a busy machine, Blazar occasionally gives up on Nova, rolls the lease back and answers 500.
            let ask = || site.cloud.ask(&Method::POST, &self.url("leases"), &alice, Some(&body));
            let mut answer = ask()?;
            for _ in 0..3 {
                if answer.status == 500 {
                    answer = ask()?;
                }
            }
            ensure!(answer.status == 201, "{name}: {}", answer.body);
            Ok(())
        };
        let hosts = json!({
            "resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": "",
        });
        let room = |affinity: Value| {
            json!({
                "resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "amount": 2,
                "affinity": affinity, "resource_properties": "",
            })
        };
        let flavor = json!({
            "resource_type": "flavor:instance", "flavor_id": self.flavor()?, "amount": 2, "affinity": null,
            "resource_properties": "",
        });
        let network = external_network(site)?;
        for last in 220..223 {
            let address = format!("203.0.113.{last}");
            site.admin_client(&["reservation", "floatingip", "create", &network, &address])?;
        }
        let address = json!({
            "resource_type": "virtual:floatingip", "network_id": network, "amount": 1, "required_floatingips": [],
        });
        let long = 60 * 24;
        lease("over", None, 2, &hosts)?;
        lease("whole", None, long, &hosts)?;
        lease("short", None, DUE, &hosts)?;
        lease("soon", Some(DUE), long, &hosts)?;
        lease("room", None, long, &room(Value::Null))?;
        lease("apart", None, long, &room(json!(false)))?;
        lease("address", None, long, &address)?;
        let kinds = [hosts.clone(), room(Value::Null), flavor, hosts, address];
        // Nova allows a project ten server groups, and all of these belong to Blazar's own project.
        let spread = [room(json!(true)), room(json!(false)), room(json!(true)), room(json!(false))];
        for number in 0..LEASES - 7 {
            let start = long * (2 + i64::try_from(number)?);
            // Windows don't overlap, because Blazar doesn't allocate a host to a flavor while a lease has
            // capacity on it.
            lease(
                &format!("later{number}"),
                Some(start),
                start + long / 2,
                spread.get(number).unwrap_or(&kinds[number % kinds.len()]),
            )?;
        }
        for name in ["whole", "short", "room", "apart", "address"] {
            site.until_active(name)?;
        }
        let whole = text_of(&site.alices("whole")?["reservations"][0]["id"]);
        let room = text_of(&site.alices("room")?["reservations"][0]["id"]);
        let short = text_of(&site.alices("short")?["reservations"][0]["id"]);
        for (name, flavor, of) in [("guest", "small", &whole), ("brief", "small", &short)] {
            site.boot(
                "alice",
                "physics",
                name,
                &["--flavor", flavor, "--hint", &format!("reservation={of}")],
            )?;
        }
        site.boot("alice", "physics", "roomer", &["--flavor", &room])?;
        until_late("a lease is not over", || Ok(site.alices("over")?["status"] == "TERMINATED"))?;
        Ok(Sight { leases: self.leases()?, whole, room, ..self.sight()? })
    }

    /// Identifier of the flavor `small`.
    fn flavor(&self) -> Result<String> {
        let flavors = self.site.nova("flavors")?;
        let all = flavors["flavors"].as_array().context("no flavors")?;
        let small = all.iter().find(|flavor| flavor["name"] == "small").context("no flavor small")?;
        Ok(text_of(&small["id"]))
    }

    /// Leases of all projects, with the fields for which Blazar and we return the same values.
    fn leases(&self) -> Result<BTreeMap<String, Value>> {
        let answer = self.site.cloud.ask(&Method::GET, &self.url("leases"), &self.site.admin, None)?;
        let Some(all) = answer.body["leases"].as_array() else { bail!("{}: {}", answer.status, answer.body) };
        let told = |lease: &Value| {
            let fields = ["name", "project_id", "user_id", "start_date", "end_date", "status"];
            let mut told: Value =
                fields.iter().map(|name| ((*name).to_owned(), lease[*name].clone())).collect();
            let mut reservations = lease["reservations"].as_array().cloned().unwrap_or_default();
            reservations.sort_by_key(|own| text_of(&own["id"]));
            let kept = ["id", "resource_type", "status", "amount", "affinity", "flavor_id", "min", "max"];
            let reservation = |own: &Value| -> Value {
                kept.iter().map(|name| ((*name).to_owned(), own[*name].clone())).collect()
            };
            told["reservations"] = reservations.iter().map(reservation).collect();
            (text_of(&lease["id"]), told)
        };
        Ok(all.iter().map(told).collect())
    }

    /// Current servers, aggregates and addresses of the cloud.
    fn sight(&self) -> Result<Sight> {
        let servers = self.site.nova("servers/detail?all_tenants=1")?;
        let servers = servers["servers"].as_array().context("no servers")?.iter();
        let server = |server: &Value| {
            let fields = ["id", "status", "updated", "OS-EXT-SRV-ATTR:host"];
            let told = fields.iter().map(|name| ((*name).to_owned(), server[*name].clone())).collect();
            (text_of(&server["name"]), told)
        };
        let aggregates = self.site.nova("os-aggregates")?;
        let aggregates = aggregates["aggregates"].as_array().context("no aggregates")?.iter();
        let aggregate = |aggregate: &Value| {
            (text_of(&aggregate["name"]), (aggregate["hosts"].clone(), aggregate["metadata"].clone()))
        };
        let (servers, aggregates) = (servers.map(server).collect(), aggregates.map(aggregate).collect());
        let words = ["floating", "ip", "list", "--long", "-f", "json"];
        let addresses: Vec<Value> = serde_json::from_str(&self.site.admin_client(&words)?)?;
        let address =
            |ip: Value| (text_of(&ip["ID"]), json!([ip["Floating IP Address"], ip["Tags"], ip["Project"]]));
        let addresses = addresses.into_iter().map(address).collect();
        Ok(Sight { servers, aggregates, addresses, ..Sight::default() })
    }

    /// Checks that the cloud hasn't changed since `before`.
    fn is_as(&self, before: &Sight) -> Result<()> {
        let now = self.sight()?;
        let same = now.aggregates == before.aggregates && now.servers == before.servers;
        ensure!(same && now.addresses == before.addresses, "{now:#?}");
        Ok(())
    }
}

/// Calls `until` up to `DUE` + 1 times, for events that are due in a few minutes.
fn until_late(otherwise: &str, mut check: impl FnMut() -> Result<bool>) -> Result<()> {
    for _ in 0..DUE {
        if until(otherwise, &mut check).is_ok() {
            return Ok(());
        }
    }
    until(otherwise, check)
}
