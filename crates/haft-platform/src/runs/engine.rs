//! The runs of this node: starting, claiming, watching, cancelling.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_agent::run::{RunControl, RunEvent};
use haft_core::agent::AgentBudget;
use haft_core::catalog::StoreError;
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{MAX_RUN_DEPTH, Run, RunLease, RunStatus, RunStep, RunUsage};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::Feed;
use super::shared_budget::SharedBudget;
use super::start::StartRun;
use super::watch;
use crate::agents::{KnownAgents, ModelConnections};
use crate::chats;
use crate::error::ServiceError;
use crate::installation::Installation;

/// The runs of this node.
pub struct RunEngine {
    running: Mutex<HashMap<RunId, Arc<RunningRun>>>,
    models: ModelConnections,
    agents: KnownAgents,
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

/// A run that this node has claimed.
pub(super) struct ClaimedRun {
    pub(super) run: Run,
    pub(super) steps: Vec<RunStep>,
    pub(super) lease: RunLease,
}

impl RunEngine {
    /// Creates an engine without runs.
    pub fn new(models: ModelConnections, agents: KnownAgents) -> Self {
        Self {
            running: Mutex::default(),
            models,
            agents,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            ended: Notify::new(),
        }
    }

    /// Starts a run: a call of its agent, which passes all steps of the pipeline.
    pub async fn start(&self, app: &Arc<Installation>, start: StartRun) -> Result<Run, CallError> {
        let (agent, mut request) = start.as_call();
        let prepared = start.into_run(app);
        if let Ok(prepared) = &prepared {
            request.args = prepared.args();
        }
        let run = prepared.map(|prepared| prepared.run);
        let work = |run| async move {
            let stored = self.store(app, run).await?;
            let value = json!({"run_id": stored.run.id});
            Ok((stored, value))
        };
        let stored = Box::pin(app.pipeline().call_resource(&agent, request, run, work)).await?;
        Ok(stored.run.clone())
    }

    /// Stores a run, to be launched on this node, or by the first node that has room.
    async fn store(&self, app: &Arc<Installation>, run: Run) -> Result<StoredRun, CallError> {
        let app = Arc::clone(app);
        let is_child = run.parent_call.is_some();
        if self.stopping.is_cancelled() || (!is_child && self.room(&app) == 0) {
            app.store().create_run(run.clone()).await.map_err(not_stored)?;
            return Ok(StoredRun { app, run, claimed: None });
        }
        let (run, lease) = app.store().create_claimed_run(run).await.map_err(not_stored)?;
        let claimed = ClaimedRun { run: run.clone(), steps: Vec::new(), lease };
        Ok(StoredRun { app, run, claimed: Some(claimed) })
    }

    /// Waits until a run has ended or waits for people.
    pub async fn wait(
        &self,
        app: &Arc<Installation>,
        tenant: &TenantId,
        run: RunId,
    ) -> Result<Run, CallError> {
        loop {
            if let Some(feed) = self.feed(tenant, run) {
                feed.closed().await;
            }
            let found = app.store().run_by_id(tenant, run).await.map_err(not_stored)?;
            let found = found.ok_or_else(|| CallError::new(ErrorCode::NotFound, "the run was deleted"))?;
            if found.status.is_final() || found.status == RunStatus::AwaitingApproval {
                return Ok(found);
            }
            tokio::time::sleep(watch::POLL_INTERVAL).await;
        }
    }

    /// Cancels a run, on whatever node it runs; returns its status, or `None` if there is no such run.
    pub async fn cancel(
        &self,
        app: &Arc<Installation>,
        tenant: &TenantId,
        run: RunId,
    ) -> Result<Option<RunStatus>, ServiceError> {
        let status = app.store().request_run_cancel(tenant, run).await?;
        if let Some(running) = self.get(tenant, run) {
            running.control.cancel();
        }
        if status.is_some_and(RunStatus::is_final) {
            // Nothing runs any more that could write the answer.
            chats::complete_answer(app, tenant, run).await;
        }
        Ok(status)
    }

    /// Returns the connections to models.
    pub fn models(&self) -> &ModelConnections {
        &self.models
    }

    /// Returns the agents that tools refer to.
    pub fn agents(&self) -> &KnownAgents {
        &self.agents
    }

    /// Returns how many runs this node may start.
    pub(super) fn room(&self, app: &Installation) -> usize {
        let running = self.lock().values().filter(|run| !run.is_child).count();
        app.settings().runs.max_running.max(1).saturating_sub(running)
    }

    /// Runs what this node has claimed, in a task of its own.
    pub(super) fn launch(&self, app: &Arc<Installation>, claimed: ClaimedRun) {
        let ClaimedRun { run, steps, .. } = &claimed;
        let feed = Arc::new(Feed::default());
        feed.push(RunEvent::start(run.id, &run.definition));
        for step in steps {
            feed.push_step(step);
            feed.stored(step.number);
        }
        let running = Arc::new(RunningRun {
            tenant: run.principal.tenant.clone(),
            feed,
            control: RunControl::new(),
            is_child: run.parent_call.is_some(),
            parent: run.parent_run,
            budget: Mutex::new(SharedBudget::new(run.budget, run.usage.clone())),
        });
        let id = run.id;
        self.lock().insert(id, Arc::clone(&running));
        if self.stopping.is_cancelled() {
            running.control.release();
        }
        let app = Arc::clone(app);
        self.tasks.spawn(async move {
            // The guard also holds if the task panics.
            let _listed = Listed { app: Arc::clone(&app), id, running: Arc::clone(&running) };
            super::claim::run(&app, claimed, &running).await;
        });
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
    /// Returns what the run may use, with those below it. It is locked for a moment only.
    pub(super) fn budget(&self) -> MutexGuard<'_, SharedBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that was stored. Dropping it launches the run if this node has claimed it: after the start was recorded, and
/// also if the client disconnects before that.
struct StoredRun {
    app: Arc<Installation>,
    run: Run,
    claimed: Option<ClaimedRun>,
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed.take() {
            self.app.runs().launch(&self.app, claimed);
        }
    }
}

/// Keeps a run listed while its task runs.
struct Listed {
    app: Arc<Installation>,
    id: RunId,
    running: Arc<RunningRun>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let engine = self.app.runs();
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
        other => crate::built_ins::call_error(other.into()),
    }
}
