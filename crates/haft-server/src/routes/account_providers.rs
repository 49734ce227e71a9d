//! `/account-providers`: where people can connect accounts.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use haft_api::account::{AccountHolders, AccountProvider, AccountProviderBody, AccountProviderList};

use crate::actor_view::ActorNames;
use crate::authentication::Caller;
use crate::body::Body;
use crate::browser;
use crate::error::{ApiError, ErrorBody};
use crate::reply::{self, Message, Success, success};
use crate::routes::accounts::CALLBACK;
use haft_platform::{Installation, accounts};

/// List the providers of accounts that admins have defined.
#[utoipa::path(
    get, path = "/account-providers", tag = "accounts",
    responses((status = 200, body = Success<AccountProviderList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let providers = accounts::providers(&app, &identity).await?;
    let redirect_uri = format!("{}{CALLBACK}", browser::own_url(&app, &headers));
    Ok(success(AccountProviderList { providers, redirect_uri }).into_response())
}

/// List who has an account at a provider, for admins: whose tools would fail without it.
#[utoipa::path(
    get, path = "/account-providers/{name}/accounts", tag = "accounts",
    params(("name" = String, Path, example = "github")),
    responses(
        (status = 200, body = Success<AccountHolders>),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn holders(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let (holders, total) = accounts::holders(&app, &identity, &name).await?;
    let names = ActorNames::of(&app, holders.clone()).await?;
    let actors = holders.into_iter().filter_map(|id| names.get(id)).collect();
    Ok(success(AccountHolders { actors, total }).into_response())
}

/// Define a provider of accounts, or replace it. Accounts are revoked if its OAuth client changes.
#[utoipa::path(
    put, path = "/account-providers/{name}", tag = "accounts",
    params(("name" = String, Path, example = "github")), request_body = AccountProviderBody,
    responses((status = 200, body = Success<AccountProvider>))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let AccountProviderBody { display_name, help, shared, oauth, token_exchange } = body.json()?;
    let provider = AccountProvider { name, display_name, help, shared, oauth, token_exchange };
    Ok(success(accounts::put_provider(&app, &identity, provider).await?).into_response())
}

/// Delete a provider and all accounts there. Calls that wait for an account there fail.
#[utoipa::path(
    delete, path = "/account-providers/{name}", tag = "accounts",
    params(("name" = String, Path, example = "github")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    accounts::delete_provider(&app, &identity, &name).await?;
    Ok(reply::message(format!("Account provider '{name}' deleted")))
}
