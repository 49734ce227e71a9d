//! The public keys of an issuer (RFC 7517), and the signatures that they verify.
//!
//! Only asymmetric algorithms exist here, so a public key is never used as a secret, and a token without a signature is
//! never valid. Verification is that of `ring`; this crate signs nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// The largest document.
pub const MAX_JWKS_BYTES: usize = 1024 * 1024;
/// The most keys of a document.
pub const MAX_KEYS: usize = 100;
/// The longest number of an RSA key, in bytes: 8192 bits.
const MAX_NUMBER_BYTES: usize = 1024;

/// Why a document has no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// The document is too large.
    #[error("the key set has more than {MAX_JWKS_BYTES} bytes")]
    TooLarge,
    /// It has too many keys.
    #[error("the key set has {0} keys; the limit is {MAX_KEYS}")]
    TooManyKeys(usize),
    /// It is not a key set.
    #[error("not a JSON Web Key Set: expected an object with a list `keys`")]
    Invalid,
}

/// A signature algorithm. Neither `none` nor one with a shared secret is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PKCS #1 v1.5 and SHA-384.
    Rs384,
    /// RSA with PKCS #1 v1.5 and SHA-512.
    Rs512,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// RSA with PSS and SHA-384.
    Ps384,
    /// RSA with PSS and SHA-512.
    Ps512,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Rs256, "RS256"),
        (Self::Rs384, "RS384"),
        (Self::Rs512, "RS512"),
        (Self::Ps256, "PS256"),
        (Self::Ps384, "PS384"),
        (Self::Ps512, "PS512"),
        (Self::Es256, "ES256"),
        (Self::Es384, "ES384"),
        (Self::EdDsa, "EdDSA"),
    ];

    /// Parses the name of a header.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(algorithm, _)| algorithm)
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(algorithm, _)| *algorithm == self).map_or("", |(_, name)| name)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }
}

/// The keys of an issuer. Keys of other kinds or for other purposes are left out.
#[derive(Debug, Clone, Default)]
pub struct Jwks(Vec<Key>);

#[derive(Debug, Clone)]
struct Key {
    id: Option<String>,
    /// The only algorithm, if the document says so.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The members of a key that matter here.
#[derive(Deserialize)]
struct RawKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwks {
    /// Reads a document.
    pub fn parse(document: &[u8]) -> Result<Self, JwksError> {
        if document.len() > MAX_JWKS_BYTES {
            return Err(JwksError::TooLarge);
        }
        let value: Value = serde_json::from_slice(document).map_err(|_| JwksError::Invalid)?;
        let keys = value.get("keys").and_then(Value::as_array).ok_or(JwksError::Invalid)?;
        if keys.len() > MAX_KEYS {
            return Err(JwksError::TooManyKeys(keys.len()));
        }
        Ok(Self(keys.iter().filter_map(Key::parse).collect()))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a key may verify a signature with this header. Without `kid`, there must be only one such key.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<VerifyingKey<'_>> {
        let mut found = self
            .0
            .iter()
            .filter(|key| key.supports(algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id)));
        let key = found.next()?;
        if id.is_none() && found.next().is_some() {
            return None;
        }
        Some(VerifyingKey { key, algorithm })
    }
}

/// A key with the algorithm of a token.
pub(crate) struct VerifyingKey<'a> {
    key: &'a Key,
    algorithm: Algorithm,
}

impl VerifyingKey<'_> {
    /// Returns whether a signature is valid.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.key.material, self.algorithm.rsa()) {
            (Material::Rsa { modulus, exponent }, Some(parameters)) => {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signature)
            }
            (Material::P256(point), None) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::P384(point), None) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519(point), None) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            (Material::Rsa { .. }, None) | (_, Some(_)) => return false,
        };
        verified.is_ok()
    }
}

impl Key {
    /// Reads a key; `None` if it is not for signatures of a known kind.
    fn parse(value: &Value) -> Option<Self> {
        let raw = RawKey::deserialize(value).ok()?;
        let is_for_signatures = raw.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && raw.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|one| one == "verify"));
        if !is_for_signatures {
            return None;
        }
        let algorithm = match &raw.alg {
            Some(name) => Some(Algorithm::parse(name)?),
            None => None,
        };
        let material = match (raw.kty.as_str(), raw.crv.as_deref()) {
            ("RSA", _) => {
                Material::Rsa { modulus: number(raw.n.as_deref())?, exponent: number(raw.e.as_deref())? }
            }
            ("EC", Some("P-256")) => Material::P256(point(&raw, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(&raw, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(raw.x.as_deref()).filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(Self { id: raw.kid, algorithm, material })
    }

    fn supports(&self, algorithm: Algorithm) -> bool {
        let is_kind = match self.material {
            Material::Rsa { .. } => algorithm.rsa().is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_kind && self.algorithm.is_none_or(|own| own == algorithm)
    }
}

fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    // Some issuers pad.
    URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok()
}

/// Reads a number of an RSA key without leading zeros, which `ring` rejects.
fn number(text: Option<&str>) -> Option<Vec<u8>> {
    let bytes = bytes(text)?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    let number = bytes.get(start..)?.to_vec();
    (number.len() <= MAX_NUMBER_BYTES).then_some(number)
}

/// Reads an uncompressed point.
fn point(raw: &RawKey, size: usize) -> Option<Vec<u8>> {
    let (x, y) = (bytes(raw.x.as_deref())?, bytes(raw.y.as_deref())?);
    (x.len() == size && y.len() == size).then(|| [&[4], x.as_slice(), y.as_slice()].concat())
}
