//! Generators of random leases, and shorthands: minutes for timestamps, numbers for identifiers.

use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};
use leases::host::{FloatingIp, Host, Inventory, NetworkId};
use leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, EndAction, Lease, NewLease};
use leases::project::{Owner, ProjectId, UserId};
use leases::requirement::Requirement;
use leases::terms::{
    Affinity, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms,
};
use leases::window::Window;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Minutes in which leases lie.
pub const HORIZON: i64 = 40;
/// Number of hosts.
pub const HOSTS: u64 = 5;
/// Number of addresses.
pub const ADDRESSES: u8 = 3;

/// Configuration with this many cases and a fixed seed, unless `PROPTEST_RNG_SEED` sets another.
pub fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).expect("in range")
}

pub fn minutes(number: i64) -> SignedDuration {
    SignedDuration::from_mins(number)
}

pub fn window(start: i64, end: i64) -> Window {
    Window::new(at(start), at(end)).expect("forwards")
}

/// Nonempty windows.
pub fn windows() -> impl Strategy<Value = Window> {
    (0..HORIZON, 1..HORIZON / 2).prop_map(|(start, length)| window(start, start + length))
}

/// Hosts of two sizes.
pub fn inventory() -> Inventory {
    let hosts = (1..=HOSTS).map(|id| {
        let size = if id % 2 == 0 { 4 } else { 8 };
        Host::new(HostId(id), format!("node{id}"), size, size * 1000, size * 10)
    });
    let addresses = (1..=ADDRESSES).map(|last| FloatingIp {
        id: FloatingIpId(last.into()),
        network: network(),
        address: std::net::Ipv4Addr::new(10, 0, 0, last).into(),
        reservable: true,
    });
    Inventory::new(hosts, addresses)
}

pub fn network() -> NetworkId {
    NetworkId("public".into())
}

pub fn project() -> ProjectId {
    ProjectId("project".into())
}

pub fn affinities() -> impl Strategy<Value = Affinity> {
    prop_oneof![Just(Affinity::Any), Just(Affinity::OneHost), Just(Affinity::DistinctHosts)]
}

pub fn instances(vcpus: u32, memory_mib: u32, amount: u32, affinity: Affinity) -> InstancesTerms {
    InstancesTerms {
        size: InstanceSize::new(vcpus, memory_mib, vcpus).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    }
}

/// Terms of one reservation.
pub fn asked() -> impl Strategy<Value = ReservationTerms> {
    let hosts = (1..4u32, 0..3u32).prop_map(|(min, more)| HostsTerms::new(min, min + more).expect("a range"));
    let slots = (1..5u32, 1..5000u32, 1..7u32, affinities())
        .prop_map(|(vcpus, memory, amount, affinity)| instances(vcpus, memory, amount, affinity));
    let addresses = (0..3u32).prop_map(|n| FloatingIpsTerms::new(network(), n, []).expect("terms"));
    prop_oneof![
        4 => hosts.prop_map(ReservationTerms::Hosts),
        4 => slots.prop_map(ReservationTerms::Instances),
        1 => addresses.prop_map(ReservationTerms::FloatingIps),
    ]
}

/// Identity of a new lease. Its reservations are numbered from ten times its own number.
pub fn new_lease(number: u128, reservations: usize) -> NewLease {
    NewLease {
        id: LeaseId(number),
        name: format!("lease {number}"),
        owner: Owner { project: project(), user: UserId("user".into()) },
        end_action: if number.is_multiple_of(5) { EndAction::KeepGuests } else { EndAction::DeleteGuests },
        reservations: (0..reservations as u128).map(|r| ReservationId(number * 10 + r)).collect(),
    }
}

/// A pending lease with this allocation, which doesn't have to be valid.
pub fn given(number: u128, window: Window, asked: ReservationTerms, allocation: Allocation) -> Lease {
    let terms = Terms::new(window, None, vec![asked]).expect("terms");
    Lease::new(new_lease(number, 1), terms, vec![allocation], None)
}
