//! Logins of haft at other servers, begun by a person and completed by a callback on any node.

use std::time::Duration;

use haft_core::account::{AccountId, AccountKind, AccountUser};
use haft_core::mcp::McpServer;
use haft_core::mcp::{CredentialMode, providers_of_server};
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::secret::SecretSource as _;
use haft_core::token::Role;
use haft_mcp::client::{BegunLogin, Callback, OAuthError, finish_login};
use haft_store::{PendingLogin, PendingLoginStart};
use url::Url;

use super::connect::{connected, own_account};
use super::device::{BegunDevice, begin_device};
use super::provider_login::login_at;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::mcp_servers;

/// How long a login may take.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);
/// The longest state of a callback.
const MAX_STATE: usize = 512;

/// Why a callback does not complete a login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The login failed.
    #[error(transparent)]
    Login(#[from] OAuthError),
    /// Somebody else is logged in.
    #[error("another person began this login; nothing was connected")]
    OtherPerson,
    /// Nobody is logged in.
    #[error("log in to haft in this browser first, then connect again")]
    NotLoggedIn,
    /// The store failed.
    #[error("{}", .0.message)]
    Failed(ServiceError),
}

/// A login that was completed.
pub struct Completed {
    /// The provider.
    pub provider: String,
    /// The server whose shared login it is; `None` if it is the account of a person.
    pub shared: Option<McpServer>,
}

/// How a person logs in at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// In a browser, which comes back.
    Browser,
    /// With a code on any device.
    Device,
}

/// A login that has begun.
pub enum Begun {
    /// The URL to open.
    Browser(Url),
    /// The code to enter.
    Device(Box<BegunDevice>),
}

/// Begins the login of the caller at a provider. Without a flow, it happens in a browser, unless the provider only has codes.
pub async fn begin(
    app: &Context,
    identity: &Identity,
    provider: &str,
    redirect: &str,
    flow: Option<Flow>,
) -> Result<Begun, ServiceError> {
    identity.require(Role::Caller)?;
    if flow == Some(Flow::Device) {
        return Ok(Begun::Device(Box::new(begin_device(app, identity, provider).await?)));
    }
    if let Some(page) = login_page(app, identity, provider, redirect).await? {
        return Ok(Begun::Browser(page));
    }
    let (account, begun) = if let Some(id) = provider.strip_prefix("mcp:") {
        begin_at_server(app, identity, id, redirect).await?
    } else {
        let (account, login) = login_at(app, identity, provider).await?;
        let redirect = Url::parse(redirect)
            .map_err(|error| ServiceError::bad_request(format!("invalid redirect URL: {error}")))?;
        match login.begin(&redirect).await {
            Err(OAuthError::NoAuthorizationEndpoint) if flow.is_none() => {
                return Ok(Begun::Device(Box::new(begin_device(app, identity, provider).await?)));
            }
            begun => (account, begun?),
        }
    };
    audit::note(identity, "account.login", provider);
    Ok(Begun::Browser(store(app, identity, Some(account.actor), provider, begun).await?))
}

async fn begin_at_server(
    app: &Context,
    identity: &Identity,
    id: &str,
    redirect: &str,
) -> Result<(AccountId, BegunLogin), ServiceError> {
    let server = mcp_servers::find(app, identity, id).await?;
    let provider = format!("mcp:{id}");
    if server.credentials == CredentialMode::Shared || !providers_of_server(&server).contains(&provider) {
        return Err(ServiceError::not_found("account provider", &provider));
    }
    let account = own_account(identity, &provider)?;
    let user = AccountUser { tenant: account.tenant.clone(), actor: Some(account.actor) };
    let begun = app.mcp_clients().begin_login(&server.id, &user, redirect).await?;
    Ok((account, begun))
}

/// Returns the page on which the caller logs in to this server again, if that is what an account needs.
async fn login_page(
    app: &Context,
    identity: &Identity,
    provider: &str,
    redirect: &str,
) -> Result<Option<Url>, ServiceError> {
    let definition = app.store().accounts().provider(&identity.tenant, provider).await?;
    let Some(exchange) = definition.and_then(|definition| definition.token_exchange) else { return Ok(None) };
    own_account(identity, provider)?;
    let invalid = |error| ServiceError::bad_request(format!("invalid redirect URL: {error}"));
    let mut page = Url::parse(redirect).map_err(invalid)?;
    // The part before the path of the API is the URL of this server.
    let base = page.path().split("/api/").next().unwrap_or_default().to_owned();
    page.set_path(&format!("{base}/login/oidc/{}", exchange.issuer));
    page.query_pairs_mut()
        .clear()
        .append_pair("next", "/ui/accounts")
        .append_pair("tenant", identity.tenant.as_str());
    Ok(Some(page))
}

/// Begins the login to an MCP server that all callers share; returns the URL to open.
pub async fn begin_shared(
    app: &Context,
    identity: &Identity,
    server: &McpServer,
    redirect: &str,
) -> Result<Url, ServiceError> {
    identity.require(Role::Admin)?;
    let user = AccountUser { tenant: server.tenant.clone(), actor: None };
    let begun = app.mcp_clients().begin_login(&server.id, &user, redirect).await?;
    let provider = haft_core::mcp::mcp_provider(server.id.as_str());
    store(app, identity, None, &provider, begun).await
}

async fn store(
    app: &Context,
    identity: &Identity,
    actor: Option<haft_core::id::ActorId>,
    provider: &str,
    begun: BegunLogin,
) -> Result<Url, ServiceError> {
    let login = PendingLogin {
        tenant: identity.tenant.clone(),
        actor,
        provider: provider.to_owned(),
        requested_by: identity.name.to_string(),
        data: begun.data,
        expires_at: app.now() + LOGIN_TIMEOUT,
    };
    match app.store().accounts().begin_login(&begun.state, login).await? {
        PendingLoginStart::Stored => Ok(begun.url),
        PendingLoginStart::TooMany => {
            let message = "too many logins have begun; finish one of them, or retry in ten minutes";
            Err(ServiceError::new(ErrorCode::RateLimited, message))
        }
    }
}

/// Completes a login with its callback, once. The account of a person is completed only by the browser of that person.
pub async fn complete(
    app: &Context,
    browser: Option<&Principal>,
    callback: Callback,
) -> Result<Completed, LoginError> {
    if callback.state.expose().len() > MAX_STATE {
        return Err(OAuthError::UnknownState.into());
    }
    let failed = |error: haft_core::catalog::StoreError| LoginError::Failed(error.into());
    let accounts = app.store().accounts();
    let pending = accounts.pending_login(&callback.state).await.map_err(failed)?;
    let pending = pending.ok_or(OAuthError::UnknownState)?;
    if let Some(actor) = pending.actor {
        let browser = browser.ok_or(LoginError::NotLoggedIn)?;
        let is_same = browser.tenant == pending.tenant
            && browser.actor.as_ref().is_some_and(|acting| acting.id == actor);
        if !is_same {
            // It is used up: somebody may try to give this account to another person.
            accounts.take_login(&callback.state).await.map_err(failed)?;
            return Err(LoginError::OtherPerson);
        }
    }
    if !accounts.take_login(&callback.state).await.map_err(failed)? {
        return Err(OAuthError::UnknownState.into());
    }
    let shared = match pending.actor {
        None => Some(complete_shared(app, &pending, callback).await?),
        Some(actor) => {
            let user = AccountUser { tenant: pending.tenant.clone(), actor: Some(actor) };
            let account = user.account(&pending.provider).ok_or(OAuthError::UnknownState)?;
            let tokens = app.secrets().refresh_tokens();
            let scope = finish_login(app.egress(), &account, tokens, &pending.data, callback).await?;
            connected(app, &account, AccountKind::Oauth, scope).await.map_err(LoginError::Failed)?;
            None
        }
    };
    audit::record_login(app, &pending, browser).await;
    Ok(Completed { provider: pending.provider, shared })
}

async fn complete_shared(
    app: &Context,
    pending: &PendingLogin,
    callback: Callback,
) -> Result<McpServer, LoginError> {
    let id = pending.provider.strip_prefix("mcp:").unwrap_or_default();
    let server = app.store().catalog().mcp_server(&pending.tenant, id).await;
    let server = server.map_err(|error| LoginError::Failed(error.into()))?;
    let server = server.ok_or(OAuthError::UnknownState)?;
    app.mcp_clients().finish_login((&server.tenant, &server.id), &pending.data, callback).await?;
    Ok(server)
}
