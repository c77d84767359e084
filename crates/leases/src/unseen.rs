//! Hidden properties in requests. If a request's author can't see a property, the property must behave as if
//! no host had it.
//!
//! The request is stored with a mark after the property's name. No real property name contains a mark, so all
//! later decisions treat the property as unknown, even after a restart. Responses omit the mark
//! ([`as_written`](crate::text::as_written)).
//!
//! Names that filters read themselves belong to the operator and aren't marked: `hw:numa_nodes` and the like,
//! the allocation ratios, and the property behind the `location` hint.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::{Changes, TermsChange};
use crate::extra_specs::ExtraSpecs;
use crate::failure_domain::FailureDomain;
use crate::properties::{HostProperties, ImageProperties, PropertyChange};
use crate::requirement::Requirement;
use crate::terms::{ReservationTerms, Terms};
use crate::text::MARK;

/// Marks the properties for which the predicate returns `true`.
pub struct Unseen<'h>(pub &'h dyn Fn(&str) -> bool);

impl Unseen<'_> {
    pub fn mark_terms(&self, terms: &mut Terms) {
        self.mark_requirement(&mut Arc::make_mut(&mut terms.hints).query);
        terms.reservations.iter_mut().for_each(|reservation| self.mark_reservation(reservation));
    }

    pub fn mark_reservation(&self, reservation: &mut ReservationTerms) {
        match reservation {
            ReservationTerms::Hosts(terms) => {
                self.mark_requirement(&mut terms.hypervisor);
                self.mark_requirement(&mut terms.resource);
                let HostProperties { alike, survives, extra_specs, image, .. } =
                    Arc::make_mut(&mut terms.properties);
                self.mark_names(alike);
                self.mark_domain(survives);
                self.mark_specs(extra_specs);
                self.mark_image(image);
            }
            ReservationTerms::Instances(terms) => {
                self.mark_requirement(&mut terms.requirement);
                self.mark_domain(&mut terms.survives);
            }
            ReservationTerms::Flavor(terms) => self.mark_domain(&mut terms.survives),
            ReservationTerms::FloatingIps(_) => {}
        }
    }

    pub fn mark_changes(&self, changes: &mut Changes) {
        for (_, change) in &mut changes.reservations {
            match change {
                TermsChange::Hosts(change) => {
                    let requirements = [&mut change.hypervisor, &mut change.resource];
                    requirements.into_iter().flatten().for_each(|asked| self.mark_requirement(asked));
                    for property in &mut change.properties {
                        match property {
                            PropertyChange::Alike(names) => self.mark_names(names),
                            PropertyChange::Survives(survives) => self.mark_domain(survives),
                            PropertyChange::ExtraSpecs(specs) => self.mark_specs(specs),
                            PropertyChange::Image(image) => self.mark_image(image),
                            PropertyChange::Region(_)
                            | PropertyChange::AvailabilityZone(_)
                            | PropertyChange::Vcpus(_)
                            | PropertyChange::MemoryMib(_)
                            | PropertyChange::DiskGib(_)
                            | PropertyChange::Homogeneous(_) => {}
                        }
                    }
                }
                TermsChange::Instances(change) => {
                    change.requirement.iter_mut().for_each(|asked| self.mark_requirement(asked));
                }
                TermsChange::None | TermsChange::Flavor | TermsChange::FloatingIps(_) => {}
            }
        }
    }

    pub fn mark_specs(&self, specs: &mut ExtraSpecs) {
        if specs.capabilities().any(|name| self.0(name)) {
            *specs = specs.renamed(&|name| self.marked(name));
        }
    }

    fn mark_requirement(&self, requirement: &mut Requirement) {
        // Unmarked requirements stay shared with their clones.
        if requirement.names().into_iter().any(|name| self.0(name)) {
            *requirement = requirement.renamed(&|name| self.marked(name));
        }
    }

    fn mark_image(&self, image: &mut ImageProperties) {
        if image.iter().any(|(name, _)| self.0(name)) {
            *image = image.renamed(&|name| self.marked(name));
        }
    }

    fn mark_names(&self, names: &mut BTreeSet<String>) {
        if names.iter().any(|name| self.0(name)) {
            *names = names.iter().map(|name| self.marked(name)).collect();
        }
    }

    fn mark_domain(&self, survives: &mut Option<FailureDomain>) {
        if let Some(FailureDomain::Place(property)) = survives {
            *property = self.marked(property);
        }
    }

    fn marked(&self, name: &str) -> String {
        if self.0(name) { format!("{name}{MARK}") } else { name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extra_specs::Judge;
    use crate::host::Host;
    use crate::ids::HostId;
    use crate::requirement::Operator;
    use crate::text::as_written;

    const UNSEEN: Unseen<'_> = Unseen(&|name| name == "secret");

    fn host() -> Host {
        let mut host = Host::new(HostId(1), "n", 1, 1, 1);
        for name in ["secret", "rack"] {
            host.capabilities.insert(name.to_owned(), "x".to_owned());
        }
        host
    }

    #[test]
    fn a_marked_expression_is_about_a_property_that_no_host_has_and_is_written_as_before() {
        let of = |name: &str| Requirement::compare(Operator::Equal, name, "x").expect("well formed");
        let not = |part| Requirement::negated(part).expect("well formed");
        let either = Requirement::any(vec![of("secret"), of("rack")]).expect("well formed");
        for (asked, matches) in [(of("secret"), false), (not(of("secret")), true), (either, true)] {
            let mut marked = asked.clone();
            UNSEEN.mark_requirement(&mut marked);
            assert_eq!(marked.matches(&host()), matches, "{asked:?}");
            assert_eq!(marked.renamed(&as_written), asked);
        }
        let mut open = of("rack");
        UNSEEN.mark_requirement(&mut open);
        assert_eq!(open, of("rack"));
    }

    #[test]
    fn marked_specs_and_images_are_about_properties_that_no_host_has_and_can_be_stored() {
        let long = format!("capabilities:secret:{}", "p".repeat(crate::extra_specs::MAX_LENGTH - 20));
        for key in [
            "secret",
            "capabilities:secret",
            "capabilities:secret:part",
            "aggregate_instance_extra_specs:secret",
            &long,
        ] {
            let mut specs = ExtraSpecs::new([(key.to_owned(), "x".to_owned())]).expect("well formed");
            let asked = specs.clone();
            UNSEEN.mark_specs(&mut specs);
            assert_ne!(specs, asked, "{key}");
            let judge = specs.judges(specs.iter().next().expect("one").0)[0];
            assert!(!specs.pass(judge, &host()), "{key} {judge:?}");
            let owned = specs.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(ExtraSpecs::new(owned), Ok(specs.clone()));
            assert_eq!(as_written(specs.iter().next().expect("one").0), key);
        }
        let mut specs = ExtraSpecs::new([("rack".to_owned(), "x".to_owned())]).expect("well formed");
        UNSEEN.mark_specs(&mut specs);
        assert!(specs.pass(Judge::Capabilities, &host()));
        let mut image = ImageProperties::new([("secret".to_owned(), "y".to_owned())]).expect("well formed");
        UNSEEN.mark_image(&mut image);
        assert_eq!(image.iter().map(|(name, _)| as_written(name)).collect::<Vec<_>>(), ["secret"]);
        assert!(host().property(image.iter().next().expect("one").0).is_none());
        let mut names = BTreeSet::from(["rack".to_owned(), "secret".to_owned()]);
        UNSEEN.mark_names(&mut names);
        assert_eq!(names, BTreeSet::from(["rack".to_owned(), "secret\u{1}".to_owned()]));
        let mut domain = Some(FailureDomain::Place("secret".to_owned()));
        UNSEEN.mark_domain(&mut domain);
        let domain = domain.expect("one");
        assert_eq!((domain.to_string().as_str(), domain.name()), ("secret", "secret\u{1}"));
        assert_eq!(domain.name().parse(), Ok(domain.clone()));
    }
}
