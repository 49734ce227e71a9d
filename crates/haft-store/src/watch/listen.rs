//! Receives the changes of other nodes through PostgreSQL notifications.
//!
//! Notifications that arrive while changes are loaded, or within a short delay, are merged and loaded together: an
//! import of many tools on one node causes a few reloads on the others.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haft_core::catalog::StoreError;
use sqlx::postgres::PgListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::changes::RemoteChanges;
use crate::engine::{CHANNEL, failed_to};
use crate::notification::ChangeSet;

/// How long to wait before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// How long further notifications are collected before the changes are loaded.
const BATCH_DELAY: Duration = Duration::from_millis(25);

const LISTEN: &str = "listen for changes of other nodes";

/// Listens until it is stopped.
pub(crate) async fn listen(changes: RemoteChanges, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            error = run(&changes) => {
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
async fn run(changes: &RemoteChanges) -> StoreError {
    let Some(url) = &changes.db.url else { return StoreError::not_found("setting", "database_url") };
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
        error = receive(changes, &mut listener, &inbox) => error,
        error = load(changes, &inbox) => error,
    }
}

async fn receive(changes: &RemoteChanges, listener: &mut PgListener, inbox: &Inbox) -> StoreError {
    loop {
        match listener.try_recv().await {
            Ok(Some(notification)) => {
                inbox.update(|pending| pending.changes.add(notification.payload(), &changes.db.node));
            }
            // The connection was lost and is open again: notifications may be missing.
            Ok(None) => inbox.update(|pending| pending.reload = true),
            Err(error) => return failed_to(LISTEN)(error),
        }
    }
}

async fn load(changes: &RemoteChanges, inbox: &Inbox) -> StoreError {
    loop {
        inbox.arrived.notified().await;
        tokio::time::sleep(BATCH_DELAY).await;
        let Pending { changes: changed, reload } = inbox.take();
        let loaded = if reload { changes.reload().await } else { changes.load(&changed).await };
        if let Err(error) = loaded {
            return error;
        }
    }
}
