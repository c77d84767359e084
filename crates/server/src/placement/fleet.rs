//! Describes the service's own fleet as a Ganeti cluster in the text format, so the same commands answer the
//! same questions about it.
//!
//! The unleased hosts of a free pool are a group. The hosts of each lease are another group, into which
//! nothing new is placed. Guests are instances on shared storage: moving one copies its memory. Guests that
//! can't be moved, or only to some hosts of their group, are instances with a local disk. Disk sizes are not
//! counted: whether a disk is copied or shared differs from guest to guest, which a group can't express.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use api::v1::{AskedCluster, PlacementQuestion, PlacementRequest};
use leases::free_pool::DEFAULT_NAME;
use service::{GuestNow, HostGroup, HostNow};

/// Minimum and standard size in an instance policy that allows everything: memory (MiB), CPUs, disk (MiB),
/// disks, network cards, spindles.
const LEAST: &str = "0,0,0,0,0,0";
const STANDARD: &str = "1024,1,1024,1,1,1";
/// Amount of disk and spindles, which are not counted.
const UNCOUNTED: u32 = 1_000_000;

/// Turns a question about the fleet into one about a cluster that is sent along.
pub(crate) fn about(
    hosts: &[HostNow],
    question: PlacementQuestion,
    mut request: PlacementRequest,
) -> PlacementRequest {
    match question {
        // Groups are independent: guests never move between them.
        PlacementQuestion::Whatif | PlacementQuestion::Fit => {
            request.options.push("--independent-groups".to_owned());
        }
        PlacementQuestion::Balance
            if !request.options.iter().any(|option| option.starts_with("--group=")) =>
        {
            request.options.push(format!("--group={}", usual_group(hosts)));
        }
        PlacementQuestion::Balance | PlacementQuestion::Drain => {}
    }
    PlacementRequest { cluster: AskedCluster::Text(text(hosts)), ..request }
}

/// Default group for balancing: the free pool with the most hosts.
fn usual_group(hosts: &[HostNow]) -> String {
    let mut sizes: BTreeMap<&HostGroup, usize> = BTreeMap::new();
    for host in hosts.iter().filter(|host| matches!(host.group, HostGroup::Pool(_))) {
        *sizes.entry(&host.group).or_default() += 1;
    }
    let largest = sizes.into_iter().rev().max_by_key(|(_, size)| *size);
    let names = Names::of(hosts);
    largest.map_or_else(|| DEFAULT_NAME.to_owned(), |(group, _)| names.group(group))
}

/// Names that are valid in the text format and in command options. Invalid names are replaced by an
/// identifier or number after a colon, which never occurs in valid names.
struct Names<'a> {
    hosts: BTreeMap<&'a str, usize>,
    pools: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(hosts: &'a [HostNow]) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pools: BTreeSet<&str> = BTreeSet::new();
        for host in hosts {
            *counts.entry(&host.name).or_default() += 1;
            if let HostGroup::Pool(name) = &host.group {
                pools.insert(name);
            }
        }
        Self { hosts: counts, pools: pools.into_iter().collect() }
    }

    fn host(&self, host: &HostNow) -> String {
        let only = self.hosts.get(host.name.as_str()) == Some(&1);
        if only && is_plain(&host.name) { host.name.clone() } else { format!("host:{}", host.id) }
    }

    fn group(&self, group: &HostGroup) -> String {
        match group {
            HostGroup::Pool(name) if is_plain(name) => name.clone(),
            HostGroup::Pool(name) => {
                format!("pool:{}", self.pools.iter().position(|known| known == name).unwrap_or_default() + 1)
            }
            HostGroup::Lease(lease) => format!("lease:{lease}"),
        }
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(plain)
}

/// Formats the cluster.
fn text(hosts: &[HostNow]) -> String {
    let names = Names::of(hosts);
    let groups: BTreeSet<&HostGroup> = hosts.iter().map(|host| &host.group).collect();
    let guests: usize = hosts.iter().map(|host| host.guests.len()).sum();
    let mut out = String::with_capacity(1024 + 128 * (hosts.len() + guests));
    // Writing to a string cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| _ = writeln!(out, "{text}");
    for group in &groups {
        let name = names.group(group);
        let placing = if matches!(group, HostGroup::Pool(_)) { "preferred" } else { "unallocable" };
        line(format_args!("{name}|{name}|{placing}||"));
    }
    line(format_args!(""));
    for host in hosts {
        let (name, group) = (names.host(host), names.group(&host.group));
        let Figures { memory, own, free, cpus } = Figures::of(host);
        let role = if host.works { 'N' } else { 'Y' };
        line(format_args!(
            "{name}|{memory}|{own}|{free}|{UNCOUNTED}|{UNCOUNTED}|{cpus}|{role}|{group}|1||N|0|0|1.0"
        ));
    }
    line(format_args!(""));
    let mut apart: BTreeMap<&str, usize> = BTreeMap::new();
    for host in hosts {
        let on = names.host(host);
        for guest in &host.guests {
            let tags = guest.apart.iter().map(|name| {
                let next = apart.len();
                format!("apart:{}", *apart.entry(name).or_insert(next))
            });
            let tags = tags.collect::<Vec<_>>().join(",");
            let GuestNow { id, size, movable, .. } = guest;
            let template = if *movable { "ext" } else { "plain" };
            let (memory, vcpus) = (size.memory_mib, size.vcpus);
            line(format_args!("{id}|{memory}|0|{vcpus}|running|Y|{on}||{template}|{tags}|1|-|N"));
        }
    }
    line(format_args!("\nhtools:iextags:apart\n"));
    let most = |amount: fn(&HostNow) -> u64| hosts.iter().map(amount).max().unwrap_or(0);
    let memory = most(|host| host.capacity.memory_mib).max(1024);
    let cpus = most(|host| host.capacity.vcpus).max(1);
    let largest = format!("{memory},{cpus},{UNCOUNTED},64,64,{UNCOUNTED}");
    let owners = groups.iter().map(|group| names.group(group));
    for owner in [String::new()].into_iter().chain(owners) {
        line(format_args!("{owner}|{STANDARD}|{LEAST};{largest}|ext,plain|1.0|{UNCOUNTED}.0"));
    }
    out
}

/// Memory (MiB) and CPUs in the line of a node.
struct Figures {
    memory: u64,
    /// Memory used by anything but instances.
    own: u64,
    free: u64,
    cpus: u64,
}

impl Figures {
    fn of(host: &HostNow) -> Self {
        let guests: u64 = host.guests.iter().map(|guest| u64::from(guest.size.memory_mib)).sum();
        let memory = host.capacity.memory_mib;
        let rest = memory.saturating_sub(guests);
        // A node without free memory would count as failing N+1.
        let free =
            if host.receives { rest.saturating_sub(host.taken.memory_mib) } else { 0 }.max(1).min(rest);
        let cpus = host.capacity.vcpus.saturating_sub(host.taken.vcpus).max(1);
        Self { memory, own: rest - free, free, cpus }
    }
}

#[cfg(test)]
mod tests {
    use leases::ids::{GuestId, HostId, LeaseId};
    use leases::plan::GuestSize;
    use leases::resources::Resources;

    use super::*;

    fn resources(vcpus: u64, memory_mib: u64) -> Resources {
        Resources { vcpus, memory_mib, ..Resources::default() }
    }

    fn host(id: u64, name: &str, group: HostGroup, guests: Vec<GuestNow>) -> HostNow {
        HostNow {
            id: HostId(id),
            name: name.to_owned(),
            group,
            capacity: resources(16, 16_384),
            taken: Resources::default(),
            works: true,
            receives: true,
            guests,
        }
    }

    fn guest(id: u128, movable: bool, apart: &[&str]) -> GuestNow {
        let size = GuestSize { vcpus: 2, memory_mib: 2048, disk_gib: 20 };
        let apart = apart.iter().map(|name| (*name).to_owned()).collect();
        GuestNow { id: GuestId(id), size, movable, apart }
    }

    fn pool(name: &str) -> HostGroup {
        HostGroup::Pool(name.to_owned())
    }

    #[test]
    fn guests_are_instances_and_what_is_not_free_is_the_nodes_own() {
        let guests = vec![guest(1, true, &["web|,\n"]), guest(2, false, &[])];
        let taken = HostNow { taken: resources(4, 4096), ..host(1, "r1-h01", pool("freepool"), guests) };
        let closed = HostNow { receives: false, works: false, ..host(2, "r1-h02", pool("freepool"), vec![]) };
        let leased = host(3, "r1-h03", HostGroup::Lease(LeaseId(7)), vec![]);
        let text = text(&[taken, closed, leased]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "freepool|freepool|preferred||",
                "lease:00000000-0000-0000-0000-000000000007|lease:00000000-0000-0000-0000-000000000007|unallocable||",
            ]
        );
        assert_eq!(lines[3], "r1-h01|16384|4096|8192|1000000|1000000|12|N|freepool|1||N|0|0|1.0");
        assert_eq!(lines[4], "r1-h02|16384|16383|1|1000000|1000000|16|Y|freepool|1||N|0|0|1.0");
        assert_eq!(
            lines[7],
            "00000000-0000-0000-0000-000000000001|2048|0|2|running|Y|r1-h01||ext|apart:0|1|-|N"
        );
        assert_eq!(lines[8], "00000000-0000-0000-0000-000000000002|2048|0|2|running|Y|r1-h01||plain||1|-|N");
    }

    #[test]
    fn names_that_a_line_or_an_option_cannot_have_are_replaced() {
        let hosts = [
            host(1, "a|b", pool("free pool"), vec![]),
            host(2, "same", pool("lease:x"), vec![]),
            host(3, "same", pool("lease:x"), vec![]),
            host(4, "-t", pool("ok"), vec![]),
        ];
        let names = Names::of(&hosts);
        let found: Vec<String> = hosts.iter().map(|host| names.host(host)).collect();
        assert_eq!(found, ["host:1", "host:2", "host:3", "host:4"]);
        let groups: Vec<String> = hosts.iter().map(|host| names.group(&host.group)).collect();
        assert_eq!(groups, ["pool:1", "pool:2", "pool:2", "ok"]);
        assert_eq!(usual_group(&hosts), "pool:2");
    }
}
