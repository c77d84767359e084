//! Standings of leases (confirmed, offered, held or waiting) as JSON documents.

use jiff::Timestamp;
use leases::ids::{LeaseId, OffersId};
use leases::offer::OfferKind;
use leases::standing::Standing;
use leases::window::Window;
use serde::{Deserialize, Serialize};

use super::{Unreadable, from_hex, from_json, hex, json, named};

/// A new field needs a default, because older documents are still read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Document {
    Offered {
        group: String,
        until_us: i64,
        kind: String,
        /// The kind, if services of the previous version don't know it. They read `kind` instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newer_kind: Option<String>,
        of: Option<String>,
    },
    Kept {
        group: String,
        until_us: i64,
    },
    Waiting {
        until_us: i64,
        within_us: Option<(i64, i64)>,
    },
}

/// A standing as JSON; `None` for a confirmed lease.
pub fn standing_json(standing: Standing) -> Option<String> {
    let document = match standing {
        Standing::Firm => return None,
        Standing::Offered { group, until, kind, of } => Document::Offered {
            group: hex(group.0),
            until_us: until.as_microsecond(),
            kind: if is_new(kind) { OfferKind::LaterStart } else { kind }.name().to_owned(),
            newer_kind: is_new(kind).then(|| kind.name().to_owned()),
            of: of.map(|lease| hex(lease.0)),
        },
        Standing::Kept { group, until } => {
            Document::Kept { group: hex(group.0), until_us: until.as_microsecond() }
        }
        Standing::Waiting { until, within } => Document::Waiting {
            until_us: until.as_microsecond(),
            within_us: within.map(|window| (window.start().as_microsecond(), window.end().as_microsecond())),
        },
    };
    Some(json(&document))
}

/// Whether services of the previous version don't know the kind.
fn is_new(kind: OfferKind) -> bool {
    kind == OfferKind::LongerTimeout
}

/// Parses the document. A lease without one is confirmed.
pub fn standing_from_json(text: Option<&str>) -> Result<Standing, Unreadable> {
    let Some(text) = text else { return Ok(Standing::Firm) };
    let instant = |us| Timestamp::from_microsecond(us).map_err(|error| Unreadable::new("time", us, error));
    Ok(match from_json("standing", text)? {
        Document::Offered { group, until_us, kind, newer_kind, of } => Standing::Offered {
            group: OffersId(from_hex(&group)?),
            until: instant(until_us)?,
            kind: named("kind of offer", newer_kind.as_ref().unwrap_or(&kind), OfferKind::from_name)?,
            of: of.as_deref().map(from_hex).transpose()?.map(LeaseId),
        },
        Document::Kept { group, until_us } => {
            Standing::Kept { group: OffersId(from_hex(&group)?), until: instant(until_us)? }
        }
        Document::Waiting { until_us, within_us } => {
            let within = within_us.map(|(start, end)| {
                let window = Window::new(instant(start)?, instant(end)?);
                window.map_err(|error| Unreadable::new("window", text, error))
            });
            Standing::Waiting { until: instant(until_us)?, within: within.transpose()? }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_offer_is_read_back_and_by_the_version_before_as_one_that_it_knows() {
        for kind in OfferKind::ALL {
            let until = Timestamp::UNIX_EPOCH;
            let offered = Standing::Offered { group: OffersId(1), until, kind, of: None };
            let text = standing_json(offered).expect("it is not firm");
            assert_eq!(standing_from_json(Some(&text)).expect("a standing"), offered);
            let mut document: serde_json::Value = serde_json::from_str(&text).expect("a document");
            let old = document["offered"]["kind"].take();
            let old = OfferKind::from_name(old.as_str().expect("a name"));
            assert!(old.is_some_and(|old| old != OfferKind::LongerTimeout), "{text}");
        }
    }
}
