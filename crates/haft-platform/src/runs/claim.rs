//! Claims runs for this node and runs them.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::run::AgentRun;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{Run, RunEnd, RunLease, RunStatus, RunStore as _, RunStoreError};

use super::engine::{ClaimedRun, RunningRun};
use super::host::{Host, current_principal};
use super::store::AnsweringStore;
use super::watch::end_of;
use crate::chats;
use crate::installation::Installation;

/// How often cancellations of other nodes are looked up.
const TICK: Duration = Duration::from_millis(250);
/// How long to wait after a failure of the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Claims runs until the node stops: those that wait for room, those whose node is gone, those whose calls are decided.
pub async fn claim_runs(app: Arc<Installation>) {
    tokio::select! {
        () = claim(&app) => {}
        () = watch_cancellations(&app) => {}
    }
    app.runs().finish().await;
}

async fn claim(app: &Arc<Installation>) {
    let engine = app.runs();
    // A claim is never abandoned: what it has taken belongs to this node.
    while !engine.stopping().is_cancelled() {
        let room = engine.room(app);
        let claimed = match app.store().claim_runs(room).await {
            _ if room == 0 => Vec::new(),
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot claim runs");
                tokio::time::sleep(RETRY_DELAY).await;
                Vec::new()
            }
        };
        if claimed.is_empty() {
            tokio::select! {
                () = engine.stopping().cancelled() => {}
                () = engine.ended() => {}
                () = app.store().runs_ready(), if room > 0 => {}
            }
        }
        for (run, steps, lease) in claimed {
            engine.launch(app, ClaimedRun { run, steps, lease });
        }
    }
}

/// Cancels the runs of this node whose cancellation was requested on another one, until dropped.
async fn watch_cancellations(app: &Installation) {
    let engine = app.runs();
    loop {
        tokio::time::sleep(TICK).await;
        if engine.is_idle() {
            continue;
        }
        match app.store().cancelled_runs().await {
            Ok(cancelled) => engine.cancel_here(&cancelled),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the cancelled runs");
            }
        }
    }
}

/// Runs a claimed run until it has ended, waits, or is left to another node.
pub(super) async fn run(app: &Arc<Installation>, claimed: ClaimedRun, running: &Arc<RunningRun>) {
    let (id, tenant, lease) = (claimed.run.id, claimed.run.principal.tenant.clone(), claimed.lease.clone());
    match execute(app, claimed, running).await {
        Ok(RunEnd::Released) => tracing::debug!(run = %id, "run left to another node"),
        Ok(end @ (RunEnd::Finished { .. } | RunEnd::Waiting(_))) => {
            if matches!(end, RunEnd::Waiting(_)) {
                // Cancelled meanwhile, it has ended instead.
                chats::complete_answer(app, &tenant, id).await;
            }
            // As it is stored: what watchers see last is what everybody reads from now on.
            match app.store().run_by_id(&tenant, id).await {
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
            app.store().give_up_run(lease);
        }
    }
}

async fn execute(
    app: &Arc<Installation>,
    claimed: ClaimedRun,
    running: &Arc<RunningRun>,
) -> Result<RunEnd, RunStoreError> {
    let ClaimedRun { run, steps, lease } = claimed;
    let shared = Arc::new(run.clone());
    let store = Arc::new(AnsweringStore {
        app: Arc::clone(app),
        run: Arc::clone(&shared),
        running: Arc::clone(running),
    });
    let prepared = async {
        current_principal(app, &run)?;
        check_parent(app, &run).await?;
        let model = app.runs().models().connect(app, &run.principal.tenant, &run.definition).await?;
        Ok::<_, CallError>((model, Host::new(app, &shared, running)?))
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
        store.leave_run(lease, RunEnd::Released, &run.usage).await?;
        return Ok(RunEnd::Released);
    }
    let status = match error.code {
        ErrorCode::Cancelled => RunStatus::Cancelled,
        _ => RunStatus::Error,
    };
    let end = RunEnd::Finished { status, output: None, error: Some(error) };
    store.leave_run(lease, end.clone(), &run.usage).await?;
    Ok(end)
}

/// Rejects a run whose call has ended meanwhile: nobody waits for its answer.
async fn check_parent(app: &Installation, run: &Run) -> Result<(), CallError> {
    // A run that has not started belongs to a call that has not ended: its record may not be stored yet.
    let Some(call) = run.parent_call.filter(|_| run.started_at.is_some() && run.usage.answers > 0) else {
        return Ok(());
    };
    let record = app.ledger().call(&run.principal.tenant, call).await.map_err(super::engine::not_stored)?;
    let is_cut_off = record.is_some_and(|record| {
        record.status.is_final() && record.status != haft_core::call::CallStatus::Success
    });
    if is_cut_off {
        let message = "the call that started the run was cut off";
        return Err(CallError::new(ErrorCode::Cancelled, message));
    }
    Ok(())
}
