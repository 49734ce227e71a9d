//! Starts runs: through the pipeline of calls, and on this node if it has capacity.

use std::sync::Arc;

use haft_agent::run::RunEvent;
use haft_core::outcome::CallError;
use haft_core::run::Run;
use serde_json::json;

use super::engine::{RunEngine, RunningRun, not_stored};
use super::execute::{self, ClaimedRun};
use super::feed::Feed;
use super::start::StartRun;

impl RunEngine {
    /// Starts a run: a call of its agent, which passes all steps of the pipeline.
    pub async fn start(self: &Arc<Self>, start: StartRun) -> Result<Run, CallError> {
        let (agent, mut request) = start.as_call();
        let prepared = start.into_run(self.context());
        if let Ok(prepared) = &prepared {
            request.args = prepared.args();
        }
        let run = prepared.map(|prepared| prepared.run);
        let work = |run| async move {
            let stored = self.store(run).await?;
            let value = json!({"run_id": stored.run.id});
            Ok((stored, value))
        };
        let stored = Box::pin(self.context().pipeline().call_resource(&agent, request, run, work)).await?;
        Ok(stored.run.clone())
    }

    /// Stores a run, which this node or the first node with capacity launches.
    async fn store(self: &Arc<Self>, run: Run) -> Result<StoredRun, CallError> {
        let (engine, stored) = (Arc::clone(self), self.context().store().runs());
        let is_child = run.parent_call.is_some();
        if self.stopping().is_cancelled() || (!is_child && self.room() == 0) {
            stored.create(run.clone()).await.map_err(not_stored)?;
            return Ok(StoredRun { engine, run, claimed: None });
        }
        let (run, lease) = stored.create_claimed(run).await.map_err(not_stored)?;
        let claimed = ClaimedRun { run: run.clone(), steps: Vec::new(), lease };
        Ok(StoredRun { engine, run, claimed: Some(claimed) })
    }

    /// Runs a claimed run in a task of its own.
    pub(super) fn launch(self: &Arc<Self>, claimed: ClaimedRun) {
        let ClaimedRun { run, steps, .. } = &claimed;
        let feed = Arc::new(Feed::default());
        feed.push(RunEvent::start(run.id, &run.definition));
        for step in steps {
            feed.push_step(step);
            feed.stored(step.number);
        }
        let running = Arc::new(RunningRun::new(run, feed));
        let listed = self.list(run.id, &running);
        if self.stopping().is_cancelled() {
            running.control.release();
        }
        let engine = Arc::clone(self);
        self.spawn(async move {
            // The guard also holds if the task panics.
            let _listed = listed;
            execute::run(&engine, claimed, &running).await;
        });
    }
}

/// A stored run. If this node has claimed it, dropping this value launches it: after its start was recorded, or when the
/// client disconnects before that.
struct StoredRun {
    engine: Arc<RunEngine>,
    run: Run,
    claimed: Option<ClaimedRun>,
}

impl Drop for StoredRun {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed.take() {
            self.engine.launch(claimed);
        }
    }
}
