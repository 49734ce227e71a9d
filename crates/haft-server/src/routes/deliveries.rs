//! `/webhooks/{id}/deliveries`: what was delivered to a webhook, and what was not.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::webhook::{DeliveryList, DeliveryView};
use haft_core::id::DeliveryId;
use haft_core::webhook::DeliveryStatus;
use haft_store::DeliveryQuery;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::webhooks::{find, send_test};

/// List the deliveries to a webhook, newest first. Those that ended are kept for a week, at most 1,000.
#[utoipa::path(
    get, path = "/webhooks/{id}/deliveries", tag = "webhooks",
    params(("id" = Uuid, Path), ("status" = Option<DeliveryStatus>, Query, description = "Only deliveries in this state"), PageParams),
    responses((status = 200, body = Success<DeliveryList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let webhook = find(&app, &identity, &id).await?;
    let page = params.page("deliveries")?;
    let query = DeliveryQuery {
        tenant: identity.tenant.clone(),
        webhook: webhook.id,
        status: params.choice("status", DeliveryStatus::parse, "`pending`, `delivered`, `failed`")?,
        before: page.after()?,
        limit: page.size,
    };
    let (deliveries, total) = app.store().webhooks().deliveries(query).await?;
    let next_page_token = page.token_after(&deliveries, page.size, |delivery| delivery.id.to_string());
    let deliveries = deliveries.into_iter().map(DeliveryView::from).collect();
    Ok(success(DeliveryList { deliveries, total, next_page_token }).into_response())
}

/// Deliver an event again, with the same `webhook-id`.
#[utoipa::path(
    post, path = "/webhooks/{id}/deliveries/{delivery_id}/redeliver", tag = "webhooks",
    params(("id" = Uuid, Path), ("delivery_id" = Uuid, Path)),
    responses((status = 200, body = Success<DeliveryView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn redeliver(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let webhook = find(&app, &identity, &id).await?;
    let missing = || ApiError::not_found("delivery", &delivery);
    let parsed: DeliveryId = delivery.parse().map_err(|_| missing())?;
    let due = app.store().webhooks().redeliver(&identity.tenant, webhook.id, parsed).await?;
    audit::note(&identity, "webhook.redeliver", &delivery);
    Ok(success(DeliveryView::from(due)).into_response())
}

/// Deliver a test event now, once, and return the result.
#[utoipa::path(
    post, path = "/webhooks/{id}/test", tag = "webhooks", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<DeliveryView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn test(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = find(&app, &identity, &id).await?;
    audit::note(&identity, "webhook.test", &webhook.target.url);
    let delivery = send_test(&app, &identity.tenant, webhook.id).await?;
    Ok(success(DeliveryView::from(delivery)).into_response())
}
