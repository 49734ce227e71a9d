//! Values of pure tools, kept for those who ask the same again.

mod kept;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::hash;
use haft_core::name::TenantId;
use haft_core::outcome::Outcome;
use serde_json::Value;
use tokio::sync::watch;

use self::kept::Kept;
use crate::clock;
use crate::pipeline::Call;
use crate::stages::{Next, Stage};

/// Answers calls of pure tools (`execution.is_pure`) that were answered before: the same tenant, the same
/// definition and function of the same tool, the same arguments in whatever order. What a tool answered before it was
/// changed or registered anew is never given again. Other tools pass.
///
/// Of several such calls at once one runs, and the others wait for it. Failures are never kept: where the one fails,
/// those who waited run by themselves; where it is cancelled, the next of them takes its place.
///
/// ```
/// use std::time::Duration;
/// use haft_runtime::stages::Cache;
///
/// let stage = Cache::new(Duration::from_secs(60)).max_entries(1000).max_bytes(16 << 20);
/// # drop(stage);
/// ```
pub struct Cache {
    state: Mutex<Kept>,
    time: Duration,
}

/// What a value is kept under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    /// What was compiled of the tool's definition, and of the function that it names: a tool that was changed or
    /// registered anew has another one.
    plan: u64,
    arguments: String,
}

/// How far the call is that others wait for.
#[derive(Debug, Clone)]
enum Flight {
    Running,
    Landed(Arc<Value>),
    Failed,
}

/// What to do with a call.
enum Found {
    Value(Arc<Value>),
    /// Another call is at it.
    Wait(watch::Receiver<Flight>),
    /// This one is to run, and to tell the others.
    Run(watch::Sender<Flight>),
}

impl Cache {
    /// Keeps values for this time: at most 1,000 of them, and 16 MiB.
    pub fn new(time: Duration) -> Self {
        Self { state: Mutex::new(Kept::new(1000, 16 * 1024 * 1024)), time }
    }

    /// Sets how many values are kept; the ones that were asked for longest ago go first.
    #[must_use]
    pub fn max_entries(self, most: usize) -> Self {
        self.kept().most_entries = most;
        self
    }

    /// Sets how much memory the values may take, as far as it can be told. What is larger than all of it is not kept.
    #[must_use]
    pub fn max_bytes(self, most: usize) -> Self {
        self.kept().most_bytes = most;
        self
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Found {
        let mut kept = self.kept();
        if let Some(value) = kept.get(key, clock::now()) {
            return Found::Value(value);
        }
        if let Some(flight) = kept.flights.get(key) {
            return Found::Wait(flight.clone());
        }
        let (sender, receiver) = watch::channel(Flight::Running);
        kept.flights.insert(key.clone(), receiver);
        Found::Run(sender)
    }

    /// Runs the call that others may wait for.
    async fn run(
        &self,
        key: &Key,
        flight: watch::Sender<Flight>,
        call: &mut Call,
        next: Next<'_>,
    ) -> Outcome {
        let airborne = Airborne { cache: self, key };
        let outcome = next.run(call).await;
        let landed = match &outcome {
            Ok(value) => {
                let value = Arc::new(value.clone());
                if let Some(until) = clock::now().checked_add(self.time) {
                    self.kept().insert(key.clone(), Arc::clone(&value), until);
                }
                Flight::Landed(value)
            }
            Err(_) => Flight::Failed,
        };
        // First the value, then the end of the flight: nobody finds neither and runs once more.
        drop(airborne);
        flight.send_replace(landed);
        outcome
    }
}

/// Takes a flight off the list when it is over, also where its call is dropped.
struct Airborne<'a> {
    cache: &'a Cache,
    key: &'a Key,
}

impl Drop for Airborne<'_> {
    fn drop(&mut self) {
        self.cache.kept().flights.remove(self.key);
    }
}

fn key(call: &Call) -> Key {
    Key {
        tenant: call.tenant().clone(),
        plan: call.plan.number,
        arguments: call.args_digest().map_or_else(|| hash::of_args(call.args()), str::to_owned),
    }
}

impl Stage for Cache {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !call.plan.spec.execution.is_pure {
            return next.run(call);
        }
        Box::pin(async move {
            let key = key(call);
            loop {
                match self.find(&key) {
                    Found::Value(value) => return Ok(Value::clone(&value)),
                    Found::Run(flight) => return self.run(&key, flight, call, next).await,
                    Found::Wait(mut flight) => {
                        let over = flight.wait_for(|flight| !matches!(flight, Flight::Running)).await;
                        match over.map(|flight| flight.clone()) {
                            Ok(Flight::Landed(value)) => return Ok(Value::clone(&value)),
                            Ok(_) => return next.run(call).await,
                            // It was cancelled: someone else begins.
                            Err(_) => {}
                        }
                    }
                }
            }
        })
    }
}
