//! Lease pools: the hosts of a reservation while its lease is active, as its owner manages them (LP).
//!
//! A pool is identified by its reservation. It exists from the lease's start to its end; then its hosts
//! return to their [free pools](crate::free_pool).

pub(crate) mod record;

pub use self::record::{LeasePool, Ratio, Ratios};
use crate::host::Host;
use crate::lease::{Allocation, Lease, Reservation};
use crate::plan::{ObservedHost, Told};
use crate::properties::{CPU_RATIO, RAM_RATIO};
use crate::resources::Resources;
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms};

/// Metadata key with the pool's lease (LP).
pub const LEASE_KEY: &str = "filter_lease_id";
/// Metadata key with the pool's project (Blazar).
pub const OWNER_KEY: &str = "blazar:owner";

impl LeasePool {
    /// The host with the capacity that it counts as having while it is in the pool.
    pub fn overcommitted(&self, host: &Host) -> Host {
        let said = |name, capacity| {
            let much = overcommitted(capacity, host.capabilities.get(name));
            u32::try_from(much).unwrap_or(u32::MAX)
        };
        let more = |own: Option<Ratio>, name, capacity| {
            own.map_or_else(|| said(name, capacity), |ratio| ratio.of(capacity))
        };
        Host {
            vcpus: more(self.ratios.cpu, CPU_RATIO, host.vcpus),
            memory_mib: more(self.ratios.ram, RAM_RATIO, host.memory_mib),
            ..host.clone()
        }
    }

    /// Whether the guests on the host fit into its overcommitted capacity. If the pool sets no ratio for a
    /// resource, the cloud's own ratio applies. That is known only if the cloud has been given another ratio;
    /// if not, nothing changes and everything fits.
    pub fn suffices(&self, host: &Host, seen: &ObservedHost) -> bool {
        let Resources { vcpus, memory_mib, .. } = seen.used();
        let (most_vcpus, most_memory_mib) = match seen.overcommit {
            None => {
                let host = self.overcommitted(host);
                (host.vcpus, host.memory_mib)
            }
            Some(told) => {
                let most = |own: Option<Ratio>, told: Option<Told>, capacity| {
                    let ratio = own.or(told.map(|told| told.before));
                    ratio.map_or(u32::MAX, |ratio| ratio.of(capacity))
                };
                (
                    most(self.ratios.cpu, told.cpu, host.vcpus),
                    most(self.ratios.ram, told.ram, host.memory_mib),
                )
            }
        };
        vcpus <= most_vcpus.into() && memory_mib <= most_memory_mib.into()
    }
}

/// Pools of a lease; none unless it is active.
pub fn pools(lease: &Lease) -> impl Iterator<Item = (&Reservation, &HostsTerms)> {
    let there = lease.status == LeaseStatus::Active;
    lease.reservations.iter().filter(move |_| there).filter_map(|reservation| {
        match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(_)) => Some((reservation, terms)),
            _ => None,
        }
    })
}

/// Capacity multiplied by the ratio in a host's capability. A missing or invalid ratio is 1.
pub(crate) fn overcommitted(capacity: u32, ratio: Option<&String>) -> u64 {
    let ratio = ratio.and_then(|text| text.trim().parse::<f64>().ok());
    let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0).unwrap_or(1.0);
    (f64::from(capacity) * ratio) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GuestId;
    use crate::plan::{Guest, GuestOwner, GuestSize, Overcommit};
    use crate::testing::host;

    fn pool(cpu: Option<f64>, ram: Option<f64>) -> LeasePool {
        let ratios = Ratios { cpu: cpu.and_then(Ratio::new), ram: ram.and_then(Ratio::new) };
        LeasePool { name: None, ratios }
    }

    #[test]
    fn ratios_are_kept_to_the_thousandth() {
        assert_eq!(Ratio::new(1.5).map(Ratio::thousandths), Some(1500));
        for wrong in [0.0, -1.0, 0.0004, 1000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lp_8_9_a_pools_ratio_comes_before_that_of_its_hosts() {
        let mut own = host(1);
        let (vcpus, memory_mib) = (own.vcpus, own.memory_mib);
        let of = |pool: &LeasePool, host: &Host| {
            let host = pool.overcommitted(host);
            (host.vcpus, host.memory_mib)
        };
        assert_eq!(of(&pool(None, None), &own), (vcpus, memory_mib));
        own.capabilities.insert(CPU_RATIO.to_owned(), " 4.0 ".to_owned());
        own.capabilities.insert(RAM_RATIO.to_owned(), "much".to_owned());
        assert_eq!(of(&pool(None, None), &own), (vcpus * 4, memory_mib));
        assert_eq!(of(&pool(Some(2.0), Some(1.5)), &own), (vcpus * 2, memory_mib * 3 / 2));
    }

    #[test]
    fn lp_8_9_what_is_used_must_fit() {
        let own = host(1);
        let mut seen = ObservedHost::free();
        let size = GuestSize { vcpus: own.vcpus, memory_mib: own.memory_mib, disk_gib: 0 };
        seen.guests = vec![Guest { size, ..Guest::new(GuestId(1), GuestOwner::Other) }];
        assert!(pool(Some(1.0), Some(1.0)).suffices(&own, &seen));
        assert!(!pool(Some(0.9), None).suffices(&own, &seen));
        assert!(!pool(None, Some(0.9)).suffices(&own, &seen));
    }

    #[test]
    fn lp_8_9_what_is_used_must_fit_into_what_a_cloud_had_before_it_was_told_a_ratio() {
        let own = host(1);
        let mut seen = ObservedHost { overcommit: Some(Overcommit::default()), ..ObservedHost::free() };
        let size = GuestSize { vcpus: own.vcpus * 3, memory_mib: own.memory_mib, disk_gib: 0 };
        seen.guests = vec![Guest { size, ..Guest::new(GuestId(1), GuestOwner::Other) }];
        assert!(
            pool(None, Some(1.0)).suffices(&own, &seen),
            "the cloud's ratio of CPUs is not known, and stays"
        );
        assert!(!pool(Some(2.9), None).suffices(&own, &seen));
        for (before, fits) in [(2.0, false), (4.0, true)] {
            let before = Ratio::new(before).expect("a ratio");
            let told = Told { ratio: Ratio::new(8.0), before };
            seen.overcommit = Some(Overcommit { cpu: Some(told), ram: None });
            assert_eq!(pool(None, None).suffices(&own, &seen), fits, "{before:?}");
        }
    }
}
