//! Compares Blazar and this service on one cloud. Each has three of its hosts, and both get the same requests
//! with the same token, in parallel or in turn. Measurements are printed; slowness fails no check.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::processor;
use chores::run::Executable;
use futures::future::try_join_all;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::cloud::{Cloud, People, administrator, of_project};
use super::site::{Site, text_of, until};
use super::{Lab, RESERVATION, empty, site};
use crate::leasing::date::Minute;
use crate::leasing::http::Http;
use crate::leasing::server::Server;

/// Number of compute hosts in the cloud, half for each service.
pub const HOSTS: u32 = 6;

/// Port of this service, as an offset from Keystone's. The catalog's entry points to Blazar.
const OURS: u16 = 6;

/// Free pool of this service. Blazar keeps the default one.
const OWN_POOL: &str = "allot-freepool";

/// Name of this service in the report.
const OWN_NAME: &str = "Allotment";

/// Number of leases in a measurement.
const LEASES: usize = 40;
/// Numbers of concurrent clients to measure with.
const CLIENTS: [usize; 2] = [1, 8];
/// Number of lease starts to measure.
const STARTS: usize = 3;
/// Request timeout.
const LIMIT: Duration = Duration::from_mins(2);
/// Polling interval for the start of a lease.
const LOOK: Duration = Duration::from_millis(100);

/// One of the two services under comparison.
struct Side {
    name: &'static str,
    http: Http,
    /// Returns the processor time used so far, in seconds.
    taken: Box<dyn Fn() -> Result<f64>>,
}

pub fn run(cases: &mut Cases, lab: &Lab, ours: &Executable, cloud: &Cloud, people: &People) -> Result<()> {
    let directory = lab.root.join("allot-comparison");
    empty(&directory)?;
    let launch = site::launch(lab, ours, &directory, people, "keystone")?
        .at(&format!("127.0.0.1:{}", lab.port + OURS))
        .with(["--openstack-free-pool", OWN_POOL]);
    let admin = cloud.log_in(&administrator(), Some(&of_project("admin")))?.0;
    let server = launch.start()?;
    let site = Site { lab, ours, cloud, launch, admin };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    cases.check("each service has half of the hosts", || {
        for host in 1..=HOSTS / 2 {
            site.admin_client(&["reservation", "host", "create", &format!("host{host}")])?;
        }
        let own = Http::new(server.url(), LIMIT)?.with_token(&site.admin);
        for host in HOSTS / 2 + 1..=HOSTS {
            let body = json!({"name": format!("host{host}")});
            own.call(&runtime, Method::POST, "/v1/os-hosts", Some(&body))?.expect(201)?;
        }
        until("hosts are in no pool", || Ok(site.members(OWN_POOL)?.len() == HOSTS as usize / 2))
    });
    let token = cloud.token("alice", "physics")?;
    let sides = [blazar(lab, &token)?, own(&server, &token)?];
    let comparison = Comparison { site: &site, runtime, base: Minute::now().plus(60 * 24 * 10) };
    for side in &sides {
        let mut first = 0;
        for clients in CLIENTS {
            let what = format!("{}: {LEASES} leases of a host by {clients} clients", side.name);
            cases.check(&what, || comparison.creations(side, clients, first));
            first += LEASES;
        }
        cases.check(&format!("{}: {} clients want the same hosts", side.name, CLIENTS[1]), || {
            let accepted = comparison.race(side, first)?;
            // Blazar's result is only reported; this suite doesn't judge it.
            ensure!(side.name != OWN_NAME || accepted == HOSTS as usize / 2, "{accepted} were accepted");
            Ok(())
        });
    }
    cases.check("leases start on time", || comparison.starts(&sides));
    cases.check("the service shuts down cleanly", || site::ends_well(server));
    Ok(())
}

fn blazar(lab: &Lab, token: &str) -> Result<Side> {
    let leaders = ["blazar-api", "blazar-manager"].map(|service| lab.process(service));
    let leaders = leaders.into_iter().collect::<Result<Vec<u32>>>()?;
    let url = format!("http://127.0.0.1:{}", lab.port + RESERVATION);
    Ok(Side {
        name: "Blazar",
        http: Http::new(&url, LIMIT)?.with_token(token),
        taken: Box::new(move || leaders.iter().map(|leader| processor::of_session(*leader)).sum()),
    })
}

fn own(server: &Server, token: &str) -> Result<Side> {
    let process = server.process();
    Ok(Side {
        name: OWN_NAME,
        http: Http::new(server.url(), LIMIT)?.with_token(token),
        taken: Box::new(move || processor::of_process(process)),
    })
}

struct Comparison<'a> {
    site: &'a Site<'a>,
    runtime: Runtime,
    /// Start of the first window of future leases.
    base: Minute,
}

impl Comparison<'_> {
    /// A one-hour lease of a host, in the window with that number.
    fn lease(&self, name: &str, window: usize) -> Result<Value> {
        let start = self.base.plus(120 * i64::try_from(window)?);
        Ok(lease(name, &start.sent(), &start.plus(60).sent()))
    }

    /// Creates leases in windows without contention, and waits until each has its aggregate in Nova.
    fn creations(&self, side: &Side, clients: usize, first: usize) -> Result<()> {
        let leases = (first..first + LEASES).map(|number| self.lease(&format!("c{number}"), number));
        let leases = leases.collect::<Result<Vec<_>>>()?;
        let (next, taken, started) = (Cell::new(0), (side.taken)()?, Instant::now());
        let client = async |_| {
            let mut made = Vec::new();
            while let Some(lease) = leases.get(next.replace(next.get() + 1)) {
                let asked = Instant::now();
                let answer = side.http.send(Method::POST, "/v1/leases", Some(lease)).await?;
                ensure!(answer.status == 201, "{}: {}", answer.status, answer.body);
                let reservation = text_of(&answer.body["lease"]["reservations"][0]["id"]);
                made.push((asked.elapsed().as_secs_f64(), reservation));
            }
            Ok(made)
        };
        let made = self.runtime.block_on(try_join_all((0..clients).map(client)))?.concat();
        let answered = started.elapsed().as_secs_f64();
        until("some have no aggregate", || {
            let all = self.site.nova("os-aggregates")?;
            let all = all["aggregates"].as_array().context("no aggregates")?;
            let has = |(_, reservation): &(f64, String)| all.iter().any(|pool| pool["name"] == **reservation);
            Ok(made.iter().all(has))
        })?;
        let (prepared, taken) = (started.elapsed().as_secs_f64(), (side.taken)()? - taken);
        let mut waits: Vec<f64> = made.iter().map(|(seconds, _)| *seconds).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len() as f64;
        println!(
            "{}, {clients} clients: {:.2} leases a second, {:.2} with their aggregates; half of the answers within {:.3} s, all \
             within {:.3} s; {:.3} s of processor time each",
            side.name,
            count / answered,
            count / prepared,
            waits[waits.len() / 2],
            waits[waits.len() - 1],
            taken / count,
        );
        Ok(())
    }

    /// Has more clients than hosts request a host for the same window. Returns the number of accepted
    /// requests.
    fn race(&self, side: &Side, window: usize) -> Result<usize> {
        let started = Instant::now();
        let client = async |number| {
            let lease = self.lease(&format!("r{number}"), window)?;
            side.http.send(Method::POST, "/v1/leases", Some(&lease)).await
        };
        let answers = self.runtime.block_on(try_join_all((0..CLIENTS[1]).map(client)))?;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        println!("{}: answered {statuses:?} in {:.2} s", side.name, started.elapsed().as_secs_f64());
        Ok(statuses.iter().filter(|status| **status == 201).count())
    }

    /// Measures the delay between a lease's start time and its status ACTIVE.
    fn starts(&self, sides: &[Side]) -> Result<()> {
        for round in 0..STARTS {
            // 20 seconds ahead, because Blazar needs a while to create a lease.
            let start = Minute::begins_in(20);
            let wanted = lease(&format!("s{round}"), &start.sent(), &start.plus(60).sent());
            let mut open = Vec::new();
            for side in sides {
                let made = side.http.call(&self.runtime, Method::POST, "/v1/leases", Some(&wanted))?;
                ensure!(made.status == 201, "{}: {}", side.name, made.body);
                open.push((side, format!("/v1/leases/{}", text_of(&made.body["lease"]["id"]))));
            }
            let paths: Vec<(&Side, String)> = open.clone();
            while !open.is_empty() {
                let late = Timestamp::now().duration_since(start.instant()).as_secs_f64();
                if late > 120.0 {
                    bail!("leases do not start");
                }
                let mut left = Vec::new();
                for (side, path) in open {
                    let shown = side.http.call(&self.runtime, Method::GET, &path, None)?.expect(200)?;
                    if shown["lease"]["status"] == "ACTIVE" {
                        let late = Timestamp::now().duration_since(start.instant()).as_secs_f64();
                        println!("{}: active {late:.1} s after its time", side.name);
                    } else {
                        left.push((side, path));
                    }
                }
                open = left;
                sleep(LOOK);
            }
            for (side, path) in paths {
                let ended = side.http.call(&self.runtime, Method::DELETE, &path, None)?.status;
                ensure!((200..300).contains(&ended), "{}: {ended}", side.name);
            }
        }
        Ok(())
    }
}

fn lease(name: &str, start: &str, end: &str) -> Value {
    json!({
        "name": name, "start_date": start, "end_date": end, "events": [],
        "reservations": [{
            "resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "",
            "resource_properties": "",
        }],
    })
}
