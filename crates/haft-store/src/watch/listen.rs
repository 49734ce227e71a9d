//! Receives the changes of other nodes through PostgreSQL notifications.
//!
//! Notifications that arrive while changes are loaded, or within a short delay, are merged and loaded together: an
//! import of many tools on one node causes a few reloads on the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::approval::Approval;
use haft_core::catalog::{Change, StoreError};
use haft_core::id::ApprovalId;
use sqlx::any::AnyRow;
use sqlx::postgres::PgListener;
use sqlx::{Any, AssertSqlSafe, Transaction};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::notification::ChangeSet;
use crate::engine::{CHANNEL, failed_to};
use crate::rows;
use crate::store::Inner;

/// How long to wait before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// How long further notifications are collected before the changes are loaded.
const BATCH_DELAY: Duration = Duration::from_millis(25);
/// The largest number of rows that one query loads by id.
const IDS_PER_QUERY: usize = 500;

const LISTEN: &str = "listen for changes of other nodes";
const LOAD: &str = "load the changes of another node";

/// Listens until it is stopped.
pub(super) async fn listen(inner: Arc<Inner>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            error = run(&inner) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "lost the connection for change notifications; reconnecting"
                );
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RECONNECT_DELAY) => {}
        }
    }
}

/// The notifications that are not loaded yet.
#[derive(Default)]
struct Inbox {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Default)]
struct Pending {
    changes: ChangeSet,
    /// Notifications may have been missed: everything has to be loaded.
    reload: bool,
}

impl Inbox {
    fn update(&self, change: impl FnOnce(&mut Pending)) {
        change(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.arrived.notify_one();
    }

    fn take(&self) -> Pending {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Receives and loads changes until the connection fails.
async fn run(inner: &Inner) -> StoreError {
    let Some(url) = &inner.database_url else { return StoreError::not_found("setting", "database_url") };
    let mut listener = match PgListener::connect(url.expose()).await {
        Ok(listener) => listener,
        Err(error) => return failed_to(LISTEN)(error),
    };
    if let Err(error) = listener.listen(CHANNEL).await {
        return failed_to(LISTEN)(error);
    }
    let inbox = Inbox::default();
    // Changes before the connection was open caused no notification.
    inbox.update(|pending| pending.reload = true);
    tokio::select! {
        error = receive(inner, &mut listener, &inbox) => error,
        error = load(inner, &inbox) => error,
    }
}

async fn receive(inner: &Inner, listener: &mut PgListener, inbox: &Inbox) -> StoreError {
    loop {
        match listener.try_recv().await {
            Ok(Some(notification)) => {
                inbox.update(|pending| pending.changes.add(notification.payload(), &inner.node));
            }
            // The connection was lost and is open again: notifications may be missing.
            Ok(None) => inbox.update(|pending| pending.reload = true),
            Err(error) => return failed_to(LISTEN)(error),
        }
    }
}

async fn load(inner: &Inner, inbox: &Inbox) -> StoreError {
    loop {
        inbox.arrived.notified().await;
        tokio::time::sleep(BATCH_DELAY).await;
        let Pending { changes, reload } = inbox.take();
        let loaded = if reload { inner.reload().await } else { inner.load_changes(&changes).await };
        if let Err(error) = loaded {
            return error;
        }
    }
}

impl Inner {
    async fn load_changes(&self, changes: &ChangeSet) -> Result<(), StoreError> {
        if changes.tokens {
            self.signal_token_change();
        }
        if changes.queue {
            self.queue_changed.notify_one();
            self.signal_approval_change();
        }
        if !changes.approvals.is_empty() {
            // A denied call has ended; which one is not known here.
            self.runs.signal_check();
        }
        if changes.runs {
            self.runs.signal_change();
        }
        if changes.policies {
            self.signal_policy_change();
        }
        if changes.webhooks {
            self.load_webhooks().await?;
        }
        if self.sink.has_followers() {
            if !changes.approvals.is_empty() {
                self.report_approvals(&changes.approvals).await?;
            }
            for change in &changes.objects {
                self.sink.object_changed(change);
            }
        }
        if changes.bundles.is_empty() && changes.tools.is_empty() && !changes.credentials {
            return Ok(());
        }
        // Serialised with the changes of this node, so that the newest state is announced last.
        let _state = self.state.lock().await;
        if changes.credentials {
            self.open_vault().await?;
        }
        let loaded = self.changed_rows(changes).await.map_err(failed_to(LOAD))?;
        self.announce(&self.mark_missing_built_ins(loaded));
        Ok(())
    }

    /// Reports the approvals that another node has changed, and their calls.
    async fn report_approvals(&self, ids: &BTreeSet<ApprovalId>) -> Result<(), StoreError> {
        let mut tx = self.engine.begin_snapshot().await.map_err(failed_to(LOAD))?;
        let found = self.rows_by_id(&mut tx, "SELECT record FROM approvals", "id", ids).await;
        let found = found.map_err(failed_to(LOAD))?;
        drop(tx);
        for row in &found {
            let approval: Approval = rows::json_column(row, "record").map_err(failed_to(LOAD))?;
            self.sink.approval_changed(&approval);
            if let Some(call) = self.call(&approval.requested_by.tenant, approval.call_id).await? {
                self.sink.call_changed(&call);
            }
        }
        Ok(())
    }

    /// Returns the current state of everything that changed; tools of a new bundle come after it.
    async fn changed_rows(&self, changes: &ChangeSet) -> Result<Vec<Change>, sqlx::Error> {
        let mut loaded = Vec::new();
        let (mut bundles, mut tools) = (changes.bundles.clone(), changes.tools.clone());
        // One state of both: otherwise a tool could be newer than its bundle.
        let mut tx = self.engine.begin_snapshot().await?;
        for row in self.rows_by_id(&mut tx, rows::BUNDLE, "id", &bundles).await? {
            let bundle = rows::bundle(&row)?;
            bundles.remove(&bundle.id);
            loaded.push(Change::Bundle(bundle));
        }
        for row in self.rows_by_id(&mut tx, rows::TOOL, "t.id", &tools).await? {
            let tool = rows::tool(&row)?;
            tools.remove(&tool.id);
            loaded.push(Change::Tool(Box::new(tool)));
        }
        loaded.extend(tools.into_iter().map(Change::ToolGone));
        loaded.extend(bundles.into_iter().map(Change::BundleGone));
        Ok(loaded)
    }

    async fn rows_by_id<T: ToString>(
        &self,
        tx: &mut Transaction<'static, Any>,
        select: &str,
        column: &str,
        ids: impl IntoIterator<Item = T>,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let mut found = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(IDS_PER_QUERY) {
            let sql = format!("{select} WHERE {column} IN {}", self.engine.placeholders(1, chunk.len()));
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for id in chunk {
                query = query.bind(id);
            }
            found.extend(query.fetch_all(&mut **tx).await?);
        }
        Ok(found)
    }
}
