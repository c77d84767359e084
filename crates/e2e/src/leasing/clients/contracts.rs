//! Contracts with clients that aren't Python programs and can't be installed here: kolla-ansible's load
//! balancer, Azimuth's operator, gophercloud, and clients that send every field of a type. Each check sends
//! the client's request and reads the answer as the client does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::run::Executable;
use chores::tally::Tally;
use reqwest::Method;
use serde_json::{Value, json};

use super::logins::{TOKEN, with_tokens};
use super::values::{is, same};
use crate::leasing::fleet::{ADDRESSES, MACHINES, NETWORK};
use crate::leasing::http::{Caller, text};
use crate::leasing::server::Launch;

pub fn run(ours: &Executable) -> Result<Tally> {
    let mut cases = Cases::new("clients, contracts");
    let directory = tempfile::tempdir()?;
    kolla(&mut cases, ours, directory.path())?;
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    let caller = server.caller();
    for machine in MACHINES {
        caller.post("/v1/os-hosts", &json!({"name": machine, "rack": "r1"}))?.expect(201)?;
    }
    azimuth(&mut cases, caller);
    gophercloud(&mut cases, caller);
    heat(&mut cases, caller);
    typed(&mut cases, caller);
    for status in ["409", "500"] {
        let directory = tempfile::tempdir()?;
        let launch = Launch::new(ours, directory.path()).with(["--api-shortage-status", status]);
        let server = launch.start()?;
        cases.check(&format!("api.shortage_status {status} is the status of a shortage"), || {
            let refused = server.caller().post("/v1/leases", &hosts("full", 9))?;
            same(refused.status.to_string(), status)?;
            same(refused.body["error_code"].to_string(), status)?;
            same(refused.message(), "Not enough hosts available")
        });
    }
    Ok(cases.tally())
}

/// A lease of hosts, far in the future.
fn hosts(name: &str, number: u32) -> Value {
    let reservation = json!({"resource_type": "physical:host", "min": number, "max": number,
        "hypervisor_properties": "", "resource_properties": ""});
    json!({"name": name, "start_date": "2040-01-01 00:00", "end_date": "2040-01-02 00:00",
        "reservations": [reservation], "events": []})
}

/// kolla-ansible gives each API's backend `option httpchk` and `http-check expect status 401`: `OPTIONS /` in HTTP/1.0.
fn kolla(cases: &mut Cases, ours: &Executable, directory: &Path) -> Result<()> {
    let server = with_tokens(ours, directory)?;
    let address = server.url().trim_start_matches("http://").to_owned();
    for (request, wanted) in [
        ("OPTIONS / HTTP/1.0\r\n\r\n".to_owned(), 401),
        ("HEAD / HTTP/1.0\r\n\r\n".to_owned(), 401),
        (format!("OPTIONS / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"), 401),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"), 300),
        (format!("OPTIONS / HTTP/1.0\r\nX-Auth-Token: {TOKEN}\r\n\r\n"), 200),
    ] {
        let line = request.lines().next().unwrap_or_default().to_owned();
        let token = if request.contains("X-Auth-Token") { "a" } else { "no" };
        cases.check(&format!("kolla-ansible: {line} with {token} token is answered {wanted}"), || {
            same(status_of(&address, &request)?, wanted)
        });
    }
    cases.check("kolla-ansible: a check every moment is not limited", || {
        for _ in 0..200 {
            same(status_of(&address, "OPTIONS / HTTP/1.0\r\n\r\n")?, 401)?;
        }
        Ok(())
    });
    Ok(())
}

/// Sends a raw request, and returns the status of the answer.
fn status_of(address: &str, request: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(address).context("cannot connect")?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("no answer")?;
    let status = answer.split_whitespace().nth(1).with_context(|| format!("no status: {answer}"))?;
    status.parse().with_context(|| format!("no status: {answer}"))
}

/// Azimuth's operator shows its user the text of a 400 or a 500, and retries forever after any other status.
fn azimuth(cases: &mut Cases, caller: &Caller) {
    let instances = json!({"resource_type": "virtual:instance", "vcpus": 4096, "memory_mb": 512, "disk_gb": 1,
        "amount": 1, "affinity": null, "resource_properties": ""});
    let mut many = hosts("slots", 1);
    many["reservations"] = json!([instances]);
    for (kind, body) in [("hosts", hosts("full", 99)), ("instances", many)] {
        cases.check(&format!("azimuth: a lease of more {kind} than there are is refused for good"), || {
            let refused = caller.post("/v1/leases", &body)?;
            same(refused.status, 400)?;
            same(refused.message(), "Not enough hosts available")
        });
    }
}

/// gophercloud parses the dates of each answer with a single layout.
fn gophercloud(cases: &mut Cases, caller: &Caller) {
    const MICROSECONDS: &str = "%Y-%m-%dT%H:%M:%S.%6f";
    const SECONDS: &str = "%Y-%m-%d %H:%M:%S";
    cases.check("gophercloud: the dates of a lease have one layout each", || {
        let made = caller.post("/v1/leases", &hosts("dates", 1))?.expect(201)?;
        let lease = &made["lease"];
        for (field, layout) in [
            ("start_date", MICROSECONDS),
            ("end_date", MICROSECONDS),
            ("created_at", SECONDS),
            ("updated_at", SECONDS),
        ] {
            is_date(lease, field, layout)?;
        }
        for event in lease["events"].as_array().context("no events")? {
            is_date(event, "time", MICROSECONDS)?;
            is_date(event, "created_at", SECONDS)?;
        }
        is_date(&lease["reservations"][0], "created_at", SECONDS)?;
        is_date(&lease["reservations"][0], "updated_at", SECONDS)
    });
    cases.check("gophercloud: PATCH of a property has dates with T, unlike all other records", || {
        let change = json!({"private": true});
        let path = "/v1/os-hosts/properties/rack";
        let answer = caller.wait(caller.http().send(Method::PATCH, path, Some(&change)))?.expect(200)?;
        let property = &answer["resource_property"];
        is_date(property, "created_at", MICROSECONDS)?;
        is_date(property, "updated_at", MICROSECONDS)?;
        is(property, "private", true)
    });
    cases.check("gophercloud: unknown fields of a host are its capabilities", || {
        let hosts = caller.hosts()?;
        let host = hosts.first().context("no host")?;
        let known = [
            "id",
            "hypervisor_hostname",
            "hypervisor_type",
            "hypervisor_version",
            "vcpus",
            "cpu_info",
            "memory_mb",
            "local_gb",
            "status",
            "created_at",
            "updated_at",
            "service_name",
            "trust_id",
            "reservable",
            "availability_zone",
        ];
        let keys = host.as_object().context("no object")?.keys();
        let more: Vec<&str> = keys.map(String::as_str).filter(|key| !known.contains(key)).collect();
        same(more, ["rack"])
    });
}

fn is_date(object: &Value, field: &str, layout: &str) -> Result<()> {
    let written = text(object, field)?;
    let read = jiff::civil::DateTime::strptime(layout, written);
    // Formatted again, because the layouts of Go and Python require all digits.
    let again = read.with_context(|| format!("{field} is {written}"))?.strftime(layout).to_string();
    same(again, written)
}

/// Heat's resource sends an event's date as `time`.
fn heat(cases: &mut Cases, caller: &Caller) {
    let carried = |event: Value| {
        let mut body = hosts("carried", 1);
        body["events"] = json!([event]);
        body["start_date"] = json!("now");
        caller.post("/v1/leases?dry_run=true", &body)
    };
    for name in ["event_date", "time"] {
        cases.check(&format!("heat: the deadline of a best-effort lease is its event's {name}"), || {
            let deadline = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_hours(3))?;
            let deadline = deadline.strftime("%Y-%m-%d %H:%M").to_string();
            let answer =
                carried(json!({"event_type": "lease_type:best-effort", name: deadline}))?.expect(200)?;
            let shown = text(&answer["lease"], "timeout_date")?.replace('T', " ");
            ensure!(shown.starts_with(&deadline), "{shown} instead of {deadline}");
            Ok(())
        });
    }
    for unclear in
        [json!({}), json!({"time": ""}), json!({"when": "2040-01-01 00:00"}), json!({"time": "soon"})]
    {
        cases.check(&format!("heat: a best-effort lease is refused where its event has {unclear}"), || {
            let mut event = unclear.clone();
            event["event_type"] = json!("lease_type:best-effort");
            carried(event)?.expect(400).map(drop)
        });
    }
}

/// Clients with their own types send "" or null for fields that aren't set.
fn typed(cases: &mut Cases, caller: &Caller) {
    for unset in [json!(""), Value::Null] {
        cases.check(&format!("typed clients: {unset} is as absent in a new lease"), || {
            let mut body = hosts("typed", 1);
            for field in [
                "before_end_date",
                "duration",
                "lease_type",
                "timeout",
                "timeout_date",
                "end_action",
                "waitlist",
                "repeat",
                "scheduler_hints",
                "backfill",
            ] {
                body[field] = unset.clone();
            }
            for field in ["region", "availability_zone", "pool_name", "before_end"] {
                body["reservations"][0][field] = unset.clone();
            }
            let made = caller.post("/v1/leases", &body)?.expect(201)?;
            let path = format!("/v1/leases/{}", text(&made["lease"], "id")?);
            let reservation = json!({"id": made["lease"]["reservations"][0]["id"], "min": unset, "max": unset,
                "resource_type": unset});
            let change = json!({"name": unset, "start_date": unset, "end_date": "2040-01-03 00:00",
                "before_end_date": unset, "reservations": [reservation]});
            let changed = caller.put(&path, &change)?.expect(200)?;
            is(&changed["lease"], "name", "typed")?;
            is(&changed["lease"]["reservations"][0], "min", 1)?;
            caller.delete(&path)?.expect(204).map(drop)
        });
        cases.check(&format!("typed clients: {unset} is as absent in a change of addresses"), || {
            let address = json!({"floating_network_id": NETWORK, "floating_ip_address": ADDRESSES[0]});
            let entered = caller.post("/v1/floatingips", &address)?.expect(201)?;
            let mut body = hosts("addresses", 1);
            body["reservations"] = json!([{"resource_type": "virtual:floatingip", "network_id": NETWORK, "amount": 1,
                "required_floatingips": [ADDRESSES[0]]}]);
            let made = caller.post("/v1/leases", &body)?.expect(201)?;
            let path = format!("/v1/leases/{}", text(&made["lease"], "id")?);
            let change = json!({"reservations": [{"id": made["lease"]["reservations"][0]["id"],
                "required_floatingips": unset, "amount": unset, "network_id": unset}], "name": "renamed"});
            let changed = caller.put(&path, &change)?.expect(200)?;
            same(&changed["lease"]["reservations"][0]["required_floatingips"], &json!([ADDRESSES[0]]))?;
            caller.delete(&path)?.expect(204)?;
            caller.delete(&format!("/v1/floatingips/{}", text(&entered["floatingip"], "id")?))?.expect(204).map(drop)
        });
    }
    cases.check("typed clients: an unknown field is refused, empty or not", || {
        let mut body = hosts("typed", 1);
        body["before_end"] = json!("");
        caller.post("/v1/leases", &body)?.expect(400).map(drop)
    });
}
