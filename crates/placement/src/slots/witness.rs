//! Why the instances of a lost node find room whatever path the reference takes.
//!
//! For an instance to be refused, every node that takes it now must have been filled by instances before it. Each
//! node needs some of them for that: at least as many as the largest that it takes need to use up what it has to
//! spare. A few nodes that together need more than there are instances before it prove that it is not refused, and
//! go on proving it until one of them has less room.

use std::cmp::Reverse;

use crate::evacuation::{Room, Size};

/// A search for a way to fill all rooms ends undecided after so many steps.
const PATIENCE: u32 = 16;

/// Rooms, and which have most memory.
#[derive(Debug)]
pub(super) struct Rooms {
    rooms: Vec<Room>,
    /// Most memory first.
    order: Vec<usize>,
}

impl Rooms {
    pub fn new(rooms: Vec<Room>) -> Self {
        let mut order: Vec<usize> = (0..rooms.len()).collect();
        order.sort_unstable_by_key(|room| Reverse(rooms[*room].memory));
        Self { rooms, order }
    }

    /// The rooms that take that size.
    fn taking(&self, size: &Size) -> impl Iterator<Item = usize> + '_ {
        let size = *size;
        let roomy = self.order.iter().copied().take_while(move |room| self.rooms[*room].memory > size.memory);
        roomy.filter(move |room| self.rooms[*room].takes(&size))
    }
}

/// The rooms that prove that a node can be emptied, and what each must have free at least.
#[derive(Clone, Debug)]
pub(super) struct Witness(Vec<(usize, Room)>);

impl Witness {
    /// A witness for instances from room `own`, which are placed in this order, if there is one.
    pub fn find(instances: &[Size], rooms: &Rooms, own: usize) -> Option<Self> {
        let mut relied: Vec<usize> = Vec::new();
        for (position, size) in instances.iter().enumerate() {
            // Later ones of the same size are worse off.
            if instances[position + 1..].contains(size) {
                continue;
            }
            let before = Before::new(&instances[..position]);
            let mut needed: usize =
                relied.iter().map(|room| before.needed(&rooms.rooms[*room], size, 0)).sum();
            let mut others = rooms.taking(size).filter(|room| *room != own);
            while needed <= position {
                let Some(room) = others.find(|room| !relied.contains(room)) else {
                    let taking = relied.iter().map(|room| rooms.rooms[*room]);
                    let mut taking: Vec<Room> = taking.filter(|room| room.takes(size)).collect();
                    let mut patience = PATIENCE;
                    if before.can_fill(&mut taking, size, 0, &mut patience) {
                        return None;
                    }
                    break;
                };
                needed += before.needed(&rooms.rooms[room], size, 0);
                relied.push(room);
            }
        }
        Some(Self(relied.into_iter().map(|room| (room, rooms.rooms[room])).collect()))
    }

    /// Whether it still proves anything if a room is like this.
    pub fn allows(&self, at: usize, now: &Room) -> bool {
        let enough = |least: &Room| now.memory >= least.memory && now.disk >= least.disk;
        self.0.iter().all(|(room, least)| *room != at || enough(least))
    }
}

/// Instances that are placed before another.
struct Before {
    /// Those that take most memory first.
    by_memory: Vec<Size>,
    /// The same, with their positions there; those that take most disk first.
    by_disk: Vec<(usize, Size)>,
}

impl Before {
    fn new(instances: &[Size]) -> Self {
        let mut by_memory = instances.to_vec();
        by_memory.sort_by_key(|size| Reverse(size.memory));
        let mut by_disk: Vec<(usize, Size)> = by_memory.iter().copied().enumerate().collect();
        by_disk.sort_by_key(|(_, size)| Reverse(size.disk));
        Self { by_memory, by_disk }
    }

    /// How many of the instances from position `from` a room needs at least to take none of that size any more; one
    /// more than there are if all are not enough, and 0 if it takes none anyway.
    fn needed(&self, room: &Room, size: &Size, from: usize) -> usize {
        if !room.takes(size) {
            return 0;
        }
        let count = self.by_memory.len() - from;
        // Only those count that can be there.
        let possible = |other: &Size| room.takes(other);
        let memory = self.by_memory[from..].iter().filter(|other| possible(other)).map(|other| other.memory);
        let by_memory = reaching(memory, room.memory - size.memory).unwrap_or(count + 1);
        let Some(disk) = size.disk else { return by_memory };
        let rest = self.by_disk.iter().filter(|(position, other)| *position >= from && possible(other));
        let disks = rest.map(|(_, other)| other.disk.unwrap_or(0));
        by_memory.min(reaching(disks, room.disk - disk).unwrap_or(count + 1))
    }

    /// Whether the instances from position `from` may be put into the rooms, or elsewhere, so that none takes that
    /// size any more; also if patience ends.
    fn can_fill(&self, rooms: &mut [Room], size: &Size, from: usize, patience: &mut u32) -> bool {
        let needed: usize = rooms.iter().map(|room| self.needed(room, size, from)).sum();
        if needed == 0 {
            return true;
        }
        if needed > self.by_memory.len() - from {
            return false;
        }
        if *patience == 0 {
            return true;
        }
        *patience -= 1;
        let first = self.by_memory[from];
        for at in 0..rooms.len() {
            let room = rooms[at];
            if room.takes(size) && room.takes(&first) {
                rooms[at].memory -= first.memory;
                rooms[at].disk -= first.disk.unwrap_or(0);
                let filled = self.can_fill(rooms, size, from + 1, patience);
                rooms[at] = room;
                if filled {
                    return true;
                }
            }
        }
        self.can_fill(rooms, size, from + 1, patience)
    }
}

/// How many of the first numbers reach `wanted` in total.
fn reaching(numbers: impl Iterator<Item = i64>, wanted: i64) -> Option<usize> {
    let mut total = 0;
    let mut reached = numbers.enumerate().skip_while(|(_, number)| {
        total += number;
        total < wanted
    });
    reached.next().map(|(position, _)| position + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(memory: i64, disk: i64) -> Size {
        Size { memory, disk: Some(disk) }
    }

    fn room((memory, disk): (i64, i64)) -> Room {
        Room { memory, disk, willing: true }
    }

    fn rooms(free: &[(i64, i64)]) -> Rooms {
        Rooms::new(free.iter().copied().map(room).collect())
    }

    #[test]
    fn a_room_with_more_to_spare_counts_for_more() {
        let instances = [size(4, 1), size(4, 1), size(4, 1), size(3, 9)];
        let found = |free: &[(i64, i64)]| Witness::find(&instances, &rooms(free), 7).is_some();
        assert!(!found(&[(15, 99)]), "the three before it block a room of 15");
        assert!(found(&[(16, 99)]));
        assert!(found(&[(15, 99), (4, 10)]), "none of them fits the other room");
        assert!(!found(&[(99, 12)]), "they take 3 of 12");
        assert!(found(&[(99, 13)]));
    }

    #[test]
    fn what_fills_one_room_does_not_fill_another() {
        // The large one fills one of the rooms, but the two small ones not the other.
        let instances = [size(9, 1), size(4, 1), size(4, 1), size(1, 1)];
        assert!(Witness::find(&instances, &rooms(&[(10, 99), (10, 99)]), 7).is_some());
        assert!(Witness::find(&instances, &rooms(&[(10, 99), (9, 99)]), 7).is_none());
    }

    #[test]
    fn an_instance_blocks_no_room_that_it_is_too_large_for() {
        let instances = [size(9, 9), size(2, 2)];
        assert!(Witness::find(&instances, &rooms(&[(10, 10), (9, 10)]), 7).is_some());
        assert!(Witness::find(&instances, &rooms(&[(10, 10)]), 7).is_none());
    }

    #[test]
    fn a_witness_holds_until_what_it_relies_on_shrinks() {
        let free = rooms(&[(2, 2), (9, 9), (9, 9)]);
        let witness = Witness::find(&[size(4, 4)], &free, 2).expect("room 1 takes it");
        assert!(witness.allows(0, &room((0, 0))));
        assert!(witness.allows(1, &room((9, 10))));
        assert!(!witness.allows(1, &room((9, 8))));
    }
}
