//! Kinds of values, and how each is written.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use leases::project::ProjectId;
use leases::usage::{Decimal, NotDecimal};
use server::ShortageStatus;

use crate::duration;

/// A kind of value.
pub(super) trait Value: Sized {
    /// Reads it; otherwise says how it is to be written.
    fn parse(text: &str) -> Result<Self, String>;

    /// As it is written. Passwords are left out.
    fn show(&self) -> String;
}

/// What lists have, separated by commas.
pub(super) trait Item: Value {}

/// The items of a list.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// A list of these items.
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

/// Nothing is written for none.
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
        text.parse().map_err(|_| "write an IP address and a port, as 127.0.0.1:1234 or [::1]:1234".to_owned())
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

impl Value for SignedDuration {
    fn parse(text: &str) -> Result<Self, String> {
        duration::parse(text).ok_or_else(|| "write a duration, as 30s, 5m, 2h, 7d or 1d12h".to_owned())
    }

    fn show(&self) -> String {
        duration::show(*self)
    }
}

/// The same as the standard library has it. Durations of settings are never negative.
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
