//! Requirements other than expressions: their options, and how they are shown.

use std::collections::BTreeMap;

use api::v1::body::{ReservationChange, ReservationCreate};
use clap::Args;
use serde_json::Value;

use super::amount::Amount;
use crate::client::name_value::name_value;
use crate::client::sizes::{gibibytes, mebibytes};
use crate::client::wire::{Reservation, plain};

/// Requirements on each host, and on all hosts of a reservation together.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Requirements on whole hosts")]
pub(super) struct Suiting {
    /// Region of the hosts
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Availability zone of the hosts
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Minimum number of virtual CPUs of each host
    #[arg(long, value_name = "N")]
    host_vcpus: Option<u32>,
    /// Minimum memory of each host: 4096, 512M, 4G
    #[arg(long, value_name = "MIB", value_parser = mebibytes)]
    host_memory: Option<u32>,
    /// Minimum disk of each host: 20, 20G, 1T
    #[arg(long, value_name = "GIB", value_parser = gibibytes)]
    host_disk: Option<u32>,
    /// All hosts have the same CPUs and hypervisor
    #[arg(long)]
    alike: bool,
    /// All hosts have the same value of this property, such as `cpu_mhz`; can be repeated
    #[arg(long, value_name = "PROPERTY")]
    alike_in: Vec<String>,
    /// Keep the requested capacity if one of these fails: `host`, or a location property of hosts such as
    /// `rack`
    #[arg(long, value_name = "DOMAIN", help_heading = "Reservations")]
    pub(super) survive: Option<String>,
    /// Extra spec of Nova, such as `capabilities:cpu_info:arch=x86_64` or `vcpus=>= 16`; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    extra_spec: Vec<(String, String)>,
    /// Property of the image that the hosts will run, such as `hw_architecture=x86_64`; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    image_property: Vec<(String, String)>,
}

impl Suiting {
    /// Whether an option is set that only applies to whole hosts.
    pub(super) fn is_of_hosts(&self) -> bool {
        let Self {
            region,
            zone,
            host_vcpus,
            host_memory,
            host_disk,
            alike,
            alike_in,
            survive: _,
            extra_spec,
            image_property,
        } = self;
        let names = region.is_some() || zone.is_some();
        let sizes = host_vcpus.is_some() || host_memory.is_some() || host_disk.is_some();
        let together = *alike || !alike_in.is_empty();
        names || sizes || together || !extra_spec.is_empty() || !image_property.is_empty()
    }

    /// Reservation of `amount` hosts with these requirements.
    pub(super) fn hosts(
        &self,
        amount: Amount,
        requirement: String,
        before_end: Option<String>,
    ) -> ReservationCreate {
        ReservationCreate::Hosts {
            min: amount.min,
            max: amount.max,
            hypervisor_properties: Some(String::new()),
            resource_properties: Some(requirement),
            before_end,
            region: self.region.clone(),
            availability_zone: self.zone.clone(),
            vcpus: self.host_vcpus,
            memory_mib: self.host_memory,
            disk_gib: self.host_disk,
            homogeneous: self.alike,
            alike: self.alike_in.clone(),
            survives: self.survive.clone(),
            extra_specs: texts(&self.extra_spec),
            image_properties: texts(&self.image_property),
            pool_name: None,
        }
    }

    /// Change of a reservation of whole hosts. Options that aren't set change nothing.
    pub(super) fn change(&self, id: String) -> ReservationChange {
        let said = |pairs: &[(String, String)]| (!pairs.is_empty()).then(|| texts(pairs));
        ReservationChange {
            id,
            region: self.region.clone(),
            availability_zone: self.zone.clone(),
            vcpus: self.host_vcpus,
            memory_mib: self.host_memory,
            disk_gib: self.host_disk,
            homogeneous: self.alike.then_some(true),
            alike: (!self.alike_in.is_empty()).then(|| self.alike_in.clone()),
            survives: self.survive.clone(),
            extra_specs: said(&self.extra_spec),
            image_properties: said(&self.image_property),
            ..ReservationChange::default()
        }
    }
}

fn texts(pairs: &[(String, String)]) -> BTreeMap<String, String> {
    pairs.iter().cloned().collect()
}

/// Summarizes the requirements of a reservation other than its expression.
pub(super) fn shown(reservation: &Reservation) -> String {
    let field = |name: &str| reservation.fields.get(name).filter(|value| !value.is_null());
    let mut words = of_hosts(reservation);
    words.extend(field("survives").map(|domain| format!("surviving the loss of a {}", plain(domain))));
    words.join(", ")
}

fn of_hosts(reservation: &Reservation) -> Vec<String> {
    let mut words = Vec::new();
    if reservation.resource_type != "physical:host" {
        return words;
    }
    let field = |name: &str| reservation.fields.get(name).filter(|value| !value.is_null());
    for (name, before, after) in [
        ("region", "region ", ""),
        ("availability_zone", "zone ", ""),
        ("vcpus", "at least ", " vCPU"),
        ("memory_mib", "at least ", " MiB"),
        ("disk_gib", "at least ", " GiB"),
    ] {
        words.extend(field(name).map(|value| format!("{before}{}{after}", plain(value))));
    }
    if field("homogeneous") == Some(&Value::Bool(true)) {
        words.push("all alike".to_owned());
    }
    let alike = field("alike").and_then(Value::as_array).into_iter().flatten();
    words.extend(alike.map(|name| format!("same {}", plain(name))));
    for name in ["extra_specs", "image_properties"] {
        let texts = field(name).and_then(Value::as_object).into_iter().flatten();
        words.extend(texts.map(|(key, value)| format!("{key}={}", plain(value))));
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_for_is_shown_in_a_few_words() {
        let reservation = json!({
            "id": "r", "resource_type": "physical:host", "region": "north", "vcpus": 16, "homogeneous": true,
            "alike": ["cpu_mhz", "rack"], "survives": "rack", "extra_specs": {"ssd": "<in> yes"},
            "memory_mib": null,
        });
        let reservation: Reservation = serde_json::from_value(reservation).expect("a reservation");
        assert_eq!(
            shown(&reservation),
            "region north, at least 16 vCPU, all alike, same cpu_mhz, same rack, ssd=<in> yes, \
             surviving the loss of a rack"
        );
    }
}
