//! Requests tokens.

use haft_core::secret::Secret;
use haft_core::{Clock as _, Timestamp};
use haft_executors::egress::Egress;
use haft_runtime::clock::SystemClock;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::assertion;
use super::client::Client;
use super::error::OAuthError;
use super::fetch::{PostRequest, display_url, post};

/// The longest lifetime of a token, in seconds.
const MAX_LIFETIME: i64 = 365 * 24 * 3600;

/// The grant of a token request.
pub(super) enum Grant<'a> {
    /// The code of a login.
    Code { code: &'a str, verifier: &'a Secret, redirect: &'a str },
    /// The code of a login on another device.
    DeviceCode(&'a Secret),
    /// A refresh token.
    Refresh(&'a Secret),
    /// The client itself, with an assertion signed by its key, if it has one.
    ClientCredentials(Option<Secret>),
}

/// A token request.
pub(super) struct TokenRequest<'a> {
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a Client,
    pub(super) resource: &'a str,
    pub(super) scope: Option<&'a str>,
}

/// The tokens of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// When to renew the access token, in seconds of Unix time; `None` where its lifetime is unknown.
    pub(super) renew_at: Option<i64>,
    pub(super) scope: Option<String>,
}

impl Tokens {
    pub(super) fn are_valid(&self) -> bool {
        self.renew_at.is_none_or(|at| now().as_second() < at)
    }
}

pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// Requests tokens.
pub(super) async fn request_tokens(
    egress: &Egress,
    request: TokenRequest<'_>,
    grant: Grant<'_>,
) -> Result<Tokens, OAuthError> {
    let response = post(egress, post_request(&request, &grant)).await?;
    parse(&response, now().as_second())
        .map_err(|why| OAuthError::Metadata(format!("{}: {why}", display_url(request.endpoint))))
}

fn post_request<'a>(request: &TokenRequest<'a>, grant: &Grant<'_>) -> PostRequest<'a> {
    let mut form = Serializer::new(String::new());
    let mut hidden: Vec<Secret> = request.client.secret.iter().cloned().collect();
    match grant {
        Grant::Code { code, verifier, redirect } => {
            form.append_pair("grant_type", "authorization_code")
                .append_pair("code", code)
                .append_pair("redirect_uri", redirect)
                .append_pair("code_verifier", verifier.expose());
            hidden.extend([Secret::new((*code).to_owned()), (*verifier).clone()]);
        }
        Grant::DeviceCode(code) => {
            form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
                .append_pair("device_code", code.expose());
            hidden.push((*code).clone());
        }
        Grant::Refresh(token) => {
            form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token.expose());
            hidden.push((*token).clone());
        }
        Grant::ClientCredentials(assertion) => {
            form.append_pair("grant_type", "client_credentials");
            if let Some(assertion) = assertion {
                form.append_pair("client_assertion_type", assertion::ASSERTION_TYPE)
                    .append_pair("client_assertion", assertion.expose());
                hidden.push(assertion.clone());
            }
        }
    }
    if !request.resource.is_empty() {
        form.append_pair("resource", request.resource);
    }
    if let Some(scope) = request.scope {
        form.append_pair("scope", scope);
    }
    let authorization = request.client.authenticate(&mut form);
    PostRequest {
        url: request.endpoint,
        content_type: "application/x-www-form-urlencoded",
        body: form.finish(),
        authorization,
        hidden,
    }
}

fn parse(response: &Value, now: i64) -> Result<Tokens, &'static str> {
    let text = |name| response.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let access = text("access_token").ok_or("the response has no `access_token`")?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("unsupported token type; expected `bearer`");
    }
    if access.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err("the token contains characters that are invalid in a header");
    }
    let lifetime = response.get("expires_in").and_then(|value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    });
    // Renewed early: by a tenth of the lifetime, at most a minute.
    let renew_at = lifetime.map(|lifetime: i64| {
        let lifetime = lifetime.clamp(0, MAX_LIFETIME);
        now + lifetime - (lifetime / 10).min(60)
    });
    Ok(Tokens {
        access: Secret::new(access.to_owned()),
        refresh: text("refresh_token").map(|token| Secret::new(token.to_owned())),
        renew_at,
        scope: text("scope").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_responses() {
        let check = |response: Value, expected: Result<(Option<&str>, Option<i64>), &'static str>| {
            let parsed = parse(&response, 1000);
            let parsed =
                parsed.map(|tokens| (tokens.refresh.map(|t| t.expose().to_owned()), tokens.renew_at));
            assert_eq!(parsed, expected.map(|(refresh, at)| (refresh.map(str::to_owned), at)), "{response}");
        };
        check(json!({"access_token": "a"}), Ok((None, None)));
        check(
            json!({"access_token": "a", "expires_in": 3600, "refresh_token": "r"}),
            Ok((Some("r"), Some(4540))),
        );
        check(
            json!({"access_token": "a", "expires_in": "100", "token_type": "BEARER"}),
            Ok((None, Some(1090))),
        );
        check(json!({"access_token": "a", "expires_in": -5, "refresh_token": ""}), Ok((None, Some(1000))));
        check(json!({"access_token": ""}), Err("the response has no `access_token`"));
        check(
            json!({"access_token": "a", "token_type": "mac"}),
            Err("unsupported token type; expected `bearer`"),
        );
        check(
            json!({"access_token": "a\nb"}),
            Err("the token contains characters that are invalid in a header"),
        );
    }
}
