//! Asking for tokens.

use haft_core::secret::Secret;
use haft_core::{Clock as _, Timestamp};
use haft_runtime::clock::SystemClock;
use haft_runtime::egress::Egress;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::assertion;
use super::client::Client;
use super::error::OAuthError;
use super::fetch::{Sent, send, shown};

/// The longest life of a token that is believed.
const MAX_LIFE: i64 = 365 * 24 * 3600;

/// What is handed in for a token.
pub(super) enum Grant<'a> {
    /// What a login gave.
    Code { code: &'a str, verifier: &'a Secret, redirect: &'a str },
    /// What an earlier token came with.
    Refresh(&'a Secret),
    /// Nothing but the client itself, with what its key signed, where it has one.
    ClientCredentials(Option<Secret>),
}

/// Where, as whom, and for what a token is asked for.
pub(super) struct Ask<'a> {
    pub(super) endpoint: &'a Url,
    pub(super) client: &'a Client,
    pub(super) resource: &'a str,
    pub(super) scope: Option<&'a str>,
}

/// Tokens that were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// When the next one is to be asked for, in seconds of Unix time; nothing where nobody said how long it is good.
    pub(super) renew_at: Option<i64>,
    pub(super) scope: Option<String>,
}

impl Tokens {
    pub(super) fn are_good(&self) -> bool {
        self.renew_at.is_none_or(|at| now().as_second() < at)
    }
}

pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

/// Asks for tokens.
pub(super) async fn ask(egress: &Egress, ask: Ask<'_>, grant: Grant<'_>) -> Result<Tokens, OAuthError> {
    let answer = send(egress, request(&ask, &grant)).await?;
    read(&answer, now().as_second())
        .map_err(|why| OAuthError::Metadata(format!("{}: {why}", shown(ask.endpoint))))
}

fn request<'a>(ask: &Ask<'a>, grant: &Grant<'_>) -> Sent<'a> {
    let mut form = Serializer::new(String::new());
    let mut hidden: Vec<Secret> = ask.client.secret.iter().cloned().collect();
    match grant {
        Grant::Code { code, verifier, redirect } => {
            form.append_pair("grant_type", "authorization_code")
                .append_pair("code", code)
                .append_pair("redirect_uri", redirect)
                .append_pair("code_verifier", verifier.expose());
            hidden.extend([Secret::new((*code).to_owned()), (*verifier).clone()]);
        }
        Grant::Refresh(token) => {
            form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token.expose());
            hidden.push((*token).clone());
        }
        Grant::ClientCredentials(assertion) => {
            form.append_pair("grant_type", "client_credentials");
            if let Some(assertion) = assertion {
                form.append_pair("client_assertion_type", assertion::KIND)
                    .append_pair("client_assertion", assertion.expose());
                hidden.push(assertion.clone());
            }
        }
    }
    form.append_pair("resource", ask.resource);
    if let Some(scope) = ask.scope {
        form.append_pair("scope", scope);
    }
    let authorization = ask.client.prove(&mut form);
    Sent {
        url: ask.endpoint,
        content_type: "application/x-www-form-urlencoded",
        body: form.finish(),
        authorization,
        hidden,
    }
}

fn read(answer: &Value, now: i64) -> Result<Tokens, &'static str> {
    let text = |name| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let access = text("access_token").ok_or("the answer has no `access_token`")?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token is no bearer token");
    }
    if access.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err("the token has characters that HTTP does not allow");
    }
    let life = answer.get("expires_in").and_then(|value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    });
    // A little before its end: a tenth of its life, at most a minute.
    let renew_at = life.map(|life: i64| {
        let life = life.clamp(0, MAX_LIFE);
        now + life - (life / 10).min(60)
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
    fn answers() {
        let check = |answer: Value, expected: Result<(Option<&str>, Option<i64>), &'static str>| {
            let read = read(&answer, 1000);
            let shown = read.map(|tokens| (tokens.refresh.map(|t| t.expose().to_owned()), tokens.renew_at));
            assert_eq!(shown, expected.map(|(refresh, at)| (refresh.map(str::to_owned), at)), "{answer}");
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
        check(json!({"access_token": ""}), Err("the answer has no `access_token`"));
        check(json!({"access_token": "a", "token_type": "mac"}), Err("the token is no bearer token"));
        check(json!({"access_token": "a\nb"}), Err("the token has characters that HTTP does not allow"));
    }
}
