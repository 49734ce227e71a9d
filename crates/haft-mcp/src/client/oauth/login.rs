//! A login by a person: the address where they agree, and what comes back from there.

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
use super::metadata::{Discovered, discover};
use super::stored::{Kept, Login};
use super::token::{Ask, Grant, ask};

/// How long a person may take.
const GOOD_FOR: Duration = Duration::from_mins(10);
/// The most logins that are under way.
const MAX_COUNT: usize = 256;

/// What comes back from a login.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// Which login it is.
    pub state: String,
    /// What is handed in for a token.
    pub code: Option<Secret>,
    /// Who sends it (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
}

/// A login that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginResult {
    /// Whose server it is.
    pub tenant: TenantId,
    /// Which server it is.
    pub id: BundleSlug,
    /// Who began the login.
    pub by: String,
}

/// A login that somebody is in the middle of.
pub(in crate::client) struct Start {
    pub(in crate::client) tenant: TenantId,
    pub(in crate::client) id: BundleSlug,
    pub(in crate::client) by: String,
    auth: Arc<Auth>,
    kept: Kept,
    verifier: Secret,
    redirect: Url,
    scope: Option<String>,
    found: Discovered,
    client: Client,
    registered: bool,
    began: Instant,
}

/// The logins that are under way, by the digest of their state. Each can be ended once.
#[derive(Default)]
pub(in crate::client) struct Pending(Mutex<HashMap<String, Start>>);

impl Pending {
    fn put(&self, state: &str, start: Start) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, start| start.began.elapsed() < GOOD_FOR);
        if all.len() >= MAX_COUNT {
            let oldest = all.iter().min_by_key(|(_, start)| start.began).map(|(key, _)| key.clone());
            oldest.and_then(|key| all.remove(&key));
        }
        all.insert(hash::of_bytes(state.as_bytes()), start);
    }

    pub(in crate::client) fn take(&self, state: &str) -> Result<Start, OAuthError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.remove(&hash::of_bytes(state.as_bytes()));
        found.filter(|start| start.began.elapsed() < GOOD_FOR).ok_or(OAuthError::UnknownState)
    }
}

/// Begins a login: finds out who gives tokens, makes sure that haft is known there, and returns the address that a
/// person has to open.
pub(in crate::client) async fn begin(
    pending: &Pending,
    (tenant, id, by): (TenantId, BundleSlug, String),
    auth: Arc<Auth>,
    kept: Kept,
    redirect: Url,
) -> Result<Url, OAuthError> {
    let challenge = auth.challenge();
    let found = discover(&auth.egress, &auth.server, &challenge).await?;
    let Some(place) = found.issuer.authorization_endpoint.clone() else {
        let why = "its authorisation server has no address where a person could agree";
        return Err(OAuthError::Metadata(why.to_owned()));
    };
    if !found.issuer.takes_s256 {
        let why =
            "its authorisation server does not take the proof `S256` that whoever ends a login began it";
        return Err(OAuthError::Metadata(why.to_owned()));
    }
    let before = kept.read().await?.filter(|login| auth.is_for(login));
    let scope = scope(&auth, &found, before.as_ref(), challenge.wants_more());
    let known = before.filter(|login| {
        login.registered && login.issuer == found.issuer.name && login.redirect == redirect.as_str()
    });
    let (client, registered) = match (&auth.configured.client_id, known) {
        (Some(client), _) => {
            let secret = auth.configured.client_secret.as_ref();
            (Client::configured(client, secret, &found.issuer), false)
        }
        (None, Some(login)) => (login.client, true),
        (None, None) => (register(&auth.egress, &found.issuer, &redirect, scope.as_deref()).await?, true),
    };
    let (state, verifier) = (random()?, Secret::new(random()?));
    let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()));
    let mut url = place;
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect.as_str())
            .append_pair("state", &state)
            .append_pair("code_challenge", &proof)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if let Some(scope) = &scope {
            query.append_pair("scope", scope);
            if scope.split(' ').any(|one| one == "offline_access") {
                // Without it, OpenID Connect gives no such token.
                query.append_pair("prompt", "consent");
            }
        }
    }
    let began = Instant::now();
    let start =
        Start { tenant, id, by, auth, kept, verifier, redirect, scope, found, client, registered, began };
    pending.put(&state, start);
    Ok(url)
}

/// What is asked for: what is configured, else what the server says, else what was given before; where the server wants
/// more than before, that as well.
fn scope(auth: &Auth, found: &Discovered, before: Option<&Login>, more: bool) -> Option<String> {
    let had = before.and_then(|login| login.tokens.as_ref()).and_then(|tokens| tokens.scope.clone());
    let first = auth.configured.scope().or_else(|| found.scope.clone()).or_else(|| had.clone())?;
    let mut wanted: Vec<&str> = first.split_whitespace().collect();
    if more {
        wanted.extend(found.scope.iter().chain(&had).flat_map(|scopes| scopes.split_whitespace()));
    }
    if found.issuer.has_offline_access {
        wanted.push("offline_access");
    }
    let mut seen = HashSet::new();
    wanted.retain(|scope| seen.insert(*scope));
    Some(wanted.join(" "))
}

/// Ends a login: hands in the code, and keeps what is given for it.
pub(in crate::client) async fn finish(start: Start, callback: Callback) -> Result<(), OAuthError> {
    let Start { auth, kept, verifier, redirect, scope, found, client, registered, .. } = start;
    check_issuer(&found, callback.iss.as_deref())?;
    if let Some(error) = callback.error {
        return Err(OAuthError::Denied(excerpt(&error, 300)));
    }
    let code = callback.code.ok_or_else(|| OAuthError::Denied("it came back without a code".to_owned()))?;
    let asked = Ask {
        endpoint: &found.issuer.token_endpoint,
        client: &client,
        resource: &found.resource,
        scope: None,
    };
    let grant = Grant::Code { code: code.expose(), verifier: &verifier, redirect: redirect.as_str() };
    let mut tokens = ask(&auth.egress, asked, grant).await?;
    // What is not said is what was asked for (RFC 6749, section 5.1).
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
    let turn = kept.begin().await?;
    kept.end(turn, Some(&login)).await
}

/// An answer of another issuer than the one that was asked is a mix-up, perhaps meant (RFC 9207). Compared letter by
/// letter.
fn check_issuer(found: &Discovered, named: Option<&str>) -> Result<(), OAuthError> {
    let expected = found.issuer.name.as_deref();
    match (named, expected) {
        (None, _) if found.issuer.names_itself => {
            Err(OAuthError::Denied("the answer does not name its issuer".to_owned()))
        }
        (Some(named), Some(expected)) if named != expected => Err(OAuthError::Denied(format!(
            "the answer is that of another issuer: `{}` instead of `{expected}`",
            excerpt(named, 200)
        ))),
        (Some(_), None) => Err(OAuthError::Denied("the answer names an issuer that is not known".to_owned())),
        _ => Ok(()),
    }
}

/// 256 bits that nobody can guess.
fn random() -> Result<String, OAuthError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| OAuthError::Store(format!("the system has no randomness: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
