//! Access tokens of connected applications. They are not stored: a MAC shows that this installation has issued them, and
//! they name the grant whose rights they give.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::Timestamp;
use haft_core::id::TokenId;
use uuid::Uuid;

use crate::mac::{MAC_BYTES, MacKey};

/// What every access token starts with, so that scanners of leaked secrets find it.
pub const PREFIX: &str = "haft_at_";
const LABEL: &str = "access token";
/// The version of the format.
const VERSION: u8 = 1;
/// Version, grant, times of issue and expiry in seconds.
const PAYLOAD_BYTES: usize = 1 + 16 + 8 + 8;

/// What an access token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessToken {
    /// The grant whose rights it gives.
    pub grant: TokenId,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl AccessToken {
    /// Returns whether a bearer value claims to be an access token.
    pub fn is_claimed(value: &str) -> bool {
        value.starts_with(PREFIX)
    }

    /// Returns the value of the token.
    pub fn sign(&self, key: &MacKey) -> String {
        let mut bytes = Vec::with_capacity(PAYLOAD_BYTES + MAC_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(self.grant.0.as_bytes());
        bytes.extend_from_slice(&self.issued_at.as_second().to_be_bytes());
        bytes.extend_from_slice(&self.expires_at.as_second().to_be_bytes());
        let mac = key.sign(LABEL, &[&bytes]);
        bytes.extend_from_slice(&mac);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns what a value says that this installation has issued; `None` for any other value, and after its expiry.
    pub fn verify(value: &str, key: &MacKey, now: Timestamp) -> Option<Self> {
        let token = Self::read(value, key)?;
        (now < token.expires_at).then_some(token)
    }

    /// Returns what a value says that this installation has issued, even if it has expired.
    pub fn read(value: &str, key: &MacKey) -> Option<Self> {
        let text = value.strip_prefix(PREFIX)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (payload, mac) = bytes.split_at_checked(PAYLOAD_BYTES)?;
        if !key.verify(LABEL, &[payload], mac) {
            return None;
        }
        let (version, rest) = payload.split_first()?;
        let (grant, rest) = rest.split_first_chunk::<16>()?;
        let (issued, rest) = rest.split_first_chunk::<8>()?;
        let (expires, _) = rest.split_first_chunk::<8>()?;
        let at = |bytes: &[u8; 8]| Timestamp::from_second(i64::from_be_bytes(*bytes)).ok();
        (*version == VERSION).then_some(())?;
        Some(Self {
            grant: TokenId(Uuid::from_bytes(*grant)),
            issued_at: at(issued)?,
            expires_at: at(expires)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn only_values_of_this_installation_are_accepted_until_they_expire() {
        let key = MacKey::new(&[7; 32]);
        let token = AccessToken {
            grant: TokenId(Uuid::from_u128(5)),
            issued_at: at(1_000_000),
            expires_at: at(1_003_600),
        };
        let value = token.sign(&key);
        assert!(AccessToken::is_claimed(&value) && value.len() < 128, "{value}");
        assert_eq!(AccessToken::verify(&value, &key, at(1_003_599)), Some(token));
        assert_eq!(AccessToken::verify(&value, &key, at(1_003_600)), None, "expired");
        assert_eq!(AccessToken::read(&value, &key), Some(token));
        assert_eq!(AccessToken::verify(&value, &MacKey::new(&[8; 32]), at(1_000_000)), None);
        for position in [PREFIX.len(), PREFIX.len() + 20, value.len() - 2] {
            let mut changed = value.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(AccessToken::verify(&changed, &key, at(1_000_000)), None, "{changed}");
        }
        for other in ["", PREFIX, "haft_at_AAAA", "haft_rt_x", &value[PREFIX.len()..], &format!("{value}AA")]
        {
            assert_eq!(AccessToken::verify(other, &key, at(1_000_000)), None, "{other}");
        }
    }
}
