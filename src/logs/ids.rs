//! Ids are never kept, only hashed: SipHash-2-4 with a key made of a salt.
//!
//! SipHash is a keyed pseudo-random function (Aumasson, Bernstein, 2012): who does not know the salt learns nothing of an id from its
//! hash, and who does can find a task of a log in the results. Two of a million tasks share a hash with probability 3e-8.

use std::hash::{BuildHasher, RandomState};

use siphasher::sip::SipHasher24;
use siphasher::sip128::SipHasher24 as SipHasher24Wide;

/// Hashes ids with the key of a salt.
#[derive(Clone, Copy)]
pub struct Ids {
    key: [u8; 16],
}

impl Ids {
    /// The same ids have the same hashes wherever the salt is the same.
    pub fn salted(salt: &str) -> Self {
        let hash = SipHasher24Wide::new_with_key(b"pollpace fit key").hash(salt.as_bytes());
        Ids {
            key: hash.as_bytes(),
        }
    }

    /// A key that no one knows, from the system's randomness.
    pub fn random() -> Self {
        let random = RandomState::new();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&random.hash_one(0u8).to_le_bytes());
        key[8..].copy_from_slice(&random.hash_one(1u8).to_le_bytes());
        Ids { key }
    }

    /// The hash of `id`, which means something only within `scope`.
    #[inline]
    pub fn hash(&self, scope: u64, id: &[u8]) -> u64 {
        use std::hash::Hasher;
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&scope.to_le_bytes());
        hasher.write(id);
        hasher.finish()
    }

    /// What stands for a name in results: the first 40 bits of its hash.
    pub fn name(&self, kind: &str, name: &str) -> String {
        let hash = self.hash(u64::MAX, name.as_bytes());
        format!("{kind}-{:010x}", hash >> 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_salt_scope_and_id_and_on_nothing_else() {
        let hash = |salt: &str, scope, id: &str| Ids::salted(salt).hash(scope, id.as_bytes());
        assert_eq!(hash("s", 1, "a"), hash("s", 1, "a"));
        for (salt, scope, id) in [("t", 1, "a"), ("s", 2, "a"), ("s", 1, "b"), ("", 1, "a")] {
            assert_ne!(hash("s", 1, "a"), hash(salt, scope, id));
        }
        assert_ne!(Ids::random().hash(0, b"a"), Ids::random().hash(0, b"a"));
    }

    #[test]
    fn hashes_of_a_salt_are_pinned() {
        let ids = Ids::salted("pepper");
        assert_eq!(ids.hash(0, b"786512e2"), 4_042_823_651_540_351_549);
        assert_eq!(ids.name("tenant", "agents"), "tenant-32e0562c95");
    }
}
