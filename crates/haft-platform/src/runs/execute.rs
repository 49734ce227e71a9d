//! Runs a claimed run on this node, and stores how it ends.

use std::sync::Arc;

use haft_agent::run::AgentRun;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{Run, RunEnd, RunLease, RunStatus, RunStep, RunStore as _, RunStoreError};

use super::engine::{RunEngine, RunningRun, not_stored};
use super::host::{Host, current_principal};
use super::store::AnsweringStore;
use super::watch::end_of;
use crate::answers;
use crate::context::Context;

/// A run that this node has claimed.
pub(super) struct ClaimedRun {
    pub(super) run: Run,
    pub(super) steps: Vec<RunStep>,
    pub(super) lease: RunLease,
}

/// Runs a claimed run until it ends, waits, or is released to another node.
pub(super) async fn run(engine: &Arc<RunEngine>, claimed: ClaimedRun, running: &Arc<RunningRun>) {
    let app = engine.context();
    let (id, tenant, lease) = (claimed.run.id, claimed.run.principal.tenant.clone(), claimed.lease.clone());
    match execute(engine, claimed, running).await {
        Ok(RunEnd::Released) => tracing::debug!(run = %id, "run left to another node"),
        Ok(end @ (RunEnd::Finished { .. } | RunEnd::Waiting(_))) => {
            if matches!(end, RunEnd::Waiting(_)) {
                // A run that was cancelled meanwhile has ended.
                answers::complete_answer(app, &tenant, id).await;
            }
            // Reads the stored run, so that the last event of watchers agrees with later reads.
            match app.store().runs().get(&tenant, id).await {
                Ok(Some(run)) => running.feed.push(end_of(&run)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(run = %id, error = &error as &dyn std::error::Error, "cannot read a run");
                }
            }
        }
        Err(RunStoreError::LeaseLost) => tracing::warn!(run = %id, "another node has taken the run"),
        Err(RunStoreError::Store(error)) => {
            tracing::error!(run = %id, error = &error as &dyn std::error::Error, "a step of a run was not stored");
            // It continues as soon as the store accepts writes again.
            app.store().runs().abandon(lease);
        }
    }
}

async fn execute(
    engine: &Arc<RunEngine>,
    claimed: ClaimedRun,
    running: &Arc<RunningRun>,
) -> Result<RunEnd, RunStoreError> {
    let app = engine.context();
    let ClaimedRun { run, steps, lease } = claimed;
    let shared = Arc::new(run.clone());
    let store = Arc::new(AnsweringStore {
        app: Arc::clone(app),
        run: Arc::clone(&shared),
        running: Arc::clone(running),
    });
    let prepared = async {
        if current_principal(app, &run).is_err() {
            // This node may not have loaded the token yet.
            app.reload_access().await.map_err(not_stored)?;
        }
        current_principal(app, &run)?;
        check_parent(app, &run).await?;
        let model = app.models().connect(&run.principal.tenant, &run.definition).await?;
        Ok::<_, CallError>((model, Host::new(engine, &shared, running)?))
    };
    let (model, host) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return end(&store, &lease, &run, error).await,
    };
    let agent_run = AgentRun { run, steps, lease, model, host: Arc::new(host), store, clock: app.clock() };
    agent_run.execute(running.control.clone()).await
}

/// Ends a run that cannot start or continue.
async fn end(
    store: &AnsweringStore,
    lease: &RunLease,
    run: &Run,
    error: CallError,
) -> Result<RunEnd, RunStoreError> {
    if error.code == ErrorCode::StoreUnavailable {
        store.release_run(lease, RunEnd::Released, &run.usage).await?;
        return Ok(RunEnd::Released);
    }
    let status = match error.code {
        ErrorCode::Cancelled => RunStatus::Cancelled,
        _ => RunStatus::Error,
    };
    let end = RunEnd::Finished { status, output: None, error: Some(error) };
    store.release_run(lease, end.clone(), &run.usage).await?;
    Ok(end)
}

/// Rejects a run whose parent call has ended: its answer is not needed.
async fn check_parent(app: &Context, run: &Run) -> Result<(), CallError> {
    // The parent call of a new run has not ended, and its record may not be stored yet.
    let Some(call) = run.parent_call.filter(|_| run.started_at.is_some() && run.usage.answers > 0) else {
        return Ok(());
    };
    let record = app.ledger().call(&run.principal.tenant, call).await.map_err(not_stored)?;
    let is_cut_off = record.is_some_and(|record| {
        record.status.is_final() && record.status != haft_core::call::CallStatus::Success
    });
    if is_cut_off {
        let message = "the call that started the run was cut off";
        return Err(CallError::new(ErrorCode::Cancelled, message));
    }
    Ok(())
}
