//! Availability over time, in answers. Not in Blazar.

use jiff::Timestamp;
use leases::admission;
use leases::window::Window;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::date::to_the_minute;

/// Free capacity over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Availability {
    /// Type of the resource: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`.
    pub resource_type: String,
    /// Start of the window: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the window: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Total capacity, including reserved capacity: number of hosts, of instances of the requested size, or
    /// of addresses.
    pub total: u64,
    /// Free capacity, in chronological order and without gaps.
    pub steps: Vec<FreeStep>,
    /// Earliest windows in which the requested amount can be reserved for the requested duration. They don't
    /// overlap. Absent unless the request has a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Vec<Span>>,
}

/// Period of constant free capacity.
// There are many of these, so times become text only when they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FreeStep {
    /// Start of the period: UTC, RFC 3339.
    #[schema(value_type = String, format = "date-time")]
    pub start: Timestamp,
    /// End of the period: UTC, RFC 3339.
    #[schema(value_type = String, format = "date-time")]
    pub end: Timestamp,
    /// Number of free hosts, instances or addresses.
    pub free: u64,
}

/// A time window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// Start: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
}

impl From<&Window> for Span {
    fn from(window: &Window) -> Self {
        Self { start: window.start().to_string(), end: window.end().to_string() }
    }
}

impl Availability {
    /// Availability of a resource type within a window.
    pub fn new(
        resource_type: &str,
        within: &Window,
        found: &admission::Availability,
        best: Option<&[Window]>,
    ) -> Self {
        let Span { start, end } = within.into();
        let step = |(window, free): &(Window, u64)| FreeStep {
            start: window.start(),
            end: window.end(),
            free: *free,
        };
        Self {
            resource_type: resource_type.to_owned(),
            start,
            end,
            total: found.total,
            steps: found.steps.iter().map(step).collect(),
            best: best.map(|best| best.iter().map(Span::from).collect()),
        }
    }
}

/// Free capacity for instances of a flavor over time, in the format of the clients of Chameleon's Blazar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlavorAvailability {
    /// Identifier of the flavor.
    pub flavor_id: String,
    /// Free capacity, in chronological order and without gaps.
    pub availability: Vec<FlavorStep>,
}

/// Period of constant free capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlavorStep {
    /// Start of the period: UTC, `YYYY-MM-DD HH:MM`, as clients parse it.
    pub start: String,
    /// End of the period, in the format of `start`.
    pub end: String,
    /// Number of instances that the free capacity is enough for.
    pub available: u64,
    /// Number of instances that the total capacity is enough for, including reserved capacity.
    pub total: u64,
}

impl FlavorAvailability {
    /// Availability of a flavor. Steps of less than a minute are omitted.
    pub fn new(flavor_id: String, found: &admission::Availability) -> Self {
        let steps = found.steps.iter().map(|(window, free)| FlavorStep {
            start: to_the_minute(window.start()),
            end: to_the_minute(window.end()),
            available: *free,
            total: found.total,
        });
        Self { flavor_id, availability: steps.filter(|step| step.start != step.end).collect() }
    }
}
