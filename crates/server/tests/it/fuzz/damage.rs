//! Makes requests invalid.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

/// A value that is out of place in most fields.
fn odd_value(rng: &mut SmallRng) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(-0.0),
        json!(4_294_967_295_u32),
        json!(4_294_967_296_u64),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e308),
        json!([]),
        json!({}),
        json!([[[[]]]]),
        json!({"id": {"id": []}}),
        json!(odd_text(rng)),
    ];
    values.choose(rng).cloned().unwrap_or_default()
}

/// A text that is out of place in most fields.
pub fn odd_text(rng: &mut SmallRng) -> String {
    let texts = [
        "",
        " ",
        "\0",
        "a\0b",
        "\u{1a}0",
        "\u{feff}x",
        "\u{202e}evil",
        "e\u{301}\u{301}\u{301}",
        "𝔘🏳\u{200d}🌈",
        "\u{ffff}",
        "NaN",
        "Infinity",
        "-1",
        "4294967296",
        "99999999999999999999999999",
        "1e3",
        "None",
        "now",
        "9999-12-31 23:59",
        "9999-12-30 22:00",
        "0000-01-01 00:00",
        "-9999-01-01 00:00",
        "2030-02-30 10:00",
        "2030-01-01T10:00:00Z",
        "2030-01-01 10:00 ",
        "٢٠٣٠-٠١-٠١ ١٠:٠٠",
        "' OR 1=1 --",
        "%00",
        "../../etc/passwd",
        "{\"a\":1}",
        "[\"not\",[\"not\",[\"==\",\"$a\",\"\"]]]",
        "[\"==\",\"$\",1e999]",
        "::ffff:203.0.113.200",
        "00000000-0000-0000-0000-000000000000",
        "18446744073709551615",
    ];
    if rng.random_bool(0.1) {
        let letters = ["x", "é", "[", "[\"not\",", "9", "🏳"];
        return letters.choose(rng).copied().unwrap_or_default().repeat(rng.random_range(50..20_000));
    }
    texts.choose(rng).copied().unwrap_or_default().to_owned()
}

/// Damages a value at a random place.
pub fn spoil(value: &mut Value, rng: &mut SmallRng) {
    let here = rng.random_bool(0.08);
    match value {
        Value::Object(fields) if !here && !fields.is_empty() => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = names.choose(rng).cloned().unwrap_or_default();
            match rng.random_range(0..8) {
                0 => {
                    fields.remove(&name);
                }
                1 => {
                    let extra =
                        ["id", "status", "project_id", "user_id", "created_at", "x", "", "min", "trust_id"];
                    let extra = extra.choose(rng).copied().unwrap_or_default();
                    fields.insert(extra.to_owned(), odd_value(rng));
                }
                2 => {
                    let moved = fields.remove(&name).unwrap_or_default();
                    fields.insert(odd_text(rng), moved);
                }
                _ => spoil(&mut fields[&name], rng),
            }
        }
        Value::Array(items) if !here && !items.is_empty() => {
            let position = rng.random_range(0..items.len());
            match rng.random_range(0..6) {
                0 => {
                    items.remove(position);
                }
                1 => {
                    let times = *[1, 2, 60].choose(rng).unwrap_or(&1);
                    items.extend(vec![items[position].clone(); times]);
                }
                _ => spoil(&mut items[position], rng),
            }
        }
        other => *other = odd_value(rng),
    }
}

/// The value as text. In one of ten cases the text is damaged, and possibly invalid JSON.
pub fn written(value: &Value, rng: &mut SmallRng) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    if rng.random_bool(0.9) {
        return text;
    }
    let at = rng.random_range(0..=text.len());
    match rng.random_range(0..8) {
        0 => text.truncate(at),
        1 => text.insert(at, rng.random()),
        2 => text = [b"\xef\xbb\xbf", &text[..]].concat(),
        3 => text = [&text[..], b"{}"].concat(),
        4 => text = b"[".repeat(rng.random_range(1..100_000)),
        5 => text = String::from_utf8_lossy(&text).replacen(':', ":1e999,\"x\":", 1).into_bytes(),
        // A duplicate field.
        6 => text = String::from_utf8_lossy(&text).replacen('{', "{\"name\":\"twice\",", 1).into_bytes(),
        _ => text = String::from_utf8_lossy(&text).replacen('"', "\"\\ud800", 1).into_bytes(),
    }
    text
}
