//! Amounts of resources: capacities of hosts and needs of instances.

use std::collections::BTreeMap;

/// A resource class other than the three that every host has, by its name in Placement: `PCPU`,
/// `CUSTOM_FPGA`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceClass(pub String);

/// An amount of each resource. Arithmetic saturates at `u64::MAX`, which no host has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Resources {
    pub vcpus: u64,
    /// In MiB.
    pub memory_mib: u64,
    /// In GiB.
    pub disk_gib: u64,
    /// Other resource classes. An absent class counts as 0.
    pub other: BTreeMap<ResourceClass, u64>,
}

impl Resources {
    /// Sets the amount of a class, given its name in Placement.
    pub fn set(&mut self, class: &str, amount: u64) {
        match class {
            "VCPU" => self.vcpus = amount,
            "MEMORY_MB" => self.memory_mib = amount,
            "DISK_GB" => self.disk_gib = amount,
            other => {
                self.other.insert(ResourceClass(other.to_owned()), amount);
            }
        }
    }

    /// Whether every amount is 0.
    pub fn is_nothing(&self) -> bool {
        self.vcpus == 0
            && self.memory_mib == 0
            && self.disk_gib == 0
            && self.other.values().all(|amount| *amount == 0)
    }

    /// Adds `size` multiplied by `times`.
    pub fn add(&mut self, times: u32, size: &Self) {
        let times = u64::from(times);
        let sum = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs.saturating_mul(times));
        sum(&mut self.vcpus, size.vcpus);
        sum(&mut self.memory_mib, size.memory_mib);
        sum(&mut self.disk_gib, size.disk_gib);
        for (class, amount) in &size.other {
            sum(self.other.entry(class.clone()).or_insert(0), *amount);
        }
    }

    /// Subtracts `size` multiplied by `times`, stopping at 0.
    pub fn subtract(&mut self, times: u32, size: &Self) {
        let times = u64::from(times);
        let rest = |mine: &mut u64, theirs: u64| *mine = mine.saturating_sub(theirs.saturating_mul(times));
        rest(&mut self.vcpus, size.vcpus);
        rest(&mut self.memory_mib, size.memory_mib);
        rest(&mut self.disk_gib, size.disk_gib);
        for (class, amount) in &size.other {
            if let Some(mine) = self.other.get_mut(class) {
                rest(mine, *amount);
            }
        }
    }

    /// Raises each amount to at least the amount in `other`.
    pub fn raise_to(&mut self, other: &Self) {
        let raise = |mine: &mut u64, theirs: u64| *mine = (*mine).max(theirs);
        raise(&mut self.vcpus, other.vcpus);
        raise(&mut self.memory_mib, other.memory_mib);
        raise(&mut self.disk_gib, other.disk_gib);
        for (class, amount) in &other.other {
            raise(self.other.entry(class.clone()).or_insert(0), *amount);
        }
    }

    /// Sets amounts to 0 for resources that `needed` doesn't need.
    pub fn keep_only(&mut self, needed: &Self) {
        let keep = |mine: &mut u64, needed: u64| *mine = if needed == 0 { 0 } else { *mine };
        keep(&mut self.vcpus, needed.vcpus);
        keep(&mut self.memory_mib, needed.memory_mib);
        keep(&mut self.disk_gib, needed.disk_gib);
        self.other.retain(|class, _| needed.other.get(class).is_some_and(|amount| *amount > 0));
    }

    /// Whether `room` has at least as much of each resource.
    pub fn fits_into(&self, room: &Self) -> bool {
        let of = |class| room.other.get(class).copied().unwrap_or(0);
        self.vcpus <= room.vcpus
            && self.memory_mib <= room.memory_mib
            && self.disk_gib <= room.disk_gib
            && self.other.iter().all(|(class, amount)| *amount <= of(class))
    }

    /// Number of instances of this size that fit into the capacity if `used` is taken.
    pub fn slots(&self, used: &Self, size: &Self) -> u32 {
        let fitting = |capacity: u64, used: u64, need: u64| {
            capacity.saturating_sub(used).checked_div(need).unwrap_or(u64::MAX)
        };
        // The three common classes come first, without a lookup, because this function is called very often.
        let mut least = fitting(self.vcpus, used.vcpus, size.vcpus)
            .min(fitting(self.memory_mib, used.memory_mib, size.memory_mib))
            .min(fitting(self.disk_gib, used.disk_gib, size.disk_gib));
        let of = |resources: &Self, class| resources.other.get(class).copied().unwrap_or(0);
        for (class, need) in &size.other {
            least = least.min(fitting(of(self, class), of(used, class), *need));
        }
        u32::try_from(least).unwrap_or(u32::MAX)
    }
}

/// Whether `name` is a valid name of a resource class in Placement.
pub(crate) fn is_resource_class(name: &str) -> bool {
    let letter = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_';
    (1..=255).contains(&name.len()) && name.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(vcpus: u64, memory_mib: u64, disk_gib: u64) -> Resources {
        Resources { vcpus, memory_mib, disk_gib, other: BTreeMap::new() }
    }

    #[test]
    fn the_scarcest_resource_decides_how_many_fit() {
        let capacity = size(16, 64, 100);
        assert_eq!(capacity.slots(&size(0, 0, 0), &size(2, 16, 1)), 4);
        assert_eq!(capacity.slots(&size(13, 0, 0), &size(2, 16, 1)), 1);
        assert_eq!(capacity.slots(&size(20, 0, 0), &size(2, 16, 1)), 0);
    }

    #[test]
    fn what_is_not_needed_does_not_limit() {
        assert_eq!(size(4, 8, 0).slots(&size(0, 0, 0), &size(1, 1, 0)), 4);
    }

    #[test]
    fn a_class_that_the_host_lacks_leaves_no_slot() {
        let mut needed = size(1, 1, 1);
        needed.other.insert(ResourceClass("PCPU".into()), 1);
        let mut capacity = size(4, 4, 4);
        assert_eq!(capacity.slots(&size(0, 0, 0), &needed), 0);
        capacity.other.insert(ResourceClass("PCPU".into()), 2);
        assert_eq!(capacity.slots(&size(0, 0, 0), &needed), 2);
    }

    #[test]
    fn taking_away_undoes_adding() {
        let mut used = size(3, 5, 7);
        used.add(4, &size(1, 2, 3));
        used.subtract(4, &size(1, 2, 3));
        assert_eq!(used, size(3, 5, 7));
    }
}
