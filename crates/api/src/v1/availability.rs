//! Availability over time, in answers. Not in Blazar.

use jiff::Timestamp;
use leases::admission;
use leases::window::Window;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::date::to_the_minute;

/// How much is free when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Availability {
    /// The type of what was asked about: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`.
    pub resource_type: String,
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when.
    #[schema(format = "date-time")]
    pub end: String,
    /// How much there would be if nothing were reserved: hosts, instances of the size, or addresses.
    pub total: u64,
    /// How much of that is free, in order and without gaps.
    pub steps: Vec<FreeStep>,
    /// The earliest times at which as much as was asked for could be reserved for the length that was given, none of which
    /// overlaps another; absent unless a length was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Vec<Span>>,
}

/// A time during which the same number is free. There are many of them, so that times become text only as they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FreeStep {
    /// From when: UTC, RFC 3339.
    #[schema(value_type = String, format = "date-time")]
    pub start: Timestamp,
    /// Until when.
    #[schema(value_type = String, format = "date-time")]
    pub end: Timestamp,
    /// How many are free.
    pub free: u64,
}

/// A time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when.
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

/// How many instances of a flavor there is room for when, as the clients of Chameleon's Blazar read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlavorAvailability {
    /// The flavor.
    pub flavor_id: String,
    /// In order and without gaps.
    pub availability: Vec<FlavorStep>,
}

/// A time during which there is room for the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlavorStep {
    /// From when: UTC, `YYYY-MM-DD HH:MM`, as the clients read it.
    pub start: String,
    /// Until when.
    pub end: String,
    /// How many instances there is room for.
    pub available: u64,
    /// How many there would be room for if nothing were reserved.
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
