//! `/applications`: the applications that people have connected, and those that admins create.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::application::{
    ApplicationClientList, ApplicationClientView, ApplicationList, ApplicationView, CreatedApplicationClient,
    NewApplicationClient,
};
use haft_core::application::ClientRecord;

use crate::actor_view::ActorNames;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::applications::{self, Application, NewClient};

/// List connected applications: those of the tenant for admins, their own for other people.
#[utoipa::path(
    get, path = "/applications", tag = "applications",
    params(
        PageParams,
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
        ("actor" = Option<String>, Query, description = "`me`, or the id of the person who connected them"),
    ),
    responses((status = 200, body = Success<ApplicationList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("applications")?;
    let all = applications::list(&app, &identity, params.get("tenant"), params.get("actor")).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |found| found.token.id.to_string());
    let names = ActorNames::load(&app, selected.iter().map(|found| &found.token)).await?;
    let applications = selected.into_iter().map(|found| view(&app, found, &names)).collect();
    Ok(success(ApplicationList { applications, total, next_page_token }).into_response())
}

/// Get a connected application.
#[utoipa::path(
    get, path = "/applications/{id}", tag = "applications", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ApplicationView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let found = applications::find(&app, &identity, &id).await?;
    let names = ActorNames::load(&app, [&found.token]).await?;
    Ok(success(view(&app, found, &names)).into_response())
}

/// Disconnect an application; its tokens stop working immediately, and its streams end.
#[utoipa::path(
    delete, path = "/applications/{id}", tag = "applications", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    applications::delete(&app, &identity, &id).await?;
    Ok(reply::message("Application disconnected"))
}

/// List the applications that admins of the tenant have created.
#[utoipa::path(
    get, path = "/application-clients", tag = "applications",
    params(("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default")),
    responses((status = 200, body = Success<ApplicationClientList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list_clients(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let found = applications::list_clients(&app, &identity, params.get("tenant")).await?;
    let clients = found.into_iter().map(client_view).collect();
    Ok(success(ApplicationClientList { clients }).into_response())
}

/// Create an application; only this response contains its secret. Applications that describe or register themselves need
/// no admin.
#[utoipa::path(
    post, path = "/application-clients", tag = "applications", request_body = NewApplicationClient,
    responses(
        (status = 201, body = Success<CreatedApplicationClient>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn create_client(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(haft_core::token::Role::Admin)?;
    let NewApplicationClient { name, redirect_uris, confidential, tenant } = body.json()?;
    let new = NewClient { name, redirect_uris, confidential, tenant };
    let (record, secret) = applications::create_client(&app, &identity, new).await?;
    let client_secret = secret.map(|secret| secret.expose().to_owned());
    Ok(created(CreatedApplicationClient { client: client_view(record), client_secret }))
}

/// Delete an application that an admin created; it is disconnected from everybody.
#[utoipa::path(
    delete, path = "/application-clients/{id}", tag = "applications",
    params(
        ("id" = String, Path, description = "The `client_id`"),
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete_client(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    applications::delete_client(&app, &identity, &id, params.get("tenant")).await?;
    Ok(reply::message("Application deleted"))
}

fn view(app: &Installation, found: Application, names: &ActorNames) -> ApplicationView {
    let Application { token, grant } = found;
    ApplicationView {
        id: token.id.0,
        name: token.name,
        client_id: grant.client_id,
        client_host: grant.client_host,
        destination: grant.destination,
        tenant: token.tenant.to_string(),
        role: token.role,
        tools: token.tools.rules(),
        created_at: token.created_at,
        expires_at: token.expires_at,
        idle_until: grant.refresh.map(|refresh| refresh.expires_at),
        last_used_at: token.last_used_at.max(app.access().last_use(token.id)),
        actor: token.actor.and_then(|actor| names.get(actor)),
    }
}

fn client_view(record: ClientRecord) -> ApplicationClientView {
    ApplicationClientView {
        client_id: record.id,
        name: record.name,
        tenant: record.tenant.map(|tenant| tenant.to_string()).unwrap_or_default(),
        redirect_uris: record.redirect_uris,
        confidential: record.secret_hash.is_some(),
        created_at: record.created_at,
        last_connected_at: record.used_at,
    }
}
