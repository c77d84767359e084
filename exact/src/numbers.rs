//! Random numbers from a seed.

/// A linear congruential generator: the same cases on every run.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Returns `true` with this probability, in percent.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}
