//! Requirements as Blazar's expressions: `["and", ["==", "$rack", "r1"], [">=", "$vcpus", "16"]]`.

use leases::requirement::{Expression, Operator, Requirement, RequirementError};
use serde_json::{Value, json};

use super::{Unreadable, from_json};

/// A requirement as its expression; null if nothing is required.
pub fn requirement_json(requirement: &Requirement) -> Value {
    let all = |word: &str, parts: &[Requirement]| {
        Value::Array(std::iter::once(json!(word)).chain(parts.iter().map(requirement_json)).collect())
    };
    match requirement.expression() {
        None => Value::Null,
        Some(Expression::Compare(operator, name, value)) => {
            json!([operator.symbol(), format!("${name}"), value])
        }
        Some(Expression::In(name, values)) => {
            let head = [json!("in"), json!(format!("${name}"))];
            Value::Array(head.into_iter().chain(values.iter().map(|value| json!(value.text()))).collect())
        }
        Some(Expression::And(parts)) => all("and", parts),
        Some(Expression::Or(parts)) => all("or", parts),
        Some(Expression::Not(part)) => json!(["not", requirement_json(part)]),
    }
}

pub fn requirement_from_json(expression: &Value) -> Result<Requirement, Unreadable> {
    let wrong = |why: &str| Unreadable::new("requirement", expression, why);
    let refused = |error: RequirementError| Unreadable::new("requirement", expression, error);
    let parts = match expression {
        Value::Null => return Ok(Requirement::NONE),
        Value::Array(parts) => parts,
        _ => return Err(wrong("not a list")),
    };
    let Some((Value::String(word), operands)) = parts.split_first() else {
        return Err(wrong("it does not start with an operator"));
    };
    let each = || operands.iter().map(requirement_from_json).collect::<Result<Vec<_>, _>>();
    match (word.as_str(), operands) {
        ("and", _) => Requirement::all(each()?).map_err(refused),
        ("or", _) => Requirement::any(each()?).map_err(refused),
        ("not", [part]) => Requirement::negated(requirement_from_json(part)?).map_err(refused),
        ("in", [name, values @ ..]) => {
            let values: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            let values = values.ok_or_else(|| wrong("a value is not text"))?;
            Requirement::one_of(property(name).ok_or_else(|| wrong("it names no $property"))?, values)
                .map_err(refused)
        }
        (symbol, [name, Value::String(value)]) => {
            let operator = Operator::from_symbol(symbol).ok_or_else(|| wrong("unknown operator"))?;
            let name = property(name).ok_or_else(|| wrong("it names no $property"))?;
            Requirement::compare(operator, name, value).map_err(refused)
        }
        _ => Err(wrong("wrong operands")),
    }
}

/// Parses an expression as a client wrote it.
pub(super) fn requirement_from_text(text: &str) -> Result<Requirement, Unreadable> {
    requirement_from_json(&from_json("requirement", text)?)
}

fn property(name: &Value) -> Option<&str> {
    name.as_str()?.strip_prefix('$')
}
