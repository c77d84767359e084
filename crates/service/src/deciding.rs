//! How anything is decided: with a budget of work, off the threads that serve requests, and in a fair order.
//!
//! What is to be committed is decided with the write lock, if that takes little work, as it does nearly always. If it
//! takes more it is decided without, so that others commit meanwhile, and committed if it can still be had by then.
//! Whatever is decided or read at length without the write lock waits for one of a few places; reads of the store have
//! places of their own. All of it runs on threads beside those that serve requests, so that no answer waits for a decision
//! that it does not need. Where there is one thread only, as in simulations, it runs on that, in the order in which it came.

use std::sync::Arc;

use jiff::SignedDuration;
use leases::project::ProjectId;
use leases::work::{Budget, Stop};
use store::{Revision, StoreError};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::client::{Client, Gone};
use crate::cost;
use crate::places::{Kind, Place, Who};
use crate::service::Service;
use crate::state::State;
use crate::types::ServiceError;
use crate::writing::{NoWriter, Writer};

/// Of the work that a decision may cost, the part that it may cost with the write lock.
pub(crate) const QUICK: u64 = 20;
/// How often a decision that costs more is made without the write lock. If others have spoiled it each time, it is made
/// with it: otherwise nothing would ever come of it.
const AHEAD: usize = 3;

/// What came of a part of a decision.
pub(crate) enum Part<T> {
    /// All is decided.
    Done(T),
    /// The rest needs another part, with a budget of its own.
    More(T),
}

/// Why a pass commits nothing.
enum Nothing {
    /// Nothing was found.
    Found,
    /// The store does not work.
    Store(StoreError),
}

impl From<NoWriter> for Nothing {
    fn from(why: NoWriter) -> Self {
        match why {
            NoWriter::Store(error) => Self::Store(error),
            NoWriter::Gone | NoWriter::Overtaken => Self::Found,
        }
    }
}

impl Service {
    /// Waits for a place of that kind, until the client has gone.
    pub(crate) async fn place(&self, kind: Kind) -> Result<Place, Gone> {
        let client = Client::current();
        let who = client.as_ref().map_or(Who::Client(None), Client::who);
        let expected = client.as_ref().map(|client| client.expected(kind)).unwrap_or_default();
        let enter = self.places.enter(kind, who, expected);
        let Some(client) = client else { return Ok(enter.await) };
        tokio::select! {
            biased;
            // What need not wait is done all the same.
            place = enter => Ok(place),
            () = client.gone() => {
                self.ended.count(Stop::Canceled);
                Err(Gone)
            }
        }
    }

    /// Decides, or reads much, without changing anything. An error if the client has gone, or as it is decided.
    pub(crate) async fn consider<T>(
        &self,
        decide: impl FnOnce(&Budget) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let _place = self.place(Kind::Read).await?;
        self.decide(decide)
    }

    /// The same in parts. Others have their turn between two of them.
    pub(crate) async fn consider_in_parts<T>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        Ok(self.decide_in_parts(&decide, &mut None).await?.1)
    }

    /// Decides what is to be committed, on what is in memory. The write lock comes with it.
    ///
    /// `holds` says of what was decided whether it can be committed to a state that differs from the one that it was
    /// decided on by leases, and by preemptible instances. It is called with the write lock held, so it must be cheap.
    pub(crate) async fn decided<T>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, ServiceError>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), ServiceError> {
        let writer = self.writer().await?;
        let quick = Budget::new((self.decider.settings.decision_work / QUICK).max(1));
        let decided = self.charged_for(&quick, || decide(&quick));
        if !quick.exhausted() {
            return Ok((writer, decided?));
        }
        drop(writer);
        self.decided_ahead(decide, holds).await
    }

    /// The same for what is known to cost more: it is decided without the write lock from the start.
    pub(crate) async fn decided_ahead<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(&Budget) -> Result<T, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        self.decided_in_parts(|_, budget| decide(budget).map(Part::Done), holds).await
    }

    /// As [`Self::decided_ahead`], for decisions that may cost more than one budget. The last attempt holds the write lock
    /// only if one budget was enough before.
    pub(crate) async fn decided_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<(Writer<'_>, T), E> {
        let (mut turn, mut attempts) = (None, 0);
        loop {
            let ((revision, ground), decided) = self.decide_in_parts(&decide, &mut turn).await?;
            let mut writer = self.writer().await?;
            let now = self.decided_on();
            if now == (revision, ground)
                || now.1 == ground && beside_requests(|| holds(&self.snapshot(), &decided))
            {
                writer.turn = turn;
                return Ok((writer, decided));
            }
            attempts += 1;
            if attempts < AHEAD {
                continue;
            }
            // Several parts would keep others from writing for too long.
            if turn.is_none()
                && let Part::Done(decided) = self.decide(|budget| decide(None, budget))?
            {
                return Ok((writer, decided));
            }
            return Err(NoWriter::Overtaken.into());
        }
    }

    /// Decides without the write lock. Returns what it was decided on as well. `turn` is the place for decisions in several
    /// parts, once it is needed.
    async fn decide_in_parts<T, E: From<NoWriter>>(
        &self,
        decide: &impl Fn(Option<T>, &Budget) -> Result<Part<T>, E>,
        turn: &mut Option<Place>,
    ) -> Result<((Revision, u64), T), E> {
        let (mut first, mut so_far) = (None, None);
        loop {
            let place = self.place(Kind::Read).await.map_err(NoWriter::from)?;
            // Only now: what others commit while this waits for its place is known to the decision.
            let on = *first.get_or_insert_with(|| self.decided_on());
            let part = self.decide(|budget| decide(so_far, budget))?;
            drop(place);
            so_far = match part {
                Part::Done(decided) => return Ok((on, decided)),
                Part::More(decided) if turn.is_some() || self.places.is_free(Kind::Parts) => Some(decided),
                // Others would take the hosts that it has found, and each that waits would keep its part in memory.
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

    /// Decides for a pass. The write lock comes with what is found; `holds` says of that the same as of what is
    /// [decided](Self::decided) for clients.
    pub(crate) async fn decided_by_pass<T>(
        &self,
        find: impl Fn(&Budget) -> Option<T>,
        holds: impl Fn(&State, &T) -> bool,
    ) -> Result<Option<(Writer<'_>, T)>, StoreError> {
        match self.decided_ahead(|budget| find(budget).ok_or(Nothing::Found), holds).await {
            Ok(found) => Ok(Some(found)),
            Err(Nothing::Found) => Ok(None),
            Err(Nothing::Store(error)) => Err(error),
        }
    }

    /// What decisions are made on, for comparison: the revision, and what it has beside leases.
    fn decided_on(&self) -> (Revision, u64) {
        let state = self.state();
        (state.revision, state.ground)
    }

    /// Decides here and now, with the budget of a decision, until the client leaves. For who has a place.
    fn decide<T, E: From<NoWriter>>(&self, decide: impl FnOnce(&Budget) -> Result<T, E>) -> Result<T, E> {
        let client = Client::current();
        let budget = Arc::new(Budget::new(self.decider.settings.decision_work));
        let deciding = client.as_ref().map(|client| client.decides(&budget));
        let decided = self.charged_for(&budget, || decide(&budget));
        drop(deciding);
        let stopped = budget.stopped();
        if let Some(why) = stopped {
            self.ended.count(why);
        }
        if stopped == Some(Stop::Canceled) { Err(NoWriter::Gone.into()) } else { decided }
    }

    /// Decides beside the threads that serve requests, and charges the client for the processor time, or for the counted work
    /// if that is more: not every part of a decision counts its work.
    fn charged_for<T>(&self, budget: &Budget, decide: impl FnOnce() -> T) -> T {
        let clock = &self.parts.clock;
        let begun = clock.processor_time();
        let decided = beside_requests(decide);
        let took = begun.zip(clock.processor_time()).map(|(begun, now)| now.saturating_sub(begun));
        self.charge_for(budget.spent().max(cost::of_time(took.unwrap_or_default())));
        decided
    }

    /// Charges the client, if there is one, for what it did in a place, in units of work.
    pub(crate) fn charge_for(&self, cost: u64) {
        if let Some(client) = Client::current() {
            self.places.charge(&client.who(), cost);
        }
    }

    /// Charges a client for what it costs beside decisions, commits and reads: its request and the answer.
    pub fn charge_beside(&self, client: &Client, cost: u64) {
        self.places.charge_beside(client.owner(), cost);
    }

    /// Units of work that a project was charged, up to a constant, while no other project was served.
    pub fn charged(&self, project: &ProjectId) -> u64 {
        self.places.level(project)
    }

    /// Reads the store for a client: waits for one of the places for that, so that decisions never wait for the store,
    /// and charges the time that passes, or the rows where time is simulated. Long reads are cut into several of these.
    /// All that serves clients reads the store by this.
    pub(crate) async fn store_read<T>(
        &self,
        read: impl Future<Output = Result<Vec<T>, StoreError>>,
    ) -> Result<Vec<T>, ServiceError> {
        let _place = self.place(Kind::Store).await?;
        let mut reading = Reading { service: self, begun: self.parts.clock.steady(), rows: 0 };
        let rows = read.await?;
        reading.rows = rows.len();
        Ok(rows)
    }
}

/// A read of the store, charged when it ends or is given up.
struct Reading<'a> {
    service: &'a Service,
    /// By the clock that nobody sets.
    begun: Option<SignedDuration>,
    rows: usize,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let passed = self.begun.zip(self.service.parts.clock.steady());
        let took = passed.and_then(|(begun, now)| now.saturating_sub(begun).try_into().ok());
        self.service.charge_for(cost::of_read(took.unwrap_or_default(), self.rows));
    }
}

/// For what is decided again whenever others have committed something.
pub(crate) fn never<T>(_: &State, _: &T) -> bool {
    false
}

/// Computes beside the threads that serve requests, if there are several.
pub(crate) fn beside_requests<T>(compute: impl FnOnce() -> T) -> T {
    let several =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(compute) } else { compute() }
}

#[cfg(test)]
mod tests;
