//! Invariants to check after all faults, and a table of observations.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;

use super::faults::{Fault, Kind};
use super::load::{HOSTS, Journal};
use super::outages::{Begun, outage};
use crate::leasing::acknowledged::of_hosts;
use crate::leasing::date::Minute;
use crate::leasing::hooks::Hooks;
use crate::leasing::http::{Caller, text};
use crate::leasing::overlap::no_overlap;
use crate::leasing::replicas::verdict::hosts_change_hands_in_turn;
use crate::leasing::span::Span;

/// Maximum delay of a lease's start beyond the time in which no write succeeded, in milliseconds.
///
/// The loop retries after at most four seconds, finding the primary takes up to four if a server doesn't
/// answer, and a handover takes three rounds of commits and hooks. These are slow on a machine that also runs
/// three databases: two seconds.
pub const MARGIN_MILLIS: i64 = 10_000;

/// The outage that clients observed for each fault.
///
/// # Errors
///
/// No write succeeded after the last fault.
pub fn outages(faults: &[Fault], journal: &Journal) -> Result<Vec<Span>> {
    let spans: Option<Vec<Span>> = faults.iter().map(|fault| outage(&journal.writes, fault.window)).collect();
    spans.context("after the last fault nothing could be written")
}

pub fn print(faults: &[Fault], outages: &[Span], journal: &Journal) {
    println!(
        "\n{:24} {:12} {:>8} {:>8} {:>12} {:>16}",
        "fault", "primary", "outage", "leases", "latest", "beyond outage"
    );
    let seconds = |millis: i64| format!("{:.1} s", millis as f64 / 1000.0);
    for (fault, outage) in faults.iter().zip(outages) {
        let waited: Vec<&Begun> = journal.begun.iter().filter(|begun| begun.waited_in(*outage)).collect();
        println!(
            "{:24} {:12} {:>8} {:>8} {:>12} {:>16}",
            fault.kind.to_string(),
            format!("{} > {}", fault.from, fault.to),
            seconds(outage.millis()),
            waited.len(),
            waited.iter().map(|begun| begun.late()).max().map_or_else(String::new, seconds),
            waited.iter().map(|begun| begun.late_beyond(outages)).max().map_or_else(String::new, seconds),
        );
    }
    let waited = |begun: &&Begun| !outages.iter().any(|outage| begun.waited_in(*outage));
    let mut others: Vec<i64> = journal.begun.iter().filter(waited).map(Begun::late).collect();
    others.sort_unstable();
    let latest = others.last().copied().map_or_else(String::new, seconds);
    println!("{:24} {:12} {:>8} {:>8} {:>12}", "no fault", "", "", others.len(), latest);
    println!(
        "{} writes acknowledged, {} requests repeated, {} leases refused for want of hosts\n",
        journal.writes.len(),
        journal.repeated,
        journal.refused
    );
}

/// Checks the clients' observations.
pub fn of_clients(cases: &mut Cases, faults: &[Fault], outages: &[Span], journal: &Journal) {
    cases.check("no acknowledged lease is lost or stuck", || {
        let first: Vec<&str> = journal.complaints.iter().take(5).map(String::as_str).collect();
        ensure!(first.is_empty(), "{} complaints:\n{}", journal.complaints.len(), first.join("\n"));
        Ok(())
    });
    cases.check("leases were due in every outage that was not planned", || {
        for (fault, outage) in faults.iter().zip(outages) {
            let due = journal.begun.iter().filter(|begun| begun.waited_in(*outage)).count();
            let planned = fault.kind == Kind::SwitchOver;
            ensure!(planned || due > 0, "no lease was due during {}", fault.kind);
        }
        Ok(())
    });
    cases.check("no lease is later than the outage and the margin", || {
        let late = journal.begun.iter().filter(|begun| begun.late_beyond(outages) > MARGIN_MILLIS);
        let late: Vec<String> = late.map(|begun| format!("{begun:?}")).collect();
        ensure!(late.is_empty(), "{} of {} are:\n{}", late.len(), journal.begun.len(), late.join("\n"));
        Ok(())
    });
    cases.check("a primary that is cut off acknowledges nothing", || {
        let acknowledged: usize = faults.iter().map(|fault| fault.acknowledged_alone).sum();
        ensure!(acknowledged == 0, "it acknowledged {acknowledged} writes");
        Ok(())
    });
}

/// Checks the hosts' log of hooks.
pub fn of_machines(cases: &mut Cases, hooks: &Hooks) {
    cases.check("no host is handed to a lease while another has it", || {
        hosts_change_hands_in_turn(&hooks.log_at_rest()?, &[]).map(drop)
    });
}

/// Checks the state after all clients have ended their leases.
pub fn of_what_is_left(cases: &mut Cases, services: &[&Caller]) {
    for caller in services {
        cases.check("every service shows that all leases are deleted, so no lease was created twice", || {
            let left = caller.leases()?;
            ensure!(left.is_empty(), "{} are left: {}", left.len(), left[0]);
            no_overlap(caller)
        });
    }
    cases.check("no host is stranded: all can be leased at the same time", || {
        let caller = services.first().context("no service runs")?;
        let end = Minute::now().plus(30);
        let made = caller.post("/v1/leases", &of_hosts("now", HOSTS, &end.sent()))?.expect(201)?;
        let id = text(&made["lease"], "id")?.to_owned();
        caller.until_lease_is(&id, "ACTIVE", Duration::from_mins(1)).map(drop)
    });
}
