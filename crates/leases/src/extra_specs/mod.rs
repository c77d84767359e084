//! Extra specs: Nova's notation for requirements on hosts (CLS-06).
//!
//! A spec is a key and a value: `vcpus` and `>= 16`, `capabilities:cpu_info:arch` and `x86_64`. The part of a
//! key before its first colon is the scope:
//!
//! | scope | meaning |
//! | --- | --- |
//! | none | a property of the host, named as in Blazar's expressions |
//! | `capabilities` | the same; further names select a part of the property |
//! | `aggregate_instance_extra_specs` | an extra capability; if it is a list, one matching item is enough |
//! | `trait` | `required` or `forbidden` |
//! | `resources` | minimum amount of a resource class, by Placement's name |
//! | `trust:trusted_host`, `hw:numa_nodes`, `pci_passthrough:alias` | requirements on the host as a whole |
//! | any other, such as `hw` or `quota` | ignored for hosts |
//!
//! Specs are parsed once, when a lease is requested. Invalid ones are rejected then.

mod condition;
mod devices;
mod error;
mod judge;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::condition::{Capability, Condition};
use self::devices::Device;
pub use self::error::{ExtraSpecError, MAX_LENGTH, MAX_SPECS, MAX_VALUES};
pub use self::judge::Judge;
use crate::attributes::Attribute;
use crate::host::Host;
use crate::resources::{Resources, is_resource_class};
use crate::text::as_written;

/// Parsed meaning of a spec.
#[derive(Clone, Debug)]
enum Meaning {
    /// A property of the host, and the path to one of its parts. Two filters evaluate a property without
    /// scope. In Nova they look at different data, and hardly any host passes both; here they look at the
    /// same data.
    Property {
        scoped: bool,
        name: String,
        path: Vec<String>,
        condition: Condition,
    },
    /// An extra capability of the host.
    Aggregate {
        name: String,
        condition: Condition,
    },
    Trait {
        name: String,
        required: bool,
    },
    /// A requirement on the host as a whole.
    Device(Device),
    /// Amount of a resource class. All amounts are in [`ExtraSpecs::resources`].
    Resource,
    /// Concerns guests only.
    Nothing,
}

/// The value as written, with the parsed meaning of key and value.
#[derive(Clone, Debug)]
struct Spec {
    value: String,
    meaning: Meaning,
}

/// Parsed extra specs by key.
#[derive(Clone, Debug, Default)]
pub struct ExtraSpecs {
    specs: BTreeMap<String, Spec>,
    resources: Resources,
}

/// Compares keys and values only; the meanings are derived from them.
impl PartialEq for ExtraSpecs {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ExtraSpecs {}

impl ExtraSpecs {
    /// Parses keys and values. If a key occurs more than once, the last value counts.
    pub fn new(specs: impl IntoIterator<Item = (String, String)>) -> Result<Self, ExtraSpecError> {
        let mut read = Self::default();
        let mut values = 0;
        for (key, value) in specs {
            if as_written(&key).chars().count() > MAX_LENGTH || value.chars().count() > MAX_LENGTH {
                return Err(ExtraSpecError::TooLong);
            }
            let meaning = read.meaning(&key, &value)?;
            values += match &meaning {
                Meaning::Property { condition, .. } | Meaning::Aggregate { condition, .. } => {
                    condition.values()
                }
                _ => 1,
            };
            read.specs.insert(key, Spec { value, meaning });
            if read.specs.len() > MAX_SPECS {
                return Err(ExtraSpecError::TooMany);
            }
            if values > MAX_VALUES {
                return Err(ExtraSpecError::TooLarge);
            }
        }
        Ok(read)
    }

    fn meaning(&mut self, key: &str, value: &str) -> Result<Meaning, ExtraSpecError> {
        let no_name = || ExtraSpecError::NoName(key.to_owned());
        let Some((scope, name)) = key.split_once(':') else {
            let condition = Condition::read(key, value)?;
            let name = some(key).ok_or_else(no_name)?;
            return Ok(Meaning::Property { scoped: false, name, path: Vec::new(), condition });
        };
        if let Some(device) = Device::read(key, value) {
            return device.map(Meaning::Device);
        }
        Ok(match scope {
            "capabilities" => {
                let mut names = name.split(':').map(some).collect::<Option<Vec<_>>>().ok_or_else(no_name)?;
                let path = names.split_off(1);
                let name = names.pop().ok_or_else(no_name)?;
                Meaning::Property { scoped: true, name, path, condition: Condition::read(key, value)? }
            }
            "aggregate_instance_extra_specs" => {
                let name = some(name).ok_or_else(no_name)?;
                Meaning::Aggregate { name, condition: Condition::read(key, value)? }
            }
            "trait" => {
                let required = match value {
                    "required" => true,
                    "forbidden" => false,
                    _ => return Err(ExtraSpecError::NoTrait(key.to_owned(), value.to_owned())),
                };
                Meaning::Trait { name: some(name).ok_or_else(no_name)?, required }
            }
            "resources" => {
                let class = some(name).filter(|class| is_resource_class(class)).ok_or_else(no_name)?;
                let amount = value.parse();
                let amount =
                    amount.map_err(|_| ExtraSpecError::NoAmount(key.to_owned(), value.to_owned()))?;
                self.resources.set(&class, amount);
                Meaning::Resource
            }
            _ if scope.starts_with("resources") || scope.starts_with("trait") => {
                return Err(ExtraSpecError::Unsupported(key.to_owned()));
            }
            _ => Meaning::Nothing,
        })
    }

    /// Keys and values as written by the client.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.specs.iter().map(|(key, spec)| (key.as_str(), spec.value.as_str()))
    }

    /// Copy with `value` in all specs about `property`. `None` if no spec names it, or if the new value is
    /// invalid.
    pub(crate) fn with_value(&self, property: &str, value: &str) -> Option<Self> {
        let names = |spec: &Spec| spec.meaning.property() == Some(property);
        if !self.specs.values().any(names) {
            return None;
        }
        let specs = self.specs.iter().map(|(key, spec)| {
            let value = if names(spec) { value } else { &spec.value };
            (key.clone(), value.to_owned())
        });
        Self::new(specs).ok()
    }

    /// Copy with properties renamed, in keys too.
    #[must_use]
    pub fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Self {
        let mut specs = self.clone();
        specs.specs = self
            .specs
            .iter()
            .map(|(key, spec)| {
                let mut spec = spec.clone();
                let (Meaning::Property { name, .. } | Meaning::Aggregate { name, .. }) = &mut spec.meaning
                else {
                    return (key.clone(), spec);
                };
                // The scope ends at the first colon.
                let scope = key.find(':').map_or(0, |colon| colon + 1);
                let (scope, rest) = (&key[..scope], &key[scope + name.len()..]);
                *name = rename(name);
                (format!("{scope}{name}{rest}"), spec)
            })
            .collect();
        specs
    }

    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Minimum amount of each resource class.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Whether the host passes the specs that this filter evaluates. Doesn't check amounts; compare them with
    /// [`Self::resources`].
    pub fn pass(&self, judge: Judge, host: &Host) -> bool {
        let mut judged = self.specs.values().filter(|spec| spec.meaning.judges().contains(&judge));
        judged.all(|spec| spec.meaning.holds(host))
    }

    /// Keys of specs about hosts that none of `judges` evaluates.
    pub fn unjudged(&self, judges: &[Judge]) -> impl Iterator<Item = &str> {
        let unjudged = |spec: &Spec| {
            let own = spec.meaning.judges();
            !own.is_empty() && !own.iter().any(|judge| judges.contains(judge))
        };
        self.specs.iter().filter(move |(_, spec)| unjudged(spec)).map(|(key, _)| key.as_str())
    }

    /// Filters that evaluate the spec with this key.
    pub fn judges(&self, key: &str) -> &'static [Judge] {
        self.specs.get(key).map_or(&[], |spec| spec.meaning.judges())
    }

    /// Names of the properties and extra capabilities in specs, without the capabilities of devices.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.specs.values().filter_map(|spec| match &spec.meaning {
            Meaning::Property { name, .. } | Meaning::Aggregate { name, .. } => Some(name.as_str()),
            Meaning::Device(_) | Meaning::Trait { .. } | Meaning::Resource | Meaning::Nothing => None,
        })
    }

    /// All properties named by the specs. A property that a lease names must not change.
    pub fn names(&self) -> BTreeSet<&str> {
        self.specs.values().filter_map(|spec| spec.meaning.property()).collect()
    }
}

impl Meaning {
    fn judges(&self) -> &'static [Judge] {
        match self {
            Self::Property { scoped: false, .. } => &[Judge::Capabilities, Judge::Aggregates],
            Self::Property { scoped: true, .. } => &[Judge::Capabilities],
            Self::Aggregate { .. } => &[Judge::Aggregates],
            Self::Trait { .. } | Self::Resource => &[Judge::Placement],
            Self::Device(device) => device.judges(),
            Self::Nothing => &[],
        }
    }

    fn property(&self) -> Option<&str> {
        match self {
            Self::Property { name, .. } | Self::Aggregate { name, .. } => Some(name),
            Self::Device(device) => Some(device.property()),
            Self::Trait { .. } | Self::Resource | Self::Nothing => None,
        }
    }

    /// A missing capability fails every condition.
    fn holds(&self, host: &Host) -> bool {
        match self {
            Self::Property { name, path, condition, .. } => {
                let capability = if path.is_empty() {
                    host.property(name).map(Capability::Text)
                } else {
                    host.attributes.part(name, path).and_then(Capability::of)
                };
                capability.is_some_and(|capability| condition.holds(&capability))
            }
            Self::Aggregate { name, condition } => aggregate_holds(host, name, condition),
            Self::Trait { name, required } => host.traits.contains(name) == *required,
            Self::Device(device) => device.holds(host),
            Self::Resource | Self::Nothing => true,
        }
    }
}

/// Whether one of the host's values of a capability satisfies the condition. A host can be in several
/// aggregates, each with a value.
fn aggregate_holds(host: &Host, name: &str, condition: &Condition) -> bool {
    let Some(text) = host.capabilities.get(name) else { return false };
    match host.attributes.of(name) {
        Some(Attribute::List(values)) => {
            values.iter().filter_map(Capability::of).any(|value| condition.holds(&value))
        }
        _ => condition.holds(&Capability::Text(text.into())),
    }
}

fn some(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}
