//! Capacity missing for refused requests. Counts of shortages tell how many requests additional capacity
//! would have met.
//!
//! Each refusal is judged separately, as if additional capacity served only this request.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::admission::Refusal;
use crate::failure_domain::FailureDomain;
use crate::properties::HostProperties;
use crate::requirement::Requirement;
use crate::terms::{Affinity, HostsTerms, InstancesTerms, ReservationTerms};
use crate::text::as_written;

/// Largest shortage counted exactly.
pub const MOST_MISSING: u32 = 1000;

/// Seconds per day.
const DAY: i64 = 86_400;

/// Resources that a refused request asked for, and the number missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shortage {
    /// Type of the reservation ([`ReservationTerms::resource_type`]).
    pub resource_type: String,
    /// Requirements on each host, instance or address: `gpu=a100 and vcpus>=16`. Empty if all suit.
    pub kind: String,
    /// Missing hosts, instances or addresses, from 1 to [`MOST_MISSING`]. `None` if more were missing, or if
    /// additional capacity doesn't help because a specific address was requested.
    pub missing: Option<u32>,
}

impl Shortage {
    /// The shortage behind a refusal of these reservations, and the number that the reservation needs. `None`
    /// if capacity wasn't the reason. Among several reservations, the first that couldn't be met counts.
    pub fn from_refusal(refusal: &Refusal, asked: &[ReservationTerms]) -> Option<(Self, u64)> {
        let (terms, needed, missing) = match refusal {
            Refusal::NotEnough { position, needed, found, .. } => {
                (asked.get(*position)?, *needed, needed.saturating_sub(*found))
            }
            Refusal::NoHunt { refusal, .. } => return Self::from_refusal(refusal, asked),
            Refusal::FloatingIpTaken(address) => {
                let requires = |terms: &&ReservationTerms| match terms {
                    ReservationTerms::FloatingIps(terms) => terms.required().contains(address),
                    _ => false,
                };
                let terms = asked.iter().find(requires)?;
                (terms, u64::from(terms.number()), 0)
            }
            _ => return None,
        };
        let missing = u32::try_from(missing).ok().filter(|missing| (1..=MOST_MISSING).contains(missing));
        let resource_type = terms.resource_type().to_owned();
        Some((Self { resource_type, kind: kind(terms), missing }, needed))
    }
}

/// Requirements on each host, instance or address of a reservation, in the syntax of requests.
fn kind(terms: &ReservationTerms) -> String {
    match terms {
        ReservationTerms::Hosts(terms) => of_hosts(terms),
        ReservationTerms::Instances(terms) => of_instances(terms),
        ReservationTerms::Flavor(terms) => terms.flavor.id.clone(),
        ReservationTerms::FloatingIps(terms) => terms.network.0.clone(),
    }
}

fn of_hosts(terms: &HostsTerms) -> String {
    let HostProperties {
        region,
        availability_zone,
        vcpus,
        memory_mib,
        disk_gib,
        homogeneous,
        alike,
        survives,
        extra_specs,
        image,
    } = &*terms.properties;
    let texts = [("region", region), ("availability_zone", availability_zone)];
    let texts = texts.into_iter().filter_map(|(name, text)| Some(format!("{name}={}", text.as_ref()?)));
    let sizes = [("vcpus", vcpus), ("memory_mib", memory_mib), ("disk_gib", disk_gib)];
    let sizes = sizes.into_iter().filter_map(|(name, size)| Some(format!("{name}>={}", size.as_ref()?)));
    let specs = extra_specs.iter().chain(image.iter()).map(|(name, value)| named(name, value));
    let parts = [&terms.hypervisor, &terms.resource].into_iter().filter_map(required);
    let parts = parts.chain(texts).chain(sizes).chain(specs);
    let names = alike.iter().map(|name| as_written(name)).collect::<Vec<_>>().join(" and ");
    let parts = parts
        .chain(homogeneous.then(|| "homogeneous".to_owned()))
        .chain((!alike.is_empty()).then(|| format!("alike in {names}")))
        .chain(surviving(survives.as_ref()));
    parts.collect::<Vec<_>>().join(", ")
}

fn of_instances(terms: &InstancesTerms) -> String {
    let disk_gib = u64::from(terms.size.disk_gib()) + u64::from(terms.ephemeral_gib());
    let size = format!("{} vCPU, {} MiB, {disk_gib} GiB", terms.size.vcpus(), terms.size.memory_mib());
    let specs = terms.extra_specs();
    let affinity = match terms.affinity {
        Affinity::Any => None,
        Affinity::OneHost => Some("on one host".to_owned()),
        Affinity::DistinctHosts => Some("on different hosts".to_owned()),
    };
    let parts = std::iter::once(size)
        .chain(specs.iter().map(|(name, value)| named(name, value)))
        .chain(required(&terms.requirement))
        .chain(affinity)
        .chain(surviving(terms.survives.as_ref()));
    parts.collect::<Vec<_>>().join(", ")
}

fn required(requirement: &Requirement) -> Option<String> {
    requirement.expression().map(|_| requirement.to_string())
}

fn surviving(domain: Option<&FailureDomain>) -> Option<String> {
    domain.map(|domain| named("survives", domain.name()))
}

fn named(name: &str, value: &str) -> String {
    as_written(&format!("{name}={value}"))
}

/// Refused requests with the same resource type and requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    pub resource_type: String,
    /// Requirements on each host, instance or address.
    pub kind: String,
    pub refused: u64,
    /// For ascending numbers of additional hosts, instances or addresses, the number of requests that they
    /// would have met.
    pub met_by: Vec<(u32, u64)>,
}

/// Groups refused requests by kind, with the most refusals first.
pub fn unmet(refusals: impl IntoIterator<Item = (Shortage, u64)>) -> Vec<Unmet> {
    let mut kinds = BTreeMap::<(String, String), BTreeMap<Option<u32>, u64>>::new();
    for (Shortage { resource_type, kind, missing }, count) in refusals {
        let sum = kinds.entry((resource_type, kind)).or_default().entry(missing).or_default();
        *sum = sum.saturating_add(count);
    }
    let mut unmet: Vec<Unmet> = kinds.into_iter().map(|(kind, counts)| unmet_of(kind, &counts)).collect();
    // The sort is stable: kinds with equal counts keep their order.
    unmet.sort_by_key(|kind| Reverse(kind.refused));
    unmet
}

fn unmet_of((resource_type, kind): (String, String), counts: &BTreeMap<Option<u32>, u64>) -> Unmet {
    let mut met = 0_u64;
    let mut met_by = Vec::new();
    for (missing, count) in counts {
        if let Some(more) = missing {
            met = met.saturating_add(*count);
            met_by.push((*more, met));
        }
    }
    let others = counts.get(&None).copied().unwrap_or_default();
    Unmet { resource_type, kind, refused: met.saturating_add(others), met_by }
}

/// Midnight UTC at the start of the day.
pub fn beginning_of_day(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second().div_euclid(DAY) * DAY).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::admission::{Admission, Rules};
    use crate::calendar::Calendar;
    use crate::extra_specs::ExtraSpecs;
    use crate::host::NetworkId;
    use crate::host_facts::HostFacts;
    use crate::requirement::Operator;
    use crate::terms::{FloatingIpsTerms, InstanceSize, Terms};
    use crate::testing::{at, inventory, lease, owner, window};

    fn hosts(min: u32, max: u32) -> ReservationTerms {
        ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range"))
    }

    fn instances(amount: u32) -> InstancesTerms {
        InstancesTerms {
            size: InstanceSize::new(12, 1024, 10).expect("a size"),
            extras: None,
            amount: amount.try_into().expect("some"),
            affinity: Affinity::Any,
            requirement: Requirement::NONE,
            survives: None,
        }
    }

    fn addresses(required: &[&str]) -> ReservationTerms {
        let required = required.iter().map(|address| address.parse().expect("an address"));
        let terms = FloatingIpsTerms::new(NetworkId("public".into()), 2, required);
        ReservationTerms::FloatingIps(terms.expect("terms"))
    }

    /// The decision if `hosts` hosts exist, two of which are leased.
    fn decided(hosts: u64, asked: &[ReservationTerms]) -> Result<(), Refusal> {
        let mut calendar = Calendar::default();
        calendar.put(&lease(1, window(0, 60), &[1, 2]), at(0)).expect("free");
        let inventory = inventory(hosts);
        let rules = Rules::default();
        let facts = HostFacts::nothing();
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let terms = Terms::new(window(30, 90), None, asked.to_vec()).expect("terms");
        admission.decide(&owner().project, &terms).map(drop)
    }

    fn shortage(hosts: u64, asked: &[ReservationTerms]) -> (Shortage, u64) {
        Shortage::from_refusal(&decided(hosts, asked).expect_err("too few"), asked)
            .expect("a lack of capacity")
    }

    #[test]
    fn a_request_is_met_by_as_many_hosts_as_were_missing_and_not_by_fewer() {
        for (there, min, max, missing) in [(2, 1, 1, 1), (3, 2, 4, 1), (3, 4, 4, 3), (5, 9, 9, 6)] {
            let asked = [hosts(min, max)];
            let (shortage, needed) = shortage(there, &asked);
            assert_eq!((shortage.missing, needed), (Some(missing), u64::from(min)), "{min} of {there}");
            assert!(decided(there + u64::from(missing) - 1, &asked).is_err());
            assert!(decided(there + u64::from(missing), &asked).is_ok());
        }
        let too_many = shortage(2, &[hosts(MOST_MISSING + 1, MOST_MISSING + 1)]);
        assert_eq!(too_many.0.missing, None);
        assert_eq!(shortage(2, &[hosts(MOST_MISSING, MOST_MISSING)]).0.missing, Some(MOST_MISSING));
    }

    #[test]
    fn the_reservation_that_cannot_be_served_counts() {
        let (two, five) = (hosts(2, 2), ReservationTerms::Instances(instances(5)));
        let of_hosts = shortage(3, std::slice::from_ref(&two)).0;
        assert_eq!((of_hosts.resource_type.as_str(), of_hosts.kind.as_str()), ("physical:host", ""));
        // Two free hosts, each with capacity for a single instance.
        let (of_instances, needed) = shortage(4, &[five]);
        assert_eq!(of_instances.resource_type, "virtual:instance");
        assert_eq!(
            (of_instances.kind.as_str(), of_instances.missing),
            ("12 vCPU, 1024 MiB, 10 GiB", Some(3))
        );
        assert_eq!(needed, 5);
        let (of_addresses, _) = shortage(9, &[two, addresses(&[])]);
        let expected = ("virtual:floatingip", "public", Some(2));
        assert_eq!(
            (of_addresses.resource_type.as_str(), of_addresses.kind.as_str(), of_addresses.missing),
            expected
        );
    }

    #[test]
    fn more_addresses_do_not_replace_a_certain_one() {
        let (shortage, needed) = shortage(9, &[hosts(1, 1), addresses(&["203.0.113.7"])]);
        assert_eq!((shortage.kind.as_str(), shortage.missing, needed), ("public", None, 2));
    }

    #[test]
    fn refusals_for_other_reasons_are_no_shortage() {
        for refusal in [Refusal::StartInPast, Refusal::Busy] {
            assert_eq!(Shortage::from_refusal(&refusal, &[hosts(1, 1)]), None, "{refusal}");
        }
    }

    #[test]
    fn kinds_are_written_in_the_words_of_requests() {
        let gpu = Requirement::compare(Operator::Equal, "gpu", "a100").expect("well formed");
        let mut terms = HostsTerms::new(1, 1).expect("a range").requiring(gpu.clone());
        terms.hypervisor =
            Requirement::compare(Operator::GreaterOrEqual, "vcpus", "16").expect("well formed");
        assert_eq!(kind(&ReservationTerms::Hosts(terms.clone())), "vcpus>=16, gpu=a100");
        let specs = [("trait:FAST".to_owned(), "required".to_owned())];
        terms.properties = Arc::new(HostProperties {
            availability_zone: Some("a".to_owned()),
            memory_mib: Some(2048),
            homogeneous: true,
            extra_specs: ExtraSpecs::new(specs).expect("known"),
            ..HostProperties::default()
        });
        assert_eq!(
            kind(&ReservationTerms::Hosts(terms)),
            "vcpus>=16, gpu=a100, availability_zone=a, memory_mib>=2048, trait:FAST=required, homogeneous"
        );
        let together = InstancesTerms { affinity: Affinity::OneHost, requirement: gpu, ..instances(1) };
        let together = kind(&ReservationTerms::Instances(together));
        assert_eq!(together, "12 vCPU, 1024 MiB, 10 GiB, gpu=a100, on one host");
    }

    #[test]
    fn refusals_are_summed_to_what_more_capacity_would_have_met() {
        let of = |kind: &str, missing| {
            let (resource_type, kind) = ("physical:host".to_owned(), kind.to_owned());
            Shortage { resource_type, kind, missing }
        };
        let counts = [
            (of("rare", Some(1)), 5),
            (of("gpu=a100", Some(9)), 4),
            (of("gpu=a100", Some(1)), 20),
            (of("gpu=a100", Some(3)), 15),
            (of("gpu=a100", None), 7),
            (of("gpu=a100", Some(3)), 6),
        ];
        let all = unmet(counts);
        let expected = [("gpu=a100", 52, vec![(1, 20), (3, 41), (9, 45)]), ("rare", 5, vec![(1, 5)])];
        let found: Vec<_> =
            all.iter().map(|kind| (kind.kind.as_str(), kind.refused, kind.met_by.clone())).collect();
        assert_eq!(found, expected);
        assert_eq!(unmet([]), []);
    }

    #[test]
    fn days_begin_at_midnight_in_utc() {
        let day = |text: &str| beginning_of_day(text.parse().expect("an instant")).to_string();
        assert_eq!(day("2030-01-02T00:00:00Z"), "2030-01-02T00:00:00Z");
        assert_eq!(day("2030-01-02T23:59:59.9Z"), "2030-01-02T00:00:00Z");
        assert_eq!(day("1969-12-31T12:00:00Z"), "1969-12-31T00:00:00Z");
        assert_eq!(beginning_of_day(Timestamp::MIN), Timestamp::MIN);
    }
}
