//! Automatic housekeeping of leases, as configured by the operator (HK). Reminds owners of starts and ends,
//! and warns about unused leases before it ends them.
//!
//! Completed actions are stored with the lease ([`Marks`]) and committed together with their consequences. So
//! no action is repeated or skipped, even if a service stops halfway. [`crate::maintenance`] finds times for
//! maintenance.

pub(crate) mod marks;

use jiff::{SignedDuration, Timestamp};

pub use self::marks::Marks;
use crate::lease::Lease;
use crate::lease_type::LeaseType;
use crate::project::ProjectId;
use crate::properties::HostProperties;
use crate::requirement::Requirement;
use crate::status::LeaseStatus;
use crate::terms::{ReservationTerms, Terms};
use crate::window::{Window, earlier, later};

/// Operator settings for housekeeping. By default, everything is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HousekeepingRules {
    /// Time after the start at which the owner of a lease without any instance is warned.
    pub unused_warning: Option<SignedDuration>,
    /// Time after the start at which an unused lease ends. Without `unused_warning`, the warning comes after
    /// half of it.
    pub unused_reclaim: Option<SignedDuration>,
    /// Time before the start and the end of a lease at which its owner is reminded.
    pub reminder: Option<SignedDuration>,
    /// Maximum number of hosts that the owner of a lease can have replaced.
    pub swaps: u32,
    /// Preferred host properties for requests without requirements. Such requests get other hosts if none of
    /// these are available.
    pub default_properties: Requirement,
    /// Project that maintenance is booked for; `None` disables booking it.
    pub maintenance_project: Option<ProjectId>,
}

/// Whether any instance runs in a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Used,
    /// There is no instance, and all hosts of the lease were observed.
    Unused,
    /// Observations are missing.
    Unknown,
}

/// Result of tending a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tended {
    /// The changed lease to commit, if it changes. Notifications follow from its marks.
    pub lease: Option<Lease>,
    /// Time of the next check.
    pub wake_at: Option<Timestamp>,
}

impl HousekeepingRules {
    /// Whether no automatic action is configured.
    pub fn idle(&self) -> bool {
        self.unused_warning.is_none() && self.unused_reclaim.is_none() && self.reminder.is_none()
    }

    /// Leases that start by this time are already checked.
    pub fn looks_ahead_to(&self, now: Timestamp) -> Timestamp {
        later(now, self.reminder.unwrap_or_default())
    }

    /// Time of the first check of a lease that starts at `start`; `None` if no check precedes the start.
    pub fn looks_at(&self, start: Timestamp) -> Option<Timestamp> {
        self.reminder.map(|lead| earlier(start, lead))
    }

    /// Performs the actions that are due for a lease created at `made_at`.
    pub fn tend(&self, lease: &Lease, made_at: Timestamp, seen: Use, now: Timestamp) -> Tended {
        let mut tending = Tending { after: lease.clone(), wake_at: None, now };
        if let Some(lead) = self.reminder {
            tending.remind(lead, made_at);
        }
        // Hosts under maintenance have no instances.
        let maintained = self.maintenance_project.as_ref() == Some(&lease.owner.project);
        if let Some((warning, reclaim)) = self.patience().filter(|_| !maintained) {
            tending.watch(warning, reclaim, seen);
        }
        Tended { lease: (tending.after != *lease).then_some(tending.after), wake_at: tending.wake_at }
    }

    /// Times after its start at which an unused lease gets a warning, and ends.
    fn patience(&self) -> Option<(SignedDuration, Option<SignedDuration>)> {
        let warning = self.unused_warning.or_else(|| self.unused_reclaim.map(|reclaim| reclaim / 2))?;
        Some((warning, self.unused_reclaim))
    }

    /// The terms with the default properties added to reservations that have no requirements. `None` if there
    /// are no default properties, or if the request has requirements of its own.
    pub fn usual(&self, terms: &Terms) -> Option<Terms> {
        if self.default_properties == Requirement::NONE || !terms.hints.is_empty() {
            return None;
        }
        let mut usual = terms.clone();
        for reservation in &mut usual.reservations {
            match reservation {
                ReservationTerms::Hosts(asked)
                    if asked.hypervisor == Requirement::NONE
                        && asked.resource == Requirement::NONE
                        && *asked.properties == HostProperties::default() =>
                {
                    asked.resource = self.default_properties.clone();
                }
                ReservationTerms::Instances(asked) if asked.requirement == Requirement::NONE => {
                    asked.requirement = self.default_properties.clone();
                }
                _ => {}
            }
        }
        (usual != *terms).then_some(usual)
    }
}

/// A lease during [`HousekeepingRules::tend`].
struct Tending {
    after: Lease,
    wake_at: Option<Timestamp>,
    now: Timestamp,
}

impl Tending {
    /// Whether `at` has come. If not, schedules a check for then.
    fn due(&mut self, at: Timestamp) -> bool {
        if self.now < at {
            self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
        }
        at <= self.now
    }

    /// Records due reminders. A lease created less than `lead` before its start gets no reminder of the
    /// start: its owner has only just requested it.
    fn remind(&mut self, lead: SignedDuration, made_at: Timestamp) {
        let (start, end) = (self.after.window.start(), self.after.window.end());
        let waits = self.after.status == LeaseStatus::Pending && self.after.lease_type == LeaseType::Schedule;
        let before_start = earlier(start, lead);
        let untold = self.after.marks.start_reminded != Some(start) && made_at < before_start;
        if waits && untold && self.now < start && self.due(before_start) {
            self.after.marks.start_reminded = Some(start);
        }
        let before_end = earlier(end, lead);
        let runs = self.after.status == LeaseStatus::Active && start < before_end;
        if runs && self.after.marks.end_reminded != Some(end) && self.now < end && self.due(before_end) {
            self.after.marks.end_reminded = Some(end);
        }
    }

    /// Records whether the lease is used, warns its owner if it isn't, and later ends it. The owner always
    /// has the full time between warning and end, even if the warning comes late.
    fn watch(&mut self, warning: SignedDuration, reclaim: Option<SignedDuration>, seen: Use) {
        let Lease { status, window, reservations, marks, .. } = &self.after;
        let has_hosts = reservations.iter().any(|reservation| !reservation.allocation.hosts().is_empty());
        let over = window.end() <= self.now || marks.reclaimed_at.is_some();
        if *status != LeaseStatus::Active || !has_hosts || over || marks.used {
            return;
        }
        let (start, warned_at) = (window.start(), marks.unused_warned_at);
        match (seen, warned_at) {
            (Use::Used, _) => self.after.marks.used = true,
            (Use::Unused, None) => {
                if self.due(later(start, warning)) {
                    self.after.marks.unused_warned_at = Some(self.now);
                }
            }
            (Use::Unused, Some(warned_at)) => {
                let Some(reclaim) = reclaim else { return };
                let respite = reclaim.saturating_sub(warning).max(SignedDuration::ZERO);
                if self.due(later(start, reclaim).max(later(warned_at, respite))) {
                    self.end(reclaim);
                }
            }
            (Use::Unknown, _) => {}
        }
    }

    /// Ends the lease now, as its owner could.
    fn end(&mut self, after: SignedDuration) {
        let lease = &mut self.after;
        let start = lease.window.start();
        lease.window = Window::starting(start, self.now.duration_since(start));
        lease.before_end = lease.before_end.map(|at| at.min(self.now));
        lease.marks.reclaimed_at = Some(self.now);
        lease.reason =
            Some(format!("it was ended because no instance ran in it within {after:#} of its start"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Operator;
    use crate::status::EventStatus;
    use crate::terms::HostsTerms;
    use crate::testing::{at, lease, minutes, window};

    fn active(start: i64, end: i64) -> Lease {
        let mut lease = lease(1, window(start, end), &[1]);
        lease.status = LeaseStatus::Active;
        lease.events.start = EventStatus::Done;
        lease
    }

    /// Tends a lease every minute until `until`. Returns it with the minutes at which it changed.
    fn watched(
        rules: &HousekeepingRules,
        mut lease: Lease,
        from: i64,
        until: i64,
        seen: Use,
    ) -> (Lease, Vec<i64>) {
        let mut changed = Vec::new();
        for minute in from..until {
            if let Some(after) = rules.tend(&lease, at(-1000), seen, at(minute)).lease {
                lease = after;
                changed.push(minute);
            }
        }
        (lease, changed)
    }

    fn unused(warning: Option<i64>, reclaim: Option<i64>) -> HousekeepingRules {
        let (unused_warning, unused_reclaim) = (warning.map(minutes), reclaim.map(minutes));
        HousekeepingRules { unused_warning, unused_reclaim, ..HousekeepingRules::default() }
    }

    #[test]
    fn hk_a_an_unused_lease_is_warned_of_once_and_then_ends() {
        let rules = unused(Some(60), Some(90));
        let (after, changed) = watched(&rules, active(0, 500), 0, 400, Use::Unused);
        assert_eq!(changed, [60, 90]);
        assert_eq!((after.marks.unused_warned_at, after.marks.reclaimed_at), (Some(at(60)), Some(at(90))));
        assert_eq!(after.window, window(0, 90));
        assert!(after.reason.is_some_and(|why| why.contains("no instance ran in it")));
        let (after, changed) = watched(&unused(Some(60), None), active(0, 500), 0, 400, Use::Unused);
        assert_eq!((changed, after.window), (vec![60], window(0, 500)), "it is only warned of");
        let (_, changed) = watched(&unused(None, Some(90)), active(0, 500), 0, 400, Use::Unused);
        assert_eq!(changed, [45, 90], "nothing ends without a warning");
    }

    #[test]
    fn hk_a_who_is_warned_late_has_the_same_time_to_answer() {
        let (after, changed) = watched(&unused(Some(60), Some(90)), active(0, 500), 200, 400, Use::Unused);
        assert_eq!((changed, after.window), (vec![200, 230], window(0, 230)));
    }

    #[test]
    fn hk_a_a_lease_that_had_an_instance_or_of_which_nobody_can_say_is_left_alone() {
        let rules = unused(Some(60), Some(90));
        let (used, changed) = watched(&rules, active(0, 500), 0, 100, Use::Used);
        assert_eq!(changed, [0]);
        let (_, changed) = watched(&rules, used, 100, 400, Use::Unused);
        assert_eq!(changed, Vec::<i64>::new(), "that it had one is not forgotten");
        let (_, changed) = watched(&rules, active(0, 500), 0, 400, Use::Unknown);
        assert_eq!(changed, Vec::<i64>::new());
        let maintenance_project = Some(crate::testing::owner().project);
        let own = HousekeepingRules { maintenance_project, ..rules.clone() };
        assert_eq!(
            watched(&own, active(0, 500), 0, 400, Use::Unused).1,
            Vec::<i64>::new(),
            "it is maintenance"
        );
        let waiting = lease(1, window(0, 500), &[1]);
        assert_eq!(watched(&rules, waiting, 0, 400, Use::Unused).1, Vec::<i64>::new());
    }

    #[test]
    fn hk_d_owners_are_reminded_once_before_a_start_and_an_end() {
        let rules = HousekeepingRules { reminder: Some(minutes(60)), ..HousekeepingRules::default() };
        let waiting = lease(1, window(200, 400), &[1]);
        assert_eq!(rules.tend(&waiting, at(0), Use::Unknown, at(10)).wake_at, Some(at(140)));
        let (waiting, changed) = watched(&rules, waiting, 0, 200, Use::Unknown);
        assert_eq!((changed, waiting.marks.start_reminded), (vec![140], Some(at(200))));
        let mut runs = waiting;
        runs.status = LeaseStatus::Active;
        let (mut runs, changed) = watched(&rules, runs, 200, 400, Use::Unknown);
        assert_eq!((changed, runs.marks.end_reminded), (vec![340], Some(at(400))));
        // A new end gets a reminder of its own.
        runs.window = window(200, 600);
        assert_eq!(watched(&rules, runs, 350, 600, Use::Unknown).1, [540]);
        let short = active(0, 30);
        assert_eq!(watched(&rules, short, 0, 30, Use::Unknown).1, Vec::<i64>::new(), "it has just begun");
        let soon = lease(1, window(30, 400), &[1]);
        assert_eq!(
            rules.tend(&soon, at(0), Use::Unknown, at(1)),
            Tended::default(),
            "who has just asked knows"
        );
    }

    #[test]
    fn hk_f_default_properties_are_for_who_asks_for_nothing_in_particular() {
        let live = Requirement::compare(Operator::Equal, "stage", "live").expect("well formed");
        let rules = HousekeepingRules { default_properties: live.clone(), ..HousekeepingRules::default() };
        let plain = HostsTerms::new(1, 1).expect("a range");
        let terms = |hosts: HostsTerms| {
            Terms::new(window(0, 60), None, vec![ReservationTerms::Hosts(hosts)]).expect("terms")
        };
        let usual = rules.usual(&terms(plain.clone())).expect("nothing is asked for");
        assert_eq!(usual, terms(plain.clone().requiring(live)));
        let gpu = Requirement::compare(Operator::Equal, "gpu", "yes").expect("well formed");
        assert_eq!(rules.usual(&terms(plain.clone().requiring(gpu))), None);
        let mut large = plain.clone();
        std::sync::Arc::make_mut(&mut large.properties).vcpus = Some(64);
        assert_eq!(rules.usual(&terms(large)), None);
        assert_eq!(HousekeepingRules::default().usual(&terms(plain)), None);
    }
}
