//! Matching of hosts and reservations, filter by filter (CLS-05, CLS-07).

use jiff::Timestamp;

use super::memory::Memory;
use super::{Admission, Refusal, Rules, Search};
use crate::extra_specs::Judge;
use crate::filters::{Filter, Filters, HostFilter};
use crate::hints::{Hint, HintError, Hints};
use crate::host::{Health, Host, TENANTS};
use crate::ids::HostId;
use crate::lease::Lease;
use crate::lease_pool::overcommitted;
use crate::project::ProjectId;
use crate::properties::{CPU_RATIO, DISK_RATIO, ImageProperties, RAM_RATIO};
use crate::requirement::Requirement;
use crate::resources::Resources;
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::text::as_written;
use crate::window::later;
use crate::work::Budget;

/// Base cost to screen a host.
const SCREENING: u64 = 80;
/// Additional cost of each extra spec, because every judge goes through all specs, and of each property
/// lookup.
const SPEC: u64 = 10;
/// Expressions below this cost are evaluated again: a lookup of the remembered result would take as long.
const WORTH_IT: u64 = 16;

impl Rules {
    /// Checks that the service can promise the requested properties at all.
    pub(super) fn check(&self, terms: &Terms) -> Result<(), Refusal> {
        terms.reservations.iter().try_for_each(|reservation| match reservation {
            ReservationTerms::Hosts(asked) => self.check_hosts(asked),
            _ => Ok(()),
        })
    }

    pub(super) fn check_hosts(&self, asked: &HostsTerms) -> Result<(), Refusal> {
        if let Some(region) = &asked.properties.region
            && self.region.as_ref() != Some(region)
        {
            return Err(Refusal::Region { asked: region.clone(), own: self.region.clone() });
        }
        match unfiltered(&self.filters, asked) {
            Some((property, filter)) => Err(Refusal::FilterLeftOut { property, filter }),
            None => Ok(()),
        }
    }
}

/// For each property except extra specs: whether the request has it, its name, and the filter that checks it.
fn asked_for(asked: &HostsTerms) -> [(bool, &'static str, Filter); 10] {
    let properties = &asked.properties;
    let image = |of_hosts: bool| {
        properties.image.iter().any(|(name, _)| ImageProperties::OF_HOSTS.contains(&name) == of_hosts)
    };
    [
        (asked.hypervisor != Requirement::NONE, "hypervisor_properties", Filter::Json),
        (asked.resource != Requirement::NONE, "resource_properties", Filter::Json),
        (properties.availability_zone.is_some(), "availability_zone", Filter::AvailabilityZone),
        (properties.vcpus.is_some(), "vcpus", Filter::Core),
        (properties.memory_mib.is_some(), "memory_mib", Filter::Ram),
        (properties.disk_gib.is_some(), "disk_gib", Filter::Disk),
        (properties.homogeneous, "homogeneous", Filter::Homogeneous),
        (!properties.alike.is_empty(), "alike", Filter::Homogeneous),
        (image(true), "image_properties", Filter::ImageProperties),
        (image(false), "image_properties", Filter::AggregateImageProperties),
    ]
}

/// A requested property that no filter checks because the operator has left its filter out, with that filter.
fn unfiltered(filters: &Filters, asked: &HostsTerms) -> Option<(String, Filter)> {
    let plain = asked_for(asked).into_iter().find(|(asked, _, filter)| *asked && !filters.applies(*filter));
    if let Some((_, property, filter)) = plain {
        return Some((property.to_owned(), filter));
    }
    let applied: Vec<Judge> =
        Judge::ALL.into_iter().filter(|judge| filters.applies(of_judge(*judge))).collect();
    let specs = &asked.properties.extra_specs;
    let key = specs.unjudged(&applied).next()?;
    let judge = specs.judges(key).first()?;
    Some((format!("the extra spec {}", as_written(key)), of_judge(*judge)))
}

/// Whether the filter checks anything in the request. If not, it lets all hosts pass.
fn concerns(filter: Filter, asked: &HostsTerms) -> bool {
    // This filter checks all image properties, even the ones that another filter is responsible for.
    if filter == Filter::AggregateImageProperties {
        return !asked.properties.image.is_empty();
    }
    if Judge::ALL.into_iter().any(|judge| of_judge(judge) == filter) {
        return !asked.properties.extra_specs.is_empty();
    }
    asked_for(asked).into_iter().any(|(asked, _, by)| asked && by == filter)
}

fn of_judge(judge: Judge) -> Filter {
    match judge {
        Judge::Capabilities => Filter::ComputeCapabilities,
        Judge::Aggregates => Filter::AggregateExtraSpecs,
        Judge::Placement => Filter::Placement,
        Judge::Trust => Filter::Trusted,
        Judge::Numa => Filter::NumaTopology,
        Judge::Pci => Filter::PciPassthrough,
    }
}

impl<'a> Admission<'a> {
    /// Sets the project for which hosts are chosen.
    pub(super) fn asked_by<'b>(self, project: &'b ProjectId) -> Admission<'b>
    where
        'a: 'b,
    {
        Admission { project: Some(project), ..self }
    }

    pub(super) fn hinted<'b>(self, hints: &'b Hints) -> Admission<'b>
    where
        'a: 'b,
    {
        Admission { hints: Some(hints), ..self }
    }

    /// Sets project, hints and remaining length from a lease.
    pub(super) fn on_behalf_of<'b>(self, lease: &'b Lease) -> Admission<'b>
    where
        'a: 'b,
    {
        self.asked_by(&lease.owner.project).hinted(&lease.hints).lasting(self.time_left(lease))
    }

    /// Checks that the service can promise the request at all. The hints must leave at least the operator's
    /// minimum of hosts.
    pub(super) fn check(&self, project: &ProjectId, terms: &Terms) -> Result<(), Refusal> {
        self.rules.check(terms)?;
        let (rules, hints) = (&self.rules.hints, &terms.hints);
        rules.check(hints, &terms.reservations)?;
        if hints.is_empty() || rules.least_hosts == 0 {
            return Ok(());
        }
        let admission = self.asked_by(project).hinted(hints);
        // Hosts that don't work at the moment count.
        let suits = |host: &&Host| admission.welcome_on(host) && admission.against_hints(host).is_none();
        let hosts = self.inventory.hosts().take_while(|_| self.budget.spend(SCREENING));
        let matching = hosts.filter(suits).count();
        let least = rules.least_hosts;
        let strict = matching < least as usize;
        let checked = if strict { Err(HintError::TooStrict { matching, least }.into()) } else { Ok(()) };
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        admission.settled(&asked, checked)
    }

    /// The budget, and the cost to screen one host for `specs` extra specs and properties. Expressions are
    /// charged when they are evaluated.
    pub(super) fn screening(&self, specs: usize) -> (&'a Budget, u64) {
        (self.budget, SCREENING + SPEC * specs as u64)
    }

    /// Charges for comparing a host with the rest of its reservation.
    pub(super) fn charge_comparison(&self, asked: &HostsTerms) {
        self.budget.charge(SPEC * asked.properties.alike.len() as u64);
    }

    /// The hint that excludes the host.
    pub(super) fn against_hints(&self, host: &Host) -> Option<HostFilter> {
        let hints = self.hints?;
        let against = hints.against(host, &self.rules.hints.location);
        let against = against.or_else(|| (!self.meets(&hints.query, host)).then_some(Hint::Query))?;
        Some(HostFilter::Hint(against))
    }

    /// The filter that excludes the host for the project from `start` on, independent of the request.
    pub(super) fn barred(&self, host: &Host, start: Timestamp) -> Option<HostFilter> {
        self.out_of_use(host, start).or_else(|| self.kept_from(host))
    }

    /// Excludes a host that is closed, or that doesn't work and isn't expected to by `start`.
    pub(super) fn out_of_use(&self, host: &Host, start: Timestamp) -> Option<HostFilter> {
        if !host.reservable {
            return Some(HostFilter::Reservable);
        }
        let down = host.health != Health::Up && self.recovery().is_none_or(|recovery| start < recovery);
        let counts = host.health == Health::Failed || self.rules.filters.applies(Filter::Compute);
        (down && counts).then(|| Filter::Compute.into())
    }

    /// Whether the host is allocated last because it is closed or doesn't work now.
    pub(super) fn is_doubtful(&self, host: &Host) -> bool {
        self.out_of_use(host, self.now).is_some()
    }

    /// First start of leases that can be allocated hosts that don't work now. In an earlier lease they would
    /// be replaced right away. `None` means never.
    pub(super) fn recovery(&self) -> Option<Timestamp> {
        self.healing.0.filter(|_| !self.fact_scope.working).map(|interval| later(self.now, interval))
    }

    fn kept_from(&self, host: &Host) -> Option<HostFilter> {
        let filters = &self.rules.filters;
        let bars = |filter, barred: bool| (barred && filters.applies(filter)).then_some(filter.into());
        bars(Filter::IsolatedHosts, filters.isolated_hosts.contains(&host.name))
            .or_else(|| bars(Filter::MultiTenancy, !self.welcome_on(host)))
            .or_else(|| {
                let against = filters.custom.iter().find(|filter| !self.meets(&filter.requirement, host))?;
                Some(HostFilter::Custom(against.name.clone()))
            })
    }

    fn welcome_on(&self, host: &Host) -> bool {
        if !self.inventory.may_be_exclusive(host.id) {
            return true;
        }
        let tenants = host.capabilities.get(TENANTS).map_or("", |tenants| tenants.trim());
        tenants.is_empty()
            || self.project.is_some_and(|own| tenants.split(',').any(|tenant| tenant.trim() == own.0))
    }

    /// Returns the check of a host against a request: the filter that excludes the host, if any.
    pub(super) fn unsuited(&self, asked: &HostsTerms) -> impl Fn(&Host) -> Option<HostFilter> {
        let enabled = self.rules.filters.enabled.iter().copied();
        let filters: Vec<Filter> = enabled.filter(|filter| concerns(*filter, asked)).collect();
        move |host| {
            filters.iter().find_map(|filter| match filter {
                // Reports which of the two expressions excludes the host.
                Filter::Json if !self.meets(&asked.hypervisor, host) => {
                    Some(HostFilter::HypervisorProperties)
                }
                Filter::Json if !self.meets(&asked.resource, host) => Some(HostFilter::ResourceProperties),
                filter if !self.passes(*filter, host, asked) => Some((*filter).into()),
                _ => None,
            })
        }
    }

    fn passes(&self, filter: Filter, host: &Host, asked: &HostsTerms) -> bool {
        let wanted = &asked.properties;
        let at_least = |least: Option<u32>, capacity, ratio, amount: fn(&Resources) -> u64| {
            least.is_none_or(|least| {
                let own = overcommitted(capacity, host.capabilities.get(ratio));
                own.saturating_sub(self.used(host.id).map_or(0, amount)) >= least.into()
            })
        };
        match filter {
            Filter::AvailabilityZone => {
                wanted.availability_zone.as_ref().is_none_or(|zone| host.availability_zone == *zone)
            }
            Filter::Core => at_least(wanted.vcpus, host.vcpus, CPU_RATIO, |used| used.vcpus),
            Filter::Ram => at_least(wanted.memory_mib, host.memory_mib, RAM_RATIO, |used| used.memory_mib),
            Filter::Disk => at_least(wanted.disk_gib, host.disk_gib, DISK_RATIO, |used| used.disk_gib),
            Filter::ComputeCapabilities => wanted.extra_specs.pass(Judge::Capabilities, host),
            Filter::AggregateExtraSpecs => wanted.extra_specs.pass(Judge::Aggregates, host),
            Filter::Placement => {
                let needed = wanted.extra_specs.resources();
                let enough = || {
                    let mut room = host.capacity();
                    if let Some(used) = self.used(host.id) {
                        room.subtract(1, used);
                    }
                    needed.fits_into(&room)
                };
                wanted.extra_specs.pass(Judge::Placement, host) && (needed.is_nothing() || enough())
            }
            Filter::Trusted => wanted.extra_specs.pass(Judge::Trust, host),
            Filter::NumaTopology => wanted.extra_specs.pass(Judge::Numa, host),
            Filter::PciPassthrough => wanted.extra_specs.pass(Judge::Pci, host),
            Filter::ImageProperties => wanted.image.supported_by(host),
            Filter::AggregateImageProperties => wanted.image.welcome_on(host),
            // Hosts of a reservation are compared later, once the free ones are known.
            Filter::Homogeneous => wanted.is_comparable(host),
            // These don't depend on the request.
            Filter::AllHosts
            | Filter::Compute
            | Filter::IsolatedHosts
            | Filter::MultiTenancy
            | Filter::Json => true,
        }
    }
}

impl Search<'_> {
    /// The filter that excludes the host for this lease from `start` on, independent of its terms.
    pub(super) fn objection(&self, host: &Host, start: Timestamp) -> Option<HostFilter> {
        let admission = &self.admission;
        let unused = admission.out_of_use(host, start).filter(|_| !(self.keeps_own && self.has(host.id)));
        unused.or_else(|| admission.kept_from(host)).or_else(|| admission.against_hints(host))
    }

    pub(super) fn has(&self, host: HostId) -> bool {
        let mut bookings = self.admission.calendar.bookings(host);
        bookings.any(|(_, booking)| Some(booking.lease) == self.own)
    }
}

impl Admission<'_> {
    /// Evaluates the expression for a host, once per decision if the decision is
    /// [remembering](Self::remembering).
    pub(super) fn meets(&self, requirement: &Requirement, host: &Host) -> bool {
        let Some(place) = requirement.identity() else { return true };
        let ask = || self.budget.spend(requirement.work()) && requirement.matches(host);
        match self.memory.filter(|_| requirement.work() >= WORTH_IT) {
            Some(memory) => memory.meets(requirement, place, host, ask),
            None => ask(),
        }
    }

    /// Runs a decision that remembers evaluated expressions. A nested call uses the memory of the outer one.
    pub(super) fn remembering<T>(&self, decide: impl FnOnce(Admission<'_>) -> T) -> T {
        if self.memory.is_some() {
            return decide(*self);
        }
        let memory = Memory::default();
        decide(Admission { memory: Some(&memory), ..*self })
    }
}
