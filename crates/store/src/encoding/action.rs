//! Steps as text keys: a word and its arguments, separated by slashes.

use leases::ids::{FloatingIpId, GuestId, HostId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::Action;

use super::Unreadable;

/// The key of a step. A step always has the same key.
pub fn action_key(action: Action) -> String {
    match action {
        Action::Fence(host) => format!("fence/{host}"),
        Action::StopGuest(host, guest) => format!("stop-guest/{host}/{guest}"),
        Action::ResumeGuest(host, guest) => format!("resume-guest/{host}/{guest}"),
        Action::DeleteGuest(host, guest) => format!("delete-guest/{host}/{guest}"),
        Action::StartGuest(host, guest) => format!("start-guest/{host}/{guest}"),
        Action::DestroyGuest(host, guest) => format!("destroy-guest/{host}/{guest}"),
        Action::MoveGuest(host, guest, to) => format!("move-guest/{host}/{guest}/{to}"),
        Action::Verify(host, reservation) => format!("verify/{host}/{reservation}"),
        Action::Hold(host, reservation) => format!("hold/{host}/{reservation}"),
        Action::Release(host, reservation) => format!("release/{host}/{reservation}"),
        Action::SetRatios(host, reservation, Ratios { cpu, ram }) => {
            format!("set-ratios/{host}/{reservation}/{}/{}", thousandths(cpu), thousandths(ram))
        }
        Action::Unfence(host) => format!("unfence/{host}"),
        Action::Grant(host, reservation, slots) => format!("grant/{host}/{reservation}/{slots}"),
        Action::Withdraw(host, reservation) => format!("withdraw/{host}/{reservation}"),
        Action::Assign(ip, reservation) => format!("assign/{ip}/{reservation}"),
        Action::Unassign(ip, reservation) => format!("unassign/{ip}/{reservation}"),
        Action::Snapshot(host, reservation) => format!("snapshot/{host}/{reservation}"),
        Action::PowerOn(host) => format!("power-on/{host}"),
        Action::PowerOff(host) => format!("power-off/{host}"),
        Action::Prepare(reservation) => format!("prepare/{reservation}"),
        Action::Finish(reservation) => format!("finish/{reservation}"),
    }
}

pub fn action_from_key(key: &str) -> Result<Action, Unreadable> {
    read(key).ok_or_else(|| Unreadable::new("step", key, "it is not the key of a step"))
}

fn read(key: &str) -> Option<Action> {
    let parts: Vec<&str> = key.split('/').collect();
    let host = |text: &str| text.parse().ok().map(HostId);
    let guest = |text: &str| uuid(text).map(GuestId);
    let reservation = |text: &str| uuid(text).map(ReservationId);
    let floating_ip = |text: &str| uuid(text).map(FloatingIpId);
    let ratio = |text: &str| {
        let ratio = || text.parse().ok().and_then(Ratio::from_thousandths).map(Some);
        if text.is_empty() { Some(None) } else { ratio() }
    };
    Some(match parts[..] {
        ["fence", h] => Action::Fence(host(h)?),
        ["stop-guest", h, g] => Action::StopGuest(host(h)?, guest(g)?),
        ["resume-guest", h, g] => Action::ResumeGuest(host(h)?, guest(g)?),
        ["delete-guest", h, g] => Action::DeleteGuest(host(h)?, guest(g)?),
        ["start-guest", h, g] => Action::StartGuest(host(h)?, guest(g)?),
        ["destroy-guest", h, g] => Action::DestroyGuest(host(h)?, guest(g)?),
        ["move-guest", h, g, to] => Action::MoveGuest(host(h)?, guest(g)?, host(to)?),
        ["verify", h, r] => Action::Verify(host(h)?, reservation(r)?),
        ["hold", h, r] => Action::Hold(host(h)?, reservation(r)?),
        ["release", h, r] => Action::Release(host(h)?, reservation(r)?),
        ["set-ratios", h, r, cpu, ram] => {
            let ratios = Ratios { cpu: ratio(cpu)?, ram: ratio(ram)? };
            Action::SetRatios(host(h)?, reservation(r)?, ratios)
        }
        ["unfence", h] => Action::Unfence(host(h)?),
        ["grant", h, r, slots] => Action::Grant(host(h)?, reservation(r)?, slots.parse().ok()?),
        ["withdraw", h, r] => Action::Withdraw(host(h)?, reservation(r)?),
        ["assign", ip, r] => Action::Assign(floating_ip(ip)?, reservation(r)?),
        ["unassign", ip, r] => Action::Unassign(floating_ip(ip)?, reservation(r)?),
        ["snapshot", h, r] => Action::Snapshot(host(h)?, reservation(r)?),
        ["power-on", h] => Action::PowerOn(host(h)?),
        ["power-off", h] => Action::PowerOff(host(h)?),
        ["prepare", r] => Action::Prepare(reservation(r)?),
        ["finish", r] => Action::Finish(reservation(r)?),
        _ => return None,
    })
}

/// A ratio in thousandths; empty for `None`.
fn thousandths(ratio: Option<Ratio>) -> String {
    ratio.map(|ratio| ratio.thousandths().to_string()).unwrap_or_default()
}

/// Parses the `Display` form of identifiers: 32 hexadecimal digits with hyphens at their positions
/// (8-4-4-4-12).
pub(super) fn uuid(text: &str) -> Option<u128> {
    let fits = |(i, byte): (usize, u8)| {
        if [8, 13, 18, 23].contains(&i) { byte == b'-' } else { byte.is_ascii_hexdigit() }
    };
    if text.len() != 36 || !text.bytes().enumerate().all(fits) {
        return None;
    }
    u128::from_str_radix(&text.replace('-', ""), 16).ok()
}
