//! What the tests of this module share: a comparison and a tiny source of random numbers.

/// Panics unless `actual` is within `relative_tolerance` of `expected`.
pub(super) fn assert_close(actual: f64, expected: f64, relative_tolerance: f64) {
    let error = (actual - expected).abs();
    assert!(
        error <= relative_tolerance * expected.abs(),
        "{actual} is not within {relative_tolerance:e} of {expected}"
    );
}

/// SplitMix64: enough for brute-force checks, and the same on every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        low + (high - low) * (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}
