//! Answers external schedulers about the hosts that an instance may use. The same decision chooses hosts for
//! the service's own instances.

use std::collections::HashMap;

use jiff::Timestamp;
use leases::instance::InstanceKind;
use leases::work::Budget;

use crate::hints::places;
use crate::instances::Instances;
use crate::placing::Place;
use crate::state::State;
use crate::types::{HostAnswer, HostQuestion, HostRefusal, ServiceError};

impl Instances<'_> {
    /// Hosts for such an instance, and for how long. [`Instances::create`] would choose from the same hosts.
    /// Doesn't reserve capacity.
    pub async fn hosts_for(self, question: &HostQuestion) -> Result<HostAnswer, ServiceError> {
        self.service.consider(|budget| self.hosts_now_for(question, budget)).await
    }

    fn hosts_now_for(self, question: &HostQuestion, budget: &Budget) -> Result<HostAnswer, ServiceError> {
        let (state, now) = (self.service.snapshot(), self.service.now());
        if let Some(moved) = self.moved(&state, question) {
            return Ok(moved);
        }
        let Place { kind, within, size, class } =
            self.service.decider.place_of(&state, &question.project, &question.placing, now)?;
        let hints = places(&state, &question.project, &question.placing.others)?;
        let backfill = self.service.decider.backfill(&state, kind, now);
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self
            .service
            .decider
            .admission_at(&state, &facts, now)
            .with_backfill(backfill.as_ref())
            .with_budget(budget);
        let filter = |observed: &_| {
            let verdicts = admission.filter(within, size, &hints, (state.inventory.hosts(), observed));
            verdicts.into_iter().map(|(host, verdict)| (host.name.as_str(), verdict)).collect::<Vec<_>>()
        };
        // Guests that are about to start take capacity. A request without a size doesn't need any.
        let verdicts = match size {
            Some(_) => filter(&self.service.decider.expected(&state)),
            None => filter(&self.service.observed()),
        };
        let rules = &self.service.decider.settings.plan_rules;
        let notice = rules.notice(class.as_ref());
        let leaves = |until: Timestamp| match kind {
            InstanceKind::Preemptible => rules.asks_at(until, notice).max(now),
            InstanceKind::Reserved { .. } | InstanceKind::Regular => until,
        };
        let closed = kind == InstanceKind::Regular && !self.service.decider.settings.open_pool;
        let verdicts = verdicts.into_iter().map(|(name, verdict)| {
            let verdict = verdict.map(|until| until.map(leaves)).map_err(HostRefusal::Unfit);
            (name, if closed { verdict.and(Err(HostRefusal::Closed)) } else { verdict })
        });
        let Some(names) = &question.hosts else {
            let hosts = verdicts.map(|(name, verdict)| (name.to_owned(), verdict)).collect();
            return Ok(HostAnswer { kind, hosts });
        };
        let known: HashMap<&str, _> = verdicts.collect();
        // Regular instances may use hosts that the service doesn't manage.
        let not_managed = || match kind {
            InstanceKind::Regular => Ok(None),
            InstanceKind::Reserved { .. } | InstanceKind::Preemptible => Err(HostRefusal::NotManaged),
        };
        let verdict =
            |name: &String| (name.clone(), known.get(name.as_str()).copied().unwrap_or_else(not_managed));
        Ok(HostAnswer { kind, hosts: names.iter().map(verdict).collect() })
    }

    /// Answer for a guest that is moved for a lease. Only the destination of its move is allowed.
    fn moved(self, state: &State, question: &HostQuestion) -> Option<HostAnswer> {
        let guest = question.instance?;
        let observed = self.service.observed();
        let hunts = state.leases.hunters().filter_map(|record| record.lease.hunt.as_ref());
        let mut moves = hunts.flat_map(|hunt| hunt.open(&observed));
        let to = state.inventory.host(moves.find(|mov| mov.guest == guest)?.to)?.name.clone();
        let names = question.hosts.clone().unwrap_or_else(|| vec![to.clone()]);
        let verdict = |name: String| {
            let verdict = if name == to { Ok(None) } else { Err(HostRefusal::MovedElsewhere) };
            (name, verdict)
        };
        Some(HostAnswer { kind: InstanceKind::Regular, hosts: names.into_iter().map(verdict).collect() })
    }
}
