//! Payloads of notifications. Their size is bounded, however large the lease is.
//!
//! Ordinary payloads are complete. A long text is replaced by a reference, by which a listener can recognize the text
//! in an API response. A long list is truncated: `hosts` then has the first hosts, and `hosts_count` the number of all
//! hosts.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Maximum size of a payload in bytes.
pub(crate) const LARGEST: usize = 12 * 1024;

/// Maximum number of fields of an object. Objects of the API have fewer; larger ones are made by clients, such as extra
/// specs.
const FIELDS: usize = 32;

/// Limits up to which values are written in full.
#[derive(Clone, Copy)]
struct Detail {
    /// Maximum length of a text in bytes.
    text: usize,
    /// Maximum number of entries of a list.
    entries: usize,
}

/// Levels of detail, tried in this order until the payload is small enough.
const DETAILS: [Detail; 5] = [
    Detail { text: 256, entries: 100 },
    Detail { text: 256, entries: 30 },
    Detail { text: 256, entries: 10 },
    Detail { text: 64, entries: 3 },
    Detail { text: 64, entries: 0 },
];

/// Serializes a payload. `path` is the API path of the object that it describes.
pub(crate) fn write(value: &Value, path: &str) -> String {
    for detail in DETAILS {
        let text = shortened(value, detail, path).to_string();
        if text.len() <= LARGEST {
            return text;
        }
    }
    let is_plain = |value: &Value| !value.is_array() && !value.is_object();
    let fields = value.as_object().into_iter().flatten().filter(|(_, value)| is_plain(value)).take(FIELDS);
    let plain: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    shortened(&Value::Object(plain), DETAILS[DETAILS.len() - 1], path).to_string()
}

fn shortened(value: &Value, detail: Detail, path: &str) -> Value {
    match value {
        Value::String(text) => reference(text, detail, path).into(),
        Value::Array(entries) => {
            entries.iter().take(detail.entries).map(|entry| shortened(entry, detail, path)).collect()
        }
        Value::Object(fields) => {
            let mut short = Map::new();
            for (name, value) in fields.iter().take(FIELDS) {
                let (length, most) = match value {
                    Value::Array(entries) => (entries.len(), detail.entries),
                    Value::Object(fields) => (fields.len(), FIELDS),
                    _ => (0, 0),
                };
                let name = reference(name, detail, path);
                if length > most {
                    short.insert(format!("{name}_count"), length.into());
                }
                short.insert(name, shortened(value, detail, path));
            }
            Value::Object(short)
        }
        plain => plain.clone(),
    }
}

/// The text, or a reference if it is too long.
fn reference(text: &str, detail: Detail, path: &str) -> String {
    if text.len() <= detail.text {
        return text.to_owned();
    }
    format!("sha256:{:x} bytes:{} see:{path}", Sha256::digest(text), text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ordinary_payloads_are_written_in_full() {
        let value = json!({"name": "x".repeat(256), "hosts": vec!["host"; 100], "none": null, "on": true});
        assert_eq!(write(&value, "/v1/leases/1"), value.to_string());
    }

    #[test]
    fn long_text_is_replaced_by_its_hash_and_its_place() {
        // Computed by `printf 'x%.0s' $(seq 257) | sha256sum`.
        let digest = "15eb95a462ee20bd91a415ae2d4aed341288186ddaa2b37908f7d592f0c3f85f";
        let text = "x".repeat(257);
        let expected = json!({"query": format!("sha256:{digest} bytes:257 see:/v1/leases/1")});
        assert_eq!(write(&json!({"query": text}), "/v1/leases/1"), expected.to_string());
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let value = json!({"reservations": [{"hosts": vec!["host"; 1000], "floating_ips": ["10.0.0.1"]}]});
        let read: Value = serde_json::from_str(&write(&value, "/")).expect("JSON");
        let reservation = &read["reservations"][0];
        assert_eq!(reservation["hosts"], json!(vec!["host"; 100]));
        assert_eq!(reservation["hosts_count"], 1000);
        assert_eq!(reservation["floating_ips"], json!(["10.0.0.1"]));
        assert_eq!(reservation.get("floating_ips_count"), None);
    }

    #[test]
    fn no_payload_is_larger_than_the_limit() {
        let name = "\u{1f980}".repeat(255);
        let specs: Map<String, Value> =
            (0..100).map(|number| (format!("{name}{number}"), json!(name))).collect();
        let reservation = json!({
            "hosts": vec![name.clone(); 120], "resource_properties": "\"".repeat(16_384), "extra_specs": specs,
            "required_floatingips": vec!["2001:db8::1"; 500],
        });
        let hints = json!({"host": vec![name.clone(); 500], "query": name.repeat(16)});
        let of_lease = json!({
            "lease_id": "1", "name": name, "reservations": vec![reservation; 50], "scheduler_hints": hints,
        });
        let wide: Map<String, Value> =
            (0..40).map(|number| (format!("{name}{number}"), Value::Object(specs.clone()))).collect();
        for value in [of_lease, Value::Object(wide), json!(vec![vec![name; 40]; 40])] {
            let written = write(&value, "/v1/leases/00000000-0000-0000-0000-000000000000");
            assert!(written.len() <= LARGEST, "{}", written.len());
            let read: Value = serde_json::from_str(&written).expect("JSON");
            assert_eq!(read["lease_id"], value["lease_id"]);
        }
    }
}
