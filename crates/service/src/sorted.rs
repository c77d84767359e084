//! A large sorted set that is cheap to copy: copies share its chunks until a chunk changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Maximum number of items in a chunk.
const MOST: usize = 256;

/// Sorted set of items.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<T> {
    /// Chunks by a key that is a lower bound of their items and greater than all items of the previous chunk.
    chunks: BTreeMap<T, Arc<Vec<T>>>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { chunks: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> Sorted<T> {
    /// Key of the chunk that contains the item, if the set contains it.
    fn chunk_of(&self, item: &T) -> Option<T> {
        self.chunks.range(..=*item).next_back().map(|(key, _)| *key)
    }

    pub fn insert(&mut self, item: T) {
        let key = self.chunk_of(&item).unwrap_or_else(|| {
            // The item precedes all chunks.
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

    /// Items from `bound` on.
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

    /// Compares the set with one of the standard library, and checks that copies don't change.
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
            // The set grows first, and shrinks later.
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
