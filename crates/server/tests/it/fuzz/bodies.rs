//! Generates values that match schemas in the OpenAPI document.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::known::Known;
use crate::contract::document;

/// Maximum depth. Nothing in the document nests deeper.
const DEEPEST: usize = 8;

/// Draws random values from schemas.
pub struct Bodies<'a> {
    pub rng: &'a mut SmallRng,
    pub known: &'a Known,
    /// The lease in the request's path.
    pub lease: Option<&'a str>,
}

impl Bodies<'_> {
    /// Draws a value for the field `name`.
    pub fn value(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = document().pointer(&reference[1..]).expect("references lead somewhere");
            return self.value(name, target, depth + 1);
        }
        for alternatives in ["oneOf", "anyOf"] {
            if let Some(one) = schema[alternatives].as_array().and_then(|all| all.choose(self.rng)) {
                return self.value(name, one, depth + 1);
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut all = Map::new();
            for part in parts {
                all.extend(self.value(name, part, depth + 1).as_object().cloned().unwrap_or_default());
            }
            return Value::Object(all);
        }
        if let Some(one) = schema["enum"].as_array().and_then(|all| all.choose(self.rng)) {
            return one.clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.choose(self.rng).and_then(Value::as_str).unwrap_or_default(),
            kind => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "object" => Value::Object(self.object(schema, depth)),
            "array" if name == "reservations" && schema["items"]["$ref"].is_null() => self.changes(),
            "array" => {
                let number = self.rng.random_range(0..3);
                (0..number).map(|_| self.value(name, &schema["items"], depth + 1)).collect()
            }
            "string" => json!(self.text(name)),
            "integer" => json!(self.integer(name, schema["minimum"].as_i64().unwrap_or(0))),
            "number" => json!(self.rng.random_range(0.0..2.0)),
            "boolean" => json!(self.rng.random_bool(0.5)),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let empty = Vec::new();
        let required = schema["required"].as_array().unwrap_or(&empty);
        let mut fields = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            // Hosts rarely match these fields, but most leases should be granted. Few of them are active.
            let choosy = ["region", "extra_specs", "image_properties", "scheduler_hints"];
            let choosy = choosy.contains(&name.as_str());
            let chance = if choosy { 0.1 } else { 0.4 };
            if required.iter().any(|one| one == name) || self.rng.random_bool(chance) {
                fields.insert(name.clone(), self.value(name, property, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.rng.random_range(0..3) {
                let name = ["rack", "gpu", "a", "resources:CUSTOM_X", "trait:T", "hw:x"].choose(self.rng);
                let name = name.copied().unwrap_or_default();
                fields.insert(name.to_owned(), self.value(name, &schema["additionalProperties"], depth + 1));
            }
        }
        fields
    }

    fn changes(&mut self) -> Value {
        let number = self.rng.random_range(0..3);
        (0..number).map(|_| self.known.change_of_reservation(self.lease, self.rng)).collect()
    }

    fn text(&mut self, name: &str) -> String {
        if let Some(known) = self.known.named(name, self.rng).filter(|_| name.ends_with("_id")) {
            return known;
        }
        if matches!(name, "lease" | "reservation")
            && let Some(known) = self.known.named(&format!("{name}_id"), self.rng)
        {
            return known;
        }
        let pool: &[&str] = match name {
            "start_date" if self.rng.random_bool(0.5) => &["now"],
            "start_date" => return self.date(&[0, 0, 5, 20]),
            "end_date" => return self.date(&[3, 8, 23, 48]),
            "before_end_date" => return self.date(&[1, 6, 21]),
            "resource_properties" | "hypervisor_properties" => &[
                "",
                "[]",
                "[\"==\", \"$rack\", \"r1\"]",
                "[\"or\", [\">=\", \"$vcpus\", 8], [\"not\", [\"in\", \"$rack\", \"r2\", \"r3\"]]]",
            ],
            "region" => &["", "", "", "north"],
            "availability_zone" => &["", "", "r1", "r2"],
            "id" => &["1", "2", "3", "4", "f1", "f2"],
            "rack" => &["r1", "r2"],
            "network_id" | "floating_network_id" => &["public", "public", "public", "private"],
            "floating_ip_address" | "required_floatingips" => {
                &["203.0.113.200", "203.0.113.201", "203.0.113.202", "203.0.113.5"]
            }
            "end_action" => &["delete", "keep", "snapshot", "migrate"],
            "before_end" => &["default", "snapshot", ""],
            "resources:CUSTOM_X" => &["1", "0", "18446744073709551615"],
            "trait:T" => &["required", "forbidden"],
            _ => &["a", "b", "c"],
        };
        (*pool.choose(self.rng).expect("no pool is empty")).to_owned()
    }

    fn date(&mut self, hours: &[i64]) -> String {
        let hours = hours.choose(self.rng).copied().unwrap_or_default();
        self.known.date(hours, self.rng)
    }

    fn integer(&mut self, name: &str, least: i64) -> i64 {
        match name {
            "memory_mb" | "ram" => *[512, 4096, 65_536].choose(self.rng).expect("some"),
            "max" => self.rng.random_range(least..6),
            _ => self.rng.random_range(least..4),
        }
    }
}
