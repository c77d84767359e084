//! What a client was told, to be held against what is there later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::leasing::date::Minute;
use crate::leasing::http::{Answer, Caller, text};

/// How long leases may take to become what they are to be, however slow their machines are.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long leases last unless they are ended, in minutes: longer than any check.
const LASTS_MINUTES: i64 = 600;

/// What was last acknowledged of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// It is to begin, or has.
    Runs,
    /// It was given the present as its end.
    Ended,
    /// It was deleted.
    Gone,
}

/// What was asked for without an answer: it may or may not have happened.
#[derive(Clone, Debug, Default)]
struct Doubt {
    ended: bool,
    gone: bool,
    /// Ends that it may have been given.
    ends: Vec<Minute>,
}

/// What is known of a lease.
#[derive(Clone, Debug)]
struct Known {
    wanted: Wanted,
    /// When it is to end.
    end: Minute,
    doubt: Doubt,
}

/// All leases that a client knows of.
#[derive(Debug, Default)]
pub struct Acknowledged {
    leases: BTreeMap<String, Known>,
}

impl Acknowledged {
    /// How many leases were acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    /// Leases that are there as far as the client knows.
    pub fn running(&self) -> Vec<String> {
        self.leases.iter().filter(|(_, known)| known.runs()).map(|(id, _)| id.clone()).collect()
    }

    /// Takes over what another client knows.
    pub fn join(&mut self, other: Self) {
        self.leases.extend(other.leases);
    }

    /// Asks for a lease of hosts that begins at once.
    pub fn create(&mut self, caller: &Caller, hosts: usize) -> Result<Answer> {
        self.create_named(caller, "a lease", "now", hosts)
    }

    /// Asks for a lease of hosts of that name, which begins then.
    pub fn create_named(&mut self, caller: &Caller, name: &str, start: &str, hosts: usize) -> Result<Answer> {
        let end = Minute::now().plus(LASTS_MINUTES);
        let mut lease = of_hosts(start, hosts, &end.sent());
        lease["name"] = json!(name);
        self.created(caller.post("/v1/leases", &lease))
    }

    /// Deletes leases of that name that should not be there, or of which that is not known: of requests without an
    /// answer.
    pub fn delete_doubtful(&mut self, caller: &Caller, name: &str) {
        // Who is not answered now tries again later.
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

    /// Notes the answer to a request for a lease.
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

    /// Gives a lease the present as its end. No answer leaves a doubt.
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

    /// Lets a lease last so many minutes longer, if its hosts are free then. No answer leaves a doubt.
    pub fn extend(&mut self, caller: &Caller, id: &str, minutes: i64) -> Result<()> {
        let known = self.leases.get_mut(id).context("unknown lease")?;
        let end = known.end.plus(minutes);
        match caller.put(&format!("/v1/leases/{id}"), &json!({"end_date": end.sent()})) {
            // What was asked for before without an answer may still be done after this.
            Ok(Answer { status: 200, .. }) => known.end = end,
            Ok(answer) if answer.status == 409 || answer.is_shortage() => {}
            Ok(answer) if answer.status < 500 => bail!("the extension was refused: {answer:?}"),
            _ => known.doubt.ends.push(end),
        }
        Ok(())
    }

    /// Deletes a lease. No answer leaves a doubt.
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

    /// Every lease that was acknowledged is there, unless its end was asked for, and lasts as long as was said.
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

    /// Every lease becomes what it is to be, and none is stuck.
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

    /// Whether the lease is what it is to be. One that nobody was told of may be anything but on its way.
    fn is_settled(&self, lease: &Value) -> bool {
        let status = lease["status"].as_str().unwrap_or_default();
        // One whose end came before it had started has failed, and is over all the same.
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

/// Its end is done.
fn is_over(lease: &Value) -> bool {
    let mut events = lease["events"].as_array().into_iter().flatten();
    events.any(|event| event["event_type"] == "end_lease" && event["status"] == "DONE")
}

impl Known {
    /// It is there for certain, and not to end yet.
    fn runs(&self) -> bool {
        self.wanted == Wanted::Runs && !self.doubt.ended && !self.doubt.gone
    }
}

/// A reservation of whole hosts, whichever they are.
pub fn whole_hosts(min: usize, max: usize) -> Value {
    json!({"resource_type": "physical:host", "min": min, "max": max,
           "hypervisor_properties": "", "resource_properties": ""})
}

/// A request for a lease of so many hosts.
pub fn of_hosts(start: &str, hosts: usize, end: &str) -> Value {
    let reservation = whole_hosts(hosts, hosts);
    json!({"name": "a lease", "start_date": start, "end_date": end, "reservations": [reservation]})
}

/// No host is stranded: when all leases are deleted, one of all hosts becomes active.
pub fn every_host_can_be_leased(caller: &Caller, hosts: usize) -> Result<()> {
    for lease in caller.leases()? {
        caller.delete(&format!("/v1/leases/{}", text(&lease, "id")?))?.expect(204)?;
    }
    let mut all = Acknowledged::default();
    let answer = all.create(caller, hosts)?;
    ensure!(answer.status == 201, "not all hosts are free: {answer:?}");
    all.all_settle(caller)
}
