//! Short form of requirements, as read by commands: `rack=r1 and vcpus>=16`.

use std::fmt;

use super::{Node, Operator, Requirement};
use crate::text::as_written;

/// Keywords, which are quoted when used as names or values.
const WORDS: [&str; 4] = ["and", "or", "not", "in"];

/// Empty if the requirement matches every host.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node.as_deref() {
            None => Ok(()),
            Some(Node::Compare(operator, name, value)) => {
                let symbol = if *operator == Operator::Equal { "=" } else { operator.symbol() };
                write!(f, "{}{symbol}{}", Word(&as_written(name)), Word(value.text()))
            }
            Some(Node::In(name, values)) => {
                write!(f, "{} in (", Word(&as_written(name)))?;
                for (position, value) in values.iter().enumerate() {
                    let before = if position == 0 { "" } else { ", " };
                    write!(f, "{before}{}", Word(value.text()))?;
                }
                f.write_str(")")
            }
            Some(Node::And(parts)) => write_joined(f, " and ", parts),
            Some(Node::Or(parts)) => write_joined(f, " or ", parts),
            Some(Node::Not(part)) => {
                f.write_str("not ")?;
                write_part(f, part)
            }
        }
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, between: &str, parts: &[Requirement]) -> fmt::Result {
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            f.write_str(between)?;
        }
        write_part(f, part)?;
    }
    Ok(())
}

/// Writes a part of another requirement, in parentheses if it has parts itself.
fn write_part(f: &mut fmt::Formatter<'_>, part: &Requirement) -> fmt::Result {
    match part.node.as_deref() {
        Some(Node::And(_) | Node::Or(_)) => write!(f, "({part})"),
        _ => write!(f, "{part}"),
    }
}

/// A name or value. It is quoted if it would otherwise be read as something else.
struct Word<'t>(&'t str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        let separates = |letter: char| letter.is_whitespace() || "()=<>!,\"'".contains(letter);
        let is_plain = !text.is_empty()
            && !text.contains(separates)
            && !text.starts_with('$')
            && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is_plain {
            f.write_str(text)
        } else if text.contains('"') {
            write!(f, "'{text}'")
        } else {
            write!(f, "\"{text}\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(name: &str, symbol: &str, value: &str) -> Requirement {
        let operator = Operator::from_symbol(symbol).expect("an operator");
        Requirement::compare(operator, name, value).expect("well formed")
    }

    #[test]
    fn requirements_are_written_as_commands_read_them() {
        let all = |parts: &[&Requirement]| Requirement::all(parts.iter().copied().cloned().collect());
        let any = |parts: &[&Requirement]| Requirement::any(parts.iter().copied().cloned().collect());
        let (rack, cpus) = (compare("rack", "==", "r1"), compare("vcpus", ">=", "16"));
        let gpus = Requirement::one_of("gpu", vec!["A100 80GB".into(), "h100".into()]).expect("well formed");
        let both = all(&[&rack, &cpus]).expect("well formed");
        let either = any(&[&both, &gpus]).expect("well formed");
        let neither = Requirement::negated(either.clone()).expect("well formed");
        for (requirement, expected) in [
            (Requirement::NONE, ""),
            (rack.clone(), "rack=r1"),
            (both, "rack=r1 and vcpus>=16"),
            (either, "(rack=r1 and vcpus>=16) or gpu in (\"A100 80GB\", h100)"),
            (neither, "not ((rack=r1 and vcpus>=16) or gpu in (\"A100 80GB\", h100))"),
            (Requirement::negated(rack).expect("well formed"), "not rack=r1"),
            (compare("in", "!=", "say \"no\""), "\"in\"!='say \"no\"'"),
            (compare("gpu\u{1}", "<", "$x"), "gpu<\"$x\""),
        ] {
            assert_eq!(requirement.to_string(), expected);
        }
    }
}
