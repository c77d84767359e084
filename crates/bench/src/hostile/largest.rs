//! Expands request bodies to the largest legal input according to the API document.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Length of generated field names; names of capabilities have at most 64 characters.
const FIELD_LENGTH: usize = 60;
/// Number of values in an expression, one less than the limit.
const VALUES: usize = 499;
/// Length of each value in a long expression, and of the syntax around it.
const VALUE_LENGTH: usize = 240;
const AROUND: usize = 24;
/// Length of strings for which the API document sets no limit.
const UNLIMITED: usize = 16_384;

/// Expands the marks that [`super::bodies`] describes.
#[derive(Clone, Copy, Debug)]
pub struct Largest<'a> {
    pub document: &'a Value,
    pub hosts: usize,
    /// Fraction of the maximum list length. Less than 1 where the service also limits the product of several lists.
    pub scale: f64,
}

impl Largest<'_> {
    /// Expands the body of an operation. Variables stay in it.
    pub fn body(&self, operation: &str, template: &Value) -> Value {
        let (method, path) = operation.split_once(' ').unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let operation = &self.document["paths"][path][method.to_lowercase()];
        self.expand(template, &operation["requestBody"]["content"]["application/json"]["schema"], "")
    }

    fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.scale) as usize).max(1)
    }

    fn expand(&self, template: &Value, schema: &Value, field: &str) -> Value {
        let schema = self.resolved(schema, template);
        let limit = |name: &str, otherwise: usize| {
            schema[name].as_u64().map_or(otherwise, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        };
        match template {
            Value::String(mark) => match mark.as_str() {
                "$max" if schema["additionalProperties"].is_object() => {
                    Value::Object(self.fields(schema, limit("maxProperties", 0)))
                }
                "$max" => json!("x".repeat(limit("maxLength", 255))),
                "$expression" => json!(long_expression(limit("maxLength", UNLIMITED), field)),
                "$values" => json!(many_values()),
                "$hosts" => json!(self.hosts),
                text => json!(text),
            },
            Value::Array(items) => match (items.first().and_then(Value::as_str), items.get(1)) {
                (Some("$each"), Some(item)) => {
                    let count = self.scaled(limit("maxItems", 1));
                    let entry = |number| numbered(&self.expand(item, &schema["items"], field), number);
                    Value::Array((0..count).map(entry).collect())
                }
                (Some("$times"), Some(number)) => {
                    json!(self.scaled(number.as_u64().unwrap_or_default() as usize))
                }
                (Some("$share"), Some(number)) => {
                    json!((self.hosts / number.as_u64().unwrap_or(1) as usize).max(1))
                }
                _ => items.iter().map(|item| self.expand(item, &schema["items"], field)).collect(),
            },
            Value::Object(object) => {
                let mut expanded = Map::new();
                for (name, value) in object.iter().filter(|(name, _)| *name != "$rest") {
                    expanded.insert(name.clone(), self.expand(value, &schema["properties"][name], name));
                }
                if object.contains_key("$rest") {
                    let rest = limit("maxProperties", 1).saturating_sub(expanded.len());
                    expanded.extend(self.fields(schema, rest));
                }
                Value::Object(expanded)
            }
            other => other.clone(),
        }
    }

    fn fields(&self, schema: &Value, count: usize) -> Map<String, Value> {
        let length = schema["additionalProperties"]["maxLength"].as_u64().unwrap_or(255);
        let value = json!("x".repeat(length as usize));
        let name = |number: usize| format!("{:x<FIELD_LENGTH$}", format!("p{number}"));
        (0..self.scaled(count)).map(|number| (name(number), value.clone())).collect()
    }

    /// Follows references, and picks the alternative with the template's resource type.
    fn resolved<'a>(&'a self, schema: &'a Value, template: &Value) -> &'a Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let schema = self.document.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
            return self.resolved(schema, template);
        }
        let Some(alternatives) = schema["oneOf"].as_array() else { return schema };
        let of_type = |schema: &&Value| {
            let types = &schema["properties"]["resource_type"]["enum"];
            types.as_array().is_none_or(|types| types.contains(&template["resource_type"]))
        };
        let mut schemas = alternatives.iter().map(|schema| self.resolved(schema, template));
        schemas.find(of_type).unwrap_or(&Value::Null)
    }
}

fn numbered(value: &Value, number: usize) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{i}", &number.to_string())),
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), numbered(value, number))).collect()
        }
        other => other.clone(),
    }
}

/// An expression of nearly the maximum length. It differs in each request, because the service can store equal ones
/// only once.
fn long_expression(length: usize, field: &str) -> String {
    let mut words = vec![json!("or"), json!(["==", "$vcpus", "64"])];
    words.push(json!(["!=", "$capability2", format!("{field} {{user}} {{n}} {{i}}")]));
    for value in 0..length.saturating_sub(2 * VALUE_LENGTH) / (VALUE_LENGTH + AROUND) {
        words.push(json!(["!=", "$capability2", format!("{:x<VALUE_LENGTH$}", value)]));
    }
    Value::Array(words).to_string()
}

fn many_values() -> String {
    let mut words = vec![json!("in"), json!("$capability2")];
    words.extend((0..VALUES).map(|value| json!(value.to_string())));
    Value::Array(words).to_string()
}

/// A text with variables. It is split once, so that large bodies render quickly.
#[derive(Clone, Debug)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Variable(String),
}

impl Template {
    pub fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut written = 0;
        for (open, _) in text.match_indices('{') {
            let name: &str = &text[open + 1..];
            let end = name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
            if let Some(end) = end.filter(|&end| end > 0 && name[end..].starts_with('}')) {
                pieces.push(Piece::Text(text[written..open].to_owned()));
                pieces.push(Piece::Variable(name[..end].to_owned()));
                written = open + end + 2;
            }
        }
        pieces.push(Piece::Text(text[written..].to_owned()));
        Self(pieces)
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    pub fn render(&self, variables: &HashMap<String, String>) -> Result<String> {
        let mut text = String::new();
        for piece in &self.0 {
            text += match piece {
                Piece::Text(text) => text,
                Piece::Variable(name) => {
                    variables.get(name).with_context(|| format!("{{{name}}} stands for nothing"))?
                }
            };
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_as_large_as_the_document_allows() {
        let document = json!({
            "paths": {"/v1/things": {"post": {"requestBody": {"content": {"application/json": {
                "schema": {"$ref": "#/components/Thing"}}}}}}},
            "components": {"Thing": {"maxProperties": 3, "additionalProperties": {"maxLength": 2}, "properties": {
                "name": {"maxLength": 4},
                "list": {"maxItems": 4, "items": {"oneOf": [{"type": "null", "properties": {"resource_type":
                    {"enum": ["a"]}}}, {"properties": {"resource_type": {"enum": ["b"]}, "text": {"maxLength": 3}}}]}},
            }}},
        });
        let template = json!({"name": "$max", "list": ["$each", {"resource_type": "b", "text": "$max", "at": "{i}"}],
                              "hosts": "$hosts", "times": ["$times", 10]});
        let body = Largest { document: &document, hosts: 6, scale: 0.5 }
            .body("POST /v1/things?dry_run=true", &template);
        let entry = |at: &str| json!({"resource_type": "b", "text": "xxx", "at": at});
        let expected = json!({"name": "xxxx", "list": [entry("0"), entry("1")], "hosts": 6, "times": 5});
        assert_eq!(body, expected);
        let rest = Largest { document: &document, hosts: 6, scale: 1.0 }
            .body("POST /v1/things", &json!({"$rest": ""}));
        assert_eq!(rest.as_object().unwrap().len(), 3);
    }

    #[test]
    fn variables_are_replaced_and_other_braces_stay() {
        let template = Template::new(r#"{"id": "{lease_id}", "of": {"x": "{i"}}"#);
        assert_eq!(template.variables().collect::<Vec<_>>(), ["lease_id"]);
        let variables = HashMap::from([("lease_id".to_owned(), "7".to_owned())]);
        assert_eq!(template.render(&variables).unwrap(), r#"{"id": "7", "of": {"x": "{i"}}"#);
        assert!(template.render(&HashMap::new()).is_err());
    }

    #[test]
    fn a_long_expression_stays_below_the_limit() {
        assert!(long_expression(16_384, "resource_properties").len() < 16_384 - 60);
    }
}
