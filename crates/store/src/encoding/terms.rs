//! Terms of reservations as JSON documents.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use leases::extra_specs::ExtraSpecs;
use leases::failure_domain::FailureDomain;
use leases::host::NetworkId;
use leases::lease_pool::{LeasePool, Ratio, Ratios};
use leases::properties::{HostProperties, ImageProperties};
use leases::requirement::Requirement;
use leases::terms::{
    Affinity, BeforeEndAction, Flavor, FlavorTerms, FlavorTraits, FloatingIpsTerms, HostsTerms,
    InstanceExtras, InstanceSize, InstancesTerms, ReservationTerms, TermsError,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Unreadable, amounts, from_json, json, requirement_from_json, requirement_json, resources};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
enum Document {
    #[serde(rename = "physical:host")]
    Hosts {
        min: u32,
        max: u32,
        hypervisor: Value,
        resource: Value,
        before_end: BeforeEnd,
        #[serde(default, skip_serializing_if = "is_default")]
        properties: Properties,
        #[serde(default, skip_serializing_if = "is_default")]
        pool: Pool,
    },
    #[serde(rename = "virtual:instance")]
    Instances {
        vcpus: u32,
        memory_mib: u32,
        disk_gib: u32,
        amount: NonZeroU32,
        affinity: Option<bool>,
        requirement: Value,
        #[serde(default, skip_serializing_if = "is_default")]
        survives: Option<String>,
        #[serde(default, skip_serializing_if = "is_default")]
        ephemeral_gib: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        extra_specs: BTreeMap<String, String>,
    },
    #[serde(rename = "flavor:instance")]
    Flavor {
        flavor: String,
        resources: BTreeMap<String, u64>,
        required_traits: BTreeSet<String>,
        forbidden_traits: BTreeSet<String>,
        amount: NonZeroU32,
        #[serde(default, skip_serializing_if = "is_default")]
        survives: Option<String>,
    },
    #[serde(rename = "virtual:floatingip")]
    FloatingIps { network: String, amount: u32, required: BTreeSet<IpAddr> },
}

/// Required properties of hosts that aren't expressions.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Properties {
    #[serde(default, skip_serializing_if = "is_default")]
    region: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    availability_zone: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    vcpus: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    memory_mib: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    disk_gib: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    homogeneous: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    alike: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    survives: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    extra_specs: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_default")]
    image: BTreeMap<String, String>,
}

fn named(domain: Option<&FailureDomain>) -> Option<String> {
    domain.map(|domain| domain.name().to_owned())
}

fn domain(name: Option<&String>) -> Result<Option<FailureDomain>, Unreadable> {
    name.map(|name| name.parse().map_err(|error| Unreadable::new("survives", name, error))).transpose()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Properties {
    fn of(properties: &HostProperties) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Self {
            region: properties.region.clone(),
            availability_zone: properties.availability_zone.clone(),
            vcpus: properties.vcpus,
            memory_mib: properties.memory_mib,
            disk_gib: properties.disk_gib,
            homogeneous: properties.homogeneous,
            alike: properties.alike.clone(),
            survives: named(properties.survives.as_ref()),
            extra_specs: properties.extra_specs.iter().map(owned).collect(),
            image: properties.image.iter().map(owned).collect(),
        }
    }

    fn read(self) -> Result<HostProperties, Unreadable> {
        Ok(HostProperties {
            region: self.region,
            availability_zone: self.availability_zone,
            vcpus: self.vcpus,
            memory_mib: self.memory_mib,
            disk_gib: self.disk_gib,
            homogeneous: self.homogeneous,
            alike: self.alike,
            survives: domain(self.survives.as_ref())?,
            extra_specs: ExtraSpecs::new(self.extra_specs)
                .map_err(|error| Unreadable::new("terms", "extra specs", error))?,
            image: ImageProperties::new(self.image)
                .map_err(|error| Unreadable::new("terms", "image", error))?,
        })
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BeforeEnd {
    Default,
    None,
    Snapshot,
}

pub fn terms_json(terms: &ReservationTerms) -> String {
    terms_document(terms, |_, requirement| requirement_json(requirement))
}

/// The field of a request that contains a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    HypervisorProperties,
    ResourceProperties,
}

/// Terms as JSON, with requirements written by `write`.
pub(super) fn terms_document(
    terms: &ReservationTerms,
    mut write: impl FnMut(Field, &Requirement) -> Value,
) -> String {
    json(&match terms {
        ReservationTerms::Hosts(terms) => Document::Hosts {
            min: terms.min(),
            max: terms.max(),
            hypervisor: write(Field::HypervisorProperties, &terms.hypervisor),
            resource: write(Field::ResourceProperties, &terms.resource),
            before_end: match terms.before_end {
                BeforeEndAction::Default => BeforeEnd::Default,
                BeforeEndAction::None => BeforeEnd::None,
                BeforeEndAction::Snapshot => BeforeEnd::Snapshot,
            },
            properties: Properties::of(&terms.properties),
            pool: Pool::of(&terms.pool),
        },
        ReservationTerms::Instances(terms) => Document::Instances {
            vcpus: terms.size.vcpus(),
            memory_mib: terms.size.memory_mib(),
            disk_gib: terms.size.disk_gib(),
            amount: terms.amount,
            affinity: match terms.affinity {
                Affinity::Any => None,
                Affinity::OneHost => Some(true),
                Affinity::DistinctHosts => Some(false),
            },
            requirement: write(Field::ResourceProperties, &terms.requirement),
            survives: named(terms.survives.as_ref()),
            ephemeral_gib: terms.ephemeral_gib(),
            extra_specs: terms.extra_specs(),
        },
        ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives }) => Document::Flavor {
            flavor: flavor.id.clone(),
            resources: amounts(flavor.resources()).map(|(class, n)| (class.to_owned(), n)).collect(),
            required_traits: flavor.traits().required.clone(),
            forbidden_traits: flavor.traits().forbidden.clone(),
            amount: *amount,
            survives: named(survives.as_ref()),
        },
        ReservationTerms::FloatingIps(terms) => Document::FloatingIps {
            network: terms.network.0.clone(),
            amount: terms.amount(),
            required: terms.required().clone(),
        },
    })
}

/// Options of a reservation's pool of hosts. Ratios are in thousandths.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Pool {
    #[serde(skip_serializing_if = "is_default")]
    name: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    cpu_ratio: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    ram_ratio: Option<u32>,
}

impl Pool {
    fn of(pool: &LeasePool) -> Self {
        let LeasePool { name, ratios: Ratios { cpu, ram } } = pool;
        let thousandths = |ratio: &Option<Ratio>| ratio.map(Ratio::thousandths);
        Self { name: name.clone(), cpu_ratio: thousandths(cpu), ram_ratio: thousandths(ram) }
    }

    fn read(self) -> Result<LeasePool, Unreadable> {
        let wrong = |ratio| Unreadable::new("ratio", ratio, "it is out of range");
        let ratio = |ratio: Option<u32>| {
            ratio.map(|ratio| Ratio::from_thousandths(ratio).ok_or_else(|| wrong(ratio))).transpose()
        };
        let ratios = Ratios { cpu: ratio(self.cpu_ratio)?, ram: ratio(self.ram_ratio)? };
        Ok(LeasePool { name: self.name, ratios })
    }
}

pub fn terms_from_json(text: &str) -> Result<ReservationTerms, Unreadable> {
    read_terms(text, requirement_from_json)
}

/// Parses terms, with requirements parsed by `read`.
pub(super) fn read_terms(
    text: &str,
    mut read: impl FnMut(&Value) -> Result<Requirement, Unreadable>,
) -> Result<ReservationTerms, Unreadable> {
    let refused = |error: TermsError| Unreadable::new("terms", text, error);
    Ok(match from_json("terms", text)? {
        Document::Hosts { min, max, hypervisor, resource, before_end, properties, pool } => {
            let mut terms = HostsTerms::new(min, max).map_err(refused)?;
            terms.hypervisor = read(&hypervisor)?;
            terms.resource = read(&resource)?;
            terms.before_end = match before_end {
                BeforeEnd::Default => BeforeEndAction::Default,
                BeforeEnd::None => BeforeEndAction::None,
                BeforeEnd::Snapshot => BeforeEndAction::Snapshot,
            };
            terms.properties = Arc::new(properties.read()?);
            terms.pool = pool.read()?;
            ReservationTerms::Hosts(terms)
        }
        Document::Instances {
            vcpus,
            memory_mib,
            disk_gib,
            amount,
            affinity,
            requirement,
            survives,
            ephemeral_gib,
            extra_specs,
        } => {
            let size = InstanceSize::new(vcpus, memory_mib, disk_gib).map_err(refused)?;
            ReservationTerms::Instances(InstancesTerms {
                size,
                extras: InstanceExtras::new(&size, ephemeral_gib, extra_specs).map_err(refused)?,
                amount,
                affinity: affinity.into(),
                requirement: read(&requirement)?,
                survives: domain(survives.as_ref())?,
            })
        }
        Document::Flavor {
            flavor,
            resources: by_class,
            required_traits,
            forbidden_traits,
            amount,
            survives,
        } => {
            let resources = resources(by_class.iter().map(|(class, amount)| (class.as_str(), *amount)));
            let traits = FlavorTraits { required: required_traits, forbidden: forbidden_traits };
            let flavor = Flavor::from_parts(flavor, resources, traits).map_err(refused)?;
            ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives: domain(survives.as_ref())? })
        }
        Document::FloatingIps { network, amount, required } => ReservationTerms::FloatingIps(
            FloatingIpsTerms::new(NetworkId(network), amount, required).map_err(refused)?,
        ),
    })
}
