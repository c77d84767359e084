//! Parses host properties that contain JSON into attributes. The `leases` crate doesn't know JSON.

use std::iter;

use leases::attributes::{Attribute, Attributes};
use leases::host::Host;
use serde_json::Value;

/// Attributes from `cpu_info` and from those extra capabilities that are JSON lists or objects.
pub(crate) fn attributes_of(host: &Host) -> Attributes {
    let texts = host.capabilities.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let described =
        texts.chain(iter::once(("cpu_info", host.cpu_info.as_str()))).filter_map(|(name, text)| {
            // Most capabilities are plain words.
            if !text.trim_start().starts_with(['{', '[']) {
                return None;
            }
            Some((name.to_owned(), attribute(serde_json::from_str(text).ok()?)?))
        });
    Attributes::new(described)
}

/// Returns `None` for null. The recursion is safe because `serde_json` limits the depth of nesting.
fn attribute(value: Value) -> Option<Attribute> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(truth) => Attribute::Text(if truth { "True" } else { "False" }.to_owned()),
        Value::Number(number) => Attribute::Text(number.to_string()),
        Value::String(text) => Attribute::Text(text),
        Value::Array(items) => Attribute::List(items.into_iter().filter_map(attribute).collect()),
        Value::Object(parts) => Attribute::Parts(
            parts.into_iter().filter_map(|(name, part)| Some((name, attribute(part)?))).collect(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use leases::extra_specs::{ExtraSpecs, Judge};
    use leases::ids::HostId;

    use super::*;

    fn passes(host: &Host, key: &str, value: &str) -> bool {
        let specs = ExtraSpecs::new([(key.to_owned(), value.to_owned())]).expect("well formed");
        specs.pass(Judge::Capabilities, host) && specs.pass(Judge::Aggregates, host)
    }

    #[test]
    fn cls_06_what_cpu_info_and_capabilities_describe_can_be_asked_for() {
        let mut host = Host::new(HostId(1), "node1", 16, 65_536, 1000);
        host.cpu_info =
            r#"{"arch": "x86_64", "topology": {"cores": 8, "smt": true}, "features": ["avx"], "x": null}"#
                .into();
        host.capabilities.insert("racks".into(), r#"["r1", "r2"]"#.into());
        host.capabilities.insert("broken".into(), "{".into());
        host.attributes = attributes_of(&host);
        for (key, value, expected) in [
            ("capabilities:cpu_info:arch", "x86_64", true),
            ("capabilities:cpu_info:topology:cores", ">= 8", true),
            ("capabilities:cpu_info:topology:smt", "True", true),
            ("capabilities:cpu_info:features", "<in> avx", true),
            ("capabilities:cpu_info:x", "None", false),
            ("capabilities:broken:x", "1", false),
            ("aggregate_instance_extra_specs:racks", "r2", true),
            ("broken", "{", true),
        ] {
            assert_eq!(passes(&host, key, value), expected, "{key}={value}");
        }
    }
}
