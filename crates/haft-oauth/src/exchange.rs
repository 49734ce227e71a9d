//! Tokens of the person of a login for other services: refreshing the login, and exchanging its access token (RFC 8693) at
//! the issuer that issued it.

use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::oidc::{ProviderMetadata, TokenRequest, authenticate};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The longest lifetime of a token, in seconds.
const MAX_LIFETIME: i64 = 365 * 24 * 3600;

/// Who the token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// The name of the service at the issuer.
    Audience(&'a str),
    /// The URL of the service.
    Resource(&'a str),
}

/// What is requested.
pub enum Request<'a> {
    /// New tokens of the login.
    Refresh(&'a Secret),
    /// A token for another service.
    Exchange {
        /// The access token of the login.
        subject: &'a Secret,
        /// Who the token is for.
        target: Target<'a>,
        /// The scopes; without any, the issuer chooses.
        scopes: &'a [String],
    },
}

/// The tokens of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedTokens {
    /// The access token.
    pub access: Secret,
    /// The refresh token.
    pub refresh: Option<Secret>,
    /// When to renew the access token, in seconds; `None` if its lifetime is unknown.
    pub renew_at: Option<i64>,
}

impl Request<'_> {
    /// Returns the request of a client.
    pub fn form(
        &self,
        metadata: &ProviderMetadata,
        client_id: &str,
        client_secret: Option<&Secret>,
    ) -> TokenRequest {
        let mut form = Serializer::new(String::new());
        match self {
            Self::Refresh(token) => {
                form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token.expose());
            }
            Self::Exchange { subject, target, scopes } => {
                form.append_pair("grant_type", GRANT_TYPE)
                    .append_pair("subject_token", subject.expose())
                    .append_pair("subject_token_type", ACCESS_TOKEN)
                    .append_pair("requested_token_type", ACCESS_TOKEN);
                match target {
                    Target::Audience(audience) => form.append_pair("audience", audience),
                    Target::Resource(resource) => form.append_pair("resource", resource),
                };
                if !scopes.is_empty() {
                    form.append_pair("scope", &scopes.join(" "));
                }
            }
        }
        let authorization = authenticate(&mut form, metadata, client_id, client_secret);
        TokenRequest { form: form.finish(), authorization }
    }
}

impl IssuedTokens {
    /// Reads an answer; the error does not quote it.
    pub fn parse(document: &[u8], now: i64) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(document).map_err(|_| "expected a JSON object".to_owned())?;
        Self::read(&value, now)
    }

    /// Reads the members of an answer.
    pub(crate) fn read(value: &Value, now: i64) -> Result<Self, String> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_header = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
        let access = text("access_token").ok_or("the response has no `access_token`")?;
        if !is_header(&access) {
            return Err("the token contains characters that are invalid in a header".to_owned());
        }
        if let Some(kind) = text("token_type").filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(format!("unsupported token type `{}`; expected `Bearer`", excerpt(kind, 40)));
        }
        let lifetime = value.get("expires_in").and_then(Value::as_i64);
        Ok(Self {
            access: Secret::new(access.to_owned()),
            refresh: text("refresh_token").map(|token| Secret::new(token.to_owned())),
            // Renewed early: by a tenth of the lifetime, at most a minute.
            renew_at: lifetime.map(|lifetime| {
                let lifetime = lifetime.clamp(0, MAX_LIFETIME);
                now.saturating_add(lifetime - (lifetime / 10).min(60))
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> ProviderMetadata {
        let document = json!({
            "issuer": "https://a.test", "authorization_endpoint": "https://a.test/authorize",
            "token_endpoint": "https://a.test/token", "jwks_uri": "https://a.test/jwks",
        });
        ProviderMetadata::parse(document.to_string().as_bytes(), "https://a.test").unwrap()
    }

    #[test]
    fn requests() {
        let (subject, secret) = (Secret::new("s&1".to_owned()), Secret::new("pw".to_owned()));
        let scopes = ["a".to_owned(), "b".to_owned()];
        let exchange = |target, scopes| Request::Exchange { subject: &subject, target, scopes };
        let request = exchange(Target::Audience("crm"), &scopes).form(&metadata(), "haft", Some(&secret));
        assert_eq!(
            request.form,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=s%261\
             &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token\
             &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&audience=crm&scope=a+b"
        );
        assert!(request.authorization.is_some());
        let request = exchange(Target::Resource("https://c.test"), &[]).form(&metadata(), "haft", None);
        assert!(request.form.ends_with("&resource=https%3A%2F%2Fc.test&client_id=haft"), "{}", request.form);
        let request = Request::Refresh(&subject).form(&metadata(), "haft", None);
        assert_eq!(request.form, "grant_type=refresh_token&refresh_token=s%261&client_id=haft");
    }

    #[test]
    fn answers() {
        let parse = |value: Value| IssuedTokens::parse(value.to_string().as_bytes(), 1000);
        let tokens = parse(json!({"access_token": "a", "refresh_token": "r", "expires_in": 3600})).unwrap();
        assert_eq!((tokens.access.expose(), tokens.renew_at), ("a", Some(4540)));
        assert!(tokens.refresh.is_some() && parse(json!({"access_token": "a"})).unwrap().renew_at.is_none());
        for (value, expected) in [
            (json!({}), "the response has no `access_token`"),
            (json!({"access_token": "a\nb"}), "the token contains characters that are invalid in a header"),
            (
                json!({"access_token": "a", "token_type": "N_A"}),
                "unsupported token type `N_A`; expected `Bearer`",
            ),
            (json!(7), "the response has no `access_token`"),
        ] {
            assert_eq!(parse(value).unwrap_err(), expected);
        }
        assert!(IssuedTokens::parse(b"<html>", 0).is_err());
    }
}
