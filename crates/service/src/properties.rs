//! Properties and values in requests that no host has. Most are typos.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use leases::admission::{Changes, TermsChange};
use leases::failure_domain::FailureDomain;
use leases::host::Host;
use leases::properties::PropertyChange;
use leases::requirement::{Comparison, Operand, Operator, Requirement};
use leases::terms::{ReservationTerms, Terms};
use leases::text::{Quoted, as_written, quoted_list};
use leases::work::Budget;

use crate::hosts::Hosts;
use crate::types::{Property, ServiceError};

/// Property that contains a host's availability zone.
const ZONE: &str = "availability_zone";
/// Maximum number of names, and of values, of a request that are checked. Each is looked up on every host.
const MOST_ASKED: usize = 20;
/// Maximum number that are reported as unknown.
const MOST_UNKNOWN: usize = 3;
/// Maximum number of existing names or values that are compared with an unknown one.
const MOST_COMPARED: usize = 1000;
/// A host field is suggested for an unknown name if at most one in this many letters differs.
const NEARLY: usize = 3;

/// Properties of hosts that a request uses.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    names: BTreeSet<&'a str>,
    /// Properties that must have equal values.
    alike: BTreeSet<&'a str>,
    comparisons: Vec<Comparison<'a>>,
    zones: BTreeSet<&'a str>,
}

impl<'a> Asked<'a> {
    /// Properties by name, without values.
    pub fn names(names: impl Iterator<Item = &'a str>) -> Self {
        Self { names: names.collect(), ..Self::default() }
    }

    /// Drops everything but the properties' names.
    #[must_use]
    pub fn only_names(self) -> Self {
        Self { names: self.names, ..Self::default() }
    }

    fn add(&mut self, requirement: &'a Requirement) {
        self.names.extend(requirement.names());
        self.comparisons.extend(requirement.comparisons());
    }

    /// Collects properties from the expressions, extra specs and hints of terms.
    pub fn of_terms(terms: &'a Terms) -> Self {
        let mut asked = Self::default();
        asked.add(&terms.hints.query);
        terms.reservations.iter().for_each(|reservation| asked.add_reservation(reservation));
        asked
    }

    pub fn of_reservation(reservation: &'a ReservationTerms) -> Self {
        let mut asked = Self::default();
        asked.add_reservation(reservation);
        asked
    }

    fn add_reservation(&mut self, reservation: &'a ReservationTerms) {
        match reservation {
            ReservationTerms::Hosts(terms) => {
                self.add(&terms.hypervisor);
                self.add(&terms.resource);
                self.names.extend(terms.properties.extra_specs.capabilities());
                self.alike.extend(terms.properties.alike.iter().map(String::as_str));
                let survives = terms.properties.survives.as_ref();
                self.names.extend(survives.and_then(FailureDomain::property));
                self.zones.extend(terms.properties.availability_zone.as_deref());
            }
            ReservationTerms::Instances(terms) => self.add(&terms.requirement),
            ReservationTerms::Flavor(_) | ReservationTerms::FloatingIps(_) => {}
        }
    }

    pub fn of_changes(changes: &'a Changes) -> Self {
        let mut asked = Self::default();
        for (_, change) in &changes.reservations {
            match change {
                TermsChange::Hosts(change) => {
                    [&change.hypervisor, &change.resource]
                        .into_iter()
                        .flatten()
                        .for_each(|one| asked.add(one));
                    for property in &change.properties {
                        match property {
                            PropertyChange::Alike(names) => {
                                asked.alike.extend(names.iter().map(String::as_str));
                            }
                            PropertyChange::ExtraSpecs(specs) => asked.names.extend(specs.capabilities()),
                            PropertyChange::AvailabilityZone(zone) => asked.zones.extend(zone.as_deref()),
                            _ => {}
                        }
                    }
                }
                TermsChange::Instances(change) => change.requirement.iter().for_each(|one| asked.add(one)),
                TermsChange::None | TermsChange::Flavor | TermsChange::FloatingIps(_) => {}
            }
        }
        asked
    }
}

/// Properties with values that the client can see.
#[derive(Clone, Copy)]
pub struct Shown<'s> {
    /// Whether a capability is visible.
    pub capability: &'s (dyn Fn(&Property) -> bool + Sync),
    /// Whether names of hosts are visible.
    pub hosts: bool,
}

impl Hosts<'_> {
    /// Describes the properties and values in a request that no host has, and lists existing ones, most
    /// similar first. `None` if hosts have them all. Like [`Self::malformed`], it waits for a place to look
    /// at all hosts.
    pub async fn unknown_properties(
        self,
        asked: Asked<'_>,
        shown: Shown<'_>,
    ) -> Result<Option<String>, ServiceError> {
        let unknown = |_: &Budget| {
            let mut said = self.unknown_names(&asked.names, shown);
            said.extend(self.unknown_values(&asked, shown));
            Ok((!said.is_empty()).then(|| said.join("; ")))
        };
        self.service.consider(unknown).await
    }

    fn unknown_names(self, names: &BTreeSet<&str>, shown: Shown<'_>) -> Vec<String> {
        let names = names.iter().copied();
        let mut unknown: BTreeSet<&str> =
            names.filter(|name| !Host::FIELDS.contains(name)).take(MOST_ASKED).collect();
        let state = self.service.state();
        for host in state.inventory.hosts() {
            if unknown.is_empty() {
                break;
            }
            unknown.retain(|name| host.property(name).is_none());
        }
        drop(state);
        if unknown.is_empty() {
            return Vec::new();
        }
        let there = self.properties().into_iter().filter(shown.capability);
        let there: Vec<String> = there.take(MOST_COMPARED).map(|property| property.name).collect();
        unknown.into_iter().take(MOST_UNKNOWN).map(|name| in_words(name, &there)).collect()
    }

    /// Describes requested values of properties that no host has.
    fn unknown_values(self, asked: &Asked<'_>, shown: Shown<'_>) -> Vec<String> {
        let equal = asked.comparisons.iter().filter(|one| one.operator == Operator::Equal);
        let zones = asked.zones.iter().map(|zone| (ZONE, *zone, Operand::from(*zone)));
        let wanted = equal.map(|one| (one.name, one.value.text(), one.value.clone())).chain(zones);
        let mut there: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut said = Vec::new();
        for (name, text, value) in wanted.take(MOST_ASKED) {
            let there = there.entry(name).or_insert_with(|| self.values_of(name, shown));
            if !there.is_empty() && !there.iter().any(|own| value.equals(own)) && said.len() < MOST_UNKNOWN {
                said.push(no_such_value(name, text, there));
            }
        }
        said
    }

    /// Describes a mistake in a request: properties in `alike` that no host has, or an order comparison
    /// between a property and a value of another type (a number and text). Waits for a place to look at all
    /// hosts, if there is something to look for.
    pub async fn malformed(self, asked: Asked<'_>, shown: Shown<'_>) -> Result<Option<String>, ServiceError> {
        let ordered = || asked.comparisons.iter().filter(|one| one.operator.is_order()).take(MOST_ASKED);
        if asked.alike.is_empty() && ordered().next().is_none() {
            return Ok(None);
        }
        let mistake = |_: &Budget| {
            let unknown = self.unknown_names(&asked.alike, shown);
            let unknown = (!unknown.is_empty()).then(|| format!("alike: {}", unknown.join("; ")));
            Ok(unknown.or_else(|| self.of_another_type(ordered(), shown)))
        };
        self.service.consider(mistake).await
    }

    fn of_another_type<'a>(
        self,
        comparisons: impl Iterator<Item = &'a Comparison<'a>>,
        shown: Shown<'_>,
    ) -> Option<String> {
        let mut numeric: BTreeMap<&str, Option<bool>> = BTreeMap::new();
        for one in comparisons {
            let numeric = *numeric.entry(one.name).or_insert_with(|| self.is_numeric(one.name));
            if numeric.is_none_or(|numeric| numeric == one.value.is_number()) {
                continue;
            }
            let there = self.values_of(one.name, shown);
            let (name, value) = (as_written(one.name), Quoted(one.value.text()));
            if there.is_empty() {
                continue;
            }
            return Some(match numeric {
                Some(true) => format!("${name} is a number, and '{value}' is not"),
                _ => format!("${name} is text, and {value} is a number: its values are {}", listed(&there)),
            });
        }
        None
    }

    /// `Some(true)` if all values of a property are numbers, `Some(false)` if no value is a number. `None` if
    /// the values are mixed, or if no host has the property.
    fn is_numeric(self, name: &str) -> Option<bool> {
        let state = self.service.state();
        let values = state.inventory.hosts().filter_map(|host| host.property(name));
        let mut numeric = values.map(|value| Operand::from(&*value).is_number());
        let first = numeric.next()?;
        numeric.all(|one| one == first).then_some(first)
    }

    /// Values of a property on all hosts, if the client can see them.
    fn values_of(self, name: &str, shown: Shown<'_>) -> BTreeSet<String> {
        if !Host::FIELDS.contains(&name) {
            let known = self.capability(name).filter(shown.capability);
            return known.map(|property| property.values.into_iter().collect()).unwrap_or_default();
        }
        let field = match name {
            ZONE | "hypervisor_type" => true,
            "hypervisor_hostname" => shown.hosts,
            _ => false,
        };
        if !field {
            return BTreeSet::new();
        }
        let state = self.service.state();
        state.inventory.hosts().filter_map(|host| host.property(name)).map(Cow::into_owned).collect()
    }
}

/// States that no host has this value of a property, and lists the existing values.
fn no_such_value(name: &str, value: &str, there: &BTreeSet<String>) -> String {
    let mut there: Vec<&String> = there.iter().take(MOST_COMPARED).collect();
    there.sort_by_cached_key(|known| (difference(value, known), *known));
    format!(
        "no host has {}={}; its values are {}",
        as_written(name),
        Quoted(value),
        quoted_list(&there, ", ")
    )
}

fn listed(values: &BTreeSet<String>) -> String {
    quoted_list(&values.iter().collect::<Vec<_>>(), ", ")
}

/// States that no host has a property of that name, and lists existing properties.
fn in_words(name: &str, there: &[String]) -> String {
    let name = &as_written(name);
    let near = |field: &&str| difference(name, field) * NEARLY <= field.len();
    let fields = Host::FIELDS.into_iter().filter(near);
    let mut known: Vec<&str> = there.iter().map(String::as_str).chain(fields).collect();
    known.sort_by_cached_key(|known| (difference(name, known), (*known).to_owned()));
    let text = format!("no host has a property {}", Quoted(name));
    match known.len() {
        0 => text,
        1 => format!("{text}; there is {}", quoted_list(&known, ", ")),
        _ => format!("{text}; there are {}", quoted_list(&known, ", ")),
    }
}

/// Edit distance: number of letters to insert, delete or replace, ignoring case. Only the first 64 letters
/// count.
fn difference(one: &str, other: &str) -> usize {
    const LONGEST: usize = 64;
    let letters = |text: &str| -> String { text.to_lowercase().chars().take(LONGEST).collect() };
    strsim::levenshtein(&letters(one), &letters(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_spelled_alike_come_first_and_long_lists_are_cut() {
        let there = ["gpu", "rack", "ssd"].map(str::to_owned);
        assert_eq!(in_words("rak", &there), "no host has a property rak; there are rack, gpu, ssd");
        assert_eq!(in_words("GPUs", &there[..1]), "no host has a property GPUs; there is gpu");
        assert_eq!(in_words("vcpu", &[]), "no host has a property vcpu; there is vcpus");
        assert_eq!(in_words("zone", &[]), "no host has a property zone");
        let many: Vec<String> = (0..500).map(|number| format!("property{number}")).collect();
        let text = in_words(&"x".repeat(1000), &many);
        assert!(
            text.contains("(1000 characters)") && text.contains("(500 in all)") && text.len() < 600,
            "{text}"
        );
    }

    #[test]
    fn differences_are_counted_in_letters() {
        for (one, other, letters) in
            [("rak", "rack", 1), ("rack", "rak", 1), ("", "ab", 2), ("Rack", "rack", 0), ("abc", "acb", 2)]
        {
            assert_eq!(difference(one, other), letters, "{one} {other}");
        }
    }
}
