//! Extra specs that parse give consistent results on every host, and the same results as an equivalent
//! expression.

use leases::extra_specs::{ExtraSpecs, Judge};
use leases::host::Host;
use leases::ids::HostId;
use leases::requirement::{Operator, Requirement};
use proptest::prelude::*;
use proptest::sample::select;

use crate::generate::cases;

const OPERATORS: [&str; 14] =
    ["=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>"];

const SCOPES: [&str; 3] = ["", "capabilities:", "aggregate_instance_extra_specs:"];

fn host(capability: Option<&str>) -> Host {
    let mut host = Host::new(HostId(1), "node1", 16, 1000, 10);
    host.capabilities.extend(capability.map(|value| ("cap".to_owned(), value.to_owned())));
    host
}

fn passes(key: &str, value: &str, host: &Host) -> bool {
    let specs = ExtraSpecs::new([(key.to_owned(), value.to_owned())]).expect("well formed");
    [Judge::Capabilities, Judge::Aggregates].into_iter().all(|judge| specs.pass(judge, host))
}

fn numbers() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (-20..20_i64).prop_map(|number| number.to_string()),
        (-20..20_i64).prop_map(|number| format!("{number}.5")),
        (-20..20_i64).prop_map(|number| format!("{number}.0")),
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        numbers(),
        "[a-c]{1,3}",
        "\\PC{1,4}".prop_filter("a word", |text| { !text.contains(char::is_whitespace) })
    ]
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn cls_06_any_text_is_read_or_refused_with_a_reason(key in "[a-z:]{0,12}|\\PC{0,8}", value in "\\PC{0,16}") {
        match ExtraSpecs::new([(key.clone(), value.clone())]) {
            Ok(specs) => {
                prop_assert_eq!(specs.iter().collect::<Vec<_>>(), [(key.as_str(), value.as_str())]);
                for capability in [None, Some("8"), Some("word")] {
                    specs.pass(Judge::Capabilities, &host(capability));
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn cls_06_a_missing_capability_matches_nothing(
        scope in select(SCOPES.to_vec()),
        operator in select(OPERATORS.to_vec()),
        number in numbers(),
    ) {
        let (key, value) = (format!("{scope}cap"), format!("{operator} {number}"));
        let (missing, alone) = (passes(&key, &value, &host(None)), passes(&key, operator, &host(Some(&number))));
        prop_assert_eq!((missing, alone), (false, false));
    }

    #[test]
    fn cls_06_numbers_compare_as_in_expressions(
        scope in select(SCOPES.to_vec()),
        has in numbers(),
        wanted in numbers(),
    ) {
        let (key, host) = (format!("{scope}cap"), host(Some(&has)));
        for (symbol, operator) in [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            (">=", Operator::GreaterOrEqual),
            ("=", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
        ] {
            let expression = Requirement::compare(operator, "cap", wanted.clone()).expect("well formed");
            prop_assert_eq!(passes(&key, &format!("{symbol} {wanted}"), &host), expression.matches(&host));
        }
    }

    #[test]
    fn cls_06_operators_of_text_hang_together(scope in select(SCOPES.to_vec()), has in words(), wanted in words()) {
        let (key, host) = (format!("{scope}cap"), host(Some(&has)));
        let is = |operator: &str| passes(&key, &format!("{operator} {wanted}"), &host);
        prop_assert_eq!(is("s=="), !is("s!="));
        prop_assert_eq!(is("s<"), !is("s>="));
        prop_assert_eq!(is("s>"), !is("s<="));
        prop_assert_eq!(is("s=="), is("s<=") && is("s>="));
        prop_assert_eq!(is("s=="), is("<or>"));
        prop_assert_eq!(is("<in>"), is("<all-in>"));
        prop_assert_eq!(is("<in>"), has.contains(&wanted));
        if !OPERATORS.contains(&wanted.as_str()) {
            prop_assert_eq!(passes(&key, &wanted, &host), is("s=="));
        }
    }
}
