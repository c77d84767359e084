//! Generators of identifiers.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Generates identifiers.
pub trait Ids: Debug + Send + Sync {
    /// A new identifier with the version and variant bits of a random UUID (version 4).
    fn uuid(&self) -> u128;
}

/// Random identifiers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn uuid(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}

/// Identifiers from a seed: the same in every run.
#[derive(Debug)]
pub struct SeededIds(AtomicU64);

impl SeededIds {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// `SplitMix64`: yields each 64-bit number once before any repeats.
    fn next(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Ids for SeededIds {
    fn uuid(&self) -> u128 {
        let number = u128::from(self.next()) << 64 | u128::from(self.next());
        uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid().as_u128()
    }
}
