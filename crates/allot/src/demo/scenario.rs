//! Leases of the demo. Times are in hours, relative to the start of the demo.

use serde_json::{Value, json};

/// A lease request.
pub(super) struct Booking {
    pub project: &'static str,
    pub user: &'static str,
    pub name: &'static str,
    /// Time of the request.
    pub asked: f64,
    pub start: f64,
    pub end: f64,
    pub what: What,
}

/// Requested resources.
pub(super) enum What {
    /// Whole hosts. The requirement is an expression in the syntax of the API.
    Hosts {
        min: u32,
        max: u32,
        requirement: &'static str,
    },
    /// Capacity for instances, each on its own host if `apart`.
    Instances {
        amount: u32,
        vcpus: u32,
        memory_mb: u32,
        apart: bool,
    },
    Flavor {
        amount: u32,
        flavor: &'static str,
    },
    Addresses {
        amount: u32,
    },
}

impl What {
    /// The JSON of the reservation in a request.
    pub(super) fn reservation(&self) -> Value {
        match self {
            Self::Hosts { min, max, requirement } => json!({
                "resource_type": "physical:host", "min": min, "max": max,
                "hypervisor_properties": "", "resource_properties": requirement,
            }),
            Self::Instances { amount, vcpus, memory_mb, apart } => json!({
                "resource_type": "virtual:instance", "amount": amount, "vcpus": vcpus, "memory_mb": memory_mb,
                "disk_gb": 20, "affinity": apart.then_some(false), "resource_properties": ON_ORDINARY,
            }),
            Self::Flavor { amount, flavor } => json!({
                "resource_type": "flavor:instance", "amount": amount, "flavor_id": flavor, "affinity": null,
            }),
            Self::Addresses { amount } => json!({
                "resource_type": "virtual:floatingip", "amount": amount, "network_id": "public",
            }),
        }
    }
}

const ON_ORDINARY: &str = r#"["==", "$cpu", "epyc-milan"]"#;
const WITH_GPU: &str = r#"["==", "$gpu", "a100"]"#;
const MUCH_MEMORY: &str = r#"[">=", "$memory_mb", "1000000"]"#;

const fn hosts(min: u32, max: u32, requirement: &'static str) -> What {
    What::Hosts { min, max, requirement }
}

macro_rules! booking {
    ($asked:literal: $project:literal $user:literal $name:literal $start:literal..$end:literal $what:expr) => {
        Booking {
            project: $project,
            user: $user,
            name: $name,
            asked: $asked,
            start: $start,
            end: $end,
            what: $what,
        }
    };
}

/// In order of their requests.
pub(super) const BOOKINGS: [Booking; 18] = [
    booking!(-72.0: "physics" "ann" "thermal-runs" -70.0..-46.0 hosts(4, 4, ON_ORDINARY)),
    booking!(-71.0: "genomics" "bo" "assembly-1" -60.0..-31.0 hosts(3, 3, MUCH_MEMORY)),
    booking!(-65.0: "ml" "cy" "resnet" -50.0..-14.0 hosts(2, 4, WITH_GPU)),
    booking!(-60.0: "course" "eve" "lab-1" -26.0..-22.0 hosts(4, 4, WITH_GPU)),
    booking!(-44.0: "web" "dee" "ci-runners" -20.0..52.0
        What::Instances { amount: 24, vcpus: 8, memory_mb: 16_384, apart: false }),
    booking!(-40.0: "course" "eve" "lab-2" 22.0..26.0 hosts(4, 4, WITH_GPU)),
    booking!(-40.0: "course" "eve" "lab-3" 46.0..50.0 hosts(4, 4, WITH_GPU)),
    booking!(-30.0: "physics" "ann" "lattice" -18.0..40.0 hosts(3, 3, ON_ORDINARY)),
    booking!(-20.0: "ml" "cy" "llm-finetune" -9.0..31.0 hosts(3, 3, WITH_GPU)),
    booking!(-12.0: "web" "dee" "public-addresses" -11.0..80.0 What::Addresses { amount: 4 }),
    booking!(-10.0: "web" "dee" "shop-canary" -2.0..10.0
        What::Instances { amount: 2, vcpus: 4, memory_mb: 8_192, apart: true }),
    booking!(-8.0: "genomics" "bo" "assembly-2" 0.1..34.0 hosts(3, 4, MUCH_MEMORY)),
    booking!(-6.0: "physics" "ann" "quick-check" -1.0..0.2 hosts(2, 2, MUCH_MEMORY)),
    booking!(-5.0: "ml" "cy" "inference" 0.3..60.0 What::Flavor { amount: 4, flavor: "m1.large" }),
    booking!(-4.0: "ml" "cy" "resnet-again" 36.0..72.0 hosts(4, 6, WITH_GPU)),
    booking!(-3.0: "physics" "ann" "lattice-2" 54.0..96.0 hosts(2, 4, ON_ORDINARY)),
    booking!(-2.0: "genomics" "bo" "assembly-3" 40.0..88.0 hosts(4, 4, MUCH_MEMORY)),
    booking!(-1.0: "web" "dee" "load-test" 0.6..2.0 hosts(1, 1, "")),
];
