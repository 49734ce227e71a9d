//! So many calls at once, of all tools, of each tool, or of each group of tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::BoxFuture;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use tokio::sync::Semaphore;

use crate::pipeline::Call;
use crate::stages::{Next, Stage, StageError};

/// How many calls may wait where nothing else is said.
const MAX_WAITING: usize = 64;

/// Runs so many calls at once. Others wait in the order in which they came; where too many wait already, a call is
/// refused with `overloaded`. A call that is cancelled, or whose time is over, leaves its place at once.
///
/// ```
/// use haft_runtime::stages::Concurrency;
///
/// # fn main() -> Result<(), haft_runtime::stages::StageError> {
/// let stage = Concurrency::each_tool(4)?.max_waiting(100);
/// # drop(stage);
/// assert!(Concurrency::global(0).is_err());
/// # Ok(())
/// # }
/// ```
pub struct Concurrency {
    scope: Scope,
    most: usize,
    most_waiting: usize,
    /// The room of each key, as long as someone is in it or waits for it.
    rooms: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[derive(Debug, Clone, Copy)]
enum Scope {
    All,
    EachTool,
    EachGroup,
}

impl Concurrency {
    /// Runs at most so many calls at once.
    pub fn global(most: usize) -> Result<Self, StageError> {
        Self::with(Scope::All, most)
    }

    /// Runs at most so many calls of each tool at once.
    pub fn each_tool(most: usize) -> Result<Self, StageError> {
        Self::with(Scope::EachTool, most)
    }

    /// Runs at most so many calls at once of the tools of a tenant that have the same `concurrency_group`.
    pub fn each_group(most: usize) -> Result<Self, StageError> {
        Self::with(Scope::EachGroup, most)
    }

    fn with(scope: Scope, most: usize) -> Result<Self, StageError> {
        if most == 0 {
            return Err(StageError::NoRoom);
        }
        let most = most.min(Semaphore::MAX_PERMITS);
        Ok(Self { scope, most, most_waiting: MAX_WAITING, rooms: Mutex::default() })
    }

    /// Sets how many calls may wait for the same room.
    #[must_use]
    pub fn max_waiting(mut self, most: usize) -> Self {
        self.most_waiting = most;
        self
    }

    fn key(&self, call: &Call) -> String {
        match self.scope {
            Scope::All => String::new(),
            Scope::EachTool => call.entry().qualified.to_string(),
            Scope::EachGroup => format!("{}/{}", call.tenant(), call.plan.spec.execution.concurrency_group),
        }
    }

    /// Enters among those who run or wait, unless there are too many.
    fn enter(&self, call: &Call) -> Result<Visit<'_>, CallError> {
        let key = self.key(call);
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.most)));
        // Every visit holds the room, and the map does.
        if Arc::strong_count(room) > self.most.saturating_add(self.most_waiting) {
            let message = format!("too many calls wait for {}; try again later", self.name(call));
            return Err(call.entry().for_model(CallError::new(ErrorCode::Overloaded, message)));
        }
        Ok(Visit { stage: self, key, room: Arc::clone(room) })
    }

    fn name(&self, call: &Call) -> String {
        match self.scope {
            Scope::All => "their turn".to_owned(),
            Scope::EachTool => format!("`{}`", call.entry().qualified),
            Scope::EachGroup => format!("the group `{}`", call.plan.spec.execution.concurrency_group),
        }
    }
}

/// A call that runs or waits. With the last one its room goes, so that there are never more of them than calls.
struct Visit<'a> {
    stage: &'a Concurrency,
    key: String,
    room: Arc<Semaphore>,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut rooms = self.stage.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        // The map and this visit; others come only under the lock.
        if Arc::strong_count(&self.room) == 2 {
            rooms.remove(&self.key);
        }
    }
}

impl Stage for Concurrency {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let visit = self.enter(call)?;
            let turn = visit.room.acquire().await;
            let _turn = turn.map_err(|error| CallError::internal(error.to_string()))?;
            next.run(call).await
        })
    }
}
