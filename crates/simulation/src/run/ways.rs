//! Conditions of a simulation: machines, settings, and the rates of faults.

use std::time::Duration;

use fleet::simulated::{BackgroundLoad, Between, Faults, Layout, Model, SimulatedFleet, Timing};
use jiff::SignedDuration;
use leases::admission::{HealingInterval, Rules};
use leases::hunt::Hunting;
use leases::plan::PlanRules;
use leases::preemption::{Class, EndState};
use leases::terms::BeforeEndAction;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use service::Settings;

/// CPUs of a host.
pub(super) const VCPUS: u32 = 16;

/// Conditions of a simulation, drawn from its seed.
pub(super) struct Ways {
    /// Offset of each service's clock; positive if it's ahead.
    pub(super) clocks: Vec<SignedDuration>,
    /// Services are notified of each other's commits.
    pub(super) news: bool,
    pub(super) only_slow: bool,
    pub(super) days: i64,
    pub(super) layout: Layout,
    pub(super) settings: Settings,
    pub(super) timing: Timing,
    pub(super) fleet_faults: Faults,
    pub(super) store_faults: f64,
    /// Probability of a crash after each event.
    pub(super) crash: f64,
    /// Average hours between requests, and between mishaps.
    pub(super) request_every: f64,
    pub(super) mishap_every: f64,
    /// Guests that must not be stopped appear in the free pool.
    pub(super) others: bool,
}

/// Model of all hosts.
fn machine() -> Model {
    Model::of_size(VCPUS, 65_536, 1000)
}

impl Ways {
    pub(super) fn draw(rng: &mut SmallRng, several: bool) -> Self {
        let mut one_of = |choices: &[i64]| choices.choose(rng).copied().unwrap_or(0);
        // If other tenants have guests, they need hosts that aren't leased to go to.
        let others = one_of(&[0, 1]) == 1;
        let machines = if others { one_of(&[4, 6, 8]) } else { one_of(&[1, 2, 3, 4]) };
        let layout = Layout::uniform(2, machines as u32, &machine());
        let plan_rules = PlanRules {
            grace: SignedDuration::from_secs(one_of(&[0, 60, 600])),
            before_end: if one_of(&[0, 1]) == 1 { BeforeEndAction::Snapshot } else { BeforeEndAction::None },
            ..PlanRules::default()
        };
        let hunting = Hunting { n_plus_one: one_of(&[0, 1]) == 1, ..Hunting::default() };
        let settings = Settings {
            rules: Rules { hunting, ..Settings::default().rules },
            plan_rules,
            cleaning_time: SignedDuration::from_mins(one_of(&[0, 0, 10])),
            healing_interval: HealingInterval(
                [Some(SignedDuration::from_hours(1)), None][one_of(&[0, 1]) as usize],
            ),
            observe_interval: SignedDuration::from_mins(one_of(&[1, 10, 30])),
            unknown_after: SignedDuration::from_mins(one_of(&[45, 90])),
            step_time: SignedDuration::from_mins(one_of(&[1, 2, 5])),
            steps_at_once: one_of(&[1, 4, 64]) as usize,
            delete_wait: Duration::ZERO,
            keep_records: SignedDuration::from_hours(24 * 365),
            ..Settings::default()
        };
        let slow = Timing {
            call: Between::millis(10, 20_000),
            question: Between::millis(10, 10_000),
            boot: Between::secs(1, 30),
            shut_down: Between::secs(1, 900),
            deletion: Between::secs(0, 300),
            snapshot: Between::secs(0, 300),
            power_on: Between::secs(60, 400),
            migration_mib_per_second: 50,
        };
        // In some simulations no call is lost and no process dies, so stricter checks apply.
        let only_slow = one_of(&[0, 1, 2, 3]) == 0;
        let mut unless_slow = |choices: &[i64]| if only_slow { 0 } else { one_of(choices) };
        let fault = unless_slow(&[0, 1, 5, 10]) as f64 / 100.0;
        let store_faults = unless_slow(&[0, 0, 1, 5]) as f64 / 100.0;
        let crash = unless_slow(&[0, 1, 10, 50]) as f64 / 1000.0;
        let (mut clocks, mut news) = (vec![SignedDuration::ZERO], true);
        if several {
            let longest = settings.longest_clock_skew.as_millis() as i64 - 1;
            for _ in 0..one_of(&[1, 2]) {
                clocks.push(SignedDuration::from_millis(one_of(&[0, 100, 2_000, -2_000, longest, -longest])));
            }
            news = one_of(&[0, 1]) == 1;
        }
        Self {
            clocks,
            news,
            only_slow,
            days: if several { one_of(&[1, 2, 4]) } else { one_of(&[3, 5, 10]) },
            layout,
            settings,
            timing: if only_slow || one_of(&[0, 1]) == 1 { slow } else { Timing::IMMEDIATE },
            fleet_faults: Faults { unanswered: fault, ..Faults::each(fault) },
            store_faults,
            crash,
            request_every: if others { one_of(&[3, 6, 12]) } else { one_of(&[1, 3, 6]) } as f64,
            mishap_every: one_of(&[8, 24, 200]) as f64,
            others,
        }
    }

    pub(super) fn prepare(&self, fleet: SimulatedFleet) -> SimulatedFleet {
        fleet.with_timing(self.timing).with_grace(self.settings.plan_rules.grace).with_background_load(
            BackgroundLoad {
                preemptible_every: Some(SignedDuration::from_hours(2)),
                preemptible_runs_for: Between::secs(600, 86_400),
                // If leases let preemptible instances on their hosts, their owners' guests are rarer, so that
                // hosts stay unused for longer.
                project_every: Some(SignedDuration::from_hours(if self.settings.plan_rules.backfill {
                    12
                } else {
                    2
                })),
                project_runs_for: Between::secs(600, 86_400),
                others_every: self.others.then_some(SignedDuration::from_hours(1)),
                others_run_for: Between::secs(600, 86_400),
                most_per_host: 4,
            },
        )
    }
}

/// Allows preemptible instances in half of the simulations, using separate random numbers.
pub(super) fn allow_preemptible(seed: u64, ways: &mut Ways) {
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x9e37_79b9_7f4a_7c15);
    if rng.random_bool(0.5) {
        return;
    }
    let settings = &mut ways.settings;
    settings.preemption.allowed = true;
    settings.preemption.least_lifetime = SignedDuration::from_mins(rng.random_range(0..10));
    let mut longest = settings.plan_rules.grace;
    for name in ["a", "b", "c"].iter().take(rng.random_range(0..=3)) {
        let notice = SignedDuration::from_secs(rng.random_range(0..300));
        longest = longest.max(notice);
        let end_state = if rng.random_bool(0.5) { EndState::Stop } else { EndState::Delete };
        settings.preemption.classes.extend(Class::new(name, notice, end_state));
    }
    settings.plan_rules.longest_notice = longest;
    let ahead = longest + SignedDuration::from_secs(rng.random_range(0..600));
    let moving = rng.random_bool(0.5).then(|| SignedDuration::from_secs(rng.random_range(0..900)));
    settings.plan_rules.moving_time = moving.unwrap_or_default();
    settings.plan_rules.clear_ahead = Some(ahead + settings.plan_rules.moving_time);
    settings.plan_rules.backfill = rng.random_bool(0.6);
    if settings.plan_rules.backfill {
        // Few hosts, so that the free pool is full now and then: instances go to hosts of leases only if it
        // is.
        let machines = if ways.others { 2 } else { rng.random_range(1..=2) };
        ways.layout = Layout::uniform(2, machines, &machine());
    }
}
