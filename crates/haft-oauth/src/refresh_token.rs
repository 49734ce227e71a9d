//! Refresh tokens. Each use replaces the value by its successor, which follows from the value itself: two nodes that
//! get the same value at the same moment answer with the same successor. Only hashes of values are stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::secret::Secret;
use uuid::Uuid;

use crate::mac::{MAC_BYTES, MacKey};

/// What every refresh token starts with.
pub const PREFIX: &str = "haft_rt_";
const LABEL: &str = "refresh token";
const SUCCESSOR: &str = "successor of a refresh token";
/// The bytes that nobody can guess.
const RANDOM_BYTES: usize = 32;

/// A refresh token that this installation has issued.
#[derive(Clone)]
pub struct RefreshToken {
    /// The grant that it belongs to.
    pub grant: TokenId,
    random: [u8; RANDOM_BYTES],
}

impl RefreshToken {
    /// Creates the first one of a grant, from random bytes.
    pub fn new(grant: TokenId, random: [u8; RANDOM_BYTES]) -> Self {
        Self { grant, random }
    }

    /// Reads a value; `None` if this installation has not issued it. So a value that is no longer in use was stolen or
    /// is an old one: nobody can invent it.
    pub fn read(value: &str, key: &MacKey) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(value.strip_prefix(PREFIX)?).ok()?;
        let (grant, rest) = bytes.split_first_chunk::<16>()?;
        let (random, mac) = rest.split_first_chunk::<RANDOM_BYTES>()?;
        key.verify(LABEL, &[grant, random], mac)
            .then(|| Self { grant: TokenId(Uuid::from_bytes(*grant)), random: *random })
    }

    /// Returns the value.
    pub fn value(&self, key: &MacKey) -> Secret {
        let grant = self.grant.0.as_bytes();
        let mut bytes = Vec::with_capacity(16 + RANDOM_BYTES + MAC_BYTES);
        bytes.extend_from_slice(grant);
        bytes.extend_from_slice(&self.random);
        bytes.extend_from_slice(&key.sign(LABEL, &[grant, &self.random]));
        Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the one that replaces it.
    #[must_use]
    pub fn successor(&self, key: &MacKey) -> Self {
        Self { grant: self.grant, random: key.sign(SUCCESSOR, &[self.grant.0.as_bytes(), &self.random]) }
    }

    /// Returns what is stored of it.
    pub fn hash(&self) -> String {
        hash::of_bytes(&self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors_are_the_same_on_every_node_and_never_repeat() {
        let key = MacKey::new(&[7; 32]);
        let first = RefreshToken::new(TokenId(Uuid::from_u128(5)), [1; 32]);
        let value = first.value(&key);
        let read = RefreshToken::read(value.expose(), &key).unwrap();
        assert_eq!((read.grant, read.hash()), (first.grant, first.hash()));
        let (one, other) = (read.successor(&key), first.successor(&key));
        assert_eq!(one.value(&key).expose(), other.value(&key).expose());
        let hashes = [first.hash(), one.hash(), one.successor(&key).hash()];
        assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
    }

    #[test]
    fn values_that_were_not_issued_are_rejected() {
        let key = MacKey::new(&[7; 32]);
        let value = RefreshToken::new(TokenId(Uuid::from_u128(5)), [1; 32]).value(&key);
        let value = value.expose();
        assert!(RefreshToken::read(value, &MacKey::new(&[8; 32])).is_none());
        for other in
            ["", PREFIX, &value[..value.len() - 2], &format!("{value}AA"), &value.replace("_rt_", "_at_")]
        {
            assert!(RefreshToken::read(other, &key).is_none(), "{other}");
        }
    }
}
