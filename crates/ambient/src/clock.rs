//! Clocks: the machine's, and clocks for demonstrations and tests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns at `instant`, or at once if it has passed. Can return early or late if the clock is set in the
    /// meantime, so callers must check the time again.
    async fn sleep_until(&self, instant: Timestamp);

    /// Time since the machine was started, including sleep, on a clock that can't be set. `None` if
    /// [`Self::now`] can't be set either.
    fn steady(&self) -> Option<SignedDuration> {
        None
    }

    /// Processor time of the calling thread. `None` if time is simulated.
    fn processor_time(&self) -> Option<Duration> {
        None
    }

    /// Speed relative to the clocks of clients.
    fn rate(&self) -> u32 {
        1
    }

    /// Identifier of the boot that [`Self::steady`] counts from. `None` if unknown.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// Longest sleep before the clock is read again, because it may have been set.
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
                // The clock was set back. The instant may be far away now, and its purpose obsolete.
                return;
            }
            before = now;
        }
    }

    fn steady(&self) -> Option<SignedDuration> {
        // Not the monotonic clock, which stops while the machine sleeps.
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

/// A clock for demonstrations: starts at the machine's time and runs faster.
#[derive(Clone, Copy, Debug)]
pub struct FastClock {
    began: Timestamp,
    origin: Instant,
    rate: u32,
}

impl FastClock {
    /// A clock that runs `rate` times as fast as real time from now on. 0 counts as 1.
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
            // At least a millisecond, the resolution of the timer.
            tokio::time::sleep((left / self.rate).max(Duration::from_millis(1)).min(LONGEST_NAP)).await;
        }
    }

    fn rate(&self) -> u32 {
        self.rate
    }
}

/// Measures durations in real time, not in the time of a [`Clock`]. For logs and metrics only.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Time until `instant`. `None` if it has passed.
fn left(now: Timestamp, instant: Timestamp) -> Option<Duration> {
    Duration::try_from(instant.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// A clock for tests and simulations: stands still until it is set.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
    changed: watch::Sender<()>,
    /// Number of sleepers by the time they wait for.
    sleepers: Mutex<BTreeMap<Timestamp, usize>>,
    /// Sum of all [`Self::put_wrong`] calls. `None` if the clock doesn't support [`Clock::steady`].
    wrong_by: Mutex<Option<SignedDuration>>,
}

/// Counts as a sleeper until dropped.
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
    pub fn new(now: Timestamp) -> Self {
        Self {
            now: Mutex::new(now),
            changed: watch::Sender::new(()),
            sleepers: Mutex::default(),
            wrong_by: Mutex::default(),
        }
    }

    /// A clock with [`Clock::steady`], which makes [`Self::put_wrong`] detectable.
    pub fn watched(now: Timestamp) -> Self {
        Self { wrong_by: Mutex::new(Some(SignedDuration::ZERO)), ..Self::new(now) }
    }

    /// Changes the shown time without any time passing.
    pub fn put_wrong(&self, by: SignedDuration) {
        if let Some(wrong) = self.wrong_by.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *wrong = wrong.saturating_add(by);
        }
        self.advance(by);
    }

    /// Sets the clock, also backward. Wakes sleepers whose time has come.
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.changed.send_replace(());
    }

    pub fn advance(&self, by: SignedDuration) {
        self.set(self.now().checked_add(by).unwrap_or(Timestamp::MAX));
    }

    /// Earliest time that a sleeper waits for.
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
