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
    /// Who this service is among those that share the store.
    pub holder: Holder,
    /// Rules of admission.
    pub rules: Rules,
    /// Rules of hand-over.
    pub plan_rules: PlanRules,
    /// Time for which offers are held unless the client asks for another. Zero: they are never held.
    pub offer_hold: SignedDuration,
    /// Limits on held offers.
    pub offer_limits: OfferLimits,
    /// How far ahead a later start is looked for, to offer it.
    pub offers_ahead: SignedDuration,
    /// Leases that start sooner than this are not given other hosts to make room for others.
    pub replan_notice: SignedDuration,
    /// How many requests of a project may be on the waitlist.
    pub waitlist_limit: usize,
    /// What is done about leases by itself.
    pub housekeeping: HousekeepingRules,
    /// What becomes of guests at the end of leases that do not say, on hosts of pools that do not say.
    pub end_action: EndAction,
    /// How long a host must be free before and after a lease of the whole host.
    pub cleaning_time: SignedDuration,
    /// How far ahead failed hosts are replaced.
    pub healing_interval: HealingInterval,
    /// How often the whole fleet is looked at when nothing else is to be done.
    pub observe_interval: SignedDuration,
    /// After how long without an observation the health of hosts counts as unknown.
    pub unknown_after: SignedDuration,
    /// Maximum duration of a step, unless its hooks may take longer. After that it is given up and tried again.
    pub step_time: SignedDuration,
    /// How many steps are carried out at once.
    pub steps_at_once: usize,
    /// How long a deletion waits for hosts to be taken back before it is answered.
    pub delete_wait: Duration,
    /// How long the external service may take to answer.
    pub enforcer_timeout: Duration,
    /// How far the clock may be from the store's, if the store has one: several services that share it must
    /// agree on when a lease begins. Preemptible guests are given that much longer to leave.
    pub longest_clock_skew: SignedDuration,
    /// How old the newest record of the store may be when the service starts. If it is older, the clock may be wrong,
    /// and an operator has to accept it.
    pub longest_absence: SignedDuration,
    /// How long notifications, audit records and keys of requests are kept.
    pub keep_records: SignedDuration,
    /// Maximum bytes of notifications, of audit records, and of occupancy of leases, of each project. Beyond it, the
    /// project's oldest records expire. Audit records that expire by age only don't count: those of administrators, of failed logins and of the
    /// service itself.
    pub keep_bytes: u64,
    /// How long notifications are kept for a listener that does not take them.
    pub keep_undelivered: SignedDuration,
    /// Whether there is a listener that wants notifications for meters, one for each reservation.
    pub metered: bool,
    /// How long leases are kept after they have ended; none means forever.
    pub keep_leases: Option<SignedDuration>,
    /// How long usage and occupancy that is over is kept; none means forever.
    pub keep_usage: Option<SignedDuration>,
    /// How much work one decision may cost, in units of [`leases::work::Budget`].
    pub decision_work: u64,
    /// How much a transaction may write, and how much text a lease may have.
    pub writes: WriteLimits,
    /// How many decisions there may be at once that have not got the write lock; at least one.
    pub decisions_at_once: usize,
    /// What is charged for usage.
    pub prices: Prices,
    /// How power is saved.
    pub energy: EnergySettings,
    /// Which instances are preemptible, and where they run.
    pub preemption: PreemptionRules,
    /// How much instances beside leases a project may have.
    pub quotas: Quotas,
    /// How many leases that are not over a project may have where [`leases::quota::LeaseQuota::leases`] says nothing; ten
    /// times as many for users who act for many others. None means no limit.
    pub usual_leases: Option<u64>,
    /// Whether the free pool is open: regular instances that an external scheduler places may run there.
    pub open_pool: bool,
    /// Whether what an external scheduler places is preemptible because its project is listed. Where the fleet cannot
    /// tell such guests from others, nobody would ask them to leave.
    pub preemptible_by_project: bool,
}

impl Settings {
    /// How much work one decision may cost unless it is said.
    pub const DECISION_WORK: u64 = leases::work::DEFAULT_UNITS;

    /// How many leases that are not over a project may have where there is authentication, unless it is said.
    pub const USUAL_LEASES: u64 = 1000;

    /// Default of [`Self::keep_bytes`].
    pub const KEEP_BYTES: u64 = 64 << 20;

    /// How long the external service may take to answer unless it is said.
    pub const ENFORCER_TIMEOUT: Duration = Duration::from_secs(10);

    /// The first start of leases that may still get other hosts.
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

/// How power is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergySettings {
    /// Whether and how.
    pub mode: EnergyMode,
    /// By which rules.
    pub rules: PowerRules,
    /// Leases that have not started are given hosts that draw less, if that saves at least so many watt-hours; none if
    /// they keep theirs.
    pub repack_watt_hours: Option<u32>,
}

/// Whether power is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyMode {
    /// It is not. Hosts that are off are switched on.
    #[default]
    Off,
    /// It is only planned; nothing is switched off.
    DryRun,
    /// It is.
    On,
}

impl EnergyMode {
    /// The name: `off`, `dry_run`, `on`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::DryRun => "dry_run",
            Self::On => "on",
        }
    }
}
