//! A login of a browser at an issuer: the authorization code flow with PKCE.
//!
//! Between the two requests, the store has only hashes: of the state, and of a cookie of the browser. Verifier and nonce are
//! derived from both, so any node finishes what another one began, and the database alone is of no use. A browser may have
//! several logins at once with one cookie: each has a state of its own.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::actor::login_key;
use haft_core::hash;
use haft_core::login::SignOnLoginRecord;
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use haft_oauth::exchange::IssuedTokens;
use haft_oauth::jwt::{self, Purpose};
use haft_oauth::oidc::{AuthorizationRequest, Callback, CodeExchange, ProviderMetadata};
use haft_store::{DeviceLoginLimits, SignOnLoginStart};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::error::SignOnError;
use super::kept_login;
use super::person::{choose_tenant, person_of_claims};
use crate::access::Token;
use crate::context::Context;
use crate::issuers::Issuer;
use crate::random;
use crate::stored_login;
use crate::stream_limit::network;

/// How long a login may take.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// Behind a proxy, all clients have its address.
const LIMITS: DeviceLoginLimits = DeviceLoginLimits { per_address: 300, total: 10_000 };
/// The length of 32 bytes in base64url.
const SECRET_LENGTH: usize = 43;

/// A login that has begun.
pub struct BegunLogin {
    /// Where the browser goes.
    pub url: Url,
    /// The cookie of the browser.
    pub browser: Secret,
}

/// Where a login comes from and where it leads.
pub struct BeginLogin<'a> {
    /// The cookie of the browser, if it has one.
    pub browser: Option<&'a str>,
    pub address: Option<IpAddr>,
    /// Where the issuer sends the browser back to.
    pub redirect_uri: &'a str,
    /// The page to show after the login.
    pub next: Option<String>,
    /// The tenant to log in to.
    pub tenant: Option<TenantId>,
}

/// What the issuer sent the browser back with.
pub struct Answer<'a> {
    pub state: &'a str,
    pub callback: Callback,
    /// The cookie of the browser.
    pub browser: Option<&'a str>,
    pub redirect_uri: &'a str,
}

/// A login that has succeeded.
pub struct FinishedLogin {
    /// The login of the person, for a session.
    pub token: Arc<Token>,
    pub next: Option<String>,
    /// The hash of what the issuer calls the session.
    pub issuer_session: String,
}

/// What binds a login to its browser.
struct Binding {
    nonce: String,
    verifier: Secret,
}

impl Binding {
    fn new(browser: &str, state: &str) -> Self {
        let derived = |purpose: &str| {
            let input = format!("haft sign-on {purpose}\n{browser}\n{state}");
            URL_SAFE_NO_PAD.encode(Sha256::digest(input.as_bytes()))
        };
        Self { nonce: derived("nonce"), verifier: Secret::new(derived("verifier")) }
    }
}

/// Begins a login at an issuer.
pub async fn begin(app: &Context, issuer: &str, login: BeginLogin<'_>) -> Result<BegunLogin, SignOnError> {
    let issuer = find(app, issuer)?;
    let now = app.now();
    let settings = &issuer.settings;
    let metadata = metadata(app, issuer).await?;
    let browser = match login.browser.filter(|browser| is_secret(browser)) {
        Some(browser) => Secret::new(browser.to_owned()),
        None => random::secret()?,
    };
    let state = random::secret()?;
    let record = SignOnLoginRecord {
        hash: hash::of_bytes(state.expose().as_bytes()),
        issuer: settings.id.clone(),
        browser_hash: hash::of_bytes(browser.expose().as_bytes()),
        next: login.next,
        tenant: login.tenant,
        address: login.address.map(|address| network(address).to_string()).unwrap_or_default(),
        created_at: now,
        expires_at: now + LIFETIME,
    };
    match app.store().access().insert_sign_on_login(record, LIMITS).await? {
        SignOnLoginStart::Stored => {}
        SignOnLoginStart::TooManyOfAddress => return Err(SignOnError::TooManyOfAddress),
        SignOnLoginStart::TooMany => return Err(SignOnError::TooMany),
    }
    let binding = Binding::new(browser.expose(), state.expose());
    let request = AuthorizationRequest {
        client_id: &settings.client_id,
        redirect_uri: login.redirect_uri,
        scopes: &settings.scopes,
        state: state.expose(),
        nonce: &binding.nonce,
        verifier: &binding.verifier,
    };
    Ok(BegunLogin { url: request.url(&metadata), browser })
}

/// Finishes a login: checks the answer of the issuer, and finds or creates the person.
pub async fn finish(
    app: &Arc<Context>,
    issuer: &str,
    answer: Answer<'_>,
) -> Result<FinishedLogin, SignOnError> {
    let issuer = find(app, issuer)?;
    let browser = answer.browser.filter(|browser| is_secret(browser)).ok_or(SignOnError::UnknownLogin)?;
    if !is_secret(answer.state) {
        return Err(SignOnError::UnknownLogin);
    }
    let hashes = [answer.state, browser].map(|secret| hash::of_bytes(secret.as_bytes()));
    let [state_hash, browser_hash] = &hashes;
    let login = app.store().access().take_sign_on_login(state_hash, browser_hash).await?;
    let login = login.ok_or(SignOnError::UnknownLogin)?;
    if login.issuer != issuer.settings.id {
        return Err(SignOnError::MixedUp);
    }
    let binding = Binding::new(browser, answer.state);
    let (claims, tokens) = verified_claims(app, issuer, answer, &binding).await?;
    let person = person_of_claims(app, issuer, &claims).await?;
    let issuer_session = issuer_session(&issuer.settings.issuer, jwt::session(&claims));
    if let Err(error) = kept_login::keep(app, issuer, person, (tokens.as_ref(), &issuer_session)).await {
        // The person can log in; tools that need the login say so.
        tracing::error!(issuer = issuer.settings.id, error = error.message, "a login cannot be kept");
    }
    let tenant = choose_tenant(app, person, login.tenant.as_ref())?;
    let token = app.access().token_by_hash(&login_key(person, &tenant), app.now());
    // Disabled meanwhile.
    Ok(FinishedLogin { token: token.ok_or(SignOnError::Disabled)?, next: login.next, issuer_session })
}

/// Returns the hash of what an issuer calls a session; of one without a name, it is that of the issuer.
pub(super) fn issuer_session(issuer: &str, name: Option<&str>) -> String {
    hash::of_bytes(format!("{issuer}\n{}", name.unwrap_or_default()).as_bytes())
}

/// Exchanges the code; returns the claims of the verified ID token, and the other tokens.
async fn verified_claims(
    app: &Context,
    issuer: &Arc<Issuer>,
    answer: Answer<'_>,
    binding: &Binding,
) -> Result<(jwt::Claims, Option<IssuedTokens>), SignOnError> {
    let settings = &issuer.settings;
    let name = settings.name.as_str();
    let metadata = metadata(app, issuer).await?;
    let code = answer.callback.check(&settings.issuer, &metadata);
    let code = code.map_err(|error| SignOnError::of_answer(name, &error))?;
    let client_secret = client_secret(app, issuer).await?;
    let exchange = CodeExchange {
        client_id: &settings.client_id,
        client_secret: client_secret.as_ref(),
        redirect_uri: answer.redirect_uri,
        code: &code,
        verifier: &binding.verifier,
    };
    let failed = |error| SignOnError::of_issuer(name, &error);
    let tokens = issuer.exchange(&metadata, &exchange, app.now()).await.map_err(failed)?;
    let purpose = Purpose::IdToken { client_id: &settings.client_id, nonce: &binding.nonce };
    let verified = issuer.verify(&tokens.id_token, purpose, app.now()).await;
    let mut claims = verified.map_err(|error| SignOnError::of_token(name, &error))?;
    let access = tokens.tokens.as_ref().map(|tokens| &tokens.access);
    issuer.add_userinfo(&metadata, access, &mut claims).await.map_err(failed)?;
    Ok((claims, tokens.tokens))
}

/// Reads the client secret; the log has the reason if that fails.
async fn client_secret(app: &Context, issuer: &Issuer) -> Result<Option<Secret>, SignOnError> {
    stored_login::client_secret(app.secrets(), issuer).await.map_err(|error| {
        tracing::error!(issuer = issuer.settings.id, %error, "a login failed");
        SignOnError::Invalid { issuer: issuer.settings.name.clone() }
    })
}

pub(super) fn find<'a>(app: &'a Context, id: &str) -> Result<&'a Arc<Issuer>, SignOnError> {
    let shown = || SignOnError::UnknownIssuer(haft_core::problem::excerpt(id, 40));
    app.issuers().find(id).ok_or_else(shown)
}

async fn metadata(app: &Context, issuer: &Arc<Issuer>) -> Result<Arc<ProviderMetadata>, SignOnError> {
    let found = issuer.metadata(app.now()).await;
    found.map_err(|error| SignOnError::of_issuer(&issuer.settings.name, &error))
}

/// Returns whether a text has the form of a state or a cookie.
fn is_secret(text: &str) -> bool {
    text.len() == SECRET_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
