//! Operator settings.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{HealingInterval, Rules};
use leases::energy::PowerRules;
use leases::housekeeping::HousekeepingRules;
use leases::lease::EndAction;
use leases::plan::PlanRules;
use leases::preemption::PreemptionRules;
use leases::quota::Quotas;
use leases::usage::Prices;
use store::{Holder, WriteLimits};

use crate::held_offers::OfferLimits;

/// Settings of the service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Identity of this service among the services that share the store.
    pub holder: Holder,
    pub rules: Rules,
    /// Rules of handing over hosts.
    pub plan_rules: PlanRules,
    /// Time for which offers are held unless the client asks for another. Zero means never.
    pub offer_hold: SignedDuration,
    pub offer_limits: OfferLimits,
    /// Maximum time ahead at which a later start is offered.
    pub offers_ahead: SignedDuration,
    /// Leases that start sooner than this aren't moved to other hosts to make room for another lease.
    pub replan_notice: SignedDuration,
    /// Maximum number of waiting requests per project.
    pub waitlist_limit: usize,
    /// Reminders and reclaiming of unused leases.
    pub housekeeping: HousekeepingRules,
    /// Action for guests at the end of a lease, if neither the lease nor the pool of its hosts specifies one.
    pub end_action: EndAction,
    /// Time that a host must be free before and after a lease of the whole host.
    pub cleaning_time: SignedDuration,
    /// Time ahead up to which failed hosts are replaced.
    pub healing_interval: HealingInterval,
    /// Interval between observations of the whole fleet while there is no other work.
    pub observe_interval: SignedDuration,
    /// Time without an observation after which the health of hosts counts as unknown.
    pub unknown_after: SignedDuration,
    /// Maximum duration of a step, unless its hooks have a longer limit. After that, the step is given up and
    /// tried again.
    pub step_time: SignedDuration,
    /// Maximum number of concurrent steps.
    pub steps_at_once: usize,
    /// Maximum time that a deletion waits for its hosts to be released before it is answered.
    pub delete_wait: Duration,
    /// Timeout for requests to the external enforcement service.
    pub enforcer_timeout: Duration,
    /// Maximum difference between this service's clock and the store's, if the store has one: services that
    /// share a store must agree on when a lease starts. Preemptible guests get this much more time to leave.
    pub longest_clock_skew: SignedDuration,
    /// Maximum age of the store's newest record when the service starts. If it is older, the clock might be
    /// wrong, and an operator must accept it.
    pub longest_absence: SignedDuration,
    /// Retention of notifications, audit records and idempotency keys.
    pub keep_records: SignedDuration,
    /// Maximum bytes of notifications, of audit records, and of occupancy of leases, per project. Beyond it,
    /// the project's oldest records expire. Audit records of administrators, of failed logins and of the
    /// service itself expire only by age and don't count.
    pub keep_bytes: u64,
    /// Retention of notifications for a listener that doesn't fetch them.
    pub keep_undelivered: SignedDuration,
    /// Whether a listener wants notifications for metering, one per reservation.
    pub metered: bool,
    /// Retention of ended leases. `None` means forever.
    pub keep_leases: Option<SignedDuration>,
    /// Retention of past usage and occupancy. `None` means forever.
    pub keep_usage: Option<SignedDuration>,
    /// Maximum work of one decision, in units of [`leases::work::Budget`].
    pub decision_work: u64,
    /// Limits on the size of a transaction and on the text of a lease.
    pub writes: WriteLimits,
    /// Maximum number of concurrent decisions without the write lock, at least one.
    pub decisions_at_once: usize,
    /// Prices of usage.
    pub prices: Prices,
    pub energy: EnergySettings,
    /// Rules for which instances are preemptible, and where they run.
    pub preemption: PreemptionRules,
    /// Limits on a project's instances outside of leases.
    pub quotas: Quotas,
    /// Maximum number of a project's leases that aren't over, if [`leases::quota::LeaseQuota::leases`] is
    /// unset. The limit is ten times as high for privileged users, which act for many people. `None` means no
    /// limit.
    pub usual_leases: Option<u64>,
    /// Whether the free pool is open: regular instances placed by an external scheduler can run there.
    pub open_pool: bool,
    /// Whether instances placed by an external scheduler are preemptible if their project is listed. If the
    /// fleet can't recognize such guests, they would never be asked to leave.
    pub preemptible_by_project: bool,
}

impl Settings {
    /// Default of [`Self::decision_work`].
    pub const DECISION_WORK: u64 = leases::work::DEFAULT_UNITS;

    /// Default of [`Self::usual_leases`] where there is authentication.
    pub const USUAL_LEASES: u64 = 1000;

    /// Default of [`Self::keep_bytes`].
    pub const KEEP_BYTES: u64 = 64 << 20;

    /// Default of [`Self::enforcer_timeout`].
    pub const ENFORCER_TIMEOUT: Duration = Duration::from_secs(10);

    /// Leases that start at this instant or later can still be moved to other hosts.
    pub(crate) fn settled_until(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.replan_notice).unwrap_or(Timestamp::MAX)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            holder: Holder("allot".to_owned()),
            rules: Rules { before_end_lead: Some(SignedDuration::from_mins(60)), ..Rules::default() },
            plan_rules: PlanRules::default(),
            offer_hold: SignedDuration::from_secs(60),
            offer_limits: OfferLimits::default(),
            offers_ahead: SignedDuration::from_hours(24 * 90),
            replan_notice: SignedDuration::from_mins(10),
            waitlist_limit: 100,
            housekeeping: HousekeepingRules::default(),
            end_action: EndAction::DeleteGuests,
            cleaning_time: SignedDuration::ZERO,
            healing_interval: HealingInterval(Some(SignedDuration::from_hours(1))),
            observe_interval: SignedDuration::from_secs(30),
            unknown_after: SignedDuration::from_mins(3),
            step_time: SignedDuration::from_mins(2),
            steps_at_once: 256,
            delete_wait: Duration::from_secs(5),
            enforcer_timeout: Self::ENFORCER_TIMEOUT,
            longest_clock_skew: SignedDuration::from_secs(5),
            longest_absence: SignedDuration::from_hours(24 * 400),
            keep_records: SignedDuration::from_hours(24 * 30),
            keep_bytes: Self::KEEP_BYTES,
            keep_undelivered: SignedDuration::from_hours(24 * 90),
            metered: false,
            keep_leases: Some(SignedDuration::from_hours(24 * 90)),
            keep_usage: None,
            decision_work: Self::DECISION_WORK,
            writes: WriteLimits::default(),
            decisions_at_once: 1,
            prices: Prices::default(),
            energy: EnergySettings::default(),
            preemption: PreemptionRules::default(),
            quotas: Quotas::default(),
            usual_leases: None,
            open_pool: true,
            preemptible_by_project: true,
        }
    }
}

/// Power-saving settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergySettings {
    pub mode: EnergyMode,
    pub rules: PowerRules,
    /// Minimum saving, in watt-hours, for which leases that haven't started are moved to hosts that draw less
    /// power. `None` means that they aren't moved.
    pub repack_watt_hours: Option<u32>,
}

/// Whether power is saved by switching hosts off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyMode {
    /// No saving. Hosts that are off are switched on.
    #[default]
    Off,
    /// Only planned. No host is switched off.
    DryRun,
    /// Unneeded hosts are switched off.
    On,
}

impl EnergyMode {
    /// `off`, `dry_run` or `on`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::DryRun => "dry_run",
            Self::On => "on",
        }
    }
}
