//! Requirements on hosts: Blazar's property expressions (API-expressions), extended by `or`, `not` and `in`.
//!
//! The API layer parses them from text. The constructors here enforce their invariants: no empty names or
//! values, no nesting so deep that recursion could exhaust the stack, and no size at which evaluating every
//! host would delay other requests.

mod operand;
mod short_form;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

pub(crate) use self::operand::Number;
pub use self::operand::Operand;
use crate::host::Host;
use crate::text::Quoted;

/// Maximum nesting depth of expressions.
pub const MAX_DEPTH: usize = 32;

/// Maximum number of values in an expression. Each is compared with a property of every host.
pub const MAX_VALUES: usize = 500;

/// Cost of looking up a property of a host and comparing it with one value.
const LOOKING_UP: u64 = 4;

/// Reason why an expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// `$` without a name.
    #[error("a requirement names no property: write $name")]
    NoName,
    /// Empty value.
    #[error("the requirement on ${} has an empty value", Quoted(.0))]
    NoValue(String),
    /// `in` with an empty list, or `and` or `or` without parts.
    #[error("'{0}' needs at least one operand")]
    NoOperand(&'static str),
    #[error("requirements may be nested {MAX_DEPTH} deep, not deeper")]
    TooDeep,
    #[error("requirements may compare with {MAX_VALUES} values, not more")]
    TooLarge,
}

/// Comparison operator between a property and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`, or `=`.
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "==" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Whether it compares by size rather than for equality.
    pub fn is_order(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// The symbol. For equality, `==`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Whether the operator is true of this ordering.
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Compare(Operator, String, Operand),
    In(String, Vec<Operand>),
    And(Vec<Requirement>),
    Or(Vec<Requirement>),
    Not(Box<Requirement>),
}

/// Structure of a requirement, for serialization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expression<'a> {
    /// `[operator, "$name", "value"]`; the name without `$`.
    Compare(Operator, &'a str, &'a str),
    /// `["in", "$name", "value", ...]`.
    In(&'a str, &'a [Operand]),
    /// `["and", ...]`.
    And(&'a [Requirement]),
    /// `["or", ...]`.
    Or(&'a [Requirement]),
    /// `["not", ...]`.
    Not(&'a Requirement),
}

/// One comparison in a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison<'a> {
    pub operator: Operator,
    /// Property name, without `$`.
    pub name: &'a str,
    pub value: &'a Operand,
}

/// A requirement on a host.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Requirement {
    /// `None` matches every host. Clones share the node.
    node: Option<Arc<Node>>,
    depth: usize,
    /// Number of values in all comparisons.
    values: usize,
    /// Cost of evaluating one host.
    work: u64,
}

impl Requirement {
    /// Matches every host.
    pub const NONE: Self = Self { node: None, depth: 0, values: 0, work: 0 };

    /// `[operator, "$name", "value"]`; the name without `$`.
    pub fn compare(
        operator: Operator,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, RequirementError> {
        let (name, value) = (named(name)?, value.into());
        if value.is_empty() {
            return Err(RequirementError::NoValue(name));
        }
        let node = Node::Compare(operator, name, Operand::new(value));
        Ok(Self { node: Some(Arc::new(node)), depth: 1, values: 1, work: LOOKING_UP })
    }

    /// `["in", "$name", "value", ...]`: the property equals one of the values.
    pub fn one_of(name: impl Into<String>, values: Vec<String>) -> Result<Self, RequirementError> {
        let name = named(name)?;
        if values.is_empty() {
            return Err(RequirementError::NoOperand("in"));
        }
        if values.iter().any(String::is_empty) {
            return Err(RequirementError::NoValue(name));
        }
        let count = within_limit(values.len())?;
        let node = Node::In(name, values.into_iter().map(Operand::new).collect());
        let work = LOOKING_UP + count as u64;
        Ok(Self { node: Some(Arc::new(node)), depth: 1, values: count, work })
    }

    /// `["and", ...]`: all parts match.
    pub fn all(parts: Vec<Self>) -> Result<Self, RequirementError> {
        Self::joined("and", parts, Node::And)
    }

    /// `["or", ...]`: at least one part matches.
    pub fn any(parts: Vec<Self>) -> Result<Self, RequirementError> {
        Self::joined("or", parts, Node::Or)
    }

    /// `["not", ...]`.
    pub fn negated(part: Self) -> Result<Self, RequirementError> {
        let depth = deeper(std::slice::from_ref(&part))?;
        let (values, work) = (part.values, part.work + 1);
        Ok(Self { node: Some(Arc::new(Node::Not(Box::new(part)))), depth, values, work })
    }

    fn joined(
        word: &'static str,
        parts: Vec<Self>,
        node: fn(Vec<Self>) -> Node,
    ) -> Result<Self, RequirementError> {
        if parts.is_empty() {
            return Err(RequirementError::NoOperand(word));
        }
        let depth = deeper(&parts)?;
        let values = within_limit(parts.iter().map(|part| part.values).sum())?;
        let work = 1 + parts.iter().map(|part| part.work).sum::<u64>();
        Ok(Self { node: Some(Arc::new(node(parts))), depth, values, work })
    }

    /// Structure of the requirement. `None` if it matches every host.
    pub fn expression(&self) -> Option<Expression<'_>> {
        self.node.as_deref().map(|node| match node {
            Node::Compare(operator, name, value) => Expression::Compare(*operator, name, value.text()),
            Node::In(name, values) => Expression::In(name, values),
            Node::And(parts) => Expression::And(parts),
            Node::Or(parts) => Expression::Or(parts),
            Node::Not(part) => Expression::Not(part),
        })
    }

    /// Cost of evaluating one host, in units of [`crate::work`].
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Address of the shared node, which is equal for all clones. `None` if it matches every host.
    pub(crate) fn identity(&self) -> Option<usize> {
        self.node.as_ref().map(|node| Arc::as_ptr(node).addr())
    }

    /// Number of values in all comparisons.
    pub fn values(&self) -> usize {
        self.values
    }

    /// Whether the host meets the requirement.
    ///
    /// A comparison with a property that the host doesn't have is always false, even with `!=`, as in Blazar.
    /// `not` inverts that result: a host without `gpu` matches `["not", ["==", "$gpu", "yes"]]`.
    pub fn matches(&self, host: &Host) -> bool {
        let Some(node) = self.node.as_deref() else { return true };
        match node {
            Node::Compare(operator, name, value) => {
                host.property(name).is_some_and(|property| operator.holds(value.compared_with(&property)))
            }
            Node::In(name, values) => host.property(name).is_some_and(|property| {
                // Parse the number only once.
                let number = Number::read(&property);
                values.iter().any(|value| value.compared_with_number(&property, number).is_eq())
            }),
            Node::And(parts) => parts.iter().all(|part| part.matches(host)),
            Node::Or(parts) => parts.iter().any(|part| part.matches(host)),
            Node::Not(part) => !part.matches(host),
        }
    }

    /// The same requirement for another value of `property`. `None` unless it requires this property to equal
    /// a value or one of several values, alone or within `and`.
    pub fn with_value(&self, property: &str, value: &str) -> Option<Self> {
        match self.node.as_deref()? {
            Node::Compare(Operator::Equal, name, _) | Node::In(name, _) if name == property => {
                Self::compare(Operator::Equal, property, value).ok()
            }
            Node::And(parts) => {
                let replaced: Vec<_> = parts.iter().map(|part| part.with_value(property, value)).collect();
                if replaced.iter().all(Option::is_none) {
                    return None;
                }
                let parts = parts.iter().zip(replaced).map(|(part, new)| new.unwrap_or_else(|| part.clone()));
                Self::all(parts.collect()).ok()
            }
            _ => None,
        }
    }

    /// Copy with properties renamed, in keys too.
    #[must_use]
    pub fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Self {
        let Some(node) = self.node.as_deref() else { return Self::NONE };
        let each = |parts: &[Self]| parts.iter().map(|part| part.renamed(rename)).collect();
        let node = match node {
            Node::Compare(operator, name, value) => Node::Compare(*operator, rename(name), value.clone()),
            Node::In(name, values) => Node::In(rename(name), values.clone()),
            Node::And(parts) => Node::And(each(parts)),
            Node::Or(parts) => Node::Or(each(parts)),
            Node::Not(part) => Node::Not(Box::new(part.renamed(rename))),
        };
        Self { node: Some(Arc::new(node)), ..self.clone() }
    }

    /// All comparisons. `in` yields one for each value.
    pub fn comparisons(&self) -> Vec<Comparison<'_>> {
        let mut found = Vec::new();
        self.collect_comparisons(&mut found);
        found
    }

    fn collect_comparisons<'a>(&'a self, found: &mut Vec<Comparison<'a>>) {
        match self.node.as_deref() {
            None => {}
            Some(Node::Compare(operator, name, value)) => {
                found.push(Comparison { operator: *operator, name, value });
            }
            Some(Node::In(name, values)) => {
                let equal = |value| Comparison { operator: Operator::Equal, name, value };
                found.extend(values.iter().map(equal));
            }
            Some(Node::And(parts) | Node::Or(parts)) => {
                for part in parts {
                    part.collect_comparisons(found);
                }
            }
            Some(Node::Not(part)) => part.collect_comparisons(found),
        }
    }

    /// Names of the properties it refers to. A capability in use isn't changed while a lease refers to it.
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.collect_names(&mut names);
        names
    }

    fn collect_names<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        match self.node.as_deref() {
            None => {}
            Some(Node::Compare(_, name, _) | Node::In(name, _)) => {
                names.insert(name);
            }
            Some(Node::And(parts) | Node::Or(parts)) => {
                for part in parts {
                    part.collect_names(names);
                }
            }
            Some(Node::Not(part)) => part.collect_names(names),
        }
    }
}

fn named(name: impl Into<String>) -> Result<String, RequirementError> {
    let name = name.into();
    if name.is_empty() { Err(RequirementError::NoName) } else { Ok(name) }
}

fn deeper(parts: &[Requirement]) -> Result<usize, RequirementError> {
    let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
    if depth > MAX_DEPTH { Err(RequirementError::TooDeep) } else { Ok(depth) }
}

fn within_limit(values: usize) -> Result<usize, RequirementError> {
    if values > MAX_VALUES { Err(RequirementError::TooLarge) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HostId;

    fn host(capabilities: &[(&str, &str)]) -> Host {
        let mut host = Host::new(HostId(3), "node3", 16, 65_536, 1000);
        host.capabilities = capabilities.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        host
    }

    fn compare(symbol: &str, name: &str, value: &str) -> Requirement {
        let operator = Operator::from_symbol(symbol).expect("an operator");
        Requirement::compare(operator, name, value).expect("well formed")
    }

    #[test]
    fn w17_numbers_compare_as_numbers_and_the_rest_as_text() {
        let host = host(&[("num", "8"), ("rack", "r1")]);
        assert!(!compare(">=", "num", "10").matches(&host));
        assert!(compare("<", "num", "10").matches(&host));
        assert!(compare("==", "num", "8.0").matches(&host));
        assert!(compare("<", "rack", "r2").matches(&host));
        assert!(compare("<", "num", "a").matches(&host), "8 and a are compared as text");
        let serial = "12345678901234567890";
        assert!(!compare("==", "s", "12345678901234567891").matches(&self::host(&[("s", serial)])));
    }

    #[test]
    fn columns_and_capabilities_stand_in_one_expression() {
        let both = Requirement::all(vec![compare(">=", "vcpus", "16"), compare("==", "rack", "r1")]);
        assert!(both.expect("well formed").matches(&host(&[("rack", "r1")])));
        assert!(compare("=", "hypervisor_hostname", "node3").matches(&host(&[])));
        assert!(compare("==", "memory_mb", "65536").matches(&host(&[])));
        assert!(compare("==", "vcpus", "16").matches(&host(&[("vcpus", "2")])), "the column wins");
    }

    #[test]
    fn w17_an_unknown_capability_is_never_so_and_not_turns_that_around() {
        let not = |part: Requirement| Requirement::negated(part).expect("well formed");
        let none = host(&[]);
        let (like, unlike) = (compare("==", "gpu", "yes"), compare("!=", "gpu", "yes"));
        let one_of = Requirement::one_of("gpu", vec!["yes".into(), "no".into()]).expect("well formed");
        let large = compare(">=", "vcpus", "16");
        for never in [&like, &unlike, &one_of, &compare("<", "gpu", "z"), &compare(">=", "gpu", "0")] {
            assert!(!never.matches(&none), "{never:?}");
            assert!(not(never.clone()).matches(&none), "{never:?}");
            assert!(!not(not(never.clone())).matches(&none), "{never:?}");
            for (parts, so) in [
                (Requirement::all(vec![never.clone(), large.clone()]), false),
                (Requirement::any(vec![never.clone(), large.clone()]), true),
                (Requirement::any(vec![never.clone(), never.clone()]), false),
                (Requirement::all(vec![not(never.clone()), large.clone()]), true),
                (Requirement::any(vec![not(never.clone()), not(large.clone())]), true),
            ] {
                let parts = parts.expect("well formed");
                assert_eq!(parts.matches(&none), so, "{parts:?}");
                assert_eq!(not(parts.clone()).matches(&none), !so, "not {parts:?}");
            }
        }
        let other = host(&[("gpu", "no")]);
        assert!(not(like).matches(&other) && unlike.matches(&other) && !not(unlike).matches(&other));
    }

    #[test]
    fn w17_a_nested_and_keeps_all_its_conditions() {
        let inner = Requirement::all(vec![compare("==", "a", "1"), compare("==", "b", "1")]);
        let outer = Requirement::all(vec![inner.expect("well formed"), compare("==", "c", "1")]);
        let outer = outer.expect("well formed");
        assert!(!outer.matches(&host(&[("a", "1"), ("b", "2"), ("c", "1")])));
        assert!(outer.matches(&host(&[("a", "1"), ("b", "1"), ("c", "1")])));
        assert_eq!(outer.names().into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn one_of_several_values_is_enough() {
        let racks = Requirement::one_of("rack", vec!["r1".into(), "r2".into()]).expect("well formed");
        assert!(racks.matches(&host(&[("rack", "r2")])));
        assert!(!racks.matches(&host(&[("rack", "r3")])));
        assert!(!racks.matches(&host(&[])));
    }

    #[test]
    fn words_that_sound_like_numbers_are_text() {
        assert!(!compare(">", "x", "9").matches(&host(&[("x", "-inf")])));
        assert!(compare("==", "x", "nan").matches(&host(&[("x", "nan")])));
    }

    #[test]
    fn a_dotted_name_is_a_plain_name() {
        assert!(compare("==", "arch.smt_size", "48").matches(&host(&[("arch.smt_size", "48")])));
    }

    #[test]
    fn malformed_requirements_are_refused() {
        assert_eq!(Requirement::compare(Operator::Equal, "", "x"), Err(RequirementError::NoName));
        assert_eq!(
            Requirement::compare(Operator::Equal, "a", ""),
            Err(RequirementError::NoValue("a".into()))
        );
        assert_eq!(Requirement::all(vec![]), Err(RequirementError::NoOperand("and")));
        let deep = (0..MAX_DEPTH)
            .try_fold(compare("==", "a", "1"), |inner, _| Requirement::negated(inner))
            .expect_err("too deep");
        assert_eq!(deep, RequirementError::TooDeep);
        let many = vec!["x".to_owned(); MAX_VALUES];
        let most = Requirement::one_of("a", many.clone()).expect("not too many");
        let more = Requirement::any(vec![most, compare("==", "a", "1")]);
        assert_eq!(more, Err(RequirementError::TooLarge));
        assert_eq!(
            Requirement::one_of("a", [many, vec!["y".into()]].concat()),
            Err(RequirementError::TooLarge)
        );
    }
}
