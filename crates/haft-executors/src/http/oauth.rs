//! Fetches access tokens from an authorization server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::encode::percent_encode;
use haft_core::executor::CallContext;
use haft_core::implementation::OAuth2;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::secret::{GrantId, RefreshTokens, Secret, scrub_text};
use haft_template::{EscapeContext, Template, Values};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use super::auth::secret;
use super::failure::{self, RetrySafety};
use super::pairs::push_pair;
use super::prepare::Compiler;
use super::request::header_value;
use super::response::{self, BodyError};
use super::tokens::{FetchError, Token};
use crate::egress::{Egress, OutgoingRequest};

const FIELD: &str = "implementation.auth";

/// The timeout of the authorization server.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum size of a response of the authorization server.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// The lifetime of a token in seconds, if the server does not send it.
const DEFAULT_LIFETIME: u64 = 300;

/// A compiled `auth` of type `oauth2`.
pub(super) struct OAuthPlan {
    token_url: Template,
    client_id: Template,
    client_secret: Template,
    refresh_token: Option<Template>,
    scopes: Vec<Template>,
    audience: Option<Template>,
}

/// Everything that a token request needs.
#[derive(Clone)]
pub(super) struct Grant {
    tenant: TenantId,
    token_url: Url,
    client_id: Secret,
    client_secret: Secret,
    refresh_token: Option<Secret>,
    scope: String,
    audience: String,
    refresh_tokens: Option<Arc<dyn RefreshTokens>>,
    credential: String,
}

impl OAuthPlan {
    pub(super) fn compile(compiler: &mut Compiler, oauth: &OAuth2) -> Option<Self> {
        let token_url = compiler.url(&format!("{FIELD}.token_url"), &oauth.token_url);
        let client_id = compiler.text(&format!("{FIELD}.client_id"), &oauth.client_id);
        let client_secret = compiler.text(&format!("{FIELD}.client_secret"), &oauth.client_secret);
        let refresh_token = oauth.refresh_token.as_deref();
        let refresh_token = refresh_token.map(|text| compiler.text(&format!("{FIELD}.refresh_token"), text));
        let audience = oauth.audience.as_deref();
        let audience = audience.map(|text| compiler.text(&format!("{FIELD}.audience"), text));
        let scopes: Vec<_> =
            oauth.scopes.iter().map(|text| compiler.text(&format!("{FIELD}.scopes"), text)).collect();
        Some(Self {
            token_url: token_url?,
            client_id: client_id?,
            client_secret: client_secret?,
            refresh_token: refresh_token.map_or(Some(None), |found| found.map(Some))?,
            scopes: scopes.into_iter().collect::<Option<_>>()?,
            audience: audience.map_or(Some(None), |found| found.map(Some))?,
        })
    }

    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        [&self.token_url, &self.client_id, &self.client_secret]
            .into_iter()
            .chain(&self.refresh_token)
            .chain(&self.scopes)
            .chain(&self.audience)
    }

    /// Renders the grant for a call.
    pub(super) fn grant(&self, call: &CallContext, values: &Values<'_>) -> Result<Grant, CallError> {
        let text = |template: &Template| secret(template, EscapeContext::Text, call, values);
        let url = self.token_url.render(EscapeContext::Url, values)?;
        let scopes: Result<Vec<_>, CallError> = self.scopes.iter().map(text).collect();
        let scopes: Vec<String> = scopes?.iter().map(|scope| scope.expose().to_owned()).collect();
        Ok(Grant {
            tenant: call.tenant().clone(),
            token_url: Url::parse(&url.text).map_err(|error| {
                CallError::new(ErrorCode::Template, format!("`{FIELD}.token_url` is not a URL: {error}"))
            })?,
            client_id: text(&self.client_id)?,
            client_secret: text(&self.client_secret)?,
            refresh_token: self.refresh_token.as_ref().map(text).transpose()?,
            scope: scopes.join(" "),
            audience: match &self.audience {
                Some(audience) => text(audience)?.expose().to_owned(),
                None => String::new(),
            },
            refresh_tokens: call.refresh_tokens().filter(|_| self.refresh_token.is_some()),
            credential: self.credential(),
        })
    }

    /// Returns the name of the credential with the refresh token, if there is exactly one.
    fn credential(&self) -> String {
        let mut names = self.refresh_token.iter().flat_map(Template::secrets);
        match (names.next(), names.next()) {
            (Some(name), None) => name.to_owned(),
            _ => String::new(),
        }
    }
}

impl Grant {
    /// Returns the key of the grant; a changed secret is another grant.
    pub(super) fn key(&self) -> [u8; 32] {
        let refresh = self.refresh_token.as_ref().map_or("", Secret::expose);
        let parts = [
            self.tenant.as_str(),
            self.token_url.as_str(),
            self.client_id.expose(),
            self.client_secret.expose(),
            refresh,
            &self.scope,
            &self.audience,
        ];
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().into()
    }

    /// Returns the store of rotated refresh tokens, and the id of the grant there.
    pub(super) fn refresh_token_store(&self) -> Option<(Arc<dyn RefreshTokens>, GrantId)> {
        let store = self.refresh_tokens.clone()?;
        let (tenant, credential) = (self.tenant.clone(), self.credential.clone());
        Some((store, GrantId { tenant, key: haft_core::hash::hex(&self.key()), credential }))
    }

    /// Fetches a token; `rotated` is the newest refresh token of the server.
    pub(super) async fn fetch(&self, egress: &Egress, rotated: Option<&Secret>) -> Result<Token, FetchError> {
        let request = self.request(rotated)?;
        let work = async {
            let mut response = egress.send(request).await.map_err(|error| {
                failure::send_failure(&error, &self.shown(), RetrySafety { unsent: true, sent: false })
            })?;
            let status = response.status();
            let bytes =
                response::read(&mut response, MAX_RESPONSE_BYTES).await.map_err(|error| match error {
                    BodyError::TooLarge => CallError::new(
                        ErrorCode::TooLarge,
                        format!(
                            "{}: the response exceeds the limit of {MAX_RESPONSE_BYTES} bytes",
                            self.shown()
                        ),
                    ),
                    other => failure::body_failure(
                        &other,
                        &self.shown(),
                        MAX_RESPONSE_BYTES,
                        RetrySafety { unsent: false, sent: false },
                    ),
                })?;
            self.token(status, &bytes, rotated)
        };
        let result = tokio::time::timeout(TIMEOUT, work).await;
        let result = result.unwrap_or_else(|_| {
            Err(failure::timeout(&self.shown(), TIMEOUT, RetrySafety { unsent: true, sent: true }).into())
        });
        result.map_err(|FetchError { error, rejected }| match error.code {
            ErrorCode::EgressRefused => error.into(),
            _ => FetchError {
                error: error.for_model("the tool could not get an access token for the service"),
                rejected,
            },
        })
    }

    fn shown(&self) -> String {
        let mut url = self.token_url.clone();
        url.set_query(None);
        format!("POST {url} (token endpoint)")
    }

    fn request(&self, rotated: Option<&Secret>) -> Result<OutgoingRequest, CallError> {
        let mut form = String::new();
        let refresh_token = rotated.or(self.refresh_token.as_ref());
        match refresh_token {
            Some(token) => {
                push_pair("grant_type", "refresh_token", &mut form);
                push_pair("refresh_token", token.expose(), &mut form);
            }
            None => push_pair("grant_type", "client_credentials", &mut form),
        }
        for (name, value) in [("scope", &self.scope), ("audience", &self.audience)] {
            if !value.is_empty() {
                push_pair(name, value, &mut form);
            }
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if self.client_secret.expose().is_empty() {
            push_pair("client_id", self.client_id.expose(), &mut form);
        } else {
            // RFC 6749, section 2.3.1: both parts are form-encoded before they are joined.
            let pair =
                [&self.client_id, &self.client_secret].map(|part| percent_encode(part.expose())).join(":");
            let mut value = header_value(&AUTHORIZATION, &format!("Basic {}", STANDARD.encode(pair)))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(OutgoingRequest {
            method: Method::POST,
            url: self.token_url.clone(),
            headers,
            body: Some(form.into()),
            // A token endpoint does not redirect.
            accepted_statuses: vec![301, 302, 303, 307, 308],
        })
    }

    fn token(
        &self,
        status: http::StatusCode,
        bytes: &[u8],
        rotated: Option<&Secret>,
    ) -> Result<Token, FetchError> {
        let shown = self.shown();
        let response: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let field = |name: &str| response.get(name).and_then(Value::as_str);
        if !status.is_success() {
            let mut reason = [field("error"), field("error_description")]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(": ");
            scrub_text(&mut reason, &self.exposed(rotated));
            let name = failure::status_name(status);
            let message = format!("{shown} returned {name} {}", excerpt(&reason, 300));
            let error = CallError::new(ErrorCode::HttpStatus, message.trim_end())
                .retryable(status.as_u16() == 429 || status.is_server_error());
            return Err(FetchError { error, rejected: matches!(status.as_u16(), 400 | 401) });
        }
        let invalid = |reason: &str| CallError::new(ErrorCode::InvalidResponse, format!("{shown}: {reason}"));
        let access = field("access_token").filter(|token| !token.is_empty());
        let access = access.ok_or_else(|| invalid("the response has no `access_token`"))?;
        if field("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(invalid("the token is not a bearer token").into());
        }
        let lifetime = response.get("expires_in").and_then(|value| match value {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        Ok(Token {
            access: Secret::new(access.to_owned()),
            valid_until: valid_until(Instant::now(), lifetime.unwrap_or(DEFAULT_LIFETIME)),
            refresh: field("refresh_token")
                .map(|token| Secret::new(token.to_owned()))
                .or_else(|| rotated.cloned()),
        })
    }

    fn exposed(&self, rotated: Option<&Secret>) -> Vec<Secret> {
        let own = [&self.client_secret].into_iter().chain(&self.refresh_token).chain(rotated);
        own.cloned().collect()
    }
}

/// Returns when a token is replaced: a tenth of its lifetime before its end, at most a minute.
fn valid_until(now: Instant, lifetime: u64) -> Instant {
    let lifetime = lifetime.min(365 * 24 * 3600);
    now + Duration::from_secs(lifetime - (lifetime / 10).min(60))
}
