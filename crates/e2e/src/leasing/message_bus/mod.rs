//! Notifications on a message bus: RabbitMQ, read with the library that OpenStack's services use.

mod broker;
mod listener;
mod nova;

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::python::Python;
use chores::run::{Executable, output_of};
use chores::tally::Tally;
use serde_json::{Value, json};

use self::broker::{Broker, USER};
use self::listener::{Listener, PATIENCE};
use super::acknowledged::of_hosts;
use super::date::Minute;
use super::http::{Caller, text};
use super::server::{Launch, Server, free_address};

/// Script that asks the broker about a queue.
const QUEUE: &str = include_str!("../../../leasing/broker_queue.py");

pub fn run(ours: &Executable) -> Result<Tally> {
    let mut cases = Cases::new("message bus");
    let directory = tempfile::tempdir()?;
    let at = |name: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(&path).map(|()| path)
    };
    let of_broker = at("broker")?;
    certificate(&of_broker)?;
    let mut broker = Broker::start(&of_broker)?;
    let listener = Listener::start(&of_broker, broker.address())?;
    // The first broker in the URL is down.
    let url = format!("rabbit://{USER}@{},{USER}@{}//", free_address()?, broker.address());
    let launch = on_bus(ours, &at("plain")?, &url)?;
    let server = launch.start()?;
    let caller = server.caller();
    caller.post("/v1/os-hosts", &json!({"id": "1"}))?.expect(201)?;
    cases.check("a listener with oslo.messaging gets the events of a lease, as from Blazar", || {
        let id = lease(caller, "first", 1)?;
        caller.until_lease_is(&id, "ACTIVE", PATIENCE)?;
        caller.delete(&format!("/v1/leases/{id}"))?.expect(204)?;
        for event_type in ["lease.create", "lease.event.start_lease", "lease.delete"] {
            let told = listener.next_of(event_type)?;
            let payload = &told["payload"];
            ensure!(told["publisher_id"] == "blazar.lease", "it is said to be of another: {told}");
            ensure!(
                payload["lease_id"] == id.as_str() && payload["name"] == "first",
                "another lease: {told}"
            );
            ensure!(payload["reservations"][0]["resource_type"] == "physical:host", "not all of it: {told}");
            ensure!(
                payload["events"].as_array().is_some_and(|events| events.len() == 3),
                "not all of it: {told}"
            );
        }
        Ok(())
    });
    cases.check("an unavailable broker delays no client, and gets all notifications later", || {
        broker.kill()?;
        let ids =
            ["a", "b", "c"].map(|name| lease(caller, name, 0)).into_iter().collect::<Result<Vec<_>>>()?;
        until("the failure is counted", || Ok(pushes(&server, "failed")? > 0.0))?;
        broker.restart()?;
        let told: Vec<Value> = ids.iter().map(|_| listener.next_of("lease.create")).collect::<Result<_>>()?;
        let told: Vec<&Value> = told.iter().map(|told| &told["payload"]["lease_id"]).collect();
        ensure!(told == ids.iter().collect::<Vec<_>>(), "told {told:?} instead of {ids:?}");
        Ok(())
    });
    server.kill()?;
    cases.check("notifications that were sent before the service was killed are not sent again", || {
        let server = launch.start()?;
        let id = lease(server.caller(), "after", 0)?;
        let told = listener.next_of("lease.create")?;
        ensure!(told["payload"]["lease_id"] == id.as_str(), "told of another lease: {told}");
        Ok(())
    });
    cases.check("each topic has its own queue, which is created again after it was deleted", || {
        let launch = on_bus(ours, &at("topics")?, &format!("rabbit://{USER}@{}//", broker.address()))?;
        let launch = launch.with(["--message-bus-topics", "notifications,audit"]);
        let server = launch.with(["--message-bus-quorum-queues", "true"]).start()?;
        for name in ["before", "then"] {
            let id = lease(server.caller(), name, 0)?;
            while listener.next_of("lease.event.start_lease")?["payload"]["lease_id"] != id.as_str() {}
            // At least the notifications of the lease's creation and of its start.
            until("the second queue has them", || Ok(queue(&of_broker, broker.address(), "count")? >= 2))?;
            queue(&of_broker, broker.address(), "delete")?;
        }
        Ok(())
    });
    cases.check("with TLS, the broker must have a certificate of the configured CA", || {
        let url = format!("rabbit://{USER}@{}//?ssl=1", broker.encrypted().replace("127.0.0.1", "localhost"));
        let launch = on_bus(ours, &at("tls")?, &url)?;
        let named =
            launch.clone().with(["--message-bus-ca-file"]).with([path(&of_broker.join("certificate.pem"))]);
        let server = launch.start()?;
        let id = lease(server.caller(), "encrypted", 0)?;
        until("it is refused", || Ok(launch.said().contains("certificate")))?;
        server.kill()?;
        let _server = named.start()?;
        let told = listener.next_of("lease.create")?;
        ensure!(told["payload"]["lease_id"] == id.as_str(), "told of another lease: {told}");
        Ok(())
    });
    nova::heard(&mut cases, ours, &at("nova")?, &mut broker)?;
    cases.check("a failed login is reported in the log, without the password", || {
        let launch = on_bus(ours, &at("refused")?, &format!("rabbit://guest:hush@{}//", broker.address()))?;
        let server = launch.start()?;
        lease(server.caller(), "untold", 0)?;
        until("the log says it", || {
            Ok(launch.said().contains("are user, password and virtual host right?"))
        })?;
        ensure!(!launch.said().contains("hush"), "the password is in the log");
        Ok(())
    });
    Ok(cases.tally())
}

/// A service that publishes to the broker at `url`.
fn on_bus(ours: &Executable, directory: &Path, url: &str) -> Result<Launch> {
    let file = directory.join("bus.url");
    fs::write(&file, url)?;
    Ok(Launch::new(ours, directory).with(["--message-bus-url-file"]).with([path(&file)]))
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Creates a lease that starts now. With 0 hosts, it has no reservations.
fn lease(caller: &Caller, name: &str, hosts: usize) -> Result<String> {
    let mut lease = of_hosts("now", hosts, &Minute::now().plus(60).sent());
    lease["name"] = json!(name);
    if hosts == 0 {
        lease["reservations"] = json!([]);
    }
    let made = caller.post("/v1/leases", &lease)?.expect(201)?;
    Ok(text(&made["lease"], "id")?.to_owned())
}

/// Number of publications with that outcome.
fn pushes(server: &Server, outcome: &str) -> Result<f64> {
    let labels = format!("{{listener=\"message_bus\",outcome=\"{outcome}\"}}");
    server.caller().figure(&format!("allot_notification_pushes_total{labels}"))
}

fn until(what: &str, mut is: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !is()? {
        ensure!(started.elapsed() < PATIENCE, "{what}: not after {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Counts (`count`) or deletes (`delete`) the queue of the topic without a listener. Returns the number of
/// its messages.
fn queue(directory: &Path, address: &str, action: &str) -> Result<u64> {
    let script = directory.join("broker_queue.py");
    fs::write(&script, QUEUE)?;
    let mut command = Python::for_message_bus()?.program("python", directory);
    let said = output_of(command.arg(&script).args([address, action, "audit.info"]))?;
    said.trim().parse().with_context(|| format!("no number of messages: {said}"))
}

/// Writes a self-signed certificate and its key.
fn certificate(directory: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(directory.join("certificate.pem"), made.cert.pem())?;
    fs::write(directory.join("key.pem"), made.signing_key.serialize_pem())?;
    Ok(())
}
