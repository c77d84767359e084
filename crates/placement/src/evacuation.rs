//! Tells whether the instances of a lost node find capacity elsewhere, without following the reference's
//! greedy path, or only its beginning.
//!
//! Each instance in turn is placed on some node with more than enough free memory (and disk). The score
//! decides on which. Three arguments spare the simulation:
//!
//! - *Enough nodes take it.* Each instance before it goes to one node. If more nodes than that take it now,
//!   one still does.
//! - *It fits regardless of the instances before it.* For an instance to be refused everywhere, those before
//!   it must have filled every node to the point where it no longer fits. If they are too small for that in
//!   total, it fits.
//! - *It cannot fit at all.* Instances at least as large as a given size each need a slot of that size. If
//!   there are more of them than slots, some instance is left over.

use cluster::Instance;

/// Memory and disk that an instance takes, MiB. Evacuations require that neither is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Size {
    pub memory: i64,
    /// Disk on the node; `None` if its disks aren't stored on the node.
    pub disk: Option<i64>,
}

impl Size {
    /// Size of an instance when it starts on another node.
    pub fn of(instance: &Instance) -> Self {
        let disk = instance.template.local_storage().then_some(instance.disk);
        Self { memory: used_memory(instance), disk }
    }

    /// Whether neither number is negative.
    pub fn is_sensible(&self) -> bool {
        self.memory >= 0 && self.disk.is_none_or(|disk| disk >= 0)
    }

    /// Whether it is at least as large as `other` in both memory and disk.
    pub fn covers(&self, other: &Self) -> bool {
        self.memory >= other.memory && self.disk >= other.disk
    }
}

/// The memory that an instance occupies on its primary, MiB.
pub(crate) fn used_memory(instance: &Instance) -> i64 {
    if instance.uses_memory() { instance.memory } else { 0 }
}

/// Free capacity of a node, MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub memory: i64,
    pub disk: i64,
    /// Whether policies and tags let the node take all the instances in question.
    pub willing: bool,
}

impl Room {
    /// Whether an instance of this size fits.
    pub fn takes(&self, size: &Size) -> bool {
        self.memory > size.memory && size.disk.is_none_or(|wanted| self.disk > wanted)
    }
}

/// Slack for rounding in shares.
const SLACK: f64 = 1e-9;

/// Instances that need new nodes, in the order in which they are placed, and the free capacity of other
/// nodes.
///
/// A node takes an instance if some of its memory stays free, and some of its disk if the instance has any.
#[derive(Debug)]
pub(crate) struct Evacuation {
    pub instances: Vec<Size>,
    /// Free capacity of the nodes that could take instances, by ascending node.
    pub rooms: Vec<Room>,
}

impl Evacuation {
    /// Whether every instance finds a node; `None` if that cannot be told. `Some(true)` holds even if any
    /// `spare` nodes change.
    pub fn verdict(&self, spare: usize) -> Option<bool> {
        if self.rooms_outnumber(spare) || self.slots_for_largest(spare) || self.always_fit(spare) {
            Some(true)
        } else if self.too_many() {
            Some(false)
        } else {
            None
        }
    }

    /// Drops the rooms that take none of the instances, and their entries in `of_rooms`. They never will take
    /// any.
    pub fn drop_useless<T>(&mut self, of_rooms: &mut Vec<T>) {
        let least = Size {
            memory: self.instances.iter().map(|size| size.memory).min().unwrap_or(0),
            disk: self.instances.iter().map(|size| size.disk).min().flatten(),
        };
        let mut useful = self.rooms.iter().map(|room| room.takes(&least));
        of_rooms.retain(|_| useful.next() == Some(true));
        self.rooms.retain(|room| room.takes(&least));
    }

    /// Removes the first instance, which went to the node with this room.
    pub fn house_first(&mut self, room: usize) {
        if self.instances.is_empty() {
            return;
        }
        let size = self.instances.remove(0);
        self.rooms[room].memory -= size.memory;
        self.rooms[room].disk -= size.disk.unwrap_or(0);
    }

    /// Rooms that the first instance can go to, judging by memory and disk.
    pub fn rooms_for_first(&self) -> impl Iterator<Item = usize> + '_ {
        let first = self.instances.first();
        let takes = move |room: &Room| first.is_some_and(|size| room.takes(size));
        self.rooms.iter().enumerate().filter(move |(_, room)| takes(room)).map(|(at, _)| at)
    }

    /// Whether more rooms take each instance than there are instances before it.
    fn rooms_outnumber(&self, spare: usize) -> bool {
        self.instances.iter().enumerate().rev().all(|(position, size)| {
            // A later instance of the same size has already passed a stricter test.
            self.instances[position + 1..].contains(size)
                || self
                    .rooms
                    .iter()
                    .filter(|room| room.willing && room.takes(size))
                    .nth(position + spare)
                    .is_some()
        })
    }

    /// Whether there are slots for all instances even if each had the largest memory and disk.
    fn slots_for_largest(&self, spare: usize) -> bool {
        let largest = Size {
            memory: self.instances.iter().map(|size| size.memory).max().unwrap_or(0),
            disk: self.instances.iter().map(|size| size.disk).max().flatten(),
        };
        let wanted = self.instances.len() as i64;
        let mut greatest = Greatest::new(spare);
        let (mut slots, mut kept) = (0, 0);
        for room in self.rooms.iter().filter(|room| room.willing) {
            let here = slots_in(room, &largest).min(wanted);
            slots += here;
            kept += greatest.take(here);
            if slots - kept >= wanted {
                return true;
            }
        }
        slots - kept >= wanted
    }

    /// Whether no instance can be refused, regardless of the nodes that the instances before it were given.
    fn always_fit(&self, spare: usize) -> bool {
        // Factors that turn MiB into shares of the total that the instances take.
        let share = |part: fn(&Size) -> i64| 1.0 / self.instances.iter().map(part).sum::<i64>().max(1) as f64;
        let (memory, disk) = (share(|size| size.memory), share(|size| size.disk.unwrap_or(0)));
        // Maximum share that an instance can block: the larger of its shares of memory and disk.
        let blocks = |size: &Size| {
            (size.memory as f64 * memory).max(size.disk.unwrap_or(0) as f64 * disk) * (1.0 + SLACK)
        };
        let mut blocked: f64 = self.instances.iter().map(blocks).sum();
        self.instances.iter().enumerate().rev().all(|(position, size)| {
            blocked -= blocks(size);
            // A later instance of the same size has already passed a stricter test.
            self.instances[position + 1..].contains(size)
                || self.more_room_than(blocked, size, memory, disk, spare)
        })
    }

    /// Whether more than `share` must be used up before no node takes an instance of this size. `memory` and
    /// `disk` turn MiB into shares.
    fn more_room_than(&self, share: f64, size: &Size, memory: f64, disk: f64, spare: usize) -> bool {
        let mut greatest = Greatest::new(spare);
        let (mut room_left, mut kept) = (0.0, 0.0);
        for room in self.rooms.iter().filter(|room| room.willing) {
            let by_memory = (room.memory - size.memory).max(0) as f64 * memory;
            let by_disk = size.disk.map_or(f64::INFINITY, |wanted| (room.disk - wanted).max(0) as f64 * disk);
            let here = by_memory.min(by_disk).min(share + 1.0);
            room_left += here;
            kept += greatest.take(here);
            if room_left - kept > share * (1.0 + SLACK) + SLACK {
                return true;
            }
        }
        false
    }

    /// Whether there are more instances of some size or larger than slots of that size.
    fn too_many(&self) -> bool {
        self.instances.iter().enumerate().any(|(position, size)| {
            if self.instances[..position].contains(size) {
                return false;
            }
            let larger = |other: &&Size| other.covers(size);
            let wanted = self.instances.iter().filter(larger).count() as i64;
            let mut slots = 0;
            self.rooms.iter().all(|room| {
                slots += slots_in(room, size).min(wanted);
                slots < wanted
            })
        })
    }
}

/// Number of instances of this size that a node takes.
pub(crate) fn slots_in(room: &Room, size: &Size) -> i64 {
    // Divisions are slow, and where it matters there are usually few slots.
    let by = |free: i64, wanted: i64| match (free, wanted) {
        _ if free <= wanted => 0,
        (_, 0) => i64::MAX,
        _ if free - 1 < 2 * wanted => 1,
        _ => (free - 1) / wanted,
    };
    match by(room.memory, size.memory) {
        0 => 0,
        slots => slots.min(size.disk.map_or(i64::MAX, |wanted| by(room.disk, wanted))),
    }
}

/// The greatest of the numbers seen, at most two.
struct Greatest<T> {
    /// Ascending.
    numbers: [T; 2],
    /// Count of numbers to keep, at most 2.
    count: usize,
}

impl<T: Copy + Default + PartialOrd + std::ops::Sub<Output = T>> Greatest<T> {
    fn new(count: usize) -> Self {
        Self { numbers: [T::default(); 2], count: count.min(2) }
    }

    /// Adds a number that isn't negative. Returns the growth of the sum of the greatest numbers.
    fn take(&mut self, number: T) -> T {
        let numbers = &mut self.numbers[2 - self.count..];
        let Some(least) = numbers.first_mut().filter(|least| number > **least) else { return T::default() };
        let grown = number - *least;
        *least = number;
        if numbers.len() > 1 && numbers[0] > numbers[1] {
            numbers.swap(0, 1);
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evacuation(instances: &[(i64, i64)], rooms: &[(i64, i64)]) -> Evacuation {
        let instances = instances.iter().map(|&(memory, disk)| Size { memory, disk: Some(disk) }).collect();
        let rooms: Vec<Room> =
            rooms.iter().map(|&(memory, disk)| Room { memory, disk, willing: true }).collect();
        Evacuation { instances, rooms }
    }

    #[test]
    fn something_must_stay_free() {
        assert_eq!(evacuation(&[(4, 4)], &[(5, 5)]).verdict(0), Some(true));
        assert_eq!(evacuation(&[(4, 4)], &[(4, 5), (5, 4)]).verdict(0), Some(false));
        assert_eq!(evacuation(&[(0, 0)], &[(1, 1)]).verdict(0), Some(true));
        assert_eq!(evacuation(&[(0, 0)], &[(1, 0)]).verdict(0), Some(false));
        assert_eq!(evacuation(&[], &[]).verdict(0), Some(true));
    }

    #[test]
    fn small_ones_cannot_take_all_room_from_a_large_one() {
        // The last instance might fit only where the first two did not go.
        assert_eq!(evacuation(&[(3, 1), (3, 1), (2, 1)], &[(8, 99), (3, 99)]).verdict(0), Some(true));
        // The result depends on the node that the first instance goes to.
        assert_eq!(evacuation(&[(3, 1), (5, 1)], &[(6, 99), (4, 99)]).verdict(0), None);
        assert_eq!(evacuation(&[(3, 1), (5, 1)], &[(5, 99), (9, 99)]).verdict(0), None);
        assert_eq!(evacuation(&[(5, 1), (5, 1)], &[(6, 99), (5, 99)]).verdict(0), Some(false));
    }

    #[test]
    fn each_instance_blocks_one_node_at_most() {
        // Memory or disk could be used up in total.
        let instances = [(9, 1), (1, 9), (1, 1)];
        assert_eq!(evacuation(&instances, &[(10, 10), (10, 10), (2, 2)]).verdict(0), Some(true));
        assert_eq!(evacuation(&instances, &[(10, 10), (10, 10)]).verdict(0), None);
    }

    #[test]
    fn spare_nodes_are_not_relied_upon() {
        let of = |rooms: &[(i64, i64)]| evacuation(&[(4, 4)], rooms).verdict(2);
        assert_eq!(of(&[(9, 9), (9, 9)]), None);
        assert_eq!(of(&[(9, 9), (9, 9), (5, 5)]), Some(true));
    }
}
