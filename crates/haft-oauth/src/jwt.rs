//! Signed tokens of an issuer (RFC 7519): verified with its keys, then checked for whom, by whom and until when they are.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::problem::excerpt;
use serde_json::{Map, Value};

use crate::jwks::{Algorithm, Jwks};

/// The longest token.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// How far the clocks of issuer and server may differ, in seconds.
const LEEWAY: i64 = 60;
/// The longest subject, as OpenID Connect has it.
const MAX_SUBJECT_BYTES: usize = 255;

/// The event of a back-channel logout.
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The claims of a verified token.
pub type Claims = Map<String, Value>;

/// Why a token is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// The token is too long.
    #[error("the token has more than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// It is not a signed JSON Web Token.
    #[error("not a signed JSON Web Token")]
    Malformed,
    /// The algorithm is not supported.
    #[error("the algorithm `{0}` is not supported")]
    Algorithm(String),
    /// The header requires an extension.
    #[error("the header requires an extension (`crit`), and none is supported")]
    Extension,
    /// The token is of another type.
    #[error("the token is of type `{0}`, which is not accepted here")]
    Type(String),
    /// The issuer has no such key. It may be newer than the known ones.
    #[error("the issuer has no key `{0}` for the algorithm of the token")]
    UnknownKey(String),
    /// The signature is invalid.
    #[error("the signature is invalid")]
    Signature,
    /// A claim is missing.
    #[error("the claim `{0}` is missing or invalid")]
    Claim(&'static str),
    /// Another issuer issued it.
    #[error("the issuer of the token is `{0}`")]
    Issuer(String),
    /// It is for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// It was issued to another client.
    #[error("the token was issued to another client (`azp`)")]
    AuthorizedParty,
    /// It belongs to another login.
    #[error("the token belongs to another login (`nonce`)")]
    Nonce,
    /// It is an ID token, which authenticates a login and gives no access.
    #[error("an ID token is not a bearer token")]
    IdToken,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not valid yet.
    #[error("the token is not valid yet")]
    NotYetValid,
}

/// What a token is for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose<'a> {
    /// The answer to a login of this client, with this nonce.
    IdToken {
        /// The client.
        client_id: &'a str,
        /// The nonce of the login.
        nonce: &'a str,
    },
    /// A bearer token for one of these audiences.
    Bearer(&'a [String]),
    /// A request of the issuer to end the sessions of a subject (back-channel logout), for this client.
    Logout {
        /// The client.
        client_id: &'a str,
    },
    /// A token of another type, such as `oauth-id-jag+jwt`, for one of these audiences.
    Typed {
        /// The type of the header.
        typ: &'a str,
        /// The audiences.
        audiences: &'a [String],
    },
}

/// What a token must be.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The issuer.
    pub issuer: &'a str,
    /// What it is for.
    pub purpose: Purpose<'a>,
    /// The time, in seconds.
    pub now: i64,
}

/// Returns whether a text has the form of a signed token: three parts with dots between them.
pub fn is_jwt(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    text.len() <= MAX_TOKEN_BYTES && text.split('.').count() == 3 && text.split('.').all(is_part)
}

/// Returns the issuer that a token names. Nothing is verified: it only selects the keys.
pub fn unverified_issuer(token: &str) -> Option<String> {
    let parts = Parts::split(token).ok()?;
    Some(object(parts.payload).ok()?.get("iss")?.as_str()?.to_owned())
}

/// Verifies a token; returns its claims.
pub fn verify(token: &str, keys: &Jwks, expected: &Expected<'_>) -> Result<Claims, JwtError> {
    let parts = Parts::split(token)?;
    let header = object(parts.header)?;
    let name = header.get("alg").and_then(Value::as_str).ok_or(JwtError::Malformed)?;
    let algorithm = Algorithm::parse(name).ok_or_else(|| JwtError::Algorithm(excerpt(name, 40)))?;
    if header.contains_key("crit") {
        return Err(JwtError::Extension);
    }
    check_type(header.get("typ"), &expected.purpose)?;
    let id = match header.get("kid") {
        None => None,
        Some(id) => Some(id.as_str().ok_or(JwtError::Malformed)?),
    };
    let unknown = || JwtError::UnknownKey(excerpt(id.unwrap_or_default(), 80));
    let key = keys.find(id, algorithm).ok_or_else(unknown)?;
    let signature = decode(parts.signature)?;
    if !key.verifies(parts.signed.as_bytes(), &signature) {
        return Err(JwtError::Signature);
    }
    let claims = object(parts.payload)?;
    check_claims(&claims, expected)?;
    Ok(claims)
}

/// The parts of a token.
struct Parts<'a> {
    header: &'a str,
    payload: &'a str,
    signature: &'a str,
    /// Header and payload, which the signature covers.
    signed: &'a str,
}

impl<'a> Parts<'a> {
    fn split(token: &'a str) -> Result<Self, JwtError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwtError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwtError::Malformed)?;
        if payload.contains('.') {
            return Err(JwtError::Malformed);
        }
        Ok(Self { header, payload, signature, signed })
    }
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Malformed)
}

fn object(part: &str) -> Result<Claims, JwtError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| JwtError::Malformed)
}

/// Checks the type of the header, so that a token for one purpose is not used for another.
fn check_type(typ: Option<&Value>, purpose: &Purpose<'_>) -> Result<(), JwtError> {
    let text = typ.map(|typ| typ.as_str().ok_or(JwtError::Malformed)).transpose()?;
    let lower = text.unwrap_or_default().to_ascii_lowercase();
    let plain = lower.strip_prefix("application/").unwrap_or(&lower);
    let is_accepted = match purpose {
        Purpose::IdToken { .. } => matches!(plain, "" | "jwt"),
        Purpose::Bearer(_) => matches!(plain, "" | "jwt" | "at+jwt"),
        // Some issuers do not set the type; the claim `events` tells such tokens from others.
        Purpose::Logout { .. } => matches!(plain, "" | "jwt" | "logout+jwt"),
        Purpose::Typed { typ, .. } => plain == typ.to_ascii_lowercase(),
    };
    if is_accepted { Ok(()) } else { Err(JwtError::Type(excerpt(text.unwrap_or_default(), 60))) }
}

fn check_claims(claims: &Claims, expected: &Expected<'_>) -> Result<(), JwtError> {
    let issuer = text(claims, "iss").ok_or(JwtError::Claim("iss"))?;
    if issuer != expected.issuer {
        return Err(JwtError::Issuer(excerpt(issuer, 200)));
    }
    let is_subject = |subject: &str| {
        (1..=MAX_SUBJECT_BYTES).contains(&subject.len()) && !subject.chars().any(char::is_control)
    };
    match (claims.get("sub"), &expected.purpose) {
        // It names a session (`sid`) instead of a subject.
        (None, Purpose::Logout { .. }) if session(claims).is_some() => {}
        (subject, _) => {
            let subject = subject.and_then(Value::as_str).filter(|subject| is_subject(subject));
            subject.ok_or(JwtError::Claim("sub"))?;
        }
    }
    let expires = time(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
    if expires.saturating_add(LEEWAY) <= expected.now {
        return Err(JwtError::Expired);
    }
    let issued = time(claims, "iat")?;
    let begins = [time(claims, "nbf")?, issued];
    if begins.into_iter().flatten().any(|at| at.saturating_sub(LEEWAY) > expected.now) {
        return Err(JwtError::NotYetValid);
    }
    let audiences = audiences(claims)?;
    match expected.purpose {
        Purpose::IdToken { client_id, nonce } => {
            issued.ok_or(JwtError::Claim("iat"))?;
            if !audiences.contains(&client_id) {
                return Err(JwtError::Audience);
            }
            match claims.get("azp") {
                Some(party) if party.as_str() != Some(client_id) => return Err(JwtError::AuthorizedParty),
                None if audiences.len() > 1 => return Err(JwtError::AuthorizedParty),
                Some(_) | None => {}
            }
            if text(claims, "nonce") != Some(nonce) {
                return Err(JwtError::Nonce);
            }
        }
        Purpose::Bearer(accepted) => {
            if claims.contains_key("nonce") {
                return Err(JwtError::IdToken);
            }
            check_audience(&audiences, accepted)?;
        }
        Purpose::Logout { client_id } => {
            if claims.contains_key("nonce") {
                return Err(JwtError::IdToken);
            }
            if !audiences.contains(&client_id) {
                return Err(JwtError::Audience);
            }
            if !claims
                .get("events")
                .is_some_and(|events| events.get(LOGOUT_EVENT).is_some_and(Value::is_object))
            {
                return Err(JwtError::Claim("events"));
            }
            issued.ok_or(JwtError::Claim("iat"))?;
        }
        Purpose::Typed { audiences: accepted, .. } => check_audience(&audiences, accepted)?,
    }
    Ok(())
}

fn check_audience(audiences: &[&str], accepted: &[String]) -> Result<(), JwtError> {
    let is_accepted = audiences.iter().any(|audience| accepted.iter().any(|one| one == audience));
    if is_accepted { Ok(()) } else { Err(JwtError::Audience) }
}

/// Returns what the issuer calls the session of a login (`sid`).
pub fn session(claims: &Claims) -> Option<&str> {
    text(claims, "sid").filter(|session| (1..=MAX_SUBJECT_BYTES).contains(&session.len()))
}

fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str()
}

/// Returns the audiences: one text, or a list.
fn audiences(claims: &Claims) -> Result<Vec<&str>, JwtError> {
    match claims.get("aud") {
        Some(Value::String(audience)) => Ok(vec![audience]),
        Some(Value::Array(list)) => {
            list.iter().map(Value::as_str).collect::<Option<_>>().ok_or(JwtError::Claim("aud"))
        }
        _ => Err(JwtError::Claim("aud")),
    }
}

/// Returns a time in seconds; fractions are dropped.
#[expect(clippy::cast_possible_truncation, reason = "checked before")]
pub fn time(claims: &Claims, name: &'static str) -> Result<Option<i64>, JwtError> {
    // The year 5138; beyond it, nothing is a time in seconds.
    const LATEST: f64 = 1e11;
    match claims.get(name) {
        None => Ok(None),
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| (0.0..LATEST).contains(seconds));
            seconds.map(|seconds| Some(seconds as i64)).ok_or(JwtError::Claim(name))
        }
    }
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
