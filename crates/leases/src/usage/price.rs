//! Prices, and what is charged (USE: leases are billed a flat fee, or a premium for each instance).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Totals;

/// Microseconds of an hour.
const HOUR_US: u128 = 3_600_000_000;
/// MiB of a GiB.
const MIB: u128 = 1024;

/// A number that is not negative, of money or of anything, to six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decimal {
    /// Millionths.
    pub millionths: u128,
}

/// It is no amount.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be a number that is not negative, of at most six decimals, as 0.25")]
pub struct NotDecimal;

impl Decimal {
    /// Nothing.
    pub const ZERO: Self = Self { millionths: 0 };
    /// Most that is accepted, so that no product is too large.
    const MOST: u128 = 1_000_000_000_000_000;

    /// So many parts of which `whole` make one, to the nearest millionth.
    pub fn of_parts(parts: u128, whole: u128) -> Self {
        let (one, rest) = (parts / whole, parts % whole);
        Self { millionths: one * 1_000_000 + (rest * 1_000_000 + whole / 2) / whole }
    }
}

impl fmt::Display for Decimal {
    /// As a decimal number, without zeros at its end.
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

/// What is charged for. All but instances is flat: it costs the same whether it is used or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A lease, once, when it starts.
    Lease,
    /// A whole host.
    Host,
    /// A CPU of room for instances.
    RoomCore,
    /// Memory of room for instances.
    RoomMemory,
    /// An address.
    Address,
    /// An instance that runs in a lease, beside what the lease costs.
    Instance,
}

impl Item {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Lease, Self::Host, Self::RoomCore, Self::RoomMemory, Self::Address, Self::Instance];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Host => "host",
            Self::RoomCore => "room-core",
            Self::RoomMemory => "room-memory",
            Self::Address => "address",
            Self::Instance => "instance",
        }
    }

    /// What it is measured in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Host => "host-hour",
            Self::RoomCore => "core-hour",
            Self::RoomMemory => "GiB-hour",
            Self::Address => "address-hour",
            Self::Instance => "instance-hour",
        }
    }

    /// How much of it there is, in parts of which so many make a unit.
    fn parts(self, totals: &Totals) -> (u128, u128) {
        match self {
            Self::Lease => (u128::from(totals.leases_started), 1),
            Self::Host => (totals.hosts_us, HOUR_US),
            Self::RoomCore => (totals.of_room.cores_us, HOUR_US),
            Self::RoomMemory => (totals.of_room.memory_mib_us, HOUR_US * MIB),
            Self::Address => (totals.addresses_us, HOUR_US),
            Self::Instance => (totals.in_leases.count_us, HOUR_US),
        }
    }
}

/// What a unit of each item costs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prices {
    /// The currency, as it is to be shown: `EUR`.
    pub currency: String,
    /// A lease.
    pub lease: Decimal,
    /// A host for an hour.
    pub host_hour: Decimal,
    /// A CPU of room for instances for an hour.
    pub core_hour: Decimal,
    /// A GiB of memory of room for instances for an hour.
    pub gib_hour: Decimal,
    /// An address for an hour.
    pub address_hour: Decimal,
    /// An instance in a lease for an hour.
    pub instance_hour: Decimal,
}

/// A line of a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// For what.
    pub item: Item,
    /// How much of it, in its [unit](Item::unit).
    pub quantity: Decimal,
    /// What a unit costs.
    pub unit_price: Decimal,
    /// What it comes to, to the nearest millionth; not a product of rounded numbers.
    pub amount: Decimal,
}

impl Prices {
    /// What a unit of that costs.
    pub fn of(&self, item: Item) -> Decimal {
        match item {
            Item::Lease => self.lease,
            Item::Host => self.host_hour,
            Item::RoomCore => self.core_hour,
            Item::RoomMemory => self.gib_hour,
            Item::Address => self.address_hour,
            Item::Instance => self.instance_hour,
        }
    }

    /// What all of that costs, to the nearest millionth a line; none if nothing has a price.
    pub fn cost(&self, totals: &Totals) -> Option<Decimal> {
        if Item::ALL.into_iter().all(|item| self.of(item) == Decimal::ZERO) {
            return None;
        }
        let amounts = self.charges(totals).into_iter().map(|charge| charge.amount.millionths);
        Some(Decimal { millionths: amounts.fold(0, u128::saturating_add) })
    }

    /// The lines of a bill: of what there is, also where it costs nothing.
    pub fn charges(&self, totals: &Totals) -> Vec<Charge> {
        let charge = |item: Item| {
            let ((parts, whole), unit_price) = (item.parts(totals), self.of(item));
            let amount = (parts.saturating_mul(unit_price.millionths).saturating_add(whole / 2)) / whole;
            let quantity = Decimal::of_parts(parts, whole);
            (parts > 0).then_some(Charge {
                item,
                quantity,
                unit_price,
                amount: Decimal { millionths: amount },
            })
        };
        Item::ALL.into_iter().filter_map(charge).collect()
    }
}
