//! Recurring leases (CLS-10). They are created together and deleted together. If some windows lack capacity,
//! the owner chooses between no leases and leases in the remaining windows.

use std::collections::BTreeMap;
use std::sync::Arc;

use leases::admission::{Admission, Refusal};
use leases::calendar::Calendar;
use leases::ids::{LeaseId, SeriesId};
use leases::lease::{Lease, NewLease as Identity};
use leases::quota::LeaseUse;
use leases::terms::Terms;
use leases::window::Window;
use leases::work::Budget;
use store::{Commit, LeaseRecord};

use super::Leases;
use super::create::{enter, remembered};
use super::enforcing::{Question, granted};
use super::holding::Decision;
use super::moving::{decide_new, enter_reallocated, reallocated};
use crate::deciding::Part;
use crate::execution::sight::Observation;
use crate::state::State;
use crate::transact::ATTEMPTS;
use crate::types::{Caller, IdempotencyKey, LeaseFilter, NewLease, ServiceError};
use crate::writing::{conflict_error, retry_on_conflict, truncate_to_stored_precision};

/// Maximum number of parts in which a series is decided. Each part has the budget of one decision.
const PARTS: u64 = 64;
/// A part stops taking leases once it has spent 1/8 of its budget, so that other requests wait less. All
/// parts together suffice for a year of weekly leases on 10,000 hosts.
const SHARE: u64 = 8;

/// A lease requested for several windows.
#[derive(Clone, Debug)]
pub struct NewSeries {
    /// The lease's terms. Its own dates are ignored.
    pub lease: NewLease,
    /// Windows of the leases, in order.
    pub windows: Vec<Window>,
    /// Whether windows without enough capacity are skipped. If not, such a window causes a refusal of the
    /// whole series.
    pub skips: bool,
}

/// Leases that were created together.
#[derive(Clone, Debug)]
pub struct Series {
    pub id: SeriesId,
    /// Leases ordered by start.
    pub leases: Vec<Arc<LeaseRecord>>,
    /// Skipped windows, each with its refusal.
    pub skipped: Vec<(Window, Refusal)>,
}

/// The part of a series that is decided so far, all on one state.
struct ProposedSeries {
    state: Arc<State>,
    /// Calendar that includes the leases of the series.
    calendar: Calendar,
    leases: Vec<Arc<LeaseRecord>>,
    /// Skipped windows, each with its refusal.
    skipped: Vec<(Window, Refusal)>,
    /// Leases that get other hosts to make room for the series, before and after.
    moved: BTreeMap<LeaseId, (Arc<LeaseRecord>, LeaseRecord)>,
    parts: u64,
}

impl ProposedSeries {
    fn new(state: Arc<State>) -> Self {
        Self {
            calendar: state.calendar.clone(),
            state,
            leases: Vec::new(),
            skipped: Vec::new(),
            moved: BTreeMap::new(),
            parts: 0,
        }
    }

    /// Whether the next lease is left to another part.
    fn rests(&self, budget: &Budget) -> bool {
        self.parts + 1 < PARTS && budget.used_part_of(SHARE)
    }

    /// Marks the first lease with the observation that it was decided on.
    fn decided_on(mut self, observation: Observation) -> Self {
        if let Some(first) = self.leases.first_mut() {
            observation.mark(&mut Arc::make_mut(first).lease);
        }
        self
    }
}

/// Window that caused the refusal of a series.
#[derive(Debug)]
pub struct Missing {
    pub window: Window,
    pub error: Box<ServiceError>,
    /// Whether only earlier leases of the same series are in the way.
    pub overlaps: bool,
}

impl Missing {
    fn new(window: Window, error: impl Into<ServiceError>) -> Self {
        Self { window, error: Box::new(error.into()), overlaps: false }
    }
}

impl Leases<'_> {
    /// Creates recurring leases. A request with a known idempotency key gets the leases of the first request
    /// that still exist.
    pub async fn create_series(
        self,
        caller: &Caller,
        new: &NewSeries,
        key: Option<&IdempotencyKey>,
    ) -> Result<Series, Missing> {
        let whole = |error: ServiceError| Missing::new(new.lease.terms.window(), error);
        let id = SeriesId(self.service.parts.ids.uuid());
        let identities = self.identities(caller, new);
        let now = truncate_to_stored_precision(new.lease.asked_at);
        self.check_size(&new.lease, new.windows.len()).map_err(whole)?;
        let observation = self.observe_for_series(new).await;
        let holds = |state: &State, proposed: &Result<ProposedSeries, Missing>| {
            // A refusal stands: it was right for the state that it was decided on.
            proposed.as_ref().map_or(true, |ProposedSeries { leases, moved, .. }| {
                let moved = moved.values().map(|(before, after)| (Some(&**before), after));
                let made = leases.iter().map(|record| (None, &**record));
                let decisions: Vec<Decision<'_>> = moved.chain(made).collect();
                self.service.decider.still_hold(state, &decisions, now)
            })
        };
        let mut approved: Option<Vec<Lease>> = None;
        for _ in 0..ATTEMPTS {
            let propose = |so_far, budget: &Budget| {
                Ok(self.propose_series((caller, new), (id, &identities), observation, so_far, budget))
            };
            let (writer, proposed) = self.service.decided_in_parts(propose, &holds).await.map_err(whole)?;
            if let Some(key) = key
                && let Some(created) = self.recorded(caller, key, now).await.map_err(whole)?
                && let Some(id) = created.lease.lease.series
            {
                return Ok(Series { id, leases: self.series(id), skipped: Vec::new() });
            }
            let proposed = proposed.inspect_err(|missing| self.count_refusal(caller, new, missing))?;
            let ProposedSeries { leases, skipped, moved, .. } = proposed;
            let proposed: Vec<Lease> = leases.iter().map(|record| record.lease.clone()).collect();
            if let Some(enforcer) = &self.service.parts.enforcer
                && approved.as_ref() != Some(&proposed)
            {
                let questions: Vec<Question> = {
                    let state = self.service.state();
                    leases.iter().map(|record| Question::Create(granted(&state, record.clone()))).collect()
                };
                drop(writer);
                for (question, lease) in questions.iter().zip(&proposed) {
                    let asked = self.ask(enforcer.as_ref(), caller, question).await;
                    asked.map_err(|error| Missing::new(lease.window, error))?;
                }
                approved = Some(proposed);
                continue;
            }
            let mut commit = Commit::new(now);
            enter_reallocated(&mut commit, moved.into_values().collect());
            for record in &leases {
                enter(&mut commit, caller, LeaseRecord::clone(record));
            }
            commit.idempotency = key.zip(leases.first()).map(|(key, record)| remembered(caller, key, record));
            match writer.commit_request(commit).await {
                Ok(()) => {
                    if let Some(record) = leases.first() {
                        self.service.wake_if_soon(record.lease.window.start());
                    }
                    return Ok(Series { id, leases, skipped });
                }
                Err(error) => retry_on_conflict(error).map_err(whole)?,
            }
        }
        Err(whole(conflict_error()))
    }

    /// The leases that this request would get now, without creating them.
    pub async fn preview_series(self, caller: &Caller, new: &NewSeries) -> Result<Series, Missing> {
        let id = SeriesId(self.service.parts.ids.uuid());
        let whole = |error: ServiceError| Missing::new(new.lease.terms.window(), error);
        self.check_size(&new.lease, new.windows.len()).map_err(whole)?;
        let observation = self.observe_for_series(new).await;
        let identities = self.identities(caller, new);
        let propose = |so_far, budget: &Budget| {
            Ok(self.propose_series((caller, new), (id, &identities), observation, so_far, budget))
        };
        let proposed = self.service.consider_in_parts(propose).await.map_err(whole)?;
        let proposed = proposed.inspect_err(|missing| self.count_refusal(caller, new, missing))?;
        let ProposedSeries { leases, skipped, .. } = proposed;
        Ok(Series { id, leases, skipped })
    }

    /// Counts a series that was refused for lack of capacity as one request. Overlaps between its own leases
    /// don't count.
    fn count_refusal(self, caller: &Caller, new: &NewSeries, missing: &Missing) {
        if !missing.overlaps {
            self.service.count_refusal(caller, &new.lease, &missing.error);
        }
    }

    /// Observes the hosts first if the first lease starts immediately.
    async fn observe_for_series(self, new: &NewSeries) -> Observation {
        let Some(first) = new.windows.first() else { return Observation::default() };
        self.service.observe_for(first.start(), &new.lease.terms.reservations).await
    }

    /// Identifiers for each of the leases. They stay the same when the decision is repeated.
    fn identities(self, caller: &Caller, new: &NewSeries) -> Vec<Identity> {
        new.windows.iter().map(|_| self.service.decider.identify(caller, &new.lease)).collect()
    }

    /// Decides the next part of a series: as many of the remaining leases as the budget allows.
    fn propose_series(
        self,
        (caller, new): (&Caller, &NewSeries),
        (id, identities): (SeriesId, &[Identity]),
        observation: Observation,
        so_far: Option<Result<ProposedSeries, Missing>>,
        budget: &Budget,
    ) -> Part<Result<ProposedSeries, Missing>> {
        let so_far = so_far.unwrap_or_else(|| Ok(ProposedSeries::new(self.service.snapshot())));
        let proposed =
            so_far.and_then(|so_far| self.propose_more(caller, new, id, identities, so_far, budget));
        match proposed {
            Ok(proposed) if proposed.leases.len() + proposed.skipped.len() < new.windows.len() => {
                Part::More(Ok(proposed))
            }
            proposed => Part::Done(proposed.map(|proposed| proposed.decided_on(observation))),
        }
    }

    fn propose_more(
        self,
        caller: &Caller,
        new: &NewSeries,
        id: SeriesId,
        identities: &[Identity],
        mut series: ProposedSeries,
        budget: &Budget,
    ) -> Result<ProposedSeries, Missing> {
        let now = truncate_to_stored_precision(new.lease.asked_at);
        let state = Arc::clone(&series.state);
        let facts = self.service.decider.host_facts(&state, now);
        let rules = &self.service.decider.settings.housekeeping;
        let decided = series.leases.len() + series.skipped.len();
        let windows = new.windows.iter().zip(identities).skip(decided);
        for (index, (window, identity)) in windows.enumerate() {
            if index > 0 && series.rests(budget) {
                series.parts += 1;
                return Ok(series);
            }
            let terms: Terms = new.lease.terms.clone().during(*window);
            let admission =
                self.service.decider.admission(&state, &facts, now, budget).with_calendar(&series.calendar);
            let decide = |admission: &Admission<'_>| -> Result<Lease, Refusal> {
                let grant = admission.grant_usual(&caller.project, &terms, rules)?;
                let lease = self.service.decider.lease_of(&state, identity, new.lease.end_action, grant);
                Ok(Lease { series: Some(id), ..lease })
            };
            let movable = || {
                let mut movable = self.service.decider.movable(&state, now, None);
                for other in &mut movable.others {
                    *other = series.moved.get(&other.id).map_or(*other, |(_, after)| &after.lease);
                }
                movable
            };
            let (lease, others) = match decide_new(&admission, (&caller.project, &terms), movable, decide) {
                Ok(decided) => decided,
                Err(refusal) if new.skips && refusal.is_lack() => {
                    series.skipped.push((*window, refusal));
                    continue;
                }
                Err(refusal) => {
                    let alone = || admission.with_calendar(&state.calendar);
                    let occupied = window.widened(state.calendar.cleaning_time());
                    let overlaps = refusal.is_lack()
                        && series.leases.iter().any(|other| other.lease.window.overlaps(&occupied))
                        && alone().grant_usual(&caller.project, &terms, rules).is_ok();
                    let asked = LeaseUse::least_of(&terms);
                    let decider = &self.service.decider;
                    let refusal =
                        decider.with_quota(&state, &caller.project, (None, &asked), &series.leases, refusal);
                    return Err(Missing { overlaps, ..Missing::new(*window, refusal) });
                }
            };
            let wording =
                identity.reservations.iter().copied().zip(new.lease.wording.iter().cloned()).collect();
            let stacked = self.service.decider.check_stack_among(&state, None, &lease, &series.leases);
            stacked.map_err(|refusal| Missing::new(*window, refusal))?;
            // Their hosts were found free in this calendar.
            let _ = series.calendar.put_all(others.iter().chain([&lease]), now);
            let moved = reallocated(&state, others, now).into_iter();
            series.moved.extend(moved.map(|(before, after)| (before.lease.id, (before, after))));
            series.leases.push(Arc::new(LeaseRecord::new(lease, wording, now)));
        }
        if series.leases.is_empty()
            && let Some((window, refusal)) = series.skipped.first()
        {
            return Err(Missing::new(*window, refusal.clone()));
        }
        Ok(series)
    }

    /// Existing leases of a series, ordered by start.
    pub fn series(self, id: SeriesId) -> Vec<Arc<LeaseRecord>> {
        let mut leases = self.all(&LeaseFilter { series: Some(id), ..LeaseFilter::default() });
        leases.sort_by_key(|record| (record.lease.window.start(), record.lease.id));
        leases
    }
}
