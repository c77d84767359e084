//! Commands on floating IPs.

use chores::cases::Cases;

use super::Bench;
use super::values::{column, columns, is, same};
use crate::leasing::fleet::{ADDRESSES, NETWORK};
use crate::leasing::http::{list, text};

/// Creates, lists, shows and deletes floating IPs. Two are left at the end.
pub fn run(cases: &mut Cases, bench: &Bench) {
    let shell = &bench.shell;
    let [first, second, third] = ADDRESSES;
    cases.check("floatingip-create takes addresses on", || {
        let created = shell.json("floatingip-create", &[NETWORK, first])?;
        is(&created, "floating_ip_address", first)?;
        is(&created, "floating_network_id", NETWORK)?;
        is(&created, "reservable", true)?;
        shell.text("floatingip-create", &[NETWORK, second])?;
        shell.text("floatingip-create", &[NETWORK, third]).map(drop)
    });
    cases.check("floatingip-create refuses an unknown network and an invalid address", || {
        shell.refused("floatingip-create", &["nosuch", first], "Failed to find network nosuch")?;
        shell.refused("floatingip-create", &[NETWORK, "here"], "IP address here is invalid form")
    });
    cases.check("floatingip-list has every address", || {
        let table = shell.text("floatingip-list", &[])?;
        same(columns(&table)?, ["id", "floating_ip_address", "floating_network_id"])?;
        let mut addresses = column(&table, "floating_ip_address")?;
        addresses.sort_unstable();
        same(addresses, ADDRESSES)
    });
    cases.check("floatingip-show and floatingip-delete take an identifier", || {
        let all = list(bench.caller.get("/v1/floatingips")?.expect(200)?, "floatingips")?;
        let last = all.iter().find(|ip| ip["floating_ip_address"] == third);
        let id = last.map_or(Ok(""), |ip| text(ip, "id"))?;
        is(&shell.json("floatingip-show", &[id])?, "floating_ip_address", third)?;
        shell.text("floatingip-delete", &[id])?;
        shell.refused("floatingip-show", &[id], &format!("Floating IP {id} not found."))
    });
}
