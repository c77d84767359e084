//! Snapshots of every table with realistic data, in terminals of 80 and 120 columns.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::table::{Style, Table};
use super::wire::read;
use super::{
    audit, availability, capacity, energy, events, flavor, floating_ip, free_pool, host, instance, lease,
    lease_pool, maintenance, preemptible, settings, usage,
};

const NAME: &str = "thermal-runs-2026-11";
const OTHER: &str = "night-training-gpu-1";
const HOST: &str = "rack12-compute-host7";
const PROJECT: &str = "fluid-dynamics-group";
const USER: &str = "4fb60bd1e9de4b1bb3b31a5c6d4d2f60";
const IDS: [&str; 3] = [
    "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753",
    "5f1d8a9e-1c55-4c11-9d92-0ab6e2a5a36b",
    "0c7be2d4-7a6f-4d44-8d2f-7a0b5d0c2c11",
];
/// Current time in the tables, a Friday. The dates below are before, on and after that day.
const NOW: &str = "2026-11-20T12:00:00Z";
const PAST: &str = "2026-11-18T09:30:00.000000";
const TODAY: &str = "2026-11-20T18:00:00.000000";
const SOON: &str = "2026-11-24T18:00:00.000000";
const LATER: &str = "2026-12-24T18:00:00.000000";

fn lease() -> Value {
    json!({
        "id": IDS[0], "name": NAME, "project_id": PROJECT, "user_id": USER, "status": "ACTIVE", "degraded": true,
        "start_date": PAST, "end_date": LATER,
        "reservations": [
            {"id": IDS[1], "resource_type": "physical:host", "status": "active", "min": 2, "max": 4},
            {"id": IDS[2], "resource_type": "virtual:instance", "status": "active", "amount": 8, "vcpus": 2,
             "memory_mb": 4096, "disk_gb": 20},
        ],
    })
}

fn pending() -> Value {
    let mut lease = lease();
    for (name, value) in [("id", IDS[1]), ("name", OTHER), ("status", "PENDING"), ("start_date", TODAY)] {
        lease[name] = json!(value);
    }
    (lease["degraded"], lease["end_date"]) = (json!(false), json!(SOON));
    let addresses = [110, 111, 112, 113].map(|last| format!("203.0.113.{last}"));
    lease["reservations"][1] = json!({"id": IDS[2], "resource_type": "virtual:floatingip", "status": "pending",
        "amount": 4, "floating_ips": addresses});
    lease
}

fn leases() -> Vec<Value> {
    let offer =
        json!({"kind": "later_start", "expires_at": TODAY, "lease": pending(), "id": IDS[2], "number": 1});
    let waiting = json!({"id": IDS[1], "place": 12, "expires_at": LATER, "lease": lease()});
    let hint = |name: &str| {
        json!({"name": name, "values": ["same", "different"], "not_with": ["different_host", "group"],
               "description": "Whether the hosts are in the same rack or each in another one"})
    };
    let planned =
        json!({"instance_id": IDS[2], "from_host": HOST, "to_host": HOST, "state": "moving", "percent": 43});
    vec![
        json!({"leases": [lease(), pending()]}),
        json!({"offers": [offer.clone(), offer]}),
        json!({"waitlist": [waiting]}),
        json!({"hints": [hint("location"), hint("different_host")]}),
        json!({"moves": [planned]}),
    ]
}

fn hosts() -> Value {
    json!([
        {"id": "112", "hypervisor_hostname": HOST, "vcpus": 64, "memory_mb": 1_048_576, "local_gb": 4000,
         "reservable": true, "rack": "r12", "gpu": "a100", "model": "poweredge-r7525", "room": "basement"},
        {"id": "7", "hypervisor_hostname": "r1-h01", "vcpus": 8, "memory_mb": 65536, "local_gb": 100,
         "reservable": false},
    ])
}

fn instances() -> Value {
    let departure = json!({"asked_at": "2026-11-20T18:00:00Z", "gone_by": "2026-11-20T18:05:30Z"});
    json!([
        {"id": IDS[0], "name": NAME, "project_id": PROJECT, "status": "ACTIVE", "kind": "leased", "lease_id": IDS[1],
         "safe_until": LATER, "host": HOST, "vcpus": 16, "memory_mb": 65536, "disk_gb": 100, "launched_at": PAST},
        {"id": IDS[2], "name": OTHER, "project_id": PROJECT, "status": "ACTIVE", "kind": "preemptible",
         "lease_id": null, "safe_until": null, "host": HOST, "vcpus": 2, "memory_mb": 4096, "disk_gb": 20,
         "launched_at": PAST, "departure": departure},
    ])
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it reads")
}

/// Each table with its name and the headings that must never be hidden, separated by commas.
#[expect(clippy::too_many_lines, reason = "there are many tables")]
fn tables() -> Vec<(&'static str, &'static str, Table)> {
    let [leases, offers, waitlist, hints, plan] = leases().try_into().expect("five");
    let row = json!({
        "start": PAST, "project_id": PROJECT, "user_id": USER, "lease_id": IDS[0], "lease_name": NAME, "lease_type": "SCHEDULE",
        "leases_started": 12, "used": {"core_hours": 70_123.5, "instance_hours": 1234.25, "instances_started": 321},
        "reserved": {"host_hours": 12_345.67, "core_hours": 790_122.88, "gib_hours": 3_160_491.52},
        "unleased": {"core_hours": 77.5},
    });
    let mut other = row.clone();
    for (name, value) in
        [("start", LATER), ("user_id", OTHER), ("lease_id", IDS[1]), ("lease_type", "IMMEDIATE")]
    {
        other[name] = json!(value);
    }
    (other["leases_started"], other["project_id"]) = (json!(7), json!("astronomy"));
    for group in ["used", "reserved", "unleased"] {
        for figure in other[group].as_object_mut().expect("figures").values_mut() {
            *figure = json!(1.5);
        }
    }
    other["used"]["instances_started"] = json!(3);
    let usage = json!({"usage": [row, other]});
    let line = json!({
        "start": PAST, "project_id": PROJECT, "user_id": USER, "lease_id": IDS[0], "lease_name": NAME,
        "item": "reserved cores", "quantity": "790122.88", "unit": "core hour", "unit_price": "0.0125", "amount": "9876.54",
    });
    let mut next = line.clone();
    for (name, value) in [
        ("start", "2026-11-19T09:30:00.000000"),
        ("quantity", "12.5"),
        ("amount", "0.15625"),
        ("lease_id", IDS[1]),
    ] {
        next[name] = json!(value);
    }
    let bill = json!({"billing": [line.clone(), next]});
    let sum = json!({"start": PAST, "project_id": PROJECT, "user_id": USER, "amount": "9876.54"});
    let event = json!({
        "timestamp": PAST, "event": "lease.degraded", "lease_id": IDS[0], "instance_id": IDS[1],
        "project_id": PROJECT, "status": "ACTIVE", "hosts": ["112", "7"], "reason": "the host does not answer",
    });
    let entry = |at: &str, user: &str, action: &str, object: &str| {
        json!({"timestamp": at, "user_id": user, "project_id": PROJECT, "action": action, "object_id": object,
            "request_id": format!("req-{}", IDS[1])})
    };
    let audit = json!({"audit": [
        entry("2026-11-18T09:30:00Z", OTHER, "host.close", "112"),
        entry("2026-11-20T11:58:07Z", USER, "maintenance.book", IDS[0]),
    ]});
    let names = std::collections::BTreeMap::from([("112".to_owned(), HOST.to_owned())]);
    let occupied = |kind: &str, end: Value, instance: Value, project: Value| {
        json!({"host_id": "112", "host": HOST, "kind": kind, "start": "2026-11-18T09:30:00Z", "end": end,
            "instance_id": instance, "project_id": project, "begins": true})
    };
    let occupancy = json!({"occupancy": [
        occupied("held", Value::Null, Value::Null, Value::Null),
        occupied("foreign_instance", json!("2026-11-20T11:58:07Z"), json!(IDS[2]), json!(PROJECT)),
    ]});
    let allocation = json!([{"resource_id": "112", "reservations": [
        {"id": IDS[1], "lease_id": IDS[0], "start_date": PAST, "end_date": LATER},
        {"id": IDS[2], "lease_id": IDS[1], "start_date": LATER, "end_date": LATER},
    ]}]);
    let named: super::wire::Lease = typed(lease());
    let named = std::collections::BTreeMap::from([(IDS[0].to_owned(), named)]);
    let properties = json!({"resource_properties": [
        {"property": "model", "values": ["poweredge-r7525", "poweredge-r650", "altra-max", "proliant-dl385"],
         "private": true},
    ]});
    let address = json!([{"id": IDS[0], "floating_network_id": IDS[1], "floating_ip_address": "203.0.113.110",
        "reservable": true}]);
    let free_pool = json!([{"id": IDS[0], "name": NAME, "hosts": 112, "created_at": PAST, "updated_at": null,
        "extra_specs": {"rack": "r12", "room": "basement", "model": "poweredge-r7525"}, "end_action": "migrate"}]);
    let lease_pool = json!([{"id": IDS[0], "name": IDS[0], "lease_id": IDS[1], "hosts": 12,
        "project_id": PROJECT, "metadata": {}, "cpu_allocation_ratio": 1.5, "ram_allocation_ratio": null}]);
    let flavor = json!([{"id": "m1.extra-large-memory", "name": "m1.extra-large-memory", "vcpus": 64, "ram": 1_048_576,
        "disk": 4000}]);
    let allowed = json!({"kind": "preemptible", "hosts": [
        {"host": HOST, "allowed": false, "until": LATER, "reason": "it is reserved for a lease of another project"},
        {"host": HOST, "allowed": true, "until": SOON, "reason": null},
    ]});
    let maintenance =
        json!([{"host": HOST, "host_id": "112", "start_date": SOON, "end_date": LATER, "lease_id": IDS[0]}]);
    let projects = json!({"projects": [{"pattern": "fluid-*", "created_at": PAST}, {"pattern": "*"}]});
    let report = json!({"begun": 12345, "preempted": 321, "hours": 1234.5, "core_hours": 70123.25, "hours_lost": 7.5,
        "utilisation_gained": 0.123});
    let free = json!({"resource_type": "physical:host", "total": 120, "best": null, "steps": [
        {"start": "2026-11-20T12:00:00Z", "end": "2026-11-24T18:00:00Z", "free": 120},
        {"start": "2026-11-24T18:00:00Z", "end": "2026-12-24T18:00:00Z", "free": 12},
    ]});
    let refused = json!([
        {"resource_type": "physical:host", "kind": "gpu=a100 and model=poweredge-r7525", "refused": 52,
         "met_by": [{"more": 1, "met": 20}, {"more": 3, "met": 41}, {"more": 12, "met": 52}]},
        {"resource_type": "virtual:instance", "kind": "16 vCPU, 65536 MiB, 100 GiB", "refused": 1234, "met_by": []},
    ]);
    let needed = json!([{"start": "2026-11-24T18:00:00Z", "hosts": 120}]);
    let off = json!([{"hypervisor_hostname": HOST, "off_from": "2026-11-20T18:00:00Z", "on_by": "2026-12-24T18:00:00Z"}]);
    let saved = json!([{"pool": NAME, "off_host_hours": 12_345.67, "saved_kwh": 1234.5, "busy_host_hours": 79_012.88,
        "idle_host_hours": 1234.56, "total_kwh": 98_765.43, "hosts_without_watts": 0, "switched_off": 321,
        "switched_on": 320, "boots_failed": 1, "longest_boot_seconds": 412}]);
    let powered = json!([{"hypervisor_hostname": HOST, "pool": NAME, "power": "off", "since": "2026-11-18T09:30:00Z",
        "boot_seconds": 412, "measured_boots": 12, "idle_watts": 180.5, "off_watts": 7.5, "may_be_off": true}]);
    let setting = json!([{"key": "limits.transaction_bytes", "value": "8 MiB", "default": "8 MiB", "source": "default",
        "heading": "Limits", "description": "Most bytes of a transaction"}]);
    let keep = format!("Any change keeps the lease, for example: allot lease update {} --keep", IDS[0]);
    let told = [(PAST, "lease.event.start_lease", ""), ("2026-11-20T11:58:07Z", "lease.unused", keep.as_str())]
        .map(|(at, kind, keep)| {
            let payload = json!({"name": NAME, "status": "ACTIVE", "keep": keep});
            json!({"number": 12345, "timestamp": at, "event_type": kind, "lease_id": IDS[0], "project_id": PROJECT,
                "payload": payload})
        });
    let instances: Vec<Value> = typed(instances());
    let zone = TimeZone::UTC;
    let read_or_fail = |table: Result<Table, super::ClientError>| table.expect("it reads");
    vec![
        (
            "lease list",
            "NAME,PROJECT,STATUS,START,END,RESERVED",
            lease::list_table(read(&leases, "leases").expect("leases")),
        ),
        ("lease offers", "#,NAME,OFFER,START,END", read_or_fail(lease::offers_table(&offers, &zone))),
        ("lease waitlist", "PLACE,NAME,WAITS UNTIL,ID", read_or_fail(lease::waitlist_table(&waitlist))),
        ("lease hints", "HINT,VALUES,MEANING", read_or_fail(lease::hints_table(&hints))),
        ("lease plan", "INSTANCE,TO,STATE", lease::plan_table(read(&plan, "moves").expect("moves"))),
        ("lease occupancy", "HOST,FROM,UNTIL,WHAT", read_or_fail(lease::occupancy_table(&occupancy))),
        ("host list", "NAME,RESERVABLE,CAPABILITIES", host::table_of(&typed::<Vec<_>>(hosts()))),
        (
            "host allocations",
            "HOST,LEASE,START,END",
            host::allocated(&typed::<Vec<_>>(allocation), &typed::<Vec<_>>(hosts()), &named),
        ),
        ("host properties", "PROPERTY,VALUES", read_or_fail(host::properties_table(&properties))),
        ("freepool list", "NAME,HOSTS", free_pool::table(&typed::<Vec<_>>(free_pool))),
        ("leasepool list", "ID,LEASE,HOSTS", lease_pool::table(&typed::<Vec<_>>(lease_pool))),
        (
            "leasepool show",
            "HOST,INSTANCES",
            lease_pool::hosts_table(typed(json!([
                {"id": "112", "name": HOST, "instances": [{"id": IDS[0], "name": NAME}, {"id": IDS[1], "name": OTHER},
                    {"id": IDS[2], "name": null}]},
            ]))),
        ),
        ("floatingip list", "ADDRESS,RESERVABLE", floating_ip::table(&typed::<Vec<_>>(address))),
        ("flavor list", "ID,VCPUS,MEMORY", flavor::table(&typed::<Vec<_>>(flavor))),
        ("instance list", "NAME,STATUS,HOST,VCPUS,MEMORY,DISK", instance::table(&instances)),
        ("instance filter", "HOST,ALLOWED,UNTIL,REASON", read_or_fail(instance::hosts_table(&allowed))),
        ("maintenance plan", "HOST,START,END", maintenance::table(typed(maintenance))),
        (
            "maintenance list",
            "HOST,START,END,STATUS,LEASE",
            maintenance::booked_table(read(&leases, "leases").expect("leases")),
        ),
        ("preemptible list", "ID,NAME,ASKED TO LEAVE,GONE BY", preemptible::table(&instances)),
        ("preemptible project list", "PROJECTS,SINCE", read_or_fail(preemptible::projects_table(&projects))),
        ("preemptible report", "WHAT,AMOUNT", preemptible::report_table(&report)),
        ("availability", "FROM,UNTIL,FREE HOSTS", availability::table(&typed(free), "hosts")),
        ("audit", "TIME,USER,ACTION,OBJECT", read_or_fail(audit::table(&audit, &names))),
        (
            "usage",
            "PROJECT,HOST HOURS,CORE HOURS,UNLEASED CORE HOURS",
            read_or_fail(usage::sums_table("project", &usage)),
        ),
        (
            "usage --by lease_type",
            "LEASE TYPE,HOST HOURS,CORE HOURS,USED CORE HOURS,UNLEASED CORE HOURS",
            read_or_fail(usage::sums_table("lease_type", &usage)),
        ),
        (
            "usage --by day,lease,user",
            "FROM,LEASE,USER,HOST HOURS,CORE HOURS,UNLEASED CORE HOURS",
            read_or_fail(usage::sums_table("day,lease,user", &usage)),
        ),
        (
            "usage billing --each day",
            "FROM,PROJECT,LEASE,ITEM,QUANTITY,AMOUNT",
            read_or_fail(usage::bill_table(Some("day"), &bill)),
        ),
        (
            "usage billing",
            "LEASE,ITEM,QUANTITY,AMOUNT",
            read_or_fail(usage::bill_table(None, &json!({"billing": [line]}))),
        ),
        (
            "usage billing --by user",
            "PROJECT,USER,AMOUNT",
            read_or_fail(usage::payers_table(usage::Payer::User, None, &json!({"billing": [sum]}))),
        ),
        (
            "usage events",
            "TIME,EVENT,LEASE,STATUS",
            read_or_fail(usage::events_table(&json!({"events": [event]}), &names)),
        ),
        ("events", "TIME,EVENT,NAME,NOTE", read_or_fail(events::table(&told, false))),
        ("capacity", "KIND,REFUSED,+1,+10", capacity::table(&typed::<Vec<_>>(refused))),
        ("energy plan, needed", "FROM,HOSTS NEEDED", energy::needs_table(typed(needed))),
        ("energy plan, off", "HOST,OFF FROM,ON BY", energy::rests_table(typed(off))),
        ("energy report", "POOL,USED KWH,SAVED KWH", energy::report_table(typed(saved))),
        ("energy hosts", "HOST,POWER,MAY BE OFF", energy::hosts_table(typed(powered))),
        ("settings", "SETTING,VALUE", settings::table(&typed::<Vec<_>>(setting))),
    ]
}

#[test]
fn every_table_keeps_the_columns_that_it_exists_for() {
    let mut all = String::new();
    for (name, kept, table) in tables() {
        for width in [80, 120] {
            let style = Style { width: Some(width), ..Style::default() };
            let now = NOW.parse().expect("a timestamp");
            let rendered = table.render(&style, &TimeZone::UTC, now).expect("a table");
            let _ = write!(all, "# {name}, {width} columns\n{}\n", rendered.text);
            let widest = rendered.text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let shown = rendered.text.to_uppercase();
            assert!(widest <= usize::from(width), "{name}: {widest} columns\n{}", rendered.text);
            let hidden = rendered.notes.iter().find_map(|note| note.strip_prefix("Hidden: "));
            let hidden = hidden.and_then(|note| note.split(" (").next()).unwrap_or_default();
            let hidden: Vec<&str> = hidden.split(", ").collect();
            for heading in kept.split(',') {
                assert!(!hidden.contains(&heading), "{name}: {heading} is hidden\n{}", rendered.text);
                for word in heading.split(' ') {
                    assert!(shown.contains(word), "{name}: {heading}\n{}", rendered.text);
                }
            }
            let _ = writeln!(all, "{}\n", rendered.notes.join("\n"));
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/client/every_table.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &all).expect("the snapshot is written");
    }
    let wanted = std::fs::read_to_string(path).expect("the snapshot");
    assert!(wanted == all, "differs from {path} (UPDATE=1 writes it):\n{all}");
}
