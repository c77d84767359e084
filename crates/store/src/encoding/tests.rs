//! Values are read back as they were written.

use std::num::NonZeroU32;

use leases::extra_specs::ExtraSpecs;
use leases::failure_domain::FailureDomain;
use leases::host::NetworkId;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::Action;
use leases::properties::{HostProperties, ImageProperties};
use leases::requirement::{Operator, Requirement};
use leases::resources::{ResourceClass, Resources};
use leases::terms::{
    BeforeEndAction, Flavor, FlavorTerms, FlavorTraits, FloatingIpsTerms, HostsTerms, InstanceExtras,
    InstanceSize, InstancesTerms, ReservationTerms,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::{DocumentKind, RecordKey};

const OPERATORS: [Operator; 6] = [
    Operator::Equal,
    Operator::NotEqual,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];

fn some_text() -> impl Strategy<Value = String> {
    ".{1,8}"
}

fn one_requirement() -> impl Strategy<Value = Requirement> {
    let compare = (0..OPERATORS.len(), some_text(), some_text()).prop_map(|(operator, name, value)| {
        Requirement::compare(OPERATORS[operator], name, value).expect("well formed")
    });
    let one_of = (some_text(), vec(some_text(), 1..4))
        .prop_map(|(name, values)| Requirement::one_of(name, values).expect("well formed"));
    prop_oneof![compare, one_of].prop_recursive(4, 16, 4, |inner| {
        let parts = vec(inner.clone(), 1..4);
        prop_oneof![
            parts.clone().prop_map(|parts| Requirement::all(parts).expect("well formed")),
            parts.prop_map(|parts| Requirement::any(parts).expect("well formed")),
            inner.prop_map(|part| Requirement::negated(part).expect("well formed")),
        ]
    })
}

fn some_requirement() -> impl Strategy<Value = Requirement> {
    prop_oneof![1 => Just(Requirement::NONE), 4 => one_requirement()]
}

fn some_resources() -> impl Strategy<Value = Resources> {
    let other = btree_map("[A-Z]{1,3}_X".prop_map(ResourceClass), any::<u64>(), 0..3);
    (1..u64::MAX, any::<u64>(), any::<u64>(), other)
        .prop_map(|(vcpus, memory_mib, disk_gib, other)| Resources { vcpus, memory_mib, disk_gib, other })
}

fn some_domain() -> impl Strategy<Value = Option<FailureDomain>> {
    let names = prop_oneof![Just("host"), Just("rack"), Just("\u{1f600}'")];
    proptest::option::of(names.prop_map(|name| name.parse().expect("a domain")))
}

fn some_properties() -> impl Strategy<Value = HostProperties> {
    let specs = btree_map("[a-z]{1,4}|capabilities:[a-z]{1,3}|hw:[a-z]", "[a-z]{0,4}|>= [0-9]{1,3}", 0..4);
    let maybe = || proptest::option::of(some_text());
    let sizes = (any::<Option<u32>>(), any::<Option<u32>>(), any::<Option<u32>>());
    let together = (any::<bool>(), btree_set(some_text(), 0..3), some_domain());
    (maybe(), maybe(), sizes, together, specs, btree_map(some_text(), some_text(), 0..3)).prop_map(
        |(
            region,
            availability_zone,
            (vcpus, memory_mib, disk_gib),
            (homogeneous, alike, survives),
            specs,
            image,
        )| {
            HostProperties {
                region,
                availability_zone,
                vcpus,
                memory_mib,
                disk_gib,
                homogeneous,
                alike,
                survives,
                extra_specs: ExtraSpecs::new(specs).expect("well formed"),
                image: ImageProperties::new(image).expect("not too many"),
            }
        },
    )
}

fn hosts_terms() -> impl Strategy<Value = ReservationTerms> {
    let actions = [BeforeEndAction::Default, BeforeEndAction::None, BeforeEndAction::Snapshot];
    (1..9_u32, 0..9_u32, some_requirement(), some_requirement(), 0..actions.len(), some_properties())
        .prop_map(move |(min, more, hypervisor, resource, action, properties)| {
            let mut terms = HostsTerms::new(min, min + more).expect("a range");
            (terms.hypervisor, terms.resource) = (hypervisor, resource);
            terms.before_end = actions[action];
            terms.properties = properties.into();
            ReservationTerms::Hosts(terms)
        })
}

fn instances_terms() -> impl Strategy<Value = ReservationTerms> {
    let size = (1..u32::MAX, 1..u32::MAX, any::<u32>());
    let extras = (any::<u32>(), btree_map("(hw|quota):.{1,8}", some_text(), 0..3));
    (size, any::<NonZeroU32>(), any::<Option<bool>>(), some_requirement(), some_domain(), extras).prop_map(
        |((vcpus, memory_mib, disk_gib), amount, affinity, requirement, survives, (ephemeral_gib, specs))| {
            let size = InstanceSize::new(vcpus, memory_mib, disk_gib).expect("a size");
            let extras = InstanceExtras::new(&size, ephemeral_gib, specs).expect("it uses something");
            let affinity = affinity.into();
            ReservationTerms::Instances(InstancesTerms {
                size,
                amount,
                affinity,
                requirement,
                survives,
                extras,
            })
        },
    )
}

fn flavor_terms() -> impl Strategy<Value = ReservationTerms> {
    let traits = || btree_set(some_text(), 0..3);
    (some_text(), some_resources(), traits(), traits(), any::<NonZeroU32>(), some_domain()).prop_map(
        |(id, resources, required, forbidden, amount, survives)| {
            let traits = FlavorTraits { required, forbidden };
            let flavor = Flavor::from_parts(id, resources, traits).expect("it asks for something");
            ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives })
        },
    )
}

fn floating_ips_terms() -> impl Strategy<Value = ReservationTerms> {
    (some_text(), 0..9_u32, btree_set(any::<std::net::IpAddr>(), 0..4)).prop_map(
        |(network, more, required)| {
            let amount = required.len() as u32 + more;
            let terms = FloatingIpsTerms::new(NetworkId(network), amount, required);
            ReservationTerms::FloatingIps(terms.expect("enough"))
        },
    )
}

fn some_action() -> impl Strategy<Value = Action> {
    (0..17, any::<u64>(), any::<u128>(), any::<u128>(), any::<u32>()).prop_map(|(kind, host, a, b, slots)| {
        let (host, reservation) = (HostId(host), ReservationId(a));
        let (guest, ip) = (GuestId(b), FloatingIpId(b));
        match kind {
            0 => Action::Fence(host),
            1 => Action::StopGuest(host, guest),
            2 => Action::DeleteGuest(host, guest),
            3 => Action::Verify(host, reservation),
            4 => Action::Hold(host, reservation),
            5 => Action::Release(host, reservation),
            6 => Action::Unfence(host),
            7 => Action::Grant(host, reservation, slots),
            8 => Action::Withdraw(host, reservation),
            9 => Action::Assign(ip, reservation),
            10 => Action::Unassign(ip, reservation),
            11 => Action::MoveGuest(host, guest, HostId(slots.into())),
            12 => Action::Prepare(reservation),
            13 => Action::Finish(reservation),
            14 => {
                let ratios =
                    Ratios { cpu: Ratio::from_thousandths(slots), ram: Ratio::from_thousandths(1500) };
                Action::SetRatios(host, reservation, ratios)
            }
            15 => Action::ResumeGuest(host, guest),
            _ => Action::Snapshot(host, reservation),
        }
    })
}

proptest! {
    #[test]
    fn terms_are_read_back_as_they_were(
        terms in prop_oneof![hosts_terms(), instances_terms(), flavor_terms(), floating_ips_terms()],
    ) {
        prop_assert_eq!(terms_from_json(&terms_json(&terms)), Ok(terms));
    }

    #[test]
    fn actions_are_read_back_as_they_were(action in some_action()) {
        prop_assert_eq!(action_from_key(&action_key(action)), Ok(action));
    }

    #[test]
    fn resources_are_read_back_as_they_were(of in some_resources()) {
        prop_assert_eq!(resources(amounts(&of)), of);
    }

    #[test]
    fn no_text_makes_reading_panic(text in ".{0,40}") {
        let _ = action_from_key(&text);
        let _ = terms_from_json(&text);
    }
}

#[test]
fn a_requirement_is_written_as_blazar_writes_it() {
    let rack = Requirement::compare(Operator::Equal, "rack", "r1").expect("well formed");
    let many = Requirement::one_of("gpu", vec!["a".into(), "b".into()]).expect("well formed");
    let both = Requirement::all(vec![rack, Requirement::negated(many).expect("shallow")]);
    let written = requirement_json(&both.expect("shallow")).to_string();
    assert_eq!(written, r#"["and",["==","$rack","r1"],["not",["in","$gpu","a","b"]]]"#);
}

#[test]
fn cls_05_terms_that_say_nothing_of_properties_are_those_of_before() {
    let before = concat!(
        r#"{"type":"physical:host","min":1,"max":2,"hypervisor":null,"resource":null,"#,
        r#""before_end":"default"}"#
    );
    let terms = ReservationTerms::Hosts(HostsTerms::new(1, 2).expect("a range"));
    assert_eq!(terms_from_json(before), Ok(terms.clone()));
    assert_eq!(terms_json(&terms), before, "services of before read what they can");
}

#[test]
fn instances_without_extras_are_written_as_before() {
    let before = concat!(
        r#"{"type":"virtual:instance","vcpus":4,"memory_mib":1024,"disk_gib":0,"amount":2,"#,
        r#""affinity":null,"requirement":null}"#
    );
    let terms = crate::conformance::sample::instances(4, 2);
    assert_eq!(terms_from_json(before), Ok(terms.clone()));
    assert_eq!(terms_json(&terms), before, "services of before read what they can");
}

#[test]
fn names_and_values_correspond() {
    for health in [Health::Up, Health::Failed, Health::Unknown] {
        assert_eq!(health_from_name(health_name(health)), Some(health));
    }
    let all =
        [EndAction::DeleteGuests, EndAction::KeepGuests, EndAction::SnapshotGuests, EndAction::MoveGuests];
    for action in all {
        assert_eq!(end_action_from_name(end_action_name(action)), Some(action));
    }
}

#[test]
fn what_cannot_be_read_is_said_with_its_text() {
    let error = action_from_key("fence/many").expect_err("no number");
    assert_eq!(error.to_string(), "step 'fence/many': it is not the key of a step");
    let padded = "hold/1/0123456789abcdef-0123456789abcdef---";
    assert!(action_from_key(padded).is_err());
}

#[test]
fn keys_of_records_are_read_as_they_were_written() {
    let keys = [
        RecordKey::Lease(LeaseId(u128::MAX)),
        RecordKey::Host(HostId(7)),
        RecordKey::FloatingIp(FloatingIpId(8)),
        RecordKey::Document(DocumentKind::Flavor.key("a/b")),
        RecordKey::FreePool(FreePoolId(u128::MAX - 3)),
        RecordKey::Document(DocumentKind::Property.key("")),
        RecordKey::Document(DocumentKind::PreemptibleProject.key("a/*?")),
        RecordKey::Step(Action::Fence(HostId(9))),
    ];
    for key in keys {
        assert_eq!(record_key_from_text(&record_key_text(&key)), Ok(key));
    }
    for text in ["", "lease", "lease/7", "host/x", "floating-ip/", "step/dance/1", "leases/1"] {
        assert!(record_key_from_text(text).is_err(), "{text}");
    }
}
