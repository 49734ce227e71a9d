//! Signatures of packages: Ed25519 over the content hash, in the file `toolset.sig`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::problem::Problem;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::files::{PackageFiles, SIGNATURE};
use crate::skill_folder;

/// The start of a private key as text; it tells people and secret scanners what it is.
const PRIVATE_PREFIX: &str = "haft-private-key-ed25519:";
/// The start of the signed message, so that a signature cannot be used for anything else.
const DOMAIN: &str = "haft toolset signature 1\n";
/// The format version of `toolset.sig`.
const FORMAT: &str = "1";
const ALGORITHM: &str = "ed25519";
/// The maximum size of `toolset.sig`, in bytes.
const MAX_TEXT: usize = 4096;

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text of a private key is malformed.
    #[error("not a private key; expected a line that starts with `{PRIVATE_PREFIX}`")]
    Private,
    /// The text of a public key is malformed.
    #[error("not a public key; expected 44 characters of base64")]
    Public,
    /// The system has no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

/// The public key of an author.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Parses base64.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyError::Public)?;
        bytes.try_into().map(Self).map_err(|_| KeyError::Public)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// The private key of an author.
pub struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

impl SigningKey {
    /// Generates a key.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(seed.as_mut_slice()).map_err(|_| KeyError::Random)?;
        Self::from_seed(seed)
    }

    /// Parses the text of [`Self::to_text`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let encoded = text.trim().strip_prefix(PRIVATE_PREFIX).ok_or(KeyError::Private)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| KeyError::Private)?);
        let seed = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::Private)?;
        Self::from_seed(Zeroizing::new(seed))
    }

    fn from_seed(seed: Zeroizing<[u8; 32]>) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).map_err(|_| KeyError::Private)?;
        Ok(Self { seed, pair })
    }

    /// Returns the secret text of the key, on one line.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PRIVATE_PREFIX}{}", STANDARD.encode(self.seed.as_slice())))
    }

    /// Returns the public key.
    pub fn public_key(&self) -> PublicKey {
        let mut bytes = [0; 32];
        // It always has this length.
        for (to, from) in bytes.iter_mut().zip(self.pair.public_key().as_ref()) {
            *to = *from;
        }
        PublicKey(bytes)
    }

    /// Signs a package: adds `toolset.sig`, or replaces it.
    pub fn sign(&self, files: &mut PackageFiles) -> Result<(), Problem> {
        let signature = self.pair.sign(message(files).as_bytes());
        let text = format!(
            "haft-signature: {FORMAT}\nalgorithm: {ALGORITHM}\npublic-key: {}\nsignature: {}\n",
            self.public_key(),
            STANDARD.encode(signature.as_ref()),
        );
        files.put_text(SIGNATURE, text)
    }
}

fn message(files: &PackageFiles) -> String {
    format!("{DOMAIN}{}\n", files.content_hash())
}

/// A public key that the installation trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// The name in the configuration.
    pub name: String,
    /// The key.
    pub key: PublicKey,
}

/// The state of the signature of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SignatureState {
    /// The package is not signed.
    Unsigned,
    /// It is signed by a trusted key.
    Trusted {
        /// The name of the key in the configuration.
        key_name: String,
        /// The public key.
        public_key: String,
    },
    /// The signature is valid, but its key is not trusted.
    UnknownKey {
        /// The public key.
        public_key: String,
    },
    /// The signature is malformed, or the files were changed after signing.
    Invalid {
        /// The reason.
        reason: String,
    },
}

impl SignatureState {
    /// Returns whether a trusted key signed exactly these files.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted { .. })
    }
}

/// Verifies the signature of a package.
pub fn verify(files: &PackageFiles, trusted: &[TrustedKey]) -> SignatureState {
    let Some(file) = files.get(SIGNATURE) else { return SignatureState::Unsigned };
    let invalid = |reason: &str| SignatureState::Invalid { reason: reason.to_owned() };
    let text = std::str::from_utf8(&file.bytes).ok().filter(|text| text.len() <= MAX_TEXT);
    let Some((key, signature)) = text.and_then(parse) else {
        return invalid("`toolset.sig` is malformed; sign the package again");
    };
    let public = UnparsedPublicKey::new(&ED25519, key.0);
    let signs = |files: &PackageFiles| public.verify(message(files).as_bytes(), &signature).is_ok();
    // What haft adds to a skill follows from the files that its author signed.
    if !signs(files) && !skill_folder::without_generated(files).is_some_and(|files| signs(&files)) {
        return invalid("the signature does not match: the files were changed after signing");
    }
    let public_key = key.to_string();
    match trusted.iter().find(|trusted| trusted.key == key) {
        Some(trusted) => SignatureState::Trusted { key_name: trusted.name.clone(), public_key },
        None => SignatureState::UnknownKey { public_key },
    }
}

/// Parses `toolset.sig`; `None` unless every line is there exactly once.
fn parse(text: &str) -> Option<(PublicKey, Vec<u8>)> {
    let mut lines = text.lines();
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(": ");
    let format = field("haft-signature")?;
    let algorithm = field("algorithm")?;
    let key = field("public-key")?;
    let signature = field("signature")?;
    if format != FORMAT || algorithm != ALGORITHM || lines.next().is_some() {
        return None;
    }
    Some((PublicKey::parse(key).ok()?, STANDARD.decode(signature).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> PackageFiles {
        let mut files = PackageFiles::new();
        files.put_text("toolset.yaml", "id: x\n").unwrap();
        files
    }

    #[test]
    fn a_signature_is_trusted_unknown_or_invalid() {
        let key = SigningKey::generate().unwrap();
        let trusted = [TrustedKey { name: "team".to_owned(), key: key.public_key() }];
        let mut files = package();
        assert_eq!(verify(&files, &trusted), SignatureState::Unsigned);
        key.sign(&mut files).unwrap();
        let public_key = key.public_key().to_string();
        let expected = SignatureState::Trusted { key_name: "team".to_owned(), public_key };
        assert_eq!(verify(&files, &trusted), expected);
        assert!(expected.is_trusted());
        assert!(matches!(verify(&files, &[]), SignatureState::UnknownKey { .. }));
        // Signing again replaces the signature.
        key.sign(&mut files).unwrap();
        assert_eq!(verify(&files, &trusted), expected);
        for (path, text) in [("toolset.yaml", "id: y\n"), ("extra.py", "")] {
            let mut changed = files.clone();
            changed.put_text(path, text).unwrap();
            assert!(matches!(verify(&changed, &trusted), SignatureState::Invalid { .. }), "{path}");
        }
    }

    #[test]
    fn a_signed_skill_stays_signed_when_it_is_installed() {
        let key = SigningKey::generate().unwrap();
        let mut files = PackageFiles::new();
        files.put_text("SKILL.md", "---\nname: a\ndescription: Does something\n---\nText\n").unwrap();
        files.put_text("scripts/x.sh", "echo 1\n").unwrap();
        key.sign(&mut files).unwrap();
        let installed = crate::package::Package::open(files).unwrap().files;
        assert!(installed.has("toolset.yaml"));
        assert!(matches!(verify(&installed, &[]), SignatureState::UnknownKey { .. }));
        for path in ["toolset.yaml", skill_folder::RUNNER, "scripts/x.sh", "other"] {
            let mut changed = installed.clone();
            changed.put_text(path, "x = 1\n").unwrap();
            assert!(matches!(verify(&changed, &[]), SignatureState::Invalid { .. }), "{path}");
        }
    }

    #[test]
    fn malformed_signatures_are_invalid() {
        let key = SigningKey::generate().unwrap();
        let mut files = package();
        key.sign(&mut files).unwrap();
        let good = files.text(SIGNATURE).unwrap().to_owned();
        let other = SigningKey::generate().unwrap().public_key().to_string();
        for bad in [
            String::new(),
            "x".repeat(5000),
            good.replace("haft-signature: 1", "haft-signature: 2"),
            good.replace("ed25519", "rsa"),
            good.replace(&key.public_key().to_string(), &other),
            good.replace(&key.public_key().to_string(), "AAAA"),
            format!("{good}more: 1\n"),
            good.lines().rev().collect::<Vec<_>>().join("\n"),
        ] {
            files.put_text(SIGNATURE, bad.as_str()).unwrap();
            assert!(matches!(verify(&files, &[]), SignatureState::Invalid { .. }), "{bad}");
        }
    }

    #[test]
    fn keys_round_trip_and_stay_secret() {
        let key = SigningKey::generate().unwrap();
        let text = key.to_text();
        assert_eq!(SigningKey::parse(&text).unwrap().public_key(), key.public_key());
        assert!(!format!("{key:?}").contains(text.strip_prefix(PRIVATE_PREFIX).unwrap()));
        assert_eq!(PublicKey::parse(&key.public_key().to_string()), Ok(key.public_key()));
        for bad in ["", "haft-private-key-ed25519:", "haft-private-key-ed25519:AAAA", "AAAA"] {
            assert_eq!(SigningKey::parse(bad).unwrap_err(), KeyError::Private);
            assert_eq!(PublicKey::parse(bad).unwrap_err(), KeyError::Public);
        }
    }
}
