//! Reproducible pseudorandom numbers for randomized searches.

/// Pseudorandom sequence determined by its seed (Steele, Lea and Flood's `SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number drawn from the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -natural_logarithm(1.0 - self.unit())
    }
}

/// Natural logarithm of a positive number to about ten digits.
///
/// The standard library's result differs between machines in the last bit, and so would a search that used
/// it.
fn natural_logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(x.to_bits() & MANTISSA | ONE);
    // Series of the inverse hyperbolic tangent, starting with its last term.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let series = (0..=9).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    2.0 * z * series + exponent as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_standard_library_but_for_their_last_digits() {
        for x in [1e-300, 1e-9, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 3.0, 1e12] {
            assert!((natural_logarithm(x) - f64::ln(x)).abs() < 1e-9 * (1.0 + f64::ln(x).abs()), "{x}");
        }
    }

    #[test]
    fn the_exponential_distribution_has_the_mean_1() {
        let mut dice = Dice(1);
        let mean = (0..10_000).map(|_| dice.exponential()).sum::<f64>() / 10_000.0;
        assert!((0.97..1.03).contains(&mean), "{mean}");
    }
}
