//! Proves that the instances of a lost node fit elsewhere on any path that the reference can take.
//!
//! For an instance to be refused, earlier instances must have filled every node that takes it now. To fill a
//! node, they must use up its spare capacity, which takes at least as many instances as are needed if the
//! largest that fit there come first. If a few nodes together need more than there are earlier instances, the
//! instance isn't refused. That proof stays valid until one of these nodes has less capacity.

use std::cmp::Reverse;

use crate::evacuation::{Room, Size};

/// Maximum number of steps of a search for a way to fill all rooms. After that, it is undecided.
const PATIENCE: u32 = 16;

/// Rooms, and their order by memory.
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

    /// Rooms that take the size.
    fn taking(&self, size: &Size) -> impl Iterator<Item = usize> + '_ {
        let size = *size;
        let roomy = self.order.iter().copied().take_while(move |room| self.rooms[*room].memory > size.memory);
        roomy.filter(move |room| self.rooms[*room].takes(&size))
    }
}

/// Rooms that prove that a node can be evacuated, each with the minimum it must have free.
#[derive(Clone, Debug)]
pub(super) struct Witness(Vec<(usize, Room)>);

impl Witness {
    /// Finds a witness for instances of room `own`, which are placed in this order.
    pub fn find(instances: &[Size], rooms: &Rooms, own: usize) -> Option<Self> {
        let mut relied: Vec<usize> = Vec::new();
        for (position, size) in instances.iter().enumerate() {
            // A later instance of the same size is harder to place, so it covers this one.
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

    /// Whether the proof stays valid if the room at `at` has the capacity `now`.
    pub fn allows(&self, at: usize, now: &Room) -> bool {
        let enough = |least: &Room| now.memory >= least.memory && now.disk >= least.disk;
        self.0.iter().all(|(room, least)| *room != at || enough(least))
    }
}

/// Instances placed before another one.
struct Before {
    /// Largest memory first.
    by_memory: Vec<Size>,
    /// The same instances with their positions in `by_memory`, largest disk first.
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

    /// Minimum number of instances from position `from` on after which a room no longer takes the size. One
    /// more than their count if even all are not enough, and 0 if the room doesn't take the size anyway.
    fn needed(&self, room: &Room, size: &Size, from: usize) -> usize {
        if !room.takes(size) {
            return 0;
        }
        let count = self.by_memory.len() - from;
        // Instances too large for the room don't count.
        let possible = |other: &Size| room.takes(other);
        let memory = self.by_memory[from..].iter().filter(|other| possible(other)).map(|other| other.memory);
        let by_memory = reaching(memory, room.memory - size.memory).unwrap_or(count + 1);
        let Some(disk) = size.disk else { return by_memory };
        let rest = self.by_disk.iter().filter(|(position, other)| *position >= from && possible(other));
        let disks = rest.map(|(_, other)| other.disk.unwrap_or(0));
        by_memory.min(reaching(disks, room.disk - disk).unwrap_or(count + 1))
    }

    /// Whether the instances from position `from` on can be distributed over these rooms and elsewhere so
    /// that the rooms no longer take the size. Also true if patience runs out.
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

/// Number of leading values whose sum reaches `wanted`.
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
        // The large instance fills one of the rooms, but the two small ones don't fill the second.
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
