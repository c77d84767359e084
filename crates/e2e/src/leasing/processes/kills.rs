//! `kill -9` during handovers (Blazar's defect W4).

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::random::Random;
use chores::run::Executable;
use serde_json::json;

use crate::leasing::acknowledged::{Acknowledged, every_host_can_be_leased};
use crate::leasing::http::Caller;
use crate::leasing::overlap::no_overlap;
use crate::leasing::server::{Launch, Server};

/// Number of kills.
const KILLS: usize = 8;
/// Number of hosts. Some are being handed over at any time.
const HOSTS: usize = 12;
/// Maximum time from the last request to the kill, in milliseconds. Handovers take about as long.
const WITHIN_MILLIS: i64 = 600;
const SEED: u64 = 4;

pub fn run(cases: &mut Cases, ours: &Executable) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = launch(ours, directory.path());
    let mut server = launch.start()?;
    for host in 1..=HOSTS {
        server.caller().post("/v1/os-hosts", &json!({"id": host.to_string()}))?.expect(201)?;
    }
    let mut random = Random::new(SEED);
    let mut acknowledged = Acknowledged::default();
    for kill in 1..=KILLS {
        let Some(again) =
            cases.check(&format!("w4_kill_{kill}_in_the_middle_of_hand_overs_loses_no_lease"), || {
                let again = round(&launch, server, &mut acknowledged, &mut random)?;
                acknowledged.all_there(again.caller())?;
                no_overlap(again.caller())?;
                Ok(again)
            })
        else {
            return Ok(());
        };
        server = again;
    }
    cases.check("w4_after_kills_every_lease_gets_where_it_was_going", || {
        ensure!(acknowledged.len() > KILLS, "hardly any lease was acknowledged");
        acknowledged.all_settle(server.caller()).with_context(|| server.last_lines())
    });
    cases.check("w4_after_kills_no_host_is_stranded", || every_host_can_be_leased(server.caller(), HOSTS));
    cases.check("a service that is told to stop does so, and ends well", || {
        let status = server.stop()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    });
    Ok(())
}

fn launch(ours: &Executable, directory: &Path) -> Launch {
    Launch::new(ours, directory).with_machines(HOSTS).with_lifelike_machines()
}

/// Ends and creates leases, kills the service while a client is still requesting more, and starts it again.
fn round(
    launch: &Launch,
    server: Server,
    acknowledged: &mut Acknowledged,
    random: &mut Random,
) -> Result<Server> {
    let caller = server.caller();
    for id in acknowledged.running() {
        match random.below(3) {
            0 => acknowledged.end(caller, &id)?,
            1 => acknowledged.delete(caller, &id)?,
            _ => {}
        }
    }
    for _ in 0..random.between(2, 4) {
        let hosts = 1 + random.below(3);
        // Can be refused because of a shortage, which is an answer too.
        acknowledged.create(caller, hosts)?;
    }
    let pause = Duration::from_millis(random.between(0, WITHIN_MILLIS) as u64);
    let url = server.url().to_owned();
    let asking = thread::spawn(move || asked_until_it_is_gone(&url));
    thread::sleep(pause);
    server.kill()?;
    let asked = asking.join().map_err(|_| anyhow::anyhow!("the client broke off"))??;
    for answer in asked {
        acknowledged.created(Ok(answer))?;
    }
    launch.start()
}

/// Requests leases of a single host until a request gets no answer, and returns all answers.
fn asked_until_it_is_gone(url: &str) -> Result<Vec<crate::leasing::http::Answer>> {
    let caller = Caller::new(url)?;
    let mut acknowledged = Acknowledged::default();
    let mut answers = Vec::new();
    while let Ok(answer) = acknowledged.create(&caller, 1) {
        answers.push(answer);
        thread::sleep(Duration::from_millis(20));
    }
    Ok(answers)
}
