//! A login by a person: the authorization URL, and the callback.
//!
//! What completes a login is data, which the caller stores: the callback may reach another node.

use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_executors::egress::Egress;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::auth::Auth;
use super::client::{Client, register};
use super::error::OAuthError;
use super::login_store::{Login, LoginStore, StoredLogin};
use super::metadata::Discovered;
use super::token::{Grant, TokenRequest, request_tokens};

/// The callback of a login.
#[derive(Debug, Clone)]
pub struct Callback {
    /// Identifies the login.
    pub state: Secret,
    /// The authorization code.
    pub code: Option<Secret>,
    /// The issuer (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
}

/// A login that has begun.
pub struct BegunLogin {
    /// The URL that the person has to open.
    pub url: Url,
    /// Identifies the login in its callback.
    pub state: Secret,
    /// What completes it; to be stored encrypted.
    pub data: Secret,
}

/// What completes a login.
#[derive(Serialize, Deserialize)]
struct LoginData {
    login: StoredLogin,
    verifier: String,
    scope: Option<String>,
    /// Whether callbacks name the issuer.
    names_itself: bool,
}

/// Begins a login: discovers the authorization server, registers a client if needed, and returns the URL that a person
/// has to open.
pub(in crate::client) async fn begin(auth: &Arc<Auth>, redirect: &Url) -> Result<BegunLogin, OAuthError> {
    let challenge = auth.challenge();
    let found = auth.discover().await?;
    let Some(mut url) = found.issuer.authorization_endpoint.clone() else {
        return Err(OAuthError::NoAuthorizationEndpoint);
    };
    if !found.issuer.supports_s256 {
        let message = "the authorization server does not support PKCE with `S256`";
        return Err(OAuthError::Metadata(message.to_owned()));
    }
    let before = auth.store.read().await?.filter(|login| auth.matches(login));
    let scope = scope(auth, &found, before.as_ref(), challenge.is_insufficient_scope());
    let known = before.filter(|login| {
        login.registered && login.issuer == found.issuer.name && login.redirect == redirect.as_str()
    });
    let (client, registered) = match (&auth.config.client_id, known) {
        (Some(client), _) => {
            let secret = auth.config.client_secret.as_ref();
            (Client::configured(client, secret, &found.issuer), false)
        }
        (None, Some(login)) => (login.client, true),
        (None, None) => (register(&auth.egress, &found.issuer, redirect, scope.as_deref()).await?, true),
    };
    let (state, verifier) = (random()?, Secret::new(random()?));
    let code_challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()));
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect.as_str())
            .append_pair("state", &state)
            .append_pair("code_challenge", &code_challenge)
            .append_pair("code_challenge_method", "S256");
        if !found.resource.is_empty() {
            query.append_pair("resource", &found.resource);
        }
        if let Some(scope) = &scope {
            query.append_pair("scope", scope);
            if scope.split(' ').any(|one| one == "offline_access") {
                // OpenID Connect requires consent for this scope.
                query.append_pair("prompt", "consent");
            }
        }
    }
    let secret = client.secret.clone();
    let login = Login {
        server: auth.server.to_string(),
        resource: found.resource,
        issuer: found.issuer.name,
        token_endpoint: found.issuer.token_endpoint,
        client,
        registered,
        redirect: redirect.to_string(),
        tokens: None,
    };
    let data = LoginData {
        login: login.stored(secret.as_ref()),
        verifier: verifier.expose().to_owned(),
        scope,
        names_itself: found.issuer.names_itself,
    };
    let data = serde_json::to_string(&data).map_err(|error| OAuthError::Store(error.to_string()))?;
    Ok(BegunLogin { url, state: Secret::new(state), data: Secret::new(data) })
}

/// Returns the scope to request: the configured one, or that of the server, or that of the previous login. After an
/// insufficient scope, all of them.
fn scope(auth: &Auth, found: &Discovered, before: Option<&Login>, more: bool) -> Option<String> {
    let previous = before.and_then(|login| login.tokens.as_ref()).and_then(|tokens| tokens.scope.clone());
    let first = auth.config.scope().or_else(|| found.scope.clone()).or_else(|| previous.clone())?;
    let mut scopes: Vec<&str> = first.split_whitespace().collect();
    if more {
        scopes.extend(found.scope.iter().chain(&previous).flat_map(|scopes| scopes.split_whitespace()));
    }
    if found.issuer.has_offline_access {
        scopes.push("offline_access");
    }
    let mut seen = HashSet::new();
    scopes.retain(|scope| seen.insert(*scope));
    Some(scopes.join(" "))
}

/// Completes a login: exchanges the code for tokens and stores them. Returns the granted scope.
pub(in crate::client) async fn finish(
    egress: &Egress,
    store: &LoginStore,
    data: &Secret,
    callback: Callback,
) -> Result<Option<String>, OAuthError> {
    let data: LoginData = serde_json::from_str(data.expose()).map_err(|_| OAuthError::UnknownState)?;
    let mut login = Login::of(data.login).ok_or(OAuthError::UnknownState)?;
    check_issuer(login.issuer.as_deref(), data.names_itself, callback.iss.as_deref())?;
    if let Some(error) = callback.error {
        return Err(OAuthError::Denied(excerpt(&error, 300)));
    }
    let code = callback.code.ok_or_else(|| OAuthError::Denied("the callback has no code".to_owned()))?;
    let request = TokenRequest {
        endpoint: &login.token_endpoint,
        client: &login.client,
        resource: &login.resource,
        scope: None,
    };
    let verifier = Secret::new(data.verifier);
    let grant = Grant::Code { code: code.expose(), verifier: &verifier, redirect: &login.redirect };
    let mut tokens = request_tokens(egress, request, grant).await?;
    // Without a scope, the response grants the requested one (RFC 6749, section 5.1).
    tokens.scope = tokens.scope.or(data.scope);
    let scope = tokens.scope.clone();
    login.tokens = Some(tokens);
    let lease = store.begin().await?;
    store.end(lease, Some(&login)).await?;
    Ok(scope)
}

/// Rejects the callback of another issuer, which may be a mix-up attack (RFC 9207). Compared byte by byte.
fn check_issuer(expected: Option<&str>, names_itself: bool, named: Option<&str>) -> Result<(), OAuthError> {
    match (named, expected) {
        (None, _) if names_itself => {
            Err(OAuthError::Denied("the callback does not name its issuer".to_owned()))
        }
        (Some(named), Some(expected)) if named != expected => Err(OAuthError::Denied(format!(
            "the callback names the issuer `{}`; expected `{expected}`",
            excerpt(named, 200)
        ))),
        (Some(_), None) => Err(OAuthError::Denied("the callback names an unknown issuer".to_owned())),
        _ => Ok(()),
    }
}

/// Returns 256 random bits.
fn random() -> Result<String, OAuthError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| OAuthError::Store(format!("no random numbers: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
