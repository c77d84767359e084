//! Slots of one size, and the claims on them.

use crate::evacuation::{Room, Size, slots_in};

/// Cap on the number of slots per node. No node has more instances than this.
const MOST_SLOTS: i64 = 1 << 20;

/// The slots of one size.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub size: Size,
    /// Number of slots by room.
    pub slots: Vec<u32>,
    pub total: i64,
    /// Number of rooms with at least one slot.
    pub fitting: i64,
    /// Largest number of slots in one room.
    pub most: u32,
    /// Claims of the instances of counted nodes, by ascending room.
    pub claims: Vec<Claim>,
    /// Largest claims: on slots surely wanted, on slots possibly wanted, and on rooms. Each includes the
    /// claimant's own supply, which is lost with its node.
    pub sure: Greatest,
    pub possible: Greatest,
    pub wide: Greatest,
}

/// Number of slots of a size that the instances of a lost node want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub room: usize,
    pub sure: i64,
    pub possible: i64,
    /// Number of rooms taking the size that would be enough instead.
    pub wide: i64,
}

impl Claim {
    /// Whether `left` is enough for any path of the reference.
    pub fn is_met(&self, left: Supply) -> bool {
        left.slots >= self.possible || left.rooms >= self.wide
    }
}

/// Available slots of a size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    pub slots: i64,
    /// Number of rooms with at least one slot.
    pub rooms: i64,
}

impl Supply {
    pub fn of(slots: i64) -> Self {
        Self { slots, rooms: i64::from(slots > 0) }
    }
}

impl std::ops::Sub for Supply {
    type Output = Self;

    fn sub(self, gone: Self) -> Self {
        Self { slots: self.slots - gone.slots, rooms: self.rooms - gone.rooms }
    }
}

impl std::iter::Sum for Supply {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::of(0), |sum, part| Self {
            slots: sum.slots + part.slots,
            rooms: sum.rooms + part.rooms,
        })
    }
}

/// The largest value with its room, and the largest value of all other rooms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Greatest {
    pub value: i64,
    pub room: usize,
    pub second: i64,
}

impl Greatest {
    const NONE: Self = Self { value: i64::MIN / 2, room: usize::MAX, second: i64::MIN / 2 };

    pub fn take(&mut self, value: i64, room: usize) {
        if value > self.value {
            *self = Self { value, room, second: self.value };
        } else {
            self.second = self.second.max(value);
        }
    }

    /// Largest value of any room except `room`.
    pub fn but_of(&self, room: usize) -> i64 {
        if room == self.room { self.second } else { self.value }
    }
}

impl Row {
    pub fn new(size: Size, rooms: &[Room]) -> Self {
        let slots: Vec<u32> = rooms.iter().map(|room| slots(room, &size) as u32).collect();
        let total = slots.iter().copied().map(i64::from).sum();
        let fitting = slots.iter().filter(|slots| **slots > 0).count() as i64;
        let most = slots.iter().copied().max().unwrap_or(0);
        let (sure, possible, wide) = (Greatest::NONE, Greatest::NONE, Greatest::NONE);
        Self { size, slots, total, fitting, most, claims: Vec::new(), sure, possible, wide }
    }

    /// Supply of all rooms.
    pub fn supply(&self) -> Supply {
        Supply { slots: self.total, rooms: self.fitting }
    }

    /// Supply of one room.
    pub fn supply_in(&self, room: usize) -> Supply {
        Supply::of(i64::from(self.slots[room]))
    }

    /// Claim of `instances` on this size, which occurs last at position `last`.
    pub fn claim(&self, room: usize, instances: &[Size], last: usize) -> Claim {
        Claim {
            room,
            sure: sure(instances, &self.size),
            possible: self.possible(&instances[..last]),
            wide: last as i64 + 1,
        }
    }

    /// Maximum number of slots used up once an instance has its own, after the instances `before` it.
    pub fn possible(&self, before: &[Size]) -> i64 {
        let most = i64::from(self.most);
        1 + before.iter().map(|other| destroyed(other, &self.size).min(most)).sum::<i64>()
    }

    /// Records a room's new capacity. Returns whether claims must be recomputed.
    pub fn set(&mut self, at: usize, room: &Room) -> bool {
        let (old, now) = (self.slots[at], slots(room, &self.size) as u32);
        self.slots[at] = now;
        self.total += i64::from(now) - i64::from(old);
        self.fitting += i64::from(now > 0) - i64::from(old > 0);
        let unchanged = now <= self.most && (old < self.most || self.slots.contains(&self.most));
        if !unchanged {
            self.most = self.slots.iter().copied().max().unwrap_or(0);
        }
        !unchanged
    }

    /// Recomputes the possible claims after the maximum number of slots in one room changed.
    pub fn claim_again(&mut self, residents: &[Option<Vec<Size>>]) {
        let mut claims = std::mem::take(&mut self.claims);
        for claim in &mut claims {
            let instances = residents[claim.room].as_deref().unwrap_or_default();
            let last = instances.iter().rposition(|size| *size == self.size).unwrap_or(0);
            claim.possible = self.possible(&instances[..last]);
        }
        self.claims = claims;
    }

    /// Finds the largest claims.
    pub fn rank(&mut self) {
        (self.sure, self.possible, self.wide) = (Greatest::NONE, Greatest::NONE, Greatest::NONE);
        for claim in &self.claims {
            // Slots on the lost node itself can't be used.
            let own = Supply::of(i64::from(self.slots[claim.room]));
            self.sure.take(own.slots + claim.sure, claim.room);
            self.possible.take(own.slots + claim.possible, claim.room);
            self.wide.take(own.rooms + claim.wide, claim.room);
        }
    }

    /// Rooms other than `but` with instances that might want more than is left in total.
    pub fn unsettled(&self, left: Supply, but: usize) -> impl Iterator<Item = usize> + '_ {
        // Individual claims need a check only if the largest ones aren't met.
        let all_met = left.slots >= self.possible.but_of(but) || left.rooms >= self.wide.but_of(but);
        let claims = if all_met { &[] } else { self.claims.as_slice() };
        let wants_more =
            move |claim: &&Claim| claim.room != but && !claim.is_met(left - self.supply_in(claim.room));
        claims.iter().filter(wants_more).map(|claim| claim.room)
    }

    /// Whether losing `gone` slots and rooms might leave too few for some claim.
    pub fn scarce(&self, gone: Supply) -> bool {
        let left = self.supply() - gone;
        left.slots < self.sure.value || (left.slots < self.possible.value && left.rooms < self.wide.value)
    }
}

pub(super) fn slots(room: &Room, size: &Size) -> i64 {
    slots_in(room, size).min(MOST_SLOTS)
}

/// Maximum number of slots of size `other` that an instance of size `taken` destroys.
pub(super) fn destroyed(taken: &Size, other: &Size) -> i64 {
    let by = |taken: i64, other: i64| if other == 0 { 0 } else { (taken + other - 1) / other };
    let by_disk = other.disk.map_or(0, |wanted| by(taken.disk.unwrap_or(0), wanted));
    by(taken.memory, other.memory).max(by_disk).min(MOST_SLOTS)
}

/// Distinct sizes, each with its last position.
pub(super) fn sizes(instances: &[Size]) -> impl Iterator<Item = (usize, Size)> + '_ {
    let last_of_size = |(position, size): &(usize, &Size)| !instances[position + 1..].contains(size);
    instances.iter().enumerate().filter(last_of_size).map(|(position, size)| (position, *size))
}

/// Number of slots of a size that the instances surely want.
fn sure(instances: &[Size], size: &Size) -> i64 {
    instances.iter().filter(|other| other.covers(size)).count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(memory: i64, disk: i64) -> Size {
        Size { memory, disk: Some(disk) }
    }

    fn rooms(free: &[(i64, i64)]) -> Vec<Room> {
        free.iter().map(|&(memory, disk)| Room { memory, disk, willing: true }).collect()
    }

    #[test]
    fn an_instance_destroys_slots_by_what_it_takes_most_of() {
        assert_eq!(destroyed(&size(4, 10), &size(4, 10)), 1);
        assert_eq!(destroyed(&size(5, 10), &size(4, 10)), 2);
        assert_eq!(destroyed(&size(4, 31), &size(4, 10)), 4);
        assert_eq!(destroyed(&Size { memory: 4, disk: None }, &size(4, 10)), 1);
        assert_eq!(destroyed(&size(4, 10), &size(0, 0)), 0);
    }

    #[test]
    fn no_node_loses_more_slots_than_one_node_has() {
        let row = Row::new(size(2, 1), &rooms(&[(5, 99), (3, 99), (2, 99)]));
        assert_eq!((row.total, row.most), (3, 2));
        assert_eq!(row.possible(&[size(9, 1), size(2, 1)]), 2 + 1 + 1);
    }

    #[test]
    fn the_most_in_one_room_follows_the_rooms() {
        let mut free = rooms(&[(5, 99), (5, 99), (3, 99)]);
        let mut row = Row::new(size(2, 1), &free);
        free[0].memory = 3;
        assert!(!row.set(0, &free[0]), "another room has as many");
        free[1].memory = 3;
        assert!(row.set(1, &free[1]));
        assert_eq!((row.total, row.most), (3, 1));
        free[1].memory = 9;
        assert!(row.set(1, &free[1]));
        assert_eq!((row.total, row.most), (6, 4));
    }

    #[test]
    fn a_node_needs_slots_elsewhere() {
        let mut row = Row::new(size(2, 1), &rooms(&[(5, 99), (3, 99), (2, 99)]));
        row.claims = vec![
            Claim { room: 0, sure: 2, possible: 2, wide: 2 },
            Claim { room: 2, sure: 3, possible: 4, wide: 3 },
        ];
        row.rank();
        assert_eq!((row.sure.but_of(usize::MAX), row.sure.but_of(0), row.sure.but_of(2)), (4, 3, 4));
        let unsettled = |rooms, but| row.unsettled(Supply { slots: 3, rooms }, but).collect::<Vec<_>>();
        assert_eq!(unsettled(2, usize::MAX), [0, 2]);
        assert_eq!(unsettled(2, 0), [2]);
        assert_eq!(unsettled(3, usize::MAX), []);
    }
}
