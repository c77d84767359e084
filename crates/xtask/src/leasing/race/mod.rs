//! Races: many requests at the same moment for what only some of them can have (Blazar's defects W1, W2, W18), to
//! one service on SQLite, and spread over three on PostgreSQL.
//!
//! Which request wins is left to chance, and so differs from run to run. What holds afterwards does not.

mod scramble;
mod winners;

use anyhow::{Context, Result};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

pub use self::scramble::no_overlap;
use super::cases::Cases;
use super::date::Minute;
use super::fleet::{ADDRESSES, MACHINES, NETWORK};
use super::http::{Answer, Caller, Http, LIMIT, text};
use super::replicas::Cluster;
use super::server::Launch;
use crate::random::Random;
use crate::run::Executable;
use crate::tally::Tally;

/// Requests of a race.
const RUNNERS: usize = 12;
/// A window lies so far in the future that no lease of a race begins, in days.
const DAYS_AHEAD: i64 = 30;
const DAY: i64 = 24 * 60;

/// Runs so many rounds of each race on services of its own.
pub fn run(ours: &Executable, seed: u64, rounds: usize) -> Result<Tally> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    for machine in MACHINES {
        server.caller().post("/v1/os-hosts", &json!({"name": machine}))?.expect(201)?;
    }
    let mut tally = races("races on SQLite", &[server.url().to_owned()], seed, rounds)?;
    server.stop()?;
    let cluster = Cluster::start(ours, MACHINES.len())?;
    tally += races("races of three services on PostgreSQL", &cluster.urls(), seed, rounds)?;
    Ok(tally)
}

fn races(stage: &str, urls: &[String], seed: u64, rounds: usize) -> Result<Tally> {
    let ground = Ground::new(urls)?;
    let mut cases = Cases::new(stage);
    let mut random = Random::new(seed);
    let races = winners::all(&ground.caller)?;
    for round in 0..rounds {
        for race in &races {
            cases.check(&format!("{}, round {round}", race.sentence()), || race.run(&ground));
        }
        cases.check(
            &format!(
                "what_is_extended_is_not_leased_to_others_and_what_is_leased_is_not_removed, round {round}"
            ),
            || winners::extended_created_or_removed(&ground),
        );
        let turn = random.below(usize::MAX) as u64;
        cases.check(
            &format!("w18_changes_at_the_same_moment_leave_no_host_in_two_leases, seed {turn}"),
            || scramble::scramble(&ground, &mut Random::new(turn)),
        );
    }
    Ok(cases.tally())
}

/// Where races are run: services that share a database.
struct Ground {
    /// A client of the first, for what is not raced for.
    caller: Caller,
    /// Clients of each, for what is.
    services: Vec<Http>,
}

impl Ground {
    /// With the machines taken on already.
    fn new(urls: &[String]) -> Result<Self> {
        let caller = Caller::new(urls.first().context("no service")?)?;
        for address in ADDRESSES {
            let address = json!({"floating_network_id": NETWORK, "floating_ip_address": address});
            caller.post("/v1/floatingips", &address)?.expect(201)?;
        }
        let services = urls.iter().map(|url| Http::new(url, LIMIT)).collect::<Result<_>>()?;
        Ok(Self { caller, services })
    }

    /// Sends everything at once, spread over the services. Answers are in the order of the requests.
    fn together(&self, requests: &[(Method, String, Option<Value>)]) -> Result<Vec<Answer>> {
        let sent = requests.iter().enumerate().map(|(number, (method, path, body))| {
            self.services[number % self.services.len()].send(method.clone(), path, body.as_ref())
        });
        self.caller.wait(join_all(sent)).into_iter().collect()
    }

    fn clear(&self) -> Result<()> {
        for lease in self.caller.leases()? {
            self.caller.delete(&format!("/v1/leases/{}", text(&lease, "id")?))?.expect(204)?;
        }
        Ok(())
    }
}

fn create(name: &str, start: Minute, end: Minute, reservation: &Value) -> (Method, String, Option<Value>) {
    let body = json!({"name": name, "start_date": start.sent(), "end_date": end.sent(),
                      "reservations": [reservation]});
    (Method::POST, "/v1/leases".to_owned(), Some(body))
}
