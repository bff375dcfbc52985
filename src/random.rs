//! Keyed draws: every random number is a pure function of what it is for.
//!
//! A key is (seed, replication, class name, member, task ordinal); a draw is (key, purpose, index). There is no shared
//! stream, so a draw added in one place moves nothing elsewhere, and the same tasks meet every policy (*common random
//! numbers*). Draw n of a key is output n + 1 of the generator SplitMix64 (Steele, Lea, Flood 2014) seeded with the key,
//! reached in one jump; purposes are 2^40 outputs apart.

/// 2^64 ÷ the golden ratio: the step of SplitMix64.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a draw is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Time to the next arrival of a member.
    Arrival,
    /// A member's phase or offset.
    Phase,
    /// Lengths of on and off phases.
    OnOff,
    /// Pause before the next task of a closed loop.
    Think,
    /// Task duration.
    Duration,
    /// Which server class.
    ServerClass,
    /// Which server of the class.
    Server,
    /// How the task ends.
    End,
    /// Whether the task is aborted.
    AbortCoin,
    /// When.
    AbortTime,
    /// Delay of the creation.
    CreationDelay,
    /// Delay of a request on its way out; index: poll number.
    DelayOut,
    /// Delay of its answer; index: poll number.
    DelayBack,
    /// Service time; index: poll number.
    Service,
    /// Which part of a hint mixture; index: answer number.
    HintPart,
    /// The value of that part; index: answer number.
    HintValue,
    /// Jitter; index: poll number.
    Jitter,
    /// A server's times up and down.
    UpDown,
    /// Whether a request is lost; index: poll number.
    RequestLoss,
    /// Whether an answer is lost; index: poll number.
    AnswerLoss,
    /// `Retry-After`; index: poll number.
    RetryAfter,
    /// Jitter of a transport retry; index: poll number.
    Retry,
    /// Whether a task asks for input.
    InputCoin,
    /// When.
    InputTime,
    /// When its host answers.
    InputAnswer,
    /// Whether a notification comes; index: of what.
    NoticeCoin,
    /// How long it takes; index: of what.
    NoticeDelay,
    /// Time between the reconnects of a host.
    Reconnect,
    /// Spread of the first polls after a reconnect; index: its number.
    Spread,
    /// Which replications a resample has.
    Resample,
}

/// The finaliser of SplitMix64: a bijection of 64 bits that leaves none of them guessable from another.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The root of a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    /// The key of a run's replication.
    pub fn new(seed: u64, replication: u64) -> Self {
        Key(mix(
            mix(seed.wrapping_add(GAMMA)) ^ replication.wrapping_mul(GAMMA)
        ))
    }

    /// The key of a part: a class (by the hash of its name), a member of it, a task of that.
    #[inline]
    pub fn part(self, n: u64) -> Self {
        Key(mix(self.0 ^ mix(n.wrapping_add(GAMMA))))
    }

    /// 64 random bits for `purpose`, number `index` (below 2^40).
    #[inline]
    pub fn draw(self, purpose: Purpose, index: u64) -> u64 {
        let n = ((purpose as u64) << 40) + index + 1;
        mix(self.0.wrapping_add(n.wrapping_mul(GAMMA)))
    }
}

/// 64 bits as a uniform in (0, 1): the middles of 2^52 equal cells, so never 0 or 1.
#[inline]
pub fn unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    #[test]
    fn a_draw_is_a_jump_into_splitmix64() {
        let key = Key::new(42, 3).part(7);
        let mut stream = SplitMix64::from_seed(key.0.to_le_bytes());
        let first: Vec<u64> = (0..5).map(|_| stream.next_u64()).collect();
        let drawn: Vec<u64> = (0..5).map(|i| key.draw(Purpose::Arrival, i)).collect();
        assert_eq!(drawn, first);
    }

    #[test]
    fn units_lie_strictly_between_zero_and_one() {
        assert!(unit(0) > 0.0 && unit(u64::MAX) < 1.0);
    }

    #[test]
    fn neighbouring_keys_share_nothing() {
        let bits = |seed, replication, member, purpose, index| {
            Key::new(seed, replication)
                .part(member)
                .draw(purpose, index)
        };
        let mut drawn: Vec<u64> = Vec::new();
        for i in 0..4 {
            for purpose in [Purpose::Arrival, Purpose::Jitter] {
                drawn.extend([
                    bits(i, 0, 0, purpose, 0),
                    bits(9, i, 1, purpose, 0),
                    bits(9, 9, i + 2, purpose, 0),
                    bits(8, 8, 8, purpose, i),
                ]);
            }
        }
        let all = drawn.len();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), all);
    }
}
