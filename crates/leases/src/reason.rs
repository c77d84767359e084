//! Reasons why something is blocked. A reason is one text: its first line is for owners, the rest for
//! administrators.
//!
//! Owners learn the consequences for their lease. Details such as which project's guest is on which host, or
//! a hook's output, are for administrators, because they can see hosts. A text with a single line is for
//! both.

use crate::host::Inventory;
use crate::ids::{FloatingIpId, HostId};

pub(crate) fn reason(owner: &str, operator: &str) -> String {
    format!("{owner}\n{operator}")
}

/// The owner's part of a reason.
pub fn for_owner(reason: &str) -> &str {
    reason.split_once('\n').map_or(reason, |(owner, _)| owner)
}

/// The administrators' part of a reason.
pub fn for_operator(reason: &str) -> &str {
    reason.split_once('\n').map_or(reason, |(_, operator)| operator)
}

/// Prepends the prefix to both parts of a reason.
pub(crate) fn prefixed(prefix: &str, inner: &str) -> String {
    match inner.split_once('\n') {
        Some((owner, operator)) => reason(&format!("{prefix}{owner}"), &format!("{prefix}{operator}")),
        None => format!("{prefix}{inner}"),
    }
}

pub(crate) fn tries(times: u32) -> String {
    if times == 1 { "1 try".to_owned() } else { format!("{times} tries") }
}

/// The host's name, or its number if the name is unknown.
pub fn host_name(names: Option<&Inventory>, id: HostId) -> String {
    names.and_then(|names| names.host(id)).map_or_else(|| id.to_string(), |host| host.name.clone())
}

/// The address, or its identifier if the address can't be leased anymore.
pub fn address_of(names: Option<&Inventory>, id: FloatingIpId) -> String {
    let known = names.and_then(|names| names.floating_ip(id));
    known.map_or_else(|| id.to_string(), |ip| ip.address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_read_the_first_line_and_administrators_the_rest() {
        let why =
            reason("an instance could not be moved", "could not move guest 7 to host n4: no route\nto host");
        assert_eq!(for_owner(&why), "an instance could not be moved");
        assert_eq!(for_operator(&why), "could not move guest 7 to host n4: no route\nto host");
        assert_eq!(for_owner("both"), for_operator("both"));
        let late = prefixed("too late: ", &why);
        assert_eq!(for_owner(&late), "too late: an instance could not be moved");
        assert!(for_operator(&late).starts_with("too late: could not move guest 7"));
    }
}
