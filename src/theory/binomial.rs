//! Binomial probabilities that neither overflow nor underflow on the way.

/// P(X = `successes`) for X ~ Binomial(`trials`, `probability`).
///
/// The binomial coefficient alone overflows an `f64` near 1030 trials and the powers underflow long
/// before, so the product is formed as a sum of logarithms. `probability` is in [0, 1] and
/// `successes` at most `trials`.
pub(super) fn binomial_pmf(successes: u64, trials: u64, probability: f64) -> f64 {
    if probability <= 0.0 || probability >= 1.0 {
        // The logarithms below would give 0 * -inf.
        let certain = if probability <= 0.0 { 0 } else { trials };
        return if successes == certain { 1.0 } else { 0.0 };
    }
    let (hits, misses) = (successes as f64, (trials - successes) as f64);
    libm::exp(
        ln_factorial(trials as f64) - ln_factorial(hits) - ln_factorial(misses)
            + hits * libm::log(probability)
            + misses * libm::log1p(-probability),
    )
}

fn ln_factorial(n: f64) -> f64 {
    libm::lgamma(n + 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    #[test]
    fn small_cases_match_products() {
        assert_close(binomial_pmf(2, 4, 0.5), 6.0 / 16.0, 1e-14);
        assert_close(binomial_pmf(0, 3, 0.1), 0.729, 1e-14);
        assert_close(binomial_pmf(3, 3, 0.1), 0.001, 1e-13);
        assert_eq!(binomial_pmf(0, 0, 0.3), 1.0);
    }

    #[test]
    fn certain_outcomes_are_exact() {
        assert_eq!(binomial_pmf(0, 5, 0.0), 1.0);
        assert_eq!(binomial_pmf(1, 5, 0.0), 0.0);
        assert_eq!(binomial_pmf(5, 5, 1.0), 1.0);
        assert_eq!(binomial_pmf(4, 5, 1.0), 0.0);
    }

    #[test]
    fn sums_to_one_for_many_trials() {
        for probability in [1e-6, 0.03, 0.5, 0.97] {
            let sum: f64 = (0..=2000).map(|k| binomial_pmf(k, 2000, probability)).sum();
            assert_close(sum, 1.0, 1e-10);
        }
    }
}
