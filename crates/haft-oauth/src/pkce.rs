//! PKCE (RFC 7636), with `S256` only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The only method; `plain` would reveal the verifier.
pub const METHOD: &str = "S256";
/// The length of a challenge: a SHA-256 in base64url.
const CHALLENGE_LENGTH: usize = 43;

/// Returns whether a text can be a challenge.
pub fn is_challenge(text: &str) -> bool {
    text.len() == CHALLENGE_LENGTH && URL_SAFE_NO_PAD.decode(text).is_ok()
}

/// Returns whether a verifier has a challenge.
pub fn is_verifier_of(challenge: &str, verifier: &str) -> bool {
    let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(is_unreserved) {
        return false;
    }
    let own = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    own.as_bytes().ct_eq(challenge.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn a_verifier_has_one_challenge() {
        assert!(is_challenge(CHALLENGE) && is_verifier_of(CHALLENGE, VERIFIER));
        for verifier in
            ["", CHALLENGE, "short", &VERIFIER.to_lowercase(), &format!("{VERIFIER}="), &"a".repeat(129)]
        {
            assert!(!is_verifier_of(CHALLENGE, verifier), "{verifier}");
        }
        // The method `plain` is not accepted.
        assert!(!is_verifier_of(VERIFIER, VERIFIER));
    }

    #[test]
    fn challenges_are_hashes() {
        for text in [
            "",
            "abc",
            &format!("{CHALLENGE}="),
            &CHALLENGE[1..],
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM",
        ] {
            assert!(!is_challenge(text), "{text}");
        }
    }
}
