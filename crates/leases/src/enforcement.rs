//! Operator limits on the length and extension of leases (API-enforcement).
//!
//! The server calls external enforcement services. The limits here are checked before anything is chosen or
//! changed.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::lease::Lease;
use crate::length_limit::{LengthLimit, of_scope};
use crate::project::ProjectId;
use crate::quota::{LeaseQuota, LeaseUse, OverLeaseQuota};
use crate::scoped::{Scope, ScopeKind, Scoped, Scopes};
use crate::window::{Window, earlier, later};

/// Limits set by the operator.
#[derive(Clone, Debug, Default)]
pub struct Enforcement {
    /// Maximum length of a lease; `None` means no limit.
    pub max_lease_duration: Scoped<Option<SignedDuration>>,
    /// Projects without limits.
    pub exempt_projects: BTreeSet<ProjectId>,
    /// Period before its end in which a lease can be extended, by up to the maximum length again. If `None`,
    /// a lease can be extended at any time, and the limit applies to its whole length.
    pub extension_window: Option<SignedDuration>,
    /// Maximum combined length of a project's leases that overlap or follow each other; `None` means no
    /// limit.
    pub max_stack: Option<SignedDuration>,
    /// Limits on the total of a project's leases.
    pub quota: LeaseQuota,
}

/// An exceeded limit. Texts are Blazar's and Chameleon's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnforcementError {
    #[error(
        "Lease duration of {asked_seconds} seconds must be less than or equal to the maximum lease duration \
         of {allowed_seconds} seconds{}.",
        of_scope(.scope.as_ref())
    )]
    TooLong {
        /// Requested length of the lease, or of its extension within the extension window.
        asked_seconds: i64,
        allowed_seconds: i64,
        /// The project, flavor or free pool that the limit is for; `None` for the general limit.
        scope: Option<Scope>,
    },
    /// Too long together with the project's other leases.
    #[error(
        "Together with other leases of the project it would last {asked_seconds} seconds without a break of \
         {gap_seconds} seconds; at most {allowed_seconds} seconds are allowed."
    )]
    Stacked {
        /// From the first start to the last end.
        asked_seconds: i64,
        allowed_seconds: i64,
        /// Minimum break after which a lease no longer counts as a continuation.
        gap_seconds: i64,
    },
    #[error("Lease can only be extended within {window_seconds} seconds of the leases current end time.")]
    TooEarlyToExtend {
        /// Length of the period before the end in which the lease can be extended.
        window_seconds: i64,
    },
}

/// Formats a duration for humans: `14d`, `1d 6h`.
fn spoken(seconds: i64) -> String {
    let parts =
        [(seconds / 86400, 'd'), (seconds / 3600 % 24, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let parts =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}"));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

impl EnforcementError {
    /// The error in days and hours. The main texts keep seconds, because clients know them that way.
    pub fn hint(&self) -> String {
        match self {
            Self::TooLong { asked_seconds, allowed_seconds, .. } => {
                format!("{} requested, at most {} allowed", spoken(*asked_seconds), spoken(*allowed_seconds))
            }
            Self::Stacked { asked_seconds, allowed_seconds, gap_seconds } => format!(
                "{} together, at most {} allowed without a break of {}",
                spoken(*asked_seconds),
                spoken(*allowed_seconds),
                spoken(*gap_seconds)
            ),
            Self::TooEarlyToExtend { window_seconds } => {
                format!("the lease can be extended in its last {}", spoken(*window_seconds))
            }
        }
    }

    /// `length` is the length of the lease or of its extension.
    pub(crate) fn too_long(length: SignedDuration, limit: &LengthLimit) -> Self {
        Self::TooLong {
            asked_seconds: length.as_secs(),
            allowed_seconds: limit.longest.as_secs(),
            scope: limit.scope.clone(),
        }
    }
}

impl Enforcement {
    /// Limit on the length of leases in these scopes; `None` if unlimited.
    pub fn length_limit(&self, scopes: Scopes<'_>) -> Option<LengthLimit> {
        let (longest, scope) = self.max_lease_duration.find(scopes);
        longest.map(|longest| LengthLimit { longest, scope })
    }

    /// Whether the limit for these scopes depends on the free pool.
    pub fn limits_by_pool(&self, scopes: Scopes<'_>) -> bool {
        let more_specific = || self.max_lease_duration.find(Scopes { pool: None, ..scopes }).1.is_some();
        self.max_lease_duration.differs_by(ScopeKind::Pool) && !more_specific()
    }

    /// Checks the length of a new lease. The lowest limit of its `parts` applies.
    pub fn check_create<'p>(
        &self,
        project: &ProjectId,
        parts: impl IntoIterator<Item = Scopes<'p>>,
        window: &Window,
    ) -> Result<(), EnforcementError> {
        if self.exempt_projects.contains(project) {
            return Ok(());
        }
        check_length(window.length(), self.lowest(parts))
    }

    /// Checks a change of a lease's window. The lowest limit of its `parts` applies.
    ///
    /// A change that neither delays the end nor lengthens the lease is always accepted. Otherwise a lease
    /// could not be shortened after the limit was lowered.
    pub fn check_update<'p>(
        &self,
        project: &ProjectId,
        parts: impl IntoIterator<Item = Scopes<'p>>,
        (before, after): (&Window, &Window),
        now: Timestamp,
    ) -> Result<(), EnforcementError> {
        let shrinks = after.end() <= before.end() && after.length() <= before.length();
        if shrinks || self.exempt_projects.contains(project) {
            return Ok(());
        }
        match self.extension_window {
            Some(window) if after.start() == before.start() => {
                if now < earlier(before.end(), window) {
                    return Err(EnforcementError::TooEarlyToExtend { window_seconds: window.as_secs() });
                }
                check_length(after.end().duration_since(before.end()), self.lowest(parts))
            }
            _ => check_length(after.length(), self.lowest(parts)),
        }
    }

    /// Checks the combined length of a lease in `window` and the project's `others`. `before` is the current
    /// window of a lease that is being changed; a change within it is always accepted.
    ///
    /// Leases stack if they overlap or have a break of less than a tenth of the limit between them: a short
    /// break doesn't restart the count.
    pub fn check_stack(
        &self,
        project: &ProjectId,
        before: Option<&Window>,
        window: &Window,
        others: impl IntoIterator<Item = Window>,
    ) -> Result<(), EnforcementError> {
        let Some(max) = self.max_stack else { return Ok(()) };
        if before.is_some_and(|before| before.covers(window)) || self.exempt_projects.contains(project) {
            return Ok(());
        }
        let gap = max / 10;
        let (mut start, mut end) = (window.start(), window.end());
        let mut others: Vec<Window> = others.into_iter().collect();
        loop {
            let (near, far): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|other| earlier(other.start(), gap) < end && start < later(other.end(), gap));
            if near.is_empty() {
                break;
            }
            start = near.iter().map(Window::start).fold(start, Timestamp::min);
            end = near.iter().map(Window::end).fold(end, Timestamp::max);
            others = far;
        }
        let length = end.duration_since(start);
        if length <= max {
            return Ok(());
        }
        Err(EnforcementError::Stacked {
            asked_seconds: length.as_secs(),
            allowed_seconds: max.as_secs(),
            gap_seconds: gap.as_secs(),
        })
    }

    /// Checks a project's new or changed lease against `quota`. `others` are the project's other leases that
    /// have not ended ([`LeaseQuota::check`]).
    pub fn check_quota<'l>(
        &self,
        quota: &LeaseQuota,
        project: &ProjectId,
        before: Option<&Lease>,
        asked: &LeaseUse,
        others: impl Iterator<Item = &'l Lease>,
    ) -> Result<(), OverLeaseQuota> {
        if quota.is_unlimited() || self.exempt_projects.contains(project) {
            return Ok(());
        }
        quota.check(before, asked, others)
    }

    fn lowest<'p>(&self, parts: impl IntoIterator<Item = Scopes<'p>>) -> Option<LengthLimit> {
        parts.into_iter().filter_map(|scopes| self.length_limit(scopes)).min()
    }
}

fn check_length(length: SignedDuration, limit: Option<LengthLimit>) -> Result<(), EnforcementError> {
    match limit {
        Some(limit) if length > limit.longest => Err(EnforcementError::too_long(length, &limit)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, minutes, window};

    fn project() -> ProjectId {
        ProjectId("p".into())
    }

    fn limits(extension_window: Option<i64>) -> Enforcement {
        Enforcement {
            max_lease_duration: Some(minutes(60)).into(),
            exempt_projects: BTreeSet::from([ProjectId("vip".into())]),
            extension_window: extension_window.map(minutes),
            ..Enforcement::default()
        }
    }

    #[test]
    fn limits_are_also_given_in_days_and_hours() {
        for (seconds, text) in [(2_592_000, "30d"), (104_400, "1d 5h"), (90, "1m 30s"), (0, "0s")] {
            assert_eq!(spoken(seconds), text);
        }
        let limit = LengthLimit { longest: SignedDuration::from_hours(14 * 24), scope: None };
        let error = EnforcementError::too_long(SignedDuration::from_hours(30 * 24), &limit);
        assert_eq!(error.hint(), "30d requested, at most 14d allowed");
    }

    #[test]
    fn hk_b_leases_one_after_another_are_limited_as_if_they_were_one() {
        let limits = Enforcement { max_stack: Some(minutes(100)), ..limits(None) };
        let check = |start, end, others: &[(i64, i64)]| {
            let others = others.iter().map(|(start, end)| window(*start, *end));
            limits.check_stack(&project(), None, &window(start, end), others).is_ok()
        };
        assert!(check(0, 100, &[]) && !check(0, 101, &[]));
        assert!(check(50, 100, &[(0, 50)]) && !check(50, 101, &[(0, 50)]));
        assert!(!check(59, 101, &[(0, 50)]), "a break of less than a tenth is none");
        assert!(check(60, 101, &[(0, 50)]), "one of a tenth is");
        assert!(!check(40, 60, &[(0, 40), (60, 101)]), "a lease between two makes one of them");
        assert!(!check(90, 110, &[(45, 90), (0, 45)]), "others stack among themselves");
        assert!(check(0, 90, &[(10, 80), (0, 90)]), "what is at the same time counts once");
        let refused = limits.check_stack(&project(), None, &window(0, 200), []).expect_err("too long");
        assert!(refused.to_string().contains("without a break of 600 seconds"), "{refused}");
    }

    #[test]
    fn hk_b_a_lease_can_always_be_shortened_and_some_projects_are_exempt() {
        let limits = Enforcement { max_stack: Some(minutes(100)), ..limits(None) };
        let (before, shorter) = (window(0, 300), window(0, 250));
        assert_eq!(limits.check_stack(&project(), Some(&before), &shorter, []), Ok(()));
        assert!(limits.check_stack(&project(), Some(&shorter), &before, []).is_err());
        assert_eq!(limits.check_stack(&ProjectId("vip".into()), None, &before, []), Ok(()));
        let none = Enforcement::default();
        assert_eq!(none.check_stack(&project(), None, &before, [window(300, 900)]), Ok(()));
    }

    #[test]
    fn a_lease_of_the_longest_duration_is_allowed_and_a_longer_one_is_not() {
        let check = |project: &ProjectId, end| {
            limits(None).check_create(project, [Scopes::default()], &window(0, end))
        };
        assert_eq!(check(&project(), 60), Ok(()));
        let refused = check(&project(), 61).expect_err("too long");
        let text = "Lease duration of 3660 seconds must be less than or equal to the maximum lease duration \
                    of 3600 seconds.";
        assert_eq!(refused.to_string(), text);
        assert_eq!(check(&ProjectId("vip".into()), 61), Ok(()));
    }

    #[test]
    fn the_lowest_limit_of_all_parts_counts_and_the_error_says_what_it_is_for() {
        let mut limits = limits(None);
        limits.max_lease_duration.insert(Scope::flavor("p3"), Some(minutes(30)));
        limits.max_lease_duration.insert(Scope::pool("bench"), Some(minutes(600)));
        limits.max_lease_duration.insert(Scope::pool("open"), None);
        let none = Scopes::default();
        let (flavor, bench) = (Scopes { flavor: Some("p3"), ..none }, Scopes { pool: Some("bench"), ..none });
        let check = |parts: &[Scopes<'_>], end| {
            limits.check_create(&project(), parts.iter().copied(), &window(0, end))
        };
        assert_eq!(check(&[bench], 600), Ok(()), "the pool's limit replaces the general one");
        assert!(check(&[bench, none], 61).is_err());
        assert_eq!(check(&[Scopes { pool: Some("open"), ..none }], 10_000), Ok(()));
        let refused = check(&[bench, flavor], 31).expect_err("too long").to_string();
        let text = "Lease duration of 1860 seconds must be less than or equal to the maximum lease duration \
                    of 1800 seconds for flavor p3 (leases.max_duration).";
        assert_eq!(refused, text);
        let refused = check(&[bench], 601).expect_err("too long").to_string();
        assert!(refused.ends_with("36000 seconds for its free pool (leases.max_duration)."), "{refused}");
        assert!(limits.limits_by_pool(none) && !limits.limits_by_pool(flavor));
    }

    #[test]
    fn an_extension_counts_the_whole_lease_unless_there_is_a_window_for_it() {
        let extend = |limits: Enforcement, now, end| {
            limits.check_update(&project(), [Scopes::default()], (&window(0, 60), &window(0, end)), at(now))
        };
        assert!(extend(limits(None), 0, 61).is_err());
        assert_eq!(extend(limits(Some(10)), 50, 120), Ok(()));
        assert!(extend(limits(Some(10)), 50, 121).is_err());
        let early = extend(limits(Some(10)), 49, 120);
        assert_eq!(early, Err(EnforcementError::TooEarlyToExtend { window_seconds: 600 }));
    }

    #[test]
    fn a_lease_that_is_too_long_already_can_be_shortened() {
        let limits = limits(Some(10));
        let (before, after) = (window(0, 500), window(0, 400));
        let checked = limits.check_update(&project(), [Scopes::default()], (&before, &after), at(0));
        assert_eq!(checked, Ok(()));
    }
}
