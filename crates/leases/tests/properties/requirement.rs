//! Every well-formed requirement has a consistent meaning on every host, however unusual both are.

use leases::host::Host;
use leases::ids::HostId;
use leases::requirement::{MAX_DEPTH, MAX_VALUES, Operator, Requirement, RequirementError};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

use crate::generate::cases;

const OPERATORS: [Operator; 6] = [
    Operator::Equal,
    Operator::NotEqual,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
];

/// A small set, so that hosts often have the property.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(vec!["a", "b", "vcpus", "id", "reservable", "cpu_info"]).prop_map(str::to_owned),
        1 => "\\PC{1,6}",
    ]
}

/// Numbers, text that looks like numbers, and other nonempty text.
fn values() -> impl Strategy<Value = String> {
    let near = vec![
        "0",
        "-0",
        "-0.0",
        "+7",
        "007",
        "7.0",
        "7e0",
        "1e400",
        "-1e-400",
        ".",
        "e",
        "-",
        "inf",
        "NaN",
        "True",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "\0",
        "٣",
    ];
    prop_oneof![
        2 => select(near).prop_map(str::to_owned),
        2 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => "(?s).{1,6}",
    ]
}

fn comparisons() -> impl Strategy<Value = Requirement> {
    let compare = (select(OPERATORS.to_vec()), names(), values()).prop_map(|(operator, name, value)| {
        Requirement::compare(operator, name, value).expect("well formed")
    });
    let one_of = (names(), vec(values(), 1..4))
        .prop_map(|(name, values)| Requirement::one_of(name, values).expect("well formed"));
    prop_oneof![2 => compare, 1 => one_of]
}

fn requirements() -> impl Strategy<Value = Requirement> {
    comparisons().prop_recursive(5, 24, 4, |inner| {
        let parts = vec(inner.clone(), 1..4);
        prop_oneof![
            parts.clone().prop_map(|parts| Requirement::all(parts).expect("well formed")),
            parts.prop_map(|parts| Requirement::any(parts).expect("well formed")),
            inner.prop_map(|part| Requirement::negated(part).expect("well formed")),
        ]
    })
}

fn hosts() -> impl Strategy<Value = Host> {
    let capabilities = btree_map(names(), prop_oneof![4 => values(), 1 => Just(String::new())], 0..4);
    (any::<u64>(), any::<u32>(), values(), any::<bool>(), capabilities).prop_map(
        |(id, vcpus, cpu_info, reservable, capabilities)| {
            let mut host = Host::new(HostId(id), "node", vcpus, 1, 1);
            (host.cpu_info, host.reservable, host.capabilities) = (cpu_info, reservable, capabilities);
            host
        },
    )
}

fn not(part: &Requirement) -> Requirement {
    Requirement::negated(part.clone()).expect("well formed")
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_host_does_not_match_both_a_requirement_and_its_negation(e in requirements(), host in hosts()) {
        prop_assert!(!(e.matches(&host) && not(&e).matches(&host)));
        prop_assert_eq!(not(&not(&e)).matches(&host), e.matches(&host));
    }

    #[test]
    fn one_of_the_two_matches_if_the_host_has_all_properties_that_are_named(
        e in requirements(), host in hosts(),
    ) {
        if e.names().into_iter().all(|name| host.property(name).is_some()) {
            prop_assert!(e.matches(&host) != not(&e).matches(&host));
        }
    }

    #[test]
    fn not_of_all_is_any_of_nots(a in requirements(), b in requirements(), host in hosts()) {
        let all = Requirement::all(vec![a.clone(), b.clone()]).expect("well formed");
        let any = Requirement::any(vec![not(&a), not(&b)]).expect("well formed");
        prop_assert_eq!(not(&all).matches(&host), any.matches(&host));
        prop_assert_eq!(all.matches(&host), a.matches(&host) && b.matches(&host));
    }

    #[test]
    fn exactly_one_of_less_equal_and_greater_holds(name in names(), value in values(), host in hosts()) {
        let holds = |operator| {
            Requirement::compare(operator, name.clone(), value.clone()).expect("well formed").matches(&host)
        };
        let [equal, unlike, less, at_most, greater, at_least] = OPERATORS.map(holds);
        let known = host.property(&name).is_some();
        prop_assert_eq!([equal, less, greater].into_iter().filter(|holds| *holds).count(), usize::from(known));
        prop_assert_eq!((unlike, at_most, at_least), (known && !equal, less || equal, greater || equal));
    }

    #[test]
    fn one_of_several_values_is_any_of_the_comparisons(
        name in names(), values in vec(values(), 1..4), host in hosts(),
    ) {
        let equal = |value: &String| Requirement::compare(Operator::Equal, name.clone(), value.clone());
        let each = values.iter().map(equal).collect::<Result<_, _>>().expect("well formed");
        let any = Requirement::any(each).expect("well formed");
        let one_of = Requirement::one_of(name, values).expect("well formed");
        prop_assert_eq!(one_of.matches(&host), any.matches(&host));
    }

    #[test]
    fn however_expressions_are_put_together_they_stay_within_the_limits(
        first in comparisons(), ways in vec((0..3_u8, 1..20_usize), 0..60),
    ) {
        let (mut whole, mut depth, mut comparisons) = (first.clone(), 1, 1);
        for (way, copies) in ways {
            let parts = vec![whole.clone(); if way == 2 { 1 } else { copies }];
            (depth, comparisons) = (depth + 1, comparisons * parts.len());
            let made = match way {
                0 => Requirement::all(parts),
                1 => Requirement::any(parts),
                _ => Requirement::negated(whole),
            };
            match made {
                Ok(larger) => whole = larger,
                Err(error) => {
                    let expected = [RequirementError::TooDeep, RequirementError::TooLarge];
                    prop_assert!(expected.contains(&error));
                    return Ok(());
                }
            }
            prop_assert!(depth <= MAX_DEPTH && comparisons <= MAX_VALUES);
        }
    }
}
