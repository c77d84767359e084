//! Prices and charges (USE: leases are billed a flat fee, or a premium for each instance).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{By, Group, PREEMPTIBLE, Totals};
use crate::scoped::{ScopeKind, Scoped, Scopes};

/// Microseconds per hour.
const HOUR_US: u128 = 3_600_000_000;
/// MiB per GiB.
const MIB: u128 = 1024;

/// A non-negative decimal number with six decimals, for money and other quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decimal {
    /// Value in millionths.
    pub millionths: u128,
}

/// Error for text that isn't a valid [`Decimal`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be a number that is not negative, of at most six decimals, as 0.25")]
pub struct NotDecimal;

impl Decimal {
    pub const ZERO: Self = Self { millionths: 0 };
    /// As a factor: the full price.
    pub const ONE: Self = Self { millionths: 1_000_000 };
    /// Maximum value accepted, so that products don't overflow.
    const MOST: u128 = 1_000_000_000_000_000;

    /// Product, rounded to the nearest millionth.
    fn times(self, other: Self) -> Self {
        Self::of_parts(self.millionths * other.millionths, 1_000_000_000_000)
    }

    /// `parts` divided by `whole`, rounded to the nearest millionth.
    pub fn of_parts(parts: u128, whole: u128) -> Self {
        let (one, rest) = (parts / whole, parts % whole);
        Self { millionths: one * 1_000_000 + (rest * 1_000_000 + whole / 2) / whole }
    }
}

impl fmt::Display for Decimal {
    /// Without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.millionths / 1_000_000, self.millionths % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl FromStr for Decimal {
    type Err = NotDecimal;

    fn from_str(text: &str) -> Result<Self, NotDecimal> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
            return Err(NotDecimal);
        }
        let number = |text: &str| text.parse::<u128>().map_err(|_| NotDecimal);
        let millionths = number(&format!("{decimals:0<6}"))?;
        let whole = number(whole)?.checked_mul(1_000_000).ok_or(NotDecimal)?;
        let millionths = whole.checked_add(millionths).filter(|all| *all <= Self::MOST).ok_or(NotDecimal)?;
        Ok(Self { millionths })
    }
}

/// Billable items. Reserved resources cost the same whether they are used or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A lease; charged once, when it starts.
    Lease,
    /// A whole host.
    Host,
    /// Capacity for an instance.
    Room,
    /// A CPU of capacity for instances.
    RoomCore,
    /// Memory of capacity for instances.
    RoomMemory,
    /// A floating IP.
    Address,
    /// A running instance in a lease, in addition to the cost of the lease.
    Instance,
    /// A CPU of a preemptible instance.
    PreemptibleCore,
    /// Memory of a preemptible instance.
    PreemptibleMemory,
}

impl Item {
    pub const ALL: [Self; 9] = [
        Self::Lease,
        Self::Host,
        Self::Room,
        Self::RoomCore,
        Self::RoomMemory,
        Self::Address,
        Self::Instance,
        Self::PreemptibleCore,
        Self::PreemptibleMemory,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Host => "host",
            Self::Room => "room",
            Self::RoomCore => "room-core",
            Self::RoomMemory => "room-memory",
            Self::Address => "address",
            Self::Instance => "instance",
            Self::PreemptibleCore => "preemptible-core",
            Self::PreemptibleMemory => "preemptible-memory",
        }
    }

    /// Unit of its quantity.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Host => "host-hour",
            Self::Room => "slot-hour",
            Self::RoomCore | Self::PreemptibleCore => "core-hour",
            Self::RoomMemory | Self::PreemptibleMemory => "GiB-hour",
            Self::Address => "address-hour",
            Self::Instance => "instance-hour",
        }
    }

    /// Number of base parts per unit.
    fn whole(self) -> u128 {
        match self {
            Self::Lease => 1,
            Self::RoomMemory | Self::PreemptibleMemory => HOUR_US * MIB,
            Self::Host
            | Self::Room
            | Self::RoomCore
            | Self::Address
            | Self::Instance
            | Self::PreemptibleCore => HOUR_US,
        }
    }

    /// A group's quantity, in base parts.
    fn parts(self, group: &Group, totals: &Totals) -> u128 {
        let preemptible = group.lease_type.as_deref() == Some(PREEMPTIBLE);
        match self {
            Self::Lease => totals.leases_started.into(),
            Self::Host => totals.hosts_us,
            Self::Room => totals.slots_us,
            Self::RoomCore => totals.of_room.cores_us,
            Self::RoomMemory => totals.of_room.memory_mib_us,
            Self::Address => totals.addresses_us,
            Self::Instance => totals.in_leases.count_us,
            Self::PreemptibleCore if preemptible => totals.beside_leases.amounts.cores_us,
            Self::PreemptibleMemory if preemptible => totals.beside_leases.amounts.memory_mib_us,
            Self::PreemptibleCore | Self::PreemptibleMemory => 0,
        }
    }
}

/// Unit prices. Each can differ by project, flavor and free pool.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prices {
    /// Currency for display, such as `EUR`.
    pub currency: String,
    /// Price per lease.
    pub lease: Scoped<Decimal>,
    /// Price per host and hour.
    pub host_hour: Scoped<Decimal>,
    /// Price per hour of capacity for one instance, in addition to its CPUs and memory.
    pub slot_hour: Scoped<Decimal>,
    /// Price per hour of one CPU of capacity for instances.
    pub core_hour: Scoped<Decimal>,
    /// Price per hour of one GiB of memory of capacity for instances.
    pub gib_hour: Scoped<Decimal>,
    /// Price per floating IP and hour.
    pub address_hour: Scoped<Decimal>,
    /// Price per instance in a lease and hour.
    pub instance_hour: Scoped<Decimal>,
    /// Factor for preemptible instances on the prices of CPUs and memory.
    pub preemptible: Scoped<Decimal>,
}

/// A line of a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub item: Item,
    /// Quantity in the item's [unit](Item::unit).
    pub quantity: Decimal,
    pub unit_price: Decimal,
    /// Amount, rounded to the nearest millionth. It is computed from exact numbers, not from rounded ones.
    pub amount: Decimal,
}

impl Prices {
    fn all(&self) -> [&Scoped<Decimal>; 8] {
        [
            &self.lease,
            &self.host_hour,
            &self.slot_hour,
            &self.core_hour,
            &self.gib_hour,
            &self.address_hour,
            &self.instance_hour,
            &self.preemptible,
        ]
    }

    /// Minimal grouping of usage in which each sum has a single price.
    pub fn grouping(&self) -> By {
        let differs_by = |kind| self.all().iter().any(|price| price.differs_by(kind));
        By {
            project: differs_by(ScopeKind::Project),
            flavor: differs_by(ScopeKind::Flavor),
            pool: differs_by(ScopeKind::Pool),
            lease_type: is_charged(&self.preemptible),
            ..By::default()
        }
    }

    /// Price of one unit of the item for the group.
    fn unit_price(&self, item: Item, group: &Group) -> Decimal {
        let scopes = Scopes {
            project: group.project.as_ref().map(|project| project.0.as_str()),
            flavor: group.flavor.as_deref(),
            pool: group.pool.as_deref(),
        };
        let price = |price: &Scoped<Decimal>| *price.find(scopes).0;
        match item {
            Item::Lease => price(&self.lease),
            Item::Host => price(&self.host_hour),
            Item::Room => price(&self.slot_hour),
            Item::RoomCore => price(&self.core_hour),
            Item::RoomMemory => price(&self.gib_hour),
            Item::Address => price(&self.address_hour),
            Item::Instance => price(&self.instance_hour),
            Item::PreemptibleCore => price(&self.core_hour).times(price(&self.preemptible)),
            Item::PreemptibleMemory => price(&self.gib_hour).times(price(&self.preemptible)),
        }
    }

    /// Total cost, with each line rounded to the nearest millionth. `None` if nothing has a price. Groups
    /// must have at least the [`Self::grouping`].
    pub fn cost<'g>(&self, groups: impl IntoIterator<Item = (&'g Group, &'g Totals)>) -> Option<Decimal> {
        if !self.all().into_iter().any(is_charged) {
            return None;
        }
        let amounts = self.charges(groups).into_iter().map(|charge| charge.amount.millionths);
        Some(Decimal { millionths: amounts.fold(0, u128::saturating_add) })
    }

    /// Lines of a bill, one for each item and price. Items with usage are listed even if they cost nothing.
    /// Groups must have at least the [`Self::grouping`].
    pub fn charges<'g>(&self, groups: impl IntoIterator<Item = (&'g Group, &'g Totals)>) -> Vec<Charge> {
        let mut lines: BTreeMap<(Item, Decimal), u128> = BTreeMap::new();
        for (group, totals) in groups {
            for item in Item::ALL {
                let parts = item.parts(group, totals);
                if parts > 0 {
                    *lines.entry((item, self.unit_price(item, group))).or_default() += parts;
                }
            }
        }
        let charge = |((item, unit_price), parts): ((Item, Decimal), u128)| {
            let whole = item.whole();
            let amount = parts.saturating_mul(unit_price.millionths).saturating_add(whole / 2) / whole;
            let quantity = Decimal::of_parts(parts, whole);
            Charge { item, quantity, unit_price, amount: Decimal { millionths: amount } }
        };
        lines.into_iter().map(charge).collect()
    }
}

fn is_charged(price: &Scoped<Decimal>) -> bool {
    price.values().any(|price| *price > Decimal::ZERO)
}
