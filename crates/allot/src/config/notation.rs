//! How values are written that are written in another way than their kind: where zero or a word stands for none, or
//! the unit is another one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use super::value::{Value, items, list};

/// How a value is written.
pub(super) trait Notation<T> {
    /// Reads it; otherwise says how it is to be written.
    fn parse(text: &str) -> Result<T, String>;

    /// As it is written.
    fn show(value: &T) -> String;
}

/// As all values of its kind.
pub(super) struct Plain;

impl<T: Value> Notation<T> for Plain {
    fn parse(text: &str) -> Result<T, String> {
        T::parse(text)
    }

    fn show(value: &T) -> String {
        value.show()
    }
}

/// A duration; `0s` for none.
pub(super) struct ZeroForNone;

impl Notation<Option<SignedDuration>> for ZeroForNone {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        Ok(Some(SignedDuration::parse(text)?).filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.unwrap_or_default().show()
    }
}

/// A duration, or nothing for none; `0s` will do as well.
pub(super) struct ZeroOrNothing;

impl Notation<Option<SignedDuration>> for ZeroOrNothing {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        Ok(Option::<SignedDuration>::parse(text)?.filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.show()
    }
}

/// How long something is kept; `forever` for none, for which nothing or zero will do as well.
pub(super) struct Forever;

impl Notation<Option<SignedDuration>> for Forever {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        if text.is_empty() || text == "forever" || text == "0" {
            return Ok(None);
        }
        let wrong = || "write a duration, as 30d or 12h, or forever".to_owned();
        let kept = crate::duration::parse(text).ok_or_else(wrong)?;
        Ok(Some(kept).filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.as_ref().map_or_else(|| "forever".to_owned(), Value::show)
    }
}

/// A number, or `unlimited` for the largest one. Without a value, the default counts.
pub(super) struct Unlimited;

impl Notation<Option<u64>> for Unlimited {
    fn parse(text: &str) -> Result<Option<u64>, String> {
        if text == "unlimited" {
            return Ok(Some(u64::MAX));
        }
        Option::<u64>::parse(text).map_err(|error| format!("{error}, or unlimited"))
    }

    fn show(value: &Option<u64>) -> String {
        if *value == Some(u64::MAX) { "unlimited".to_owned() } else { value.show() }
    }
}

/// A duration of full seconds, up to some 136 years, so that no instant from now on is out of range.
pub(super) struct Seconds;

impl Notation<Duration> for Seconds {
    fn parse(text: &str) -> Result<Duration, String> {
        let seconds: SignedDuration = Self::parse(text)?;
        Ok(seconds.unsigned_abs())
    }

    fn show(value: &Duration) -> String {
        SignedDuration::try_from(*value).unwrap_or(SignedDuration::MAX).show()
    }
}

impl Notation<SignedDuration> for Seconds {
    fn parse(text: &str) -> Result<SignedDuration, String> {
        let seconds = u32::try_from(SignedDuration::parse(text)?.as_secs());
        Ok(SignedDuration::from_secs(seconds.unwrap_or(u32::MAX).into()))
    }

    fn show(value: &SignedDuration) -> String {
        value.show()
    }
}

/// GiB of what is counted in MiB.
pub(super) struct Gib;

impl Notation<Option<u64>> for Gib {
    fn parse(text: &str) -> Result<Option<u64>, String> {
        Ok(Option::<u64>::parse(text)?.map(|gib| gib.saturating_mul(1024)))
    }

    fn show(value: &Option<u64>) -> String {
        value.map(|mib| mib / 1024).show()
    }
}

/// A number, or a duration in seconds; what is less counts as this.
pub(super) struct AtLeast<const LEAST: u32>;

macro_rules! floors {
    ($($kind:ty: $floor:expr),+) => {$(
        impl<const LEAST: u32> Notation<$kind> for AtLeast<LEAST> {
            fn parse(text: &str) -> Result<$kind, String> {
                Ok(<$kind>::parse(text)?.max($floor))
            }

            fn show(value: &$kind) -> String {
                value.show()
            }
        }
    )+};
}
floors! {
    u32: LEAST,
    u64: LEAST.into(),
    usize: LEAST as usize,
    SignedDuration: SignedDuration::from_secs(LEAST.into())
}

/// Ganeti clusters by name, each with the option of the commands that says where it is.
pub(super) struct Clusters;

/// What is written before the place of a cluster, and the option of the commands that it stands for.
const CLUSTER_KINDS: [(&str, &str); 3] = [("file", "--text-data"), ("rapi", "--master"), ("luxi", "--luxi")];

impl Notation<BTreeMap<String, String>> for Clusters {
    fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong =
            "write NAME=file:PATH, NAME=rapi:ADDRESS or NAME=luxi:SOCKET, as prod=rapi:gnt.example.org";
        let mut clusters = BTreeMap::new();
        for cluster in items(text) {
            let (name, source) = cluster.split_once('=').ok_or(wrong)?;
            let (kind, place) =
                source.trim().split_once(':').filter(|(_, place)| !place.is_empty()).ok_or(wrong)?;
            let (_, option) = CLUSTER_KINDS.into_iter().find(|(known, _)| *known == kind).ok_or(wrong)?;
            if kind != "rapi" && !place.starts_with('/') {
                return Err(format!("{name}: write the whole path, which begins with /"));
            }
            let name = name.trim();
            if name.is_empty() || clusters.insert(name.to_owned(), format!("{option}={place}")).is_some() {
                return Err(format!("a cluster needs a name of its own, and {name:?} is none"));
            }
        }
        Ok(clusters)
    }

    fn show(clusters: &BTreeMap<String, String>) -> String {
        list(clusters.iter().map(|(name, source)| {
            let (option, place) = source.split_once('=').unwrap_or_default();
            let kind = CLUSTER_KINDS.into_iter().find(|(_, known)| *known == option);
            format!("{name}={}:{place}", kind.map_or(option, |(kind, _)| kind))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_a_name_and_a_place_each() {
        let text = "a=file:/var/lib/a.data, b=rapi:gnt.example.org:5080";
        let clusters = Clusters::parse(text).expect("two");
        let options: Vec<&str> = clusters.values().map(String::as_str).collect();
        assert_eq!(options, ["--text-data=/var/lib/a.data", "--master=gnt.example.org:5080"]);
        assert_eq!(Clusters::show(&clusters), text.replace(' ', ""));
        assert_eq!(Clusters::parse(""), Ok(BTreeMap::new()));
        for wrong in ["a", "a=", "a=file:", "a=file:b", "=file:/a", "a=ssh:/b", "a=file:/a,a=file:/b"] {
            assert!(Clusters::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_for_no_time_is_kept_forever() {
        for forever in ["", "forever", "0", "0s", "0d"] {
            assert_eq!(Forever::parse(forever), Ok(None), "{forever}");
        }
        assert_eq!(Forever::parse("90d"), Ok(Some(SignedDuration::from_hours(90 * 24))));
        for wrong in ["never", "90", "-1d", "always"] {
            assert!(Forever::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_without_limit_is_written_as_such() {
        assert_eq!((Unlimited::parse("unlimited"), Unlimited::parse("")), (Ok(Some(u64::MAX)), Ok(None)));
        assert_eq!(
            (Unlimited::parse("0"), Unlimited::show(&Some(u64::MAX))),
            (Ok(Some(0)), "unlimited".into())
        );
        assert!(Unlimited::parse("many").is_err());
    }

    #[test]
    fn what_is_never_is_no_duration_or_zero() {
        assert_eq!(ZeroForNone::parse("0s"), Ok(None));
        assert_eq!(
            (ZeroForNone::parse("1m"), ZeroForNone::show(&None)),
            (ZeroOrNothing::parse("60s"), "0s".to_owned())
        );
        assert!(ZeroForNone::parse("").is_err());
        assert_eq!((ZeroOrNothing::parse("0s"), ZeroOrNothing::parse("")), (Ok(None), Ok(None)));
    }

    #[test]
    fn what_is_less_than_the_least_counts_as_the_least() {
        assert_eq!(AtLeast::<1>::parse("0"), Ok(1_u32));
        assert_eq!(AtLeast::<3600>::parse("1m"), Ok(SignedDuration::from_hours(1)));
        assert_eq!(AtLeast::<3600>::parse("2h"), Ok(SignedDuration::from_hours(2)));
        assert_eq!(Seconds::parse("5000w"), Ok(Duration::from_hours(840_000)));
        assert_eq!(Seconds::parse("10000w"), Ok(Duration::from_secs(u32::MAX.into())));
        assert_eq!(Seconds::parse("10000w"), Ok(SignedDuration::from_secs(u32::MAX.into())));
        assert_eq!((Gib::parse("2"), Gib::show(&Some(2048))), (Ok(Some(2048)), "2".to_owned()));
    }
}
