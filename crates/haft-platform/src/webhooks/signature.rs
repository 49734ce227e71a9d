//! Signatures in the form of Standard Webhooks (<https://www.standardwebhooks.com>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The start of a secret; the key follows in base64.
const PREFIX: &str = "whsec_";
/// The length of a generated key, in bytes.
const KEY_BYTES: usize = 32;
/// The allowed lengths of a key, in bytes.
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// A signing secret whose form was checked.
#[derive(Debug, Clone)]
pub struct SigningSecret(Secret);

/// The secret does not have the required form.
#[derive(Debug, thiserror::Error)]
#[error("expected `whsec_` and 24 to 64 bytes in base64, as `openssl rand -base64 32` prints them")]
pub struct InvalidSecret;

impl SigningSecret {
    /// Generates a secret of 256 random bits.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; KEY_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Secret::new(format!("{PREFIX}{}", STANDARD.encode(bytes)))))
    }

    /// Checks a secret that a client chose.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let secret = Self(Secret::new(text.to_owned()));
        match secret.key() {
            Some(key) if KEY_LENGTHS.contains(&key.len()) => Ok(secret),
            _ => Err(InvalidSecret),
        }
    }

    /// Returns a secret from the store.
    pub(super) fn stored(secret: Secret) -> Self {
        Self(secret)
    }

    /// Returns the secret, for its owner.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    fn key(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.0.expose().strip_prefix(PREFIX)?).ok()
    }

    /// Returns the value of the header `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &str) -> Option<String> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key()?).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        // The example of the specification's reference libraries.
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn secrets_have_a_prefix_and_enough_bytes() {
        let generated = SigningSecret::generate().unwrap();
        assert!(SigningSecret::parse(generated.secret().expose()).is_ok());
        for invalid in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64!"] {
            assert!(SigningSecret::parse(invalid).is_err(), "{invalid}");
        }
    }
}
