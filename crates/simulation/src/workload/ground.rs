//! Machines and service settings of replays.

use std::collections::BTreeMap;

use fleet::simulated::{Layout, Model, Rack};
use jiff::SignedDuration;
use leases::admission::Rules;
use leases::energy;
use leases::hunt::Hunting;
use leases::ids::HostId;
use leases::plan::{GuestSize, PlanRules};
use leases::preemption::PreemptionRules;
use service::{EnergyMode, EnergySettings, Settings};

use super::variant::Variant;

/// Number of hosts that can be leased: as many as the recorded machine had.
pub(super) const LEASED_HOSTS: u32 = 144;
/// Number of leasable hosts in the rack that guests of other tenants share, if there are any.
const SHARED_HOSTS: u32 = 36;
/// Additional hosts in a rack for guests of other tenants only.
const HOSTS_OF_OTHERS: u32 = 12;

/// Rack for advance reservations if there are guests.
pub(super) const RESERVED_RACK: &str = "r1";
const SHARED_RACK: &str = "r2";
/// Rack without leases.
pub(super) const OTHERS_RACK: &str = "r3";

/// Size of each host.
pub(super) const MACHINE: GuestSize = GuestSize { vcpus: 8, memory_mib: 65_536, disk_gib: 1000 };

/// Power draw of a leased, an idle and a switched-off host, typical of a common machine with two sockets.
pub(super) const BUSY_WATTS: u32 = 300;
pub(super) const IDLE_WATTS: u32 = 120;
pub(super) const OFF_WATTS: u32 = 6;

pub(super) fn layout(variant: &Variant) -> Layout {
    let watts =
        [(energy::BUSY_WATTS, BUSY_WATTS), (energy::IDLE_WATTS, IDLE_WATTS), (energy::OFF_WATTS, OFF_WATTS)];
    let capabilities: BTreeMap<String, String> =
        watts.into_iter().map(|(name, watts)| (name.to_owned(), watts.to_string())).collect();
    let model = Model { capabilities, ..Model::of_size(MACHINE.vcpus, MACHINE.memory_mib, MACHINE.disk_gib) };
    let rack = |name: &str, machines| Rack { name: name.to_owned(), machines, model: model.clone() };
    let mut racks = vec![rack(RESERVED_RACK, LEASED_HOSTS - SHARED_HOSTS), rack(SHARED_RACK, SHARED_HOSTS)];
    if variant.guests {
        racks.push(rack(OTHERS_RACK, HOSTS_OF_OTHERS));
    }
    Layout { racks, networks: Vec::new() }
}

/// Hosts open to guests of other tenants.
pub(super) fn hosts_with_guests() -> Vec<HostId> {
    let first = u64::from(LEASED_HOSTS - SHARED_HOSTS) + 1;
    (first..=u64::from(LEASED_HOSTS + HOSTS_OF_OTHERS)).map(HostId).collect()
}

/// The default settings, except that the fleet is observed less often, since nothing fails.
pub(super) fn settings(variant: &Variant) -> Settings {
    let usual = Settings::default();
    let hunting = Hunting { enabled: variant.hunts, ..Hunting::default() };
    // Preemption notices go out half a minute before they have to.
    let ahead = usual.plan_rules.grace + SignedDuration::from_secs(30);
    let moving_time = SignedDuration::from_mins(if variant.moves { 5 } else { 0 });
    let clear_ahead = variant.fill.then_some(ahead + moving_time);
    let mode = if variant.power { EnergyMode::On } else { EnergyMode::Off };
    Settings {
        rules: Rules { hunting, ..usual.rules.clone() },
        waitlist_limit: usize::MAX,
        observe_interval: SignedDuration::from_mins(5),
        unknown_after: SignedDuration::from_mins(15),
        // The service's loop isn't driven while a call waits.
        delete_wait: std::time::Duration::ZERO,
        keep_records: SignedDuration::from_hours(24),
        plan_rules: PlanRules { clear_ahead, moving_time, ..usual.plan_rules },
        preemption: PreemptionRules { allowed: variant.fill, ..PreemptionRules::default() },
        energy: EnergySettings { mode, ..EnergySettings::default() },
        ..usual
    }
}
