//! Identity assertions as authorization grants (Identity Assertion JWT Authorization Grant, ID-JAG): an issuer states that
//! a client may act for a person at this server. Signature, issuer and times are verified before, as for every token.

use serde_json::Value;

use crate::jwt::{self, Claims, JwtError};

/// The grant type (RFC 7523).
pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The profile in the metadata of an authorization server that accepts such assertions.
pub const PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// The type in the header of an assertion.
pub const TYPE: &str = "oauth-id-jag+jwt";
/// The longest time from now to the end of an assertion, in seconds: used ones are stored until then.
const MAX_LIFETIME: i64 = 3600;
/// The longest id.
const MAX_ID_BYTES: usize = 255;
/// The most resources.
const MAX_RESOURCES: usize = 20;

/// What an assertion states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityAssertion {
    /// Its id (`jti`), unique at its issuer.
    pub id: String,
    /// When it expires, in seconds.
    pub expires_at: i64,
    /// The scope; `None` if the issuer leaves it to this server.
    pub scope: Option<String>,
    /// The resources that it is for; empty if the issuer leaves them to this server.
    pub resources: Vec<String>,
}

impl IdentityAssertion {
    /// Reads verified claims: the assertion must be for this server alone, and for this client.
    pub fn read(claims: &Claims, audience: &str, client_id: &str, now: i64) -> Result<Self, JwtError> {
        let named = match claims.get("aud") {
            Some(Value::String(named)) => Some(named.as_str()),
            Some(Value::Array(list)) => match list.as_slice() {
                [only] => only.as_str(),
                _ => None,
            },
            _ => None,
        };
        if named != Some(audience) {
            return Err(JwtError::Audience);
        }
        if claims.get("client_id").and_then(Value::as_str) != Some(client_id) {
            return Err(JwtError::Claim("client_id"));
        }
        let id = claims.get("jti").and_then(Value::as_str);
        let id = id.filter(|id| (1..=MAX_ID_BYTES).contains(&id.len())).ok_or(JwtError::Claim("jti"))?;
        jwt::time(claims, "iat")?.ok_or(JwtError::Claim("iat"))?;
        let expires_at = jwt::time(claims, "exp")?.ok_or(JwtError::Claim("exp"))?;
        if expires_at > now.saturating_add(MAX_LIFETIME) {
            return Err(JwtError::Claim("exp"));
        }
        // Permissions in a form that this server does not know must not become wider ones.
        if claims.contains_key("authorization_details") {
            return Err(JwtError::Claim("authorization_details"));
        }
        let scope = match claims.get("scope") {
            None => None,
            Some(scope) => Some(scope.as_str().ok_or(JwtError::Claim("scope"))?.to_owned()),
        };
        Ok(Self { id: id.to_owned(), expires_at, scope, resources: resources(claims)? })
    }
}

/// Returns the resources: one text, or a list.
fn resources(claims: &Claims) -> Result<Vec<String>, JwtError> {
    let texts = match claims.get("resource") {
        None => return Ok(Vec::new()),
        Some(Value::String(one)) => return Ok(vec![one.clone()]),
        Some(Value::Array(list)) if (1..=MAX_RESOURCES).contains(&list.len()) => list,
        Some(_) => return Err(JwtError::Claim("resource")),
    };
    let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().ok_or(JwtError::Claim("resource"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(change: &Value) -> Result<IdentityAssertion, JwtError> {
        let mut claims = json!({
            "aud": "https://haft.test", "client_id": "agent", "jti": "1", "iat": 1000, "exp": 1300,
        });
        let object = claims.as_object_mut().unwrap();
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                object.remove(name)
            } else {
                object.insert(name.clone(), value.clone())
            };
        }
        IdentityAssertion::read(object, "https://haft.test", "agent", 1000)
    }

    #[test]
    fn an_assertion_is_for_one_server_and_one_client() {
        let plain = read(&json!({})).unwrap();
        assert_eq!(
            (plain.id.as_str(), plain.expires_at, plain.scope, plain.resources.len()),
            ("1", 1300, None, 0)
        );
        let full = json!({"aud": ["https://haft.test"], "scope": "haft:read", "resource": ["a", "b"]});
        let full = read(&full).unwrap();
        assert_eq!(
            (full.scope.as_deref(), full.resources),
            (Some("haft:read"), vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(read(&json!({"resource": "a"})).unwrap().resources, ["a"]);
        for (change, expected) in [
            (json!({"aud": "https://haft.test/"}), JwtError::Audience),
            (json!({"aud": ["https://haft.test", "https://other.test"]}), JwtError::Audience),
            (json!({"aud": []}), JwtError::Audience),
            (json!({"client_id": "other"}), JwtError::Claim("client_id")),
            (json!({"client_id": null}), JwtError::Claim("client_id")),
            (json!({"client_id": ["agent"]}), JwtError::Claim("client_id")),
            (json!({"jti": null}), JwtError::Claim("jti")),
            (json!({"jti": ""}), JwtError::Claim("jti")),
            (json!({"jti": "x".repeat(256)}), JwtError::Claim("jti")),
            (json!({"iat": null}), JwtError::Claim("iat")),
            (json!({"exp": 4601}), JwtError::Claim("exp")),
            (json!({"scope": ["haft:read"]}), JwtError::Claim("scope")),
            (json!({"resource": []}), JwtError::Claim("resource")),
            (json!({"resource": [1]}), JwtError::Claim("resource")),
            (json!({"authorization_details": []}), JwtError::Claim("authorization_details")),
        ] {
            assert_eq!(read(&change), Err(expected), "{change}");
        }
    }
}
