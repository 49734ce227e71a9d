//! Client authentication with a private key (`private_key_jwt`, RFC 7523): each request carries a short-lived signed
//! assertion, and no secret leaves this machine.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use haft_core::secret::Secret;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::error::OAuthError;

/// The lifetime of an assertion, in seconds.
const LIFETIME: i64 = 120;

/// The value of `client_assertion_type`.
pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Signs an assertion for one authorization server.
pub(super) fn assertion(key: &Secret, client: &str, audience: &str, now: i64) -> Result<Secret, OAuthError> {
    let key = Key::read(key.expose()).ok_or_else(|| {
        let message = "invalid `oauth.private_key`: expected an unencrypted PKCS #8 key in PEM format (`BEGIN PRIVATE \
                       KEY`): RSA with at least 2048 bits, P-256, P-384 or Ed25519";
        OAuthError::Configuration(message.to_owned())
    })?;
    let failed = || OAuthError::Configuration("failed to sign with `oauth.private_key`".to_owned());
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|_| failed())?;
    let header = json!({"alg": key.algorithm(), "typ": "JWT"});
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "jti": URL_SAFE_NO_PAD.encode(nonce),
        "iat": now, "exp": now + LIFETIME,
    });
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let signature = key.sign(signed.as_bytes()).ok_or_else(failed)?;
    Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

/// A signing key.
enum Key {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Key {
    fn read(pem: &str) -> Option<Self> {
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
        // A secret stored on one line may contain `\\n` for its line breaks.
        let body: String = body.replace("\\n", "").split_whitespace().collect();
        let der = STANDARD.decode(body).ok()?;
        let random = SystemRandom::new();
        let curve = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, &der, &random).ok();
        curve(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .map(Self::P256)
            .or_else(|| curve(&ECDSA_P384_SHA384_FIXED_SIGNING).map(Self::P384))
            .or_else(|| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok().map(Self::Ed25519))
            .or_else(|| RsaKeyPair::from_pkcs8(&der).ok().map(Self::Rsa))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::P256(key) | Self::P384(key) => Some(key.sign(&random, text).ok()?.as_ref().to_vec()),
            Self::Ed25519(key) => Some(key.sign(text).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey, VerificationAlgorithm,
    };
    use serde_json::Value;

    use super::*;

    fn pem(der: &[u8]) -> Secret {
        let body = STANDARD.encode(der);
        Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"))
    }

    fn check(key: &Secret, public: &[u8], algorithm: &'static dyn VerificationAlgorithm, name: &str) {
        let signed_assertion = assertion(key, "haft", "https://id.example", 1000).unwrap();
        let (signed, signature) = signed_assertion.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(algorithm, public).verify(signed.as_bytes(), &signature).unwrap();
        let read =
            |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        let (header, claims) = signed.split_once('.').unwrap();
        assert_eq!(read(header), json!({"alg": name, "typ": "JWT"}));
        let mut claims = read(claims);
        assert_eq!(claims["jti"].take().as_str().unwrap().len(), 22);
        let expected = json!({"iss": "haft", "sub": "haft", "aud": "https://id.example", "jti": null, "iat": 1000, "exp": 1120});
        assert_eq!(claims, expected);
        let other = assertion(key, "haft", "https://id.example", 1000).unwrap();
        assert_ne!(other.expose(), signed_assertion.expose(), "each is used once");
    }

    #[test]
    fn assertions_are_signed_by_the_key() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        check(&pem(der.as_ref()), pair.public_key().as_ref(), &ECDSA_P256_SHA256_FIXED, "ES256");
        let der = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
        check(&pem(der.as_ref()), pair.public_key().as_ref(), &ED25519, "EdDSA");
    }

    #[test]
    fn an_invalid_key_is_not_shown() {
        for text in ["", "hunter2", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"] {
            let error = assertion(&Secret::new(text.to_owned()), "haft", "x", 0).unwrap_err().to_string();
            assert!(error.contains("`oauth.private_key`") && !error.contains("hunter2"), "{error}");
        }
    }
}
