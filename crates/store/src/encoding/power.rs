//! Power of a host as a JSON document.

use jiff::{SignedDuration, Timestamp};
use leases::energy::{Power, PowerState};
use serde::{Deserialize, Serialize};

use super::{Unreadable, from_json, json};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
struct Document {
    state: State,
    #[serde(default)]
    boots_us: Vec<i64>,
    #[serde(default)]
    switched_off_us: Vec<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    On,
    ShuttingDown { since_us: i64 },
    Off { since_us: i64 },
    Booting { since_us: i64, off_since_us: Option<i64> },
    Failed { since_us: i64 },
}

/// Power as JSON; `None` if the host was never switched.
pub fn power_json(power: &Power) -> Option<String> {
    if *power == Power::default() {
        return None;
    }
    let us = |at: Timestamp| at.as_microsecond();
    let state = match power.state {
        PowerState::On => State::On,
        PowerState::ShuttingDown { since } => State::ShuttingDown { since_us: us(since) },
        PowerState::Off { since } => State::Off { since_us: us(since) },
        PowerState::Booting { since, off_since } => {
            State::Booting { since_us: us(since), off_since_us: off_since.map(us) }
        }
        PowerState::Failed { since } => State::Failed { since_us: us(since) },
    };
    let boot = |boot: &SignedDuration| i64::try_from(boot.as_micros()).unwrap_or(i64::MAX);
    Some(json(&Document {
        state,
        boots_us: power.boots.iter().map(boot).collect(),
        switched_off_us: power.switched_off_at.iter().copied().map(us).collect(),
    }))
}

/// Parses the document. Without one, the host was never switched.
pub fn power_from_json(text: Option<&str>) -> Result<Power, Unreadable> {
    let Some(text) = text else { return Ok(Power::default()) };
    let document: Document = from_json("power", text)?;
    let at = |us: i64| Timestamp::from_microsecond(us).map_err(|error| Unreadable::new("power", text, error));
    let state = match document.state {
        State::On => PowerState::On,
        State::ShuttingDown { since_us } => PowerState::ShuttingDown { since: at(since_us)? },
        State::Off { since_us } => PowerState::Off { since: at(since_us)? },
        State::Booting { since_us, off_since_us } => {
            PowerState::Booting { since: at(since_us)?, off_since: off_since_us.map(at).transpose()? }
        }
        State::Failed { since_us } => PowerState::Failed { since: at(since_us)? },
    };
    Ok(Power {
        state,
        boots: document.boots_us.into_iter().map(SignedDuration::from_micros).collect(),
        switched_off_at: document.switched_off_us.into_iter().map(at).collect::<Result<_, _>>()?,
    })
}
