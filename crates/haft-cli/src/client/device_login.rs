//! The login of a command line that a person approves in a browser (RFC 8628). Its requests need no token.

use std::time::Duration;

use haft_core::secret::Secret;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::Serializer;

use super::connect::http_client;
use super::transport::{USER_AGENT_VALUE, read_response};
use crate::error::{ApiError, CliError};

const CLIENT: &str = "haft-cli";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest response.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// The longest code that a person has to compare.
const MAX_USER_CODE_LENGTH: usize = 32;
/// How much longer the client waits after `slow_down` (RFC 8628, section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The bounds of what the server says about times.
const MAX_INTERVAL: Duration = Duration::from_mins(1);
const MAX_LIFETIME: Duration = Duration::from_hours(1);

/// A login that was not approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeviceLoginError {
    /// A person has denied it.
    #[error("the login was denied in the browser")]
    Denied,
    /// Nobody has decided in time.
    #[error("the login has expired: nobody approved it in time")]
    Expired,
    /// The server does not know the code, for example because its token was fetched already.
    #[error("the server does not know the login any more")]
    Unknown,
}

/// A login that waits for a person.
pub(crate) struct DeviceLogin {
    base: Url,
    device_code: Secret,
    /// The code that the person sees.
    pub(crate) user_code: String,
    /// The page to open.
    pub(crate) page: Url,
    /// The page with the code in its address.
    pub(crate) complete_page: Option<Url>,
    /// How long the code works.
    pub(crate) lifetime: Duration,
    interval: Duration,
}

#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    /// Without it, five seconds (RFC 8628, section 3.2).
    #[serde(default = "default_interval")]
    interval: u64,
}

fn default_interval() -> u64 {
    5
}

#[derive(Deserialize)]
struct IssuedToken {
    access_token: String,
}

impl DeviceLogin {
    /// Starts a login; `device` is the name of this computer.
    pub(crate) async fn start(base: &Url, device: &str) -> Result<Self, CliError> {
        let fields = [("client_id", CLIENT), ("device_name", device)];
        let (status, body) = post(base, "/oauth/device_authorization", &fields).await?;
        let started: Authorization = read(base, status, &body)?;
        let invalid = || CliError::InvalidResponse { url: base.to_string(), status };
        let page = page_url(&started.verification_uri).ok_or_else(invalid)?;
        let complete_page = match &started.verification_uri_complete {
            Some(text) => Some(page_url(text).ok_or_else(invalid)?),
            None => None,
        };
        if !is_user_code(&started.user_code) {
            return Err(invalid());
        }
        Ok(Self {
            base: base.clone(),
            device_code: Secret::new(started.device_code),
            user_code: started.user_code,
            page,
            complete_page,
            lifetime: Duration::from_secs(started.expires_in).min(MAX_LIFETIME),
            interval: Duration::from_secs(started.interval.max(1)).min(MAX_INTERVAL),
        })
    }

    /// Returns the page that the person opens.
    pub(crate) fn page_to_open(&self) -> &Url {
        self.complete_page.as_ref().unwrap_or(&self.page)
    }

    /// Waits until a person has approved the login, and returns the token. A server that does not respond for a while, or
    /// whose proxy responds in its place, is asked again.
    pub(crate) async fn token(self) -> Result<Secret, CliError> {
        let end = Instant::now() + self.lifetime;
        let mut interval = self.interval;
        loop {
            // One request after the end, whose answer says so.
            tokio::time::sleep(interval).await;
            match self.fetch().await {
                Ok(Fetched::Token(token)) => return Ok(token),
                Ok(Fetched::Pending) | Err(CliError::Unreachable { .. }) => {}
                Ok(Fetched::SlowDown) => interval = (interval + SLOW_DOWN).min(MAX_INTERVAL),
                Err(error) => return Err(error),
            }
            if Instant::now() >= end {
                return Err(DeviceLoginError::Expired.into());
            }
        }
    }

    async fn fetch(&self) -> Result<Fetched, CliError> {
        let fields =
            [("grant_type", GRANT_TYPE), ("device_code", self.device_code.expose()), ("client_id", CLIENT)];
        let (status, body) = post(&self.base, "/oauth/token", &fields).await?;
        if (200..300).contains(&status) {
            let IssuedToken { access_token } = read(&self.base, status, &body)?;
            return Ok(Fetched::Token(Secret::new(access_token)));
        }
        let answer = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        match answer.get("error").and_then(Value::as_str) {
            Some("authorization_pending" | "temporarily_unavailable") => Ok(Fetched::Pending),
            Some("slow_down") => Ok(Fetched::SlowDown),
            Some("access_denied") => Err(DeviceLoginError::Denied.into()),
            Some("expired_token") => Err(DeviceLoginError::Expired.into()),
            Some("invalid_grant") => Err(DeviceLoginError::Unknown.into()),
            // A proxy may respond with any body.
            _ if status == 429 => Ok(Fetched::SlowDown),
            _ if status >= 500 => Ok(Fetched::Pending),
            _ => Err(rejected(&self.base, status, &body)),
        }
    }
}

enum Fetched {
    Pending,
    SlowDown,
    Token(Secret),
}

/// Reads the address of a page. A person opens it, so it must be what it looks like.
fn page_url(text: &str) -> Option<Url> {
    // The parser would drop some of these characters.
    let url = Url::parse(text).ok().filter(|_| !text.chars().any(|c| c.is_control() || c.is_whitespace()))?;
    let is_page = matches!(url.scheme(), "http" | "https") && url.has_host();
    (is_page && url.username().is_empty() && url.password().is_none()).then_some(url)
}

fn is_user_code(text: &str) -> bool {
    (1..=MAX_USER_CODE_LENGTH).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
}

/// Sends a form; returns status and body of the response.
async fn post(base: &Url, path: &str, fields: &[(&str, &str)]) -> Result<(u16, Vec<u8>), CliError> {
    let failed = |error: reqwest::Error| CliError::unreachable(base, error.without_url().into());
    let form = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = http_client(base)?
        .post(format!("{}{path}", base.as_str().trim_end_matches('/')))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, USER_AGENT_VALUE)
        .timeout(TIMEOUT)
        .body(form);
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            // Not a response of haft; the status decides what it means.
            body.clear();
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, body))
}

/// Reads a successful response.
fn read<T: DeserializeOwned>(base: &Url, status: u16, body: &[u8]) -> Result<T, CliError> {
    if !(200..300).contains(&status) {
        return Err(rejected(base, status, body));
    }
    serde_json::from_slice(body).map_err(|_| CliError::InvalidResponse { url: base.to_string(), status })
}

/// Returns the error of a response: that of OAuth with its description, or that of the API.
fn rejected(base: &Url, status: u16, body: &[u8]) -> CliError {
    let answer = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    if let (Some(code), Some(message)) = (text("error"), text("error_description")) {
        return CliError::Api(Box::new(ApiError::local(status, code, message.to_owned())));
    }
    match read_response(status, body, || base.to_string()) {
        Err(error) => error,
        Ok(_) => CliError::InvalidResponse { url: base.to_string(), status },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_and_codes_that_are_what_they_look_like_are_shown() {
        for (text, expected) in [
            ("https://haft.example.com/device?user_code=BCDF-GHJK", true),
            ("http://127.0.0.1:18789/device", true),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://haft.example.com@evil.example/device", false),
            ("https://evil.example/\u{1b}[2J", false),
            ("https://evil.example/\ndevice", false),
            ("device", false),
        ] {
            assert_eq!(page_url(text).is_some(), expected, "{text:?}");
        }
        for (text, expected) in [
            ("BCDF-GHJK", true),
            ("123456", true),
            ("", false),
            ("BCDF GHJK", false),
            ("BCDF\u{1b}[2J", false),
            ("\u{202e}BCDF", false),
        ] {
            assert_eq!(is_user_code(text), expected, "{text:?}");
        }
        assert!(!is_user_code(&"B".repeat(33)));
    }
}
