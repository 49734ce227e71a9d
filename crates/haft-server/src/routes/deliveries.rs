//! `/webhooks/{id}/deliveries`: what was delivered to a webhook, and what was not.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::id::DeliveryId;
use haft_core::webhook::{Delivery, DeliveryStatus, WebhookEvent};
use haft_store::DeliveryQuery;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::webhooks::{find, send_test};

/// The delivery of one event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView {
    /// The id, which the receiver sees as `webhook-id`.
    id: Uuid,
    webhook_id: Uuid,
    event: WebhookEvent,
    status: DeliveryStatus,
    /// The number of attempts so far.
    attempts: u32,
    /// When it is tried next; `null` if it is not.
    #[schema(required)]
    next_attempt_at: Option<Timestamp>,
    /// When the event happened.
    created_at: Timestamp,
    #[schema(required)]
    attempted_at: Option<Timestamp>,
    /// The HTTP status of the last response.
    #[schema(required)]
    response_status: Option<u16>,
    /// Why the last attempt failed.
    #[schema(required)]
    error: Option<String>,
    /// The body.
    #[schema(value_type = Object, example = json!({"type": "webhook.test", "timestamp": "2026-01-31T12:00:00Z", "data": {}}))]
    payload: Value,
}

impl From<Delivery> for DeliveryView {
    fn from(delivery: Delivery) -> Self {
        let is_pending = delivery.status == DeliveryStatus::Pending;
        Self {
            id: delivery.id.0,
            webhook_id: delivery.webhook.0,
            event: delivery.event,
            status: delivery.status,
            attempts: delivery.attempts,
            next_attempt_at: is_pending.then_some(delivery.due_at),
            created_at: delivery.created_at,
            attempted_at: delivery.attempted_at,
            response_status: delivery.response_status,
            error: delivery.error,
            payload: serde_json::from_str(&delivery.payload).unwrap_or_default(),
        }
    }
}

/// A page of deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    deliveries: Vec<DeliveryView>,
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

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
    let (deliveries, total) = app.store().deliveries(query).await?;
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
    let due = app.store().redeliver(&identity.tenant, webhook.id, parsed).await?;
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
