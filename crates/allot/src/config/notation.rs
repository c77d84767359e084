//! Notations for values that aren't written like others of their type: zero or a word stands for `None`, or
//! the unit differs.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use leases::scoped::Scoped;
use leases::usage::Decimal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::value::{Value, items, list};

/// Conversion of a value from and to text.
pub(super) trait Notation<T> {
    /// Parses a value. The error says what to write.
    fn parse(text: &str) -> Result<T, String>;

    fn show(value: &T) -> String;
}

/// The usual notation of a type.
pub(super) struct Plain;

impl<T: Value> Notation<T> for Plain {
    fn parse(text: &str) -> Result<T, String> {
        T::parse(text)
    }

    fn show(value: &T) -> String {
        value.show()
    }
}

/// A duration. `0s` is `None`.
pub(super) struct ZeroForNone;

impl Notation<Option<SignedDuration>> for ZeroForNone {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        Ok(Some(SignedDuration::parse(text)?).filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.unwrap_or_default().show()
    }
}

/// A duration. An empty text or `0s` is `None`.
pub(super) struct ZeroOrNothing;

impl Notation<Option<SignedDuration>> for ZeroOrNothing {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        Ok(Option::<SignedDuration>::parse(text)?.filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.show()
    }
}

/// Limits of at least one second, by scope.
pub(super) struct Lengths;

impl Notation<Scoped<Option<SignedDuration>>> for Lengths {
    fn parse(text: &str) -> Result<Scoped<Option<SignedDuration>>, String> {
        let read = <Scoped<Option<SignedDuration>> as Value>::parse(text)?;
        if read.values().flatten().any(|length| length.as_secs() < 1) {
            return Err("write a duration of at least 1s".to_owned());
        }
        Ok(read)
    }

    fn show(value: &Scoped<Option<SignedDuration>>) -> String {
        value.show()
    }
}

/// Fractions from 0 to 1, by scope.
pub(super) struct Parts;

impl Notation<Scoped<Decimal>> for Parts {
    fn parse(text: &str) -> Result<Scoped<Decimal>, String> {
        let read = <Scoped<Decimal> as Value>::parse(text)?;
        if read.values().any(|part| *part > Decimal::ONE) {
            return Err("write a fraction of the price, from 0 to 1".to_owned());
        }
        Ok(read)
    }

    fn show(value: &Scoped<Decimal>) -> String {
        value.show()
    }
}

/// Retention time. `forever`, an empty text or zero is `None`.
pub(super) struct Forever;

impl Notation<Option<SignedDuration>> for Forever {
    fn parse(text: &str) -> Result<Option<SignedDuration>, String> {
        if text.is_empty() || text == "forever" || text == "0" {
            return Ok(None);
        }
        let wrong = || "write a duration such as 30d or 12h, or forever".to_owned();
        let kept = crate::duration::parse(text).ok_or_else(wrong)?;
        Ok(Some(kept).filter(SignedDuration::is_positive))
    }

    fn show(value: &Option<SignedDuration>) -> String {
        value.as_ref().map_or_else(|| "forever".to_owned(), Value::show)
    }
}

/// A number, or `unlimited` for the largest one. An empty text selects the default.
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

/// A duration in whole seconds, at most about 136 years, so that every instant computed from now is in range.
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

/// A size given in GiB and stored in MiB.
pub(super) struct Gib;

impl Notation<Option<u64>> for Gib {
    fn parse(text: &str) -> Result<Option<u64>, String> {
        Ok(Option::<u64>::parse(text)?.map(|gib| gib.saturating_mul(1024)))
    }

    fn show(value: &Option<u64>) -> String {
        value.map(|mib| mib / 1024).show()
    }
}

/// A number, or a duration in seconds, from `LEAST` to `MOST`.
pub(super) struct Within<const LEAST: u32, const MOST: u32>;

/// Like [`Within`] without a maximum for numbers, and with the maximum of [`Seconds`] for durations.
pub(super) type AtLeast<const LEAST: u32> = Within<LEAST, { u32::MAX }>;

/// A type that can be limited to a range.
trait Bounded: Value + PartialOrd {
    /// Name of the type in errors.
    const KIND: &'static str;

    fn bound(bound: u32) -> Self;
}

macro_rules! bounded {
    ($($number:ty: |$bound:ident| $value:expr),+) => {$(
        impl Bounded for $number {
            const KIND: &'static str = "number";

            fn bound($bound: u32) -> Self {
                $value
            }
        }
    )+};
}
bounded!(u32: |bound| bound, u64: |bound| bound.into(), usize: |bound| bound as usize);

impl Bounded for SignedDuration {
    const KIND: &'static str = "duration";

    fn bound(bound: u32) -> Self {
        Self::from_secs(bound.into())
    }
}

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    fn check<T: Bounded>(value: T) -> Result<T, String> {
        let (least, most) = (T::bound(LEAST), (MOST < u32::MAX).then(|| T::bound(MOST)));
        if value >= least && most.as_ref().is_none_or(|most| value <= *most) {
            return Ok(value);
        }
        let (kind, least) = (T::KIND, least.show());
        Err(match most {
            Some(most) => format!("write a {kind} from {least} to {}", most.show()),
            None => format!("write a {kind} of at least {least}"),
        })
    }
}

macro_rules! within {
    ($($kind:ty),+) => {$(
        impl<const LEAST: u32, const MOST: u32> Notation<$kind> for Within<LEAST, MOST> {
            fn parse(text: &str) -> Result<$kind, String> {
                Self::check(<$kind>::parse(text)?)
            }

            fn show(value: &$kind) -> String {
                value.show()
            }
        }
    )+};
}
within!(u32, u64, usize);

impl<const LEAST: u32, const MOST: u32> Notation<SignedDuration> for Within<LEAST, MOST> {
    fn parse(text: &str) -> Result<SignedDuration, String> {
        Self::check(Seconds::parse(text)?)
    }

    fn show(value: &SignedDuration) -> String {
        value.show()
    }
}

impl<const LEAST: u32, const MOST: u32> Notation<Duration> for Within<LEAST, MOST> {
    fn parse(text: &str) -> Result<Duration, String> {
        <Self as Notation<SignedDuration>>::parse(text).map(SignedDuration::unsigned_abs)
    }

    fn show(value: &Duration) -> String {
        value.show()
    }
}

/// An empty text is `None`.
impl<const LEAST: u32, const MOST: u32, T> Notation<Option<T>> for Within<LEAST, MOST>
where
    Self: Notation<T>,
{
    fn parse(text: &str) -> Result<Option<T>, String> {
        if text.is_empty() { Ok(None) } else { <Self as Notation<T>>::parse(text).map(Some) }
    }

    fn show(value: &Option<T>) -> String {
        value.as_ref().map(<Self as Notation<T>>::show).unwrap_or_default()
    }
}

/// URL of an HTTP service, or an empty text if there is none.
pub(super) struct HttpUrl;

impl Notation<String> for HttpUrl {
    fn parse(text: &str) -> Result<String, String> {
        let url = reqwest::Url::parse(text);
        let is_http = url.is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        if is_http || text.is_empty() {
            return Ok(text.to_owned());
        }
        Err("write an address that begins with http:// or https://".to_owned())
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

impl Notation<Option<String>> for HttpUrl {
    fn parse(text: &str) -> Result<Option<String>, String> {
        let url: String = Self::parse(text)?;
        Ok(Some(url).filter(|url| !url.is_empty()))
    }

    fn show(value: &Option<String>) -> String {
        value.clone().unwrap_or_default()
    }
}

/// A name that isn't empty.
pub(super) struct Name;

impl Notation<String> for Name {
    fn parse(text: &str) -> Result<String, String> {
        if text.trim().is_empty() { Err("write a name".to_owned()) } else { Ok(text.to_owned()) }
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

/// A log level, or levels by module. A word that isn't a level is an error: it would be taken for a module,
/// and nothing else would be logged.
pub(super) struct LogLevels;

impl Notation<String> for LogLevels {
    fn parse(text: &str) -> Result<String, String> {
        let wrong = |level: &str| {
            format!("{level:?} is not a level: write error, warn, info, debug, trace or off, or MODULE=LEVEL")
        };
        let levels: Vec<&str> = items(text).collect();
        if levels.is_empty() {
            return Err(wrong(""));
        }
        let mut unnamed = levels.iter().filter(|level| !level.contains(['=', '[']));
        if let Some(unknown) = unnamed.find(|level| level.parse::<LevelFilter>().is_err()) {
            return Err(wrong(unknown));
        }
        let text = levels.join(",");
        EnvFilter::builder().parse(&text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

/// Ganeti clusters by name, each with the command-line option that locates it.
pub(super) struct Clusters;

/// Prefix of a cluster's location, and the command-line option that it stands for.
const CLUSTER_KINDS: [(&str, &str); 3] = [("file", "--text-data"), ("rapi", "--master"), ("luxi", "--luxi")];

impl Notation<BTreeMap<String, String>> for Clusters {
    fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong =
            "write NAME=file:PATH, NAME=rapi:ADDRESS or NAME=luxi:SOCKET, such as prod=rapi:gnt.example.org";
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
                return Err(format!("a cluster needs a unique name: {name:?} is empty or a duplicate"));
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
    fn values_outside_of_their_range_are_refused_with_the_range() {
        assert_eq!(AtLeast::<1>::parse("1"), Ok(1_u32));
        assert_eq!(AtLeast::<1>::parse("99999999999"), Ok(99_999_999_999_u64));
        assert_eq!(AtLeast::<1>::parse(""), Ok(None::<usize>));
        assert_eq!(AtLeast::<3600>::parse("2h"), Ok(Some(SignedDuration::from_hours(2))));
        assert_eq!(AtLeast::<1>::parse("10000w"), Ok(Duration::from_secs(u32::MAX.into())));
        let error = |parsed: Result<SignedDuration, String>| parsed.expect_err("outside");
        assert_eq!(error(AtLeast::<3600>::parse("1m")), "write a duration of at least 1h");
        for text in ["0s", "61s"] {
            assert_eq!(error(Within::<1, 60>::parse(text)), "write a duration from 1s to 1m", "{text}");
        }
        let number: Result<Option<u32>, String> = AtLeast::<1>::parse("0");
        assert_eq!(number, Err("write a number of at least 1".to_owned()));
    }

    #[test]
    fn durations_of_full_seconds_have_a_limit() {
        assert_eq!(Seconds::parse("5000w"), Ok(Duration::from_hours(840_000)));
        assert_eq!(Seconds::parse("10000w"), Ok(Duration::from_secs(u32::MAX.into())));
        assert_eq!(Seconds::parse("10000w"), Ok(SignedDuration::from_secs(u32::MAX.into())));
        assert_eq!((Gib::parse("2"), Gib::show(&Some(2048))), (Ok(Some(2048)), "2".to_owned()));
    }

    #[test]
    fn addresses_are_of_http() {
        for right in ["", "http://h", "https://h:1/a?b=c"] {
            assert_eq!(HttpUrl::parse(right), Ok(right.to_owned()));
        }
        assert_eq!(HttpUrl::parse(""), Ok(None::<String>));
        for wrong in ["h", "h:80", "ftp://h/", "http:", "//h/"] {
            let parsed: Result<String, String> = HttpUrl::parse(wrong);
            assert!(parsed.is_err(), "{wrong}");
        }
        assert!(Name::parse("").is_err() && Name::parse(" ").is_err() && Name::parse("a").is_ok());
    }

    #[test]
    fn a_word_that_is_not_a_level_is_not_taken_for_a_module() {
        for right in ["info", "WARN", "off", "info,service=debug", "service=debug", "warn,server::auth=trace"]
        {
            assert_eq!(LogLevels::parse(right), Ok(right.to_owned()));
        }
        assert_eq!(LogLevels::parse("warn, a=info,"), Ok("warn,a=info".to_owned()));
        for wrong in ["loud", "", ",", "info,loud", "service=loud", "infos"] {
            assert!(LogLevels::parse(wrong).is_err(), "{wrong}");
        }
        let error = LogLevels::parse("info,loud").expect_err("no level");
        assert!(error.starts_with("\"loud\" is not a level: write error, warn"), "{error}");
    }
}
