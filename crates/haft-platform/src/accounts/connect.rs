//! What somebody has connected, and what can be connected.

use haft_core::account::{
    AccountId, AccountKind, AccountProvider, AccountRecord, AccountUser, check_api_key,
};
use haft_core::id::ActorId;
use haft_core::mcp::{CredentialMode, mcp_provider, providers_of_server};
use haft_core::outcome::ErrorCode;
use haft_core::secret::Secret;
use haft_core::token::Role;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Something that an account can be connected at, and the account there.
pub struct Connectable {
    /// The key of the provider.
    pub provider: String,
    /// The name for people.
    pub display_name: String,
    /// How to connect.
    pub help: String,
    pub kind: AccountKind,
    /// Whether calls work without an account.
    pub has_shared: bool,
    pub account: Option<AccountRecord>,
}

/// Returns the account of the caller at a provider; a token without an owner has none.
pub(super) fn own_account(identity: &Identity, provider: &str) -> Result<AccountId, ServiceError> {
    let user = AccountUser::from(&*identity.principal());
    user.account(provider).ok_or_else(no_person)
}

fn no_person() -> ServiceError {
    let message = "the token has no owner, so it has no accounts; log in as a person";
    ServiceError::new(ErrorCode::Forbidden, message)
}

/// Lists what the caller can connect, or what a person of the tenant has connected, for admins.
pub async fn connectable(
    app: &Context,
    identity: &Identity,
    person: Option<ActorId>,
) -> Result<Vec<Connectable>, ServiceError> {
    identity.require(Role::Viewer)?;
    let own = identity.actor.as_ref().map(|actor| actor.id);
    let actor = match person {
        Some(person) if Some(person) != own => {
            identity.require(Role::Admin)?;
            Some(person)
        }
        _ => own,
    };
    let accounts = match actor {
        Some(actor) => app.store().accounts().of_actor(&identity.tenant, actor).await?,
        None => Vec::new(),
    };
    let mut all: Vec<Connectable> = Vec::new();
    for provider in app.store().accounts().providers(&identity.tenant).await? {
        all.push(of_provider(provider));
    }
    for server in app.store().catalog().mcp_servers().await? {
        let key = mcp_provider(server.id.as_str());
        let is_own = server.tenant == identity.tenant && !server.credentials.is_shared();
        if is_own && providers_of_server(&server).contains(&key) {
            all.push(Connectable {
                display_name: server.id.to_string(),
                help: String::new(),
                kind: AccountKind::Oauth,
                has_shared: server.credentials == CredentialMode::PersonOrShared,
                account: None,
                provider: key,
            });
        }
    }
    for account in accounts {
        match all.iter_mut().find(|known| known.provider == account.id.provider) {
            Some(known) => known.account = Some(account),
            // The server no longer needs it; it can still be revoked.
            None => all.push(Connectable {
                provider: account.id.provider.clone(),
                display_name: account.id.provider.clone(),
                help: String::new(),
                kind: account.kind,
                has_shared: false,
                account: Some(account),
            }),
        }
    }
    if person.is_some() {
        all.retain(|known| known.account.is_some());
    }
    Ok(all)
}

fn of_provider(provider: AccountProvider) -> Connectable {
    let kind = provider.kind();
    let AccountProvider { name, display_name, help, shared, .. } = provider;
    Connectable {
        display_name: if display_name.is_empty() { name.clone() } else { display_name },
        provider: name,
        help,
        kind,
        has_shared: shared.is_some(),
        account: None,
    }
}

/// Stores the API key of the caller.
pub async fn put_key(
    app: &Context,
    identity: &Identity,
    provider: &str,
    key: Secret,
) -> Result<(), ServiceError> {
    identity.require(Role::Caller)?;
    let definition = app.store().accounts().provider(&identity.tenant, provider).await?;
    let definition = definition.ok_or_else(|| ServiceError::not_found("account provider", provider))?;
    let account = own_account(identity, provider)?;
    if definition.kind() != AccountKind::ApiKey {
        let message = format!(
            "`{provider}` needs a login, not an API key; use `POST /api/accounts/{provider}/connect`"
        );
        return Err(ServiceError::bad_request(message));
    }
    check_api_key(key.expose())
        .map_err(|why| ServiceError::bad_request(format!("invalid `api_key`: {why}")))?;
    audit::note(identity, "account.connect", provider);
    app.store().accounts().put_key(&account, &key).await.map_err(|error| not_stored(&error))?;
    connected(app, &account, AccountKind::ApiKey, None).await
}

/// Makes an account of a stored value, and lets the calls go on that wait for it.
pub(crate) async fn connected(
    app: &Context,
    account: &AccountId,
    kind: AccountKind,
    scope: Option<String>,
) -> Result<(), ServiceError> {
    app.store().accounts().connected(account, kind, scope).await?;
    app.mcp_clients().account_connected(account).await;
    app.store().approvals().account_connected(account.clone()).await?;
    Ok(())
}

fn not_stored(error: &haft_core::secret::SecretError) -> ServiceError {
    tracing::error!(error = %error.source, "failed to store an account");
    ServiceError::new(ErrorCode::StoreUnavailable, "failed to store the account; retry later")
}

/// Revokes the account of the caller at a provider.
pub async fn revoke(app: &Context, identity: &Identity, provider: &str) -> Result<(), ServiceError> {
    identity.require(Role::Viewer)?;
    let user = AccountUser::from(&*identity.principal());
    let account = user.account(provider).ok_or_else(|| ServiceError::not_found("account", provider))?;
    delete(app, identity, &account).await
}

/// Revokes the account of somebody else, as an admin.
pub async fn revoke_of(
    app: &Context,
    identity: &Identity,
    person: ActorId,
    provider: &str,
) -> Result<(), ServiceError> {
    identity.require(Role::Admin)?;
    let account = AccountId { tenant: identity.tenant.clone(), actor: person, provider: provider.to_owned() };
    delete(app, identity, &account).await
}

async fn delete(app: &Context, identity: &Identity, account: &AccountId) -> Result<(), ServiceError> {
    audit::note(identity, "account.revoke", &account.provider);
    if !app.store().accounts().revoke(account).await? {
        return Err(ServiceError::not_found("account", &account.provider));
    }
    app.mcp_clients().close_person(&account.tenant, account.actor);
    Ok(())
}
