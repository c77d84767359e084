//! Runs decisions: with a budget of work, off the threads that serve requests, and in a fair order.
//!
//! A decision to be committed is made with the write lock if it takes little work, which is nearly always the
//! case. If it takes more, it is made without the lock so that other commits can proceed, and is committed if
//! it still holds by then. Long decisions and reads without the write lock wait for one of a few places;
//! reads of the store have places of their own. Expensive decisions pause for cheap requests. All of this
//! runs on separate threads, so no response waits for a decision that it doesn't need. With only one thread,
//! as in simulations, everything runs on that thread in order of arrival.

use std::sync::Arc;

use leases::project::ProjectId;
use leases::work::{Budget, Stop};
use store::{Revision, StoreError};
use tokio::runtime::Handle;

use crate::client::{Client, Gone};
use crate::cost;
use crate::meter::Meter;
use crate::places::{Kind, Place, Who};
use crate::service::Service;
use crate::state::State;
use crate::turn::{Turn, has_several_threads};
use crate::types::ServiceError;
use crate::writing::{NoWriter, Writer};

/// With the write lock, a decision may use 1/`QUICK` of the work that it may use without.
pub(crate) const QUICK: u64 = 20;
/// Number of attempts without the write lock. After that many conflicts with other commits, the next attempt
/// holds the lock, because otherwise the decision might never succeed.
const AHEAD: usize = 3;

/// Result of one part of a decision.
pub(crate) enum Part<T> {
    Done(T),
    /// The rest needs another part with its own budget.
    More(T),
}

/// Reason why a pass commits nothing.
enum NoCommit {
    /// Nothing to do, or the attempt was given up.
    Found,
    Store(StoreError),
}

impl From<NoWriter> for NoCommit {
    fn from(why: NoWriter) -> Self {
        match why {
            NoWriter::Store(error) => Self::Store(error),
            NoWriter::Gone | NoWriter::Overtaken => Self::Found,
        }
    }
}

impl Service {
    /// Waits for a place of this kind, or until the client leaves.
    pub(crate) async fn place(&self, kind: Kind) -> Result<Place, Gone> {
        let client = Client::current();
        let who = client.as_ref().map_or(Who::Client(None), Client::who);
        let expected = client.as_ref().map(|client| client.expected(kind)).unwrap_or_default();
        let enter = self.places.enter(kind, who, expected);
        let Some(client) = client else { return Ok(enter.await) };
        tokio::select! {
            biased;
            // A free place is taken even if the client has left.
            place = enter => Ok(place),
            () = client.gone() => {
                self.ended.count(Stop::Canceled);
                Err(Gone)
            }
        }
    }

    /// Makes a read-only decision, or a long read. Fails if the client leaves, or with the error of `decide`.
    pub(crate) async fn consider<T>(
        &self,
        decide: impl FnOnce(&Budget) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let place = self.place(Kind::Read).await?;
        self.decide_in(place, decide)
    }

    /// Like [`Self::consider`], in parts. Other clients get their turn between two parts.
    pub(crate) async fn consider_in_parts<T>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        Ok(self.decide_in_parts(&decide, &mut None).await?.1)
    }

    /// Makes a decision to be committed, based on the state in memory. Returns the write lock with it.
    ///
    /// `holds` says whether the decision can still be committed to a state in which only leases and
    /// preemptible instances differ from the state it was based on. It runs with the write lock held, so it
    /// must be cheap.
    pub(crate) async fn decided<T>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, ServiceError>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), ServiceError> {
        let writer = self.writer().await?;
        let quick = Budget::new((self.decider.settings.decision_work / QUICK).max(1));
        let decided = beside_requests(|| decide(&quick));
        writer.meter.count(quick.spent());
        if !quick.exhausted() {
            return Ok((writer, decided?));
        }
        drop(writer);
        self.decided_ahead(decide, holds).await
    }

    /// Like [`Self::decided`], for decisions that are known to cost more: starts without the write lock.
    pub(crate) async fn decided_ahead<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        self.decided_in_parts(|_, budget| decide(budget).map(Part::Done), holds).await
    }

    /// Like [`Self::decided_ahead`], for decisions that can need more than one budget. The last attempt holds
    /// the write lock only if one budget was enough before.
    pub(crate) async fn decided_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        let (mut turn, mut attempts) = (None, 0);
        loop {
            let ((revision, admission_changes), decided) = self.decide_in_parts(&decide, &mut turn).await?;
            let mut writer = self.writer().await?;
            let now = self.decided_on();
            if now == (revision, admission_changes)
                || now.1 == admission_changes && beside_requests(|| holds(&self.snapshot(), &decided))
            {
                writer.turn = turn;
                return Ok((writer, decided));
            }
            attempts += 1;
            if attempts < AHEAD {
                continue;
            }
            // Several parts would block other writers for too long.
            if turn.is_none() {
                let budget = Budget::new(self.decider.settings.decision_work);
                let (decided, work) = self.decide(budget, |budget| decide(None, budget));
                writer.meter.count(work);
                if let Part::Done(decided) = decided? {
                    return Ok((writer, decided));
                }
            }
            return Err(NoWriter::Overtaken.into());
        }
    }

    /// Decides without the write lock. Also returns the revision and the count of [admission
    /// changes](State::admission_changes) that the decision is based on. `turn` becomes the place for decisions
    /// in several parts, once one is needed.
    async fn decide_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: &impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        turn: &mut Option<Place>,
    ) -> Result<((Revision, u64), T), E> {
        let (mut first, mut so_far) = (None, None);
        loop {
            let place = self.place(Kind::Read).await.map_err(NoWriter::from)?;
            // Not before: the decision then includes everything that is committed while it waits for its
            // place.
            let on = *first.get_or_insert_with(|| self.decided_on());
            let part = self.decide_in(place, |budget| decide(so_far, budget));
            so_far = match part? {
                Part::Done(decided) => return Ok((on, decided)),
                Part::More(decided) if turn.is_some() || self.places.is_free(Kind::Parts) => Some(decided),
                // Start again once it is our turn. Otherwise other decisions would take the hosts found so
                // far, and each waiting decision would keep its part in memory.
                Part::More(decided) => {
                    drop(decided);
                    first = None;
                    None
                }
            };
            if turn.is_none() {
                *turn = Some(self.place(Kind::Parts).await.map_err(NoWriter::from)?);
            }
        }
    }

    /// Makes a decision for a pass. Returns the write lock with the result. For `holds`, see
    /// [`Self::decided`].
    pub(crate) async fn decided_by_pass<T>(
        &self,
        find: impl Fn(&Budget) -> Option<T>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<Option<(Writer<'_>, T)>, StoreError> {
        match self.decided_ahead(|budget| find(budget).ok_or(NoCommit::Found), holds).await {
            Ok(found) => Ok(Some(found)),
            Err(NoCommit::Found) => Ok(None),
            Err(NoCommit::Store(error)) => Err(error),
        }
    }

    /// State that decisions are based on, for comparison: the revision, and the counter of changes to
    /// anything but leases and preemptible instances.
    fn decided_on(&self) -> (Revision, u64) {
        let state = self.state();
        (state.revision, state.admission_changes)
    }

    /// Decides in a place with the full budget, and charges the client. Once per use of a place: the usual
    /// cost of its operation follows each charge.
    fn decide_in<T, E: From<NoWriter>>(
        &self,
        place: Place,
        decide: impl FnOnce(&Budget) -> Result<T, E>,
    ) -> Result<T, E> {
        let turn = Turn::begin(&self.places, place);
        let budget = turn.budget(self.decider.settings.decision_work);
        let (decided, work) = self.decide(budget, decide);
        turn.end(work);
        decided
    }

    /// Decides immediately, until the client leaves. Also returns the work: processor time, or the counted
    /// work if that is more, since not every part of a decision counts its work.
    fn decide<T, E: From<NoWriter>>(
        &self,
        budget: Budget,
        decide: impl FnOnce(&Budget) -> Result<T, E>,
    ) -> (Result<T, E>, u64) {
        let client = Client::current();
        let budget = Arc::new(budget);
        let deciding = client.as_ref().map(|client| client.decides(&budget));
        let clock = &self.parts.clock;
        let begun = clock.processor_time();
        let decided = beside_requests(|| decide(&budget));
        let took = begun.zip(clock.processor_time()).map(|(begun, now)| now.saturating_sub(begun));
        drop(deciding);
        let stopped = budget.stopped();
        if let Some(why) = stopped {
            self.ended.count(why);
        }
        let work = budget.spent().max(cost::of_time(took.unwrap_or_default()));
        (if stopped == Some(Stop::Canceled) { Err(NoWriter::Gone.into()) } else { decided }, work)
    }

    /// Charges the current client for the time until the meter is dropped.
    pub(crate) fn meter(&self) -> Meter<'_> {
        Meter::start(&self.places, &*self.parts.clock)
    }

    /// Charges a client for costs other than decisions, commits and reads: its request and the response.
    pub fn charge_beside(&self, client: &Client, cost: u64) {
        self.places.charge_beside(client.owner(), cost);
    }

    /// Units of work that a project was charged, plus a constant. The constant stays the same only while no
    /// other project is served.
    pub fn charged(&self, project: &ProjectId) -> u64 {
        self.places.level(project)
    }

    /// Reads the store for a client. Waits for one of the places for reads, so that decisions never wait for
    /// the store. Charges the elapsed time, or the rows if time is simulated. Long reads are split into
    /// several calls. All reads for clients must go through here.
    pub(crate) async fn store_read<T>(
        &self,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> Result<Vec<T>, ServiceError> {
        let _place = self.place(Kind::Store).await?;
        let meter = self.meter();
        let rows = read.await?;
        meter.count(cost::of_rows_read(rows.len()));
        Ok(rows)
    }
}

/// `holds` for decisions that must be made again after any other commit.
pub(crate) fn never<T>(_: &State, _: &T) -> bool {
    false
}

/// Runs `compute` off the threads that serve requests, if the runtime has several threads.
pub(crate) fn beside_requests<T>(compute: impl FnOnce() -> T) -> T {
    let several = Handle::try_current().is_ok_and(|runtime| has_several_threads(&runtime));
    if several { tokio::task::block_in_place(compute) } else { compute() }
}

#[cfg(test)]
mod tests;
