//! Deliveries of webhooks: claimed by a sender, retried, listed.
//!
//! A claim also moves the due time of a row ahead: an attempt whose result this node could not store is made again after
//! that. What a dead node was sending is due at once. So every event is delivered at least once, on whatever node, and only
//! the last claim of a delivery stores its result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::id::{DeliveryId, WebhookId};
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use haft_core::webhook::{Delivery, DeliveryStatus, Webhook, WebhookEvent};
use serde_json::json;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::api;
use crate::claims::{self, Claim, DELIVERIES, holds};
use crate::engine::failed_to;
use crate::outbox::{NewDelivery, insert_new, payload};
use crate::rows;
use crate::vault::{Cipher, webhook_secret_name};
use crate::webhooks::Webhooks;

/// How long a sender waits for a signal before it looks for due deliveries.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long an attempt may take before the delivery is due again.
const ATTEMPT_LEASE: Duration = Duration::from_mins(2);
/// How many deliveries of a webhook may wait. The oldest of more are dropped.
const MAX_PENDING: i64 = 10_000;
/// How many deliveries of a webhook are kept after they ended.
const MAX_ENDED: i64 = 1_000;

const CLAIM: &str = "claim deliveries to webhooks";
const FINISH: &str = "store the result of a delivery";
const READ: &str = "read the deliveries to a webhook";
const COLUMNS: &str = "id, webhook_id, event, payload, status, attempts, not_before, created_at, attempted_at, \
                       response_status, error";

/// A delivery to send now, with what is needed to send it.
#[derive(Debug, Clone)]
pub struct ClaimedDelivery {
    /// The delivery; the attempt is counted.
    pub delivery: Delivery,
    /// The webhook.
    pub webhook: Webhook,
    /// The signing secret.
    pub secret: Secret,
    /// The right to store the result.
    pub claim: Claim,
}

/// A webhook and its secret, or why nothing can be delivered to it.
type Target = Result<(Webhook, Secret), &'static str>;

/// How many deliveries a sender takes.
#[derive(Debug, Clone, Default)]
pub struct DeliveryLimits {
    /// At most this many.
    pub max: usize,
    /// At most this many to one webhook at a time.
    pub per_webhook: usize,
    /// The number of deliveries to each webhook that this sender is sending.
    pub sending: HashMap<WebhookId, usize>,
}

impl DeliveryLimits {
    fn room_for(&self, webhook: WebhookId) -> usize {
        self.per_webhook.saturating_sub(self.sending.get(&webhook).copied().unwrap_or_default())
    }
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryResult {
    /// The delivery.
    pub id: DeliveryId,
    /// The claim that the attempt was made under.
    pub claim: Claim,
    /// The new state.
    pub status: DeliveryStatus,
    /// When it is tried again, if it is pending.
    pub not_before: Timestamp,
    /// The HTTP status of the response.
    pub response_status: Option<u16>,
    /// Why the attempt failed.
    pub error: Option<String>,
}

/// A query for the deliveries of a webhook, newest first.
#[derive(Debug, Clone)]
pub struct DeliveryQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// The webhook.
    pub webhook: WebhookId,
    /// Only deliveries in this state.
    pub status: Option<DeliveryStatus>,
    /// Only deliveries older than this one.
    pub before: Option<DeliveryId>,
    /// The maximum number.
    pub limit: u32,
}

impl Webhooks {
    /// Resolves when there may be deliveries to claim; at the latest after a second.
    pub async fn due(&self) {
        let _ = tokio::time::timeout(POLL_INTERVAL, self.db.outbox.filled.notified()).await;
    }

    /// Claims due deliveries, a few of each webhook, so that a slow receiver does not hold up the others.
    pub async fn claim(&self, limits: DeliveryLimits) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let this = self.clone();
        let work = async move {
            let due_now = format!(", not_before = {}", this.db.now().as_microsecond());
            this.db.free_claims(&DELIVERIES, &due_now, CLAIM).await?;
            let now = this.db.now();
            // Checked without a lock, because usually nothing is due.
            let due = this.due_webhooks(now).await.map_err(failed_to(CLAIM))?;
            let due: Vec<WebhookId> = due.into_iter().filter(|id| limits.room_for(*id) > 0).collect();
            if due.is_empty() {
                return Ok(Vec::new());
            }
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CLAIM))?;
            let mut claimed = Vec::new();
            for webhook in due {
                let max = limits.room_for(webhook).min(limits.max - claimed.len());
                if max == 0 {
                    break;
                }
                let taken = this.claim_of_webhook(&mut tx, webhook, max, now).await;
                claimed.extend(taken.map_err(failed_to(CLAIM))?);
            }
            tx.commit().await.map_err(failed_to(CLAIM))?;
            this.with_targets(claimed).await
        };
        self.db.complete(work).await
    }

    /// Stores the result of an attempt. [`StoreError::ClaimLost`] if the delivery was claimed again or redelivered since.
    pub async fn finish(&self, result: DeliveryResult) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let sql = AssertSqlSafe(format!(
                "UPDATE webhook_deliveries SET status = $1, not_before = $2, response_status = $3, error = $4, node = '' \
                 WHERE id = $5 AND {}",
                holds(6)
            ));
            let query = sqlx::query(sql)
                .bind(result.status.as_str())
                .bind(result.not_before.as_microsecond())
                .bind(result.response_status.map(i64::from))
                // PostgreSQL rejects NUL.
                .bind(result.error.as_ref().map(|error| error.replace('\0', "\u{fffd}")))
                .bind(result.id.to_string());
            let done = result.claim.bind(query).execute(&this.db.engine.pool).await;
            claims::written(&done.map_err(failed_to(FINISH))?)
        };
        self.db.complete(work).await
    }

    /// Adds a test event, already claimed.
    pub async fn begin_test_delivery(
        &self,
        tenant: &TenantId,
        webhook: WebhookId,
    ) -> Result<ClaimedDelivery, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let (id, now) = (DeliveryId(Uuid::now_v7()), this.db.now());
            let event = WebhookEvent::Test;
            let new = NewDelivery {
                id,
                tenant: tenant.clone(),
                webhook,
                event,
                subject: format!("{} {id}", event.as_str()),
                payload: payload::body(event, now, &json!({"webhook_id": webhook})),
                at: now,
            };
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CLAIM))?;
            insert_new(&mut tx, &[new]).await.map_err(failed_to(CLAIM))?;
            let claim = this.claim_delivery(&mut tx, &id, 1, now).await.map_err(failed_to(CLAIM))?;
            tx.commit().await.map_err(failed_to(CLAIM))?;
            let delivery = this.delivery(tenant, webhook, id).await?;
            let claimed = this.with_targets(vec![(delivery, claim)]).await?.pop();
            claimed.ok_or_else(|| StoreError::Conflict("the webhook is disabled; enable it first".to_owned()))
        };
        self.db.complete(work).await
    }

    /// Makes a delivery due again, with all its attempts.
    pub async fn redeliver(
        &self,
        tenant: &TenantId,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<Delivery, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tenant = &tenant;
            let sql = "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, not_before = $1, error = NULL, \
                       response_status = NULL, node = '', fence = fence + 1 WHERE tenant = $2 AND webhook_id = $3 AND id = $4";
            let done = sqlx::query(sql)
                .bind(this.db.now().as_microsecond())
                .bind(tenant.as_str())
                .bind(webhook.to_string())
                .bind(id.to_string())
                .execute(&this.db.engine.pool)
                .await
                .map_err(failed_to(FINISH))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("delivery", id));
            }
            this.db.outbox.signal();
            this.delivery(tenant, webhook, id).await
        };
        self.db.complete(work).await
    }

    /// Lists deliveries, and how many match.
    pub async fn deliveries(&self, query: DeliveryQuery) -> Result<(Vec<Delivery>, u64), StoreError> {
        self.read_deliveries(&query).await.map_err(failed_to(READ))
    }

    /// Drops the oldest deliveries of webhooks that have too many; returns how many were still pending.
    pub async fn trim_deliveries(&self) -> Result<u64, StoreError> {
        let action = "remove deliveries to webhooks";
        let this = self.clone();
        let work = async move {
            let mut dropped = 0;
            for (condition, max) in [("status = 'pending'", MAX_PENDING), ("status <> 'pending'", MAX_ENDED)]
            {
                let sql = AssertSqlSafe(format!(
                    "SELECT webhook_id FROM webhook_deliveries WHERE {condition} GROUP BY webhook_id HAVING COUNT(*) > $1"
                ));
                for row in sqlx::query(sql).bind(max).fetch_all(&this.db.engine.pool).await? {
                    let webhook: &str = row.try_get(0)?;
                    let sql = AssertSqlSafe(format!(
                        "DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND {condition} AND id <= \
                         (SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND {condition} \
                         ORDER BY id DESC LIMIT 1 OFFSET $2)"
                    ));
                    let done = sqlx::query(sql).bind(webhook).bind(max).execute(&this.db.engine.pool).await?;
                    if max == MAX_PENDING {
                        tracing::warn!(
                            webhook,
                            dropped = done.rows_affected(),
                            "dropped the oldest deliveries: too many wait for this webhook"
                        );
                        dropped += done.rows_affected();
                    }
                }
            }
            Ok(dropped)
        };
        self.db.complete_query(action, work).await
    }
}

impl Webhooks {
    /// Returns the webhooks with due deliveries.
    async fn due_webhooks(&self, now: Timestamp) -> Result<Vec<WebhookId>, sqlx::Error> {
        let sql = "SELECT DISTINCT webhook_id FROM webhook_deliveries WHERE status = 'pending' AND not_before <= $1";
        let found = sqlx::query(sql).bind(now.as_microsecond()).fetch_all(&self.db.engine.pool).await?;
        found.iter().map(|row| rows::parse_column(row, "webhook_id")).collect()
    }

    async fn claim_of_webhook(
        &self,
        tx: &mut Transaction<'static, Any>,
        webhook: WebhookId,
        max: usize,
        now: Timestamp,
    ) -> Result<Vec<(Delivery, Claim)>, sqlx::Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhook_deliveries WHERE status = 'pending' AND webhook_id = $1 AND not_before <= $2 \
             ORDER BY not_before LIMIT {max} {}",
            self.db.engine.skip_locked()
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(webhook.to_string()).bind(now.as_microsecond());
        let found = found.fetch_all(&mut **tx).await?;
        let mut claimed = Vec::with_capacity(found.len());
        for row in &found {
            let mut delivery = delivery(row)?;
            delivery.attempts += 1;
            delivery.attempted_at = Some(now);
            let claim = self.claim_delivery(tx, &delivery.id, delivery.attempts, now).await?;
            claimed.push((delivery, claim));
        }
        Ok(claimed)
    }

    async fn claim_delivery(
        &self,
        tx: &mut Transaction<'static, Any>,
        id: &DeliveryId,
        attempts: u32,
        now: Timestamp,
    ) -> Result<Claim, sqlx::Error> {
        let sql = DELIVERIES.claim(", attempts = $2, not_before = $3, attempted_at = $4", "id = $5");
        let row = sqlx::query(sql)
            .bind(&self.db.node)
            .bind(i64::from(attempts))
            .bind((now + ATTEMPT_LEASE).as_microsecond())
            .bind(now.as_microsecond())
            .bind(id.to_string())
            .fetch_one(&mut **tx)
            .await?;
        self.db.claimed(&row)
    }

    /// Adds the webhook and its secret to each delivery. One that cannot be sent ends as failed.
    async fn with_targets(
        &self,
        claimed: Vec<(Delivery, Claim)>,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let candidates =
            self.vault.candidates().await.map_err(|reason| StoreError::unavailable(CLAIM, reason))?;
        let mut targets: HashMap<WebhookId, Target> = HashMap::new();
        let mut ready = Vec::with_capacity(claimed.len());
        for (delivery, claim) in claimed {
            let target = match targets.entry(delivery.webhook) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.target(delivery.webhook, &candidates).await?),
            };
            match target {
                Ok((webhook, secret)) => {
                    let (webhook, secret) = (webhook.clone(), secret.clone());
                    ready.push(ClaimedDelivery { delivery, webhook, secret, claim });
                }
                Err(reason) => self.fail_delivery(&delivery, claim, reason).await?,
            }
        }
        Ok(ready)
    }

    /// Returns a webhook and its secret, or why nothing can be delivered to it.
    async fn target(&self, id: WebhookId, keys: &[Cipher]) -> Result<Target, StoreError> {
        let found = self.webhook_with_seal(id).await.map_err(failed_to(CLAIM))?;
        Ok(match found {
            None => Err("the webhook was deleted"),
            Some((webhook, _)) if !webhook.enabled => Err("the webhook is disabled"),
            Some((webhook, sealed)) => {
                let name = webhook_secret_name(&id.to_string());
                let tenant = webhook.tenant.as_str();
                let secret = keys.iter().find_map(|key| key.open(tenant, &name, &sealed).ok());
                secret.map(|secret| (webhook, secret)).ok_or("the secret cannot be decrypted")
            }
        })
    }

    async fn fail_delivery(&self, delivery: &Delivery, claim: Claim, reason: &str) -> Result<(), StoreError> {
        let result = DeliveryResult {
            id: delivery.id,
            claim,
            status: DeliveryStatus::Failed,
            not_before: delivery.not_before,
            response_status: None,
            error: Some(reason.to_owned()),
        };
        match self.finish(result).await {
            // Whoever has it now finds the same.
            Err(StoreError::ClaimLost) => Ok(()),
            finished => finished,
        }
    }

    async fn webhook_with_seal(&self, id: WebhookId) -> Result<Option<(Webhook, String)>, sqlx::Error> {
        let sql = "SELECT id, tenant, scope, target, enabled, created_at, modified_at, sealed FROM webhooks WHERE id = $1";
        let found = sqlx::query(sql).bind(id.to_string()).fetch_optional(&self.db.engine.pool).await?;
        found.map(|row| Ok((api::webhook(&row)?, row.try_get("sealed")?))).transpose()
    }

    async fn delivery(
        &self,
        tenant: &TenantId,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<Delivery, StoreError> {
        let sql = AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM webhook_deliveries WHERE tenant = $1 AND webhook_id = $2 AND id = $3"
        ));
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(webhook.to_string()).bind(id.to_string());
        let found = found.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        let found = found.ok_or_else(|| StoreError::not_found("delivery", id))?;
        delivery(&found).map_err(failed_to(READ))
    }

    async fn read_deliveries(&self, query: &DeliveryQuery) -> Result<(Vec<Delivery>, u64), sqlx::Error> {
        let status = query.status.map(DeliveryStatus::as_str).unwrap_or_default();
        let before = query.before.map_or_else(|| "g".to_owned(), |id| id.to_string());
        let matching =
            "FROM webhook_deliveries WHERE tenant = $1 AND webhook_id = $2 AND ($3 = '' OR status = $3)";
        let (tenant, webhook) = (query.tenant.to_string(), query.webhook.to_string());
        let bind = |sql| sqlx::query(sql).bind(tenant.clone()).bind(webhook.clone()).bind(status);
        let count = AssertSqlSafe(format!("SELECT COUNT(*) {matching}"));
        let total: i64 = bind(count).fetch_one(&self.db.engine.pool).await?.try_get(0)?;
        let select =
            AssertSqlSafe(format!("SELECT {COLUMNS} {matching} AND id < $4 ORDER BY id DESC LIMIT $5"));
        let found = bind(select).bind(before).bind(i64::from(query.limit));
        let found = found.fetch_all(&self.db.engine.pool).await?;
        let deliveries = found.iter().map(delivery).collect::<Result<_, _>>()?;
        Ok((deliveries, u64::try_from(total).unwrap_or_default()))
    }
}

fn delivery(row: &AnyRow) -> Result<Delivery, sqlx::Error> {
    let unknown = |column: &'static str| move || sqlx::Error::Decode(format!("invalid `{column}`").into());
    let number = |column| -> Result<Option<i64>, sqlx::Error> { row.try_get(column) };
    Ok(Delivery {
        id: rows::parse_column(row, "id")?,
        webhook: rows::parse_column(row, "webhook_id")?,
        event: WebhookEvent::parse(row.try_get("event")?).ok_or_else(unknown("event"))?,
        payload: row.try_get("payload")?,
        status: DeliveryStatus::parse(row.try_get("status")?).ok_or_else(unknown("status"))?,
        attempts: u32::try_from(number("attempts")?.unwrap_or_default()).unwrap_or_default(),
        not_before: rows::timestamp(row, "not_before")?,
        created_at: rows::timestamp(row, "created_at")?,
        attempted_at: rows::optional_timestamp(row, "attempted_at")?,
        response_status: number("response_status")?.and_then(|status| u16::try_from(status).ok()),
        error: row.try_get("error")?,
    })
}
