//! Keeps the logins of people at issuers that exchange tokens, and deletes them when the issuer ends the session.

use std::sync::Arc;

use haft_core::account::{AccountKind, AccountUser};
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::secret::{RefreshTokens as _, SecretError};
use haft_oauth::exchange::IssuedTokens;

use crate::accounts::connected;
use crate::context::Context;
use crate::error::ServiceError;
use crate::issuers::Issuer;
use crate::stored_login::{StoredLogin, grant};

/// Keeps a login, if its issuer may exchange tokens, and connects the accounts of the person that need it.
pub(super) async fn keep(
    app: &Arc<Context>,
    issuer: &Issuer,
    person: ActorId,
    (tokens, session): (Option<&IssuedTokens>, &str),
) -> Result<(), ServiceError> {
    let Some(tokens) = tokens.filter(|_| !issuer.settings.token_exchange.is_empty()) else { return Ok(()) };
    let grant = grant(issuer, person);
    let login = StoredLogin::new(issuer, tokens, session.to_owned());
    let (vault, app) = (app.store().vault().clone(), Arc::clone(app));
    let stored = async {
        let lock = vault.begin(&grant).await?;
        vault.end(&grant, lock.number, Some(&login.to_secret())).await
    };
    stored
        .await
        .map_err(|error| ServiceError::from(StoreError::unavailable("store the login", error.source)))?;
    for tenant in app.access().tenants_of_person(person) {
        for provider in app.store().accounts().providers(&tenant).await? {
            let is_of_issuer =
                provider.token_exchange.is_some_and(|exchange| exchange.issuer == issuer.settings.id);
            let user = AccountUser { tenant: tenant.clone(), actor: Some(person) };
            if let Some(account) = user.account(&provider.name).filter(|_| is_of_issuer) {
                connected(&app, &account, AccountKind::TokenExchange, None).await?;
            }
        }
    }
    Ok(())
}

/// Deletes the login of a person if it is the session that its issuer has ended.
pub(super) async fn end_session(
    app: &Context,
    issuer: &Issuer,
    person: ActorId,
    session: &str,
) -> Result<(), ServiceError> {
    let (grant, vault) = (grant(issuer, person), app.store().vault());
    let work = async {
        let stored = vault.read(&grant).await?;
        if StoredLogin::read(stored, issuer).is_none_or(|login| login.session != session) {
            return Ok(());
        }
        let lock = vault.begin(&grant).await?;
        vault.end(&grant, lock.number, None).await
    };
    work.await.map_err(|error: SecretError| {
        ServiceError::from(StoreError::unavailable("delete the login", error.source))
    })
}
