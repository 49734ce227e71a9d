//! The outbox of webhooks: events become rows in the same transaction as the change that they report.
//!
//! Which webhooks there are is kept in memory, so that a call of a tenant without webhooks costs one load of a flag.

pub(crate) mod payload;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalCause};
use haft_core::call::CallRecord;
use haft_core::id::{DeliveryId, WebhookId};
use haft_core::name::TenantId;
use haft_core::run::Run;
use haft_core::webhook::{Webhook, WebhookEvent};
use sqlx::{Any, Sqlite, Transaction};
use tokio::sync::Notify;
use uuid::Uuid;

/// A row of the outbox.
pub(crate) struct NewDelivery {
    pub(crate) id: DeliveryId,
    pub(crate) tenant: TenantId,
    pub(crate) webhook: WebhookId,
    pub(crate) event: WebhookEvent,
    /// What happened: the same thing is delivered to a webhook once.
    pub(crate) subject: String,
    pub(crate) payload: String,
    pub(crate) at: Timestamp,
}

/// The webhooks of all tenants, and a signal that wakes the sender.
#[derive(Default)]
pub(crate) struct Outbox {
    is_used: AtomicBool,
    by_tenant: RwLock<HashMap<TenantId, Arc<[Webhook]>>>,
    /// Signals that there may be deliveries.
    pub(crate) filled: Notify,
}

impl Outbox {
    /// Replaces the webhooks of all tenants.
    pub(crate) fn replace(&self, webhooks: Vec<Webhook>) {
        let mut by_tenant: HashMap<TenantId, Vec<Webhook>> = HashMap::new();
        for webhook in webhooks.into_iter().filter(|webhook| webhook.enabled) {
            by_tenant.entry(webhook.tenant.clone()).or_default().push(webhook);
        }
        let by_tenant: HashMap<_, Arc<[Webhook]>> =
            by_tenant.into_iter().map(|(tenant, webhooks)| (tenant, webhooks.into())).collect();
        self.is_used.store(!by_tenant.is_empty(), Ordering::Release);
        *self.by_tenant.write().unwrap_or_else(PoisonError::into_inner) = by_tenant;
    }

    fn of(&self, tenant: &TenantId) -> Option<Arc<[Webhook]>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.by_tenant.read().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    /// Returns whether a tenant has webhooks for its events.
    pub(crate) fn serves(&self, tenant: &TenantId) -> bool {
        self.of(tenant).is_some()
    }

    /// Returns the deliveries of a call, if it has ended.
    pub(crate) fn of_call(&self, call: &CallRecord) -> Vec<NewDelivery> {
        if !call.status.is_final() {
            return Vec::new();
        }
        let (event, tool) = (WebhookEvent::CallFinished, &call.invocation.tool);
        let selected = self.of(call.tenant()).into_iter().flat_map(|webhooks| {
            let selected = webhooks.iter().filter(|webhook| webhook.selects(event, tool));
            selected.map(|webhook| webhook.id).collect::<Vec<_>>()
        });
        let targets: Vec<WebhookId> = selected.chain(call.invocation.webhook).collect();
        if targets.is_empty() {
            return Vec::new();
        }
        let at = call.finished_at.unwrap_or(call.started_at);
        let payload = payload::body(event, at, &payload::call(call));
        let subject = format!("{} {}", event.as_str(), call.id());
        let new = |webhook| NewDelivery {
            id: DeliveryId(Uuid::now_v7()),
            tenant: call.tenant().clone(),
            webhook,
            event,
            subject: subject.clone(),
            payload: payload.clone(),
            at,
        };
        targets.into_iter().map(new).collect()
    }

    /// Returns the deliveries of a run, if it has ended.
    pub(crate) fn of_run(&self, run: &Run) -> Vec<NewDelivery> {
        if !run.status.is_final() {
            return Vec::new();
        }
        let (event, tenant) = (WebhookEvent::RunFinished, &run.principal.tenant);
        let selected = self.of(tenant).into_iter().flat_map(|webhooks| {
            let selected = webhooks.iter().filter(|webhook| webhook.subscribes(event));
            selected.map(|webhook| webhook.id).collect::<Vec<_>>()
        });
        let targets: Vec<WebhookId> = selected.chain(run.webhook).collect();
        if targets.is_empty() {
            return Vec::new();
        }
        let at = run.finished_at.unwrap_or(run.created_at);
        let payload = payload::body(event, at, &payload::run(run));
        let new = |webhook| NewDelivery {
            id: DeliveryId(Uuid::now_v7()),
            tenant: tenant.clone(),
            webhook,
            event,
            subject: format!("{} {}", event.as_str(), run.id),
            payload: payload.clone(),
            at,
        };
        targets.into_iter().map(new).collect()
    }

    /// Returns the deliveries of an approval that has reached its status.
    pub(crate) fn of_approval(&self, approval: &Approval, at: Timestamp) -> Vec<NewDelivery> {
        let event = WebhookEvent::of_approval(approval.status);
        let tenant = &approval.requested_by.tenant;
        let Some(webhooks) = self.of(tenant) else { return Vec::new() };
        let selected = webhooks.iter().filter(|webhook| webhook.selects(event, &approval.tool));
        // A call that waits for an account may then wait for another one or for an approval, with the same id.
        let subject = match &approval.cause {
            ApprovalCause::Account(_) => {
                format!("{} {} {}", event.as_str(), approval.id, approval.cause.key())
            }
            _ => format!("{} {}", event.as_str(), approval.id),
        };
        let new = |webhook: &Webhook| NewDelivery {
            id: DeliveryId(Uuid::now_v7()),
            tenant: tenant.clone(),
            webhook: webhook.id,
            event,
            subject: subject.clone(),
            payload: payload::body(event, at, &payload::approval(approval)),
            at,
        };
        selected.map(new).collect()
    }

    /// Signals that rows were committed.
    pub(crate) fn signal(&self) {
        self.filled.notify_one();
    }
}

const INSERT: &str = "INSERT INTO webhook_deliveries (id, tenant, webhook_id, event, subject, payload, status, attempts, \
                      not_before, created_at) VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, $7, $7) \
                      ON CONFLICT (webhook_id, subject) DO NOTHING";

/// Binds the columns of a row, whatever the driver.
macro_rules! insert {
    ($tx:expr, $delivery:expr) => {
        sqlx::query(INSERT)
            .bind($delivery.id.to_string())
            .bind($delivery.tenant.to_string())
            .bind($delivery.webhook.to_string())
            .bind($delivery.event.as_str())
            .bind($delivery.subject.clone())
            .bind($delivery.payload.clone())
            .bind($delivery.at.as_microsecond())
            .execute(&mut **$tx)
            .await?
    };
}

/// Adds rows within a transaction.
pub(crate) async fn insert_new(
    tx: &mut Transaction<'static, Any>,
    deliveries: &[NewDelivery],
) -> Result<(), sqlx::Error> {
    for delivery in deliveries {
        insert!(tx, delivery);
    }
    Ok(())
}

/// Adds rows within a transaction of the bulk connection.
pub(crate) async fn insert_into_sqlite(
    tx: &mut Transaction<'static, Sqlite>,
    deliveries: &[NewDelivery],
) -> Result<(), sqlx::Error> {
    for delivery in deliveries {
        insert!(tx, delivery);
    }
    Ok(())
}
