//! The OAuth client: configured, or registered by haft (RFC 7591).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::encode::percent_encode;
use haft_core::secret::Secret;
use haft_executors::egress::Egress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::error::OAuthError;
use super::fetch::{PostRequest, display_url, post};
use super::metadata::Issuer;

/// How a client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuthMethod {
    /// With its id only.
    None,
    /// With its secret, in a header.
    Basic,
    /// With its secret, in the body.
    Post,
}

/// An OAuth client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) auth_method: ClientAuthMethod,
}

impl Client {
    /// Returns a client that was registered manually.
    pub(super) fn configured(id: &str, secret: Option<&Secret>, issuer: &Issuer) -> Self {
        let auth_method = if secret.is_some() { secret_auth_method(issuer) } else { ClientAuthMethod::None };
        Self { id: id.to_owned(), secret: secret.cloned(), auth_method }
    }

    /// Adds the authentication to a token request; returns the header, if it needs one.
    pub(super) fn authenticate(
        &self,
        form: &mut url::form_urlencoded::Serializer<'_, String>,
    ) -> Option<Secret> {
        // Always, because some servers look up the client by it before they read the header.
        form.append_pair("client_id", &self.id);
        match (self.auth_method, &self.secret) {
            (ClientAuthMethod::Basic, Some(secret)) => {
                // RFC 6749, section 2.3.1: both parts are form-encoded before they are joined.
                let pair = format!("{}:{}", percent_encode(&self.id), percent_encode(secret.expose()));
                Some(Secret::new(format!("Basic {}", STANDARD.encode(pair))))
            }
            (ClientAuthMethod::Post, Some(secret)) => {
                form.append_pair("client_secret", secret.expose());
                None
            }
            (ClientAuthMethod::None, _) | (_, None) => None,
        }
    }
}

/// Registers a client with this redirect URL.
pub(super) async fn register(
    egress: &Egress,
    issuer: &Issuer,
    redirect: &Url,
    scope: Option<&str>,
) -> Result<Client, OAuthError> {
    let Some(endpoint) = &issuer.registration_endpoint else {
        return Err(OAuthError::Configuration(
            "the authorization server does not support client registration: register a client there, with the \
             redirect URL of this server, and set `oauth.client_id`"
                .to_owned(),
        ));
    };
    let method = match preferred_auth_method(issuer) {
        ClientAuthMethod::None => "none",
        ClientAuthMethod::Basic => "client_secret_basic",
        ClientAuthMethod::Post => "client_secret_post",
    };
    // OpenID Connect registration, section 2: `native` is for redirects to this machine.
    let kind = if redirect.scheme() == "https" { "web" } else { "native" };
    let mut body = json!({
        "client_name": "haft",
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": kind,
    });
    if let (Some(scope), Some(body)) = (scope, body.as_object_mut()) {
        body.insert("scope".to_owned(), scope.into());
    }
    let request = PostRequest {
        url: endpoint,
        content_type: "application/json",
        body: body.to_string(),
        authorization: None,
        hidden: Vec::new(),
    };
    let response = post(egress, request).await?;
    let text = |name| response.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("client_id")
        .ok_or_else(|| OAuthError::Metadata(format!("{} returned no `client_id`", display_url(endpoint))))?;
    let secret = text("client_secret").map(|text| Secret::new(text.to_owned()));
    let auth_method = match (text("token_endpoint_auth_method"), &secret) {
        (_, None) | (Some("none"), Some(_)) => ClientAuthMethod::None,
        (Some("client_secret_post"), Some(_)) => ClientAuthMethod::Post,
        (Some("client_secret_basic"), Some(_)) => ClientAuthMethod::Basic,
        (_, Some(_)) => secret_auth_method(issuer),
    };
    Ok(Client { id: id.to_owned(), secret, auth_method })
}

/// Returns the preferred method: with a secret, in a header.
fn preferred_auth_method(issuer: &Issuer) -> ClientAuthMethod {
    let supports = |name: &str| issuer.auth_methods.iter().flatten().any(|method| method == name);
    match issuer.auth_methods {
        None => ClientAuthMethod::Basic,
        Some(_) if supports("client_secret_basic") => ClientAuthMethod::Basic,
        Some(_) if supports("client_secret_post") => ClientAuthMethod::Post,
        Some(_) => ClientAuthMethod::None,
    }
}

/// Returns the method for a secret; every server has to support the header.
fn secret_auth_method(issuer: &Issuer) -> ClientAuthMethod {
    match preferred_auth_method(issuer) {
        ClientAuthMethod::Post => ClientAuthMethod::Post,
        ClientAuthMethod::Basic | ClientAuthMethod::None => ClientAuthMethod::Basic,
    }
}
