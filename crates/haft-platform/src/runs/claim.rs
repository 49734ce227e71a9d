//! Claims runs for this node.

use std::sync::Arc;
use std::time::Duration;

use super::engine::RunEngine;
use super::execute::ClaimedRun;

/// How often cancellations of other nodes are looked up.
const TICK: Duration = Duration::from_millis(250);
/// How long to wait after a failure of the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Claims runs until the node stops: those that wait for room, those whose node is gone, those whose calls are decided.
pub async fn claim_runs(engine: Arc<RunEngine>) {
    tokio::select! {
        () = claim(&engine) => {}
        () = watch_cancellations(&engine) => {}
    }
    engine.finish().await;
}

async fn claim(engine: &Arc<RunEngine>) {
    let app = engine.context();
    // A claim is never abandoned: what it has taken belongs to this node.
    while !engine.stopping().is_cancelled() {
        let room = engine.room();
        let claimed = match app.store().runs().claim_next(room).await {
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
                () = app.store().runs().ready(), if room > 0 => {}
            }
        }
        for (run, steps, lease) in claimed {
            engine.launch(ClaimedRun { run, steps, lease });
        }
    }
}

/// Cancels the runs of this node whose cancellation was requested on another one, until dropped.
async fn watch_cancellations(engine: &RunEngine) {
    loop {
        tokio::time::sleep(TICK).await;
        if engine.is_idle() {
            continue;
        }
        match engine.context().store().runs().cancelled().await {
            Ok(cancelled) => engine.cancel_here(&cancelled),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the cancelled runs");
            }
        }
    }
}
