//! When a lease is to start: at its date, at once, or as soon as it can (CLS).

use jiff::{SignedDuration, Timestamp};

use crate::status::LeaseStatus;

/// When a lease is to start, and what becomes of it if it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeaseType {
    /// At its date. Blazar knows nothing else.
    #[default]
    Schedule,
    /// At once, or there is no lease: if it is not ACTIVE at the deadline it goes without a trace.
    Immediate {
        /// Until when.
        deadline: Timestamp,
    },
    /// As soon as possible, but before the deadline. Until it starts, its window moves to any earlier time that
    /// becomes free. If it is not ACTIVE at the deadline it has timed out.
    BestEffort {
        /// Until when.
        deadline: Timestamp,
    },
}

impl LeaseType {
    /// The seed's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "SCHEDULE",
            Self::Immediate { .. } => "IMMEDIATE",
            Self::BestEffort { .. } => "BEST-EFFORT",
        }
    }

    /// The type of that name; those with a deadline need one.
    pub fn from_parts(name: &str, deadline: Option<Timestamp>) -> Option<Self> {
        match (name, deadline) {
            ("SCHEDULE", None) => Some(Self::Schedule),
            ("IMMEDIATE", Some(deadline)) => Some(Self::Immediate { deadline }),
            ("BEST-EFFORT", Some(deadline)) => Some(Self::BestEffort { deadline }),
            _ => None,
        }
    }

    /// Until when it must have started, if it must.
    pub fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Schedule => None,
            Self::Immediate { deadline } | Self::BestEffort { deadline } => Some(deadline),
        }
    }
}

/// How long leases may wait for their start, as the operator has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// An immediate lease.
    pub immediate: SignedDuration,
    /// A best-effort lease that does not say.
    pub best_effort: SignedDuration,
    /// The longest that a best-effort lease may say.
    pub longest: SignedDuration,
}

impl Default for Deadlines {
    /// A minute and a half, since preemptible guests may take a minute to leave; an hour; a week.
    fn default() -> Self {
        Self {
            immediate: SignedDuration::from_secs(90),
            best_effort: SignedDuration::from_hours(1),
            longest: SignedDuration::from_hours(7 * 24),
        }
    }
}

/// How far a lease is, in the seed's words. Blazar's clients see [`LeaseStatus`]; this is shown beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Waits for its date.
    Inactive,
    /// Hosts are being found or handed over for it.
    InProgress,
    /// Its project has what it asked for.
    Active,
    /// It was not there before its deadline.
    TimedOut,
    /// It ended.
    Terminated,
    /// It failed.
    Failure,
}

impl LeaseState {
    /// The seed's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inactive => "INACTIVE",
            Self::InProgress => "IN-PROGRESS",
            Self::Active => "ACTIVE",
            Self::TimedOut => "TIMEDOUT",
            Self::Terminated => "TERMINATED",
            Self::Failure => "FAILURE",
        }
    }

    /// The state of a lease of that type and status, whose start has failed or not. What is under way when it ends
    /// counts as its end.
    pub(crate) fn of(kind: LeaseType, status: LeaseStatus, start_failed: bool) -> Self {
        match (status, kind) {
            (_, LeaseType::BestEffort { .. }) if start_failed => Self::TimedOut,
            (LeaseStatus::Error, _) => Self::Failure,
            _ if start_failed => Self::Failure,
            (LeaseStatus::Creating | LeaseStatus::Pending | LeaseStatus::Starting, LeaseType::Schedule) => {
                Self::Inactive
            }
            (LeaseStatus::Creating | LeaseStatus::Pending | LeaseStatus::Starting, _) => Self::InProgress,
            (LeaseStatus::Active | LeaseStatus::Updating, _) => Self::Active,
            (LeaseStatus::Terminating | LeaseStatus::Terminated | LeaseStatus::Deleting, _) => {
                Self::Terminated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn types_are_told_by_their_names_and_deadlines() {
        let deadline = at(5);
        for kind in
            [LeaseType::Schedule, LeaseType::Immediate { deadline }, LeaseType::BestEffort { deadline }]
        {
            assert_eq!(LeaseType::from_parts(kind.name(), kind.deadline()), Some(kind));
        }
        assert_eq!(LeaseType::from_parts("BEST-EFFORT", None), None);
        assert_eq!(LeaseType::from_parts("SCHEDULE", Some(deadline)), None);
    }

    #[test]
    fn states_are_those_of_the_seed() {
        let best_effort = LeaseType::BestEffort { deadline: at(5) };
        let of = |kind, status, failed| LeaseState::of(kind, status, failed).name();
        assert_eq!(of(LeaseType::Schedule, LeaseStatus::Pending, false), "INACTIVE");
        assert_eq!(of(best_effort, LeaseStatus::Pending, false), "IN-PROGRESS");
        assert_eq!(of(best_effort, LeaseStatus::Starting, false), "IN-PROGRESS");
        assert_eq!(of(best_effort, LeaseStatus::Active, false), "ACTIVE");
        assert_eq!(of(best_effort, LeaseStatus::Error, true), "TIMEDOUT");
        assert_eq!(of(best_effort, LeaseStatus::Terminating, true), "TIMEDOUT");
        assert_eq!(of(LeaseType::Schedule, LeaseStatus::Error, true), "FAILURE");
        assert_eq!(of(LeaseType::Schedule, LeaseStatus::Terminated, false), "TERMINATED");
    }
}
