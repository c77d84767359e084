//! Parts of usage as columns.

use leases::ids::{FloatingIpId, GuestId, HostId};
use leases::usage::{Held, Kind};

use super::{Unreadable, from_json, json, named};

/// Identifier of the address or instance; `None` for other kinds.
pub fn thing(held: Held) -> Option<u128> {
    match held {
        Held::Lease | Held::Host | Held::Room => None,
        Held::Address(id) => Some(id.0),
        Held::Instance(id) => Some(id.0),
    }
}

/// Parses the name of a kind and its identifier. Fails if a required identifier is missing.
pub fn held(name: &str, thing: Option<u128>) -> Result<Held, Unreadable> {
    let kind = kind(name)?;
    let identified = || thing.ok_or_else(|| Unreadable::new("usage", name, "it has no identifier"));
    Ok(match kind {
        Kind::Lease => Held::Lease,
        Kind::Host => Held::Host,
        Kind::Room => Held::Room,
        Kind::Address => Held::Address(FloatingIpId(identified()?)),
        Kind::Instance => Held::Instance(GuestId(identified()?)),
    })
}

pub fn kind(name: &str) -> Result<Kind, Unreadable> {
    named("kind of usage", name, Kind::from_name)
}

/// Hosts as a JSON list of their numbers.
pub fn hosts_json(hosts: &[HostId]) -> String {
    json(&hosts.iter().map(|host| host.0).collect::<Vec<_>>())
}

pub fn hosts_from_json(text: &str) -> Result<Vec<HostId>, Unreadable> {
    Ok(from_json::<Vec<u64>>("hosts", text)?.into_iter().map(HostId).collect())
}
