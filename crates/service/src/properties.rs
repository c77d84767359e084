//! Properties that requests name and that no host has: they are mistyped, mostly.

use std::collections::BTreeSet;

use leases::admission::{Changes, TermsChange};
use leases::host::Host;
use leases::properties::PropertyChange;
use leases::terms::{ReservationTerms, Terms};
use leases::text::{Quoted, as_written, quoted_list};

use crate::hosts::Hosts;
use crate::types::Property;

/// How many of the names of a request are looked at: each is looked for on each host.
const MOST_ASKED: usize = 20;
/// How many of them are said to be unknown.
const MOST_UNKNOWN: usize = 3;
/// How many names of properties are compared with one that is unknown.
const MOST_COMPARED: usize = 1000;
/// Names of fields, which all hosts have, are proposed if one letter in so many differs, at most.
const NEARLY: usize = 3;

impl Hosts<'_> {
    /// Which of these properties no host has, in words, with those that there are: capabilities that `shown` lets through,
    /// those first that are spelled most like them. Nothing if hosts have them all.
    pub fn unknown_properties<'n>(
        self,
        asked: impl IntoIterator<Item = &'n str>,
        shown: impl Fn(&Property) -> bool,
    ) -> Option<String> {
        let mut unknown: BTreeSet<&str> =
            asked.into_iter().filter(|name| !Host::FIELDS.contains(name)).take(MOST_ASKED).collect();
        let state = self.service.state();
        for host in state.inventory.hosts() {
            if unknown.is_empty() {
                return None;
            }
            unknown.retain(|name| host.property(name).is_none());
        }
        drop(state);
        let there: Vec<String> = self
            .properties()
            .into_iter()
            .filter(shown)
            .take(MOST_COMPARED)
            .map(|property| property.name)
            .collect();
        let said: Vec<String> =
            unknown.into_iter().take(MOST_UNKNOWN).map(|name| in_words(name, &there)).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// That no host has a property of that name, and which there are instead.
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

/// How many letters are to be added, left out or exchanged to make one text of the other; of long texts, their
/// beginnings. Capitals count for nothing.
fn difference(one: &str, other: &str) -> usize {
    const LONGEST: usize = 64;
    let letters = |text: &str| -> String { text.to_lowercase().chars().take(LONGEST).collect() };
    strsim::levenshtein(&letters(one), &letters(other))
}

/// The properties that terms name, in expressions, extra specs and hints.
pub fn properties_of_terms(terms: &Terms) -> BTreeSet<&str> {
    let mut names = terms.hints.query.names();
    for reservation in &terms.reservations {
        match reservation {
            ReservationTerms::Hosts(terms) => {
                names.extend(terms.hypervisor.names());
                names.extend(terms.resource.names());
                names.extend(terms.properties.extra_specs.capabilities());
            }
            ReservationTerms::Instances(terms) => names.extend(terms.requirement.names()),
            ReservationTerms::Flavor(_) | ReservationTerms::FloatingIps(_) => {}
        }
    }
    names
}

/// The same of changes.
pub fn properties_of_changes(changes: &Changes) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (_, change) in &changes.reservations {
        match change {
            TermsChange::Hosts(change) => {
                let expressions = [&change.hypervisor, &change.resource];
                names.extend(expressions.into_iter().flatten().flat_map(|expression| expression.names()));
                for property in &change.properties {
                    if let PropertyChange::ExtraSpecs(specs) = property {
                        names.extend(specs.capabilities());
                    }
                }
            }
            TermsChange::Instances(change) => {
                names.extend(change.requirement.iter().flat_map(|expression| expression.names()));
            }
            TermsChange::None | TermsChange::Flavor | TermsChange::FloatingIps(_) => {}
        }
    }
    names
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
