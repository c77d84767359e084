//! Expressions on properties of hosts, in requests (API-expressions). They have `or`, `not`, `in`, nesting
//! and numbers in addition to Blazar's (W17).

use std::sync::Arc;

use leases::host::Host;
use leases::requirement::{Comparison, MAX_DEPTH, Operator, Requirement, RequirementError};
use leases::text::Quoted;
use serde_json::Value;

use super::error::RequestError;
use super::python;

/// An expression in a request, and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    /// The text, which answers repeat.
    pub wording: Option<Arc<str>>,
    /// What it means.
    pub requirement: Requirement,
}

/// Reads `hypervisor_properties` or `resource_properties`: JSON in a string, JSON itself, "" or null.
pub(crate) fn read_expression(value: &Value) -> Result<Expression, RequestError> {
    let (wording, decoded) = match value {
        Value::Null => (None, Value::Null),
        Value::String(text) if text.is_empty() => (Some(Arc::default()), Value::Null),
        Value::String(text) => {
            let decoded =
                serde_json::from_str(text).map_err(|error| malformed(value, format!("no JSON: {error}")))?;
            (Some(text.as_str().into()), decoded)
        }
        other => (Some(other.to_string().into()), other.clone()),
    };
    let requirement = match &decoded {
        Value::Null => Requirement::NONE,
        Value::Array(items) if items.is_empty() => Requirement::NONE,
        expression => expression_of(expression, 0).map_err(|why| malformed(expression, why))?,
    };
    if let Some(why) = requirement.comparisons().into_iter().find_map(wrong_type) {
        return Err(malformed(&decoded, why));
    }
    Ok(Expression { wording, requirement })
}

/// Reads an expression in settings, in the form of `resource_properties`.
pub fn read_requirement(value: &Value) -> Result<Requirement, RequestError> {
    read_expression(value).map(|read| read.requirement)
}

fn malformed(value: &Value, why: String) -> RequestError {
    RequestError::Requirements { shown: python::shown(value), why }
}

/// The mistake in a part of an expression.
type Why = String;

fn expression_of(value: &Value, depth: usize) -> Result<Requirement, Why> {
    if depth > MAX_DEPTH {
        return Err(RequirementError::TooDeep.to_string());
    }
    let Some((head, operands)) = value.as_array().and_then(|items| items.split_first()) else {
        return Err(format!("{} is no list such as [\"==\", \"$name\", \"value\"]", python::notation(value)));
    };
    let parts = || operands.iter().map(|part| expression_of(part, depth + 1)).collect::<Result<Vec<_>, _>>();
    let made = match (head.as_str(), operands) {
        (Some("and"), _) => Requirement::all(parts()?),
        (Some("or"), _) => Requirement::any(parts()?),
        (Some("not"), [part]) => Requirement::negated(expression_of(part, depth + 1)?),
        (Some("not"), _) => return Err("'not' takes one operand".to_owned()),
        (Some("in"), [name, values @ ..]) => {
            let values = values.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
            Requirement::one_of(name_of(name)?, values)
        }
        (Some(symbol), [name, value]) => {
            let operator = Operator::from_symbol(symbol).ok_or_else(|| unknown_operator(head))?;
            let value = value_of(value)?;
            if !matches!(operator, Operator::Equal | Operator::NotEqual) && is_no_finite_number(&value) {
                return Err(format!(
                    "'{symbol}' compares with numbers and text, and {value} is no finite number"
                ));
            }
            Requirement::compare(operator, name_of(name)?, value)
        }
        (Some(symbol), _) if Operator::from_symbol(symbol).is_some() => {
            return Err(format!("'{symbol}' takes a name and a value"));
        }
        _ => return Err(unknown_operator(head)),
    };
    made.map_err(|error| error.to_string())
}

fn unknown_operator(head: &Value) -> Why {
    let known = "==, =, !=, <, <=, >, >=, in, and, or, not";
    format!("{} is no operator; there are {known}", python::notation(head))
}

/// The mistake in a comparison of a numeric field that all hosts have with a value that isn't a number.
fn wrong_type(Comparison { name, value, .. }: Comparison<'_>) -> Option<Why> {
    let wrong = Host::NUMBERS.contains(&name) && !value.is_number();
    wrong.then(|| format!("${name} is a number, and '{}' is not", Quoted(value.text())))
}

/// Whether the text is a number that can't be compared: `inf`, `-Infinity`, `nan`, `1e999`.
fn is_no_finite_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(|number| !number.is_finite())
}

fn name_of(value: &Value) -> Result<&str, Why> {
    let name = value.as_str().and_then(|name| name.strip_prefix('$'));
    name.ok_or_else(|| format!("{} is no name of a property: write $name", python::notation(value)))
}

fn value_of(value: &Value) -> Result<String, Why> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("{} is neither text nor a number", python::notation(other))),
    }
}

#[cfg(test)]
mod tests {
    use leases::host::Host;
    use leases::ids::HostId;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;
    use store::encoding::requirement_json;

    use super::*;

    fn host(capabilities: &[(&str, &str)]) -> Host {
        let mut host = Host::new(HostId(3), "node3", 16, 65_536, 1000);
        host.capabilities = capabilities.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        host
    }

    fn matches(expression: &Value, host: &Host) -> bool {
        read_expression(expression).expect("well formed").requirement.matches(host)
    }

    #[test]
    fn nothing_required_is_said_in_four_ways() {
        for (none, wording) in
            [(json!(null), None), (json!(""), Some("")), (json!("[]"), Some("[]")), (json!([]), Some("[]"))]
        {
            let read = read_expression(&none).expect("well formed");
            assert_eq!(read, Expression { wording: wording.map(Arc::from), requirement: Requirement::NONE });
        }
    }

    #[test]
    fn json_is_read_with_and_without_quotes_around_it() {
        let text = json!(r#"["and", [">=", "$vcpus", "16"], ["=", "$rack", "r1"]]"#);
        let plain = json!(["and", [">=", "$vcpus", "16"], ["=", "$rack", "r1"]]);
        for expression in [text, plain] {
            assert!(matches(&expression, &host(&[("rack", "r1")])));
            assert!(!matches(&expression, &host(&[("rack", "r2")])));
        }
    }

    #[test]
    fn w17_or_not_in_nesting_and_numbers_are_understood() {
        let host = host(&[("num", "8"), ("rack", "r1"), ("gpu", "no")]);
        assert!(matches(&json!(["or", ["==", "$rack", "r9"], [">", "$num", 7]]), &host));
        assert!(matches(&json!(["not", ["==", "$gpu", "yes"]]), &host));
        assert!(matches(&json!(["in", "$rack", "r1", "r2"]), &host));
        assert!(matches(&json!([">=", "$num", 7.5]), &host));
        let nested = json!(["and", ["and", ["==", "$rack", "r1"], ["==", "$num", 9]], ["==", "$gpu", "no"]]);
        assert!(!matches(&nested, &host), "a nested and keeps all its conditions");
    }

    #[test]
    fn malformed_requirements_are_refused_in_pythons_notation() {
        for (sent, shown) in [
            (json!("junk"), "junk"),
            (json!(r#"{"a":1}"#), "{'a': 1}"),
            (json!(r#"["or"]"#), "['or']"),
            (json!(r#"["in", "$a"]"#), "['in', '$a']"),
            (json!(["==", "gpu", "yes"]), "['==', 'gpu', 'yes']"),
            (json!(["==", "$gpu", ""]), "['==', '$gpu', '']"),
            (json!(["==", "$gpu", true]), "['==', '$gpu', True]"),
            (json!(["like", "$gpu", "x"]), "['like', '$gpu', 'x']"),
            (json!(["<", "$vcpus", "inf"]), "['<', '$vcpus', 'inf']"),
            (json!([">=", "$vcpus", "-Infinity"]), "['>=', '$vcpus', '-Infinity']"),
            (json!(["<=", "$vcpus", " NaN"]), "['<=', '$vcpus', ' NaN']"),
            (json!([">", "$vcpus", "1e999"]), "['>', '$vcpus', '1e999']"),
            (json!([">=", "$vcpus", "many"]), "['>=', '$vcpus', 'many']"),
            (json!(["not", ["in", "$memory_mb", 5, "5G"]]), "['not', ['in', '$memory_mb', 5, '5G']]"),
            (json!(["==", "$gpu"]), "['==', '$gpu']"),
            (json!(["and", [], ["==", "$a", "b"]]), "['and', [], ['==', '$a', 'b']]"),
            (json!(5), "5"),
        ] {
            let error = read_expression(&sent).expect_err("malformed");
            assert_eq!(error.to_string(), format!("Malformed requirements {shown}"));
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn an_expression_nested_too_deep_is_refused() {
        let deep = (0..100).fold(json!(["==", "$a", "1"]), |inner, _| json!(["not", inner]));
        assert!(matches!(read_expression(&deep), Err(RequestError::Requirements { .. })));
    }

    #[test]
    fn an_expression_of_too_many_values_is_refused() {
        let many: Vec<Value> = (0..10_000).map(|number| json!(["==", "$a", number])).collect();
        let any = Value::Array(std::iter::once(json!("or")).chain(many).collect());
        for sent in [any.clone(), json!(any.to_string())] {
            let error = read_expression(&sent).expect_err("too large");
            assert_eq!(error.hint().as_deref(), Some("requirements may compare with 500 values, not more"));
        }
    }

    /// Brackets that are never closed must not exhaust the stack or take long.
    #[test]
    fn text_of_nothing_but_brackets_is_refused() {
        for bracket in ["[", "{\"a\":", "[\"not\",", "[[\"and\","] {
            assert!(read_expression(&json!(bracket.repeat(200_000))).is_err());
        }
    }

    fn requirements() -> impl Strategy<Value = Requirement> {
        let text = || "(?s).{1,5}";
        // Numeric fields can't be compared with text.
        let name = || text().prop_filter("numeric", |name| !Host::NUMBERS.contains(&name.as_str()));
        let operators = vec!["==", "!=", "<", "<=", ">", ">="];
        let compare = (select(operators), name(), text()).prop_map(|(symbol, name, value)| {
            let operator = Operator::from_symbol(symbol).expect("an operator");
            Requirement::compare(operator, name, value).expect("well formed")
        });
        let one_of = (name(), vec(text(), 1..4))
            .prop_map(|(name, values)| Requirement::one_of(name, values).expect("well formed"));
        prop_oneof![compare, one_of].prop_recursive(6, 32, 4, |inner| {
            let parts = vec(inner.clone(), 1..4);
            prop_oneof![
                parts.clone().prop_map(|parts| Requirement::all(parts).expect("well formed")),
                parts.prop_map(|parts| Requirement::any(parts).expect("well formed")),
                inner.prop_map(|part| Requirement::negated(part).expect("well formed")),
            ]
        })
    }

    /// JSON that is nearly an expression.
    fn nearly() -> impl Strategy<Value = Value> {
        let words =
            ["and", "or", "not", "in", "==", "=", "<=", "$a", "$", "a", "", "5", "[]", "null", "\u{0}"];
        let leaf = prop_oneof![
            4 => select(words.to_vec()).prop_map(Value::from),
            1 => any::<f64>().prop_map(Value::from),
            1 => any::<u64>().prop_map(Value::from),
            1 => any::<bool>().prop_map(Value::from),
            1 => Just(Value::Null),
            1 => Just(json!({"and": []})),
        ];
        leaf.prop_recursive(6, 48, 4, |inner| vec(inner, 0..5).prop_map(Value::from))
    }

    /// Fails unless the expression was read, or rejected with a reason. Writing and reading it again must
    /// give the same requirement.
    fn check(sent: &Value) -> Result<(), TestCaseError> {
        match read_expression(sent) {
            Ok(read) => {
                let again = read_expression(&requirement_json(&read.requirement));
                prop_assert_eq!(again.map(|again| again.requirement), Ok(read.requirement));
            }
            Err(error) => {
                prop_assert!(error.to_string().starts_with("Malformed requirements "));
                prop_assert!(error.hint().is_some_and(|why| !why.is_empty()));
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn what_is_written_down_is_read_as_what_it_was(requirement in requirements()) {
            let written = requirement_json(&requirement);
            for sent in [json!(written.to_string()), written] {
                let read = read_expression(&sent).expect("well formed");
                prop_assert_eq!(read.requirement, requirement.clone());
            }
        }

        #[test]
        fn any_json_is_read_or_refused_with_a_reason(sent in nearly()) {
            check(&sent)?;
            check(&json!(sent.to_string()))?;
        }

        #[test]
        fn any_text_is_read_or_refused_with_a_reason(
            text in prop_oneof!["(?s).{0,40}", r#"[\[\]{},:"$a=<not ]{0,40}"#],
        ) {
            check(&json!(text))?;
        }
    }
}
