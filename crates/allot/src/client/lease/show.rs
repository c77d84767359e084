//! Formats leases for the terminal.

use jiff::tz::TimeZone;
use leases::status::LeaseStatus;

use crate::client::dates::{length, of_answer, shown};
use crate::client::sizes::memory;
use crate::client::table::{Table, date, id, prose, word};
use crate::client::wire::{Cost, Event, Lease, PlanSummary, Reservation, plain};

/// Maximum length of an address in a table of leases: that of an IPv4 address. A longer one would hide other
/// columns.
const LONGEST_ADDRESS: usize = "255.255.255.255".len();

/// Table of leases, sorted by start.
pub(crate) fn list(mut leases: Vec<Lease>) -> Table {
    leases.sort_by(|a, b| (&a.start_date, &a.name, &a.id).cmp(&(&b.start_date, &b.name, &b.id)));
    let mut table = Table::new([
        word("NAME"),
        word("PROJECT").hide(2),
        prose("STATUS"),
        date("START"),
        date("END"),
        prose("RESERVED"),
        id("ID").hide(1).key(),
    ])
    .or("There are no leases.");
    for lease in &leases {
        table.add_row([
            lease.name.clone(),
            lease.project_id.clone(),
            status(lease),
            lease.start_date.clone(),
            lease.end_date.clone(),
            reserved(lease),
            lease.id.clone(),
        ]);
    }
    table
}

/// Shows one lease with all details.
pub(super) fn one(lease: &Lease, zone: &TimeZone) -> String {
    let mut lines = vec![format!("Lease {} ({})", lease.name, lease.id)];
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("  {name:<13}{value}"));
        }
    };
    line("status", &status(lease));
    if let Some(kind) = lease.kind.as_deref().filter(|name| *name != "SCHEDULE") {
        line("type", &format!("{kind}, {}", lease.state.as_deref().unwrap_or_default()));
    }
    line("plan", &lease.plan.as_ref().map(PlanSummary::text).unwrap_or_default());
    line("because", lease.status_reason.as_deref().unwrap_or_default());
    line("project", &lease.project_id);
    line("user", &lease.user_id);
    line("start", &shown(&lease.start_date, zone));
    line("end", &format!("{}{}", shown(&lease.end_date, zone), lasts(lease)));
    line("cost", &lease.cost.as_ref().map(Cost::text).unwrap_or_default());
    line("hosts", &lease.hosts().join(", "));
    line("addresses", &lease.addresses().join(", "));
    if lease.backfill {
        line("backfill", "preemptible instances can run on its unused hosts");
    }
    if let Some(action) = lease.end_action.as_deref().filter(|action| *action != "delete") {
        line("end action", action);
    }
    line("hints", &super::hints::shown(&lease.scheduler_hints));
    for reservation in &lease.reservations {
        line("reserved", &format!("{}, {} ({})", summary(reservation), reservation.status, reservation.id));
        line("  where", &requirement(reservation));
        line("  with", &super::suiting::shown(reservation));
        if reservation.missing_resources {
            line("", "  a failed resource has no replacement");
        }
    }
    for event in lease.events.iter().filter(|event| happens(event, lease)) {
        let time = event.time.as_deref().map(|time| shown(time, zone)).unwrap_or_default();
        let done = match event.status.as_deref() {
            Some("UNDONE") => "not yet",
            status => status.unwrap_or_default(),
        };
        line("event", &format!("{time}  {} {done}", event.kind));
    }
    lines.join("\n")
}

/// Whether an event has happened or can still happen.
fn happens(event: &Event, lease: &Lease) -> bool {
    if event.status.as_deref() != Some("UNDONE") {
        return true;
    }
    let is_any = |statuses: &[LeaseStatus]| statuses.iter().any(|status| status.name() == lease.status);
    let waits = || is_any(&[LeaseStatus::Creating, LeaseStatus::Pending, LeaseStatus::Starting]);
    match event.kind.as_str() {
        "before_start_lease" => {
            let time = event.time.as_deref().and_then(of_answer);
            let made = lease.created_at.as_deref().and_then(of_answer);
            waits() && time.zip(made).is_none_or(|(time, made)| time >= made)
        }
        "timeout" => waits(),
        "before_end_lease" => !is_any(&[
            LeaseStatus::Terminating,
            LeaseStatus::Terminated,
            LeaseStatus::Deleting,
            LeaseStatus::Error,
        ]),
        _ => true,
    }
}

fn status(lease: &Lease) -> String {
    if lease.degraded { format!("{}, degraded", lease.status) } else { lease.status.clone() }
}

/// Summarizes the reservations, with the first address of each if it is short.
fn reserved(lease: &Lease) -> String {
    let is_short = |address: &str| address.len() <= LONGEST_ADDRESS;
    let summaries =
        lease.reservations.iter().map(|reservation| match reservation.texts("floating_ips").as_slice() {
            [only] if is_short(only) => format!("{} ({only})", summary(reservation)),
            [first, others @ ..] if is_short(first) => {
                format!("{} ({first} +{})", summary(reservation), others.len())
            }
            _ => brief_summary(reservation),
        });
    summaries.collect::<Vec<_>>().join(", ")
}

fn lasts(lease: &Lease) -> String {
    match (of_answer(&lease.start_date), of_answer(&lease.end_date)) {
        (Some(start), Some(end)) => format!(" (lasts {})", length(end.duration_since(start))),
        _ => String::new(),
    }
}

/// Summarizes a reservation in a table: instances as `8 x 2 vCPU, 4 GiB, 20 GiB`.
pub(super) fn brief_summary(reservation: &Reservation) -> String {
    summary(reservation).replace(" instances of ", " x ").replace(" instance of ", " x ")
}

/// Summarizes a reservation: `2-4 hosts`, `8 instances of 2 vCPU, 4 GiB, 20 GiB`.
pub(crate) fn summary(reservation: &Reservation) -> String {
    let number = |key: &str| reservation.fields.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let amount = number("amount");
    match reservation.resource_type.as_str() {
        "physical:host" => match (number("min"), number("max")) {
            (1, 1) => "1 host".to_owned(),
            (min, max) if min == max => format!("{min} hosts"),
            (min, max) => format!("{min}-{max} hosts"),
        },
        "virtual:instance" | "flavor:instance" => {
            let noun = if amount == 1 { "instance" } else { "instances" };
            let memory = memory(&number("memory_mb").into());
            format!("{amount} {noun} of {} vCPU, {memory}, {} GiB", number("vcpus"), number("disk_gb"))
        }
        "virtual:floatingip" if amount == 1 => "1 address".to_owned(),
        "virtual:floatingip" => format!("{amount} addresses"),
        other => other.to_owned(),
    }
}

fn requirement(reservation: &Reservation) -> String {
    if reservation.resource_type == "flavor:instance" {
        return String::new();
    }
    let keys = ["hypervisor_properties", "resource_properties"];
    let texts = keys.iter().filter_map(|key| reservation.fields.get(*key)).map(plain);
    texts.filter(|text| !text.is_empty() && text != "[]").collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease() -> Lease {
        let lease = json!({
            "id": "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753", "name": "web", "user_id": "ann", "project_id": "p1",
            "start_date": "2030-01-02T10:00:00.000000", "end_date": "2030-01-04T12:00:00.000000",
            "status": "ACTIVE", "degraded": true, "status_reason": "node2 has failed",
            "reservations": [{
                "id": "5a973d27-45ce-42ac-9bea-af4215742824", "resource_type": "physical:host", "status": "active",
                "missing_resources": true, "hosts": ["node1", "node7"], "min": 2, "max": 3, "hypervisor_properties": "",
                "resource_properties": "[\"==\", \"$rack\", \"r1\"]",
            }],
            "events": [{"event_type": "start_lease", "time": "2030-01-02T10:00:00.000000", "status": "DONE"}],
        });
        serde_json::from_value(lease).expect("a lease")
    }

    #[test]
    fn a_lease_is_shown_with_what_is_wrong_with_it() {
        let wanted = "\
Lease web (ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753)
  status       ACTIVE, degraded
  because      node2 has failed
  project      p1
  user         ann
  start        2030-01-02 10:00
  end          2030-01-04 12:00 (lasts 2d 2h)
  hosts        node1, node7
  reserved     2-3 hosts, active (5a973d27-45ce-42ac-9bea-af4215742824)
    where      [\"==\", \"$rack\", \"r1\"]
                 a failed resource has no replacement
  event        2030-01-02 10:00  start_lease DONE";
        assert_eq!(one(&lease(), &TimeZone::UTC), wanted);
    }

    #[test]
    fn events_are_left_out_only_if_they_can_no_longer_happen() {
        let shows = |status: &str, kind: &str, time: &str, done: &str| {
            let mut leased = lease();
            leased.status = status.to_owned();
            leased.created_at = Some("2030-01-02 09:50:00".to_owned());
            let event =
                json!({"event_type": kind, "time": format!("2030-01-02T{time}:00.000000"), "status": done});
            leased.events = vec![serde_json::from_value(event).expect("an event")];
            let done = if done == "UNDONE" { "not yet" } else { done };
            one(&leased, &TimeZone::UTC)
                .ends_with(&format!("\n  event        2030-01-02 {time}  {kind} {done}"))
        };
        for (status, kind, time, happens) in [
            ("PENDING", "before_start_lease", "09:55", true),
            ("PENDING", "before_start_lease", "09:45", false),
            ("STARTING", "timeout", "10:00", true),
            // The warning of a short lease is due at its start.
            ("PENDING", "before_end_lease", "10:00", true),
            ("ACTIVE", "before_end_lease", "10:00", true),
            ("ACTIVE", "before_start_lease", "09:55", false),
            ("ACTIVE", "timeout", "10:00", false),
            ("ERROR", "before_end_lease", "10:00", false),
            ("ERROR", "end_lease", "10:00", true),
        ] {
            assert_eq!(shows(status, kind, time, "UNDONE"), happens, "{status}, {kind} at {time}");
        }
        for (kind, done) in [
            ("before_start_lease", "IN_PROGRESS"),
            ("before_start_lease", "DONE"),
            ("before_end_lease", "ERROR"),
            ("timeout", "DONE"),
        ] {
            assert!(shows("ERROR", kind, "09:45", done), "{kind} {done}");
        }
    }

    #[test]
    fn a_lease_is_shown_with_its_cost_if_it_has_one() {
        for (amount, text) in [("7.2", "7.20 EUR"), ("12", "12.00 EUR"), ("0.000001", "0.000001 EUR")] {
            let cost = Cost { amount: amount.to_owned(), currency: "EUR".to_owned() };
            let shown = one(&Lease { cost: Some(cost), ..lease() }, &TimeZone::UTC);
            assert!(shown.contains(&format!("\n  cost         {text}\n")), "{shown}");
        }
    }

    #[test]
    fn addresses_are_in_the_list_and_with_their_lease() {
        let mut leased = lease();
        let addresses = json!({
            "id": "r", "resource_type": "virtual:floatingip", "amount": 2, "status": "active",
            "floating_ips": ["10.0.0.7", "10.0.0.9"],
        });
        leased.reservations = vec![serde_json::from_value(addresses).expect("a reservation")];
        assert!(one(&leased, &TimeZone::UTC).contains("  addresses    10.0.0.7, 10.0.0.9"));
        assert_eq!(reserved(&leased), "2 addresses (10.0.0.7 +1)");
        let long = json!({
            "id": "r", "resource_type": "virtual:floatingip", "amount": 1, "status": "active",
            "floating_ips": ["2001:db8:85a3:8d3:1319:8a2e:370:7348"],
        });
        leased.reservations = vec![serde_json::from_value(long).expect("a reservation")];
        assert_eq!(reserved(&leased), "1 address");
    }

    #[test]
    fn instances_are_brief_in_tables_and_memory_is_in_whole_gibibytes() {
        let instances = |amount: u64, memory: u64| -> Reservation {
            let reservation = json!({"id": "r", "resource_type": "virtual:instance", "amount": amount, "vcpus": 8,
                "memory_mb": memory, "disk_gb": 20});
            serde_json::from_value(reservation).expect("a reservation")
        };
        assert_eq!(summary(&instances(24, 16384)), "24 instances of 8 vCPU, 16 GiB, 20 GiB");
        assert_eq!(brief_summary(&instances(24, 16384)), "24 x 8 vCPU, 16 GiB, 20 GiB");
        assert_eq!(brief_summary(&instances(1, 512)), "1 x 8 vCPU, 512 MiB, 20 GiB");
        let leased = Lease { reservations: vec![instances(2, 4096)], ..lease() };
        assert_eq!(reserved(&leased), "2 x 8 vCPU, 4 GiB, 20 GiB");
    }

    #[test]
    fn leases_are_listed_by_start() {
        let earlier = Lease {
            name: "ci".to_owned(),
            start_date: "2029-01-01T00:00:00.000000".to_owned(),
            degraded: false,
            reservations: Vec::new(),
            ..lease()
        };
        let wanted = [
            " NAME  PROJECT  STATUS            START             END               RESERVED   ID",
            " ci    p1       ACTIVE            2029-01-01 00:00  2030-01-04 12:00             ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753",
            " web   p1       ACTIVE, degraded  2030-01-02 10:00  2030-01-04 12:00  2-3 hosts  ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753",
        ];
        assert_eq!(list(vec![lease(), earlier]).in_pipe().lines().collect::<Vec<_>>(), wanted);
    }
}
