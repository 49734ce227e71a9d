//! Takes due deliveries from the outbox and sends them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::id::WebhookId;
use haft_store::DeliveryLimits;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::sender;
use crate::context::Context;

/// How many deliveries are sent at once.
const MAX_SENDING: usize = 32;
/// How many of them to one webhook.
const MAX_PER_WEBHOOK: usize = 4;
/// How long to wait after a failure of the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often webhooks with too many deliveries are looked for.
const TRIM_INTERVAL: Duration = Duration::from_mins(1);

/// The deliveries that are being sent.
#[derive(Default)]
struct Sending {
    by_webhook: Mutex<HashMap<WebhookId, usize>>,
    /// Signals that one has ended.
    ended: Notify,
}

impl Sending {
    fn begin(&self, webhook: WebhookId) {
        *self.by_webhook.lock().unwrap_or_else(PoisonError::into_inner).entry(webhook).or_default() += 1;
    }

    fn end(&self, webhook: WebhookId) {
        let mut sending = self.by_webhook.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = sending.get_mut(&webhook) {
            *count -= 1;
            if *count == 0 {
                sending.remove(&webhook);
            }
        }
        drop(sending);
        self.ended.notify_one();
    }

    fn limits(&self) -> DeliveryLimits {
        let sending = self.by_webhook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let max = MAX_SENDING.saturating_sub(sending.values().sum());
        DeliveryLimits { max, per_webhook: MAX_PER_WEBHOOK, sending }
    }
}

/// Delivers events until `stop` is cancelled, and then until those have ended that are being sent.
pub async fn deliver(app: Arc<Context>, stop: CancellationToken) {
    let (sending, tasks) = (Arc::new(Sending::default()), TaskTracker::new());
    let mut trimmed = Instant::now();
    while !stop.is_cancelled() {
        let limits = sending.limits();
        let is_full = limits.max == 0;
        let claimed = if is_full { Ok(Vec::new()) } else { app.store().webhooks().claim(limits).await };
        let claimed = match claimed {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read the outbox of webhooks"
                );
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                }
                continue;
            }
        };
        if claimed.is_empty() {
            tokio::select! {
                () = stop.cancelled() => {}
                () = sending.ended.notified() => {}
                () = app.store().webhooks().due(), if !is_full => {}
            }
        }
        for delivery in claimed {
            let webhook = delivery.webhook.id;
            sending.begin(webhook);
            let (app, sending) = (Arc::clone(&app), Arc::clone(&sending));
            tasks.spawn(async move {
                sender::send(&app, &delivery).await;
                sending.end(webhook);
            });
        }
        if trimmed.elapsed() > TRIM_INTERVAL {
            trimmed = Instant::now();
            if let Err(error) = app.store().webhooks().trim_deliveries().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove old deliveries");
            }
        }
    }
    tasks.close();
    tasks.wait().await;
}
