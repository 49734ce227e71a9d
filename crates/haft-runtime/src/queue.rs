//! Runs the calls of the durable queue on this node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::call::CallRecord;
use haft_core::ledger::{CallQueue, ClaimLimits};
use haft_core::name::TenantId;
use haft_core::principal::Principal;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::pipeline::{ClaimedCall, Pipeline};

/// How often events are stored and cancellations of other nodes are looked up.
const TICK: Duration = Duration::from_millis(250);
/// How long to wait after a failure of the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns the principal of a waiting call as it is today, or `None` if its token was revoked.
pub type CurrentPrincipal = Arc<dyn Fn(&Principal) -> Option<Arc<Principal>> + Send + Sync>;

/// Receives the record of every queued call that has ended. It must not block.
pub type OnEnd = Arc<dyn Fn(Arc<CallRecord>) + Send + Sync>;

/// Takes calls from the queue and runs them.
#[derive(Clone)]
pub struct QueueRunner {
    /// The pipeline.
    pub pipeline: Arc<Pipeline>,
    /// The queue.
    pub queue: Arc<dyn CallQueue>,
    /// How many queued calls run at once on this node.
    pub workers: usize,
    /// Looks up who asked for a call.
    pub current_principal: CurrentPrincipal,
    /// Is notified of calls that have ended.
    pub on_end: OnEnd,
}

/// The queued calls that run on this node.
#[derive(Default)]
struct Running {
    by_tenant: Mutex<HashMap<TenantId, usize>>,
    /// Signals that one has ended.
    ended: Notify,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, tenant: &TenantId) {
        *self.lock().entry(tenant.clone()).or_default() += 1;
    }

    fn end(&self, tenant: &TenantId) {
        let mut running = self.lock();
        if let Some(count) = running.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                running.remove(tenant);
            }
        }
        self.ended.notify_one();
    }
}

impl QueueRunner {
    /// Runs until `stop` is cancelled, and then until the calls that it has claimed have ended.
    pub async fn run(self, stop: CancellationToken) {
        let runner = Arc::new(self);
        tokio::select! {
            () = Arc::clone(&runner).watch() => {}
            () = runner.claim_calls(&stop) => {}
        }
    }

    async fn claim_calls(self: Arc<Self>, stop: &CancellationToken) {
        let workers = self.workers.max(1);
        // One tenant never takes the last workers: a call of another one always finds a free one.
        let per_tenant = workers - workers / 4;
        let (running, tasks) = (Arc::new(Running::default()), TaskTracker::new());
        // A claim is never abandoned: what it has taken belongs to this node.
        while !stop.is_cancelled() {
            let by_tenant = running.lock().clone();
            let max = workers - by_tenant.values().sum::<usize>();
            let claimed = if max == 0 {
                Vec::new()
            } else {
                self.claim(ClaimLimits { max, per_tenant, running: by_tenant }).await
            };
            if claimed.is_empty() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = running.ended.notified() => {}
                    () = self.queue.ready(), if max > 0 => {}
                }
            }
            for record in claimed {
                let tenant = record.tenant().clone();
                running.begin(&tenant);
                let (runner, running) = (Arc::clone(&self), Arc::clone(&running));
                tasks.spawn(async move {
                    runner.run_call(record).await;
                    running.end(&tenant);
                });
            }
        }
        tasks.close();
        tasks.wait().await;
    }

    async fn claim(&self, limits: ClaimLimits) -> Vec<CallRecord> {
        match self.queue.claim(limits).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the queue");
                tokio::time::sleep(RETRY_DELAY).await;
                Vec::new()
            }
        }
    }

    async fn run_call(&self, record: CallRecord) {
        let id = record.id();
        let principal = (self.current_principal)(&record.invocation.principal);
        match self.pipeline.run_claimed(record, principal).await {
            Ok(ClaimedCall::Ended(record)) => (self.on_end)(record),
            Ok(ClaimedCall::Waits) => {}
            Ok(ClaimedCall::PutBack(record, not_before)) => {
                if let Err(error) = self.queue.requeue(*record, not_before).await {
                    tracing::error!(call = %id, error = &error as &dyn std::error::Error, "cannot put a call back into the queue");
                }
            }
            Err(error) => tracing::error!(call = %id, %error, "queued call not recorded"),
        }
    }

    /// Stores the events of running calls, and cancels those whose cancellation was requested on another node.
    async fn watch(self: Arc<Self>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let running = self.pipeline.background().all();
            if running.is_empty() {
                continue;
            }
            for (id, call) in &running {
                let events = call.take_unsaved();
                if events.is_empty() {
                    continue;
                }
                if let Err(error) = self.queue.append_events(*id, events).await {
                    tracing::warn!(call = %id, error = &error as &dyn std::error::Error, "cannot store the events of a call");
                }
            }
            let cancelled = self.queue.cancellations().await.unwrap_or_default();
            for (id, call) in running {
                if cancelled.contains(&id) {
                    call.cancel.cancel();
                }
            }
        }
    }
}
