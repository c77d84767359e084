//! Terms: the content of a request for a lease. Values are valid by construction; [`crate::admission`]
//! decides whether they can be met.

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

/// Terms of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Never empty.
    pub(crate) window: Window,
    /// Due time of the before-end action. `None` means at the default distance from the end.
    pub(crate) before_end: Option<Timestamp>,
    /// Start rule. With [`LeaseType::BestEffort`], the window's start is the earliest start; otherwise it is
    /// the start.
    pub lease_type: LeaseType,
    /// Period in which the window can be placed, for a scheduled lease without fixed dates.
    pub(crate) within: Option<Window>,
    /// Requested reservations. Can be empty, as in Blazar.
    pub reservations: Vec<ReservationTerms>,
    /// Placement of its hosts, and spread of its instances.
    pub hints: Arc<Hints>,
    /// Whether preemptible instances can run on its whole hosts while the lease doesn't use them.
    pub backfill: bool,
}

impl Terms {
    /// Terms of a scheduled lease with fixed dates, without hints or backfill.
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

    /// Allows the window to be placed anywhere in `within`, which must be at least as long.
    pub fn anywhere_in(self, within: Window) -> Result<Self, TermsError> {
        if within.length() < self.window.length() {
            return Err(TermsError::LongerThanWindow);
        }
        Ok(Self { within: Some(within), ..self.starting(within.start()) })
    }

    /// Whether the lease starts at the window's start, and at no other time.
    pub fn has_dates(&self) -> bool {
        self.within.is_none() && !matches!(self.lease_type, LeaseType::BestEffort { .. })
    }

    /// Period in which the window can be placed. `None` if the dates are fixed.
    pub fn within(&self) -> Option<Window> {
        self.within
    }

    /// Fixes the current dates.
    #[must_use]
    pub(crate) fn fixed(self) -> Self {
        Self { within: None, ..self }
    }

    #[must_use]
    pub fn of_type(self, lease_type: LeaseType) -> Self {
        Self { lease_type, ..self }
    }

    #[must_use]
    pub fn hinting(self, hints: Hints) -> Self {
        Self { hints: Arc::new(hints), ..self }
    }

    /// Sets whether preemptible instances can run on hosts that the lease doesn't use.
    #[must_use]
    pub fn backfilled(self, backfill: bool) -> Self {
        Self { backfill, ..self }
    }

    /// Moves the window to a new start. Its length is unchanged.
    #[must_use]
    pub fn starting(self, start: Timestamp) -> Self {
        let shift = start.duration_since(self.window.start());
        let before_end = self.before_end.map(|at| later(at, shift));
        Self { window: Window::starting(start, self.window.length()), before_end, ..self }
    }

    /// Changes the window. The before-end action keeps its distance from the end.
    #[must_use]
    pub fn during(self, window: Window) -> Self {
        let shift = window.end().duration_since(self.window.end());
        let before_end = self.before_end.map(|at| later(at, shift).max(window.start()));
        Self { window, before_end, ..self }
    }

    pub fn window(&self) -> Window {
        self.window
    }

    /// Due time of the before-end action. `None` means at the default distance from the end.
    pub fn before_end(&self) -> Option<Timestamp> {
        self.before_end
    }
}

/// Checks that the before-end action is due strictly inside the window.
pub(crate) fn check_before_end(window: &Window, at: Option<Timestamp>) -> Result<(), TermsError> {
    match at {
        Some(at) if at <= window.start() || window.end() <= at => Err(TermsError::BeforeEndOutOfLimits),
        _ => Ok(()),
    }
}

/// Terms of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationTerms {
    /// Whole hosts: `physical:host`.
    Hosts(HostsTerms),
    /// Capacity for instances of a size: `virtual:instance`.
    Instances(InstancesTerms),
    /// Capacity for instances of an existing flavor: `flavor:instance`.
    Flavor(FlavorTerms),
    /// Floating IPs: `virtual:floatingip`.
    FloatingIps(FloatingIpsTerms),
}

impl ReservationTerms {
    /// Blazar's name of the resource type.
    pub fn resource_type(&self) -> &'static str {
        match self {
            Self::Hosts(_) => "physical:host",
            Self::Instances(_) => "virtual:instance",
            Self::Flavor(_) => "flavor:instance",
            Self::FloatingIps(_) => "virtual:floatingip",
        }
    }

    /// Identifier of the requested flavor.
    pub fn flavor(&self) -> Option<&str> {
        match self {
            Self::Flavor(terms) => Some(&terms.flavor.id),
            Self::Hosts(_) | Self::Instances(_) | Self::FloatingIps(_) => None,
        }
    }

    /// Number of instances or addresses, or maximum number of hosts.
    pub fn number(&self) -> u32 {
        match self {
            Self::Hosts(terms) => terms.max(),
            Self::Instances(terms) => terms.amount.get(),
            Self::Flavor(terms) => terms.amount.get(),
            Self::FloatingIps(terms) => terms.amount(),
        }
    }

    /// The same terms with another number of hosts, instances or addresses. `None` if the number is invalid.
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

    /// The same terms for another free pool. `None` if they don't name one.
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

    /// Number of values in their expressions.
    pub fn values(&self) -> usize {
        match self {
            Self::Hosts(terms) => terms.hypervisor.values() + terms.resource.values(),
            Self::Instances(terms) => terms.requirement.values(),
            Self::Flavor(_) | Self::FloatingIps(_) => 0,
        }
    }

    /// Requested slots. `None` for whole hosts and floating IPs.
    pub fn slots(&self) -> Option<SlotsTerms<'_>> {
        match self {
            Self::Instances(terms) => Some(terms.slots()),
            Self::Flavor(terms) => Some(terms.slots()),
            Self::Hosts(_) | Self::FloatingIps(_) => None,
        }
    }
}

/// Action on a lease's hosts shortly before its end (API-before-end).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BeforeEndAction {
    /// The operator's default.
    #[default]
    Default,
    None,
    /// Makes an image of every guest.
    Snapshot,
}

/// Terms of a reservation of whole hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsTerms {
    min: NonZeroU32,
    max: NonZeroU32,
    /// `hypervisor_properties`.
    pub hypervisor: Requirement,
    /// Both requirements, `hypervisor` and this one, must hold. They are evaluated alike (API-expressions).
    pub resource: Requirement,
    /// Further required properties.
    pub properties: Arc<HostProperties>,
    pub before_end: BeforeEndAction,
    /// Settings of its hosts while the lease runs.
    pub pool: LeasePool,
}

impl HostsTerms {
    /// At least `min` and up to `max` hosts, without requirements.
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

    /// Sets `resource_properties`.
    #[must_use]
    pub fn requiring(self, resource: Requirement) -> Self {
        Self { resource, ..self }
    }

    pub fn with_range(self, min: u32, max: u32) -> Result<Self, TermsError> {
        let Self { min, max, .. } = Self::new(min, max)?;
        Ok(Self { min, max, ..self })
    }

    pub fn min(&self) -> u32 {
        self.min.get()
    }

    pub fn max(&self) -> u32 {
        self.max.get()
    }
}

/// Placement of a reservation's instances relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Affinity {
    /// Any hosts (`null`).
    #[default]
    Any,
    /// All on one host (`true`).
    OneHost,
    /// Each on a different host (`false`).
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

/// Terms of a reservation of capacity for instances of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancesTerms {
    /// Size of each instance.
    pub size: InstanceSize,
    /// Second disk and extra specs of each instance. `None` if it has neither.
    pub extras: Option<Arc<InstanceExtras>>,
    /// Number of instances.
    pub amount: NonZeroU32,
    pub affinity: Affinity,
    /// `resource_properties`.
    pub requirement: Requirement,
    /// Failure after which there must still be capacity for all instances.
    pub survives: Option<FailureDomain>,
}

impl InstancesTerms {
    /// Second disk of each instance, in GiB.
    pub fn ephemeral_gib(&self) -> u32 {
        self.extras.as_deref().map_or(0, InstanceExtras::ephemeral_gib)
    }

    pub fn extra_specs(&self) -> BTreeMap<String, String> {
        self.extras.as_deref().map(|extras| extras.extra_specs().clone()).unwrap_or_default()
    }

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

/// Terms of a reservation of capacity for instances of a flavor. The flavor is a snapshot taken when the
/// lease was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorTerms {
    pub flavor: Flavor,
    /// Number of instances.
    pub amount: NonZeroU32,
    /// Failure after which there must still be capacity for all instances.
    pub survives: Option<FailureDomain>,
}

impl FlavorTerms {
    /// Requested slots. Blazar has no affinity for them.
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

/// Terms of a reservation of floating IPs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIpsTerms {
    pub network: NetworkId,
    amount: u32,
    required: BTreeSet<IpAddr>,
}

impl FloatingIpsTerms {
    /// `amount` addresses, including `required`. An amount of 0 is accepted, as in Blazar.
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

    pub fn amount(&self) -> u32 {
        self.amount
    }

    /// Addresses that must be included.
    pub fn required(&self) -> &BTreeSet<IpAddr> {
        &self.required
    }
}

/// Slots for instances: the common part of `virtual:instance` and `flavor:instance`.
#[derive(Clone, Debug)]
pub struct SlotsTerms<'a> {
    /// Resources of one slot.
    pub size: Resources,
    /// Number of slots.
    pub amount: u32,
    pub affinity: Affinity,
    /// Identifier of the flavor, if one was requested.
    pub flavor: Option<&'a str>,
    /// Requirement on hosts.
    pub requirement: Option<&'a Requirement>,
    /// Required and forbidden traits of hosts.
    pub traits: Option<&'a FlavorTraits>,
    /// Failure after which there must still be `amount` slots.
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
