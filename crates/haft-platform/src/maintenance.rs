//! The background loops of a server, and the order in which they stop.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::installation::Installation;
use crate::supervisor::{Importance, LoopSpec, Supervisor};
use crate::{accounts, events, mcp_connections, python_packages, runs, toolsets, webhooks};

/// How long cancelled calls, runs and deliveries may take to be recorded.
const RECORD_TIMEOUT: Duration = Duration::from_secs(5);

/// What runs beside the handling of requests.
pub struct BackgroundTasks {
    /// Cancelled when the maintenance loops are aborted.
    stop: CancellationToken,
    maintenance: Vec<JoinHandle<()>>,
    /// Ends the loops of the store.
    stop_store: CancellationToken,
    store: Vec<JoinHandle<()>>,
    queue: JoinHandle<()>,
    runs: JoinHandle<()>,
    webhooks: JoinHandle<()>,
}

impl BackgroundTasks {
    /// Starts all loops.
    pub fn start(app: &Arc<Installation>) -> Self {
        let supervisor = Supervisor { states: app.maintenance(), metrics: app.metrics() };
        let (stop, stop_store) = (CancellationToken::new(), CancellationToken::new());
        let store = store_loops(app, &stop_store).into_iter().map(|spec| supervisor.start(spec)).collect();
        let queue = spec("queue", app.queue_stop(), app, |app| Box::pin(app.run_queue()));
        let claim = spec("runs", app.runs().stopping(), app, |app| {
            Box::pin(runs::claim_runs(Arc::clone(app.runs())))
        });
        let deliver = spec("webhooks", app.queue_stop(), app, |app| {
            let stop = app.queue_stop().clone();
            Box::pin(webhooks::deliver(Arc::clone(app.context()), stop))
        });
        let (queue, runs) = (supervisor.start(queue), supervisor.start(claim));
        let webhooks = supervisor.start(deliver);
        let mut maintenance: Vec<_> =
            maintenance_loops(app, &stop).into_iter().map(|spec| supervisor.start(spec)).collect();
        // These end by themselves.
        let (verifying, probing) = (Arc::clone(app), Arc::clone(app));
        maintenance.push(tokio::spawn(async move { verifying.verify().await }));
        maintenance.push(tokio::spawn(async move { probing.probe_sandbox().await }));
        Self { stop, maintenance, stop_store, store, queue, runs, webhooks }
    }

    /// Ends all loops: first those that finish what they claimed, at last those of the store.
    pub async fn stop(self) {
        if tokio::time::timeout(RECORD_TIMEOUT, self.runs).await.is_err() {
            tracing::error!("some runs did not stop; they continue after the next start");
        }
        // Queued calls that run have been cancelled by now, if they did not end within the grace period.
        if tokio::time::timeout(RECORD_TIMEOUT, self.queue).await.is_err() {
            tracing::error!("some queued calls did not stop and were not recorded");
        }
        // What is not delivered by then is delivered after the next start.
        let mut webhooks = self.webhooks;
        if tokio::time::timeout(RECORD_TIMEOUT, &mut webhooks).await.is_err() {
            webhooks.abort();
        }
        self.stop.cancel();
        self.maintenance.iter().for_each(JoinHandle::abort);
        self.stop_store.cancel();
        for task in self.store {
            // An error is a panic, which the supervisor has reported.
            let _ = task.await;
        }
    }
}

type Start = fn(Arc<Installation>) -> BoxFuture<'static, ()>;

fn spec(name: &'static str, stop: &CancellationToken, app: &Arc<Installation>, start: Start) -> LoopSpec {
    let app = Arc::clone(app);
    LoopSpec {
        name,
        importance: Importance::Ordinary,
        stop: stop.clone(),
        run: Box::new(move || start(Arc::clone(&app))),
    }
}

/// Returns the loops of the store: change detection, removal of old data, recovery.
fn store_loops(app: &Installation, stop: &CancellationToken) -> Vec<LoopSpec> {
    let of_store = |found: haft_store::StoreLoop| LoopSpec {
        name: found.name,
        importance: if found.detects_changes { Importance::Security } else { Importance::Ordinary },
        stop: stop.clone(),
        run: found.run,
    };
    app.store().loops(stop).into_iter().map(of_store).collect()
}

/// Returns the loops that are simply dropped at the end.
fn maintenance_loops(app: &Arc<Installation>, stop: &CancellationToken) -> Vec<LoopSpec> {
    let security: [(&'static str, Start); 2] = [
        ("access", |app| Box::pin(async move { app.follow_access().await })),
        ("policy", |app| Box::pin(async move { app.policy().follow(app.store()).await })),
    ];
    let ordinary: [(&'static str, Start); 12] = [
        ("search", |app| Box::pin(async move { app.search().follow().await })),
        ("usage", |app| Box::pin(async move { app.save_usage_periodically().await })),
        ("token_uses", |app| Box::pin(async move { app.save_token_uses_periodically().await })),
        ("mcp_servers", |app| Box::pin(async move { mcp_connections::keep_connected(&app).await })),
        ("server_states", |app| {
            Box::pin(async move { events::server_states(app.events(), app.mcp_clients()).await })
        }),
        ("documents", |app| Box::pin(async move { app.retrieval().follow().await })),
        ("artifacts", |app| Box::pin(async move { app.artifacts().follow().await })),
        ("agents", |app| Box::pin(async move { app.agents().follow().await })),
        ("account_logins", |app| Box::pin(accounts::poll_devices(Arc::clone(app.context())))),
        ("workspace_files", |app| Box::pin(async move { collect_files(&app).await })),
        ("results", |app| Box::pin(async move { collect_results(&app).await })),
        ("python_packages", |app| {
            Box::pin(
                async move { python_packages::collect_periodically(&app, app.python_environments()).await },
            )
        }),
    ];
    let security = security
        .map(|(name, start)| LoopSpec { importance: Importance::Security, ..spec(name, stop, app, start) });
    let mut loops: Vec<_> = security.into();
    loops.extend(ordinary.map(|(name, start)| spec(name, stop, app, start)));
    if app.store().workspaces().is_shared() {
        // Only other nodes install packages that this one has not unpacked.
        loops.push(spec("packages", stop, app, |app| {
            Box::pin(async move { toolsets::keep_unpacked(&app).await })
        }));
    }
    loops
}

/// How often stored files that no workspace has any more are removed.
const COLLECT_INTERVAL: Duration = Duration::from_hours(6);

/// Removes stored files that no workspace has any more, until dropped.
async fn collect_files(app: &Installation) {
    loop {
        tokio::time::sleep(COLLECT_INTERVAL).await;
        if let Err(error) = app.workspaces().gc().await {
            tracing::warn!(error = error.message, "cannot remove the files of deleted workspaces");
        }
    }
}

/// How often stored results of calls that are gone are removed.
const COLLECT_RESULTS_INTERVAL: Duration = Duration::from_hours(1);

/// Removes stored results of calls that are gone, until dropped.
async fn collect_results(app: &Installation) {
    loop {
        tokio::time::sleep(COLLECT_RESULTS_INTERVAL).await;
        if let Err(error) = app.results().collect().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove old results");
        }
    }
}
