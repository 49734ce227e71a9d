//! A login by a person with a code on any device (RFC 8628). What asks for its result is data, which the caller stores:
//! another node may go on with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_executors::egress::Egress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::auth::Auth;
use super::client::Client;
use super::error::OAuthError;
use super::fetch::{PostRequest, display_url, post};
use super::login_store::{Login, LoginStore, StoredLogin};
use super::token::{Grant, TokenRequest, request_tokens};

/// How often to ask if the server does not say (RFC 8628, section 3.2).
const DEFAULT_INTERVAL: u64 = 5;
/// The shortest and the longest time between two requests, in seconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=60;
/// The longest lifetime of a code, in seconds.
const MAX_LIFETIME: u64 = 30 * 60;
/// The longest code that a person enters, and the longest URL, in bytes.
const MAX_USER_CODE: usize = 100;
const MAX_URL: usize = 2000;

/// A login that has begun.
pub struct BegunDeviceLogin {
    /// The code that the person enters.
    pub user_code: String,
    /// Where the person enters it.
    pub verification_uri: Url,
    /// The same with the code in it.
    pub verification_uri_complete: Option<Url>,
    /// How often to ask for the result.
    pub interval: Duration,
    /// How long the code works.
    pub lifetime: Duration,
    /// What asks for the result; to be stored encrypted.
    pub data: Secret,
}

/// The result of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevicePoll {
    /// The person has not decided.
    Pending,
    /// The server wants to be asked less often.
    SlowDown,
    /// The tokens are stored; with the granted scope.
    Completed(Option<String>),
}

/// What asks for the result.
#[derive(Serialize, Deserialize)]
struct DeviceData {
    login: StoredLogin,
    device_code: String,
    scope: Option<String>,
}

/// Begins a login.
pub(super) async fn begin(auth: &Arc<Auth>) -> Result<BegunDeviceLogin, OAuthError> {
    let found = auth.discover().await?;
    let Some(endpoint) = &found.issuer.device_authorization_endpoint else {
        let message = "the authorization server has no device authorization endpoint";
        return Err(OAuthError::Metadata(message.to_owned()));
    };
    let Some(id) = &auth.config.client_id else {
        return Err(OAuthError::Configuration("missing `oauth.client_id`".to_owned()));
    };
    let client = Client::configured(id, auth.config.client_secret.as_ref(), &found.issuer);
    let mut scopes = auth.config.scopes.clone();
    if !scopes.is_empty() && found.issuer.has_offline_access {
        scopes.push("offline_access".to_owned());
        let mut seen = HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
    }
    let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
    let request = authorization_request(endpoint, &client, scope.as_deref());
    let answer = Answer::parse(&post(&auth.egress, request).await?)
        .map_err(|why| OAuthError::Metadata(format!("{}: {why}", display_url(endpoint))))?;
    let secret = client.secret.clone();
    let login = Login {
        server: auth.server.to_string(),
        resource: found.resource,
        issuer: found.issuer.name,
        token_endpoint: found.issuer.token_endpoint,
        client,
        registered: false,
        redirect: String::new(),
        tokens: None,
    };
    let data = DeviceData {
        login: login.stored(secret.as_ref()),
        device_code: answer.device_code.expose().to_owned(),
        scope,
    };
    let data = serde_json::to_string(&data).map_err(|error| OAuthError::Store(error.to_string()))?;
    Ok(BegunDeviceLogin {
        user_code: answer.user_code,
        verification_uri: answer.verification_uri,
        verification_uri_complete: answer.verification_uri_complete,
        interval: answer.interval,
        lifetime: answer.lifetime,
        data: Secret::new(data),
    })
}

fn authorization_request<'a>(endpoint: &'a Url, client: &Client, scope: Option<&str>) -> PostRequest<'a> {
    let mut form = Serializer::new(String::new());
    if let Some(scope) = scope {
        form.append_pair("scope", scope);
    }
    let authorization = client.authenticate(&mut form);
    PostRequest {
        url: endpoint,
        content_type: "application/x-www-form-urlencoded",
        body: form.finish(),
        authorization,
        hidden: client.secret.iter().cloned().collect(),
    }
}

/// Asks for the result of a login; stores its tokens.
pub(super) async fn poll(
    egress: &Egress,
    store: &LoginStore,
    data: &Secret,
) -> Result<DevicePoll, OAuthError> {
    let data: DeviceData = serde_json::from_str(data.expose()).map_err(|_| OAuthError::UnknownState)?;
    let mut login = Login::of(data.login).ok_or(OAuthError::UnknownState)?;
    let request = TokenRequest {
        endpoint: &login.token_endpoint,
        client: &login.client,
        resource: &login.resource,
        scope: None,
    };
    let code = Secret::new(data.device_code);
    let mut tokens = match request_tokens(egress, request, Grant::DeviceCode(&code)).await {
        Ok(tokens) => tokens,
        Err(OAuthError::Refused { status: 429, .. }) => return Ok(DevicePoll::SlowDown),
        Err(OAuthError::Refused { status: 400..500, why, .. }) => return decided(&why),
        Err(error) => return Err(error),
    };
    // Without a scope, the response grants the requested one (RFC 6749, section 5.1).
    tokens.scope = tokens.scope.or(data.scope);
    let scope = tokens.scope.clone();
    login.tokens = Some(tokens);
    let lease = store.begin().await?;
    store.end(lease, Some(&login)).await?;
    Ok(DevicePoll::Completed(scope))
}

/// Returns what an error of the token endpoint means.
fn decided(why: &str) -> Result<DevicePoll, OAuthError> {
    let code = why.split(':').next().unwrap_or_default();
    match code {
        "authorization_pending" => Ok(DevicePoll::Pending),
        "slow_down" => Ok(DevicePoll::SlowDown),
        "expired_token" => Err(OAuthError::Denied("the code has expired".to_owned())),
        "" => Err(OAuthError::Denied("the authorization server rejected the code".to_owned())),
        _ => Err(OAuthError::Denied(why.to_owned())),
    }
}

/// The answer of a device authorization endpoint.
#[derive(Debug)]
struct Answer {
    device_code: Secret,
    user_code: String,
    verification_uri: Url,
    verification_uri_complete: Option<Url>,
    interval: Duration,
    lifetime: Duration,
}

impl Answer {
    fn parse(value: &Value) -> Result<Self, String> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let required = |name: &str| text(name).ok_or_else(|| format!("the response has no `{name}`"));
        let seconds = |name: &str| value.get(name).and_then(Value::as_u64);
        let user_code = required("user_code")?;
        if user_code.len() > MAX_USER_CODE || user_code.chars().any(char::is_control) {
            return Err("invalid `user_code`".to_owned());
        }
        // Google called it `verification_url`.
        let page = text("verification_uri").or_else(|| text("verification_url"));
        let page = page.ok_or_else(|| "the response has no `verification_uri`".to_owned())?;
        let lifetime = seconds("expires_in").ok_or_else(|| "the response has no `expires_in`".to_owned())?;
        let interval = seconds("interval").unwrap_or(DEFAULT_INTERVAL);
        Ok(Self {
            device_code: Secret::new(required("device_code")?.to_owned()),
            user_code: user_code.to_owned(),
            verification_uri: url("verification_uri", page)?,
            verification_uri_complete: text("verification_uri_complete")
                .map(|text| url("verification_uri_complete", text))
                .transpose()?,
            interval: Duration::from_secs(interval.clamp(*INTERVALS.start(), *INTERVALS.end())),
            lifetime: Duration::from_secs(lifetime.min(MAX_LIFETIME)),
        })
    }
}

/// Parses the address of a page that a person opens.
fn url(name: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL);
    let url = url.filter(|url| matches!(url.scheme(), "https" | "http") && url.username().is_empty());
    url.ok_or_else(|| format!("invalid `{name}` `{}`: expected an `https` URL", excerpt(text, 100)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_bounded() {
        let parse = |change: Value| {
            let mut value = json!({
                "device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": "https://a.test/device", "expires_in": 900,
            });
            value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            Answer::parse(&value)
        };
        let plain = parse(json!({})).unwrap();
        assert_eq!((plain.interval, plain.lifetime), (Duration::from_secs(5), Duration::from_mins(15)));
        let bounded = parse(json!({"interval": 0, "expires_in": 1_000_000_000})).unwrap();
        assert_eq!((bounded.interval, bounded.lifetime), (Duration::from_secs(1), Duration::from_mins(30)));
        assert_eq!(parse(json!({"interval": 100_000})).unwrap().interval, Duration::from_mins(1));
        for (change, expected) in [
            (json!({"device_code": ""}), "the response has no `device_code`"),
            (json!({"user_code": 7}), "the response has no `user_code`"),
            (json!({"user_code": "a\u{7}b"}), "invalid `user_code`"),
            (json!({"user_code": "x".repeat(101)}), "invalid `user_code`"),
            (json!({"verification_uri": null}), "the response has no `verification_uri`"),
            (json!({"verification_uri": "javascript:alert(1)"}), "invalid `verification_uri`"),
            (json!({"verification_uri_complete": "file:///x"}), "invalid `verification_uri_complete`"),
            (json!({"expires_in": null}), "the response has no `expires_in`"),
        ] {
            let error = parse(change).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn errors_of_the_token_endpoint() {
        assert_eq!(decided("authorization_pending").unwrap(), DevicePoll::Pending);
        assert_eq!(decided("authorization_pending: wait").unwrap(), DevicePoll::Pending);
        assert_eq!(decided("slow_down").unwrap(), DevicePoll::SlowDown);
        for (why, expected) in [
            ("expired_token", "login denied: the code has expired"),
            ("access_denied: no", "login denied: access_denied: no"),
            ("", "login denied: the authorization server rejected the code"),
        ] {
            assert_eq!(decided(why).unwrap_err().to_string(), expected);
        }
    }
}
