//! Lease types: start on a date, now or never, or as soon as possible (CLS).

use jiff::{SignedDuration, Timestamp};

use crate::status::LeaseStatus;

/// Choice of a lease's start, and of the consequences if it can't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeaseType {
    /// Starts on its date. The only type in Blazar.
    #[default]
    Schedule,
    /// Starts now or not at all. If it isn't ACTIVE at the deadline, it vanishes without a trace.
    Immediate { deadline: Timestamp },
    /// Starts as soon as possible before the deadline. Until then, its window advances to any earlier time
    /// that becomes free. If it isn't ACTIVE at the deadline, it times out.
    BestEffort { deadline: Timestamp },
}

impl LeaseType {
    /// Name in the API (`lease_type`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "SCHEDULE",
            Self::Immediate { .. } => "IMMEDIATE",
            Self::BestEffort { .. } => "BEST-EFFORT",
        }
    }

    /// `None` if the name is unknown, or if the presence of a deadline doesn't match the type.
    pub fn from_parts(name: &str, deadline: Option<Timestamp>) -> Option<Self> {
        match (name, deadline) {
            ("SCHEDULE", None) => Some(Self::Schedule),
            ("IMMEDIATE", Some(deadline)) => Some(Self::Immediate { deadline }),
            ("BEST-EFFORT", Some(deadline)) => Some(Self::BestEffort { deadline }),
            _ => None,
        }
    }

    /// Time by which the lease must have started; `None` for scheduled leases.
    pub fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Schedule => None,
            Self::Immediate { deadline } | Self::BestEffort { deadline } => Some(deadline),
        }
    }
}

/// Operator's limits on waiting for a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For immediate leases.
    pub immediate: SignedDuration,
    /// Default for best-effort leases.
    pub best_effort: SignedDuration,
    /// Maximum that a best-effort lease can request.
    pub longest: SignedDuration,
}

impl Default for Deadlines {
    /// 90 seconds, since preemptible guests can take a minute to leave; 1 hour; 1 week.
    fn default() -> Self {
        Self {
            immediate: SignedDuration::from_secs(90),
            best_effort: SignedDuration::from_hours(1),
            longest: SignedDuration::from_hours(7 * 24),
        }
    }
}

/// State of a lease in terms of its type: `lease_state` in the API. Blazar's clients use [`LeaseStatus`],
/// which is shown as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Waiting for its date.
    Inactive,
    /// Hosts are being found or handed over for it.
    InProgress,
    /// The project has its resources.
    Active,
    /// Not active by its deadline.
    TimedOut,
    Terminated,
    Failure,
}

impl LeaseState {
    /// Name in the API (`lease_state`).
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

    /// Derives the state. A lease that is ending counts as terminated.
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
