//! A small seeded random number generator: the same seed gives the same cluster on every machine, forever.
//!
//! It must never read the clock or the environment.

/// Steele, Lea and Flood's `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        let mut random = Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF0 };
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// True with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of the items, with equal probability.
    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A copy of one of the items, with equal probability.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        *self.one_of(items)
    }

    /// A copy of one of the items, with probability proportional to its weight.
    pub fn weighted<T: Copy>(&mut self, items: &[(usize, T)]) -> T {
        let mut left = self.below(items.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in items {
            if left < *weight {
                return *item;
            }
            left -= weight;
        }
        items[items.len() - 1].1
    }

    /// Up to `count` distinct items, in their original order.
    pub fn some<T: Clone>(&mut self, items: &[T], count: usize) -> Vec<T> {
        let mut left: Vec<usize> = (0..items.len()).collect();
        while left.len() > count {
            let at = self.below(left.len());
            left.remove(at);
        }
        left.into_iter().map(|i| items[i].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let mut a = Random::new(7);
        let mut b = Random::new(7);
        assert!((0..100).all(|_| a.below(1000) == b.below(1000)));
    }

    #[test]
    fn picks_by_weight() {
        let mut random = Random::new(1);
        assert!((0..100).all(|_| random.weighted(&[(0, 'a'), (3, 'b')]) == 'b'));
    }
}
