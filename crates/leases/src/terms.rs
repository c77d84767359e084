//! What is asked for: the terms of a lease. Values here cannot be wrong in themselves; whether they can be met
//! is [`crate::admission`]'s question.

mod error;
mod extras;
mod flavor;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;

pub use self::error::TermsError;
pub use self::extras::InstanceExtras;
pub use self::flavor::{Flavor, FlavorSize, FlavorTraits};
pub use self::size::InstanceSize;
use crate::failure_domain::FailureDomain;
use crate::free_pool::POOL_PROPERTY;
use crate::hints::Hints;
use crate::host::NetworkId;
use crate::lease_pool::record::LeasePool;
use crate::lease_type::LeaseType;
use crate::properties::HostProperties;
use crate::requirement::Requirement;
use crate::resources::Resources;
use crate::window::{Window, later};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// From when to when; not empty.
    pub(crate) window: Window,
    /// When the before-end action is due, if not at the usual distance from the end.
    pub(crate) before_end: Option<Timestamp>,
    /// When it is to start: at the window's start, or, with [`LeaseType::BestEffort`], not before that.
    pub lease_type: LeaseType,
    /// If it has no dates of its own: in which time it may lie, with the length of its window. Of scheduled leases only.
    pub(crate) within: Option<Window>,
    /// What is to be reserved; may be empty, as in Blazar.
    pub reservations: Vec<ReservationTerms>,
    /// Where its hosts are to be, and how its instances are spread.
    pub hints: Arc<Hints>,
    /// Whether preemptible instances may run on whole hosts of it as long as it does not use them.
    pub backfill: bool,
}

impl Terms {
    /// Terms for that window.
    pub fn new(
        window: Window,
        before_end: Option<Timestamp>,
        reservations: Vec<ReservationTerms>,
    ) -> Result<Self, TermsError> {
        if window.is_empty() {
            return Err(TermsError::EndNotAfterStart);
        }
        check_before_end(&window, before_end)?;
        Ok(Self {
            window,
            before_end,
            lease_type: LeaseType::Schedule,
            within: None,
            reservations,
            hints: Arc::default(),
            backfill: false,
        })
    }

    /// The same at any time in that window, in which it must fit.
    pub fn anywhere_in(self, within: Window) -> Result<Self, TermsError> {
        if within.length() < self.window.length() {
            return Err(TermsError::LongerThanWindow);
        }
        Ok(Self { within: Some(within), ..self.starting(within.start()) })
    }

    /// Whether it is to start at the window's start, and at no other time.
    pub fn has_dates(&self) -> bool {
        self.within.is_none() && !matches!(self.lease_type, LeaseType::BestEffort { .. })
    }

    /// In which time it may lie, if it has no dates of its own.
    pub fn within(&self) -> Option<Window> {
        self.within
    }

    /// The same with the dates that it has, whatever else would do.
    #[must_use]
    pub(crate) fn fixed(self) -> Self {
        Self { within: None, ..self }
    }

    /// The same for a lease of that type.
    #[must_use]
    pub fn of_type(self, lease_type: LeaseType) -> Self {
        Self { lease_type, ..self }
    }

    /// The same with these hints.
    #[must_use]
    pub fn hinting(self, hints: Hints) -> Self {
        Self { hints: Arc::new(hints), ..self }
    }

    /// The same with preemptible instances on hosts that it does not use, or without.
    #[must_use]
    pub fn backfilled(self, backfill: bool) -> Self {
        Self { backfill, ..self }
    }

    /// The same from that instant on, and as long.
    #[must_use]
    pub fn starting(self, start: Timestamp) -> Self {
        let shift = start.duration_since(self.window.start());
        let before_end = self.before_end.map(|at| later(at, shift));
        Self { window: Window::starting(start, self.window.length()), before_end, ..self }
    }

    /// The same in that window; what is due before the end keeps its distance from it.
    #[must_use]
    pub fn during(self, window: Window) -> Self {
        let shift = window.end().duration_since(self.window.end());
        let before_end = self.before_end.map(|at| later(at, shift).max(window.start()));
        Self { window, before_end, ..self }
    }

    /// From when to when.
    pub fn window(&self) -> Window {
        self.window
    }

    /// When the before-end action is due, if not at the usual distance from the end.
    pub fn before_end(&self) -> Option<Timestamp> {
        self.before_end
    }
}

/// The before-end action must be due strictly inside the window.
pub(crate) fn check_before_end(window: &Window, at: Option<Timestamp>) -> Result<(), TermsError> {
    match at {
        Some(at) if at <= window.start() || window.end() <= at => Err(TermsError::BeforeEndOutOfLimits),
        _ => Ok(()),
    }
}

/// One thing to be reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationTerms {
    /// Whole hosts: `physical:host`.
    Hosts(HostsTerms),
    /// Room for instances of a size: `virtual:instance`.
    Instances(InstancesTerms),
    /// Room for instances of an existing flavor: `flavor:instance`.
    Flavor(FlavorTerms),
    /// Addresses: `virtual:floatingip`.
    FloatingIps(FloatingIpsTerms),
}

impl ReservationTerms {
    /// Blazar's name of the type.
    pub fn resource_type(&self) -> &'static str {
        match self {
            Self::Hosts(_) => "physical:host",
            Self::Instances(_) => "virtual:instance",
            Self::Flavor(_) => "flavor:instance",
            Self::FloatingIps(_) => "virtual:floatingip",
        }
    }

    /// The identifier of the flavor that is asked for, if one is.
    pub fn flavor(&self) -> Option<&str> {
        match self {
            Self::Flavor(terms) => Some(&terms.flavor.id),
            Self::Hosts(_) | Self::Instances(_) | Self::FloatingIps(_) => None,
        }
    }

    /// How many hosts at most, instances or addresses are asked for.
    pub fn number(&self) -> u32 {
        match self {
            Self::Hosts(terms) => terms.max(),
            Self::Instances(terms) => terms.amount.get(),
            Self::Flavor(terms) => terms.amount.get(),
            Self::FloatingIps(terms) => terms.amount(),
        }
    }

    /// The same for so many hosts, instances or addresses, if that can be.
    #[must_use]
    pub(crate) fn with_number(&self, number: u32) -> Option<Self> {
        let amount = NonZeroU32::new(number)?;
        Some(match self {
            Self::Hosts(terms) => Self::Hosts(terms.clone().with_range(number, number).ok()?),
            Self::Instances(terms) => Self::Instances(InstancesTerms { amount, ..terms.clone() }),
            Self::Flavor(terms) => Self::Flavor(FlavorTerms { amount, ..terms.clone() }),
            Self::FloatingIps(terms) => Self::FloatingIps(
                FloatingIpsTerms::new(terms.network.clone(), number, terms.required.iter().copied()).ok()?,
            ),
        })
    }

    /// The same with hosts of another free pool; nothing if it does not name one.
    #[must_use]
    pub(crate) fn in_free_pool(&self, pool: &str) -> Option<Self> {
        let elsewhere = |requirement: &Requirement| requirement.with_value(POOL_PROPERTY, pool);
        match self {
            Self::Hosts(terms) => {
                let mut moved = terms.clone();
                let resource = elsewhere(&terms.resource);
                let hypervisor = elsewhere(&terms.hypervisor);
                let specs = terms.properties.extra_specs.with_value(POOL_PROPERTY, pool);
                if resource.is_none() && hypervisor.is_none() && specs.is_none() {
                    return None;
                }
                moved.resource = resource.unwrap_or(moved.resource);
                moved.hypervisor = hypervisor.unwrap_or(moved.hypervisor);
                if let Some(specs) = specs {
                    Arc::make_mut(&mut moved.properties).extra_specs = specs;
                }
                Some(Self::Hosts(moved))
            }
            Self::Instances(terms) => {
                let requirement = elsewhere(&terms.requirement)?;
                Some(Self::Instances(InstancesTerms { requirement, ..terms.clone() }))
            }
            Self::Flavor(_) | Self::FloatingIps(_) => None,
        }
    }

    /// With how many values its expressions compare.
    pub fn values(&self) -> usize {
        match self {
            Self::Hosts(terms) => terms.hypervisor.values() + terms.resource.values(),
            Self::Instances(terms) => terms.requirement.values(),
            Self::Flavor(_) | Self::FloatingIps(_) => 0,
        }
    }

    /// Slots of room for instances, if that is what is asked for.
    pub fn slots(&self) -> Option<SlotsTerms<'_>> {
        match self {
            Self::Instances(terms) => Some(terms.slots()),
            Self::Flavor(terms) => Some(terms.slots()),
            Self::Hosts(_) | Self::FloatingIps(_) => None,
        }
    }
}

/// What to do with a lease's hosts shortly before its end (API-before-end).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BeforeEndAction {
    /// What the operator has configured.
    #[default]
    Default,
    /// Nothing.
    None,
    /// An image of every guest.
    Snapshot,
}

/// Whole hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsTerms {
    min: NonZeroU32,
    max: NonZeroU32,
    /// `hypervisor_properties`.
    pub hypervisor: Requirement,
    /// `resource_properties`; both requirements must hold, and they are evaluated alike (API-expressions).
    pub resource: Requirement,
    /// What else hosts must be like.
    pub properties: Arc<HostProperties>,
    /// What to do shortly before the end.
    pub before_end: BeforeEndAction,
    /// How its hosts are dealt with while the lease runs.
    pub pool: LeasePool,
}

impl HostsTerms {
    /// At least `min` and if possible `max` hosts, any.
    pub fn new(min: u32, max: u32) -> Result<Self, TermsError> {
        let (Some(min), Some(max)) = (NonZeroU32::new(min), NonZeroU32::new(max)) else {
            return Err(TermsError::NoHosts);
        };
        if max < min {
            return Err(TermsError::MaxBelowMin);
        }
        Ok(Self {
            min,
            max,
            hypervisor: Requirement::NONE,
            resource: Requirement::NONE,
            properties: Arc::default(),
            before_end: BeforeEndAction::Default,
            pool: LeasePool::default(),
        })
    }

    /// With that requirement as `resource_properties`.
    #[must_use]
    pub fn requiring(self, resource: Requirement) -> Self {
        Self { resource, ..self }
    }

    /// The same with other numbers.
    pub fn with_range(self, min: u32, max: u32) -> Result<Self, TermsError> {
        let Self { min, max, .. } = Self::new(min, max)?;
        Ok(Self { min, max, ..self })
    }

    /// Fewer would not do.
    pub fn min(&self) -> u32 {
        self.min.get()
    }

    /// More are not wanted.
    pub fn max(&self) -> u32 {
        self.max.get()
    }
}

/// How a reservation's instances relate to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Affinity {
    /// Anywhere (`null`).
    #[default]
    Any,
    /// All on one host (`true`).
    OneHost,
    /// Each on a host of its own (`false`).
    DistinctHosts,
}

impl From<Option<bool>> for Affinity {
    fn from(affinity: Option<bool>) -> Self {
        match affinity {
            None => Self::Any,
            Some(true) => Self::OneHost,
            Some(false) => Self::DistinctHosts,
        }
    }
}

/// Room for instances of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancesTerms {
    /// The size of each.
    pub size: InstanceSize,
    /// The second disk and the extra specs of each, if there are any.
    pub extras: Option<Arc<InstanceExtras>>,
    /// How many.
    pub amount: NonZeroU32,
    /// How they relate to each other.
    pub affinity: Affinity,
    /// `resource_properties`.
    pub requirement: Requirement,
    /// What may fail without there being room for fewer.
    pub survives: Option<FailureDomain>,
}

impl InstancesTerms {
    /// The second disk of each, GiB.
    pub fn ephemeral_gib(&self) -> u32 {
        self.extras.as_deref().map_or(0, InstanceExtras::ephemeral_gib)
    }

    /// The extra specs of each.
    pub fn extra_specs(&self) -> BTreeMap<String, String> {
        self.extras.as_deref().map(|extras| extras.extra_specs().clone()).unwrap_or_default()
    }

    /// The slots that are asked for.
    pub fn slots(&self) -> SlotsTerms<'_> {
        SlotsTerms {
            size: match &self.extras {
                Some(extras) => extras.resources(&self.size),
                None => self.size.resources(),
            },
            amount: self.amount.get(),
            affinity: self.affinity,
            requirement: Some(&self.requirement),
            flavor: None,
            traits: self.extras.as_deref().map(InstanceExtras::traits),
            survives: self.survives.as_ref(),
        }
    }
}

/// Room for instances of a flavor, as it was when the lease was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorTerms {
    /// The flavor.
    pub flavor: Flavor,
    /// How many.
    pub amount: NonZeroU32,
    /// What may fail without there being room for fewer.
    pub survives: Option<FailureDomain>,
}

impl FlavorTerms {
    /// The slots that are asked for. Blazar has no affinity for them.
    pub fn slots(&self) -> SlotsTerms<'_> {
        SlotsTerms {
            size: self.flavor.resources().clone(),
            amount: self.amount.get(),
            affinity: Affinity::Any,
            requirement: None,
            flavor: Some(&self.flavor.id),
            traits: Some(self.flavor.traits()),
            survives: self.survives.as_ref(),
        }
    }
}

/// Addresses of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpsTerms {
    /// The network.
    pub network: NetworkId,
    amount: u32,
    required: BTreeSet<IpAddr>,
}

impl FloatingIpsTerms {
    /// So many addresses, these among them. An amount of 0 is accepted, as in Blazar.
    pub fn new(
        network: NetworkId,
        amount: u32,
        required: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, TermsError> {
        let required: BTreeSet<IpAddr> = required.into_iter().collect();
        if required.len() > amount as usize {
            return Err(TermsError::MoreRequiredThanAmount);
        }
        Ok(Self { network, amount, required })
    }

    /// How many.
    pub fn amount(&self) -> u32 {
        self.amount
    }

    /// These must be among them.
    pub fn required(&self) -> &BTreeSet<IpAddr> {
        &self.required
    }
}

/// Slots of room for instances: what `virtual:instance` and `flavor:instance` have in common.
#[derive(Clone, Debug)]
pub struct SlotsTerms<'a> {
    /// What one slot uses of its host.
    pub size: Resources,
    /// How many slots.
    pub amount: u32,
    /// How they relate to each other.
    pub affinity: Affinity,
    /// The identifier of the flavor, if one was asked for.
    pub flavor: Option<&'a str>,
    /// What hosts must be like, if anything is required.
    pub requirement: Option<&'a Requirement>,
    /// Traits of hosts, if any are wanted or not wanted.
    pub traits: Option<&'a FlavorTraits>,
    /// What may fail without there being fewer slots.
    pub survives: Option<&'a FailureDomain>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_hosts_is_checked_as_blazar_does() {
        assert_eq!(HostsTerms::new(0, 2), Err(TermsError::NoHosts));
        assert_eq!(HostsTerms::new(2, 1), Err(TermsError::MaxBelowMin));
        assert_eq!(HostsTerms::new(1, 1).map(|t| (t.min(), t.max())), Ok((1, 1)));
    }

    #[test]
    fn w9_a_before_end_date_out_of_limits_is_refused_before_anything_happens() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let window = Window::new(at(0), at(60)).expect("forwards");
        for outside in [-1, 0, 60, 61] {
            assert_eq!(Terms::new(window, Some(at(outside)), vec![]), Err(TermsError::BeforeEndOutOfLimits));
        }
        assert!(Terms::new(window, Some(at(1)), vec![]).is_ok());
        let nothing = Window::new(at(0), at(0)).expect("forwards");
        assert_eq!(Terms::new(nothing, None, vec![]), Err(TermsError::EndNotAfterStart));
    }

    #[test]
    fn more_required_addresses_than_wanted_are_refused() {
        let addresses = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse().expect("an address"));
        let network = NetworkId("n".into());
        let refused = FloatingIpsTerms::new(network, 1, addresses);
        assert_eq!(refused, Err(TermsError::MoreRequiredThanAmount));
    }
}
