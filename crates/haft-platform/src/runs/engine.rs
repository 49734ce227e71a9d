//! The runs of this node: listing, waiting and cancelling.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_agent::run::RunControl;
use haft_core::agent::AgentBudget;
use haft_core::catalog::StoreError;
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{MAX_RUN_DEPTH, Run, RunStatus, RunUsage};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::Feed;
use super::shared_budget::SharedBudget;
use crate::answers;
use crate::context::Context;
use crate::error::{ServiceError, call_error};

/// How often a run on another node is polled.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The runs of this node.
pub struct RunEngine {
    context: Arc<Context>,
    running: Mutex<HashMap<RunId, Arc<RunningRun>>>,
    tasks: TaskTracker,
    /// Cancelled when the node stops: runs are left to other nodes.
    stopping: CancellationToken,
    /// Signals that a run has ended, so that another one can be claimed.
    ended: Notify,
}

/// A run on this node.
pub(super) struct RunningRun {
    pub(super) tenant: TenantId,
    pub(super) feed: Arc<Feed>,
    /// Cancels the run, or leaves it to another node.
    pub(super) control: RunControl,
    /// Whether a call of another run waits for it. Such a run starts at once, or both would wait for ever.
    is_child: bool,
    /// The run above.
    parent: Option<RunId>,
    /// What the run may use, with those below it.
    budget: Mutex<SharedBudget>,
}

impl RunEngine {
    /// Creates an engine without runs.
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            running: Mutex::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            ended: Notify::new(),
        }
    }

    /// Waits until a run has ended or waits for people.
    pub async fn wait(&self, tenant: &TenantId, run: RunId) -> Result<Run, CallError> {
        loop {
            if let Some(feed) = self.feed(tenant, run) {
                feed.closed().await;
            }
            let found = self.context.store().runs().get(tenant, run).await.map_err(not_stored)?;
            let found = found.ok_or_else(|| CallError::new(ErrorCode::NotFound, "the run was deleted"))?;
            if found.status.is_final() || found.status == RunStatus::AwaitingApproval {
                return Ok(found);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Cancels a run, on whatever node it runs; returns its status, or `None` if there is no such run.
    pub async fn cancel(&self, tenant: &TenantId, run: RunId) -> Result<Option<RunStatus>, ServiceError> {
        let status = self.context.store().runs().request_cancel(tenant, run).await?;
        if let Some(running) = self.get(tenant, run) {
            running.control.cancel();
        }
        if status.is_some_and(RunStatus::is_final) {
            // Nothing runs any more that could write the answer.
            answers::complete_answer(&self.context, tenant, run).await;
        }
        Ok(status)
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns how many runs this node may start.
    pub(super) fn room(&self) -> usize {
        let running = self.lock().values().filter(|run| !run.is_child).count();
        self.context.settings().runs.max_running.max(1).saturating_sub(running)
    }

    /// Adds a run of this node to the list, until the guard is dropped.
    pub(super) fn list(self: &Arc<Self>, id: RunId, running: &Arc<RunningRun>) -> RegistrationGuard {
        self.lock().insert(id, Arc::clone(running));
        RegistrationGuard { engine: Arc::clone(self), id, running: Arc::clone(running) }
    }

    /// Runs a task that the engine waits for when it stops.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Returns a run on this node.
    pub(super) fn get(&self, tenant: &TenantId, run: RunId) -> Option<Arc<RunningRun>> {
        self.lock().get(&run).filter(|running| running.tenant == *tenant).cloned()
    }

    /// Notes what a run on this node has used; returns what it may use in all, as far as the runs above limit it.
    pub(super) fn report_usage(&self, id: RunId, running: &RunningRun, used: &RunUsage) -> AgentBudget {
        let counted = running.budget().report(used);
        let mut budget = AgentBudget::default();
        for above in self.above(running) {
            budget = budget.smaller(above.budget().report_below(id, used, &counted));
        }
        budget
    }

    /// Notes that a run has ended whose call belongs to a run on this node.
    pub(super) fn end_below(&self, run: &Run) {
        let Some(parent) = run.parent_run.and_then(|id| self.get(&run.principal.tenant, id)) else { return };
        for above in self.above(&parent) {
            above.budget().report_below(run.id, &run.usage, &[]);
        }
        parent.budget().report_below(run.id, &run.usage, &[]);
        parent.budget().end_below(run.id, &run.usage);
    }

    /// Returns the runs above a run, as far as they are on this node.
    fn above(&self, running: &RunningRun) -> Vec<Arc<RunningRun>> {
        let mut above = Vec::new();
        let mut next = running.parent;
        // A stored circle must not be an endless loop.
        while let Some(found) = next.and_then(|id| self.get(&running.tenant, id))
            && above.len() < MAX_RUN_DEPTH as usize
        {
            next = found.parent;
            above.push(found);
        }
        above
    }

    /// Returns the feed of a run on this node.
    pub(super) fn feed(&self, tenant: &TenantId, run: RunId) -> Option<Arc<Feed>> {
        self.get(tenant, run).map(|running| Arc::clone(&running.feed))
    }

    /// Cancels these runs on this node.
    pub(super) fn cancel_here(&self, runs: &[RunId]) {
        let running = self.lock();
        runs.iter().filter_map(|run| running.get(run)).for_each(|running| running.control.cancel());
    }

    /// Returns whether nothing runs on this node.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the signal that the node stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Completes when a run on this node has ended.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Starts no further runs, and leaves those that run to other nodes after their current step.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.lock().values().for_each(|running| running.control.release());
    }

    /// Waits until every run on this node has been left.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunningRun>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningRun {
    /// Creates a run that has this feed.
    pub(super) fn new(run: &Run, feed: Arc<Feed>) -> Self {
        Self {
            tenant: run.principal.tenant.clone(),
            feed,
            control: RunControl::new(),
            is_child: run.parent_call.is_some(),
            parent: run.parent_run,
            budget: Mutex::new(SharedBudget::new(run.budget, run.usage.clone())),
        }
    }

    /// Returns what the run may use, with those below it. It is locked for a moment only.
    pub(super) fn budget(&self) -> MutexGuard<'_, SharedBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a run listed while its task runs.
pub(super) struct RegistrationGuard {
    engine: Arc<RunEngine>,
    id: RunId,
    running: Arc<RunningRun>,
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        let engine = &self.engine;
        engine.lock().remove(&self.id);
        self.running.feed.close();
        engine.ended.notify_one();
    }
}

pub(super) fn not_stored(error: StoreError) -> CallError {
    match error {
        StoreError::Unavailable { .. } | StoreError::Busy => {
            CallError::new(ErrorCode::StoreUnavailable, format!("the run could not be stored: {error}"))
                .for_model("the run could not be stored")
        }
        other => call_error(other.into()),
    }
}
