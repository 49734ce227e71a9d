//! Sends one delivery.

use std::time::Duration;

use bytes::Bytes;
use haft_core::backoff::Schedule;
use haft_core::catalog::StoreError;
use haft_core::id::WebhookId;
use haft_core::name::TenantId;
use haft_core::problem::excerpt;
use haft_core::webhook::{Delivery, DeliveryStatus};
use haft_executors::egress::{OutgoingRequest, SendError};
use haft_store::{ClaimedDelivery, DeliveryResult};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use super::signature::SigningSecret;
use crate::context::Context;
use crate::error::ServiceError;

/// The longest URL, in bytes.
const MAX_URL_BYTES: usize = 2048;
/// The longest stored error, in characters.
const MAX_ERROR: usize = 500;
/// Redirects are not followed: the receiver of a redirect was never configured.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
/// The receiver says that it no longer wants events.
const GONE: u16 = 410;
const USER_AGENT: &str = concat!("haft/", env!("CARGO_PKG_VERSION"));

/// What became of an attempt.
struct Attempt {
    status: Option<u16>,
    error: Option<String>,
    /// Whether another attempt may succeed.
    retryable: bool,
}

impl Attempt {
    fn failed(error: impl Into<String>, retryable: bool) -> Self {
        Self { status: None, error: Some(excerpt(&error.into(), MAX_ERROR)), retryable }
    }
}

/// Checks the URL of a webhook.
pub fn check_url(app: &Context, field: &str, text: &str) -> Result<Url, ServiceError> {
    let invalid = |why: String| ServiceError::bad_request(format!("invalid `{field}`: {why}"));
    if text.len() > MAX_URL_BYTES {
        return Err(invalid(format!("the URL exceeds the limit of {MAX_URL_BYTES} bytes")));
    }
    let shown = excerpt(text, 100);
    let url = Url::parse(text).map_err(|error| invalid(format!("`{shown}` is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid(format!("`{shown}`; expected an `http` or `https` URL")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("a URL with a user name or password; deliveries are signed instead".to_owned()));
    }
    app.egress().check(&url).map_err(|error| invalid(error.to_string()))?;
    Ok(url)
}

/// Sends a delivery and stores the result; a failed one is tried again later.
pub(super) async fn send(app: &Context, claimed: &ClaimedDelivery) {
    let attempt = attempt(app, claimed).await;
    let delivery = &claimed.delivery;
    let result = result(app, claimed, &attempt);
    if result.status == DeliveryStatus::Failed {
        let error = attempt.error.as_deref().unwrap_or_default();
        tracing::warn!(webhook = %delivery.webhook, delivery = %delivery.id, error, "delivery to a webhook failed for good");
    }
    match app.store().webhooks().finish(result).await {
        Ok(()) => {}
        Err(StoreError::ClaimLost) => {
            tracing::warn!(delivery = %delivery.id, "the delivery was claimed again meanwhile; this result was dropped");
        }
        Err(error) => {
            // It is due again when the time of the attempt is over, so the receiver may get it twice.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot store the result of a delivery"
            );
        }
    }
}

/// Sends a test event now; returns the delivery with its result.
pub async fn send_test(app: &Context, tenant: &TenantId, id: WebhookId) -> Result<Delivery, ServiceError> {
    let claimed = app.store().webhooks().begin_test_delivery(tenant, id).await?;
    let attempt = attempt(app, &claimed).await;
    let status = if attempt.error.is_none() { DeliveryStatus::Delivered } else { DeliveryStatus::Failed };
    let mut delivery = claimed.delivery;
    (delivery.status, delivery.error) = (status, attempt.error);
    delivery.response_status = attempt.status;
    let result = DeliveryResult {
        id: delivery.id,
        claim: claimed.claim,
        status,
        not_before: delivery.not_before,
        response_status: delivery.response_status,
        error: delivery.error.clone(),
    };
    app.store().webhooks().finish(result).await?;
    Ok(delivery)
}

fn result(app: &Context, claimed: &ClaimedDelivery, attempt: &Attempt) -> DeliveryResult {
    let delivery = &claimed.delivery;
    let (status, not_before) = match (&attempt.error, next_delay(app, delivery.attempts)) {
        (None, _) => (DeliveryStatus::Delivered, delivery.not_before),
        (Some(_), Some(delay)) if attempt.retryable => {
            let not_before = app.now().checked_add(delay).unwrap_or(delivery.not_before);
            (DeliveryStatus::Pending, not_before)
        }
        (Some(_), _) => (DeliveryStatus::Failed, delivery.not_before),
    };
    let (response_status, error) = (attempt.status, attempt.error.clone());
    let claim = claimed.claim.clone();
    DeliveryResult { id: delivery.id, claim, status, not_before, response_status, error }
}

/// Returns how long to wait after a number of attempts; `None` after the last one.
fn next_delay(app: &Context, attempts: u32) -> Option<Duration> {
    let schedule = Schedule::new(&app.settings().webhooks.retry_delays, 0.1);
    schedule.wait(attempts.checked_sub(1)?, haft_runtime::retry::random())
}

async fn attempt(app: &Context, claimed: &ClaimedDelivery) -> Attempt {
    let delivery = &claimed.delivery;
    let Ok(url) = Url::parse(&claimed.webhook.target.url) else {
        return Attempt::failed("the URL is invalid", false);
    };
    let Some(headers) = headers(app, claimed) else {
        return Attempt::failed("the signing secret is invalid; rotate it", false);
    };
    let request = OutgoingRequest {
        method: Method::POST,
        url,
        headers,
        body: Some(Bytes::from(delivery.payload.clone())),
        accepted_statuses: REDIRECTS.to_vec(),
    };
    let timeout = app.settings().webhooks.timeout;
    match tokio::time::timeout(timeout, app.egress().send(request)).await {
        Err(_) => Attempt::failed(format!("no response within {} s", timeout.as_secs_f32()), true),
        Ok(Err(SendError::Denied(denied))) => Attempt::failed(denied.to_string(), false),
        Ok(Err(SendError::Connect(reason))) => Attempt::failed(format!("cannot connect: {reason}"), true),
        Ok(Err(SendError::Disconnected(reason) | SendError::Redirect(reason))) => {
            Attempt::failed(reason, true)
        }
        // The body of the response is not read.
        Ok(Ok(response)) => {
            let status = response.status().as_u16();
            let error = (!response.status().is_success()).then(|| match status {
                status if REDIRECTS.contains(&status) => {
                    format!("the receiver responded with the redirect {status}, which is not followed")
                }
                status => format!("the receiver responded with status {status}"),
            });
            Attempt { status: Some(status), error, retryable: status != GONE }
        }
    }
}

fn headers(app: &Context, claimed: &ClaimedDelivery) -> Option<HeaderMap> {
    let id = claimed.delivery.id.to_string();
    let timestamp = app.now().as_second();
    let secret = SigningSecret::stored(claimed.secret.clone());
    let signature = secret.sign(&id, timestamp, &claimed.delivery.payload)?;
    let text = |value: &str| HeaderValue::from_str(value).ok();
    Some(HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        (HeaderName::from_static("webhook-id"), text(&id)?),
        (HeaderName::from_static("webhook-timestamp"), timestamp.into()),
        (HeaderName::from_static("webhook-signature"), text(&signature)?),
    ]))
}
