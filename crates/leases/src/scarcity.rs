//! Scarcity of host properties. Leases that can use any host leave rare hosts to leases that need them.

use std::collections::HashMap;

use crate::ids::HostId;

/// A property that not all hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Property<'a> {
    /// A capability, by name and value.
    Capability(&'a str, &'a str),
    /// A trait, by name.
    Trait(&'a str),
    /// A resource that the host has some of, by class.
    Resource(&'a str),
}

/// Scarcity of a host: the sum, over its properties, of the host's share of all hosts with that property. The
/// value is 1 for the only host with a property, and also for each of three hosts that share three
/// properties. A lower value means more common. Hosts with equal properties have equal scarcity, and a host
/// with additional properties is scarcer than one without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scarcity(u64);

impl Scarcity {
    const ONLY_HOST: u64 = 1 << 32;
}

/// Scarcity of each host in the set. Hosts without properties are omitted; they have the default.
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
