//! Operators, scopes and missing values compared with Nova's behavior (CLS-06).

use super::*;
use crate::attributes::Attributes;
use crate::requirement::{Operator, Requirement};
use crate::resources::ResourceClass;
use crate::testing::host;

/// A host with traits, resources, capabilities and structured attributes.
fn rich() -> Host {
    let mut host = host(1);
    host.hypervisor_type = "QEMU".into();
    host.cpu_info = r#"{"arch": "x86_64", "features": ["avx", "sse4"], "topology": {"cores": 8}}"#.into();
    host.traits = ["HW_CPU_X86_AVX".to_owned()].into();
    host.other_resources.insert(ResourceClass("CUSTOM_FPGA".into()), 2);
    for (name, value) in
        [("num", "8"), ("word", "mild"), ("words", "red green"), ("racks", "[\"r1\",\"r2\"]")]
    {
        host.capabilities.insert(name.into(), value.into());
    }
    let text = |text: &str| Attribute::Text(text.into());
    let topology = Attribute::Parts([("cores".to_owned(), text("8"))].into());
    let features = Attribute::List(vec![text("avx"), text("sse4")]);
    let parts = [("arch", text("x86_64")), ("features", features), ("topology", topology)];
    let parts = parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
    host.attributes = Attributes::new([
        ("cpu_info".to_owned(), Attribute::Parts(parts)),
        ("racks".to_owned(), Attribute::List(vec![text("r1"), text("r2")])),
    ]);
    host
}

fn specs(key: &str, value: &str) -> Result<ExtraSpecs, ExtraSpecError> {
    ExtraSpecs::new([(key.to_owned(), value.to_owned())])
}

/// Whether the host passes all filters and has the requested amounts.
fn matches(key: &str, value: &str) -> bool {
    let (host, specs) = (rich(), specs(key, value).unwrap_or_else(|error| panic!("{key}={value}: {error}")));
    let judges = [Judge::Capabilities, Judge::Aggregates, Judge::Placement];
    judges.iter().all(|judge| specs.pass(*judge, &host)) && specs.resources().fits_into(&host.capacity())
}

#[test]
fn cls_06_every_operator_is_novas() {
    // The capability `num` is 8, `word` is mild, `words` is "red green".
    for (key, value, expected) in [
        ("num", "8", true),
        ("num", "8.0", false),
        ("num", " 8", false),
        ("word", "mild", true),
        ("word", "mil", false),
        ("words", "red green", true),
        ("words", "red  green", false),
        ("word", "", false),
        ("num", "= 7", true),
        ("num", "= 8", true),
        ("num", "= 9", false),
        ("num", ">= 8", true),
        ("num", ">= 8.5", false),
        ("num", "== 8.0", true),
        ("num", "== 7", false),
        ("num", "!= 7", true),
        ("num", "!= 8", false),
        ("num", "<= 8", true),
        ("num", "<= 10", true),
        ("num", "<= 7", false),
        ("num", "<=   10   9", true),
        ("word", "== 8", false),
        ("word", "!= 8", false),
        ("word", "s== mild", true),
        ("word", "s== milder", false),
        ("word", "s== mild or hot", true),
        ("word", "s!= hot", true),
        ("word", "s!= mild", false),
        ("word", "s< minor", true),
        ("word", "s< mild", false),
        ("word", "s<= mild", true),
        ("word", "s> hot", true),
        ("word", "s> mild", false),
        ("word", "s>= mild", true),
        ("num", "s< 10", false),
        ("num", "s> 10", true),
        ("word", "<in> il", true),
        ("word", "<in> li", false),
        ("words", "<all-in> green red", true),
        ("words", "<all-in> green blue", false),
        ("words", "<all-in> re gr", true),
        ("word", "<or> hot <or> mild", true),
        ("word", "<or> hot <or> cold", false),
        ("word", "<or> mild", true),
        ("num", "<or> 8.0 <or> 9", false),
        // Nova has no numeric `<` and `>`, so the whole value is text.
        ("num", "< 9", false),
        ("num", "> 7", false),
    ] {
        assert_eq!(matches(key, value), expected, "{key}={value}");
        assert_eq!(matches(&format!("capabilities:{key}"), value), expected, "capabilities:{key}={value}");
        let aggregate = format!("aggregate_instance_extra_specs:{key}");
        assert_eq!(matches(&aggregate, value), expected, "{aggregate}={value}");
    }
}

const OPERATORS: [&str; 14] =
    ["=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>"];

#[test]
fn cls_06_an_operator_without_operand_and_a_missing_capability_match_nothing() {
    for operator in OPERATORS {
        for key in
            ["num", "capabilities:num", "capabilities:cpu_info:arch", "aggregate_instance_extra_specs:num"]
        {
            assert!(!matches(key, operator), "{key}={operator}");
            assert!(!matches(key, &format!(" {operator}  ")), "{key}={operator}");
        }
        for key in
            ["none", "capabilities:none", "aggregate_instance_extra_specs:none", "capabilities:num:none"]
        {
            assert!(!matches(key, &format!("{operator} 1")), "{key}={operator} 1");
        }
    }
    for nothing in ["", "x"] {
        assert!(!matches("none", nothing));
        assert!(!matches("capabilities:cpu_info:none", nothing));
    }
}

#[test]
fn cls_06_every_scope_is_heeded_or_passed_over() {
    for (key, value, expected) in [
        ("vcpus", ">= 16", true),
        ("vcpus", ">= 17", false),
        ("capabilities:memory_mb", "65536", true),
        ("capabilities:hypervisor_type", "QEMU", true),
        ("hypervisor_type", "<or> KVM <or> Xen", false),
        ("capabilities:cpu_info:arch", "x86_64", true),
        ("capabilities:cpu_info:arch", "s== aarch64", false),
        ("capabilities:cpu_info:topology:cores", ">= 8", true),
        ("capabilities:cpu_info:topology:cores", ">= 9", false),
        ("capabilities:cpu_info:topology", "8", false),
        ("capabilities:cpu_info:topology:cores:more", "8", false),
        ("capabilities:cpu_info:features", "<in> avx", true),
        ("capabilities:cpu_info:features", "<in> av", false),
        ("capabilities:cpu_info:features", "<all-in> sse4 avx", true),
        ("capabilities:cpu_info:features", "<all-in> sse4 avx2", false),
        ("capabilities:cpu_info:features", "avx", false),
        ("capabilities:cpu_info", "<in> x86_64", true),
        // Aggregates have capabilities, not the host's own properties.
        ("aggregate_instance_extra_specs:vcpus", ">= 1", false),
        ("aggregate_instance_extra_specs:racks", "r2", true),
        ("aggregate_instance_extra_specs:racks", "<or> r3 <or> r1", true),
        ("aggregate_instance_extra_specs:racks", "r3", false),
        ("trait:HW_CPU_X86_AVX", "required", true),
        ("trait:HW_CPU_X86_AVX", "forbidden", false),
        ("trait:HW_GPU", "required", false),
        ("trait:HW_GPU", "forbidden", true),
        ("resources:VCPU", "16", true),
        ("resources:VCPU", "17", false),
        ("resources:MEMORY_MB", "65536", true),
        ("resources:DISK_GB", "1001", false),
        ("resources:CUSTOM_FPGA", "2", true),
        ("resources:CUSTOM_FPGA", "3", false),
        ("resources:CUSTOM_NONE", "1", false),
        ("resources:CUSTOM_NONE", "0", true),
        ("hw:cpu_policy", "dedicated", true),
        ("hw:mem_page_size", ">= many", true),
        ("quota:cpu_shares", "2048", true),
        ("anything:else", "== no number", true),
    ] {
        assert_eq!(matches(key, value), expected, "{key}={value}");
    }
}

#[test]
fn cls_06_what_cannot_be_meant_is_refused() {
    for operator in ["=", "==", "!=", ">=", "<="] {
        for word in ["many", "inf", "nan", "0x10", "1,5", "<or>"] {
            for key in ["num", "capabilities:cpu_info:arch", "aggregate_instance_extra_specs:num"] {
                let refused = specs(key, &format!("{operator} {word}"));
                assert_eq!(refused, Err(ExtraSpecError::NoNumber(key.into(), word.into())));
            }
        }
    }
    for key in [
        "",
        ":",
        "capabilities:",
        "capabilities:a:",
        "capabilities::a",
        "trait:",
        "resources:",
        "resources:a b",
    ] {
        let refused = specs(key, "required");
        assert!(matches!(refused, Err(ExtraSpecError::NoName(_))) || key == ":", "{key}: {refused:?}");
    }
    assert!(matches!(specs("trait:A", "preferred"), Err(ExtraSpecError::NoTrait(..))));
    for amount in ["many", "-1", "1.5", ""] {
        assert!(matches!(specs("resources:VCPU", amount), Err(ExtraSpecError::NoAmount(..))));
    }
    assert_eq!(specs("resources1:VCPU", "1"), Err(ExtraSpecError::Unsupported("resources1:VCPU".into())));
    assert_eq!(specs("a", &"x".repeat(256)), Err(ExtraSpecError::TooLong));
    assert_eq!(specs(&"x".repeat(256), "a"), Err(ExtraSpecError::TooLong));
    let many =
        |count: usize, value: &str| ExtraSpecs::new((0..count).map(|n| (format!("k{n}"), value.to_owned())));
    assert!(many(100, "1").is_ok());
    assert_eq!(many(101, "1"), Err(ExtraSpecError::TooMany));
    assert_eq!(many(10, &format!("<all-in>{}", " a".repeat(60))), Err(ExtraSpecError::TooLarge));
}

#[test]
fn cls_06_a_spec_is_judged_by_its_own_filters_and_by_either_without_a_scope() {
    let all = [
        ("vcpus", "99"),
        ("capabilities:vcpus", "99"),
        ("aggregate_instance_extra_specs:rack", "r9"),
        ("trait:NONE", "required"),
        ("hw:x", "y"),
    ];
    let specs =
        ExtraSpecs::new(all.map(|(key, value)| (key.to_owned(), value.to_owned()))).expect("well formed");
    let unjudged = |judges: &[Judge]| specs.unjudged(judges).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(unjudged(&[Judge::Capabilities, Judge::Aggregates, Judge::Placement]), [""; 0]);
    assert_eq!(unjudged(&[Judge::Aggregates, Judge::Placement]), ["capabilities:vcpus"]);
    assert_eq!(unjudged(&[Judge::Capabilities]), ["aggregate_instance_extra_specs:rack", "trait:NONE"]);
    assert_eq!(unjudged(&[]).len(), 4, "what concerns guests needs no judge");
    assert_eq!(specs.names().into_iter().collect::<Vec<_>>(), ["rack", "vcpus"]);
    for judge in [Judge::Capabilities, Judge::Aggregates, Judge::Placement] {
        assert!(!specs.pass(judge, &rich()));
    }
}

#[test]
fn cls_06_an_expression_and_an_extra_spec_of_the_same_meaning_give_the_same_result() {
    let hosts = ["7", "8", "8.0", "9", "10", "-1", "1e1"].map(|num| {
        let mut host = rich();
        host.capabilities.insert("num".into(), num.into());
        host
    });
    let pairs = [
        ("== 8", Operator::Equal, "8"),
        ("!= 8", Operator::NotEqual, "8"),
        (">= 8", Operator::GreaterOrEqual, "8"),
        ("= 8", Operator::GreaterOrEqual, "8"),
        ("<= 8.5", Operator::LessOrEqual, "8.5"),
    ];
    for (value, operator, operand) in pairs {
        for name in ["num", "vcpus", "memory_mb", "none"] {
            let expression = Requirement::compare(operator, name, operand).expect("well formed");
            for key in [name.to_owned(), format!("capabilities:{name}")] {
                let specs = specs(&key, value).expect("well formed");
                for host in &hosts {
                    let same = specs.pass(Judge::Capabilities, host);
                    assert_eq!(same, expression.matches(host), "{key}={value} on {:?}", host.property(name));
                }
            }
        }
    }
    for (value, operator, operand) in [
        ("s== mild", Operator::Equal, "mild"),
        ("mild", Operator::Equal, "mild"),
        ("s!= mild", Operator::NotEqual, "mild"),
        ("s< mild", Operator::Less, "mild"),
        ("s<= mild", Operator::LessOrEqual, "mild"),
        ("s> mild", Operator::Greater, "mild"),
        ("s>= mild", Operator::GreaterOrEqual, "mild"),
    ] {
        for name in ["word", "hypervisor_type", "none"] {
            let expression = Requirement::compare(operator, name, operand).expect("well formed");
            assert_eq!(matches(name, value), expression.matches(&rich()), "{name}={value}");
        }
    }
}
