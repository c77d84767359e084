//! A fast hash function for names.
//!
//! Every instance looks up its nodes. Names come from the cluster's own configuration, so collision attacks
//! gain nothing.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`NameHasher`]s.
pub(crate) type Hashing = BuildHasherDefault<NameHasher>;

/// Multiplies and rotates eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.mix(u64::from_le_bytes(*chunk));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn finish(&self) -> u64 {
        // Hash tables use the low bits, but the multiplication mixes into the high bits.
        self.0 ^ (self.0 >> 32)
    }
}
