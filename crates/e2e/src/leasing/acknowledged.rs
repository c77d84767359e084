//! Records the answers that a client got about its leases, for comparison with the service's state later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::leasing::date::Minute;
use crate::leasing::http::{Answer, Caller, text};

/// Maximum wait for leases to settle, even on slow hosts.
const PATIENCE: Duration = Duration::from_secs(90);

/// Duration of a lease unless it is ended, in minutes. Longer than any check.
const LASTS_MINUTES: i64 = 600;

/// The last acknowledged change of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// It was created: it will start, or has started.
    Runs,
    /// Its end was changed to the current time.
    Ended,
    Gone,
}

/// Requests without an answer. Their outcome is unknown.
#[derive(Clone, Debug, Default)]
struct Doubt {
    ended: bool,
    gone: bool,
    /// End times that were requested.
    ends: Vec<Minute>,
}

/// A lease as its client knows it.
#[derive(Clone, Debug)]
struct Known {
    wanted: Wanted,
    /// Last acknowledged end time.
    end: Minute,
    doubt: Doubt,
}

/// All leases that a client knows of, by identifier.
#[derive(Debug, Default)]
pub struct Acknowledged {
    leases: BTreeMap<String, Known>,
}

impl Acknowledged {
    /// Number of acknowledged leases.
    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Leases that certainly exist and that the client hasn't asked to end.
    pub fn running(&self) -> Vec<String> {
        self.leases.iter().filter(|(_, known)| known.runs()).map(|(id, _)| id.clone()).collect()
    }

    /// Merges another client's knowledge into this one's.
    pub fn join(&mut self, other: Self) {
        self.leases.extend(other.leases);
    }

    /// Requests a lease of hosts that starts now.
    pub fn create(&mut self, caller: &Caller, hosts: usize) -> Result<Answer> {
        self.create_named(caller, "a lease", "now", hosts)
    }

    /// Requests a lease of hosts with a name and a start time.
    pub fn create_named(&mut self, caller: &Caller, name: &str, start: &str, hosts: usize) -> Result<Answer> {
        let end = Minute::now().plus(LASTS_MINUTES);
        let mut lease = of_hosts(start, hosts, &end.sent());
        lease["name"] = json!(name);
        self.created(caller.post("/v1/leases", &lease))
    }

    /// Deletes leases with that name that come from requests without an answer: their state is uncertain, or
    /// they should be gone already.
    pub fn delete_doubtful(&mut self, caller: &Caller, name: &str) {
        // Without an answer, the next call tries again.
        let Ok(leases) = caller.leases() else { return };
        for lease in leases.iter().filter(|lease| lease["name"] == name) {
            let Some(id) = lease["id"].as_str() else { continue };
            match self.leases.get(id) {
                Some(known) if known.runs() || known.wanted != Wanted::Runs => {}
                Some(_) => _ = self.delete(caller, id),
                None => _ = caller.delete(&format!("/v1/leases/{id}")),
            }
        }
    }

    /// Records the answer to a request for a lease.
    pub fn created(&mut self, answer: Result<Answer>) -> Result<Answer> {
        let answer = answer?;
        if answer.status == 201 {
            let lease = &answer.body["lease"];
            let end = Minute::read(text(lease, "end_date")?)?;
            let known = Known { wanted: Wanted::Runs, end, doubt: Doubt::default() };
            self.leases.insert(text(lease, "id")?.to_owned(), known);
        }
        Ok(answer)
    }

    /// Ends a lease now. Without an answer, the end is uncertain.
    pub fn end(&mut self, caller: &Caller, id: &str) -> Result<()> {
        let answer = caller.put(&format!("/v1/leases/{id}"), &json!({"end_date": "now"}));
        let known = self.leases.get_mut(id).context("unknown lease")?;
        match answer {
            Ok(Answer { status: 200, .. }) => known.wanted = Wanted::Ended,
            Ok(answer) if answer.status < 500 => bail!("the end was refused: {answer:?}"),
            _ => known.doubt.ended = true,
        }
        Ok(())
    }

    /// Extends a lease by `minutes`, if its hosts are free. Without an answer, the new end is uncertain.
    pub fn extend(&mut self, caller: &Caller, id: &str, minutes: i64) -> Result<()> {
        let known = self.leases.get_mut(id).context("unknown lease")?;
        let end = known.end.plus(minutes);
        match caller.put(&format!("/v1/leases/{id}"), &json!({"end_date": end.sent()})) {
            // Uncertain ends remain: an earlier request without an answer can still be carried out later.
            Ok(Answer { status: 200, .. }) => known.end = end,
            Ok(answer) if answer.status == 409 || answer.is_shortage() => {}
            Ok(answer) if answer.status < 500 => bail!("the extension was refused: {answer:?}"),
            _ => known.doubt.ends.push(end),
        }
        Ok(())
    }

    /// Deletes a lease. Without an answer, the deletion is uncertain.
    pub fn delete(&mut self, caller: &Caller, id: &str) -> Result<()> {
        let answer = caller.delete(&format!("/v1/leases/{id}"));
        let known = self.leases.get_mut(id).context("unknown lease")?;
        match answer {
            Ok(Answer { status: 204, .. }) => known.wanted = Wanted::Gone,
            Ok(answer) if answer.status < 500 => bail!("the deletion was refused: {answer:?}"),
            _ => known.doubt.gone = true,
        }
        Ok(())
    }

    /// Checks that every acknowledged lease exists, unless its end was requested, and has the acknowledged
    /// end time.
    pub fn all_there(&self, caller: &Caller) -> Result<()> {
        let leases = caller.leases()?;
        for (id, known) in &self.leases {
            let Some(lease) = leases.iter().find(|lease| lease["id"] == id.as_str()) else {
                let may_be_gone = known.wanted == Wanted::Gone || known.doubt.gone;
                ensure!(may_be_gone, "the lease {id} was acknowledged, and is not there");
                continue;
            };
            let end = Minute::read(text(lease, "end_date")?)?;
            let as_said = end == known.end || known.doubt.ends.contains(&end);
            ensure!(
                as_said || !known.runs(),
                "the lease ends at another time than was acknowledged: {lease}"
            );
        }
        Ok(())
    }

    /// Waits until every lease has reached its final state. A lease that doesn't is stuck.
    pub fn all_settle(&self, caller: &Caller) -> Result<()> {
        let started = Instant::now();
        loop {
            let leases = caller.leases()?;
            let unsettled: Vec<&Value> = leases.iter().filter(|lease| !self.is_settled(lease)).collect();
            let Some(first) = unsettled.first() else { return self.all_there(caller) };
            if started.elapsed() > PATIENCE {
                bail!("{} of {} leases are stuck: {first}", unsettled.len(), leases.len());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether the lease has its expected status. A lease that no client was told of can have any status that
    /// isn't transitional.
    fn is_settled(&self, lease: &Value) -> bool {
        let status = lease["status"].as_str().unwrap_or_default();
        // A lease that could not start before its end has failed, and is over too.
        let ended = status == "TERMINATED" || (status == "ERROR" && is_over(lease));
        let known = lease["id"].as_str().and_then(|id| self.leases.get(id));
        match known {
            Some(known) if known.runs() => status == "ACTIVE",
            Some(Known { wanted: Wanted::Ended, .. }) => ended,
            Some(Known { wanted: Wanted::Gone, .. }) => false,
            Some(Known { wanted: Wanted::Runs, .. }) | None => status == "ACTIVE" || ended,
        }
    }
}

/// Whether the lease's `end_lease` event is DONE.
fn is_over(lease: &Value) -> bool {
    let mut events = lease["events"].as_array().into_iter().flatten();
    events.any(|event| event["event_type"] == "end_lease" && event["status"] == "DONE")
}

impl Known {
    /// Whether the lease exists for certain and won't end yet.
    fn runs(&self) -> bool {
        self.wanted == Wanted::Runs && !self.doubt.ended && !self.doubt.gone
    }
}

/// A reservation of whole hosts, without requirements.
pub fn whole_hosts(min: usize, max: usize) -> Value {
    json!({"resource_type": "physical:host", "min": min, "max": max,
           "hypervisor_properties": "", "resource_properties": ""})
}

/// Body of a request for a lease of hosts.
pub fn of_hosts(start: &str, hosts: usize, end: &str) -> Value {
    let reservation = whole_hosts(hosts, hosts);
    json!({"name": "a lease", "start_date": start, "end_date": end, "reservations": [reservation]})
}

/// Checks that no host is stranded: after all leases are deleted, a lease of all hosts becomes ACTIVE.
pub fn every_host_can_be_leased(caller: &Caller, hosts: usize) -> Result<()> {
    for lease in caller.leases()? {
        caller.delete(&format!("/v1/leases/{}", text(&lease, "id")?))?.expect(204)?;
    }
    let mut all = Acknowledged::default();
    let answer = all.create(caller, hosts)?;
    ensure!(answer.status == 201, "not all hosts are free: {answer:?}");
    all.all_settle(caller)
}
