//! Group commit for PostgreSQL: one task commits for all who wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::insert::insert;
use super::record::Row;
use crate::engine::Engine;

/// More than this waits outside.
const MAX_WAITING: usize = 10_000;

const DOING: &str = "record a call";
/// What the database says is for the log.
const REFUSED: &str = "the database did not take it; see the log";

/// Rows that wait for the next commit.
pub(crate) struct Group {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// One commit at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// A task is on its way that will take what waits.
    coming: bool,
}

/// A row, and who waits for it.
struct Waiting {
    row: Row,
    done: oneshot::Sender<bool>,
    /// Kept by the row, not by its caller, who may stop waiting.
    place: OwnedSemaphorePermit,
}

impl Group {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), places: Arc::new(Semaphore::new(MAX_WAITING)) }
    }

    /// Stores a row together with all others that wait. The row is stored even if the caller stops waiting.
    pub(crate) async fn append(&self, engine: &Engine, node: &str, row: Row) -> Result<(), StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|error| StoreError::unavailable(DOING, error))?;
        let (done, receiver) = oneshot::channel();
        if self.shared.push(Waiting { row, done, place }) {
            let (shared, engine, node) = (Arc::clone(&self.shared), engine.clone(), node.to_owned());
            tokio::spawn(async move { shared.commit(&engine, &node).await });
        }
        if receiver.await.unwrap_or(false) { Ok(()) } else { Err(StoreError::unavailable(DOING, REFUSED)) }
    }

    /// Tries whether the database takes a write.
    pub(crate) async fn probe(&self, engine: &Engine) -> Result<(), StoreError> {
        sqlx::query("UPDATE generation SET value = value WHERE one = 1")
            .execute(&engine.pool)
            .await
            .map(drop)
            .map_err(|error| {
                tracing::warn!(%error, "calls cannot be recorded yet");
                StoreError::unavailable(DOING, REFUSED)
            })
    }

    /// Returns when everything that came before is stored, or could not be.
    pub(crate) async fn flush(&self, engine: &Engine, node: &str) {
        self.shared.commit(engine, node).await;
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a row; tells whether a task has to be sent for it.
    fn push(&self, waiting: Waiting) -> bool {
        let mut queue = self.queue();
        queue.waiting.push(waiting);
        !std::mem::replace(&mut queue.coming, true)
    }

    async fn commit(&self, engine: &Engine, node: &str) {
        let _turn = self.turn.lock().await;
        let taken = {
            let mut queue = self.queue();
            queue.coming = false;
            std::mem::take(&mut queue.waiting)
        };
        if taken.is_empty() {
            return;
        }
        let (rows, rest): (Vec<Row>, Vec<_>) =
            taken.into_iter().map(|waiting| (waiting.row, (waiting.done, waiting.place))).unzip();
        let result = insert(engine, node, &rows).await;
        if let Err(error) = &result {
            tracing::error!(%error, calls = rows.len(), "could not record calls");
        }
        for (done, _place) in rest {
            let _ = done.send(result.is_ok());
        }
    }
}
