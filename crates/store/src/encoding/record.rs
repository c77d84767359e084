//! Keys of records: a word, and what the record is known by, with a slash between.

use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};

use super::action::uuid;
use super::{Unreadable, action_from_key, action_key};
use crate::RecordKey;

/// The key as text, the same for the same record always.
pub fn record_key_text(key: &RecordKey) -> String {
    match key {
        RecordKey::Lease(id) => format!("lease/{id}"),
        RecordKey::Host(id) => format!("host/{id}"),
        RecordKey::FloatingIp(id) => format!("floating-ip/{id}"),
        RecordKey::Flavor(id) => format!("flavor/{id}"),
        RecordKey::Property(name) => format!("property/{name}"),
        RecordKey::PreemptibleProject(pattern) => format!("preemptible-project/{pattern}"),
        RecordKey::Instance(id) => format!("instance/{id}"),
        RecordKey::FreePool(id) => format!("free-pool/{id}"),
        RecordKey::Step(action) => format!("step/{}", action_key(*action)),
    }
}

/// The key of that text.
pub fn record_key_from_text(text: &str) -> Result<RecordKey, Unreadable> {
    let unreadable = || Unreadable::new("record", text, "it is not the key of a record");
    let (kind, name) = text.split_once('/').ok_or_else(unreadable)?;
    Ok(match kind {
        "lease" => RecordKey::Lease(LeaseId(uuid(name).ok_or_else(unreadable)?)),
        "host" => RecordKey::Host(HostId(name.parse().map_err(|_| unreadable())?)),
        "floating-ip" => RecordKey::FloatingIp(FloatingIpId(uuid(name).ok_or_else(unreadable)?)),
        "flavor" => RecordKey::Flavor(name.to_owned()),
        "property" => RecordKey::Property(name.to_owned()),
        "preemptible-project" => RecordKey::PreemptibleProject(name.to_owned()),
        "instance" => RecordKey::Instance(GuestId(uuid(name).ok_or_else(unreadable)?)),
        "free-pool" => RecordKey::FreePool(FreePoolId(uuid(name).ok_or_else(unreadable)?)),
        "step" => RecordKey::Step(action_from_key(name)?),
        _ => return Err(unreadable()),
    })
}
