//! How much is free when, in answers. Not in Blazar.

use jiff::Timestamp;
use leases::admission;
use leases::window::Window;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much is free when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Availability {
    /// The type of what was asked about: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`.
    pub resource_type: String,
    /// From when: UTC, RFC 3339.
    pub start: String,
    /// Until when.
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
    #[schema(value_type = String)]
    pub start: Timestamp,
    /// Until when.
    #[schema(value_type = String)]
    pub end: Timestamp,
    /// How many are free.
    pub free: u64,
}

/// A time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// From when: UTC, RFC 3339.
    pub start: String,
    /// Until when.
    pub end: String,
}

impl From<&Window> for Span {
    fn from(window: &Window) -> Self {
        Self { start: window.start().to_string(), end: window.end().to_string() }
    }
}

impl Availability {
    /// Of what there is of that type within a window.
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
