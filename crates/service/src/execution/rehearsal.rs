//! Determinism check for simulations: decides the next cycle twice, and once more with a commit after each
//! pass. The results must be equal.

use std::fmt::Debug;
use std::sync::Arc;

use ambient::SeededIds;

use super::Execution;
use super::decide::{FIRST, PLANNING, Pass};
use super::draft::{Decision, Draft};
use crate::decider::Decider;
use crate::state::State;

impl Execution<'_> {
    /// Decides the next cycle in three ways, without committing or remembering anything. Fails with the first
    /// difference between the decisions.
    pub fn rehearse(self) -> Result<(), String> {
        let passes: Vec<&Pass> = FIRST.iter().chain(&PLANNING).collect();
        let whole = self.rehearsed(|decider, draft| decided(decider, draft, &passes));
        let again = self.rehearsed(|decider, draft| decided(decider, draft, &passes));
        alike(&whole, &again).map_err(|difference| format!("decided again, {difference}"))?;
        let by_pass = self.rehearsed(|decider, draft| one_by_one(decider, &draft, &passes));
        alike(&whole, &by_pass).map_err(|difference| format!("decided pass by pass, {difference}"))
    }

    /// Decides with a copy of the memory, and with the same identifiers each time.
    fn rehearsed(self, decide: impl FnOnce(&Decider, Draft) -> Decision) -> Decision {
        let decider = self.service.decider.twin(Arc::new(SeededIds::new(0)));
        let (machines, steps_ended) = {
            let mut progress = decider.progress();
            (progress.machines.take().map(Arc::new), !progress.outcomes.is_empty())
        };
        let draft = decider.draft(self.service.snapshot(), machines, steps_ended, self.service.now());
        decide(&decider, draft)
    }
}

fn decided(decider: &Decider, draft: Draft, passes: &[&Pass]) -> Decision {
    decider.go_through(draft, passes.iter().copied())
}

/// Runs each pass on the committed changes of the passes before it.
fn one_by_one(decider: &Decider, draft: &Draft, passes: &[&Pass]) -> Decision {
    let mut all = Decision::default();
    let mut state = State::clone(&draft.state());
    for pass in passes {
        let on =
            Draft::new(Arc::new(state.clone()), draft.now).knowing(draft.machines.clone(), draft.steps_ended);
        let decision = decided(decider, on, std::slice::from_ref(pass));
        for entry in decision.entries.of_passes.iter().flatten() {
            let applied = state.apply(entry.commit.writes.clone(), draft.now);
            debug_assert!(applied.is_ok(), "{pass:?}: {applied:?}");
            state.revision = decider.progress().revision_of_draft(state.revision);
        }
        all.extend(decision);
    }
    all
}

/// Fails if the decisions differ.
fn alike(one: &Decision, other: &Decision) -> Result<(), String> {
    let entries = |decision: &Decision| texts(decision.entries.of_passes.iter().flatten());
    all_alike("changes", &entries(one), &entries(other))?;
    all_alike("steps", &texts(&one.steps), &texts(&other.steps))?;
    all_alike("passes", &texts(&one.passes), &texts(&other.passes))?;
    all_alike("recorded hosts", &texts(&one.recorded), &texts(&other.recorded))
}

fn texts(values: impl IntoIterator<Item = impl Debug>) -> Vec<String> {
    values.into_iter().map(|value| format!("{value:?}")).collect()
}

fn all_alike(what: &str, some: &[String], others: &[String]) -> Result<(), String> {
    if some == others {
        return Ok(());
    }
    let first = some.iter().zip(others).take_while(|(one, other)| one == other).count();
    Err(format!("{what} differ: {:?} and {:?}", some.get(first), others.get(first)))
}
