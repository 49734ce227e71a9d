//! Group commit for PostgreSQL: whoever comes first commits for all who wait.

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::oneshot;

use super::record::{self, Row};
use crate::engine::Engine;

/// More than this waits outside.
const MOST_WAITING: usize = 10_000;

const DOING: &str = "record a call";

/// A row, and who waits for it.
type Waiting = (Row, oneshot::Sender<bool>);

/// Rows that wait for the next commit.
pub(crate) struct Group {
    waiting: Arc<Mutex<Vec<Waiting>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    places: tokio::sync::Semaphore,
}

impl Group {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Arc::default(),
            turn: Arc::default(),
            places: tokio::sync::Semaphore::new(MOST_WAITING),
        }
    }

    /// Stores a row together with all others that wait.
    pub(crate) async fn append(&self, engine: &Engine, node: &str, row: Row) -> Result<(), StoreError> {
        let _place = self.places.acquire().await.map_err(|error| StoreError::unavailable(DOING, error))?;
        let (sender, mut receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((row, sender));
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if let Ok(done) = receiver.try_recv() {
            return verdict(done);
        }
        // To its end even if this caller stops waiting: the others wait for it too.
        let (waiting, engine, node) = (Arc::clone(&self.waiting), engine.clone(), node.to_owned());
        tokio::spawn(async move {
            let _turn = turn;
            let taken = std::mem::take(&mut *waiting.lock().unwrap_or_else(PoisonError::into_inner));
            let (rows, senders): (Vec<Row>, Vec<_>) = taken.into_iter().unzip();
            let result = record::insert(&engine, &node, &rows).await;
            if let Err(error) = &result {
                tracing::error!(%error, calls = rows.len(), "could not record calls");
            }
            for sender in senders {
                let _ = sender.send(result.is_ok());
            }
        });
        verdict(receiver.await.unwrap_or(false))
    }
}

fn verdict(done: bool) -> Result<(), StoreError> {
    if done {
        Ok(())
    } else {
        Err(StoreError::unavailable(DOING, "the database did not take it; see the log"))
    }
}
