//! XChaCha20-Poly1305 with a random nonce; tenant and name are authenticated with the value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use haft_core::secret::Secret;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;

/// Why a credential could not be encrypted or decrypted; never contains its value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CipherError {
    #[error("the key does not match")]
    WrongKey,
    #[error("no random numbers available: {0}")]
    Randomness(getrandom::Error),
    #[error("encryption failed")]
    Seal,
}

/// The cipher with its key.
#[derive(Clone)]
pub(crate) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(key.into()))
    }

    pub(crate) fn seal(&self, tenant: &str, name: &str, value: &Secret) -> Result<String, CipherError> {
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(CipherError::Randomness)?;
        let aad = associated_data(tenant, name);
        let payload = Payload { msg: value.expose().as_bytes(), aad: aad.as_bytes() };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).map_err(|_| CipherError::Seal)?;
        Ok(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    pub(crate) fn open(&self, tenant: &str, name: &str, sealed: &str) -> Result<Secret, CipherError> {
        let bytes = STANDARD.decode(sealed).map_err(|_| CipherError::WrongKey)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(CipherError::WrongKey)?;
        let aad = associated_data(tenant, name);
        let payload = Payload { msg: sealed, aad: aad.as_bytes() };
        let plain = Zeroizing::new(
            self.0.decrypt(&XNonce::from(*nonce), payload).map_err(|_| CipherError::WrongKey)?,
        );
        let text = std::str::from_utf8(&plain).map_err(|_| CipherError::WrongKey)?;
        Ok(Secret::new(text.to_owned()))
    }
}

/// Returns the associated data, which binds a value to its tenant and name.
fn associated_data(tenant: &str, name: &str) -> String {
    format!("{tenant}\n{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decryption_needs_the_same_key_tenant_and_name() {
        let (one, two) = (Cipher::new(&[1; 32]), Cipher::new(&[2; 32]));
        let value = Secret::new("hunter2".into());
        let sealed = one.seal("default", "TOKEN", &value).unwrap();
        assert!(!sealed.contains("hunter2"));
        assert_ne!(sealed, one.seal("default", "TOKEN", &value).unwrap());
        assert_eq!(one.open("default", "TOKEN", &sealed).unwrap(), value);
        assert!(two.open("default", "TOKEN", &sealed).is_err());
        assert!(one.open("other", "TOKEN", &sealed).is_err());
        assert!(one.open("default", "OTHER", &sealed).is_err());
        assert!(one.open("default", "TOKEN", "AAAA").is_err());
    }
}
