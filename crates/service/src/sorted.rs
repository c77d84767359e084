//! A large sorted set that is cheap to copy: copies share its chunks until one of them changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// How many items a chunk has at most.
const MOST: usize = 256;

/// Items in their order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<T> {
    /// Each under an item that none in it comes before, and that comes after all in the chunk before.
    chunks: BTreeMap<T, Arc<Vec<T>>>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { chunks: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Sorted<T> {
    /// The key of the chunk that the item is in, if it is there.
    fn chunk_of(&self, item: &T) -> Option<T> {
        self.chunks.range(..=*item).next_back().map(|(key, _)| *key)
    }

    /// Puts an item in; nothing changes if it is there.
    pub fn insert(&mut self, item: T) {
        let key = self.chunk_of(&item).unwrap_or_else(|| {
            // It comes before all others.
            let first = self.chunks.pop_first().map(|(_, chunk)| chunk);
            self.chunks.insert(item, first.unwrap_or_default());
            item
        });
        let Some(chunk) = self.chunks.get_mut(&key) else { return };
        let Err(place) = chunk.binary_search(&item) else { return };
        let chunk = Arc::make_mut(chunk);
        chunk.insert(place, item);
        if chunk.len() > MOST {
            let rest = chunk.split_off(MOST / 2);
            self.chunks.insert(rest[0], Arc::new(rest));
        }
    }

    /// Takes an item out, if it is there.
    pub fn remove(&mut self, item: &T) {
        let Some(key) = self.chunk_of(item) else { return };
        let Some(chunk) = self.chunks.get_mut(&key) else { return };
        let Ok(place) = chunk.binary_search(item) else { return };
        if chunk.len() == 1 {
            self.chunks.remove(&key);
        } else {
            Arc::make_mut(chunk).remove(place);
        }
    }

    /// The items from there on.
    pub fn from(&self, bound: Bound<T>) -> impl Iterator<Item = T> + use<'_, T> {
        let first = match bound {
            Bound::Included(item) | Bound::Excluded(item) => self.chunk_of(&item),
            Bound::Unbounded => None,
        };
        let chunks = self.chunks.range((first.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded));
        let mut chunks = chunks.map(|(_, chunk)| chunk.as_slice());
        let start = chunks.next().unwrap_or_default();
        let before = start.partition_point(|item| match bound {
            Bound::Included(bound) => *item < bound,
            Bound::Excluded(bound) => *item <= bound,
            Bound::Unbounded => false,
        });
        start[before..].iter().chain(chunks.flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The same as a set of the standard library, whatever is done; and copies stay as they were.
    #[test]
    fn a_sorted_set_has_what_was_put_in_and_copies_stay_as_they_were() {
        let mut drawn = 1_u64;
        let mut draw = |bound: u64| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 33) % bound
        };
        let (mut sorted, mut model) = (Sorted::default(), BTreeSet::new());
        let mut copies = Vec::new();
        for step in 0..20_000 {
            let item = draw(3000);
            // At first it grows, at last it shrinks.
            if draw(20_000) > step / 2 + 3000 {
                sorted.insert(item);
                model.insert(item);
            } else {
                sorted.remove(&item);
                model.remove(&item);
            }
            if step % 1000 == 0 {
                copies.push((sorted.clone(), model.clone()));
                for bound in [Bound::Included(item), Bound::Excluded(item), Bound::Unbounded] {
                    let wanted: Vec<u64> = model.range((bound, Bound::Unbounded)).copied().collect();
                    assert_eq!(sorted.from(bound).collect::<Vec<_>>(), wanted);
                }
            }
        }
        for (sorted, model) in copies {
            assert!(sorted.from(Bound::Unbounded).eq(model.iter().copied()));
        }
        for item in model.clone() {
            sorted.remove(&item);
        }
        assert_eq!(sorted.from(Bound::Unbounded).next(), None);
        assert!(sorted.chunks.is_empty());
    }

    #[test]
    fn a_change_of_a_copy_copies_one_chunk() {
        let mut sorted = Sorted::default();
        (0..100_000_u64).for_each(|item| sorted.insert(item * 2));
        let mut copy = sorted.clone();
        copy.insert(77_777);
        let shared = copy
            .chunks
            .iter()
            .filter(|(key, chunk)| sorted.chunks.get(key).is_some_and(|other| Arc::ptr_eq(chunk, other)));
        assert!(shared.count() + 2 >= copy.chunks.len());
        assert!(sorted.chunks.values().all(|chunk| chunk.len() <= MOST));
    }
}
