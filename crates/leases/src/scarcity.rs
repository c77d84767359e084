//! How rare the properties of hosts are, so that leases that can be on any host leave rare ones for those that need them.

use std::collections::HashMap;

use crate::ids::HostId;

/// A property that not all hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Property<'a> {
    /// A capability, by name and value.
    Capability(&'a str, &'a str),
    /// A trait, by name.
    Trait(&'a str),
    /// A resource that there is some of, by class.
    Resource(&'a str),
}

/// The scarcity of a host: for each of its properties, its share of all hosts with that property, added up. 1 is the only
/// host with one property, and also one of three hosts that share three properties. Less is more common. Hosts with equal
/// properties are equally scarce, and a host that has more properties than another is scarcer than that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scarcity(u64);

impl Scarcity {
    const ONLY_HOST: u64 = 1 << 32;
}

/// The scarcity of each host among all of them, by their properties. Hosts without properties are left out: theirs is the
/// default.
pub(crate) fn scarcities<'a, P: Iterator<Item = Property<'a>>>(
    hosts: impl Iterator<Item = (HostId, P)> + Clone,
) -> HashMap<HostId, Scarcity> {
    let mut counts: HashMap<Property<'a>, u64> = HashMap::new();
    for property in hosts.clone().flat_map(|(_, properties)| properties) {
        *counts.entry(property).or_insert(0) += 1;
    }
    let share = |property| counts.get(&property).map_or(0, |count| Scarcity::ONLY_HOST / count);
    let scarcity = |(host, properties): (HostId, P)| (host, Scarcity(properties.map(share).sum()));
    hosts.map(scarcity).filter(|(_, scarcity)| *scarcity > Scarcity::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_counts_as_the_share_of_the_hosts_that_have_it() {
        use Property::{Capability, Resource, Trait};
        let hosts: [&[Property<'_>]; 4] = [
            &[Capability("rack", "r1"), Capability("gpu", "a100")],
            &[Capability("rack", "r1")],
            &[Capability("rack", "r2"), Trait("r1")],
            &[],
        ];
        let found = scarcities((1..).map(HostId).zip(hosts.iter().map(|own| own.iter().copied())));
        let half = Scarcity::ONLY_HOST / 2;
        let expected = [(1, 3 * half), (2, half), (3, 4 * half)];
        assert_eq!(found, expected.map(|(id, sum)| (HostId(id), Scarcity(sum))).into());
        let alone = scarcities([(HostId(1), [Resource("VGPU")].into_iter())].into_iter());
        assert_eq!(alone[&HostId(1)], Scarcity(Scarcity::ONLY_HOST));
    }
}
