//! Parses rules in a subset of oslo.policy's language: `role:admin or (rule:x and not
//! project_id:%(project_id)s)`.

use super::check::{Attribute, Check, Value};

/// Maximum nesting of a rule.
const MAX_DEPTH: usize = 50;

/// A syntax error. Its position is counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParseError {
    pub message: String,
    pub position: usize,
}

pub(super) fn parse(text: &str) -> Result<Check, ParseError> {
    let mut parser = Parser { words: words(text), next: 0, end: text.chars().count() };
    if parser.words.is_empty() {
        return Ok(Check::Always);
    }
    let check = parser.alternatives(0)?;
    match parser.peek() {
        None => Ok(check),
        Some(word) => Err(parser.error(&format!("and, or, or the end is missing before {word:?}"))),
    }
}

struct Parser {
    /// Words, with the positions of their first characters.
    words: Vec<(usize, String)>,
    next: usize,
    end: usize,
}

/// Splits a rule into words. Parentheses are separate words, except in `%(...)s`.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let (mut open, mut inside, mut before) = (false, false, ' ');
    for (position, c) in text.chars().enumerate() {
        let substitution = (c == '(' && before == '%') || (c == ')' && inside);
        match c {
            c if c.is_whitespace() => open = false,
            '(' | ')' if !substitution => {
                words.push((position, c.to_string()));
                open = false;
            }
            c => {
                inside = if substitution { c == '(' } else { inside };
                match words.last_mut().filter(|_| open) {
                    Some((_, word)) => word.push(c),
                    None => words.push((position, c.to_string())),
                }
                open = true;
            }
        }
        before = c;
    }
    words
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(|(_, word)| word.as_str())
    }

    /// Consumes the next word if it equals `wanted`, ignoring case.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.peek().is_some_and(|word| word.eq_ignore_ascii_case(wanted));
        self.next += usize::from(is_next);
        is_next
    }

    fn error(&self, message: &str) -> ParseError {
        let position = self.words.get(self.next).map_or(self.end, |(position, _)| *position);
        ParseError { message: message.to_owned(), position: position + 1 }
    }

    fn alternatives(&mut self, depth: usize) -> Result<Check, ParseError> {
        let mut checks = vec![self.conjunction(depth)?];
        while self.take("or") {
            checks.push(self.conjunction(depth)?);
        }
        Ok(one_or(checks, Check::Or))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Check, ParseError> {
        let mut checks = vec![self.negation(depth)?];
        while self.take("and") {
            checks.push(self.negation(depth)?);
        }
        Ok(one_or(checks, Check::And))
    }

    fn negation(&mut self, depth: usize) -> Result<Check, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        if self.take("not") {
            return Ok(Check::Not(Box::new(self.negation(depth + 1)?)));
        }
        if self.take("(") {
            let check = self.alternatives(depth + 1)?;
            return if self.take(")") {
                Ok(check)
            } else {
                Err(self.error("a closing parenthesis is missing"))
            };
        }
        self.check()
    }

    fn check(&mut self) -> Result<Check, ParseError> {
        let word = match self.peek() {
            None | Some(")") => return Err(self.error("a check is missing")),
            Some(word) if ["and", "or"].iter().any(|other| word.eq_ignore_ascii_case(other)) => {
                return Err(self.error("a check is missing"));
            }
            Some(word) => word.trim_matches(['"', '\'']),
        };
        let check = match word {
            "@" => Ok(Check::Always),
            "!" => Ok(Check::Never),
            word => match word.split_once(':') {
                Some((kind, value)) => kind_of(kind, value),
                None => Err(format!("{word:?} is no check; write KIND:VALUE, @ or !")),
            },
        };
        let check = check.map_err(|message| self.error(&message))?;
        self.next += 1;
        Ok(check)
    }
}

fn one_or(mut checks: Vec<Check>, many: fn(Vec<Check>) -> Check) -> Check {
    if checks.len() == 1 { checks.remove(0) } else { many(checks) }
}

fn kind_of(kind: &str, value: &str) -> Result<Check, String> {
    if value.is_empty() {
        return Err(format!("{kind}: has no value"));
    }
    match kind {
        "role" => Ok(Check::Role(value.to_owned())),
        "rule" => Ok(Check::Rule(value.to_owned())),
        "is_admin" => match value {
            "True" | "true" | "1" => Ok(Check::IsAdmin(true)),
            "False" | "false" | "0" => Ok(Check::IsAdmin(false)),
            _ => Err(format!("is_admin is True or False, not {value:?}")),
        },
        kind => {
            let known = "role, rule, is_admin, project_id, user_id";
            let attribute = Attribute::of(kind)
                .ok_or_else(|| format!("there is no check {kind:?}, there are {known}"))?;
            let value = match value.strip_prefix("%(").and_then(|rest| rest.strip_suffix(")s")) {
                None => Value::Text(value.to_owned()),
                Some(name) => Value::OfTarget(
                    Attribute::of(name).ok_or_else(|| format!("leases have no attribute {name:?}"))?,
                ),
            };
            Ok(Check::Equals(attribute, value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Check {
        Check::Role(name.to_owned())
    }

    #[test]
    fn not_binds_tighter_than_and_and_and_tighter_than_or() {
        let check = parse("role:a or not role:b and role:c").expect("well formed");
        let expected =
            Check::Or(vec![role("a"), Check::And(vec![Check::Not(Box::new(role("b"))), role("c")])]);
        assert_eq!(check, expected);
        let grouped = parse("(role:a or role:b) and role:c").expect("well formed");
        assert_eq!(grouped, Check::And(vec![Check::Or(vec![role("a"), role("b")]), role("c")]));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = |text| parse(text).map_err(|error| (error.message, error.position)).expect_err("wrong");
        assert_eq!(error("role:a role:b").1, 8);
        assert_eq!(error("(role:a"), ("a closing parenthesis is missing".to_owned(), 8));
        assert_eq!(error("and role:a"), ("a check is missing".to_owned(), 1));
        assert_eq!(error("()"), ("a check is missing".to_owned(), 2));
        assert_eq!(error("nonsense").1, 1);
        assert_eq!(error("role:"), ("role: has no value".to_owned(), 1));
        for deep in ["not ", "("].map(|word| word.repeat(1000)) {
            assert!(parse(&deep).expect_err("wrong").message.contains("deep"));
        }
    }
}
