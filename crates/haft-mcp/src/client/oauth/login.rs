//! A login by a person: the authorization URL, and the callback.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::hash;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::auth::Auth;
use super::client::{Client, register};
use super::error::OAuthError;
use super::login_store::{Login, LoginStore};
use super::metadata::{Discovered, discover};
use super::token::{Grant, TokenRequest, request_tokens};

/// How long a login may take.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);
/// How many logins can be pending.
const MAX_PENDING: usize = 256;

/// The callback of a login.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// Identifies the login.
    pub state: String,
    /// The authorization code.
    pub code: Option<Secret>,
    /// The issuer (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
}

/// A completed login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginResult {
    /// The tenant of the server.
    pub tenant: TenantId,
    /// The server.
    pub id: BundleSlug,
    /// The token that began the login.
    pub by: String,
}

/// A login in progress.
pub(in crate::client) struct PendingLogin {
    pub(in crate::client) tenant: TenantId,
    pub(in crate::client) id: BundleSlug,
    pub(in crate::client) by: String,
    auth: Arc<Auth>,
    store: LoginStore,
    verifier: Secret,
    redirect: Url,
    scope: Option<String>,
    found: Discovered,
    client: Client,
    registered: bool,
    began: Instant,
}

/// The logins in progress, by the digest of their state. Each can be completed once.
#[derive(Default)]
pub(in crate::client) struct PendingLogins(Mutex<HashMap<String, PendingLogin>>);

impl PendingLogins {
    fn insert(&self, state: &str, login: PendingLogin) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, login| login.began.elapsed() < LOGIN_TIMEOUT);
        if all.len() >= MAX_PENDING {
            let oldest = all.iter().min_by_key(|(_, login)| login.began).map(|(key, _)| key.clone());
            oldest.and_then(|key| all.remove(&key));
        }
        all.insert(hash::of_bytes(state.as_bytes()), login);
    }

    pub(in crate::client) fn take(&self, state: &str) -> Result<PendingLogin, OAuthError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.remove(&hash::of_bytes(state.as_bytes()));
        found.filter(|login| login.began.elapsed() < LOGIN_TIMEOUT).ok_or(OAuthError::UnknownState)
    }
}

/// Begins a login: discovers the authorization server, registers a client if needed, and returns the URL that a person
/// has to open.
pub(in crate::client) async fn begin(
    pending: &PendingLogins,
    (tenant, id, by): (TenantId, BundleSlug, String),
    auth: Arc<Auth>,
    store: LoginStore,
    redirect: Url,
) -> Result<Url, OAuthError> {
    let challenge = auth.challenge();
    let found = discover(&auth.egress, &auth.server, &challenge).await?;
    let Some(mut url) = found.issuer.authorization_endpoint.clone() else {
        let message = "the authorization server has no authorization endpoint";
        return Err(OAuthError::Metadata(message.to_owned()));
    };
    if !found.issuer.supports_s256 {
        let message = "the authorization server does not support PKCE with `S256`";
        return Err(OAuthError::Metadata(message.to_owned()));
    }
    let before = store.read().await?.filter(|login| auth.matches(login));
    let scope = scope(&auth, &found, before.as_ref(), challenge.is_insufficient_scope());
    let known = before.filter(|login| {
        login.registered && login.issuer == found.issuer.name && login.redirect == redirect.as_str()
    });
    let (client, registered) = match (&auth.config.client_id, known) {
        (Some(client), _) => {
            let secret = auth.config.client_secret.as_ref();
            (Client::configured(client, secret, &found.issuer), false)
        }
        (None, Some(login)) => (login.client, true),
        (None, None) => (register(&auth.egress, &found.issuer, &redirect, scope.as_deref()).await?, true),
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
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if let Some(scope) = &scope {
            query.append_pair("scope", scope);
            if scope.split(' ').any(|one| one == "offline_access") {
                // OpenID Connect requires consent for this scope.
                query.append_pair("prompt", "consent");
            }
        }
    }
    let began = Instant::now();
    let login = PendingLogin {
        tenant,
        id,
        by,
        auth,
        store,
        verifier,
        redirect,
        scope,
        found,
        client,
        registered,
        began,
    };
    pending.insert(&state, login);
    Ok(url)
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

/// Completes a login: exchanges the code for tokens and stores them.
pub(in crate::client) async fn finish(login: PendingLogin, callback: Callback) -> Result<(), OAuthError> {
    let PendingLogin { auth, store, verifier, redirect, scope, found, client, registered, .. } = login;
    check_issuer(&found, callback.iss.as_deref())?;
    if let Some(error) = callback.error {
        return Err(OAuthError::Denied(excerpt(&error, 300)));
    }
    let code = callback.code.ok_or_else(|| OAuthError::Denied("the callback has no code".to_owned()))?;
    let request = TokenRequest {
        endpoint: &found.issuer.token_endpoint,
        client: &client,
        resource: &found.resource,
        scope: None,
    };
    let grant = Grant::Code { code: code.expose(), verifier: &verifier, redirect: redirect.as_str() };
    let mut tokens = request_tokens(&auth.egress, request, grant).await?;
    // Without a scope, the response grants the requested one (RFC 6749, section 5.1).
    tokens.scope = tokens.scope.or(scope);
    let login = Login {
        server: auth.server.to_string(),
        resource: found.resource,
        issuer: found.issuer.name,
        token_endpoint: found.issuer.token_endpoint,
        client,
        registered,
        redirect: redirect.to_string(),
        tokens: Some(tokens),
    };
    let lease = store.begin().await?;
    store.end(lease, Some(&login)).await
}

/// Rejects the callback of another issuer, which may be a mix-up attack (RFC 9207). Compared byte by byte.
fn check_issuer(found: &Discovered, named: Option<&str>) -> Result<(), OAuthError> {
    let expected = found.issuer.name.as_deref();
    match (named, expected) {
        (None, _) if found.issuer.names_itself => {
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
