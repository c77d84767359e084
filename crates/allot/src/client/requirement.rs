//! Requirements on hosts in a short form: `rack=r1 and vcpus>=16`.
//!
//! The service reads JSON lists such as `["==", "$rack", "r1"]`. Text that begins with `[` is passed on. All
//! other text is parsed with this grammar:
//!
//! ```text
//! expression := term { "or" term }
//! term       := factor { "and" factor }
//! factor     := "not" factor | "(" expression ")" | comparison
//! comparison := name ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") value | name "in" values
//! values     := value { "," value } | "(" value { "," value } ")"
//! ```
//!
//! Names and values that contain spaces or are keywords must be quoted.

use serde_json::{Value, json};

use super::ClientError;

/// Maximum nesting of parentheses and `not`, which is also the service's limit.
const MAX_DEPTH: usize = 32;

/// Converts a requirement to the service's JSON.
pub(crate) fn parse(text: &str) -> Result<String, ClientError> {
    let text = text.trim();
    let wrong = |reason: String| ClientError::Usage(format!("--where {text:?}: {reason}"));
    if text.is_empty() {
        return Ok(String::new());
    }
    if text.starts_with('[') {
        let read: Result<Value, _> = serde_json::from_str(text);
        return read.map(|value| value.to_string()).map_err(|error| wrong(error.to_string()));
    }
    let mut parser = Parser { tokens: tokens(text).map_err(wrong)?, position: 0, depth: 0 };
    let expression = parser.expression().map_err(wrong)?;
    match parser.peek() {
        None => Ok(expression.to_string()),
        Some(token) => Err(wrong(format!("{} comes unexpectedly", token.shown()))),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// A quoted name or value.
    Quoted(String),
    Operator(&'static str),
    Open,
    Close,
    Comma,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("{word:?}"),
            Self::Quoted(text) => format!("{text:?}"),
            Self::Operator(operator) => format!("{operator:?}"),
            Self::Open => "\"(\"".to_owned(),
            Self::Close => "\")\"".to_owned(),
            Self::Comma => "\",\"".to_owned(),
        }
    }
}

/// Longer operators come before their prefixes, since the first match is used.
const OPERATORS: [(&str, &str); 7] =
    [("==", "=="), ("!=", "!="), ("<=", "<="), (">=", ">="), ("=", "=="), ("<", "<"), (">", ">")];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let single = match first {
            '(' => Some(Token::Open),
            ')' => Some(Token::Close),
            ',' => Some(Token::Comma),
            _ => None,
        };
        if let Some(token) = single {
            tokens.push(token);
            rest = &rest[1..];
        } else if let Some((symbol, operator)) = OPERATORS.iter().find(|(symbol, _)| rest.starts_with(symbol))
        {
            tokens.push(Token::Operator(operator));
            rest = &rest[symbol.len()..];
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or("a quotation mark is not closed")?;
            tokens.push(Token::Quoted(rest[1..=end].to_owned()));
            rest = &rest[end + 2..];
        } else {
            let ends = |letter: char| letter.is_whitespace() || "()=<>!,\"'".contains(letter);
            let end = rest.find(ends).unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("{first:?} comes unexpectedly"));
            }
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token
    }

    fn takes(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word));
        self.position += usize::from(there);
        there
    }

    fn expression(&mut self) -> Result<Value, String> {
        self.joined("or", Self::term)
    }

    fn term(&mut self) -> Result<Value, String> {
        self.joined("and", Self::factor)
    }

    fn joined(&mut self, word: &str, part: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        let mut parts = vec![part(self)?];
        while self.takes(word) {
            parts.push(part(self)?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        parts.insert(0, json!(word));
        Ok(Value::Array(parts))
    }

    fn factor(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("requirements can be nested at most {MAX_DEPTH} deep"));
        }
        let factor = if self.takes("not") {
            json!(["not", self.factor()?])
        } else if self.peek() == Some(&Token::Open) {
            self.position += 1;
            let inner = self.expression()?;
            match self.next() {
                Some(Token::Close) => inner,
                _ => return Err("a bracket is not closed".to_owned()),
            }
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(factor)
    }

    fn comparison(&mut self) -> Result<Value, String> {
        let (name, property) = match self.next() {
            Some(Token::Word(name)) => (name.clone(), format!("${}", name.trim_start_matches('$'))),
            Some(Token::Quoted(name)) if !name.is_empty() => (name.clone(), format!("${name}")),
            Some(token) => return Err(format!("a property's name is missing before {}", token.shown())),
            None => return Err("a property's name is missing at the end".to_owned()),
        };
        if self.takes("in") {
            let mut list = vec![json!("in"), json!(property)];
            list.extend(self.values(&name)?.into_iter().map(Value::from));
            return Ok(Value::Array(list));
        }
        match self.next() {
            Some(Token::Operator(operator)) => Ok(json!([operator, property, self.value(&name)?])),
            _ => Err(format!(
                "{name:?} is compared with nothing: write {name}=VALUE, {name}>=NUMBER or {name} in A,B; a name or a \
                 value with blanks stands between quotation marks, as \"gpu model\"=\"A100 80GB\""
            )),
        }
    }

    /// Values between commas, with brackets around them or without.
    fn values(&mut self, name: &str) -> Result<Vec<String>, String> {
        let bracket = self.peek() == Some(&Token::Open);
        self.position += usize::from(bracket);
        let mut values = vec![self.value(name)?];
        while self.peek() == Some(&Token::Comma) {
            self.position += 1;
            values.push(self.value(name)?);
        }
        match bracket.then(|| self.next()) {
            None | Some(Some(Token::Close)) => Ok(values),
            _ => Err("a bracket is not closed".to_owned()),
        }
    }

    fn value(&mut self, name: &str) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(value) | Token::Quoted(value)) if !value.is_empty() => Ok(value),
            _ => Err(format!("the value of {name:?} is missing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn parsed(text: &str) -> String {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_short_form_becomes_what_the_service_reads() {
        let cases = [
            ("rack=r1", r#"["==","$rack","r1"]"#),
            ("vcpus >= 16", r#"[">=","$vcpus","16"]"#),
            ("rack=r1 and vcpus>=16", r#"["and",["==","$rack","r1"],[">=","$vcpus","16"]]"#),
            ("a=1 and b=2 or c!=3", r#"["or",["and",["==","$a","1"],["==","$b","2"]],["!=","$c","3"]]"#),
            ("a=1 and (b=2 or c=3)", r#"["and",["==","$a","1"],["or",["==","$b","2"],["==","$c","3"]]]"#),
            ("not gpu=none", r#"["not",["==","$gpu","none"]]"#),
            ("gpu in A100, H100", r#"["in","$gpu","A100","H100"]"#),
            ("rack in (r1,r2)", r#"["in","$rack","r1","r2"]"#),
            ("(rack in ( r1 )) and a=1", r#"["and",["in","$rack","r1"],["==","$a","1"]]"#),
            (r#""gpu model"="A100 80GB""#, r#"["==","$gpu model","A100 80GB"]"#),
            (r#"not 'gpu model' in ("A100 80GB",H100)"#, r#"["not",["in","$gpu model","A100 80GB","H100"]]"#),
            (
                r#""and"=1 and "not"!=2 or "in" in 3"#,
                r#"["or",["and",["==","$and","1"],["!=","$not","2"]],["in","$in","3"]]"#,
            ),
            (r#""$x"=1"#, r#"["==","$$x","1"]"#),
            (
                "cpu=\"EPYC 9354\" AND $arch.bits='64'",
                r#"["and",["==","$cpu","EPYC 9354"],["==","$arch.bits","64"]]"#,
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(parsed(text), wanted, "{text}");
        }
    }

    #[test]
    fn json_is_passed_on() {
        assert_eq!(parsed(r#" ["==", "$rack", "r1"] "#), r#"["==","$rack","r1"]"#);
        assert_eq!(parsed(""), "");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let cases = [
            ("rack", "compared with nothing"),
            ("rack=", "value of \"rack\" is missing"),
            ("=r1", "name is missing"),
            ("''=r1", "name is missing"),
            ("gpu model=A100", "between quotation marks"),
            ("rack in (r1,r2", "not closed"),
            ("rack in (r1,)", "value of \"rack\" is missing"),
            ("rack in ()", "value of \"rack\" is missing"),
            ("rack in (r1 or r2)", "not closed"),
            ("rack=r1 and", "missing at the end"),
            ("(rack=r1", "not closed"),
            ("rack=r1)", "unexpectedly"),
            ("rack='r1", "quotation mark"),
            ("rack=r1 cpu=x", "unexpectedly"),
            ("rack ! r1", "unexpectedly"),
            ("[\"==\"", "EOF"),
        ];
        for (text, wanted) in cases {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(parse(&"(".repeat(100_000)).is_err());
    }

    /// Expressions as JSON. Names and values can be written without escapes, which the short form doesn't
    /// have.
    fn expressions() -> impl Strategy<Value = Value> {
        let name = || r"\$?[a-z][a-z0-9_.:/-]{0,5}".prop_filter("a word of the language", |name| !word(name));
        let value = || "[^\"]{1,6}";
        let operator = select(vec!["==", "!=", "<", "<=", ">", ">="]);
        let dollar = |name: String| format!("${}", name.trim_start_matches('$'));
        let compare = (operator, name(), value())
            .prop_map(move |(operator, name, value)| json!([operator, dollar(name), value]));
        let one_of = (name(), vec(value(), 1..4)).prop_map(move |(name, values)| {
            Value::Array(
                [json!("in"), json!(dollar(name))]
                    .into_iter()
                    .chain(values.into_iter().map(Value::from))
                    .collect(),
            )
        });
        prop_oneof![compare, one_of].prop_recursive(5, 24, 4, |inner| {
            let joined = |word: &'static str| {
                vec(inner.clone(), 2..4)
                    .prop_map(move |parts| Value::Array(std::iter::once(json!(word)).chain(parts).collect()))
            };
            prop_oneof![joined("and"), joined("or"), inner.clone().prop_map(|part| json!(["not", part]))]
        })
    }

    fn word(name: &str) -> bool {
        ["and", "or", "not", "in"].contains(&name.to_ascii_lowercase().as_str())
    }

    /// Writes an expression in the short form, with parentheses around every part.
    fn written(expression: &Value) -> String {
        let parts = expression.as_array().expect("a list");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let quoted = |value: &Value| format!("\"{}\"", text(value));
        match (text(&parts[0]).as_str(), &parts[1..]) {
            ("not", [part]) => format!("not ({})", written(part)),
            (word @ ("and" | "or"), parts) => parts
                .iter()
                .map(|part| format!("({})", written(part)))
                .collect::<Vec<_>>()
                .join(&format!(" {word} ")),
            ("in", [name, values @ ..]) => {
                format!("{} in {}", text(name), values.iter().map(quoted).collect::<Vec<_>>().join(","))
            }
            (operator, [name, value]) => format!("{}{operator}{}", text(name), quoted(value)),
            _ => unreachable!("no such expression is made"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn what_is_written_in_the_short_form_is_read_as_what_was_meant(expression in expressions()) {
            prop_assert_eq!(parsed(&written(&expression)), expression.to_string());
        }

        #[test]
        fn what_the_service_writes_in_the_short_form_is_read_as_what_was_meant(expression in expressions()) {
            let requirement = store::encoding::requirement_from_json(&expression).expect("a requirement");
            prop_assert_eq!(parsed(&requirement.to_string()), expression.to_string());
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in prop_oneof!["(?s).{0,40}", r#"([a-c]|\$|=|!|<|>|\(|\)|,|'|"| (and|or|not|in) ){0,30}"#],
        ) {
            if let Ok(read) = parse(&text) {
                prop_assert!(read.is_empty() || serde_json::from_str::<Value>(&read).is_ok());
            }
        }
    }
}
