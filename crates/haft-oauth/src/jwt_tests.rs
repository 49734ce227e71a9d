//! Tokens that are valid, and every way in which they are not.

use haft_testkit::issuer::SigningKey;
use serde_json::json;

use super::*;

const NOW: i64 = 1_785_000_000;
const ISSUER: &str = "https://login.test";

fn claims() -> Value {
    json!({"iss": ISSUER, "sub": "ann", "aud": "haft", "exp": NOW + 300, "iat": NOW, "nonce": "n1"})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(name).map(drop).unwrap_or_default(),
        value => claims[name] = value,
    }
    claims
}

fn keys(keys: &[&SigningKey]) -> Jwks {
    let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
    Jwks::parse(json!({"keys": keys}).to_string().as_bytes()).unwrap()
}

fn id_token(token: &str, keys: &Jwks) -> Result<Claims, JwtError> {
    let purpose = Purpose::IdToken { client_id: "haft", nonce: "n1" };
    verify(token, keys, &Expected { issuer: ISSUER, purpose, now: NOW })
}

#[test]
fn tokens_of_every_kind_of_key_are_valid() {
    for (key, algorithms) in [
        (SigningKey::p256("a"), vec!["ES256"]),
        (SigningKey::ed25519("a"), vec!["EdDSA"]),
        (SigningKey::rsa("a"), vec!["RS256", "PS256"]),
    ] {
        for algorithm in algorithms {
            let token = key.sign(&json!({"alg": algorithm, "kid": "a"}), &claims());
            let known = keys(&[&key]);
            assert_eq!(id_token(&token, &known).unwrap()["sub"], "ann", "{algorithm}");
            assert!(is_jwt(&token) && unverified_issuer(&token).as_deref() == Some(ISSUER));
            let mut changed = token.clone();
            let last = if changed.ends_with('A') { "BB" } else { "AA" };
            changed.replace_range(changed.len() - 40..changed.len() - 38, last);
            assert!(id_token(&changed, &known).is_err(), "{algorithm}");
        }
    }
}

#[test]
fn neither_unsigned_tokens_nor_shared_secrets_are_accepted() {
    let key = SigningKey::rsa("a");
    let known = keys(&[&key]);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    for algorithm in ["none", "None", "HS256", "HS512", "", "RS1"] {
        // The signature of `HS256` is made with the public key, as text that everybody knows.
        let message = format!("{}.{}", part(&json!({"alg": algorithm, "kid": "a"})), part(&claims()));
        let signature = part(&key.jwk());
        for token in [format!("{message}."), format!("{message}.{signature}")] {
            assert_eq!(
                id_token(&token, &known),
                Err(JwtError::Algorithm(algorithm.to_owned())),
                "{algorithm}"
            );
        }
    }
    let algorithm_of_another_key = key.sign(&json!({"alg": "ES256", "kid": "a"}), &claims());
    assert!(matches!(id_token(&algorithm_of_another_key, &known), Err(JwtError::UnknownKey(_))));
}

#[test]
fn headers_are_checked() {
    let (key, other) = (SigningKey::p256("a"), SigningKey::p256("a"));
    let known = keys(&[&key]);
    let check = |header: Value, expected: JwtError| {
        assert_eq!(id_token(&key.sign(&header, &claims()), &known), Err(expected), "{header}");
    };
    check(json!({"alg": "ES256", "kid": "b"}), JwtError::UnknownKey("b".to_owned()));
    check(json!({"alg": "ES256", "kid": 7}), JwtError::Malformed);
    check(json!({"alg": 7}), JwtError::Malformed);
    check(json!({"kid": "a"}), JwtError::Malformed);
    check(json!({"alg": "ES256", "kid": "a", "crit": ["exp"]}), JwtError::Extension);
    for typ in ["at+jwt", "logout+jwt", "oauth-id-jag+jwt"] {
        check(json!({"alg": "ES256", "kid": "a", "typ": typ}), JwtError::Type(typ.to_owned()));
    }
    assert!(id_token(&key.sign(&json!({"alg": "ES256"}), &claims()), &known).is_ok(), "the only key");
    let two = keys(&[&key, &SigningKey::p256("b")]);
    let unnamed = key.sign(&json!({"alg": "ES256"}), &claims());
    assert_eq!(id_token(&unnamed, &two), Err(JwtError::UnknownKey(String::new())));
    assert_eq!(id_token(&other.token(&claims()), &known), Err(JwtError::Signature));
}

#[test]
fn claims_are_checked() {
    let key = SigningKey::ed25519("a");
    let known = keys(&[&key]);
    let check = |claims: Value, expected: Result<(), JwtError>| {
        assert_eq!(id_token(&key.token(&claims), &known).map(drop), expected, "{claims}");
    };
    check(with("iss", json!("https://other.test")), Err(JwtError::Issuer("https://other.test".to_owned())));
    check(with("iss", json!("https://login.test/")), Err(JwtError::Issuer("https://login.test/".to_owned())));
    check(with("iss", Value::Null), Err(JwtError::Claim("iss")));
    check(with("sub", Value::Null), Err(JwtError::Claim("sub")));
    check(with("sub", json!("")), Err(JwtError::Claim("sub")));
    check(with("sub", json!("x".repeat(256))), Err(JwtError::Claim("sub")));
    check(with("sub", json!("a\nb")), Err(JwtError::Claim("sub")));
    check(with("exp", Value::Null), Err(JwtError::Claim("exp")));
    check(with("exp", json!("soon")), Err(JwtError::Claim("exp")));
    check(with("exp", json!(1e300)), Err(JwtError::Claim("exp")));
    check(with("exp", json!(NOW - 59)), Ok(()));
    check(with("exp", json!(NOW - 60)), Err(JwtError::Expired));
    check(with("iat", json!(NOW + 60)), Ok(()));
    check(with("iat", json!(NOW + 61)), Err(JwtError::NotYetValid));
    check(with("iat", Value::Null), Err(JwtError::Claim("iat")));
    check(with("nbf", json!(NOW + 61)), Err(JwtError::NotYetValid));
    check(with("aud", json!("other")), Err(JwtError::Audience));
    check(with("aud", Value::Null), Err(JwtError::Claim("aud")));
    check(with("aud", json!(["haft", 7])), Err(JwtError::Claim("aud")));
    check(with("aud", json!(["haft"])), Ok(()));
    check(with("aud", json!(["haft", "other"])), Err(JwtError::AuthorizedParty));
    check(with("azp", json!("other")), Err(JwtError::AuthorizedParty));
    check(with("azp", json!("haft")), Ok(()));
    check(with("nonce", json!("n2")), Err(JwtError::Nonce));
    check(with("nonce", Value::Null), Err(JwtError::Nonce));
}

#[test]
fn a_token_serves_one_purpose() {
    let key = SigningKey::p256("a");
    let known = keys(&[&key]);
    let audiences = ["https://haft.test".to_owned()];
    let check = |header: Value, claims: Value, purpose: Purpose<'_>, expected: Result<(), JwtError>| {
        let token = key.sign(&header, &claims);
        let found = verify(&token, &known, &Expected { issuer: ISSUER, purpose, now: NOW });
        assert_eq!(found.map(drop), expected, "{header} {claims}");
    };
    let header = |typ: &str| json!({"alg": "ES256", "kid": "a", "typ": typ});
    let access = json!({"iss": ISSUER, "sub": "ann", "aud": "https://haft.test", "exp": NOW + 300});
    let bearer = Purpose::Bearer(&audiences);
    check(header("JWT"), access.clone(), bearer, Ok(()));
    check(header("application/at+jwt"), access.clone(), bearer, Ok(()));
    check(header("JWT"), claims(), bearer, Err(JwtError::IdToken));
    check(header("JWT"), with("nonce", Value::Null), bearer, Err(JwtError::Audience));
    check(header("JWT"), access.clone(), Purpose::Bearer(&[]), Err(JwtError::Audience));
    check(
        header("oauth-id-jag+jwt"),
        access.clone(),
        bearer,
        Err(JwtError::Type("oauth-id-jag+jwt".to_owned())),
    );
    let typed = Purpose::Typed { typ: "oauth-id-jag+jwt", audiences: &audiences };
    check(header("oauth-id-jag+jwt"), access.clone(), typed, Ok(()));
    check(header("JWT"), access.clone(), typed, Err(JwtError::Type("JWT".to_owned())));
    check(json!({"alg": "ES256", "kid": "a"}), access, typed, Err(JwtError::Type(String::new())));
}

#[test]
fn other_texts_are_no_tokens() {
    let known = keys(&[&SigningKey::p256("a")]);
    for text in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "haft_abc", "e30.e30.e30"] {
        assert!(id_token(text, &known).is_err(), "{text}");
        assert_eq!(unverified_issuer(text), None, "{text}");
    }
    for (text, expected) in
        [("a.b.c", true), ("a.b", false), ("a.b.", false), ("a.b.c d", false), ("a.b.c=", false)]
    {
        assert_eq!(is_jwt(text), expected, "{text}");
    }
    let long = format!("{}.b.c", "a".repeat(MAX_TOKEN_BYTES));
    assert!(!is_jwt(&long));
    assert_eq!(id_token(&long, &known), Err(JwtError::TooLong));
}

#[test]
fn key_sets_are_bounded_and_lenient() {
    use crate::jwks::{JwksError, MAX_JWKS_BYTES, MAX_KEYS};

    let key = SigningKey::p256("a").jwk();
    let with = |name: &str, value: &str| {
        let mut key = key.clone();
        key[name] = json!(value);
        key
    };
    let set = json!({"keys": [
        key, with("use", "enc"), with("alg", "HS256"), with("crv", "P-521"), with("kty", "oct"), with("x", "AA"),
        {"kty": "oct", "k": "c2VjcmV0"}, 7, {},
    ]});
    assert_eq!(Jwks::parse(set.to_string().as_bytes()).unwrap().len(), 1);
    let many = json!({"keys": vec![json!({}); MAX_KEYS + 1]});
    assert_eq!(Jwks::parse(many.to_string().as_bytes()).unwrap_err(), JwksError::TooManyKeys(MAX_KEYS + 1));
    for text in ["", "[]", "{}", "{\"keys\": {}}", "<html>"] {
        assert_eq!(Jwks::parse(text.as_bytes()).unwrap_err(), JwksError::Invalid, "{text}");
    }
    assert_eq!(Jwks::parse(&vec![b' '; MAX_JWKS_BYTES + 1]).unwrap_err(), JwksError::TooLarge);
}
