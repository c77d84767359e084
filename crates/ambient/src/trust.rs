//! Detects a wrong clock by comparing it with a clock that can't be set, and with the time of the newest
//! record.
//!
//! The clock that can't be set is the kernel's `CLOCK_BOOTTIME`. Unlike `CLOCK_MONOTONIC`, it continues while
//! the machine sleeps: after a night of sleep, a laptop finds that both clocks have advanced by a night. On a
//! virtual machine that was paused, neither has advanced. When its clock is then set, that is a jump, which
//! the operator accepts.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

/// Both clocks at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the clock that can be set.
    pub wall: Timestamp,
    /// Time since the machine was started, which can't be set.
    pub steady: SignedDuration,
}

/// An error of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The clock was set ahead by this much while it was watched, or back if negative.
    Set(SignedDuration),
    /// The clock is this much behind the newest record.
    Behind(SignedDuration),
    /// The newest record is this old, which is longer than a plausible absence.
    Ahead(SignedDuration),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self {
            Self::Set(by) | Self::Behind(by) | Self::Ahead(by) => by.abs(),
        };
        // Nanoseconds of an hour are noise.
        let by = if by < SignedDuration::from_secs(1) { by } else { SignedDuration::from_secs(by.as_secs()) };
        match self {
            Self::Set(set) if set.is_negative() => {
                write!(f, "the clock of this machine was set back by {by:#} while it was in use")
            }
            Self::Set(_) => {
                write!(f, "the clock of this machine was set ahead by {by:#} while it was in use")
            }
            Self::Behind(_) => {
                write!(
                    f,
                    "the clock of this machine shows {by:#} less than the newest record of the database"
                )
            }
            Self::Ahead(_) => {
                write!(
                    f,
                    "the clock of this machine shows {by:#} more than the newest record of the database"
                )
            }
        }
    }
}

/// Tolerated errors of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest tolerated jump.
    pub jump: SignedDuration,
    /// Maximum age of the newest record at startup.
    pub absence: SignedDuration,
}

/// State of a watched clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    bounds: Bounds,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The clock was never right so far. Time of the newest record.
    Doubted(Timestamp),
    /// The clock was right: the time it should have shown, and when.
    Followed(Reading),
}

/// A clock that is slewed gains or loses at most a tenth of the elapsed time. The fastest slew in use is
/// chrony's, a twelfth.
const SLEWING: i32 = 10;

impl Trust {
    /// Starts to watch a clock. `newest` is the time of the newest record. `earlier` is the last known
    /// reading since this machine was started.
    pub fn new(bounds: Bounds, newest: Option<Timestamp>, earlier: Option<Reading>, now: Reading) -> Self {
        let state = match (earlier, newest) {
            (Some(earlier), _) if earlier.steady <= now.steady => State::Followed(earlier),
            (_, Some(newest)) => State::Doubted(newest),
            (_, None) => State::Followed(now),
        };
        Self { bounds, state }
    }

    /// Checks the clock. A wrong clock passes again once it is corrected.
    pub fn judge(&mut self, now: Reading) -> Result<(), Wrong> {
        match self.state {
            State::Doubted(newest) => {
                let since = now.wall.duration_since(newest);
                if since < -self.bounds.jump {
                    return Err(Wrong::Behind(since.abs()));
                }
                if since > self.bounds.absence {
                    return Err(Wrong::Ahead(since));
                }
                self.state = State::Followed(now);
                Ok(())
            }
            State::Followed(before) => {
                let passed = now.steady.saturating_sub(before.steady);
                let off = now.wall.duration_since(before.wall).saturating_sub(passed);
                let off = off.max(-SignedDuration::MAX);
                if off.abs() > self.bounds.jump {
                    return Err(Wrong::Set(off));
                }
                let slewed = passed / SLEWING;
                let gained = off.clamp(-slewed.abs(), slewed.abs());
                let expected = before.wall.checked_add(passed.saturating_add(gained));
                self.state =
                    State::Followed(Reading { wall: expected.unwrap_or(now.wall), steady: now.steady });
                Ok(())
            }
        }
    }

    /// Accepts the current time as right.
    pub fn accept(&mut self, now: Reading) {
        self.state = State::Followed(now);
    }

    /// The reading to save and to continue from after a restart. `None` while the clock is doubted.
    pub fn followed(&self) -> Option<Reading> {
        match self.state {
            State::Doubted(_) => None,
            State::Followed(reading) => Some(reading),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    const BOUNDS: Bounds =
        Bounds { jump: SignedDuration::from_secs(5), absence: SignedDuration::from_secs(400 * DAY) };

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    fn wall(at: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + at).expect("in range")
    }

    fn reading(at: i64, steady: i64) -> Reading {
        Reading { wall: wall(at), steady: seconds(steady) }
    }

    fn watched() -> Trust {
        Trust::new(BOUNDS, None, None, reading(0, 100))
    }

    #[test]
    fn a_clock_that_goes_with_time_is_right_also_after_a_night_asleep() {
        let mut trust = watched();
        for at in [1, 60, 61, 10 * HOUR, 400 * DAY] {
            assert_eq!(trust.judge(reading(at, 100 + at)), Ok(()), "{at}");
        }
    }

    #[test]
    fn a_jump_is_noticed_either_way_until_it_is_taken_back_or_accepted() {
        for by in [6, HOUR, 3650 * DAY, -6, -HOUR, -3650 * DAY] {
            let mut trust = watched();
            for passed in [1, 2, 100 * HOUR] {
                assert_eq!(
                    trust.judge(reading(passed + by, 100 + passed)),
                    Err(Wrong::Set(seconds(by))),
                    "{by}"
                );
            }
            let mut accepted = trust;
            assert_eq!(trust.judge(reading(100 * HOUR, 100 + 100 * HOUR)), Ok(()), "set right again");
            accepted.accept(reading(100 * HOUR + by, 100 + 100 * HOUR));
            assert_eq!(accepted.judge(reading(101 * HOUR + by, 100 + 101 * HOUR)), Ok(()));
        }
        assert_eq!(watched().judge(reading(6, 101)), Ok(()), "the bound is no jump");
    }

    #[test]
    fn a_clock_that_is_set_right_little_by_little_is_right_and_one_that_runs_twice_as_fast_is_not() {
        let (mut slewed, mut fast) = (watched(), watched());
        let mut noticed = false;
        for passed in 1..=1200 {
            assert_eq!(slewed.judge(reading(passed + passed / 12, 100 + passed)), Ok(()));
            noticed |= fast.judge(reading(2 * passed, 100 + passed)).is_err();
        }
        assert!(noticed);
    }

    #[test]
    fn at_the_beginning_the_newest_record_is_what_counts() {
        let begun = |at| Trust::new(BOUNDS, Some(wall(0)), None, reading(at, 7)).judge(reading(at, 7));
        for at in [-5, 0, 1, 365 * DAY] {
            assert_eq!(begun(at), Ok(()), "{at}");
        }
        assert_eq!(begun(-6), Err(Wrong::Behind(seconds(6))));
        assert_eq!(begun(-3650 * DAY), Err(Wrong::Behind(seconds(3650 * DAY))));
        assert_eq!(begun(3650 * DAY), Err(Wrong::Ahead(seconds(3650 * DAY))));
        let mut late = Trust::new(BOUNDS, Some(wall(0)), None, reading(-HOUR, 7));
        assert!(late.judge(reading(-HOUR, 7)).is_err() && late.followed().is_none());
        assert_eq!(late.judge(reading(60, 8)), Ok(()), "a machine without a battery learns the time");
        assert_eq!(late.judge(reading(HOUR, 9)), Err(Wrong::Set(seconds(HOUR - 61))), "from there on");
    }

    #[test]
    fn a_restart_of_the_service_makes_no_wrong_clock_right() {
        let mut before = watched();
        assert_eq!(before.judge(reading(60, 160)), Ok(()));
        let begun = |at, steady| {
            let now = reading(at, steady);
            Trust::new(BOUNDS, Some(wall(60)), before.followed(), now).judge(now)
        };
        assert_eq!(begun(120, 220), Ok(()));
        assert_eq!(begun(120 + HOUR, 220), Err(Wrong::Set(seconds(HOUR))));
        assert_eq!(begun(120 + HOUR, 3), Ok(()), "the machine was started again");
    }

    #[test]
    fn what_is_wrong_is_said_in_whole_seconds() {
        let by = SignedDuration::new(HOUR + 90, 1534);
        let said = [Wrong::Set(by), Wrong::Set(-by), Wrong::Behind(by), Wrong::Ahead(by)];
        for said in said.map(|wrong| wrong.to_string()) {
            assert!(said.contains(" 1h 1m 30s "), "{said}");
        }
        let little = Wrong::Set(SignedDuration::from_millis(20)).to_string();
        assert!(little.contains(" 20ms "), "{little}");
    }

    #[test]
    fn the_ends_of_time_are_no_panic() {
        for wall in [Timestamp::MIN, Timestamp::MAX] {
            // The time since the start of a machine is never negative.
            for steady in [SignedDuration::ZERO, SignedDuration::MAX] {
                let now = Reading { wall, steady };
                assert!(watched().judge(now).is_err());
                let mut trust = Trust::new(BOUNDS, Some(Timestamp::MAX), Some(now), now);
                assert_eq!(trust.judge(now), Ok(()));
                let _ = trust.judge(reading(0, 0));
                trust.accept(now);
            }
        }
    }
}
