//! Usage in answers (USE, CLS-12). Not in Blazar.
//!
//! Sums are exact internally. Here they are hours, rounded to a millionth. Money is text, since JSON numbers
//! are binary.

use leases::usage::{Amounts, By, Charge, Decimal, Event, Group, Instances, Item, Totals};
use leases::window::Window;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Microseconds in an hour.
const HOUR_US: u128 = 3_600_000_000;
/// MiB in a GiB.
const MIB: u128 = 1024;

/// Hours of a unit, from microseconds of parts of it. `in_one` is the number of parts in the unit.
fn hours(parts: u128, in_one: u128) -> f64 {
    Decimal::of_parts(parts, HOUR_US * in_one).millionths as f64 / 1e6
}

/// Reserved resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reserved {
    /// Reserved whole hosts, in host-hours.
    pub host_hours: f64,
    /// Reserved slots for instances, in slot-hours.
    pub slot_hours: f64,
    /// Reserved addresses, in address-hours.
    pub address_hours: f64,
    /// CPUs of reserved hosts and slots, in core-hours.
    pub core_hours: f64,
    /// Memory of reserved hosts and slots, in GiB-hours.
    pub gib_hours: f64,
    /// Disk of reserved hosts and slots, in GiB-hours.
    pub disk_gib_hours: f64,
}

/// Resources used by instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    /// Number of instances started.
    pub instances_started: u64,
    /// Running time of all instances, in instance-hours.
    pub instance_hours: f64,
    /// CPUs of instances, in core-hours.
    pub core_hours: f64,
    /// Memory of instances, in GiB-hours.
    pub gib_hours: f64,
    /// Disk of instances, in GiB-hours.
    pub disk_gib_hours: f64,
}

impl From<&Totals> for Reserved {
    fn from(totals: &Totals) -> Self {
        let Amounts { cores_us, memory_mib_us, disk_gib_us } = totals.reserved();
        Self {
            host_hours: hours(totals.hosts_us, 1),
            slot_hours: hours(totals.slots_us, 1),
            address_hours: hours(totals.addresses_us, 1),
            core_hours: hours(cores_us, 1),
            gib_hours: hours(memory_mib_us, MIB),
            disk_gib_hours: hours(disk_gib_us, 1),
        }
    }
}

impl From<&Instances> for Used {
    fn from(instances: &Instances) -> Self {
        Self {
            instances_started: instances.started,
            instance_hours: hours(instances.count_us, 1),
            core_hours: hours(instances.amounts.cores_us, 1),
            gib_hours: hours(instances.amounts.memory_mib_us, MIB),
            disk_gib_hours: hours(instances.amounts.disk_gib_us, 1),
        }
    }
}

/// Usage of a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeaseUsage {
    /// Reserved resources from start to end, with the lease's current dates.
    pub reserved: Reserved,
    /// Part of `reserved` that is in the past.
    pub reserved_so_far: Reserved,
    /// Resources used so far by instances in the lease.
    pub used: Used,
}

impl LeaseUsage {
    /// Usage of a lease: `whole` is from its start to its end, `so_far` is until now.
    pub fn new(whole: &Totals, so_far: &Totals) -> Self {
        Self { reserved: whole.into(), reserved_so_far: so_far.into(), used: (&so_far.in_leases).into() }
    }
}

/// Usage of one group in one period. The fields of the group are present if the request groups by them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Start of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Identifier of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Identifier of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Name of the hosts' free pool; absent for resources outside of pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Identifier of the lease; absent for instances outside of leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    /// Name of the lease; absent if the lease no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_name: Option<String>,
    /// Type of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_type: Option<String>,
    /// Number of leases that started.
    pub leases_started: u64,
    /// Resources reserved by leases.
    pub reserved: Reserved,
    /// Resources used by instances in leases.
    pub used: Used,
    /// Resources used by instances outside of leases.
    pub unleased: Used,
}

impl Usage {
    /// Usage of a group in a period.
    pub fn new(period: Window, group: &Group, totals: &Totals) -> Self {
        Self {
            start: period.start().to_string(),
            end: period.end().to_string(),
            project_id: group.project.as_ref().map(|project| project.0.clone()),
            user_id: group.user.as_ref().map(|user| user.0.clone()),
            pool: group.pool.clone(),
            lease_id: group.lease.map(|lease| lease.to_string()),
            lease_name: None,
            lease_type: group.lease_type.clone(),
            leases_started: totals.leases_started,
            reserved: totals.into(),
            used: (&totals.in_leases).into(),
            unleased: (&totals.beside_leases).into(),
        }
    }

    /// Headings of a table of usage by the requested groups.
    pub fn headings(by: By) -> Vec<&'static str> {
        let asked = [
            ("project_id", by.project),
            ("user_id", by.user),
            ("pool", by.pool),
            ("lease_id", by.lease),
            ("lease_type", by.lease_type),
        ];
        let asked = asked.into_iter().filter(|(_, asked)| *asked).map(|(name, _)| name);
        let fixed = [
            "leases_started",
            "host_hours",
            "slot_hours",
            "address_hours",
            "core_hours",
            "gib_hours",
            "disk_gib_hours",
            "instances_started",
            "instance_hours",
            "used_core_hours",
            "used_gib_hours",
            "used_disk_gib_hours",
            "unleased_instances_started",
            "unleased_instance_hours",
            "unleased_core_hours",
            "unleased_gib_hours",
            "unleased_disk_gib_hours",
        ];
        ["start", "end"].into_iter().chain(asked).chain(fixed).collect()
    }

    /// A row of the table with these [headings](Self::headings).
    pub fn row(&self, by: By) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let asked = [
            (text(&self.project_id), by.project),
            (text(&self.user_id), by.user),
            (text(&self.pool), by.pool),
            (text(&self.lease_id), by.lease),
            (text(&self.lease_type), by.lease_type),
        ];
        let asked = asked.into_iter().filter(|(_, asked)| *asked).map(|(text, _)| text);
        let Reserved { host_hours, slot_hours, address_hours, core_hours, gib_hours, disk_gib_hours } =
            &self.reserved;
        let reserved = [host_hours, slot_hours, address_hours, core_hours, gib_hours, disk_gib_hours];
        let instances = [&self.used, &self.unleased].into_iter().flat_map(|used| {
            let hours = [used.instance_hours, used.core_hours, used.gib_hours, used.disk_gib_hours];
            std::iter::once(used.instances_started.to_string()).chain(hours.map(|hours| hours.to_string()))
        });
        [self.start.clone(), self.end.clone()]
            .into_iter()
            .chain(asked)
            .chain([self.leases_started.to_string()])
            .chain(reserved.map(ToString::to_string))
            .chain(instances)
            .collect()
    }
}

/// Cost of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cost {
    /// Amount: a decimal number, rounded to six decimals.
    pub amount: String,
    /// Currency, as configured by the operator.
    pub currency: String,
}

/// A line of a bill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BillingLine {
    /// Start of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Identifier of the project.
    pub project_id: String,
    /// Identifier of the user.
    pub user_id: String,
    /// Identifier of the lease; absent for preemptible instances, which are outside of leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    /// Name of the lease; absent if the lease no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_name: Option<String>,
    /// Billed item: lease, host, room, room-core, room-memory, address, instance, preemptible-core or
    /// preemptible-memory.
    pub item: String,
    /// Quantity in `unit`: a decimal number, rounded to six decimals.
    pub quantity: String,
    /// Unit of the quantity: `host-hour`.
    pub unit: String,
    /// Price of one unit: a decimal number.
    pub unit_price: String,
    /// Amount of the line: a decimal number, rounded to six decimals once.
    pub amount: String,
}

impl BillingLine {
    /// Headings of a table of billing lines.
    pub const HEADINGS: [&str; 10] = [
        "start",
        "end",
        "project_id",
        "user_id",
        "lease_id",
        "item",
        "quantity",
        "unit",
        "unit_price",
        "amount",
    ];

    /// The charge for a lease, or for a user's preemptible instances, in a period. `None` if the group has no
    /// project or no user.
    pub fn new(period: Window, group: &Group, charge: &Charge) -> Option<Self> {
        let item: Item = charge.item;
        Some(Self {
            start: period.start().to_string(),
            end: period.end().to_string(),
            project_id: group.project.as_ref()?.0.clone(),
            user_id: group.user.as_ref()?.0.clone(),
            lease_id: group.lease.map(|lease| lease.to_string()),
            lease_name: None,
            item: item.name().to_owned(),
            quantity: charge.quantity.to_string(),
            unit: item.unit().to_owned(),
            unit_price: charge.unit_price.to_string(),
            amount: charge.amount.to_string(),
        })
    }

    /// A row of the table with these [headings](Self::HEADINGS).
    pub fn row(&self) -> Vec<String> {
        let Self { start, end, project_id, user_id, lease_id, .. } = self;
        let Self { item, quantity, unit, unit_price, amount, .. } = self;
        let lease_id = lease_id.as_deref().unwrap_or_default();
        let fields: [&str; 10] =
            [start, end, project_id, user_id, lease_id, item, quantity, unit, unit_price, amount];
        fields.map(str::to_owned).to_vec()
    }
}

/// Event of a lease or an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageEvent {
    /// Number of the event. Numbers increase over time.
    pub number: u64,
    /// Time of the event: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// Kind of event: `lease.started`, `instance.moved`.
    pub event: String,
    /// Identifier of the lease, or of the instance's lease; null if there is no lease.
    pub lease_id: Option<String>,
    /// Identifier of the instance; null for events of leases.
    pub instance_id: Option<String>,
    /// Identifier of the project.
    pub project_id: String,
    /// Identifier of the user.
    pub user_id: String,
    /// Type of the lease.
    pub lease_type: Option<String>,
    /// Status after the event.
    pub status: String,
    /// Start of the lease after the event: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start_date: Option<String>,
    /// End of the lease after the event: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end_date: Option<String>,
    /// Identifiers of the lease's hosts after the event, or of the instance's host. Empty unless the caller
    /// is an administrator.
    pub hosts: Vec<String>,
    /// Reason for the event; null if unknown.
    pub reason: Option<String>,
}

impl UsageEvent {
    /// The event with that number. `show_hosts`: the reader may know hosts.
    pub fn new(number: u64, event: Event, show_hosts: bool) -> Self {
        let hosts = event.hosts.iter().filter(|_| show_hosts).map(ToString::to_string).collect();
        Self {
            number,
            timestamp: event.at.to_string(),
            event: event.what.name().to_owned(),
            lease_id: event.lease.map(|lease| lease.to_string()),
            instance_id: event.instance.map(|instance| instance.to_string()),
            project_id: event.owner.project.0,
            user_id: event.owner.user.0,
            lease_type: event.lease_type,
            status: event.status,
            start_date: event.window.map(|window| window.start().to_string()),
            end_date: event.window.map(|window| window.end().to_string()),
            hosts,
            reason: event.reason,
        }
    }
}
