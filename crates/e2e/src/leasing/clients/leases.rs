//! Commands on leases.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use serde_json::{Value, json};

use super::values::{column, columns, is, members, same};
use super::{Bench, hosts};
use crate::leasing::date::Minute;
use crate::leasing::fleet::{ADDRESSES, MACHINES, NETWORK};
use crate::leasing::http::text;

/// Maximum wait for a change that takes the service milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs all commands on leases.
pub fn run(cases: &mut Cases, bench: &Bench) {
    let running = starts(cases, bench);
    if let Some(running) = &running {
        hosts::allocations(cases, bench, running);
    }
    types(cases, bench);
    lists(cases, bench);
    if let Some(coming) = coming(cases, bench) {
        updates(cases, bench, &coming);
    }
    refusals(cases, bench);
    if let Some(running) = &running {
        ends(cases, bench, running);
    }
    deletes(cases, bench);
}

/// A lease that starts now.
fn starts(cases: &mut Cases, bench: &Bench) -> Option<Value> {
    let shell = &bench.shell;
    let created = cases.check("lease-create makes a lease of a certain host that begins at once", || {
        let wanted = format!(r#"["==", "$hypervisor_hostname", "{}"]"#, MACHINES[0]);
        let reservation = format!("resource_type=physical:host,min=1,max=1,hypervisor_properties={wanted}");
        let created = shell.json("lease-create", &["--reservation", &reservation, "running"])?;
        is(&created, "name", "running")?;
        let lease = bench.caller.lease(text(&created, "id")?)?;
        is(&lease["reservations"][0], "hypervisor_properties", wanted)?;
        is(&lease["reservations"][0], "max", 1)?;
        is(&lease["reservations"][0], "resource_type", "physical:host")?;
        let (start, end) = dates(&lease)?;
        // The client sends "now" as the start, and as the end 24 hours after it was loaded, truncated to
        // minutes.
        ensure!((start.plus(23 * 60)..=start.plus(24 * 60)).contains(&end), "not a day: {lease}");
        let [event, ..] = &lease["events"].as_array().context("no events")?[..] else {
            anyhow::bail!("no events: {lease}");
        };
        ensure!(event["lease_id"] == lease["id"], "not an event of the lease: {event}");
        Ok(lease)
    })?;
    cases.check("lease-show watches it become ACTIVE", || {
        let id = text(&created, "id")?;
        for _ in 0..20 {
            if shell.json("lease-show", &[id])?["status"] == "ACTIVE" {
                break;
            }
            sleep(Duration::from_millis(200));
        }
        let shown = shell.json("lease-show", &["running"])?;
        is(&shown, "status", "ACTIVE")?;
        is(&shown, "degraded", false)?;
        let lease = bench.caller.lease(id)?;
        is(&lease["reservations"][0], "status", "active")?;
        let status = |kind| {
            let events = lease["events"].as_array().into_iter().flatten();
            events.filter(|event| event["event_type"] == kind).map(|event| event["status"].clone()).next()
        };
        same(status("start_lease"), Some(json!("DONE")))?;
        same(status("end_lease"), Some(json!("UNDONE")))?;
        same(status("before_end_lease"), Some(json!("UNDONE")))
    });
    cases.check("a lease that has begun can be prolonged and shortened", || {
        let id = text(&created, "id")?;
        let before = dates(&bench.caller.lease(id)?)?.1;
        same(
            shell.text("lease-update", &["--prolong-for", "1h", id])?.trim(),
            format!("Updated lease: {id}"),
        )?;
        same(dates(&bench.caller.lease(id)?)?.1, before.plus(60))?;
        shell.text("lease-update", &["--reduce-by", "30m", "running"])?;
        let lease = bench.caller.lease(id)?;
        same(dates(&lease)?.1, before.plus(30))?;
        is(&lease, "status", "ACTIVE")
    });
    Some(created)
}

/// Reservations of each type, as the clients write them.
fn types(cases: &mut Cases, bench: &Bench) {
    let shell = &bench.shell;
    let start = Minute::now().plus(3 * 24 * 60);
    let deadline = start.plus(60).sent();
    let (start, end) = (start.sent(), start.plus(120).sent());
    let create = |name: &str, reservation: &str| -> Result<Value> {
        let dates = ["--start-date", &start, "--end-date", &end];
        let created =
            shell.json("lease-create", &[&dates[..], &["--reservation", reservation, name]].concat())?;
        let lease = bench.caller.lease(text(&created, "id")?)?;
        is(&lease, "status", "PENDING")?;
        Ok(lease["reservations"][0].clone())
    };
    cases.check("lease-create reserves instances", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=False";
        let reservation = create("instances", wanted)?;
        for (member, value) in [("vcpus", 1), ("memory_mb", 512), ("disk_gb", 1), ("amount", 2)] {
            is(&reservation, member, value)?;
        }
        is(&reservation, "affinity", false)?;
        same(&reservation["flavor_id"], &reservation["id"])
    });
    cases.check("lease-create asks with an event for a lease that starts as soon as possible", || {
        let event = format!("event_type=lease_type:best-effort,event_date={deadline}");
        let wanted = ["--event", &event, "--reservation", "resource_type=physical:host,min=1,max=1", "soon"];
        let dates = ["--start-date", &start, "--end-date", &end];
        let created = shell.json("lease-create", &[&dates[..], &wanted].concat())?;
        let lease = bench.caller.lease(text(&created, "id")?)?;
        is(&lease, "lease_type", "BEST-EFFORT")?;
        is(&lease, "lease_state", "IN-PROGRESS")?;
        let timeout = text(&lease, "timeout_date")?;
        same(Minute::read(timeout)?.sent(), deadline.clone())?;
        let id = text(&lease, "id")?;
        bench.caller.delete(&format!("/v1/leases/{id}"))?.expect(204).map(drop)
    });
    cases.check("lease-create reserves instances of a flavor", || {
        let flavor = json!({"id": "small", "name": "small", "vcpus": 1, "ram": 512, "disk": 1});
        bench.caller.post("/v1/flavors", &flavor)?.expect(201)?;
        let reservation = create("flavored", "resource_type=flavor:instance,flavor_id=small,amount=1")?;
        is(&reservation, "amount", 1)?;
        let properties: Value = serde_json::from_str(text(&reservation, "resource_properties")?)?;
        is(&properties, "name", "small")
    });
    cases.check("lease-create reserves floating IPs", || {
        let required = ADDRESSES[0];
        let wanted = format!(
            r#"resource_type=virtual:floatingip,network_id={NETWORK},amount=2,required_floatingips=["{required}"]"#
        );
        let reservation = create("addresses", &wanted)?;
        is(&reservation, "amount", 2)?;
        is(&reservation, "required_floatingips", json!([required]))
    });
    cases.check(
        "lease-create takes a date of the action before the end, and events that it does not act upon",
        || {
            let begin = Minute::now().plus(24 * 60 * 9);
            let before_end = begin.plus(30);
            let event = format!("event_type=reminder,event_date={}", begin.plus(5).sent());
            let created = shell.json(
                "lease-create",
                &[
                    "--start-date",
                    &begin.sent(),
                    "--end-date",
                    &begin.plus(60).sent(),
                    "--before-end-date",
                    &before_end.sent(),
                    "--event",
                    &event,
                    "--reservation",
                    "resource_type=physical:host,min=1,max=1",
                    "early",
                ],
            )?;
            let lease = bench.caller.lease(text(&created, "id")?)?;
            let events = lease["events"].as_array().context("no events")?;
            let found = events.iter().find(|event| event["event_type"] == "before_end_lease");
            is(found.context("no event before the end")?, "time", before_end.shown())
        },
    );
}

fn lists(cases: &mut Cases, bench: &Bench) {
    let shell = &bench.shell;
    cases.check("lease-list has every lease, by name", || {
        let table = shell.text("lease-list", &[])?;
        same(columns(&table)?, ["id", "name", "start_date", "end_date"])?;
        same(column(&table, "name")?, ["addresses", "early", "flavored", "instances", "running"])
    });
    cases.check("lease-list sorts by every column that it has", || {
        let by_start = shell.list("lease-list", &["--sort-by", "start_date"])?;
        same(by_start.len(), 5)?;
        same(by_start.first().map(|lease| lease["name"].clone()), Some(json!("running")))?;
        let by_end = shell.list("lease-list", &["--sort-by", "end_date"])?;
        same(by_end.last().map(|lease| lease["name"].clone()), Some(json!("early")))?;
        let mut ids = members(&by_end, "id");
        ids.sort_unstable();
        same(members(&shell.list("lease-list", &["--sort-by", "id"])?, "id"), ids)
    });
    cases.check("lease-show knows leases by name and by identifier, and only those", || {
        let by_name = shell.json("lease-show", &["early"])?;
        same(&shell.json("lease-show", &[text(&by_name, "id")?])?, &by_name)?;
        shell.refused("lease-show", &["nosuch"], "Unable to find resource with name 'nosuch'")?;
        let unknown = "12345678-1234-4234-8234-123456789abc";
        let said = format!("Object with {{'lease_id': '{unknown}'}} not found");
        shell.refused("lease-show", &[unknown], &said)
    });
}

/// A lease that hasn't started, created with the option that only one of the shells has.
fn coming(cases: &mut Cases, bench: &Bench) -> Option<String> {
    let shell = &bench.shell;
    let start = Minute::now().plus(5 * 24 * 60);
    let dates = [start.sent(), start.plus(24 * 60).sent()];
    let arguments = |option| {
        let reservation = match option {
            "--physical-reservation" => "min=1,max=2,resource_properties=[\"==\", \"$rack\", \"r2\"]",
            _ => "resource_type=physical:host,min=1,max=2,resource_properties=[\"==\", \"$rack\", \"r2\"]",
        };
        ["--start-date", &dates[0], "--end-date", &dates[1], option, reservation, "coming"].map(str::to_owned)
    };
    let option = match shell.kind {
        super::shell::Kind::Blazar => "--physical-reservation",
        super::shell::Kind::OpenStack => "--reservation",
    };
    cases.check("lease-create reserves hosts of a property", || {
        let arguments = arguments(option);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let created = shell.json("lease-create", &arguments)?;
        is(&created, "start_date", start.shown())?;
        is(&created, "status", "PENDING")?;
        Ok(text(&created, "id")?.to_owned())
    })
}

/// Changes to a lease that hasn't started.
fn updates(cases: &mut Cases, bench: &Bench, id: &str) {
    let shell = &bench.shell;
    let update = |arguments: &[&str]| {
        shell.text("lease-update", &[arguments, &[id]].concat())?;
        bench.caller.lease(id)
    };
    cases.check("lease-update defers and advances the start", || {
        let before = dates(&bench.caller.lease(id)?)?;
        same(dates(&update(&["--defer-by", "2h"])?)?, (before.0.plus(120), before.1))?;
        same(dates(&update(&["--advance-by", "10m"])?)?, (before.0.plus(110), before.1))
    });
    cases.check("lease-update sets both dates", || {
        let start = Minute::now().plus(6 * 24 * 60);
        let end = start.plus(600);
        let changed = update(&["--start-date", &start.sent(), "--end-date", &end.sent()])?;
        same(dates(&changed)?, (start, end))
    });
    cases.check("lease-update renames", || {
        is(&update(&["--name", "renamed"])?, "name", "renamed")?;
        let printed = shell.text("lease-update", &["--name", "coming", "renamed"])?;
        same(printed.trim(), "Updated lease: renamed")?;
        is(&bench.caller.lease(id)?, "name", "coming")
    });
    cases.check("lease-update without options changes nothing", || {
        let before = bench.caller.lease(id)?;
        same(update(&[])?, before)
    });
    cases.check("lease-update changes a reservation", || {
        let lease = bench.caller.lease(id)?;
        let reservation = text(&lease["reservations"][0], "id")?;
        let changed = update(&["--reservation", &format!("id={reservation},min=2,max=2")])?;
        is(&changed["reservations"][0], "min", 2)?;
        is(&changed, "status", "PENDING")?;
        let held = bench.caller.get(&format!("/v1/os-hosts/allocations?lease_id={id}"))?.expect(200)?;
        let held = held["allocations"].as_array().context("no allocations")?;
        same(held.iter().filter(|host| host["reservations"] != json!([])).count(), 2)
    });
    cases.check("lease-update of an unknown reservation is refused, and changes nothing", || {
        let before = bench.caller.lease(id)?;
        let said = "Please enter valid reservation IDs. Invalid reservation IDs are: nope";
        shell.refused("lease-update", &["--reservation", "id=nope,min=1,max=1", id], said)?;
        same(bench.caller.lease(id)?, before)
    });
    cases.check("lease-update refuses more hosts than there are, and changes nothing", || {
        let before = bench.caller.lease(id)?;
        let reservation = text(&before["reservations"][0], "id")?;
        let wanted = format!("id={reservation},min=50,max=50");
        shell.refused("lease-update", &["--reservation", &wanted, id], "Not enough hosts available")?;
        same(bench.caller.lease(id)?, before)
    });
}

/// Requests that the service or the client rejects.
fn refusals(cases: &mut Cases, bench: &Bench) {
    let shell = &bench.shell;
    let count = || bench.caller.leases().map(|leases| leases.len());
    let later = Minute::now().plus(60 * 24 * 20);
    let (start, end) = (later.sent(), later.plus(60).sent());
    let refused = |reservation: &str, with: &str| {
        let before = count()?;
        let dates = ["--start-date", &start, "--end-date", &end];
        shell.refused("lease-create", &[&dates[..], &["--reservation", reservation, "no"]].concat(), with)?;
        same(count()?, before)
    };
    cases.check("lease-create of more hosts than there are is refused without a trace", || {
        refused("resource_type=physical:host,min=50,max=50", "Not enough hosts available")
    });
    cases.check("lease-create of more addresses than there are is refused without a trace", || {
        let wanted = format!("resource_type=virtual:floatingip,network_id={NETWORK},amount=9");
        refused(&wanted, "Not enough floating IPs available")
    });
    cases.check("lease-create with a malformed expression is refused", || {
        let wanted = "resource_type=physical:host,min=1,max=1,resource_properties=junk";
        refused(wanted, "Malformed requirements")
    });
    cases.check("lease-create in the past is refused", || {
        let dates = ["--start-date", "2020-01-01 00:00", "--end-date", &end];
        let reservation = ["--reservation", "resource_type=physical:host,min=1,max=1", "no"];
        let said = "Start date must be later than current date";
        shell.refused("lease-create", &[&dates[..], &reservation].concat(), said)
    });
    cases.check("lease-create without a valid date is refused by the client", || {
        let arguments =
            ["--start-date", "soon", "--reservation", "resource_type=physical:host,min=1,max=1", "no"];
        shell.refused("lease-create", &arguments, "The lease parameters are incorrect")
    });
}

/// Ends the running lease.
fn ends(cases: &mut Cases, bench: &Bench, running: &Value) {
    let shell = &bench.shell;
    cases.check("a lease that is given the present as its end becomes TERMINATED", || {
        let id = text(running, "id")?;
        let (start, _) = dates(running)?;
        let now = minute_with_room(start.plus(1));
        shell.text("lease-update", &["--end-date", &now.sent(), id])?;
        let lease = bench.caller.until_lease_is(id, "TERMINATED", PATIENCE)?;
        is(&lease["reservations"][0], "status", "deleted")?;
        is(&shell.json("lease-show", &["running"])?, "status", "TERMINATED")
    });
    cases.check("the host of a lease that has ended is free", || {
        let id = text(&hosts::host(bench, MACHINES[0])?, "id")?.to_owned();
        let allocation = bench.caller.get(&format!("/v1/os-hosts/{id}/allocation"))?.expect(200)?;
        let held = allocation["allocation"]["reservations"].as_array().context("no reservations")?.clone();
        same(held.iter().filter(|held| held["lease_id"] == running["id"]).count(), 0)
    });
}

/// Deletes leases by name and by identifier.
fn deletes(cases: &mut Cases, bench: &Bench) {
    let shell = &bench.shell;
    cases.check("lease-delete takes a name or an identifier", || {
        same(shell.text("lease-delete", &["coming"])?.trim(), "Deleted lease: coming")?;
        for lease in bench.caller.leases()? {
            shell.text("lease-delete", &[text(&lease, "id")?])?;
        }
        same(bench.caller.leases()?.len(), 0)?;
        same(shell.list("lease-list", &[])?.len(), 0)
    });
    cases.check("lease-delete of an unknown lease fails", || {
        shell.refused("lease-delete", &["nosuch"], "Unable to find resource with name 'nosuch'")
    });
}

/// Start and end of a lease.
fn dates(lease: &Value) -> Result<(Minute, Minute)> {
    Ok((Minute::read(text(lease, "start_date")?)?, Minute::read(text(lease, "end_date")?)?))
}

/// Waits for a minute not before `earliest` with at least ten seconds left, so that a command can complete
/// within it.
fn minute_with_room(earliest: Minute) -> Minute {
    while Minute::now() < earliest || Minute::seconds_left() < 10 {
        sleep(Duration::from_millis(200));
    }
    Minute::now()
}
