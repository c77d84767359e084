//! What a client was told, to be held against what is there later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::leasing::date::Minute;
use crate::leasing::http::{Answer, Caller, text};

/// How long leases may take to become what they are to be, however slow their machines are.
const PATIENCE: Duration = Duration::from_secs(90);

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
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    ended: bool,
    gone: bool,
}

/// All leases that a client knows of.
#[derive(Debug, Default)]
pub struct Acknowledged {
    leases: BTreeMap<String, (Wanted, Doubt)>,
}

impl Acknowledged {
    /// How many leases were acknowledged.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Leases that are there as far as the client knows.
    pub fn running(&self) -> Vec<String> {
        let runs = |(wanted, doubt): &(Wanted, Doubt)| *wanted == Wanted::Runs && !doubt.ended && !doubt.gone;
        self.leases.iter().filter(|(_, state)| runs(state)).map(|(id, _)| id.clone()).collect()
    }

    /// Asks for a lease of hosts that begins at once.
    pub fn create(&mut self, caller: &Caller, hosts: usize) -> Result<Answer> {
        let start = Minute::now();
        self.created(caller.post("/v1/leases", &of_hosts("now", hosts, &start.plus(600).sent())))
    }

    /// Notes the answer to a request for a lease.
    pub fn created(&mut self, answer: Result<Answer>) -> Result<Answer> {
        let answer = answer?;
        if answer.status == 201 {
            let id = text(&answer.body["lease"], "id")?.to_owned();
            self.leases.insert(id, (Wanted::Runs, Doubt::default()));
        }
        Ok(answer)
    }

    /// Gives a lease the present as its end. No answer leaves a doubt.
    pub fn end(&mut self, caller: &Caller, id: &str) -> Result<()> {
        let answer = caller.put(&format!("/v1/leases/{id}"), &json!({"end_date": "now"}));
        let (wanted, doubt) = self.leases.get_mut(id).context("unknown lease")?;
        match answer {
            Ok(Answer { status: 200, .. }) => *wanted = Wanted::Ended,
            Ok(answer) if answer.status < 500 => bail!("the end was refused: {answer:?}"),
            _ => doubt.ended = true,
        }
        Ok(())
    }

    /// Deletes a lease. No answer leaves a doubt.
    pub fn delete(&mut self, caller: &Caller, id: &str) -> Result<()> {
        let answer = caller.delete(&format!("/v1/leases/{id}"));
        let (wanted, doubt) = self.leases.get_mut(id).context("unknown lease")?;
        match answer {
            Ok(Answer { status: 204, .. }) => *wanted = Wanted::Gone,
            Ok(answer) if answer.status < 500 => bail!("the deletion was refused: {answer:?}"),
            _ => doubt.gone = true,
        }
        Ok(())
    }

    /// Every lease that was acknowledged is there, unless its end was asked for.
    pub fn all_there(&self, caller: &Caller) -> Result<()> {
        let leases = caller.leases()?;
        let there = |id: &str| leases.iter().any(|lease| lease["id"] == id);
        for (id, (wanted, doubt)) in &self.leases {
            let may_be_gone = *wanted == Wanted::Gone || doubt.gone;
            ensure!(may_be_gone || there(id), "the lease {id} was acknowledged, and is not there");
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
        let known = lease["id"].as_str().and_then(|id| self.leases.get(id));
        match known {
            Some((Wanted::Runs, Doubt { ended: false, gone: false })) => status == "ACTIVE",
            Some((Wanted::Ended, _)) => status == "TERMINATED",
            Some((Wanted::Gone, _)) => false,
            Some((Wanted::Runs, _)) | None => ["ACTIVE", "TERMINATED"].contains(&status),
        }
    }
}

/// A request for a lease of so many hosts.
pub fn of_hosts(start: &str, hosts: usize, end: &str) -> Value {
    let reservation = json!({"resource_type": "physical:host", "min": hosts, "max": hosts,
                             "hypervisor_properties": "", "resource_properties": ""});
    json!({"name": "a lease", "start_date": start, "end_date": end, "reservations": [reservation]})
}
