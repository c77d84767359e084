//! Why something does not get on: one text, of which owners read the first line and administrators the rest.
//!
//! Owners learn what it means for them; which guest of whom, on which host, and what a hook said, is for those who may
//! see hosts. A text of one line is for both.

use crate::host::Inventory;
use crate::ids::{FloatingIpId, HostId};

/// A reason with one line for its owner, and another text for administrators.
pub(crate) fn reason(owner: &str, operator: &str) -> String {
    format!("{owner}\n{operator}")
}

/// What the owner reads of a reason.
pub fn for_owner(reason: &str) -> &str {
    reason.split_once('\n').map_or(reason, |(owner, _)| owner)
}

/// What administrators read of a reason.
pub fn for_operator(reason: &str) -> &str {
    reason.split_once('\n').map_or(reason, |(_, operator)| operator)
}

/// The reason with these words before what each of both reads.
pub(crate) fn prefixed(prefix: &str, inner: &str) -> String {
    match inner.split_once('\n') {
        Some((owner, operator)) => reason(&format!("{prefix}{owner}"), &format!("{prefix}{operator}")),
        None => format!("{prefix}{inner}"),
    }
}

/// `1 try`, `3 tries`.
pub(crate) fn tries(times: u32) -> String {
    if times == 1 { "1 try".to_owned() } else { format!("{times} tries") }
}

/// The name of a host; its number if it has none that is known.
pub fn host_name(names: Option<&Inventory>, id: HostId) -> String {
    names.and_then(|names| names.host(id)).map_or_else(|| id.to_string(), |host| host.name.clone())
}

/// The address, if it may be leased still; its identifier otherwise.
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
