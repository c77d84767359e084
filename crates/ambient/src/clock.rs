//! Clocks.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// What tells the time and waits for it.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// The present.
    fn now(&self) -> Timestamp;

    /// Returns at `instant`, or at once if that has passed. A clock that is set back or forth meanwhile may
    /// return early or late; whoever waits looks at the time again.
    async fn sleep_until(&self, instant: Timestamp);

    /// How long the machine has been running, asleep or awake, which nobody can set; none if nobody can set
    /// [`Self::now`] either.
    fn steady(&self) -> Option<SignedDuration> {
        None
    }

    /// Processor time that the calling thread has used; none where time is simulated.
    fn processor_time(&self) -> Option<Duration> {
        None
    }

    /// How many times as fast it runs as the clocks of clients.
    fn rate(&self) -> u32 {
        1
    }

    /// Which run of the machine [`Self::steady`] counts from; none if that is not known.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// Longer than this nobody sleeps without looking at the clock again, because it may have been set.
const LONGEST_NAP: Duration = Duration::from_secs(10);

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep_until(&self, instant: Timestamp) {
        let mut before = self.now();
        while let Some(left) = left(before, instant) {
            tokio::time::sleep(left.min(LONGEST_NAP)).await;
            let now = self.now();
            if now < before {
                // It was set back: the instant may be far away now, and what it was good for another matter.
                return;
            }
            before = now;
        }
    }

    fn steady(&self) -> Option<SignedDuration> {
        // Not the monotonic clock, which stands still while the machine sleeps.
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Some(SignedDuration::new(time.tv_sec, i32::try_from(time.tv_nsec).unwrap_or(0)))
    }

    fn processor_time(&self) -> Option<Duration> {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }

    fn boot(&self) -> Option<String> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    }
}

/// A clock that starts at the machine's time and runs faster: for demonstrations.
#[derive(Clone, Copy, Debug)]
pub struct FastClock {
    began: Timestamp,
    origin: Instant,
    rate: u32,
}

impl FastClock {
    /// A clock that runs `rate` times as fast as time passes, from now on; a rate of 0 counts as 1.
    pub fn new(rate: u32) -> Self {
        Self { began: Timestamp::now(), origin: Instant::now(), rate: rate.max(1) }
    }
}

#[async_trait]
impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.origin.elapsed().saturating_mul(self.rate);
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.began.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        while let Some(left) = left(self.now(), instant) {
            // Not less than a millisecond, which is what the timer can do.
            tokio::time::sleep((left / self.rate).max(Duration::from_millis(1)).min(LONGEST_NAP)).await;
        }
    }

    fn rate(&self) -> u32 {
        self.rate
    }
}

/// How long something takes, in time that passes and not in that of a [`Clock`]: for logs and metrics only.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long it has been.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// How long it is until then, if it is not over.
fn left(now: Timestamp, instant: Timestamp) -> Option<Duration> {
    Duration::try_from(instant.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// A clock that stands still until it is set: for tests and simulations.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
    changed: watch::Sender<()>,
    /// Until when how many sleep.
    sleepers: Mutex<BTreeMap<Timestamp, usize>>,
    /// How far it was [put wrong](Self::put_wrong), if it can be told.
    wrong_by: Mutex<Option<SignedDuration>>,
}

/// Somebody sleeps until then, as long as this is there.
struct Sleeper<'a>(&'a ManualClock, Timestamp);

impl<'a> Sleeper<'a> {
    fn new(clock: &'a ManualClock, until: Timestamp) -> Self {
        *clock.sleepers().entry(until).or_default() += 1;
        Self(clock, until)
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.0.sleepers().entry(self.1) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

impl ManualClock {
    /// A clock that shows that time.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: Mutex::new(now),
            changed: watch::Sender::new(()),
            sleepers: Mutex::default(),
            wrong_by: Mutex::default(),
        }
    }

    /// The same, and time passes as it shows, so that it can be told when it is put wrong.
    pub fn watched(now: Timestamp) -> Self {
        Self { wrong_by: Mutex::new(Some(SignedDuration::ZERO)), ..Self::new(now) }
    }

    /// Sets it forth or back by so much, while no time passes.
    pub fn put_wrong(&self, by: SignedDuration) {
        if let Some(wrong) = self.wrong_by.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *wrong = wrong.saturating_add(by);
        }
        self.advance(by);
    }

    /// Sets it, forth or back. Who sleeps until then wakes up.
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.changed.send_replace(());
    }

    /// Sets it forth by so much.
    pub fn advance(&self, by: SignedDuration) {
        self.set(self.now().checked_add(by).unwrap_or(Timestamp::MAX));
    }

    /// The earliest instant that anybody sleeps until.
    pub fn next_alarm(&self) -> Option<Timestamp> {
        self.sleepers().first_key_value().map(|(until, _)| *until)
    }

    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Timestamp, usize>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        let mut changed = self.changed.subscribe();
        let _sleeper = Sleeper::new(self, instant);
        while self.now() < instant {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn steady(&self) -> Option<SignedDuration> {
        let wrong = *self.wrong_by.lock().unwrap_or_else(PoisonError::into_inner);
        Some(self.now().as_duration().saturating_sub(wrong?))
    }
}
