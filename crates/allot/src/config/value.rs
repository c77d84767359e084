//! Types of settings, with their text form.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use leases::project::ProjectId;
use leases::scoped::{NotScope, Scope, Scoped};
use leases::usage::{Decimal, NotDecimal};
use server::ShortageStatus;

use crate::duration;

/// A type that a setting can have.
pub(super) trait Value: Sized {
    /// Parses the text of a setting. The error tells how to write the value.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value in the form that [`Self::parse`] reads, without passwords.
    fn show(&self) -> String;
}

/// A type of values in comma-separated lists.
pub(super) trait Item: Value {}

/// Splits a comma-separated list. Empty items are skipped.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

impl<T: Item> Value for Vec<T> {
    fn parse(text: &str) -> Result<Self, String> {
        items(text).map(T::parse).collect()
    }

    fn show(&self) -> String {
        list(self.iter().map(T::show))
    }
}

impl<T: Item + Ord> Value for BTreeSet<T> {
    fn parse(text: &str) -> Result<Self, String> {
        items(text).map(T::parse).collect()
    }

    fn show(&self) -> String {
        list(self.iter().map(T::show))
    }
}

/// `None` is the empty text.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }

    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Item for String {}

impl Value for ProjectId {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

impl Item for ProjectId {}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("name a file".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "write true or false".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "write an IP address and a port, such as 127.0.0.1:1234 or [::1]:1234".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Value for $number {
            fn parse(text: &str) -> Result<Self, String> {
                // TOML allows them for legibility.
                text.replace('_', "").parse().map_err(|_| format!("write a number from 0 to {}", <$number>::MAX))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
numbers!(u32, u64, usize);

impl Value for Decimal {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: NotDecimal| error.to_string())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Key of the general value in a table of the settings file, where every value needs a key.
const GENERAL: &str = "default";

/// A general value, then exceptions for projects, flavors and free pools: `14d,pool:gpu=7d`.
impl<T: Value + Default> Value for Scoped<T> {
    fn parse(text: &str) -> Result<Self, String> {
        let (mut general, mut scoped) = (None, Self::default());
        for item in items(text) {
            let Some((key, value)) = item.rsplit_once('=') else {
                if general.replace(T::parse(item)?).is_some() {
                    return Err(format!("{GENERAL} has two values"));
                }
                continue;
            };
            let key = key.trim();
            let value = T::parse(value.trim()).map_err(|error| format!("{key}: {error}"))?;
            let before = match key.parse::<Scope>() {
                Ok(scope) => scoped.insert(scope, value),
                Err(NotScope) if key == GENERAL => general.replace(value),
                Err(error) => return Err(format!("{key}: {error}")),
            };
            if before.is_some() {
                return Err(format!("{key} has two values"));
            }
        }
        scoped.general = general.unwrap_or_default();
        Ok(scoped)
    }

    fn show(&self) -> String {
        let general = Some(self.general.show()).filter(|general| !general.is_empty());
        let specific = self.specific().map(|(scope, value)| format!("{scope}={}", value.show()));
        list(general.into_iter().chain(specific))
    }
}

impl Value for SignedDuration {
    fn parse(text: &str) -> Result<Self, String> {
        duration::parse(text).ok_or_else(|| "write a duration such as 30s, 5m, 2h, 7d or 1d12h".to_owned())
    }

    fn show(&self) -> String {
        duration::show(*self)
    }
}

/// Durations of settings are never negative.
impl Value for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        SignedDuration::parse(text).map(SignedDuration::unsigned_abs)
    }

    fn show(&self) -> String {
        duration::show(SignedDuration::try_from(*self).unwrap_or(SignedDuration::MAX))
    }
}

impl Value for ShortageStatus {
    fn parse(text: &str) -> Result<Self, String> {
        let status = text.parse::<u16>().ok().and_then(|status| Self::try_from(status).ok());
        status.ok_or_else(|| "write 400, 409 or 500".to_owned())
    }

    fn show(&self) -> String {
        self.code().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lengths = Scoped<Option<SignedDuration>>;

    #[test]
    fn values_differ_by_project_flavor_and_pool() {
        let hours = |hours| Some(SignedDuration::from_hours(hours));
        let read = Lengths::parse("14d, pool:gpu=7d,flavor:a=b=1d, project:web=").expect("four values");
        let expected = Scoped::from(hours(14 * 24))
            .with(Scope::pool("gpu"), hours(7 * 24))
            .with(Scope::flavor("a=b"), hours(24))
            .with(Scope::project("web"), None);
        assert_eq!(read, expected);
        assert_eq!(read.show(), "14d,project:web=,flavor:a=b=1d,pool:gpu=7d");
        assert_eq!(Lengths::parse(&read.show()), Ok(read), "as it was written");
        assert_eq!(Lengths::parse("pool:gpu=7d, default=14d").map(|read| read.general), Ok(hours(14 * 24)));
        assert_eq!(Lengths::parse(""), Ok(Scoped::default()));
        assert_eq!(<Scoped<Decimal>>::parse("pool:gpu=2.5").expect("a price").general, Decimal::ZERO);
    }

    #[test]
    fn a_mistake_in_one_of_several_values_is_named() {
        for (wrong, says) in [
            ("soon", "write a duration"),
            ("14d,pool:gpu=soon", "pool:gpu: write a duration"),
            ("14d,host:gpu=7d", "host:gpu: expected project:ID, flavor:ID or pool:NAME"),
            ("14d,7d", "default has two values"),
            ("pool:gpu=1d,pool:gpu=2d", "pool:gpu has two values"),
        ] {
            let error = Lengths::parse(wrong).expect_err(wrong);
            assert!(error.starts_with(says), "{wrong}: {error}");
        }
    }
}
