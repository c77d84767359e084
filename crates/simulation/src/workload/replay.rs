//! A replay: jobs of a trace become requests to the service, in simulated time.

use std::collections::BTreeMap;

use fleet::Outcome;
use fleet::simulated::{Between, Timing};
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId, LeaseId};
use leases::lease::Lease;
use leases::lease_type::LeaseType;
use leases::offer::OfferKind;
use leases::plan::Action;
use leases::requirement::{Operator, Requirement, RequirementError};
use leases::standing::Standing;
use leases::status::LeaseStatus;
use leases::terms::{HostsTerms, ReservationTerms, Terms, TermsError};
use leases::window::{Window, next_minute};
use service::{Caller, Done, Hold, NewLease, OpenError, ServiceError};
use store::{Changes, LeaseRecord, Revision, Store, StoreError, Wording};
use thiserror::Error;

use super::arrivals::Arrivals;
use super::course::{Answer, Course, Promise};
use super::figures::{Figures, Fill, hours, leased_node_ms};
use super::filling::Filling;
use super::ground::{self, LEASED_HOSTS, OTHERS_RACK, RESERVED_RACK};
use super::guests::Guests;
use super::trace::{Job, Start, Trace};
use super::variant::Variant;
use crate::world::{Happened, Setup, World, caller};

/// Beginning of all replays: noon (UTC) of some day.
const BEGIN_SECOND: i64 = 1_893_499_200;
/// Time within which a best-effort lease must start; otherwise it's given up. This is the longest timeout
/// that the service allows by default.
const TIMEOUT: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum number of events in one second. With more, the service is going in circles.
const MOST_AT_ONCE: u32 = 100_000;
/// A client accepts an offer that starts later by at most its length, or else one with at least this fraction
/// of the requested node-hours.
const LEAST_PART: f64 = 0.5;

/// Duration of operations on machines, and the limit for late starts.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub timing: Timing,
    /// Time that a handover of hosts takes. A lease that becomes active within it after its start isn't late.
    pub handover_ms: i64,
}

impl Default for Pace {
    /// Calls of 0.2 seconds, boots of 90 seconds to 4 minutes, and 10 seconds for a handover.
    fn default() -> Self {
        let timing = Timing {
            call: Between::millis(200, 200),
            question: Between::millis(50, 50),
            power_on: Between::secs(90, 240),
            migration_mib_per_second: 1000,
            ..Timing::IMMEDIATE
        };
        Self { timing, handover_ms: 10_000 }
    }
}

/// Errors of a replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The service doesn't start.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A call to the service fails.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A job has invalid terms.
    #[error("a job cannot be asked for: {0}")]
    Terms(#[from] TermsError),
    /// A job has an invalid requirement.
    #[error("a job cannot be asked for: {0}")]
    Requirement(#[from] RequirementError),
    /// More than `MOST_AT_ONCE` events happened within a second.
    #[error("at {0}, too many events happen at the same time")]
    Stuck(Timestamp),
    /// The store no longer has all changes since the last look.
    #[error("more has changed than the store remembers")]
    LostTrack,
    #[error("there is no runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

/// An event on the agenda. Jobs are identified by their position in the trace.
#[derive(Clone, Copy, Debug)]
enum Event {
    Submit(usize),
    /// The job has finished, and its owner returns the hosts.
    Finish(usize),
    /// A guest of another tenant arrives.
    GuestComes,
    /// A preemptible instance is requested.
    InstanceComes,
    /// The instance has run its time.
    InstanceLeaves(GuestId),
}

/// Replays a trace and returns its figures. The same arguments give the same figures. `arrivals` are used
/// only if the variant has preemptible instances.
pub fn replay(
    trace: &Trace,
    arrivals: &Arrivals,
    variant: &Variant,
    pace: &Pace,
    seed: u64,
) -> Result<Figures, ReplayError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    // No cooperative yielding: there are no other tasks that could run.
    runtime.block_on(tokio::task::unconstrained(async {
        let mut replay = Replay::begin(trace, variant, pace, seed).await?;
        replay.filling = variant.fill.then(|| Filling::new(arrivals.clone()));
        replay.expect_instance();
        replay.run().await?;
        replay.figures(pace).await
    }))
}

struct Replay<'a> {
    variant: &'a Variant,
    world: World,
    begins: Timestamp,
    courses: Vec<Course>,
    by_lease: BTreeMap<LeaseId, usize>,
    leases: Vec<Option<LeaseId>>,
    agenda: BTreeMap<(Timestamp, u64), Event>,
    planned: u64,
    /// Number of jobs that aren't finished or refused yet.
    open: usize,
    /// Last revision of the store that was followed.
    revision: Revision,
    commits: u64,
    /// Total time that hosts were off before the replay began.
    off_before_ms: i64,
    guests: Option<Guests>,
    filling: Option<Filling>,
    guests_moved: u64,
    hunts: u64,
}

impl<'a> Replay<'a> {
    async fn begin(trace: &Trace, variant: &'a Variant, pace: &Pace, seed: u64) -> Result<Self, ReplayError> {
        let begins = Timestamp::from_second(BEGIN_SECOND).unwrap_or(Timestamp::UNIX_EPOCH);
        let (layout, settings) = (ground::layout(variant), ground::settings(variant));
        let setup = Setup { seed, begins, layout: layout.clone(), settings, enforcer: None };
        let mut world = World::new(setup, |fleet| fleet.with_timing(pace.timing)).await?;
        // Adding hosts isn't part of the replay.
        world.take_on(&layout).await?;
        world.run_until(next_minute(world.now() + SignedDuration::from_mins(1))).await;
        let course = |job: &Job| Course {
            job: *job,
            answer: Answer::None,
            promise: None,
            started_ms: None,
            ended_ms: None,
        };
        let courses: Vec<Course> = trace.jobs.iter().map(course).collect();
        let guests = variant.guests.then(|| Guests::new(seed, ground::hosts_with_guests()));
        let revision = world.store.load().await?.revision;
        let mut replay = Self {
            variant,
            begins: world.now(),
            off_before_ms: off_ms(&world),
            commits: world.commits(),
            world,
            leases: vec![None; courses.len()],
            open: courses.len(),
            courses,
            by_lease: BTreeMap::new(),
            agenda: BTreeMap::new(),
            planned: 0,
            revision,
            guests,
            filling: None,
            guests_moved: 0,
            hunts: 0,
        };
        for place in 0..replay.courses.len() {
            let at = replay.at(replay.courses[place].job.submit_s);
            replay.plan(at, Event::Submit(place));
        }
        replay.expect_guest();
        Ok(replay)
    }

    /// Instant of that second of the trace.
    fn at(&self, second: i64) -> Timestamp {
        self.begins + SignedDuration::from_secs(second)
    }

    /// Milliseconds since the beginning of the trace.
    fn ms(&self, at: Timestamp) -> i64 {
        at.duration_since(self.begins).as_millis() as i64
    }

    fn now_ms(&self) -> i64 {
        self.ms(self.world.now())
    }

    fn plan(&mut self, at: Timestamp, event: Event) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), event);
    }

    fn expect_guest(&mut self) {
        let pause = self.guests.as_mut().map(Guests::pause);
        if let Some(pause) = pause {
            self.plan(self.world.now() + pause, Event::GuestComes);
        }
    }

    fn expect_instance(&mut self) {
        if let Some(next) = self.filling.as_ref().and_then(Filling::next) {
            self.plan(self.at(next.at_s).max(self.world.now()), Event::InstanceComes);
        }
    }

    /// Runs until all jobs are finished or refused.
    async fn run(&mut self) -> Result<(), ReplayError> {
        let (mut since, mut at_once) = (self.world.now(), 0);
        while self.open > 0 {
            let now = self.world.now();
            if now.duration_since(since) >= SignedDuration::from_secs(1) {
                (since, at_once) = (now, 0);
            }
            at_once += 1;
            if at_once > MOST_AT_ONCE {
                return Err(ReplayError::Stuck(now));
            }
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let until = next.unwrap_or(now + SignedDuration::from_hours(1));
            match self.world.next(until).await {
                Some(Happened::Cycled(_)) => self.follow().await?,
                Some(Happened::Noted(Done::Step(performed))) => {
                    let moved = matches!(performed.step.claim.action, Action::MoveGuest(..))
                        && performed.answer == Ok(Outcome::Done);
                    self.guests_moved += u64::from(moved);
                }
                Some(
                    Happened::Noted(_) | Happened::Differed(_) | Happened::Repeated(_) | Happened::Waited,
                ) => {}
                None => {
                    while let Some(entry) = self.agenda.first_entry()
                        && entry.key().0 <= self.world.now()
                    {
                        let event = entry.remove();
                        self.happen(event).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn happen(&mut self, event: Event) -> Result<(), ReplayError> {
        match event {
            Event::Submit(place) => self.submit(place).await?,
            Event::Finish(place) => {
                if let (Some(id), None) = (self.leases[place], self.courses[place].ended_ms) {
                    self.world.service.leases().delete(&whose(&self.courses[place].job), id).await?;
                    self.end(place, self.now_ms());
                }
            }
            Event::GuestComes => {
                if let Some(guests) = &mut self.guests {
                    guests.come(&self.world.fleet);
                }
                self.expect_guest();
            }
            Event::InstanceComes => {
                let came = match &mut self.filling {
                    Some(filling) => filling.come(&self.world).await?,
                    None => None,
                };
                if let Some((id, runs_s)) = came {
                    let done = self.world.now() + SignedDuration::from_secs(runs_s);
                    self.plan(done, Event::InstanceLeaves(id));
                }
                self.expect_instance();
            }
            Event::InstanceLeaves(id) => {
                if let Some(filling) = &mut self.filling {
                    filling.finish(&self.world, id).await?;
                }
            }
        }
        self.world.touched();
        // The effects of a call are followed before the next event.
        self.follow().await
    }

    /// Requests hosts for a job.
    async fn submit(&mut self, place: usize) -> Result<(), ReplayError> {
        let job = self.courses[place].job;
        let (caller, new) = (whose(&job), self.request(&job)?);
        match self.world.service.leases().create(&caller, new.clone(), None).await {
            Ok(created) if created.lease.lease.standing.is_firm() => {
                self.promised(place, &created.lease.lease, Answer::AsAsked);
            }
            Ok(created) => self.know(place, created.lease.lease.id),
            Err(ServiceError::Refused(refusal)) => {
                let negotiates =
                    self.variant.offers && refusal.negotiable() && job.start != Start::WhenPossible;
                match if negotiates { self.negotiate(&caller, &new).await? } else { None } {
                    Some((lease, answer)) => self.promised(place, &lease.lease, answer),
                    None => self.refused(place),
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The lease that a job requests. Dates of leases have no seconds, so a reservation starts at the
    /// beginning of its minute, and its length is in whole minutes. A best-effort lease starts at the
    /// beginning of the minute in which it is served, so its owner requests an extra minute to avoid being
    /// cut off.
    fn request(&self, job: &Job) -> Result<NewLease, ReplayError> {
        let now = self.world.now();
        let length = next_minute(self.at(job.asked_s)).duration_since(self.begins);
        let (start, length, lease_type) = match job.start {
            Start::At(second) => (minute(self.at(second)).max(minute(now)), length, LeaseType::Schedule),
            Start::WhenPossible => {
                let lease_type = LeaseType::BestEffort { deadline: now + TIMEOUT };
                (minute(now), length + SignedDuration::from_mins(1), lease_type)
            }
        };
        let mut hosts = HostsTerms::new(job.nodes, job.nodes)?;
        if self.variant.guests {
            let (operator, rack) = match job.start {
                Start::At(_) => (Operator::Equal, RESERVED_RACK),
                Start::WhenPossible => (Operator::NotEqual, OTHERS_RACK),
            };
            hosts = hosts.requiring(Requirement::compare(operator, "rack", rack)?);
        }
        let window = Window::starting(start, length);
        let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(hosts)])?.of_type(lease_type);
        Ok(NewLease {
            asked_at: now,
            name: String::new(),
            terms,
            wording: vec![Wording::default()],
            end_action: None,
            waits: self.variant.waitlist,
        })
    }

    /// Accepts the offer that is closest to the request, if it is close enough.
    async fn negotiate(
        &self,
        caller: &Caller,
        new: &NewLease,
    ) -> Result<Option<(std::sync::Arc<LeaseRecord>, Answer)>, ReplayError> {
        let offers = self.world.service.offers().for_lease(caller, new, Hold::Default).await?.offers;
        let Some((id, answer)) = best_offer(new, offers.iter().map(|offer| &offer.lease)) else {
            return Ok(None);
        };
        Ok(Some((self.world.service.offers().accept(caller, id).await?, answer)))
    }

    fn know(&mut self, place: usize, id: LeaseId) {
        self.by_lease.insert(id, place);
        self.leases[place] = Some(id);
    }

    fn promised(&mut self, place: usize, lease: &Lease, answer: Answer) {
        self.know(place, lease.id);
        let promise = self.promise_of(lease);
        self.hunts += u64::from(lease.hunt.is_some());
        let course = &mut self.courses[place];
        (course.answer, course.promise) = (answer, Some(promise));
    }

    fn promise_of(&self, lease: &Lease) -> Promise {
        let reserve = lease.hunt.as_ref().map(|hunt| hunt.allowance).unwrap_or_default();
        let hosts: u64 = lease.reservations.iter().map(|own| own.allocation.amount()).sum();
        Promise {
            start_ms: self.ms(lease.window.start()),
            length_ms: (lease.window.length() - reserve).as_millis() as i64,
            hosts: hosts as u32,
        }
    }

    fn refused(&mut self, place: usize) {
        self.courses[place].answer = Answer::Refused;
        self.open -= 1;
    }

    fn end(&mut self, place: usize, at_ms: i64) {
        self.courses[place].ended_ms = Some(at_ms);
        self.open -= 1;
    }

    /// Follows changes of leases and instances.
    async fn follow(&mut self) -> Result<(), ReplayError> {
        let commits = self.world.commits();
        if commits == self.commits {
            return Ok(());
        }
        self.commits = commits;
        let Changes::Delta(delta) = self.world.store.changes_since(self.revision).await? else {
            return Err(ReplayError::LostTrack);
        };
        self.revision = delta.revision;
        for (id, record) in &delta.leases {
            if let Some(place) = self.by_lease.get(id).copied() {
                self.became(place, record.as_ref());
            }
        }
        let now_ms = self.now_ms();
        if let Some(filling) = &mut self.filling {
            for (id, record) in &delta.instances {
                filling.became(*id, record.as_ref(), now_ms);
            }
        }
        Ok(())
    }

    /// Follows a change of a lease; `None` means that its record is gone.
    fn became(&mut self, place: usize, record: Option<&LeaseRecord>) {
        let course = &self.courses[place];
        if course.ended_ms.is_some() || course.answer == Answer::Refused {
            return;
        }
        let Some(lease) = record.map(|record| &record.lease) else {
            // A request that stopped waiting. Leases are forgotten only after their end.
            return self.refused(place);
        };
        if matches!(lease.standing, Standing::Waiting { .. }) {
            return;
        }
        if course.answer == Answer::None {
            self.promised(place, lease, Answer::AfterWaiting);
        }
        if lease.status == LeaseStatus::Active && self.courses[place].started_ms.is_none() {
            self.starts(place, lease);
        }
        if lease.over() {
            self.end(place, self.ms(lease.window.end()).min(self.now_ms()));
        }
    }

    fn starts(&mut self, place: usize, lease: &Lease) {
        let (now, now_ms) = (self.world.now(), self.now_ms());
        let promise = self.promise_of(lease);
        let course = &mut self.courses[place];
        course.started_ms = Some(now_ms);
        // A reservation keeps its date, but the start of a best-effort lease has moved.
        if course.job.start == Start::WhenPossible {
            course.promise = Some(promise);
        }
        let done = now + SignedDuration::from_secs(course.job.runs_s);
        // Otherwise the lease ends first.
        if done < lease.window.end() {
            self.plan(done, Event::Finish(place));
        }
    }

    async fn figures(&self, pace: &Pace) -> Result<Figures, ReplayError> {
        let end = self.world.now();
        let period = Window::new(self.begins, end).unwrap_or(Window::ALWAYS);
        let report = self.world.service.power_saving().report(period).await?;
        let saved: u128 = report.values().map(|pool| pool.saved_milliwatt_seconds).sum();
        let off_ms = off_ms(&self.world) - self.off_before_ms;
        let leased_ms = leased_node_ms(&self.courses);
        let idle_ms = i64::from(LEASED_HOSTS) * self.now_ms() - leased_ms - off_ms;
        let watt_hours = hours(leased_ms) * f64::from(ground::BUSY_WATTS)
            + hours(off_ms) * f64::from(ground::OFF_WATTS)
            + hours(idle_ms) * f64::from(ground::IDLE_WATTS);
        Ok(Figures {
            guests: self.guests.as_ref().map_or(0, |guests| guests.came),
            guests_moved: self.guests_moved,
            hunts: self.hunts,
            fill: self.filling.as_ref().map_or_else(Fill::default, |filling| {
                filling.figures(self.now_ms(), leased_ms, LEASED_HOSTS)
            }),
            used_kwh: watt_hours / 1000.0,
            saved_kwh: saved as f64 / 3.6e9,
            switched_off: report.values().map(|pool| pool.switched_off).sum(),
            ..Figures::of(&self.courses, LEASED_HOSTS, self.now_ms(), pace.handover_ms)
        })
    }
}

/// Total time that hosts have been off since the world began.
fn off_ms(world: &World) -> i64 {
    let hosts = (1..=u64::from(LEASED_HOSTS)).map(HostId);
    hosts.map(|host| world.fleet.off_for(host).as_millis() as i64).sum()
}

/// Jobs with their own start belong to one project, all others to another.
fn whose(job: &Job) -> Caller {
    caller(if job.start == Start::WhenPossible { "batch" } else { "reserving" })
}

/// Beginning of the minute.
fn minute(at: Timestamp) -> Timestamp {
    let over = at.as_second().rem_euclid(60);
    Timestamp::from_second(at.as_second() - over).unwrap_or(at)
}

/// Offer to accept: a later start if the delay isn't longer than the lease, or else the largest fraction of
/// the request.
fn best_offer<'l>(
    new: &NewLease,
    offers: impl Iterator<Item = &'l Lease> + Clone,
) -> Option<(LeaseId, Answer)> {
    let asked = new.terms.window();
    let hosts: u32 = new.terms.reservations.iter().map(ReservationTerms::number).sum();
    let kind = |lease: &Lease| match lease.standing {
        Standing::Offered { kind, .. } => Some(kind),
        _ => None,
    };
    let near = |lease: &&Lease| {
        kind(lease) == Some(OfferKind::LaterStart)
            && lease.window.start().duration_since(asked.start()) <= asked.length()
    };
    if let Some(later) = offers.clone().find(near) {
        return Some((later.id, Answer::Later));
    }
    let part = |lease: &Lease| {
        let given: u64 = lease.reservations.iter().map(|own| own.allocation.amount()).sum();
        let time = lease.window.length().as_secs_f64() / asked.length().as_secs_f64();
        time * given as f64 / f64::from(hosts)
    };
    let mut best: Option<(f64, LeaseId, Answer)> = None;
    for lease in offers {
        let answer = match kind(lease) {
            Some(OfferKind::ShorterDuration) => Answer::Shorter,
            Some(OfferKind::FewerHosts) => Answer::FewerHosts,
            _ => continue,
        };
        let part = part(lease);
        if part >= LEAST_PART && best.is_none_or(|(most, ..)| part > most) {
            best = Some((part, lease.id, answer));
        }
    }
    best.map(|(_, id, answer)| (id, answer))
}
