//! `/webhooks`: where events are delivered.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::webhook::{NewWebhookBody, WebhookList, WebhookPatch, WebhookView, WebhookWithSecret};
use haft_core::token::Role;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::webhooks::{self, WebhookFields, WebhookUpdate};

/// List the webhooks of the tenant, without their secrets.
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(PageParams), responses((status = 200, body = Success<WebhookList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("webhooks")?;
    let all = app.store().webhooks().list(&identity.tenant).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |webhook| webhook.id.to_string());
    let webhooks = selected.iter().map(WebhookView::from).collect();
    Ok(success(WebhookList { webhooks, total, next_page_token }).into_response())
}

/// Create a webhook; only this response contains its signing secret.
#[utoipa::path(
    post, path = "/webhooks", tag = "webhooks", request_body = NewWebhookBody,
    responses((status = 201, body = Success<WebhookWithSecret>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let NewWebhookBody { url, events, tools, enabled } = body.json()?;
    let fields = WebhookFields { url, events, tools, enabled };
    let (webhook, secret) = webhooks::create(&app, &identity, fields).await?;
    let secret = Some(secret.secret().expose().to_owned());
    Ok(created(WebhookWithSecret { webhook: WebhookView::from(&webhook), secret }))
}

/// Return one webhook, without its secret.
#[utoipa::path(
    get, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<WebhookView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = webhooks::find(&app, &identity, &id).await?;
    Ok(success(WebhookView::from(&webhook)).into_response())
}

/// Change a webhook.
#[utoipa::path(
    patch, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)), request_body = WebhookPatch,
    responses((status = 200, body = Success<WebhookWithSecret>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let old = webhooks::find(&app, &identity, &id).await?;
    let WebhookPatch { url, events, tools, enabled, rotate_secret } = body.json()?;
    let change = WebhookUpdate { url, events, tools, enabled, rotate_secret };
    let (changed, secret) = webhooks::update(&app, &identity, &old, change).await?;
    let secret = secret.map(|secret| secret.secret().expose().to_owned());
    Ok(success(WebhookWithSecret { webhook: WebhookView::from(&changed), secret }).into_response())
}

/// Delete a webhook and its deliveries.
#[utoipa::path(
    delete, path = "/webhooks/{id}", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    webhooks::delete(&app, &identity, &id).await?;
    Ok(reply::message("Webhook deleted"))
}
